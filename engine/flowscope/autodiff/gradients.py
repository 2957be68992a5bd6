"""Reverse-mode gradients by graph extension (SPEC W23).

Operations between xs and ys are visited from the last to the first; each op's `grad` turns the
cotangents of its outputs into cotangents of its inputs, and what several consumers send is summed.
Creation order is a topological order, so a heap by operation id is all the bookkeeping there is.

Source: Abadi et al. 2016 (white paper), section 4.1.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flowscope.errors import GraphError, InvalidArgumentError, OpError
from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.dtypes import resource
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor, where
from flowscope.graph.shapes import compatible, text
from flowscope.ops.arrays import ones_like, zeros, zeros_like
from flowscope.ops.flow import add_n, tuple as gated_tuple


class UnconnectedGradients(enum.Enum):
    """What `gradients` returns for an x that has no influence on ys."""

    NONE = "none"
    ZERO = "zero"


class AggregationMethod:
    """How several cotangents are summed: TensorFlow's names, all for flowscope's one way."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


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
) -> list[Tensor | None]:
    """Returns the derivatives of the sum of `ys` with respect to each of `xs`.

    Args:
        ys: A tensor or a list of them.
        xs: A tensor or variable, or a list of them.
        grad_ys: Cotangents of `ys`, None (for ones) or one (or None) per y.
        name: Name scope of the operations.
        colocate_gradients_with_ops: Whether an operation's gradient asks for the operation's
            device.
        gate_gradients: Whether all gradients are computed before any is used.
        aggregation_method: See `AggregationMethod`.
        stop_gradients: Tensors that count as constants: nothing flows on through them.
        unconnected_gradients: What is returned for an x without influence: None or zeros.

    Raises:
        LookupError: if an op on the way has no gradient.
        InvalidArgumentError: if a y and an x belong to different graphs, or an option is unknown.

    A y or an x that is neither floating-point nor complex is a constant: it has no influence.
    """
    __tracebackhide__ = True
    ys, xs_given = _as_list(ys), _as_list(xs)
    y_tensors = [convert_to_tensor(y) for y in ys]
    x_tensors = [_source(x) for x in xs_given]
    if not y_tensors:
        raise InvalidArgumentError("gradients needs at least one y")
    graph = y_tensors[0].graph
    _check_graph(graph, (*y_tensors, *x_tensors))
    unconnected = _unconnected(unconnected_gradients)
    stopped = {_source(t) for t in _as_list(stop_gradients or [])}
    with graph.name_scope(name):
        sweep = _Sweep(x_tensors, y_tensors, stopped, colocate_gradients_with_ops)
        sweep.seed(y_tensors, _cotangents(y_tensors, grad_ys))
        sweep.run()
        found = [sweep.total(x) for x in x_tensors]
        if gate_gradients and any(g is not None for g in found):
            found = gated_tuple(found)
        if unconnected is UnconnectedGradients.ZERO:
            found = [_zeros(x) if g is None else g for g, x in zip(found, x_tensors, strict=True)]
    return found


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _source(x: Any) -> Tensor:
    """Returns the tensor whose cotangent is x's gradient: a variable's handle."""
    handle = getattr(x, "handle", None)
    if isinstance(x, Convertible) and isinstance(handle, Tensor):
        return handle
    return convert_to_tensor(x)


def _check_graph(graph: Graph, tensors: Sequence[Tensor]) -> None:
    for t in tensors:
        if t.graph is not graph:
            raise GraphError(f'"{t.name}" belongs to another graph than the first y')


def _unconnected(value: Any) -> UnconnectedGradients:
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise InvalidArgumentError(
            f'expected unconnected_gradients "none" or "zero", got {value!r}'
        ) from None


def _cotangents(ys: Sequence[Tensor], given: Any) -> list[Tensor]:
    if given is None:
        given = [None] * len(ys)
    given = _as_list(given)
    if len(given) != len(ys):
        raise InvalidArgumentError(f"expected {len(ys)} grad_ys, one per y, got {len(given)}")
    out = []
    for i, (y, g) in enumerate(zip(ys, given, strict=True)):
        if g is None:
            out.append(ones_like(y, name=f"grad_ys_{i}"))
            continue
        g = convert_to_tensor(g, y.dtype, name=f"grad_ys_{i}")
        if not compatible(g.spec.shape, y.spec.shape):
            raise InvalidArgumentError(
                f"grad_ys[{i}] must have its y's shape {text(y.spec.shape)}, "
                f"got {text(g.spec.shape)}"
            )
        out.append(g)
    return out


