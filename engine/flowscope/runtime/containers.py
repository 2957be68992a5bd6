"""Named containers: variables' values that the process keeps, beyond sessions (SPEC W32)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from flowscope.graph import default
from flowscope.runtime.resources import Container

_lock = threading.Lock()
_named: dict[str, Container] = {}


def named_container(name: str) -> Container:
    """Returns the process's container of this name, made on first use."""
    with _lock:
        return _named.setdefault(name, Container())


def reset(names: Iterable[str] | None = None) -> None:
    """Drops the values in the named containers, in all of them for None.

    Sessions that use them find their variables without a value, and may initialise them again.
    """
    with _lock:
        found = [_named[n] for n in (_named if names is None else names) if n in _named]
    for each in found:
        each.clear()


@contextmanager
def container(container_name: str) -> Iterator[str]:
    """Keeps the variables made in the block in the named container, which outlives sessions.

    Sessions of one process whose graphs have variables of the same name there share their values.
    "" stands for each session's own.
    """
    graph = default.get_default_graph()
    before = graph.extras.get("container", "")
    graph.extras["container"] = container_name
    try:
        yield container_name
    finally:
        graph.extras["container"] = before
