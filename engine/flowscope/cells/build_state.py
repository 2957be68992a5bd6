"""What building changes in a graph besides operations: names, builders' state, collections.

All of it is kept in tables (dicts). A run of a cell remembers them as they were; afterwards the
difference is what the next run rewinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation

if TYPE_CHECKING:
    from flowscope.graph.graph import Graph

#: Stands for a key that is not there.
MISSING = object()

NAMES = "names"
EXTRAS = "extras"
THREAD_EXTRAS = "thread extras"
FUNCTIONS = "functions"


@frozen
class Change:
    """One key of one table that a run has changed."""

    table: str
    key: Any
    before: Any
    after: Any


class GraphTables:
    """The tables and collections of a graph as they were at one moment."""

    def __init__(self, graph: Graph) -> None:
        self.tables = {name: dict(table) for name, table in tables(graph).items()}
        self.collections = {key: list(entries) for key, entries in graph._collections.items()}

    def changes(self, graph: Graph) -> list[Change]:
        """The changes since then."""
        found = []
        for name, table in tables(graph).items():
            known = self.tables.get(name, {} if _is_kept(graph, name) else table)
            if name == NAMES and table == known:  # the longest, and mostly the same
                continue
            for key in table.keys() | known.keys():
                before, after = known.get(key, MISSING), table.get(key, MISSING)
                is_table = name in (EXTRAS, THREAD_EXTRAS) and isinstance(after, dict)
                if _differ(before, after) and not is_table:
                    found.append(Change(name, key, before, after))
        return found

    def added(self, graph: Graph) -> dict[Any, list[Any]]:
        """The items that collections have now and had not then."""
        found = {}
        for key, entries in graph._collections.items():
            old = {id(e) for e in self.collections.get(key, ())}
            fresh = [e for e in entries if id(e) not in old]
            if fresh:
                found[key] = fresh
        return found


def tables(graph: Graph) -> dict[str, dict[Any, Any]]:
    """Returns the graph's tables by name: those of builders by the name of the extra."""
    found: dict[str, dict[Any, Any]] = {
        NAMES: graph._names,
        EXTRAS: graph.extras,
        THREAD_EXTRAS: graph.thread_extras,
        FUNCTIONS: graph.functions,
    }
    for kind in (EXTRAS, THREAD_EXTRAS):
        for name, extra in found[kind].items():
            if isinstance(extra, dict):
                found[f"{kind}/{name}"] = extra
            elif hasattr(extra, "__dict__"):
                found[f"{kind}/{name}"] = vars(extra)
    return found


def _is_kept(graph: Graph, table: str) -> bool:
    """Whether rewinding empties a new table; an object it takes away as a whole."""
    extras = graph.thread_extras if table.startswith(THREAD_EXTRAS) else graph.extras
    return isinstance(extras.get(table.partition("/")[2]), dict)


def rewind(graph: Graph, changes: list[Change]) -> None:
    """Puts the keys of `changes` back to what they were before."""
    known = tables(graph)
    for change in changes:
        table = known.get(change.table)
        if table is None:
            continue
        if change.before is MISSING:
            table.pop(change.key, None)
        else:
            table[change.key] = change.before


def take_out(graph: Graph, entries: dict[Any, list[Any]]) -> dict[Any, int]:
    """Removes entries from collections; returns, per collection, where the first one stood."""
    places = {}
    for key, removed in entries.items():
        present = graph._collections.get(key)
        if not present:
            continue
        ids = {id(e) for e in removed}
        stood = [i for i, e in enumerate(present) if id(e) in ids]
        present[:] = [e for e in present if id(e) not in ids]
        if stood:
            places[key] = stood[0]
    return places


def operation_of(thing: Any) -> Operation | None:
    """Returns the operation that an entry of a table or collection stands for, if any."""
    thing = getattr(thing, "handle", thing)
    thing = getattr(thing, "op", thing)
    return thing if isinstance(thing, Operation) else None


def _differ(a: Any, b: Any) -> bool:
    return a is not b and not (type(a) is type(b) is int and a == b)


__all__ = [
    "FUNCTIONS",
    "MISSING",
    "NAMES",
    "Change",
    "GraphTables",
    "operation_of",
    "rewind",
    "tables",
    "take_out",
]
