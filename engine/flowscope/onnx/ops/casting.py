"""Operators that change the element type."""

from __future__ import annotations

from typing import Any

import flowscope as fs
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType
from flowscope.onnx.kernels.operator import operator
from flowscope.onnx.node import OnnxNode
from flowscope.onnx.protos import dtype_of
from flowscope.onnx.table import converts


@converts("Cast")
def _cast(n: OnnxNode) -> Any:
    return cast(n, dtype_of(n.needed("to")))


@converts("CastLike")
def _cast_like(n: OnnxNode) -> Any:
    return cast(n, n.x(1).dtype)


def cast(n: OnnxNode, dtype: DType) -> Any:
    """A node's first input as another element type."""
    x = n.x(0)
    if x.dtype is dtype:
        return fs.identity(x)
    if dtypes.string in (x.dtype, dtype):
        (found,) = operator("CastString", [x], [(dtype, x.spec.shape)], dtype=dtype.name)
        return found
    if dtype.name.startswith("float8"):
        saturate = bool(n.attr("saturate", 1))
        (found,) = operator(
            "CastFloat8", [x], [(dtype, x.spec.shape)], dtype=dtype.name, saturate=saturate
        )
        return found
    return fs.cast(x, dtype)


@converts("BitCast")
def _bit_cast(n: OnnxNode) -> Any:
    x, dtype = n.x(0), dtype_of(n.needed("to"))
    if x.dtype is fs.bool:
        return fs.bitcast(fs.cast(x, fs.uint8), dtype)
    if dtype is fs.bool:
        return fs.cast(x, fs.bool)
    return fs.bitcast(x, dtype)


__all__ = ["cast"]
