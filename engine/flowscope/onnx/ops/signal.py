"""Fourier transforms, windows and mel weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import flowscope as fs
from flowscope.errors import InvalidArgumentError
from flowscope.onnx.kernels.operator import operator
from flowscope.onnx.node import OnnxNode, dims_of, full_like, normalized
from flowscope.onnx.protos import dtype_of
from flowscope.onnx.table import converts


@converts("DFT")
def _dft(n: OnnxNode) -> Any:
    x, rank = n.x(0), n.rank()
    inverse, one_sided = bool(n.attr("inverse", 0)), bool(n.attr("onesided", 0))
    axis: int | None = n.attr("axis", 1) if n.opset < 20 else -2
    if n.has(2):
        known = n.known(2)
        axis = None if known is None else int(np.reshape(known, ()))
    dims: list[int | None] = [None] * rank
    if axis is not None:
        axis = normalized([axis], rank)[0]
        dims = dims_of(x)
        length = n.known(1) if n.has(1) else None
        size = None if n.has(1) else dims[axis]
        size = size if length is None else int(np.reshape(length, ()))
        if one_sided and size is not None:
            size = 2 * (size - 1) if inverse and length is None else size
            size = size if inverse else size // 2 + 1
        dims[axis] = size
    dims[-1] = 1 if one_sided and inverse else 2
    inputs = [x, *([n.x(1)] if n.has(1) else []), *([n.x(2)] if axis is None else [])]
    return operator(
        "DFT",
        inputs,
        [(x.dtype, tuple(dims))],
        axis=axis,
        inverse=inverse,
        one_sided=one_sided,
    )


@converts("STFT")
def _stft(n: OnnxNode) -> Any:
    x = n.x(0)
    inputs = [x, n.x(1)]
    if n.has(2):
        inputs.append(n.x(2))
    if n.has(3):
        inputs.append(n.x(3))
    dims = dims_of(x)
    return operator(
        "STFT",
        inputs,
        [(x.dtype, (dims[0], None, None, 2))],
        one_sided=bool(n.attr("onesided", 1)),
        has_window=n.has(2),
        has_length=n.has(3),
    )


def _windows(name: str, terms: Sequence[float]) -> None:
    def convert(n: OnnxNode) -> Any:
        size = fs.cast(fs.reshape(n.x(0), []), fs.int64)
        dtype = dtype_of(n.attr("output_datatype", 1))
        wide = fs.float64
        count = fs.cast(size, wide)
        if not n.attr("periodic", 1):
            count = count - full_like(1, count)
        at = fs.cast(fs.range(size), wide) * full_like(2 * np.pi, count) / count
        found = full_like(terms[0], count) + fs.zeros_like(at)
        for k, term in enumerate(terms[1:], 1):
            found = found + full_like(term, count) * fs.cos(full_like(k, count) * at)
        return fs.cast(found, dtype)

    converts(name)(convert)


_windows("HannWindow", [0.5, -0.5])
_windows("HammingWindow", [25 / 46, -21 / 46])
_windows("BlackmanWindow", [0.42, -0.5, 0.08])


@converts("MelWeightMatrix")
def _mel(n: OnnxNode) -> Any:
    dtype = dtype_of(n.attr("output_datatype", 1))
    bins, length = n.known(0), n.known(1)
    dims = (
        None if length is None else int(np.reshape(length, ())) // 2 + 1,
        None if bins is None else int(np.reshape(bins, ())),
    )
    if len(n.inputs) != 5:
        raise InvalidArgumentError(f"expected 5 inputs, got {len(n.inputs)}")
    return operator("MelWeights", n.tensors(), [(dtype, dims)])
