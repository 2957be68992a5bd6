"""What a plan's loops keep for their gradients, told before anything runs.

A loop keeps a value per iteration of each tensor that its gradient reads. How many bytes that are
follows from the shapes and from how often the loop runs, as far as these are known while planning.

Counted are the data of the arrays that the lists hold once the loop has ended, each piece of memory
once: exact where shapes and iterations are known, and at most so much where a branch keeps
something, for it is not known which is taken. Python's own objects are not counted, up to 200 bytes
per value, nor are temporary values, nor what is computed with whole lists when the loops are over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from flowscope.control.lists import EmptyList, ListOf, PackLists
from flowscope.graph.lazy import frozen
from flowscope.graph.values.dtypes import resource, variant
from flowscope.plan.ir.known_ops import ADD, LESS, LESS_EQUAL
from flowscope.plan.ir.program import Program, Value
from flowscope.plan.ir.rewriting import uses
from flowscope.plan.ir.structured import CondNode, LoopNode


@frozen
class KeptTensor:
    """A tensor of a loop's body that is kept in every iteration.

    Attributes:
        name: Its name.
        what: Its dtype and static shape.
        nbytes: Bytes per iteration, None where they are not known; 0 where it shows memory that
            counts already, or that is there in any case.
    """

    name: str
    what: str
    nbytes: int | None


@frozen
class KeptByLoop:
    """What one loop keeps.

    Attributes:
        name: The loop's name.
        iterations: How often it runs, None where that is not known.
        tensors: What it keeps in each iteration.
    """

    name: str
    iterations: int | None
    tensors: tuple[KeptTensor, ...]

    @property
    def bytes_per_iteration(self) -> int | None:
        """Bytes per iteration, None where they are not known."""
        return _sum([t.nbytes for t in self.tensors])

    @property
    def nbytes(self) -> int | None:
        """Bytes at the end of one run of the loop, None where they are not known."""
        return _product(self.bytes_per_iteration, self.iterations)


class SavedForBackward(tuple[KeptByLoop, ...]):
    """What the loops of a plan keep, outer ones before inner ones; its text is a table.

    Attributes:
        nbytes: Bytes of all at most, None where they are not known. What inner loops keep is part
            of what outer ones do, and a backward loop's lists take the place of those it uses up:
            not of those that are read once more, for one product after the loops.
    """

    nbytes: int | None = None

    def __repr__(self) -> str:
        if not self:
            return "no loop keeps anything"
        lines = []
        for loop in self:
            often = "?" if loop.iterations is None else f"{loop.iterations:,}"
            each, total = _text(loop.bytes_per_iteration), _text(loop.nbytes)
            lines.append(f"{loop.name}: {often} iterations of {each} = {total}")
            lines += [f"    {_text(t.nbytes):>14}  {t.what}  {t.name}" for t in loop.tensors]
        return "\n".join([*lines, f"together at most {_text(self.nbytes)}"])


def kept(
    program: Program, iterations: int | None = None, dimension: int | None = None
) -> SavedForBackward:
    """The bytes that the loops of a program keep for their gradients.

    Args:
        program: An ordered program.
        iterations: How often loops run for which that is not known.
        dimension: The size of dimensions that are not known, such as a batch's.
    """
    return _Estimate(iterations, dimension).of(program)


class _Estimate:
    def __init__(self, iterations: int | None, dimension: int | None) -> None:
        self._iterations = iterations
        self._dimension = dimension
        self._uses: Counter[Value] = Counter()

    def of(self, program: Program) -> SavedForBackward:
        self._uses = uses(program)
        found = [self._loop(n) for n in _loops(program)]
        result = SavedForBackward([f for f in found if f.tensors])
        result.nbytes = _sum([self._more(n) for n in _outer_loops(program)])
        return result

    def _more(self, node: LoopNode) -> int | None:
        """Returns by how much a loop's lists are more than those that it uses up."""
        own = self._loop(node).nbytes
        taken = self._taken(node)
        return own if not own or taken is None else max(0, own - taken)

    def _taken(self, node: LoopNode) -> int | None:
        """Returns the bytes of the lists that a loop takes and nobody else has."""
        lists = {v for v in node.taken if self._uses[v] < 2}
        makers = dict.fromkeys(v.node for v in lists if isinstance(v.node, LoopNode))
        parts = [self._bytes(v) for v in lists if v.node not in makers]
        for maker in makers:
            for value, shown in _memories(maker).items():
                if lists.issuperset(shown):
                    parts.append(_product(self._bytes(value), self._trips(maker)))
        return _sum(parts)

    def _loop(self, node: LoopNode) -> KeptByLoop:
        body = node.body
        own = {*body.feeds, *[v for n in body.nodes for v in n.outputs]}
        wanted = dict.fromkeys(v for v in node.kept_values if v in own)
        for before, after in zip(node.parameters, node.next_values, strict=True):
            if before in wanted and after in wanted and before is not after:
                del wanted[before]  # it is what an iteration before has kept
        tensors, counted = [], set[Value]()
        for v in wanted:
            base = base_of(v)
            nbytes = self._bytes(base) if base in own and base not in counted else 0
            counted.add(base)
            tensors.append(KeptTensor(v.label, str(v.spec), nbytes))
        return KeptByLoop(node.name, self._trips(node), tuple(tensors))

    def _bytes(self, value: Value) -> int | None:
        """Returns the bytes of a value; those of a list are its elements'."""
        spec, node = value.spec, value.node
        if spec.dtype is resource:
            return 0
        if spec.dtype is not variant:
            return self._array_bytes(value)
        if node is None:
            return None
        if isinstance(node, LoopNode):
            body = node.body
            own = {*body.feeds, *[v for n in body.nodes for v in n.outputs]}
            element = body.fetches[value.index - 1]
            return _product(self._bytes(element), self._trips(node)) if element in own else 0
        if isinstance(node, CondNode):
            found = [self._bytes(b.fetches[value.index]) for b in node.blocks]
            return None if None in found else max(n or 0 for n in found)
        if isinstance(node.op, EmptyList):
            return 0
        if isinstance(node.op, PackLists):
            return _sum([self._bytes(v) for v in node.inputs])
        return self._bytes(node.inputs[0]) if isinstance(node.op, ListOf) else None

    def _array_bytes(self, value: Value) -> int | None:
        dims = value.spec.shape
        if dims is None:
            return None
        total: int | None = value.spec.dtype.size
        for d in dims:
            total = _product(total, self._dimension if d is None else d)
        return total

    def _trips(self, node: LoopNode) -> int | None:
        found = trips(node)
        return self._iterations if found is None else found


