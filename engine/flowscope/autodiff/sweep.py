"""One backward pass: from cotangents of ys to cotangents of xs.

Operations between xs and ys are visited from the last to the first; each op's gradient turns the
cotangents of its outputs into cotangents of its inputs, and what several consumers send is summed.
Program order puts dependencies first, so a heap by place is all the bookkeeping there is.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import GeneratorType, MappingProxyType
from typing import Any

from flowscope.autodiff.aggregation import Cotangent, summed, sums_early
from flowscope.autodiff.raw_loops import lifted
from flowscope.autodiff.registry import function_of, is_differentiable, is_unregistered
from flowscope.control.trampoline import Work
from flowscope.errors import InvalidArgumentError, OpError, UnsupportedGradientError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.indexed_slices import IndexedSlices, convert_to_tensor_or_indexed_slices
from flowscope.graph.op import Spec
from flowscope.graph.operation import Operation, Tensor, forward_facts, where
from flowscope.graph.order import in_order
from flowscope.graph.values.dtypes import resource
from flowscope.graph.values.shapes import as_dims, compatible, text
from flowscope.ops.array.arrays import zeros_like
from flowscope.ops.core.flow import tuple as gated_tuple

#: A cotangent per input or output; None where nothing flows.
Cotangents = Sequence[Cotangent | None]


class Sweep:
    """Pending cotangents per tensor, operations in a heap, the last ones first.

    Args:
        xs, ys: Where it ends and begins.
        stopped: Tensors through which nothing flows.
        colocate: Whether a gradient shares its operation's device.
        gate: Whether an operation's cotangents wait for each other.
    """

    def __init__(
        self,
        xs: Sequence[Tensor],
        ys: Sequence[Tensor],
        stopped: set[Tensor],
        colocate: bool,
        gate: bool,
    ) -> None:
        #: What stands for results of loops and branches made by hand.
        self._same = lifted(ys)
        between, self._reached = _between(xs, ys, stopped, self._same)
        self._place = {op: i for i, op in enumerate(between)}
        self._stopped = stopped
        self._colocate = colocate
        self._gate = gate
        self._pending: dict[Tensor, list[Cotangent]] = {}
        self._heap: list[tuple[int, Operation]] = []
        self._queued: set[Operation] = set()

    def send(self, tensor: Tensor, cotangent: Cotangent) -> None:
        """Adds to a tensor's cotangent; its operation will be visited."""
        tensor = self._same.get(tensor, tensor)
        op = tensor.op
        arrived = self._pending.setdefault(tensor, [])
        if arrived and sums_early(cotangent) and isinstance(arrived[-1], Tensor):
            with self.beside(op):
                arrived[-1] = summed([arrived[-1], cotangent])
        else:
            arrived.append(cotangent)
        if op in self._place and op not in self._queued and tensor not in self._stopped:
            self._queued.add(op)
            heapq.heappush(self._heap, (-self._place[op], op))

    def total(self, tensor: Tensor) -> Cotangent | None:
        """Returns the sum of what arrived, as one; None where nothing did."""
        arrived = self._pending.get(self._same.get(tensor, tensor))
        if not arrived:
            return None
        if len(arrived) > 1:
            with self.beside(tensor.op):
                self._pending[tensor] = arrived = [summed(arrived)]
        return arrived[0]

    def beside(self, op: Operation) -> AbstractContextManager[None]:
        """Returns the scope that colocates what is made for an operation, if it shall be."""
        return beside(op, self._colocate)

    def run(self) -> Work[None]:
        """Visits operations until nothing is left to send."""
        while self._heap:
            _, op = heapq.heappop(self._heap)
            gs = tuple([None if t in self._stopped else self.total(t) for t in op.outputs])
            if any(g is not None for g in gs):
                yield from self._through(op, gs)

    def _through(self, op: Operation, gs: Cotangents) -> Work[None]:
        with op.graph.gradient_of(op, op.name + "_grad"), self.beside(op):
            try:
                results = yield from self._cotangents(op, gs)
            except OpError as e:
                raise _located(e, op) from None
            if self._gate and sum(g is not None for g in results) > 1:
                results = gated_tuple(results)
        for t, g in zip(op.inputs, results, strict=True):
            if g is not None and (t.spec.dtype.is_differentiable or t.spec.dtype is resource):
                self.send(t, g)

    def _cotangents(self, op: Operation, gs: Cotangents) -> Work[Cotangents]:
        function = function_of(op)
        if function is not None:
            return _checked(op, _converted(op, function(op, *_filled(op, gs))))
        if not op.definition.passes_slices:
            gs = tuple([convert_to_tensor(g) if isinstance(g, IndexedSlices) else g for g in gs])
        ends = (gs, tuple(op.outputs)) if len(op.outputs) != 1 else (gs[0], op.outputs[0])
        known = [t for t in op.inputs if t.spec.constant is not None and t in self._reached]
        with _as_variables(known) if known else nullcontext():
            found: Any = op.definition.grad(*ends, *op.inputs)
            if isinstance(found, GeneratorType):  # of an op with blocks
                found = yield from found
        return _checked(op, found)


