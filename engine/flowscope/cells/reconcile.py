"""A cell that is run in one graph: operations of the run before become those of this one.

When a cell is run again, its names are given back first, so the same code asks for the same names.
An operation that gets the name of an earlier one *becomes* it: the earlier object takes over
definition, inputs and all else, so that whoever holds it or its tensors - other cells, variables,
consumers - holds the new one.

Bodies of loops, branches and functions become nothing: they are built beside the earlier ones, and
when they are whole they are dropped if the earlier ones are the same, or else take their place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flowscope.cells.bindings import bindings
from flowscope.cells.bodies import (
    Likeness,
    blocks_of,
    compared,
    functions_of,
    same_definition,
)
from flowscope.cells.build_state import (
    FUNCTIONS,
    MISSING,
    GraphTables,
    operation_of,
    rewind,
    tables,
    take_out,
)
from flowscope.cells.cell import Cell, CellReport
from flowscope.cells.lookup import cells_of
from flowscope.cells.savepoint import Savepoint
from flowscope.cells.spec_match import same_spec
from flowscope.cells.stale import Stale
from flowscope.cells.user_functions import Held, held_by
from flowscope.errors import GraphError
from flowscope.graph.op import Op, Spec
from flowscope.graph.operation import Operation, Tensor, where
from flowscope.graph.values.dtypes import resource
from flowscope.graph.values.shapes import compatible

if TYPE_CHECKING:
    from flowscope.graph.block import Block
    from flowscope.graph.graph import Graph

#: What an operation takes over from the one that gets its name.
_TAKEN = (
    "definition",
    "inputs",
    "control_inputs",
    "device",
    "origin",
    "colocation",
    "passed_over",
    "forward",
    "gradient",
    "order",
    "stale",
)
#: Those of them that make a difference to plans and views.
_TELLING = ("device", "colocation", "passed_over", "forward", "gradient", "stale")


class Making:
    """A cell that is being run.

    Args:
        graph: The graph.
        cell: The cell; it has operations already if this is a re-run.
        names: Returns the user's variables by name.

    Attributes:
        is_again: Whether the cell has been run before.
        reads: Tensors of other cells whose static values were read.
        renewed_gradients: Names under which it has registered other gradients than there were.
        report: What happened, once it has ended.
    """

    def __init__(
        self, graph: Graph, cell: Cell, names: Callable[[], Mapping[str, Any]] = dict
    ) -> None:
        self._graph = graph
        self.cell = cell
        self.report: CellReport | None = None
        self._before = Savepoint(graph, cells_of(graph).known)
        cells_of(graph).known = self._before.operations
        self._places = take_out(graph, cell.entries)
        rewind(graph, cell.changes)
        self._start = GraphTables(graph)
        self._derived = len(cells_of(graph).derivations)
        #: Earlier operations that have no successor yet, by name, and earlier functions.
        self._unmade = {op.name: op for op in cell.operations}
        self._functions = {
            c.key: c.after for c in cell.changes if c.table == FUNCTIONS and c.after is not MISSING
        }
        #: Blocks of earlier functions that are those of this run too.
        self._settled: set[Block] = set()
        #: What stands for things of functions that were dropped for them.
        self._likenesses: list[Likeness] = []
        self._made: list[Operation] = []
        self._hide(cell.operations)
        self._fresh: dict[str, Operation] = {}
        self._replaced: dict[str, Operation] = {}
        #: By what they were replaced: earlier operations' states.
        self._ended: dict[Operation, Stale | None] = {}
        self._changed: set[Operation] = set()
        #: What the operations that were taken over had been.
        self._taken: dict[Operation, dict[str, Any]] = {}
        self._first_edit = graph.edits
        self._edits_before = graph.edit_marks()
        self._specs: dict[Tensor, Spec] = {}
        self._just_kept: set[Operation] = set()
        self._kept: dict[Operation, int] = {}
        self._undo: list[Callable[[], None]] = []
        self.is_again = cell.has_content
        self.reads: dict[Tensor, int] = {}
        self.renewed_gradients: set[str] = set()
        self._names = names
        mine = set(cell.operations)
        bound = bindings(names()) if mine else {}
        self._bound = {path: t for path, t in bound.items() if t.op in mine}

    def _hide(self, operations: Sequence[Operation]) -> None:
        hidden = set(operations)
        lists = (self._graph._operations, self._graph.root.operations)
        for listed in lists if hidden else ():
            listed[:] = [op for op in listed if op not in hidden]

    @property
    def made_operations(self) -> list[Operation]:
        """What it has made or kept so far."""
        return [*self._made, *self._kept]

    def _show(self, op: Operation) -> None:
        """Lists an earlier operation again, behind those made so far."""
        self._graph._operations.append(op)
        if op.block is self._graph.root:
            op.block.operations.append(op)

    @property
    def has_built(self) -> bool:
        """Whether it has made an operation so far."""
        return bool(self._made)

    def on_undo(self, undo: Callable[[], None]) -> None:
        """Calls a function if the run is taken back."""
        self._undo.append(undo)

    # -- while it runs --------------------------------------------------------------------------

    def is_unmade(self, op: Operation) -> bool:
        """Whether it stems from the run before and has no successor yet."""
        return self._unmade.get(op.name) is op

    def uses(self, definition: Op, operations: Iterable[Operation]) -> None:
        """Takes note that an operation is about to be made from others.

        What the cell made in its run before and uses now without making it anew - a layer that
        keeps its variables, say - stays.
        """
        if not self._unmade:
            return
        self._just_kept = set()
        self._keep(operations)
        self._keep(self._bodies(definition))

    def keep(self, op: Operation) -> None:
        """Lets an earlier operation stay, with what belongs to it and what it is made from."""
        self._keep([op])

    def _keep(self, operations: Iterable[Operation]) -> None:
        found: list[Operation] = []
        stack = [op for op in operations if self.is_unmade(op)]
        while stack:
            op = stack.pop()
            if self._unmade.pop(op.name, None) is None:
                continue
            found.append(op)
            bodies = self._bodies(op.definition)
            before = [*(t.op for t in op.inputs), *op.control_inputs, *bodies]
            stack += [o for o in before if self.is_unmade(o)]
        self._just_kept.update(found)
        companions = [o for op in found for o in cells_of(self._graph).companions(op)]
        for op in sorted(found, key=lambda o: o.order):
            self._stay(op)
        if companions:
            just = self._just_kept
            self._keep(companions)
            self._just_kept = just

    def _bodies(self, definition: Op) -> list[Operation]:
        """Returns the operations that an op runs, but for what gradients may yet add again."""
        blocks = [block for block in blocks_of(definition) if block not in self._settled]
        return [op for block in blocks for op in block.operations]

    def _stay(self, op: Operation) -> None:
        graph = self._graph
        graph._names.setdefault(op.name.lower(), 1)
        order, op.order = op.order, graph._next_order
        graph._next_order += 1
        if op.definition.writes_state:
            graph._writes.update(dict.fromkeys(op.inputs, op.order))
        self._kept[op] = order
        self._show(op)
        for change in self.cell.changes:
            if operation_of(change.after) is op:
                _restore(graph, change.table, change.key, change.after)
        for key, entries in self.cell.entries.items():
            for entry in entries:
                if operation_of(entry) is op:
                    self.collect(key, entry)

    def collect(self, key: Any, entry: Any) -> None:
        """Adds an entry to a collection, where those of the run before stood."""
        entries = self._graph._collections.setdefault(key, [])
        place = self._places.get(key)
        if place is None:
            entries.append(entry)
        else:
            entries.insert(min(place, len(entries)), entry)
            self._places[key] = place + 1

    def made(self, op: Operation, wished: str) -> Operation | None:
        """Takes note of a new operation; returns the earlier one that has become it, if any.

        Raises:
            GraphError: if it builds on the earlier operation of its own name.
        """
        self._check_loop(op, wished)
        old = self._unmade.pop(op.name, None)
        if old is None or not self._fits(old, op):
            self._fresh[op.name] = op
            self._made.append(op)
            if old is not None:
                self._replace(old, op)
            return None
        self._become(old, op)
        self._made.append(old)
        self._show(old)
        return old

    def _check_loop(self, op: Operation, wished: str) -> None:
        just, self._just_kept = self._just_kept, set()
        for old in just:
            if old.type == op.type and re.fullmatch(f"{re.escape(wished)}(_[0-9]+)?", old.name):
                raise GraphError(
                    f'this would build "{old.name}" on itself: an input was made by the run of '
                    f"{self.cell} before this one; re-run the cell that makes what it is built "
                    "from, or give the result another name in Python"
                ).located(op=old.name, op_type=op.type, **where(op))

    def _fits(self, old: Operation, new: Operation) -> bool:
        if old.block is not new.block:
            return False
        if len(old.outputs) != len(new.outputs) and not self._has_same_results(old, new):
            return False
        known = [cells_of(self._graph).reshaped.get(t, t.spec) for t in old.outputs]
        return all(_rebinds(a, t.spec) for a, t in zip(known, new.outputs, strict=False))

    def _has_same_results(self, old: Operation, new: Operation) -> bool:
        """Whether only what gradients read of their functions tells their outputs apart."""
        counts = [[len(f.results) for f in functions_of(op.definition)] for op in (old, new)]
        return bool(counts[0]) and counts[0] == counts[1]

    def _replace(self, old: Operation, new: Operation) -> None:
        self._replaced[old.name] = old
        self._ended[new] = old.stale
        was = ", ".join(str(t.spec.variable or t.spec) for t in old.outputs)
        now = ", ".join(str(t.spec.variable or t.spec) for t in new.outputs)
        cause = f"{self.cell} now makes as {now}, not {was}"
        if was == now:
            cause = f"{self.cell} has made anew"
        old.stale = Stale("gone", cause)
        self._graph.edited(old)
        if is_variable(old) or is_variable(new):
            cells_of(self._graph).restarts[old.name] = new.definition

    def _become(self, old: Operation, new: Operation) -> None:
        graph = self._graph
        fields = {name: getattr(old, name) for name in (*_TAKEN, "outputs")}
        self._taken[old] = fields
        graph.edited(old)
        specs = [(t, t.spec) for t in old.outputs]
        for t in old.outputs:
            cells_of(graph).reshaped.pop(t, None)
        self._renew_function(old, new)
        if not same_definition(old.definition, new.definition):
            added = [Tensor(old, t.value_index, t.spec) for t in new.outputs[len(old.outputs) :]]
            old.outputs = [*old.outputs[: len(new.outputs)], *added]
        for name in _TAKEN:
            setattr(old, name, getattr(new, name))
        for (t, before), made in zip(specs, new.outputs, strict=False):
            self._specs[t] = before
            t.spec = made.spec

    def _renew_function(self, old: Operation, new: Operation) -> None:
        """Lets an op whose function of the user's does the same be the earlier one, and call it."""
        mine, earlier = held_by(new.definition), held_by(old.definition)
        found = compared(new.definition, old.definition)
        if mine and earlier and found is not None and found.is_same:
            self._take(earlier, mine)
            new.definition = old.definition

    def _take(self, earlier: Held, later: Held) -> None:
        self._undo.append(earlier.giving_back())
        earlier.take(later)

    def take_back(self, operations: Iterable[Operation]) -> None:
        """Drops operations of bodies that it has made, as if it had not."""
        graph, gone, ended = self._graph, set(operations), []
        for op in gone:
            old = self._replaced.pop(op.name, None)
            del self._fresh[op.name]
            op.stale = Stale("gone", f"{self.cell} has made for a try")
            if old is None:
                graph._by_name.pop(op.name, None)
                continue
            old.stale = self._ended.pop(op)
            ended.append(old)
            graph._by_name[old.name] = self._unmade[old.name] = old
        graph.forget_edits(ended, self._edits_before)
        first = min((op.order for op in gone), default=0)
        for listed in (self._made, graph._operations):
            start = _first_from(listed, first)
            listed[start:] = [op for op in listed[start:] if op not in gone]

    def settle(self, functions: Sequence[Any]) -> Likeness | None:
        """Takes note of functions that are whole: an operation that owns them is about to be made.

        Where the cell's run before had the same ones, these stay, and the new ones are dropped.

        Args:
            functions: All functions of the operation, outside of all other blocks.

        Returns:
            What stands for the new functions and all in them; None if they stay.
        """
        roots = [f.block for f in functions]
        first = min((op.order for b in roots for op in b.operations[:1]), default=None)
        late = [] if first is None else self._made[_first_from(self._made, first) :]
        inside = {op for op in late if any(b.encloses(op.block) for b in roots)}
        for block in (*roots, *[op.block for op in inside]):
            block.built = len(block.operations)
        likeness = Likeness(roots, self._replaced)
        is_same = all(
            (old := self._functions.get(f.name)) is not None and likeness.function(f, old)
            for f in functions
        )
        if not is_same or inside != set(likeness.operations):
            return None
        self._exchange(likeness)
        return likeness

    def _exchange(self, likeness: Likeness) -> None:
        """Puts what was there in the place of what is the same."""
        graph, pairs = self._graph, likeness.operations
        first = min((op.order for op in pairs), default=graph._next_order)
        lists = [(listed, _first_from(listed, first)) for listed in (self._made, graph._operations)]
        late = [(listed, start, listed[start:]) for listed, start in lists]
        self.take_back(pairs)
        for listed, start, before in late:
            listed[start:] = [pairs.get(op, op) for op in before]
        for new, old in pairs.items():
            old.order, old.origin, old.stale = new.order, new.origin, None
            del self._unmade[old.name]
            for t in new.outputs:
                cells_of(graph).reshaped.pop(t, None)
        for later, earlier in likeness.held:
            self._take(earlier, later)
        for old in likeness.functions.values():
            self._settled.add(old.block)
            graph.functions[old.name] = old
        self._likenesses.append(likeness)

    def has_changed(self, op: Operation) -> bool:
        """Whether an operation is another one than before the run.

        Builders may still add to what they have just made, so the answer is final at the end only.
        """
        before = self._taken.get(op)
        if before is None:
            return True
        return not (
            same_definition(before["definition"], op.definition)
            and _are_same(before["inputs"], op.inputs)
            and _are_same(before["control_inputs"], op.control_inputs)
            and all(before[name] == getattr(op, name) for name in _TELLING)
        )

    def is_edited(self, op: Operation) -> bool:
        """Whether plans with an operation are stale: it has changed, or what is known around it."""
        specs = self._specs
        return self.has_changed(op) or any(
            t in specs and not same_spec(specs[t], t.spec) for t in (*op.inputs, *op.outputs)
        )

    def follow(self, earlier: Any, later: Any) -> None:
        """Makes two objects that stand for one operation share all they have, from now on."""
        shared = vars(earlier)
        before = dict(shared)
        self._undo.append(lambda: (shared.clear(), shared.update(before))[0])
        shared.clear()
        shared.update(vars(later))
        later.__dict__ = shared


def _restore(graph: Graph, table: str, key: Any, value: Any) -> None:
    found = tables(graph).get(table)
    if found is not None:
        found.setdefault(key, value)


def _first_from(operations: Sequence[Operation], order: int) -> int:
    """Returns the position of the first of the last operations that have this order or more."""
    at = len(operations)
    while at and operations[at - 1].order >= order:
        at -= 1
    return at


def _rebinds(old: Spec, new: Spec) -> bool:
    """Whether a tensor can become another: same dtype, compatible shape; variables exactly."""
    if old.dtype is not new.dtype or (old.variable is None) != (new.variable is None):
        return False
    if old.variable is not None and new.variable is not None:
        return same_spec(old.variable, new.variable)
    return compatible(old.shape, new.shape)


def is_variable(op: Operation) -> bool:
    """Whether an operation makes the handle of a variable; in bodies a parameter stands for it."""
    specs = [t.spec for t in op.outputs[:1]] if op.block.parent is None else []
    return any(s.dtype is resource and s.variable is not None for s in specs)


def _are_same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


__all__ = ["Making", "is_variable"]
