"""Functions that operations call: which blocks they own, and when two of them are the same.

A function that a re-run of a cell has built is compared with the one that the run before had built
under its name: operation by operation, with all functions inside. What gradients have added to the
earlier one since then (further results, and operations that these need) does not count.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from flowscope.cells.fingerprint import Comparison
from flowscope.cells.spec_match import same_spec
from flowscope.cells.user_functions import Held, held_by
from flowscope.graph.block import Block
from flowscope.graph.op import Op
from flowscope.graph.operation import Operation, Tensor


def functions_of(definition: Op) -> Iterator[Any]:
    """Yields the functions among an op's attributes."""
    for field in dataclasses.fields(definition):
        value = getattr(definition, field.name)
        for one in value if isinstance(value, tuple) else (value,):
            block = getattr(one, "block", None)
            if block is not None and hasattr(block, "operations"):
                yield one


def blocks_of(definition: Op) -> Iterator[Block]:
    """Yields the blocks of the functions among an op's attributes."""
    for function in functions_of(definition):
        yield function.block


class Likeness:
    """Compares functions with those that an earlier run has built.

    Args:
        roots: The blocks of the functions, which have all others inside.
        replaced: Operations of the earlier run by the names of their successors.

    Attributes:
        functions: The earlier function of each one that is the same.
        operations: The earlier operation of each one in them.
        held: Functions of the user's in them, each with the earlier one whose place it can take.
    """

    def __init__(self, roots: Sequence[Block], replaced: Mapping[str, Operation]) -> None:
        self._roots = roots
        self._replaced = replaced
        self.functions: dict[Any, Any] = {}
        self.operations: dict[Operation, Operation] = {}
        self.held: list[tuple[Held, Held]] = []

    def tensor(self, t: Tensor) -> Tensor:
        """Returns the earlier tensor that one of a function stands for; others as they are."""
        op = self.operations.get(t.op)
        return t if op is None else op.outputs[t.value_index]

    def thing(self, thing: Any) -> Any:
        """Returns the earlier tensor or operation, where there is one; all else as it is."""
        if isinstance(thing, Operation):
            return self.operations.get(thing, thing)
        return self.tensor(thing) if isinstance(thing, Tensor) else thing

    def function(self, new: Any, old: Any) -> bool:
        """Whether two functions compute the same from the same."""
        if new in self.functions:
            return self.functions[new] is old
        self.functions[new] = old
        made, known = new.block.operations, old.block.operations[: old.block.built]
        return (
            type(new) is type(old)
            and new.name == old.name
            and len(made) == len(known)
            and self._is_same_forward(new, old)
            and all(self._operation(a, b) for a, b in zip(made, known, strict=True))
            and self._are_same(new.parameters, old.parameters)
            and self._are_same(new.captures, old.captures)
            and self._are_same(new.results, old.results)
            and self._are_same(new.kept, old.kept[: len(new.kept)])
        )

    def _is_same_forward(self, new: Any, old: Any) -> bool:
        mine, other = getattr(new, "forward", None), getattr(old, "forward", None)
        recomputes = getattr(new, "recomputes", None) == getattr(old, "recomputes", None)
        return recomputes and (mine is other or self.functions.get(mine) is other)

    def _operation(self, new: Operation, old: Operation) -> bool:
        is_same = (
            self._replaced.get(new.name) is old
            and self._are_same(new.inputs, old.inputs)
            and self._are_same(new.control_inputs, old.control_inputs)
            and (new.device, new.gradient) == (old.device, old.gradient)
            and new.colocation == old.colocation
            and self.thing(new.forward) is old.forward
            and all(same_spec(a.spec, b.spec) for a, b in zip(new.outputs, old.outputs))
            and self._definition(new.definition, old.definition)
        )
        if is_same:
            self.operations[new] = old
        return is_same

    def _definition(self, new: Op, old: Op) -> bool:
        if type(new) is not type(old):
            return False
        if held_by(new) is not None:
            return self._holds(new, old)
        if not any(True for _ in functions_of(new)):
            return bool(new == old)
        return all(
            self._attribute(getattr(new, f.name), getattr(old, f.name))
            for f in dataclasses.fields(new)
            if f.compare
        )

    def _holds(self, new: Op, old: Op) -> bool:
        found = compared(new, old, self.thing)
        if found is None or not found.is_same:
            return False
        if found.is_mapped:  # the later one holds tensors that are dropped: the earlier one stays
            return found.shares
        mine, other = held_by(new), held_by(old)
        assert mine is not None
        assert other is not None
        self.held.append((mine, other))
        return True

    def _attribute(self, new: Any, old: Any) -> bool:
        if isinstance(new, tuple) and isinstance(old, tuple) and len(new) == len(old):
            return all(self._attribute(x, y) for x, y in zip(new, old, strict=True))
        if hasattr(new, "block") and hasattr(old, "block"):
            is_inside = any(root.encloses(new.block) for root in self._roots)
            return new.block is old.block or (is_inside and self.function(new, old))
        return bool(new == old)

    def _are_same(self, new: Sequence[Any], old: Sequence[Any]) -> bool:
        return len(new) == len(old) and all(
            self.thing(a) is b for a, b in zip(new, old, strict=True)
        )


def compared(
    new: Op, old: Op, stands_for: Callable[[Any], Any] = lambda thing: thing
) -> Comparison | None:
    """Returns how the functions of the user's compare that two ops hold.

    None if they hold none, if the ops differ otherwise, or if that is not known.
    """
    mine, other = held_by(new), held_by(old)
    if mine is None or other is None or type(new) is not type(old):
        return None
    pairs = [(getattr(new, f.name), getattr(old, f.name)) for f in dataclasses.fields(new)]
    if any(a != b and (a, b) != (mine.token, other.token) for a, b in pairs):
        return None
    return mine.compared(other, stands_for)


def same_definition(a: Op, b: Op) -> bool:
    """Whether two ops are equal; functions among their attributes if they have the same block."""
    if held_by(a) is not held_by(b):
        return False
    return a == b or (
        type(a) is type(b)
        and any(True for _ in functions_of(a))
        and all(
            _same_attribute(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a)
        )
    )


def _same_attribute(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return all(_same_attribute(x, y) for x, y in zip(a, b, strict=True))
    if hasattr(a, "block") and hasattr(b, "block"):
        return a.block is b.block
    return bool(a == b)


__all__ = ["Likeness", "blocks_of", "compared", "functions_of", "same_definition"]
