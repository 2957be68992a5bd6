"""A graph in one line: what a `repr` says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowscope.graph.operation import Operation
from flowscope.graph.origins.origin import SourceLine
from flowscope.graph.values.shapes import size_of

#: Most devices that are named.
NAMED = 3


def summary(operations: list[Operation], trained: Iterable[Any], functions: int = 0) -> str:
    """Returns the number of operations, variables and parameters, devices, and who made them where.

    Args:
        operations: All operations of the graph.
        trained: The variables that are trained.
        functions: How many functions the graph has.
    """
    parts = [
        counted(len(operations), "operation"),
        counted(functions, "function") if functions else "",
        _variables(operations, trained),
        _devices(operations),
        _where(operations),
    ]
    return ", ".join(p for p in parts if p)


def counted(count: int, noun: str) -> str:
    """Returns e.g. "1 operation" or "36 000 operations"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}".replace(",", " ")


def duration(seconds: float) -> str:
    """Returns e.g. "12.3 us", "4.5 ms" or "2 s"."""
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def _variables(operations: list[Operation], trained: Iterable[Any]) -> str:
    handles = [op for op in operations if not op.inputs and _is_handle(op)]
    if not handles:
        return ""
    sizes = [size_of(v.handle.spec.variable.shape) for v in trained if hasattr(v, "handle")]
    known = sum(n for n in sizes if n is not None)
    least = "at least " if None in sizes else ""
    parameters = f" ({least}{counted(known, 'parameter')})" if sizes else ""
    return counted(len(handles), "variable") + parameters


def _is_handle(op: Operation) -> bool:
    return len(op.outputs) == 1 and op.outputs[0].spec.variable is not None


def _devices(operations: list[Operation]) -> str:
    found = sorted({op.device for op in operations if op.device})
    if not found:
        return ""
    rest = len(found) - NAMED
    return f"on {', '.join(found[:NAMED])}{f' and {rest} more' if rest > 0 else ''}"


def _where(operations: list[Operation]) -> str:
    places = [op.origin.place for op in (*operations[:1], *operations[-1:])]
    known = [p for p in places if p is not None]
    if not known:
        return ""
    first, last = known[0], known[-1]
    if first == last:
        return f"made in {first}"
    if _home(first) == _home(last):
        return f"made in {_home(first)}, lines {first.line} to {last.line}"
    return f"made in {first} to {last}"


def _home(place: SourceLine) -> str:
    return str(place).rpartition(", line")[0]
