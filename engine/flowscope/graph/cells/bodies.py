"""Functions that operations call: which blocks they own, and when two of them are the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from flowscope.graph.op import Op
from flowscope.graph.operation import Operation


def blocks_of(definition: Op) -> Iterator[Any]:
    """Yields the blocks of the functions among an op's attributes."""
    for field in dataclasses.fields(definition):
        value = getattr(definition, field.name)
        for one in value if isinstance(value, tuple) else (value,):
            block = getattr(one, "block", None)
            if block is not None and hasattr(block, "operations"):
                yield block


def same_definition(a: Op, b: Op) -> bool:
    """Whether two ops are equal; functions among their attributes count as what they compute."""
    if type(a) is not type(b):
        return False
    if a == b:
        return True
    mine, theirs = list(blocks_of(a)), list(blocks_of(b))
    if not mine or len(mine) != len(theirs):
        return False
    return all(_same_block(x, y) for x, y in zip(mine, theirs, strict=True)) and all(
        _same_attribute(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a)
    )


def _same_attribute(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return all(_same_attribute(x, y) for x, y in zip(a, b, strict=True))
    if hasattr(a, "block") and hasattr(b, "block"):
        return _results(a) == _results(b)
    return bool(a == b)


def _results(function: Any) -> list[str]:
    return [t.name for t in getattr(function, "results", ())]


def _same_block(a: Any, b: Any) -> bool:
    return len(a.operations) == len(b.operations) and all(
        _same_operation(x, y) for x, y in zip(a.operations, b.operations, strict=True)
    )


def _same_operation(a: Operation, b: Operation) -> bool:
    return (
        a.name == b.name
        and same_definition(a.definition, b.definition)
        and [t.name for t in a.inputs] == [t.name for t in b.inputs]
        and [c.name for c in a.control_inputs] == [c.name for c in b.control_inputs]
    )


__all__ = ["blocks_of", "same_definition"]
