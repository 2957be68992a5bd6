"""Named containers: variables' values that an engine keeps, beyond sessions (SPEC W32)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from flowscope.graph import default
from flowscope.runtime.resources import Container


class Containers:
    """The named containers of an engine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._named: dict[str, Container] = {}

    def named(self, name: str) -> Container:
        """Returns the container of this name, made on first use."""
        with self._lock:
            return self._named.setdefault(name, Container())

    def all(self) -> list[Container]:
        """Returns all of them."""
        with self._lock:
            return list(self._named.values())

    def reset(self, names: Iterable[str] | None = None) -> None:
        """Drops the values in the named containers, in all of them for None.

        Sessions that use them find their variables without a value, and may initialise them again.
        """
        with self._lock:
            all_names = self._named if names is None else names
            found = [self._named[n] for n in all_names if n in self._named]
        for each in found:
            each.clear()


@contextmanager
def container(container_name: str) -> Iterator[str]:
    """Keeps the variables made in the block in the named container, which outlives sessions.

    Sessions of one engine whose graphs have variables of the same name there share their values.
    "" stands for each session's own.
    """
    graph = default.get_default_graph()
    before = graph.extras.get("container", "")
    graph.extras["container"] = container_name
    try:
        yield container_name
    finally:
        graph.extras["container"] = before
