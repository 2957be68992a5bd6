"""Operators that reduce axes, and running sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowscope as fs
from flowscope.onnx.node import OnnxNode, full_like, normalized
from flowscope.onnx.table import converts

_Reduction = Callable[[fs.Tensor, Any, bool], Any]


def _reduces(name: str, function: _Reduction) -> None:
    def convert(n: OnnxNode) -> Any:
        x, keeps = n.x(0), bool(n.attr("keepdims", 1))
        axes: Any = n.attr("axes")
        if n.has(1):
            axes = n.known(1)
            if axes is None:
                return function(x, n.x(1), keeps)
        if axes is None or len(axes) == 0:
            if n.attr("noop_with_empty_axes", 0):
                return function(x, [], True)
            axes = range(n.rank())
        return function(x, normalized(axes, n.rank()), keeps)

    converts(name)(convert)


def _extreme(function: Callable[..., Any]) -> _Reduction:
    def reduce(x: fs.Tensor, axes: Any, keeps: bool) -> Any:
        if x.dtype is fs.bool:
            return fs.cast(function(fs.cast(x, fs.uint8), axes, keeps), fs.bool)
        return function(x, axes, keeps)

    return reduce


def _l1(x: fs.Tensor, axes: Any, keeps: bool) -> Any:
    return fs.reduce_sum(fs.abs(x), axes, keeps)


def _l2(x: fs.Tensor, axes: Any, keeps: bool) -> Any:
    found = fs.reduce_sum(fs.square(x), axes, keeps)
    if x.dtype.is_floating:
        return fs.sqrt(found)
    return fs.cast(fs.sqrt(fs.cast(found, fs.float64)), x.dtype)


def _log_sum(x: fs.Tensor, axes: Any, keeps: bool) -> Any:
    return _float(x, lambda v: fs.math.log(fs.reduce_sum(v, axes, keeps)))


def _log_sum_exp(x: fs.Tensor, axes: Any, keeps: bool) -> Any:
    return _float(x, lambda v: fs.reduce_logsumexp(v, axes, keeps))


def _float(x: fs.Tensor, function: Callable[[fs.Tensor], Any]) -> Any:
    if x.dtype.is_floating:
        return function(x)
    return fs.cast(function(fs.cast(x, fs.float64)), x.dtype)


def _mean(x: fs.Tensor, axes: Any, keeps: bool) -> Any:
    return fs.reduce_mean(x, axes, keeps)


_reduces("ReduceSum", lambda x, axes, keeps: fs.reduce_sum(x, axes, keeps))
_reduces("ReduceProd", lambda x, axes, keeps: fs.reduce_prod(x, axes, keeps))
_reduces("ReduceMax", _extreme(fs.reduce_max))
_reduces("ReduceMin", _extreme(fs.reduce_min))
_reduces("ReduceMean", _mean)
_reduces("ReduceL1", _l1)
_reduces("ReduceL2", _l2)
_reduces("ReduceLogSum", _log_sum)
_reduces("ReduceLogSumExp", _log_sum_exp)
_reduces("ReduceSumSquare", lambda x, axes, keeps: fs.reduce_sum(fs.square(x), axes, keeps))


def _finds(name: str, function: Callable[..., Any]) -> None:
    def convert(n: OnnxNode) -> Any:
        x, axis = n.x(0), n.axis(0)
        if n.attr("select_last_index", 0):
            size = fs.shape(x, out_type=fs.int64)[axis]
            found = size - fs.constant(1, fs.int64) - function(fs.reverse(x, [axis]), axis)
        else:
            found = function(x, axis)
        return fs.expand_dims(found, axis) if n.attr("keepdims", 1) else found

    converts(name)(convert)


_finds("ArgMax", fs.argmax)
_finds("ArgMin", fs.argmin)


def _scans(name: str, function: Callable[..., Any]) -> None:
    def convert(n: OnnxNode) -> Any:
        axis = fs.reshape(fs.cast(n.x(1), fs.int32), [])
        exclusive, reverse = bool(n.attr("exclusive", 0)), bool(n.attr("reverse", 0))
        found = function(n.x(0), axis, exclusive=exclusive, reverse=reverse)
        found.set_shape(n.x(0).shape)
        return found

    converts(name)(convert)


_scans("CumSum", fs.cumsum)
_scans("CumProd", fs.math.cumprod)


@converts("LpNormalization")
def _lp_normalization(n: OnnxNode) -> Any:
    x, axis = n.x(0), n.axis(-1)
    p = n.attr("p", 2)
    norm = (_l1 if p == 1 else _l2)(x, [axis], True)
    return fs.math.divide_no_nan(x, norm)


@converts("MeanVarianceNormalization")
def _mean_variance(n: OnnxNode) -> Any:
    x, axes = n.x(0), normalized(n.attr("axes", [0, 2, 3]), n.rank())
    mean = fs.reduce_mean(x, axes, True)
    square = fs.reduce_mean(fs.square(x), axes, True)
    deviation = fs.sqrt(square - fs.square(mean))
    return fs.math.realdiv(x - mean, deviation + full_like(1e-9, x))
