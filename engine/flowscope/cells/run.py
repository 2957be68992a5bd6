"""One run of a cell in one graph: what becomes of all that it has made, at its end.

What has found no successor is taken away, what follows from changes is marked as stale, and a
report says what has happened. A run that fails is undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flowscope.cells.bindings import bindings
from flowscope.cells.bodies import blocks_of
from flowscope.cells.build_state import NAMES, tables
from flowscope.cells.cell import CellReport, Restart
from flowscope.cells.lookup import cells_of
from flowscope.cells.reconcile import Making, is_variable
from flowscope.cells.spec_match import same_spec
from flowscope.cells.stale import Derivation, Spread, Stale, labels
from flowscope.graph.block import Block
from flowscope.graph.building import PLACES
from flowscope.graph.op import Spec
from flowscope.graph.operation import Operation, Tensor


class Run(Making):
    """A run of a cell, from its first operation to its end."""

    # -- at its end -----------------------------------------------------------------------------

    def finish(self, is_whole: bool = True) -> CellReport:
        """Ends the run: what has no successor leaves the graph.

        Args:
            is_whole: False if the run was broken off: then what has no successor stays.
        """
        graph, cell = self._graph, self.cell
        if not is_whole:
            self._mend()
        self._keep(self._unmade.values() if not is_whole else self._read_by_others())
        left = sorted(self._unmade.values(), key=lambda o: o.order)
        gone = [*self._replaced.values(), *left]
        for op in left:
            op.stale = Stale("gone", f"{cell} does not make any more")
            graph.edited(op)
        for op in gone:
            if graph._by_name.get(op.name) is op:
                del graph._by_name[op.name]
        self._empty(left)
        made = {*self._made, *self._kept}
        self._changed = {op for op in self._taken if self.has_changed(op)}
        unedited = {op for op in self._taken if not self.is_edited(op)}
        graph.forget_edits(unedited, self._edits_before)
        specs = {t: s for t, s in self._specs.items() if not same_spec(s, t.spec)}
        self._forget_derivations()
        self._point_to_what_stays()
        changed = self._changed | set(gone) | self._with_other_gradients()
        spread = Spread(graph, cell, set(self._made), changed, specs, self._moved())
        if self.is_again or self.renewed_gradients:
            spread.run()
        cell.operations = sorted(made, key=lambda o: o.order)
        cell.changes = self._start.changes(graph)
        cell.entries = self._start.added(graph)
        cell.reads = self.reads
        self._count_on()
        self.report = self._reported(left, spread.turned)
        return self.report

    def _mend(self) -> None:
        """Makes the graph whole where an interrupt came while operations were made or dropped.

        What the graph lists stands, but for what was being dropped; what was not yet made again is
        what it was; the rest of what has been noted follows from that.
        """
        graph = self._graph
        listed = [op for op in graph._operations if not _is_gone(op)]
        present = set(listed)
        for old in [op for op in self._taken if op not in present]:
            for name, value in self._taken.pop(old).items():
                setattr(old, name, value)
            for t in old.outputs:
                t.spec = self._specs.pop(t, t.spec)
        self._fresh = {op.name: op for op in self._fresh.values() if op in present}
        for new, stale in self._ended.items():
            if new not in present and new.name in self._replaced:
                self._replaced.pop(new.name).stale = stale
        found = {*present, *self._replaced.values()}
        self._unmade = {op.name: op for op in self.cell.operations if op not in found}
        self._made = [op for op in self._made if op in present]
        self._kept = {op: order for op, order in self._kept.items() if op in present}
        graph._operations[:] = listed
        for block in {graph.root, *(f.block for f in graph.functions.values())}:
            known = set(block.operations)
            missing = [op for op in listed if op.block is block and op not in known]
            block.operations[:] = [op for op in block.operations if not _is_gone(op)] + missing
        graph._by_name.clear()
        graph._by_name.update((op.name, op) for op in (*self._unmade.values(), *listed))

    def _point_to_what_stays(self) -> None:
        """Lets collections, builders' state and gradients' notes have nothing that was dropped."""
        graph = self._graph
        pairs = {new: old for one in self._likenesses for new, old in one.operations.items()}
        if not pairs:
            return
        for name, table in tables(graph).items():
            for key, value in list(table.items()) if name != NAMES else ():
                table[key] = _standing(value, pairs)
        for entries in graph._collections.values():
            entries[:] = [_standing(one, pairs) for one in entries]
        for d in cells_of(graph).derivations[self._derived :]:
            d.sources = frozenset(pairs.get(op, op) for op in d.sources)

    def _with_other_gradients(self) -> set[Operation]:
        """Returns the operations of which a registered gradient is another one now."""
        names = self.renewed_gradients
        every = self._graph.get_operations() if names else []
        found = {op for op in every if (op.gradient or op.type) in names}
        blocks = {op.block for op in found}
        owners = [op for op in every for b in blocks_of(op.definition) if _has(b, blocks)]
        return found.union(owners)

    def _read_by_others(self) -> list[Operation]:
        """The operations that gradients added to functions that stay, which others may read."""
        functions = {f.block: f for f in self._graph.functions.values()} if self._unmade else {}
        return [
            op
            for op in self._unmade.values()
            if op.block in functions and any(t.op is op for t in functions[op.block].kept)
        ]

    def _empty(self, left: Sequence[Operation]) -> None:
        """Takes operations that are gone out of the blocks of functions that stay."""
        blocks = {op.block for op in left}
        for f in self._graph.functions.values() if left else ():
            if f.block in blocks:
                f.block.operations[:] = [op for op in f.block.operations if op not in left]

    def _moved(self) -> dict[Tensor, str]:
        """Returns the tensors that a name of the user's stood for, and does not any more."""
        if not self._bound:
            return {}
        now = bindings(self._names())
        return {t: path for path, t in self._bound.items() if now.get(path) is not t}

    def _forget_derivations(self) -> None:
        """Drops what earlier runs of the cell have noted, unless they count still."""
        graph, position = self._graph, self.cell.position
        found = []
        for d in cells_of(graph).derivations[: self._derived]:
            if d.start // PLACES != position:
                found.append(d)
            else:
                stay = [op for op, order in self._kept.items() if d.start <= order < d.stop]
                found += [Derivation(op.order, op.order + 1, d.sources) for op in stay]
        cells_of(graph).derivations[: self._derived] = found

    def _count_on(self) -> None:
        """Lets names go on where they were: those of new cells do not depend on re-runs."""
        names, before = self._graph._names, self._before.names
        for name, count in before.items() if names != before else ():
            if names.get(name, count) < count:
                names[name] = count

    def _reported(self, left: Sequence[Operation], turned: Sequence[Operation]) -> CellReport:
        stale = [o for o in turned if o.stale is not None and o not in self._made]
        others = [label for label in labels(self._graph, stale) if label != self.cell.label]
        return CellReport(
            self.cell.label,
            kept=len(self._made) - len(self._fresh) - len(self._changed) + len(self._kept),
            changed=len(self._changed) + len(self._replaced),
            new=len(self._fresh) - len(self._replaced),
            removed=len(left),
            restarts=tuple(self._restarts()),
            stale=tuple(others),
        )

    def _restarts(self) -> Iterable[Restart]:
        for name, old in self._replaced.items():
            before, after = _variable(old), _variable(self._fresh[name])
            if before is not None and after is not None and not same_spec(before, after):
                yield Restart(name, str(before), str(after))

    @property
    def marked(self) -> frozenset[int]:
        """Numbers of the operations that the run has changed or added."""
        return frozenset(op.id for op in (*self._changed, *self._fresh.values()))

    def close_scopes(self) -> None:
        """Closes the scopes that an interrupt has left open: it can come while one is closed."""
        self._before.restore_scopes()

    def undo(self) -> CellReport:
        """Ends a run that failed: the graph is as it was before, wherever in it the run ended."""
        graph, restarts = self._graph, cells_of(self._graph).restarts
        edited = graph.edited_since(self._first_edit)
        gone = {*self._before.made_since(), *self._fresh.values()}
        anew = [op for op in self._replaced.values() if op.name in restarts]
        self._before.restore()
        for undo in reversed(self._undo):
            undo()
        for op in gone:
            op.stale = Stale("gone", f"a run of {self.cell} made that failed")
        for op in {*edited, *self._taken, *gone}:
            graph.edited(op)
        restarts.update((op.name, op.definition) for op in anew)
        self.report = CellReport(self.cell.label, failed=self.has_built)
        return self.report


def _is_gone(op: Operation) -> bool:
    return op.stale is not None and op.stale.kind == "gone"


def _variable(op: Operation) -> Spec | None:
    """Returns the value's Spec if the operation makes the handle of a variable."""
    return op.outputs[0].spec.variable if is_variable(op) else None


def _has(block: Block, inner: Iterable[Block]) -> bool:
    return any(block.encloses(one) for one in inner)


def _standing(thing: Any, pairs: Mapping[Operation, Operation]) -> Any:
    """Returns the operation or tensor that stands for one that was dropped, else the same."""
    if isinstance(thing, Operation):
        return pairs.get(thing, thing)
    if isinstance(thing, Tensor) and thing.op in pairs:
        return pairs[thing.op].outputs[thing.value_index]
    return thing


__all__ = ["Run"]