def _zeros(x: Tensor) -> Tensor:
    if x.spec.variable is not None:
        return zeros(x.spec.variable.shape, x.spec.variable.dtype)
    return zeros_like(x)


class _Sweep:
    """One backward pass: pending cotangents per tensor, operations in a heap by descending id."""

    def __init__(
        self, xs: Sequence[Tensor], ys: Sequence[Tensor], stopped: set[Tensor], colocate: bool
    ) -> None:
        self._between, self._reached = _between(xs, ys, stopped)
        self._stopped = stopped
        self._colocate = colocate
        self._pending: dict[Tensor, list[Tensor]] = {}
        self._heap: list[tuple[int, Operation]] = []
        self._queued: set[Operation] = set()

    def seed(self, ys: Sequence[Tensor], cotangents: Sequence[Tensor]) -> None:
        for y, g in zip(ys, cotangents, strict=True):
            if y.spec.dtype.is_differentiable:
                self._send(y, g)

    def _send(self, tensor: Tensor, cotangent: Tensor) -> None:
        self._pending.setdefault(tensor, []).append(cotangent)
        op = tensor.op
        if op in self._between and op not in self._queued and tensor not in self._stopped:
            self._queued.add(op)
            heapq.heappush(self._heap, (-op.id, op))

    def total(self, tensor: Tensor) -> Tensor | None:
        """Returns the sum of what arrived, as one tensor; None where nothing did."""
        arrived = self._pending.get(tensor)
        if not arrived:
            return None
        if len(arrived) > 1:
            self._pending[tensor] = arrived = [add_n(arrived)]
        return arrived[0]

    def run(self) -> None:
        while self._heap:
            _, op = heapq.heappop(self._heap)
            gs = tuple([None if t in self._stopped else self.total(t) for t in op.outputs])
            if any(g is not None for g in gs):
                self._through(op, gs)

    def _through(self, op: Operation, gs: tuple[Tensor | None, ...]) -> None:
        graph = op.graph
        with graph.name_scope(op.name + "_grad"):
            results = self._grad(op, gs)
        for t, g in zip(op.inputs, results, strict=True):
            if g is not None and (t.spec.dtype.is_differentiable or t.spec.dtype is resource):
                self._send(t, g)

    def _grad(self, op: Operation, gs: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        several = len(op.outputs) != 1
        arguments = (gs, op.outputs) if several else (gs[0], op.outputs[0])
        try:
            with self._as_variables(op):
                if self._colocate and op.device:
                    with op.graph.device(op.device):
                        results = op.definition.grad(*arguments, *op.inputs)
                else:
                    results = op.definition.grad(*arguments, *op.inputs)
        except OpError as e:
            raise e.located(op=op.name, op_type=op.type, **where(op)) from None
        if len(results) != len(op.inputs):
            raise InvalidArgumentError(
                f"the gradient of {op.type} gave {len(results)} cotangents, "
                f"it has {len(op.inputs)} inputs"
            ).located(op=op.name, op_type=op.type, **where(op))
        return results

    @contextmanager
    def _as_variables(self, op: Operation) -> Iterator[None]:
        """Hides the values of constants on the way to an x: an op gives constants no gradient."""
        specs = [(t, t.spec) for t in op.inputs if t.spec.constant is not None]
        specs = [(t, spec) for t, spec in specs if t in self._reached]
        for t, spec in specs:
            t.spec = spec.like()
        try:
            yield
        finally:
            for t, spec in specs:
                t.spec = spec


def _between(
    xs: Sequence[Tensor], ys: Sequence[Tensor], stopped: set[Tensor]
) -> tuple[set[Operation], set[Tensor]]:
    """Returns the operations through which a path leads from an x to a y, and x's and its tensors.

    A path may begin at a stopped x, but none leads through a stopped tensor.
    """
    ancestors = _ancestors(ys)
    reached: set[Tensor] = set(xs)
    between: set[Operation] = set()
    for op in sorted(ancestors, key=lambda o: o.id):
        outputs = [t for t in op.outputs if t.spec.dtype.is_differentiable]
        if not outputs or not op.definition.is_differentiable:
            continue
        if any(t in reached for t in op.inputs):
            between.add(op)
            reached.update(t for t in outputs if t not in stopped)
    return between, reached


def _ancestors(ys: Sequence[Tensor]) -> set[Operation]:
    found = {y.op for y in ys}
    stack = list(found)
    while stack:
        for t in stack.pop().inputs:
            if t.op not in found:
                found.add(t.op)
                stack.append(t.op)
    return found


__all__ = ["AggregationMethod", "UnconnectedGradients", "gradients"]
