"""Containers: what sessions keep beyond their steps, and engines beyond sessions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from flowscope.errors import InvalidArgumentError
from flowscope.graph import default
from flowscope.graph.values.shapes import compatible, text
from flowscope.runtime.state.resources import VariableState


class _Held(Protocol):
    """What a container holds besides variables."""

    @property
    def family(self) -> str:
        """What it is, such as "queue": names are those of a family."""

    @property
    def name(self) -> str:
        """Its name in the container."""

    def clear(self) -> None:
        """Makes it new; who waits for it gets a CancelledError."""


Held = TypeVar("Held", bound=_Held)


class Container:
    """Variables' values, queues and locks by name, shared by everyone who holds the container."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._variables: dict[str, VariableState] = {}
        #: Queues and locks, by family and name.
        self._others: dict[tuple[str, str], Any] = {}

    def variable(self, name: str, dims: Any) -> VariableState:
        """Returns the variable `name`, made on first use.

        Raises:
            InvalidArgumentError: if it is there, has a value, and that has another shape.
        """
        with self._lock:
            found = self._variables.get(name)
            if found is None:
                found = self._variables[name] = VariableState(name, dims)
            elif found.dims != dims:
                value = found.value
                if value is not None and not compatible(dims, value.shape):
                    raise InvalidArgumentError(
                        f'the container has a variable "{name}" of shape {text(value.shape)}, '
                        f"expected {text(dims)}: give one of them another name, or drop the "
                        "container's values with fs.Session.reset"
                    )
                found.dims = dims
            return found

    def restarted(self, name: str, dims: Any, dtype: Any) -> VariableState:
        """Returns the variable `name`, a new one where it has another shape or dtype."""
        with self._lock:
            found = self._variables.get(name)
            value = None if found is None else found.value
            is_same = value is None or value.dtype == dtype
            if found is None or found.dims != dims or not is_same:
                fresh = self._variables[name] = VariableState(name, dims)
                fresh._lost = found is not None and (found.is_initialized or found._lost)
                return fresh
            return found

    def variables(self) -> dict[str, VariableState]:
        """Returns the variables by name."""
        with self._lock:
            return dict(self._variables)

    def other(self, fresh: Held, check: Callable[[Held, Held], None]) -> Held:
        """Returns the queue or lock that has the family and name of `fresh`: that one, if none has.

        Args:
            fresh: A new one.
            check: Raises if the one that is there differs from the new one.
        """
        with self._lock:
            found: Held = self._others.setdefault((fresh.family, fresh.name), fresh)
        check(found, fresh)
        return found

    def renewed(self, fresh: Held) -> Held:
        """Returns `fresh`, in place of the queue or lock that has its family and name."""
        with self._lock:
            old = self._others.get((fresh.family, fresh.name))
            self._others[fresh.family, fresh.name] = fresh
        if old is not None:
            old.clear()
        return fresh

    def find(self, family: str, name: str) -> Any:
        """Returns the queue or lock of a name, None if there is none; see `has`."""
        return self._others.get((family, name))

    def has(self, family: str, name: str) -> bool:
        """Whether there is something of a family, such as "queue", and a name."""
        return (family, name) in self._others

    def others(self) -> list[Any]:
        """Returns the queues and locks."""
        with self._lock:
            return list(self._others.values())

    def clear(self) -> None:
        """Drops all values: a variable has none from now on, a queue is empty and open.

        Who waits for a queue or a lock gets a CancelledError.
        """
        with self._lock:
            states = list(self._variables.values())
            others = list(self._others.values())
        for state in states:
            state.clear()
        for other in others:
            other.clear()


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
