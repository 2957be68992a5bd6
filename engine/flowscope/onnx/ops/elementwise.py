"""Operators that work element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flowscope as fs
from flowscope.onnx.node import OnnxNode, full_like, normalized, rank_of
from flowscope.onnx.table import converts, single

_UNARY: dict[str, Callable[..., Any]] = {
    "Abs": fs.abs,
    "Acos": fs.acos,
    "Acosh": fs.acosh,
    "Asin": fs.asin,
    "Asinh": fs.asinh,
    "Atan": fs.atan,
    "Atanh": fs.atanh,
    "BitwiseNot": fs.bitwise.invert,
    "Ceil": fs.math.ceil,
    "Cos": fs.cos,
    "Cosh": fs.cosh,
    "Erf": fs.math.erf,
    "Exp": fs.exp,
    "Floor": fs.floor,
    "IsNaN": fs.math.is_nan,
    "Log": fs.math.log,
    "Neg": fs.negative,
    "Not": fs.logical_not,
    "Reciprocal": fs.math.reciprocal,
    "Relu": fs.nn.relu,
    "Round": fs.math.rint,
    "Sigmoid": fs.sigmoid,
    "Sign": fs.sign,
    "Sin": fs.sin,
    "Sinh": fs.sinh,
    "Softplus": fs.nn.softplus,
    "Softsign": fs.nn.softsign,
    "Sqrt": fs.sqrt,
    "Tan": fs.tan,
    "Tanh": fs.tanh,
}
_BINARY: dict[str, Callable[..., Any]] = {
    "Add": fs.add,
    "And": fs.logical_and,
    "BitwiseAnd": fs.bitwise.bitwise_and,
    "BitwiseOr": fs.bitwise.bitwise_or,
    "BitwiseXor": fs.bitwise.bitwise_xor,
    "Equal": fs.equal,
    "Greater": fs.greater,
    "GreaterOrEqual": fs.greater_equal,
    "Less": fs.less,
    "LessOrEqual": fs.less_equal,
    "Mul": fs.multiply,
    "Or": fs.logical_or,
    "Sub": fs.subtract,
    "Xor": fs.math.logical_xor,
}


def _enter_unary(name: str, function: Callable[..., Any]) -> None:
    single(name, lambda n: function(n.x(0), name=n.name))


def _enter_binary(name: str, function: Callable[..., Any]) -> None:
    single(name, lambda n: function(*_pair(n), name=n.name))


def _pair(n: OnnxNode) -> tuple[fs.Tensor, fs.Tensor]:
    """Two inputs that broadcast; in opset 6 the second one lies at an axis of the first."""
    x, y = n.x(0), n.x(1)
    if n.opset < 7 and n.attr("broadcast", 0) and n.attr("axis") is not None:
        behind = rank_of(x) - normalized([n.attr("axis")], rank_of(x))[0] - rank_of(y)
        y = fs.reshape(y, fs.concat([fs.shape(y), [1] * behind], 0)) if behind > 0 else y
    return x, y


for _name, _function in _UNARY.items():
    _enter_unary(_name, _function)
for _name, _function in _BINARY.items():
    _enter_binary(_name, _function)


def _is_float(x: fs.Tensor) -> bool:
    return x.dtype.is_floating


def _div(n: OnnxNode) -> Any:
    if _is_float(n.x(0)):
        return fs.math.realdiv(*_pair(n), name=n.name)
    return fs.truncatediv(*_pair(n), name=n.name)


def _mod(n: OnnxNode) -> Any:
    function = fs.truncatemod if n.attr("fmod", 0) else fs.math.floormod
    return function(n.x(0), n.x(1), name=n.name)


def _where(n: OnnxNode) -> Any:
    return fs.where_v2(n.x(0), n.x(1), n.x(2), name=n.name)


def _leaky_relu(n: OnnxNode) -> Any:
    return fs.nn.leaky_relu(n.x(0), n.attr("alpha", 0.01), name=n.name)


single("Div", _div)
single("Mod", _mod)
single("Where", _where)
single("LeakyRelu", _leaky_relu)
single("Identity", lambda n: n.inputs[0] if isinstance(n.inputs[0], list | None) else _identity(n))


def _identity(n: OnnxNode) -> Any:
    return fs.identity(n.x(0), name=n.name)


@converts("Pow")
def _pow(n: OnnxNode) -> Any:
    x, y = _pair(n)
    if x.dtype is y.dtype:
        return fs.pow(x, y)
    if _is_float(x):
        return fs.pow(x, fs.cast(y, x.dtype))
    if _is_float(y):
        return fs.cast(fs.pow(fs.cast(x, fs.float64), fs.cast(y, fs.float64)), x.dtype)
    return fs.pow(x, fs.cast(y, x.dtype))


@converts("Elu")
def _elu(n: OnnxNode) -> Any:
    alpha = n.attr("alpha", 1.0)
    if alpha == 1:
        return fs.nn.elu(n.x(0))
    x, zero = n.x(0), full_like(0, n.x(0))
    below = full_like(alpha, x) * fs.math.expm1(fs.minimum(x, zero))
    return fs.where_v2(fs.less(x, zero), below, x)


@converts("PRelu")
def _prelu(n: OnnxNode) -> Any:
    x, slope = n.x(0), n.x(1)
    if n.opset < 7 and rank_of(slope) == 1:
        slope = fs.reshape(slope, [-1, *[1] * (rank_of(x) - 2)])
    return fs.where_v2(fs.less(x, full_like(0, x)), fs.multiply(x, slope), x)


@converts("Selu")
def _selu(n: OnnxNode) -> Any:
    x = n.x(0)
    alpha, gamma = n.attr("alpha", 1.67326319217681884), n.attr("gamma", 1.05070102214813232)
    zero = full_like(0, x)
    below = full_like(alpha, x) * fs.math.expm1(fs.minimum(x, zero))
    return full_like(gamma, x) * fs.where_v2(fs.less_equal(x, zero), below, x)


@converts("Celu")
def _celu(n: OnnxNode) -> Any:
    x, alpha = n.x(0), full_like(n.attr("alpha", 1.0), n.x(0))
    zero = full_like(0, x)
    below = alpha * fs.math.expm1(fs.minimum(zero, fs.math.realdiv(x, alpha)))
    return fs.maximum(zero, x) + below


@converts("ThresholdedRelu")
def _thresholded_relu(n: OnnxNode) -> Any:
    x = n.x(0)
    above = fs.greater(x, full_like(n.attr("alpha", 1.0), x))
    return fs.where_v2(above, x, full_like(0, x))


@converts("HardSigmoid")
def _hard_sigmoid(n: OnnxNode) -> Any:
    return _line(n.x(0), n.attr("alpha", 0.2), n.attr("beta", 0.5))


@converts("HardSwish")
def _hard_swish(n: OnnxNode) -> Any:
    return n.x(0) * _line(n.x(0), 1 / 6, 0.5)


def _line(x: fs.Tensor, alpha: float, beta: float) -> Any:
    """alpha x + beta, between 0 and 1."""
    line = full_like(alpha, x) * x + full_like(beta, x)
    return fs.maximum(full_like(0, x), fs.minimum(full_like(1, x), line))


@converts("Gelu")
def _gelu(n: OnnxNode) -> Any:
    x = n.x(0)
    half, one = full_like(0.5, x), full_like(1, x)
    if n.attr("approximate", "none") == "tanh":
        cube = full_like(0.044715, x) * x * x * x
        inner = fs.tanh(full_like(np.sqrt(2 / np.pi), x) * (x + cube))
    else:
        inner = fs.math.erf(x * full_like(np.sqrt(0.5), x))
    return half * x * (one + inner)


@converts("Swish")
def _swish(n: OnnxNode) -> Any:
    x, alpha = n.x(0), n.attr("alpha", 1.0)
    return x * fs.sigmoid(x if alpha == 1 else full_like(alpha, x) * x)


@converts("IsInf")
def _is_inf(n: OnnxNode) -> Any:
    x, found = n.x(0), fs.math.is_inf(n.x(0))
    if not n.attr("detect_negative", 1):
        found = fs.logical_and(found, fs.greater(x, full_like(0, x)))
    if not n.attr("detect_positive", 1):
        found = fs.logical_and(found, fs.less(x, full_like(0, x)))
    return found


@converts("Clip")
def _clip(n: OnnxNode) -> Any:
    x = n.x(0)
    low, high = n.get(1), n.get(2)
    if n.opset < 11:
        low, high = [None if n.attr(k) is None else full_like(n.attr(k), x) for k in ("min", "max")]
    if low is not None:
        x = fs.maximum(x, low)
    if high is not None:
        x = fs.minimum(x, high)
    return fs.identity(x) if x is n.x(0) else x


@converts("BitShift")
def _bit_shift(n: OnnxNode) -> Any:
    x, y = n.x(0), n.x(1)
    is_left = n.needed("direction") == "LEFT"
    last = full_like(8 * x.dtype.size - 1, x)
    # A count below 0 is a large one.
    is_within = fs.less_equal(y, last)
    if x.dtype.kind == "i":
        is_within = fs.logical_and(is_within, fs.greater_equal(y, full_like(0, x)))
    count = fs.where_v2(is_within, y, last)
    if is_left:
        found = fs.bitwise.left_shift(x, count)
    else:
        found = fs.bitwise.right_shift(x, count)
        if x.dtype.kind == "i":
            return found
    return fs.where_v2(is_within, found, fs.zeros_like(found))


@converts("Shrink")
def _shrink(n: OnnxNode) -> Any:
    x, bias, bound = n.x(0), n.attr("bias", 0.0), n.attr("lambd", 0.5)
    found = fs.where_v2(fs.greater(x, full_like(bound, x)), x - full_like(bias, x), full_like(0, x))
    return fs.where_v2(fs.less(x, full_like(-bound, x)), x + full_like(bias, x), found)


def _folded(name: str, function: Callable[..., Any]) -> None:
    def convert(n: OnnxNode) -> Any:
        found, *rest = n.tensors()
        for x in rest:
            found = function(found, x)
        return found if rest else fs.identity(found)

    converts(name)(convert)


_folded("Max", fs.maximum)
_folded("Min", fs.minimum)
_folded("Sum", fs.add)


@converts("Mean")
def _mean(n: OnnxNode) -> Any:
    found, *rest = n.tensors()
    for x in rest:
        found = fs.add(found, x)
    return fs.math.realdiv(found, full_like(len(n.inputs), found))


# -- along an axis --------------------------------------------------------------------------------


def _along_axis(n: OnnxNode, function: Callable[[fs.Tensor, int], Any]) -> Any:
    """Applies a function along an axis; before opset 13 along all axes from that one on."""
    x = n.x(0)
    if n.opset >= 13:
        return function(x, n.axis(-1))
    axis = n.axis(1)
    if axis == n.rank() - 1:
        return function(x, axis)
    flat = fs.reshape(x, fs.concat([fs.shape(x)[:axis], [-1]], 0))
    return fs.reshape(function(flat, axis), fs.shape(x))


@converts("Softmax")
def _softmax(n: OnnxNode) -> Any:
    return _along_axis(n, lambda x, axis: fs.nn.softmax(x, axis=axis))


@converts("LogSoftmax")
def _log_softmax(n: OnnxNode) -> Any:
    return _along_axis(n, lambda x, axis: fs.nn.log_softmax(x, axis=axis))


@converts("Hardmax")
def _hardmax(n: OnnxNode) -> Any:
    def hardmax(x: fs.Tensor, axis: int) -> Any:
        return fs.one_hot(fs.argmax(x, axis), fs.shape(x)[axis], dtype=x.dtype, axis=axis)

    return _along_axis(n, hardmax)
