"""The default graph and the default session: what `with g.as_default():` sets.

Each thread (and each asynchronous task) has its own stack; below them all lies one process-wide
graph, made on first use, and the session that `InteractiveSession` installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from flowscope.errors import NestingError
from flowscope.graph.graph import Graph, default_setters

_graph: ContextVar[Graph | None] = ContextVar("flowscope_default_graph", default=None)
_session: ContextVar[Any] = ContextVar("flowscope_default_session", default=None)


class _Base:
    """What lies below every thread's stack."""

    graph: Graph | None = None
    session: Any = None


def get_default_graph() -> Graph:
    """Returns the graph to which operations are added now."""
    graph = _graph.get()
    if graph is not None:
        return graph
    if _Base.graph is None:
        _Base.graph = Graph()
    return _Base.graph


def reset_default_graph() -> None:
    """Puts a new, empty graph in the place of the process-wide default graph.

    Raises:
        NestingError: inside `with graph.as_default():`.
    """
    if _graph.get() is not None:
        raise NestingError("reset_default_graph() cannot be used inside `with graph.as_default():`")
    _Base.graph = None


@contextmanager
def use_graph(graph: Graph) -> Iterator[Graph]:
    """Makes `graph` the default graph inside the `with` block."""
    token = _graph.set(graph)
    try:
        yield graph
    except BaseException:
        _graph.reset(token)
        raise
    if _graph.get() is not graph:
        raise NestingError("`with graph.as_default():` ends inside another one")
    _graph.reset(token)


default_setters.append(use_graph)


def get_default_session() -> Any:
    """Returns the session that `Tensor.eval` uses, or None."""
    session = _session.get()
    return _Base.session if session is None else session


@contextmanager
def use_session(session: Any) -> Iterator[Any]:
    """Makes `session` the default session inside the block; the default graph stays."""
    token = _session.set(session)
    try:
        yield session
    finally:
        _session.reset(token)


def install(graph: Graph | None, session: Any) -> tuple[Graph | None, Any]:
    """Sets what lies below every thread's stack; returns what lay there before."""
    before = _Base.graph, _Base.session
    _Base.graph, _Base.session = graph, session
    return before


class Stacks:
    """The default graph and session, as they are now."""

    def __init__(self) -> None:
        self._top = _graph.get(), _session.get()
        self._base = _Base.graph, _Base.session

    def restore(self, with_base: bool) -> None:
        """Makes them the default ones again, after an interrupt has left a `with` block open.

        Args:
            with_base: Whether what lies below every thread's stack, too, is as it was.
        """
        _graph.set(self._top[0])
        _session.set(self._top[1])
        if with_base:
            install(*self._base)