def _memories(loop: LoopNode) -> dict[Value, list[Value]]:
    """Returns the values of a loop's body that it keeps, each with the lists that show its memory.

    A variable before an iteration is what the one before has made of it.
    """
    body, elements = loop.body, loop.kept_values
    own = {*body.feeds, *[v for n in body.nodes for v in n.outputs]}
    after = dict(zip(loop.parameters, loop.next_values, strict=True))
    found: dict[Value, list[Value]] = {}
    for element, output in zip(elements, loop.kept, strict=True):
        if element in own:
            value = after.get(element, element)
            found.setdefault(base_of(value if value in elements else element), []).append(output)
    return found


def base_of(value: Value) -> Value:
    """Returns the value whose memory a value shows: that is what is kept."""
    while value.node is not None and len(value.node.op.views) == 1 and not value.node.blocks:
        (at,) = value.node.op.views
        source = value.node.inputs[at]
        if source.spec.dtype is variant or value.spec.dtype is variant:
            break
        value = source
    return value


def trips(loop: LoopNode, known: Mapping[Value, Any] | None = None) -> int | None:
    """Returns how often a loop runs: a known count, or a counter up to a known limit.

    Args:
        loop: The loop.
        known: Values of a running step.
    """
    counted = None
    if loop.count is not None:
        made = loop.count.node
        if isinstance(made, LoopNode):
            counted = trips(made, known)
        else:
            counted = _constant(loop.count, known)
        if loop.condition is None or counted is None:
            return counted
    until = _counter_trips(loop, known)
    return until if counted is None or until is None else min(until, counted)


def most_trips(loop: LoopNode, known: Mapping[Value, Any]) -> int | None:
    """Returns how often a loop of a running step runs at most; None where nothing tells."""
    counted = None if loop.count is None else _constant(loop.count, known)
    found = trips(loop, known)
    return counted if found is None else found if counted is None else min(counted, found)


def _counter_trips(loop: LoopNode, known: Mapping[Value, Any] | None) -> int | None:
    """Returns the iterations of `while i < limit: i += step`, None for any other loop."""
    cond, body = loop.blocks
    test = cond.fetches[0].node
    if test is None or not isinstance(test.op, (LESS, LESS_EQUAL)):
        return None
    counter, limit = test.inputs[0], _constant(test.inputs[1], known)
    if counter not in cond.feeds:
        return None
    i = cond.feeds.index(counter)
    step_node = body.fetches[i].node
    if (
        step_node is None
        or not isinstance(step_node.op, ADD)
        or step_node.inputs[0] is not body.feeds[i]
    ):
        return None
    start, step = _constant(loop.starts[i]), _constant(step_node.inputs[1])
    if start is None or limit is None or step is None:
        return None
    return count_up(start, limit if isinstance(test.op, LESS_EQUAL) else limit - 1, step)


def count_up(start: int, last: int, step: int) -> int | None:
    """Returns how many numbers there are from `start` to `last`; None unless they go up."""
    return max(0, (last - start) // step + 1) if step > 0 else None


def _constant(value: Value, known: Mapping[Value, Any] | None = None) -> int | None:
    found: Any = value.spec.constant
    if found is None and known is not None:
        found = known.get(value)
    is_integer = found is not None and value.spec.dtype.kind == "i" and np.shape(found) == ()
    return int(found) if is_integer else None


def _loops(program: Program) -> Iterator[LoopNode]:
    return (n for n in program.walk() if isinstance(n, LoopNode))


def _outer_loops(program: Program) -> Iterator[LoopNode]:
    for node in program.nodes:
        if isinstance(node, LoopNode):
            yield node
        else:
            for block in node.blocks:
                yield from _outer_loops(block)


def _sum(parts: list[int | None]) -> int | None:
    return None if None in parts else sum(p or 0 for p in parts)


def _product(a: int | None, b: int | None) -> int | None:
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else a * b


def _text(nbytes: int | None) -> str:
    return "? bytes" if nbytes is None else f"{nbytes:,} bytes"


__all__ = [
    "KeptByLoop",
    "KeptTensor",
    "SavedForBackward",
    "count_up",
    "kept",
    "most_trips",
    "trips",
]
