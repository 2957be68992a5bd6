"""Random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowscope as fs
from flowscope.onnx.node import OnnxNode
from flowscope.onnx.protos import dtype_of
from flowscope.onnx.table import converts


def _dtype(n: OnnxNode, like: fs.Tensor | None) -> Any:
    number = n.attr("dtype")
    if number is not None:
        return dtype_of(number)
    return fs.float32 if like is None else like.dtype


def _seed(n: OnnxNode) -> int | None:
    seed = n.attr("seed")
    return None if seed is None else int(np.float32(seed).view(np.int32))


def _shape(n: OnnxNode) -> Any:
    return fs.shape(n.x(0)) if n.inputs else np.array(n.needed("shape"), np.int64)


@converts("RandomNormal", "RandomNormalLike")
def _normal(n: OnnxNode) -> Any:
    mean, scale = n.attr("mean", 0.0), n.attr("scale", 1.0)
    dtype = _dtype(n, n.get(0))
    return fs.random_normal(_shape(n), mean, scale, dtype=dtype, seed=_seed(n))


@converts("RandomUniform", "RandomUniformLike")
def _uniform(n: OnnxNode) -> Any:
    low, high = n.attr("low", 0.0), n.attr("high", 1.0)
    dtype = _dtype(n, n.get(0))
    return fs.random_uniform(_shape(n), low, high, dtype=dtype, seed=_seed(n))


@converts("Bernoulli")
def _bernoulli(n: OnnxNode) -> Any:
    x = n.x(0)
    uniform = fs.random_uniform(fs.shape(x), dtype=fs.float32, seed=_seed(n))
    return fs.cast(fs.less(uniform, fs.cast(x, fs.float32)), _dtype(n, x))


@converts("Multinomial")
def _multinomial(n: OnnxNode) -> Any:
    dtype = dtype_of(n.attr("dtype", 6))
    return fs.multinomial(n.x(0), n.attr("sample_size", 1), seed=_seed(n), output_dtype=dtype)
