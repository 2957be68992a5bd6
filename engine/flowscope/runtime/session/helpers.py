"""Helpers: the threads and hooks beside a session, which its views list."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Literal, Protocol

from flowscope.graph.lazy import frozen


@frozen
class Helper:
    """A thread or a hook that belongs to a session's input and training.

    Attributes:
        kind: What it is.
        name: Its name.
        text: What it does; of a thread "" while that is told by the step that it runs.
        operation: The number of the operation that it runs; None for none.
        thread: The number of its thread; None for none.
        has_failed: Whether it has ended with an error.
    """

    kind: Literal["runner", "coordinator", "hook"]
    name: str
    text: str
    operation: int | None = None
    thread: int | None = None
    has_failed: bool = False


class HasHelpers(Protocol):
    """What has threads or hooks beside a session."""

    def helpers(self) -> Sequence[Helper]:
        """Those that it has now; from any thread."""


class Helpers:
    """What has threads and hooks beside a session, in the order in which it came; held weakly."""

    def __init__(self) -> None:
        self._owners: dict[int, weakref.ref[HasHelpers]] = {}

    def add(self, owner: HasHelpers) -> None:
        """Adds one, if it is not there."""
        number = id(owner)
        if number not in self._owners:
            gone = lambda _: self._owners.pop(number, None)  # noqa: E731
            self._owners[number] = weakref.ref(owner, gone)

    def __iter__(self) -> Iterator[Helper]:
        owners = [reference() for reference in list(self._owners.values())]
        return iter([one for owner in owners if owner is not None for one in owner.helpers()])


__all__ = ["HasHelpers", "Helper", "Helpers"]
