"""What a Python function does, as far as can be told by looking at it: to tell two of them apart.

A cell that is run again makes its functions anew, so what an operation calls is another object each
time. `behaviour` takes down what a function is made of - code, defaults, what it encloses, the
globals that it reads, and so on through functions, classes and plain objects - as it is at that
moment: arrays by a digest of their bits, tensors and operations as themselves. Two functions of
which the same was taken down do the same. Lines and comments do not count.

What cannot be looked at (random generators, files, subclasses of lists, what is too large) is
*opaque*: never equal. Installed packages are taken to stay as they are, and what functions ask of
the outside world is not looked at.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any


class Seen:
    """What was taken down of one object.

    Attributes:
        kind: "opaque": nothing; "symbol": a tensor or an operation; "itself": only itself is like
            it; any other: what is like it has the same kind, value and parts.
        value: What is equal for equal ones, besides the parts.
        parts: What it is made of.
        can_change: Whether it may become something else and stay the same object.
    """

    __slots__ = ("_ref", "can_change", "kind", "parts", "value")

    def __init__(self, kind: str, thing: Any, value: Any = None, can_change: bool = False) -> None:
        self.kind = kind
        self.value = value
        self.parts: Sequence[Seen] = ()
        self.can_change = can_change
        # Weakly where that can be: an array that a list has lost since is not kept.
        self._ref: Callable[[], Any]
        try:
            self._ref = weakref.ref(thing)
        except TypeError:
            self._ref = lambda: thing

    @property
    def thing(self) -> Any:
        """The object; None if it is gone."""
        return self._ref()


class Comparison:
    """Compares what was taken down of two functions.

    Args:
        new: Of the later one.
        old: Of the earlier one.
        is_live: Whether only steps call them: then the same object is the same whatever it held,
            for both find in it what there is when they are called.
        stands_for: Returns the earlier tensor or operation that one of the later function is.

    Attributes:
        is_same: Whether they do the same.
        is_mapped: Whether the later one holds tensors that earlier ones stand for.
        shares: Whether what they hold that may change is the same objects.
    """

    def __init__(
        self, new: Seen, old: Seen, is_live: bool, stands_for: Callable[[Any], Any]
    ) -> None:
        self._is_live = is_live
        self._stands_for = stands_for
        self._partners: dict[int, Seen] = {}
        self.is_mapped = False
        self.shares = True
        self.is_same = self._compare(new, old)

    def _compare(self, new: Seen, old: Seen) -> bool:
        seen: set[tuple[int, int]] = set()
        stack = [(new, old)]
        while stack:
            a, b = stack.pop()
            if (id(a), id(b)) in seen:
                continue
            seen.add((id(a), id(b)))
            is_one = a.kind == b.kind and a.thing is not None and a.thing is b.thing
            if is_one and self._is_live and a.kind != "symbol":
                continue
            if not self._are_alike(a, b, is_one):
                return False
            stack += zip(a.parts, b.parts, strict=True)
        return True

    def _are_alike(self, a: Seen, b: Seen, is_one: bool) -> bool:
        if a.kind == "symbol" == b.kind:
            earlier = self._stands_for(a.thing)
            self.is_mapped |= earlier is not a.thing
            return earlier is b.thing
        if a.kind != b.kind or a.kind == "opaque" or len(a.parts) != len(b.parts):
            return False
        if a.can_change or b.can_change:
            self.shares &= is_one
            if not self._are_partners(a, b):
                return False
        return is_one if a.kind == "itself" else bool(a.value == b.value)

    def _are_partners(self, a: Seen, b: Seen) -> bool:
        """Whether an object stands for one other only: two names of one list are not two lists."""
        partners = self._partners
        return partners.setdefault(id(a), b) is b and partners.setdefault(id(b), a) is a


__all__ = ["Comparison", "Seen"]
