"""Which operations a re-run has made stale, and what is said to someone who uses one.

An operation is stale because of what happened to it (its input is gone or lost what was known of
it, what it is the gradient of has changed), or because something that it takes is stale. It is
fresh again once its own cell is run again, or once all that it takes is fresh.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flowscope.cells.bodies import functions_of
from flowscope.cells.cell import Cell, named
from flowscope.cells.lookup import cells_of
from flowscope.cells.spec_match import implies, same_spec
from flowscope.errors import OpError, StaleError
from flowscope.graph.op import Spec
from flowscope.graph.operation import Operation, Tensor, where
from flowscope.graph.origins.observer import Stale
from flowscope.graph.values.shapes import compatible, merge_dims

if TYPE_CHECKING:
    from flowscope.graph.graph import Graph


@dataclass(eq=False)
class Derivation:
    """Operations that were made by looking at others: a gradient, and what it differentiates."""

    #: The first place in program order of what was made, and the first one behind it.
    start: int
    stop: int
    sources: frozenset[Operation]

    def covers(self, op: Operation) -> bool:
        """Whether an operation was made so, and not only put into a body to hand on what is there.

        What a gradient reads of a body follows from the body alone.
        """
        first = op if op.block.parent is None else op.block.operations[0]
        return self.start <= op.order < self.stop and self.start <= first.order < self.stop


class Spread:
    """Carries what a run has changed on to all operations of the graph that it concerns.

    Args:
        graph: The graph.
        cell: The cell that was run.
        made: What the run has made: it is fresh.
        changed: Operations that were there and are others now, or are gone.
        specs: What was known of tensors before, where that has changed.
        moved: Tensors for which a name of the user's does not stand any more.
    """

    def __init__(
        self,
        graph: Graph,
        cell: Cell,
        made: set[Operation],
        changed: set[Operation],
        specs: dict[Tensor, Spec],
        moved: dict[Tensor, str],
    ) -> None:
        self._graph = graph
        self._cell = cell
        self._made = made
        self._changed = changed
        self._specs = specs
        self._moved = moved
        #: Operations that have become stale or fresh.
        self.turned: list[Operation] = []
        self._inferred_anew: set[Operation] = set()

    def run(self) -> None:
        """Marks operations as stale or fresh, and infers anew what follows from the changes."""
        if not self._touched():
            return
        standing = [op for op in self._graph.get_operations() if op not in self._made]
        self._derivations(standing)
        self._readers(standing)
        turned = -1
        while turned < len(self.turned):  # once more where a cell takes what a later one made
            turned = len(self.turned)
            for op in standing:
                self._turn(op)

    def _set(self, op: Operation, stale: Stale | None) -> None:
        op.stale = stale
        self.turned.append(op)
        self._graph.edited(op)

    def _derivations(self, standing: list[Operation]) -> None:
        known = [d for d in cells_of(self._graph).derivations if d.sources & self._touched()]
        for op in standing:
            found = next((d for d in known if d.covers(op)), None)
            if found is not None and _can_turn(op):
                source = min(found.sources & self._touched(), key=lambda o: o.order)
                self._set(op, self._own(f'is a gradient through "{source.name}"'))

    def _touched(self) -> set[Operation]:
        return self._changed | {t.op for t in (*self._specs, *self._moved)}

    def _readers(self, standing: list[Operation]) -> None:
        """Finds operations that were built by code that has read a value which is another now."""
        for cell in cells_of(self._graph):
            lost = [t for t in cell.reads if t.op in self._touched()]
            for op in standing if lost and cell is not self._cell else ():
                read = next((t for t in lost if cell.reads[t] <= op.order), None)
                if read is not None and cells_of(self._graph).of(op) is cell and _can_turn(op):
                    self._set(op, self._own(f'was built with the value of "{read.name}"'))

    def _own(self, what: str) -> Stale:
        return Stale("own", f"{what}, which {self._cell} has changed")

    def _turn(self, op: Operation) -> None:
        """Brings one operation up to date."""
        now = op.stale
        if now is not None and now.kind != "inherited":
            return
        cause = self._cause(op)
        inherits = any(p.stale is not None for p in _before(op))
        if cause:
            self._set(op, Stale("own", cause))
        elif inherits != (now is not None):
            self._set(op, Stale("inherited") if inherits else None)

    def _cause(self, op: Operation) -> str:
        """The change of the operation itself, "" for none."""
        for t in op.inputs:
            if t.op.stale is not None and t.op.stale.kind == "gone":
                return f'takes "{t.name}", which {t.op.stale.cause}'
            if t not in t.op.outputs:
                return f'takes "{t.name}", which {self._cell} does not make any more'
        for c in op.control_inputs:
            if c.stale is not None and c.stale.kind == "gone":
                return f'waits for "{c.name}", which {c.stale.cause}'
        for t in op.inputs if self._moved else ():
            if t in self._moved:
                return f'takes "{t.name}", which is not the value of {self._moved[t]} any more'
        if not self._specs:
            return ""
        if op.definition.is_parameter:
            return self._captured(op.outputs[0])
        renewed = [t for t in op.inputs if t in self._specs]
        for t in renewed:
            if not implies(t.spec.shape, self._specs[t].shape):
                return _less_known(t, self._specs[t])
        return self._inferred(op) if renewed else ""

    def _captured(self, parameter: Tensor) -> str:
        """Lets what stands in a body for a tensor outside follow what is known of that."""
        outer = dict(parameter.op.block.captured()).get(parameter)
        if outer not in self._specs:
            return ""
        if not implies(outer.spec.shape, parameter.spec.shape):
            return _less_known(outer, self._specs[outer])
        self._renew(parameter, outer.spec)
        return ""

    def _inferred(self, op: Operation) -> str:
        if op not in self._inferred_anew:
            self._inferred_anew.add(op)
            self._graph.edited(op)  # what is known of its inputs is part of its plans
        try:
            specs = op.definition.infer(*[t.spec for t in op.inputs])
        except OpError as e:
            return f"does not fit its inputs any more: {e.message}"
        every = specs if isinstance(specs, tuple) else (specs,)
        for t, spec in zip(op.outputs, every, strict=False):
            base = cells_of(self._graph).reshaped.get(t, t.spec)
            if spec.dtype is not t.spec.dtype or not implies(spec.shape, base.shape):
                return f"is {spec} with its new inputs, it was {base}"
            self._renew(t, spec)
        return ""

    def _renew(self, t: Tensor, spec: Spec) -> None:
        if not compatible(spec.shape, t.spec.shape):
            return
        dims = merge_dims(spec.shape, t.spec.shape)
        new = Spec(spec.dtype, dims, spec.constant, spec.dims, spec.variable)
        if not same_spec(new, t.spec) and t not in self._specs:
            self._specs[t] = t.spec
            t.spec = new


def _can_turn(op: Operation) -> bool:
    return op.stale is None or op.stale.kind == "inherited"


def _less_known(t: Tensor, before: Spec) -> str:
    return f'takes "{t.name}", of which less is known: {t.spec}, it was {before}'


def _before(op: Operation) -> Iterable[Operation]:
    results = (t.op for f in functions_of(op.definition) for t in f.results)
    return (*(t.op for t in op.inputs), *op.control_inputs, *results)


def refusal(graph: Graph, op: Operation, name: str) -> StaleError:
    """Returns the error for using an operation (or its tensor, `name`) that is stale."""
    assert op.stale is not None
    if op.stale.kind == "gone":
        message = (
            f'"{name}" cannot be used: it is something that {op.stale.cause}; {_instead(graph, op)}'
        )
    else:
        upstream = _stale_before(op)
        owner = min((o for o in upstream if o.stale and o.stale.kind == "own"), key=_order)
        what = "" if owner is op else f'follows from "{owner.name}", which '
        cause = owner.stale.cause if owner.stale else ""
        message = f'"{name}" is stale: it {what}{cause}; {_again(labels(graph, upstream))}'
    return StaleError(message).located(op=op, **where(op))


def labels(graph: Graph, operations: Iterable[Operation]) -> tuple[str | None, ...]:
    """Returns the labels of the operations' cells, in order; None for those of no cell."""
    cells = {cells_of(graph).of(op) for op in operations}
    known = sorted((c for c in cells if c is not None), key=lambda c: c.position)
    return (*[c.label for c in known], *[None] * (None in cells))


def _again(found: tuple[str | None, ...]) -> str:
    return f"re-run {named(found)}"


def _order(op: Operation) -> int:
    return op.order


def _instead(graph: Graph, op: Operation) -> str:
    """A hint about a tensor that is gone: those who take it must take the new one."""
    holders = [o for o in graph.get_operations() if any(p is op for p in _before(o))]
    if holders:
        return _again(labels(graph, holders))
    return f'take the new "{op.name}"' if op.name in graph._by_name else "nothing is in its place"


def _stale_before(op: Operation) -> set[Operation]:
    """Returns the operation and all stale ones that it follows from and the graph still has."""
    found, stack = {op}, [op]
    while stack:
        for p in _before(stack.pop()):
            if p.stale is not None and p.stale.kind != "gone" and p not in found:
                found.add(p)
                stack.append(p)
    return found


__all__ = ["Derivation", "Spread", "Stale", "labels", "refusal"]
