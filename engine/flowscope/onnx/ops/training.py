"""Rules of optimisers and gradients, of the domain `ai.onnx.preview.training`."""

from __future__ import annotations

from typing import Any

import flowscope as fs
from flowscope.errors import InvalidArgumentError, UnimplementedError
from flowscope.onnx.node import OnnxNode, full_like
from flowscope.onnx.table import converts

_DOMAIN = "ai.onnx.preview.training/"


def _groups(n: OnnxNode, count: int) -> list[list[fs.Tensor]]:
    """The inputs behind rate and time, in lists of equal lengths."""
    values = n.tensors()[2:]
    each, rest = divmod(len(values), count)
    if rest or not each:
        raise InvalidArgumentError(f"expected inputs in {count} equal parts, got {len(values)}")
    return [values[i * each : (i + 1) * each] for i in range(count)]


def _regular(n: OnnxNode, x: fs.Tensor, g: fs.Tensor) -> Any:
    """The gradient with what the norm adds."""
    return full_like(n.attr("norm_coefficient", 0.0), x) * x + g


@converts(f"{_DOMAIN}Adagrad")
def _adagrad(n: OnnxNode) -> Any:
    decay = full_like(n.attr("decay_factor", 0.0), n.x(0))
    rate = n.x(0) / (full_like(1, n.x(0)) + fs.cast(n.x(1), decay.dtype) * decay)
    news, sums = [], []
    for x, g, h in zip(*_groups(n, 3), strict=True):
        regular = _regular(n, x, g)
        sums.append(h + regular * regular)
        step = regular / (fs.sqrt(sums[-1]) + full_like(n.attr("epsilon", 1e-6), x))
        news.append(x - fs.cast(rate, x.dtype) * step)
    return (*news, *sums)


@converts(f"{_DOMAIN}Adam")
def _adam(n: OnnxNode) -> Any:
    alpha, beta = n.attr("alpha", 0.9), n.attr("beta", 0.999)
    time = fs.cast(n.x(1), fs.float64)
    one = full_like(1, time)
    scale = fs.sqrt(one - fs.pow(full_like(beta, time), time)) / fs.where_v2(
        fs.greater(time, full_like(0, time)), one - fs.pow(full_like(alpha, time), time), one
    )
    scale = fs.where_v2(fs.greater(time, full_like(0, time)), scale, one)
    news, means, squares = [], [], []
    for x, g, v, h in zip(*_groups(n, 4), strict=True):
        regular = _regular(n, x, g)
        means.append(full_like(alpha, x) * v + full_like(1 - alpha, x) * regular)
        squares.append(full_like(beta, x) * h + full_like(1 - beta, x) * regular * regular)
        rate = fs.cast(n.x(0), x.dtype) * fs.cast(scale, x.dtype)
        step = means[-1] / (fs.sqrt(squares[-1]) + full_like(n.attr("epsilon", 1e-6), x))
        kept = full_like(1 - n.attr("norm_coefficient_post", 0.0), x)
        news.append(kept * (x - rate * step))
    return (*news, *means, *squares)


@converts(f"{_DOMAIN}Momentum")
def _momentum(n: OnnxNode) -> Any:
    alpha, beta = n.needed("alpha"), n.needed("beta")
    is_later = fs.greater(n.x(1), full_like(0, n.x(1)))
    news, speeds = [], []
    for x, g, v in zip(*_groups(n, 3), strict=True):
        regular = _regular(n, x, g)
        factor = fs.where_v2(is_later, full_like(beta, x), full_like(1, x))
        speeds.append(full_like(alpha, x) * v + factor * regular)
        step = speeds[-1]
        if n.needed("mode") == "nesterov":
            step = regular + full_like(alpha, x) * step
        news.append(x - fs.cast(n.x(0), x.dtype) * step)
    return (*news, *speeds)


@converts(f"{_DOMAIN}Gradient")
def _gradient(n: OnnxNode) -> Any:
    names = [*n.needed("xs"), *n.attr("zs", [])]
    values = [n.values.get(name) for name in (*names, n.needed("y"))]
    if any(not isinstance(v, fs.Tensor) for v in values):
        raise InvalidArgumentError("expected the names of tensors as xs and y")
    if any(v is not x for v, x in zip(values, n.inputs)) or len(n.inputs) != len(names):
        raise UnimplementedError("a gradient at other values than the graph's is not supported")
    xs = values[: len(n.needed("xs"))]
    return tuple(fs.gradients(values[-1], xs, unconnected_gradients=fs.UnconnectedGradients.ZERO))
