"""What follows how a graph is built, and may take over earlier operations for new ones.

A graph tells one observer what happens to it, and asks it where that matters. The one here does
nothing; `flowscope.cells` puts in its place the one that knows notebook cells.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol

from flowscope.errors import StaleError
from flowscope.graph.lazy import frozen

if TYPE_CHECKING:
    from flowscope.graph.graph import Graph
    from flowscope.graph.op import Op
    from flowscope.graph.operation import Operation, Tensor


@frozen
class Stale:
    """Why an operation cannot be used.

    Attributes:
        kind: "gone": the graph has it no more; "own": something happened to it; "inherited": what
            it takes is stale.
        cause: In words, as they follow "it", and where it is gone "something that".
    """

    kind: Literal["gone", "own", "inherited"]
    cause: str = ""


class BuildRun(Protocol):
    """A run of code that builds in a graph, and may have built in it before."""

    is_again: bool

    @property
    def has_built(self) -> bool:
        """Whether it has made an operation so far."""

    @property
    def made_operations(self) -> list[Operation]:
        """What it has made or kept so far."""

    def uses(self, definition: Op, operations: Iterable[Operation]) -> None:
        """Takes note that an operation is about to be made from others."""

    def made(self, op: Operation, wished: str) -> Operation | None:
        """Takes note of a new operation; returns the earlier one that has become it, if any."""

    def collect(self, key: Any, entry: Any) -> None:
        """Adds an entry to a collection."""

    def is_unmade(self, op: Operation) -> bool:
        """Whether it stems from the run before and has no successor yet."""

    def is_edited(self, op: Operation) -> bool:
        """Whether plans with an operation are stale."""

    def take_back(self, operations: Iterable[Operation]) -> None:
        """Takes operations out of what it has made."""

    def settle(self, functions: Sequence[Any]) -> Any:
        """Lets earlier functions stand for equal ones that were just made, if there are any."""


class Observer:
    """What a graph tells and asks; this one knows no runs."""

    #: Whether code that built in the graph has run again.
    has_rerun = False
    #: Numbers of operations that the latest run has marked.
    marked: frozenset[int] = frozenset()

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        #: By the name of a variable's handle: what it is now, where a run made it another.
        self.restarts: dict[str, Op] = {}

    def attached(self) -> None:
        """The graph has it as its observer now, and is ready."""

    def begin(
        self,
        identity: Hashable,
        label: str | None = None,
        names: Callable[[], Mapping[str, Any]] = dict,
    ) -> Any:
        """Starts a run; see `Graph.cell`."""
        raise NotImplementedError

    def end(
        self,
        run: Any,
        how: Literal["whole", "broken off", "undone"],
        error: BaseException | None = None,
    ) -> Any:
        """Ends a run; returns what it did."""
        raise NotImplementedError

    def refusal(self, thing: Operation | Tensor) -> StaleError:
        """Returns the error for using something stale."""
        return StaleError(f'"{thing.name}" is stale')

    def is_current(self, read: Operation, handle: Tensor) -> bool:
        """Whether a read of a variable can be shared: made now, it would read the same."""
        return read.stale is None and read.order >= self._graph.last_write(handle)

    def has(self, op: Operation) -> bool:
        """Whether an operation is there."""
        return op.stale is None

    def hold(self, op: Operation) -> None:
        """Keeps an operation that an earlier run has made, and that is still used."""

    def note_owner(self, op: Operation, owner: Any) -> None:
        """Notes that an object (a variable) stands for an operation."""

    def owner(self, op: Operation) -> Any:
        """Returns the object that stands for an operation, None if there is none."""

    def note_value_read(self, tensor: Tensor) -> None:
        """Notes that building code has looked at a tensor's static value."""

    def note_shape(self, tensor: Tensor) -> None:
        """Notes what was inferred of a tensor, before its shape is set by hand."""

    @contextmanager
    def derived_from(self, sources: Callable[[], Iterable[Operation]]) -> Iterator[None]:
        """Notes that what is made in the block follows from looking at `sources`."""
        yield


#: What makes a graph's observer; `flowscope.cells` puts its own here.
observers: list[Callable[[Graph], Observer]] = [Observer]


__all__ = ["BuildRun", "Observer", "Stale", "observers"]
