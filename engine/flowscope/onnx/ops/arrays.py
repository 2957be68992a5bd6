"""Operators that make arrays: constants, ranges, one-hot codes, matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowscope as fs
from flowscope.errors import InvalidArgumentError
from flowscope.onnx.node import OnnxNode, full_like, normalized, rank_of
from flowscope.onnx.protos import dtype_of
from flowscope.onnx.table import converts, single

#: Elements that a constant made by filling may have.
_MAX_FILLED = 1 << 28


def _constant(n: OnnxNode) -> Any:
    for name, dtype in _CONSTANTS.items():
        value = n.attr(name)
        if value is None:
            continue
        if name == "sparse_value":
            from flowscope.onnx.protos import dense

            value = dense(value)
        if name.startswith("value_string"):
            value = np.array(value, object)
        return fs.constant(value, dtype=dtype, name=n.name)
    raise InvalidArgumentError("expected the value of a constant")


_CONSTANTS: dict[str, Any] = {
    "value": None,
    "value_float": fs.float32,
    "value_floats": fs.float32,
    "value_int": fs.int64,
    "value_ints": fs.int64,
    "value_string": fs.string,
    "value_strings": fs.string,
    "sparse_value": None,
}
single("Constant", _constant)


@converts("ConstantOfShape")
def _constant_of_shape(n: OnnxNode) -> Any:
    value = n.attr("value")
    value = np.zeros(1, np.float32) if value is None else value
    dims = n.known(0)
    if dims is not None and float(np.prod(dims, dtype=float)) > _MAX_FILLED:
        raise InvalidArgumentError(f"expected at most {_MAX_FILLED} elements, got shape {dims}")
    return fs.fill(n.x(0), fs.constant(value.reshape(-1)[0], dtype=value.dtype))


@converts("EyeLike")
def _eye_like(n: OnnxNode) -> Any:
    x = n.x(0)
    number = n.attr("dtype")
    dtype = x.dtype if number is None else dtype_of(number)
    sizes = fs.shape(x, out_type=fs.int64)
    rows = fs.expand_dims(fs.range(sizes[0]), 1)
    columns = fs.expand_dims(fs.range(sizes[1]), 0)
    found = fs.cast(fs.equal(columns - rows, fs.constant(n.attr("k", 0), fs.int64)), dtype)
    found.set_shape(x.shape)
    return found


@converts("Range")
def _range(n: OnnxNode) -> Any:
    start, limit, delta = [fs.reshape(n.x(i), []) for i in range(3)]
    if start.dtype in (fs.float16, fs.bfloat16):
        first, end, step = [fs.cast(v, fs.float32) for v in (start, limit, delta)]
        return fs.cast(fs.range(first, end, step), start.dtype)
    return fs.range(start, limit, delta)


@converts("OneHot")
def _one_hot(n: OnnxNode) -> Any:
    index, depth = fs.cast(n.x(0), fs.int64), fs.reshape(fs.cast(n.x(1), fs.int64), [])
    low, high = n.x(2)[0], n.x(2)[1]
    index = fs.where_v2(fs.less(index, fs.zeros_like(index)), index + depth, index)
    axis = normalized([n.attr("axis", -1)], n.rank() + 1)[0]
    known = n.known(1)
    size: Any = fs.cast(depth, fs.int32) if known is None else int(np.reshape(known, ()))
    hot = fs.one_hot(index, size, True, False, axis=axis, dtype=fs.bool)
    return fs.where_v2(hot, high, low)


@converts("Trilu")
def _trilu(n: OnnxNode) -> Any:
    x = n.x(0)
    k = fs.reshape(n.x(1), []) if n.has(1) else fs.constant(0, fs.int64)
    sizes = fs.shape(x, out_type=fs.int64)
    rank = rank_of(x)
    rows = fs.expand_dims(fs.range(sizes[rank - 2]), 1)
    columns = fs.expand_dims(fs.range(sizes[rank - 1]), 0)
    compare = fs.greater_equal if n.attr("upper", 1) else fs.less_equal
    found = fs.where_v2(compare(columns - rows, k), x, fs.zeros_like(x))
    found.set_shape(x.shape)
    return found


@converts("Shape")
def _shape(n: OnnxNode) -> Any:
    x, rank = n.x(0), n.rank()
    start, end, _ = slice(n.attr("start", 0), n.attr("end")).indices(rank)
    found = fs.shape(x, out_type=fs.int64)
    return found if (start, end) == (0, rank) else found[start : max(start, end)]


@converts("Size")
def _size(n: OnnxNode) -> Any:
    return fs.size(n.x(0), out_type=fs.int64)


@converts("NonZero")
def _non_zero(n: OnnxNode) -> Any:
    x = n.x(0)
    if n.rank() == 0:
        x = fs.reshape(x, [1])
    return fs.transpose(fs.where(fs.not_equal(x, full_like(0, x))), [1, 0])
