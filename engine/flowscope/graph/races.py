"""Races: reads and writes of one variable that nothing but the order of the program orders (D9).

flowscope runs such pairs as the program was written, so results are well defined. Still a race is
worth knowing: it says what another order of the same lines would change, and in TensorFlow 1 the
pair would run in either order.

An access comes before another if a path of tensors and control inputs leads to it. Paths are found
by one pass in the order of creation, with a set of accesses, as the bits of a number, for each
operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flowscope.errors import DTypeError
from flowscope.graph.default import get_default_graph
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation, Tensor, is_back_edge
from flowscope.graph.order import in_order
from flowscope.graph.values.dtypes import resource


@frozen
class Race:
    """Two accesses to one variable, in the order of the program, of which one writes.

    Attributes:
        variable: The operation that makes the variable's handle.
        first, second: The accesses.
    """

    variable: Operation
    first: Operation
    second: Operation

    def __str__(self) -> str:
        lines = [f'"{self.variable.name}" is accessed by two operations that no path orders:']
        for op in (self.first, self.second):
            does = "writes" if op.definition.writes_state else "reads"
            made = f", made in {op.origin.place}" if op.origin.place else ""
            lines.append(f'  {does:<6} "{op.name}" ({op.type}){made}')
        return "\n".join(lines)

    __repr__ = __str__


class Races(tuple[Race, ...]):
    """All races, as a tuple whose text tells what to do."""

    __slots__ = ()

    def __str__(self) -> str:
        if not self:
            return "no races: paths order all reads and writes of each variable"
        hint = (
            "they run in the order in which they were made; "
            "fs.control_dependencies makes a path that says so"
        )
        return "\n".join([*map(str, self), hint])

    __repr__ = __str__


def variable_races(fetches: Any) -> Races:
    """Returns the pairs of reads and writes of one variable that no path orders.

    Args:
        fetches: What would be fetched in one step: a tensor, operation, variable or name, or a
            (nested) list, tuple or dict of them.

    Returns:
        The races among the operations that the fetches need, in the order of the program; reads
        alone are no race. Printed, it says where each access was made.

    Raises:
        NotFoundError: if a name is not in the graph.
        DTypeError: if a fetch is no element of a graph.
    """
    roots = [_operation(f) for f in _flat(fetches)]
    needed = in_order(_closure(roots))
    accesses = [op for op in needed if _handles(op)]
    before = _before(needed, accesses)
    by_variable: dict[Operation, list[int]] = {}
    for i, op in enumerate(accesses):
        for handle in _handles(op):
            by_variable.setdefault(handle, []).append(i)
    found = [
        Race(variable, accesses[i], accesses[k])
        for variable, places in by_variable.items()
        for i, k in _unordered(places, accesses, before)
    ]
    found.sort(key=lambda r: (r.second.order, r.first.order))
    return Races(found)


def _unordered(
    places: Sequence[int], accesses: Sequence[Operation], before: dict[Operation, int]
) -> Iterable[tuple[int, int]]:
    for at, k in enumerate(places):
        second = accesses[k]
        for i in places[:at]:
            first = accesses[i]
            writes = first.definition.writes_state or second.definition.writes_state
            if writes and not before[second] >> i & 1 and not before[first] >> k & 1:
                yield i, k


def _before(needed: Sequence[Operation], accesses: Sequence[Operation]) -> dict[Operation, int]:
    """Returns, per operation, the accesses from which a path leads to it, as bits."""
    number = {op: i for i, op in enumerate(accesses)}
    before: dict[Operation, int] = {}
    stack = list(reversed(needed))
    while stack:
        op = stack[-1]
        waiting = [p for p in _parents(op) if p not in before]
        if op in before or not waiting:
            stack.pop()
            before.setdefault(op, _joined(op, before, number))
        else:
            stack += waiting
    return before


def _joined(op: Operation, before: dict[Operation, int], number: dict[Operation, int]) -> int:
    bits = 0
    for p in _parents(op):
        bits |= before[p]
        if p in number:
            bits |= 1 << number[p]
    return bits


def _parents(op: Operation) -> list[Operation]:
    """The operations that must finish first, without those of an iteration before."""
    return [*[t.op for t in op.inputs if not is_back_edge(t, op)], *op.control_inputs]


def _handles(op: Operation) -> list[Operation]:
    if not (op.definition.reads_state or op.definition.writes_state):
        return []
    return list(dict.fromkeys(t.op for t in op.inputs if t.spec.dtype is resource))


def _closure(roots: Sequence[Operation]) -> set[Operation]:
    found, stack = set(roots), list(roots)
    while stack:
        op = stack.pop()
        for p in (*(t.op for t in op.inputs), *op.control_inputs):
            if p not in found:
                found.add(p)
                stack.append(p)
    return found


def _flat(fetches: Any) -> Iterable[Any]:
    if isinstance(fetches, dict):
        fetches = list(fetches.values())
    if not isinstance(fetches, list | tuple):
        yield fetches
        return
    for f in fetches:
        yield from _flat(f)


def _operation(fetch: Any) -> Operation:
    element = getattr(fetch, "_as_graph_element", None)
    if element is not None:
        fetch = element()
    elif isinstance(fetch, str):
        fetch = get_default_graph().as_graph_element(fetch)
    if isinstance(fetch, Tensor):
        return fetch.op
    if isinstance(fetch, Operation):
        return fetch
    raise DTypeError(f"expected a tensor, an operation, a variable or a name, got {fetch!r}")


__all__ = ["Race", "Races", "variable_races"]
