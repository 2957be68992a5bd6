"""Reverse-mode gradients by graph extension: what users call.

Source: Abadi et al. 2016 (white paper), section 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowscope.autodiff.aggregation import (
    AggregationMethod,
    Cotangent,
    UnconnectedGradients,
    aggregating,
)
from flowscope.autodiff.blocks import Sweeps
from flowscope.autodiff.sweep import ancestors, check_registered
from flowscope.control.trampoline import Work, driven
from flowscope.errors import DTypeError, GraphError, InvalidArgumentError
from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.graph import Graph
from flowscope.graph.indexed_slices import IndexedSlices, convert_to_tensor_or_indexed_slices
from flowscope.graph.operation import Tensor
from flowscope.graph.values.shapes import as_dims, compatible, text
from flowscope.ops.array.arrays import ones_like, zeros, zeros_like


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: UnconnectedGradients = UnconnectedGradients.NONE,
) -> list[Any]:
    """Returns the derivatives of the sum of `ys` with respect to each of `xs`.

    Args:
        ys: A tensor or a list of them.
        xs: A tensor or variable, or a list of them.
        grad_ys: Cotangents of `ys`, None (for ones) or one (or None) per y. Complex ys need them.
        name: Name scope of the operations.
        colocate_gradients_with_ops: Whether an operation's gradient shares its device.
        gate_gradients: Whether an operation's cotangents wait for each other before they are used.
        aggregation_method: See `AggregationMethod`.
        stop_gradients: Tensors that count as constants: nothing flows on through them.
        unconnected_gradients: What is returned for an x without influence: None or zeros.

    Returns:
        Per x a tensor, `IndexedSlices` where only slices of x were taken (by `fs.gather`, in bodies
        too), or None.

    Raises:
        LookupError: if an op on the way has no gradient.
        InvalidArgumentError: if a y and an x belong to different graphs, or an option is unknown.
        DTypeError: if a y is complex and has no cotangent.
        UnsupportedGradientError: if the op of a y has neither a gradient nor the declaration that
            it has none (a LookupError, as in TensorFlow).

    A y or an x that is neither floating-point nor complex is a constant: it has no influence but
    on itself.

    Example:
        >>> x = fs.constant(3.0)
        >>> (slope,) = fs.gradients(x * x, x)
        >>> (second,) = fs.gradients(slope, x)
        >>> fs.Session().run([slope, second])
        [np.float32(6.0), np.float32(2.0)]
    """
    __tracebackhide__ = True
    work = gradient_work(
        ys,
        xs,
        grad_ys,
        name,
        colocate_gradients_with_ops,
        gate_gradients,
        stop_gradients,
        unconnected_gradients,
    )
    with aggregating(aggregation_method):
        return driven(work)


def gradient_work(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate: bool = False,
    gate: bool = False,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> Work[list[Any]]:
    """Does what `gradients` does, as a work: it yields the gradients of bodies."""
    __tracebackhide__ = True
    y_tensors = [convert_to_tensor(y) for y in as_list(ys)]
    x_tensors = [source(x) for x in as_list(xs)]
    stopped = {source(t) for t in as_list([] if stop_gradients is None else stop_gradients)}
    unconnected = _unconnected(unconnected_gradients)
    if not x_tensors:
        return []
    graph = x_tensors[0].graph
    _check_graph(graph, (*y_tensors, *x_tensors))
    check_registered(y_tensors, x_tensors, stopped)
    with graph.name_scope(name), graph.observer.derived_from(lambda: ancestors(y_tensors)):
        sweeps = Sweeps(x_tensors, stopped, colocate, gate)
        cotangents = _cotangents(y_tensors, grad_ys, sweeps, set(x_tensors))
        given = zip(y_tensors, cotangents, strict=True)
        found = yield from sweeps.run([(y, g) for y, g in given if g is not None])
        if unconnected is UnconnectedGradients.ZERO:
            found = [_zeros(x) if g is None else g for g, x in zip(found, x_tensors, strict=True)]
    return found


def as_list(value: Any) -> list[Any]:
    """Returns a list of what is one or several."""
    return list(value) if isinstance(value, list | tuple) else [value]


def source(x: Any) -> Tensor:
    """Returns the tensor whose cotangent is x's gradient: a variable's handle."""
    if isinstance(x, IndexedSlices):
        raise DTypeError(
            f'expected tensors and variables, got the slices "{x.name}": give their values'
        )
    handle = getattr(x, "handle", None)
    if isinstance(x, Convertible) and isinstance(handle, Tensor):
        return handle
    return convert_to_tensor(x)


def _check_graph(graph: Graph, tensors: Sequence[Tensor]) -> None:
    for t in tensors:
        if t.graph is not graph:
            raise GraphError(f'"{t.name}" belongs to another graph than the first x')


def _unconnected(value: Any) -> UnconnectedGradients:
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise InvalidArgumentError(
            f'expected unconnected_gradients "none" or "zero", got {value!r}'
        ) from None


def _cotangents(
    ys: Sequence[Tensor], given: Any, sweep: Sweeps, ends: set[Tensor]
) -> list[Cotangent | None]:
    given = [None] * len(ys) if given is None else as_list(given)
    if len(given) != len(ys):
        raise InvalidArgumentError(f"expected {len(ys)} grad_ys, one per y, got {len(given)}")
    out = []
    for i, (y, g) in enumerate(zip(ys, given, strict=True)):
        with sweep.beside(y.op):
            g = _ones(y, i) if g is None else _given(y, g, i)
        out.append(g if y.spec.dtype.is_differentiable or y in ends else None)
    return out


def _ones(y: Tensor, i: int) -> Cotangent | None:
    if y.spec.dtype.is_complex:
        raise DTypeError(
            f'expected grad_ys for "{y.name}", which is complex: '
            "a cotangent of ones is meant for real ys only"
        )
    has_ones = y.spec.dtype.is_differentiable or y.spec.dtype.is_integer
    return ones_like(y, name=f"grad_ys_{i}") if has_ones else None


def _given(y: Tensor, value: Any, i: int) -> Cotangent:
    g = convert_to_tensor_or_indexed_slices(value, y.dtype, name=f"grad_ys_{i}")
    dims = as_dims(g.shape) if isinstance(g, IndexedSlices) else g.spec.shape
    if not compatible(dims, y.spec.shape):
        raise InvalidArgumentError(
            f"grad_ys[{i}] must have its y's shape {text(y.spec.shape)}, got {text(dims)}"
        )
    return g


def _zeros(x: Tensor) -> Tensor:
    if x.spec.variable is not None:
        return zeros(x.spec.variable.shape, x.spec.variable.dtype)
    return zeros_like(x)


__all__ = ["AggregationMethod", "UnconnectedGradients", "gradients"]
