"""Tables of a recording: its time by operation, op type, scope, line, device or phase."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex, overload

from flowscope.errors import InvalidArgumentError
from flowscope.graph.lazy import frozen
from flowscope.tracing.recording import Recording, TracedNode


@frozen
class Row:
    """What some nodes have in common, and their time.

    Attributes:
        name: The operation's name, the op type, ...
        count: How often they ran.
        self_ns: Nanoseconds that were their own.
        total_ns: Nanoseconds with those of what they run; what lies in each other counts once.
        share: Their own part of all traced time, 0 to 1.
    """

    name: str
    count: int
    self_ns: int
    total_ns: int
    share: float


class Table(tuple[Row, ...]):
    """Rows, the most time of their own first; its text is a table, and a slice of it is one."""

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> Row: ...
    @overload
    def __getitem__(self, index: slice, /) -> Table: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> Row | Table:
        found = super().__getitem__(index)
        return Table(found) if isinstance(found, tuple) else found

    def __repr__(self) -> str:
        lines = [f"{'share':>6} {'self':>12} {'total':>12} {'count':>9}  name"]
        lines += [
            f"{r.share:6.1%} {r.self_ns / 1e3:9.1f} us {r.total_ns / 1e3:9.1f} us {r.count:9,}  "
            f"{r.name}"
            for r in self
        ]
        return "\n".join(lines)


def _line(node: TracedNode) -> str:
    line = node.line
    if line is None:
        return "(no line)"
    where = line.file if line.cell is None else f"cell {line.cell}"
    return f"{where}, line {line.line}"


#: What a table can be by, and the name of a node there.
KEYS: dict[str, Callable[[TracedNode], str]] = {
    "op": lambda node: node.name,
    "type": lambda node: node.type,
    "scope": lambda node: node.scope,
    "line": _line,
    "device": lambda node: node.device,
    "phase": lambda node: node.phase,
}


def table(recording: Recording, by: str = "op") -> Table:
    """Returns where the time of a recording went.

    Args:
        recording: The recording.
        by: "op", "type", "scope", "line", "device" or "phase".

    Raises:
        InvalidArgumentError: if it is by something else.
    """
    if by not in KEYS:
        raise InvalidArgumentError(f"expected by to be one of {', '.join(KEYS)}, got {by!r}")
    key, nodes, totals = KEYS[by], recording.nodes, recording.totals
    names = [key(n) for n in nodes]
    found: dict[str, list[Any]] = {}
    for i, name in enumerate(names):
        row = found.setdefault(name, [0, 0, 0])
        row[0] += int(totals.count[i])
        row[1] += int(totals.self_ns[i])
        if not _lies_in(nodes, names, i):
            row[2] += int(totals.total_ns[i])
    whole = max(1, int(totals.self_ns.sum()))
    rows = [Row(name, n, own, all_ns, own / whole) for name, (n, own, all_ns) in found.items()]
    return Table(sorted(rows, key=lambda r: -r.self_ns))


def _lies_in(nodes: tuple[TracedNode, ...], names: list[str], index: int) -> bool:
    """Whether a node stands in another one of its own row."""
    at = nodes[index].parent
    while at >= 0:
        if names[at] == names[index]:
            return True
        at = nodes[at].parent
    return False


__all__ = ["KEYS", "Row", "Table", "table"]
