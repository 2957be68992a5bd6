"""Products of matrices, determinants and sums of products."""

from __future__ import annotations

from typing import Any

import flowscope as fs
from flowscope.onnx.node import OnnxNode, full_like, rank_of
from flowscope.onnx.table import converts, single


def product(a: fs.Tensor, b: fs.Tensor, name: str | None = None) -> Any:
    """NumPy's matmul: vectors count as matrices of one row or column."""
    first, second = rank_of(a), rank_of(b)
    left = fs.expand_dims(a, 0) if first == 1 else a
    right = fs.expand_dims(b, 1) if second == 1 else b
    found = fs.matmul(left, right, name=name)
    if second == 1:
        found = fs.squeeze(found, [-1])
    if first == 1:
        found = fs.squeeze(found, [-2 if second > 1 else -1])
    return found


single("MatMul", lambda n: product(n.x(0), n.x(1), n.name))


@converts("Gemm")
def _gemm(n: OnnxNode) -> Any:
    a, b = n.x(0), n.x(1)
    found = fs.matmul(
        a, b, transpose_a=bool(n.attr("transA", 0)), transpose_b=bool(n.attr("transB", 0))
    )
    alpha, beta = n.attr("alpha", 1.0), n.attr("beta", 1.0)
    if alpha != 1:
        found = _scaled(found, alpha)
    if n.has(2):
        found = found + (n.x(2) if beta == 1 else _scaled(n.x(2), beta))
    return found


def _scaled(x: fs.Tensor, factor: float) -> Any:
    if x.dtype.is_floating:
        return full_like(factor, x) * x
    return fs.cast(fs.cast(x, fs.float64) * fs.constant(factor, fs.float64), x.dtype)


@converts("Einsum")
def _einsum(n: OnnxNode) -> Any:
    return fs.einsum(n.needed("equation").replace(" ", ""), *n.tensors())


@converts("Det")
def _det(n: OnnxNode) -> Any:
    return fs.linalg.det(n.x(0))


__all__ = ["product"]