@contextmanager
def _as_variables(constants: Sequence[Tensor]) -> Iterator[None]:
    """Hides the values of constants on the way to an x: an op gives constants no gradient."""
    specs = [t.spec for t in constants]
    for t in constants:
        t.spec = t.spec.like()
    try:
        yield
    finally:
        for t, spec in zip(constants, specs, strict=True):
            t.spec = spec


def beside(op: Operation, colocate: bool) -> AbstractContextManager[None]:
    """Returns the scope that colocates what is made for an operation, if it shall be."""
    return op.graph.colocate_with(op, True) if colocate else nullcontext()


def _located(error: OpError, op: Operation) -> OpError:
    """Returns the error with the operation, or with the fact that its gradient failed."""
    if error.is_located:
        return error.located(**forward_facts(op))
    return error.located(op=op, op_type=op.type, **where(op))


def _filled(op: Operation, gs: Cotangents) -> Cotangents:
    """Returns the cotangents with zeros for outputs that have no influence."""
    return [
        zeros_like(t) if g is None and t.spec.dtype.is_differentiable else g
        for t, g in zip(op.outputs, gs, strict=True)
    ]


def _converted(op: Operation, results: Any) -> Cotangents:
    """The cotangents that a user's function gave: it may give numbers, or one alone."""
    results = list(results) if isinstance(results, list | tuple) else [results]
    _check_number(op, results)
    return [
        None if g is None else convert_to_tensor_or_indexed_slices(g, _value_spec(t).dtype)
        for t, g in zip(op.inputs, results, strict=True)
    ]


def _value_spec(t: Tensor) -> Spec:
    is_handle = t.spec.dtype is resource and t.spec.variable is not None
    return t.spec.variable or t.spec if is_handle else t.spec


def _check_number(op: Operation, results: Sequence[Any]) -> None:
    if len(results) != len(op.inputs):
        raise InvalidArgumentError(
            f"the gradient of {op.type} gave {len(results)} cotangents, "
            f"it has {len(op.inputs)} inputs"
        )


def _checked(op: Operation, results: Cotangents) -> Cotangents:
    """Returns cotangents that fit the inputs."""
    _check_number(op, results)
    for i, (t, g) in enumerate(zip(op.inputs, results, strict=True)):
        if g is None or (g.__class__ is Tensor and g.spec.shape == t.spec.shape):
            continue
        spec = _value_spec(t)
        dims = g.spec.shape if isinstance(g, Tensor) else as_dims(g.shape)
        if not compatible(dims, spec.shape):
            raise InvalidArgumentError(
                f"the gradient of {op.type} gave a cotangent of shape {text(dims)} "
                f"for input {i}, whose shape is {text(spec.shape)}"
            )
    return results


def _between(
    xs: Sequence[Tensor], ys: Sequence[Tensor], stopped: set[Tensor], same: Mapping[Tensor, Tensor]
) -> tuple[list[Operation], set[Tensor]]:
    """Returns the operations on paths from an x to a y, in order, and x's and its tensors.

    A path may begin at a stopped x, but none leads through a stopped tensor.
    """
    reached: set[Tensor] = {same.get(x, x) for x in xs}
    between: list[Operation] = []
    for op in in_order(ancestors(ys, same=same)):
        outputs = [t for t in op.outputs if t.spec.dtype.is_differentiable]
        if not outputs or not is_differentiable(op):
            continue
        if any(same.get(t, t) in reached for t in op.inputs):
            between.append(op)
            reached.update(t for t in outputs if t not in stopped)
    return between, reached


def check_registered(ys: Sequence[Tensor], xs: Sequence[Tensor], stopped: set[Tensor]) -> None:
    """Checks that the gradients of ys can be asked for.

    Raises:
        UnsupportedGradientError: if the operation of one follows from an x, and there is neither a
            gradient for its type nor a word that it has none.
    """
    for op in dict.fromkeys([y.op for y in ys if y not in stopped]):
        if not is_unregistered(op):
            continue
        reached = _between(xs, op.inputs, stopped, {})[1]
        if any(t in reached for t in op.inputs):
            raise UnsupportedGradientError(
                f"no gradient is defined for {op.type}: fs.stop_gradient says that nothing shall "
                f'flow, @fs.RegisterGradient("{op.type}") defines one'
            ).located(op=op.name, op_type=op.type, **where(op))


def ancestors(
    ys: Sequence[Tensor],
    enter: Callable[[Operation], bool] = lambda op: True,
    same: Mapping[Tensor, Tensor] = MappingProxyType({}),
) -> set[Operation]:
    """Returns the operations that ys follow from, not looking behind those that are not entered.

    Args:
        ys: Where it begins.
        enter: Whether to look behind an operation.
        same: Tensors in the place of others.
    """
    found = {op for y in ys if enter(op := same.get(y, y).op)}
    stack = list(found)
    while stack:
        for t in stack.pop().inputs:
            op = same.get(t, t).op
            if op not in found and enter(op):
                found.add(op)
                stack.append(op)
    return found


__all__ = ["Cotangents", "Sweep", "ancestors", "beside", "check_registered"]
