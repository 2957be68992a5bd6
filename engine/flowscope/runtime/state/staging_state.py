"""Staging areas as state: elements that may lack components, taken by order or by key.

An area without keys is one whose keys are counted: both are a table of entries, and a list of the
complete ones in the order in which they come out. What does not fit waits, first come first
served; who can have an element does not wait for one before it who cannot.

Source: what counts against the capacity and what against the memory limit is TensorFlow's.
"""

from __future__ import annotations

import bisect
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from flowscope.errors import InvalidArgumentError, ResourceExhaustedError
from flowscope.graph.current_step import current_step
from flowscope.ops.state.containers.queue_ops import StagingAreaHandle
from flowscope.runtime.state.queue_state import Finish, QueueState, call_all, note_put, note_taken

#: Components by number.
Parts = dict[int, Any]


class _Moved:
    """Components of one element that a step has put in or taken out."""

    __slots__ = ("key", "parts", "rank")

    def __init__(self, key: int, rank: int, parts: Parts) -> None:
        self.key = key
        self.rank = rank
        self.parts = parts


class _Entry:
    """An element, complete or not; `rank` says when it comes out."""

    __slots__ = ("parts", "rank")

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.parts: Parts = {}


class _Put:
    """Components that wait for space; a key of None is counted."""

    __slots__ = ("finish", "key", "parts", "since", "step")

    def __init__(self, key: int | None, parts: Parts, finish: Finish) -> None:
        self.step = current_step()
        self.since = time.monotonic()
        self.key = key
        self.parts = parts
        self.finish = finish


class Wish:
    """What a step wants of an area.

    Args:
        key: The element's; None: the next one, or of a peek the one at `position`.
        position: Of a peek in an area without keys.
        indices: Numbers of the components.
        is_peek: Whether the element stays in.
    """

    __slots__ = ("finish", "indices", "is_peek", "key", "position", "since", "step")

    def __init__(
        self, key: int | None, indices: Sequence[int], is_peek: bool = False, position: int = 0
    ) -> None:
        self.step = current_step()
        self.since = time.monotonic()
        self.key = key
        self.position = position
        self.indices = indices
        self.is_peek = is_peek
        self.finish: Finish = _nobody


class StagingState(QueueState):
    """A staging area, with keys or without.

    Attributes:
        memory_limit: Most bytes; 0: no limit.
        is_ordered: Whether elements come out by key, and not by age.
    """

    family = "staging area"
    identity: ClassVar[tuple[str, ...]] = (
        "kind", "capacity", "memory_limit", "is_ordered", "dtypes", "shapes",
    )  # fmt: skip

    __slots__ = ("_entries", "_next", "_order", "_used", "is_ordered", "kind", "memory_limit")

    def __init__(self, handle: StagingAreaHandle) -> None:
        capacity = handle.capacity or 2**62
        super().__init__(handle.shared_name, capacity, handle.dtypes, handle.shapes)
        self.kind = "MapStagingArea" if handle.has_keys else "StagingArea"
        self.memory_limit = handle.memory_limit
        self.is_ordered = handle.is_ordered
        self._entries: dict[int, _Entry] = {}
        #: (rank, key) of the complete elements, the next one first.
        self._order: list[tuple[int, int]] = []
        self._used = 0
        self._next = 0

    # -- what is asked of it ----------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of complete elements."""
        return len(self._order)

    @property
    def incomplete_size(self) -> int:
        """Number of elements that lack components."""
        return len(self._entries) - len(self._order)

    @property
    def nbytes(self) -> int:
        """Bytes of all components."""
        return self._used

    def _contents(self) -> Iterable[tuple[Any, ...]]:
        return [tuple(entry.parts.values()) for entry in self._entries.values()]

    # -- what is done to it -----------------------------------------------------------------------

    def put_parts(self, key: int | None, parts: Parts) -> bool:
        """Puts components in if nobody waits and there is space; returns whether it did.

        Args:
            key: The element's; None: it is counted.
            parts: The components by number.

        Raises:
            InvalidArgumentError: if the element has one of the components already.
            ResourceExhaustedError: if they are larger than the memory limit.
        """
        wait = self._checked(key, parts, _nobody)
        with self._lock:
            self._check_free(key, parts)
            if self._enqueues or not self._has_space(wait):
                return False
            self._put_in(wait)
            done = self._pump()
        call_all(done)
        return True

    def stage(self, key: int | None, parts: Parts, finish: Finish) -> Callable[[], None]:
        """Puts components in, waiting for space; returns what gives the wait up.

        Args:
            key, parts: As of `put_parts`.
            finish: Called once: with (), or with what `put_parts` raises.
        """
        wait = self._checked(key, parts, finish)
        with self._lock:
            self._enqueues[wait] = None  # type: ignore[index]
            done = self._pump()
        call_all(done)
        return lambda: self._leave(self._enqueues, wait)

    def _checked(self, key: int | None, parts: Parts, finish: Finish) -> _Put:
        size = _nbytes(parts)
        if self.memory_limit and size > self.memory_limit:
            raise ResourceExhaustedError(
                f'{self.kind} "{self.name}" has a memory limit of {self.memory_limit} bytes, and '
                f"{size} are to be put in"
            )
        return _Put(key, parts, finish)

    #: What a step wants of it.
    wish = Wish

    def unstage(self, wish: Wish, finish: Finish) -> Callable[[], None] | Any:
        """Takes or shows components; returns what gives the wait up.

        Args:
            wish: What is wanted.
            finish: Called once: with the key and a list of the components.
        """
        wish.finish = finish
        with self._lock:
            self._dequeues[wish] = None  # type: ignore[index]
            done = self._pump()
        call_all(done)
        return lambda: self._leave(self._dequeues, wish)

    def serve(self, wish: Wish) -> tuple[int, list[Any]] | None:
        """Takes or shows components if they are there; returns the key and them."""
        with self._lock:
            found = self._served(wish)
            done = self._pump() if found is not None else []
        call_all(done)
        return found

    def empty(self) -> None:
        """Drops all elements. Who waits goes on waiting."""
        with self._lock:
            self._drop_all()
            done = self._pump()
        call_all(done)

    def clear(self) -> None:
        """Makes it new: empty. Who waits gets a CancelledError."""
        with self._lock:
            self._drop_all()
        super().clear()

    def take_back(self, put: Sequence[Sequence[Any]]) -> bool:
        """Takes out the components that a step has put in; returns whether all were there."""
        is_whole = True
        with self._lock:
            for moved in [m for some in put for m in some]:
                if not isinstance(moved, _Moved):
                    is_whole = False
                    continue
                entry = self._entries.get(moved.key)
                own = {} if entry is None else entry.parts
                there = [i for i, v in moved.parts.items() if i in own and own[i] is v]
                is_whole = is_whole and len(there) == len(moved.parts)
                if there:
                    self._remove_parts(moved.key, there)
            done = self._pump()
        call_all(done)
        return is_whole

    def give_back(self, taken: Sequence[Sequence[Any]]) -> None:
        """Puts back what a step has taken, where nobody has put the same components in since."""
        with self._lock:
            for moved in [m for some in taken for m in some]:
                entry = self._entries.get(moved.key)
                own = {} if entry is None else entry.parts
                missing = {i: v for i, v in moved.parts.items() if i not in own}
                self._add_parts(moved.key, moved.rank, missing)
            done = self._pump()
        call_all(done)

    # -- with the lock held -----------------------------------------------------------------------

    def _pump(self) -> list[tuple[Finish, Any]]:
        done: list[tuple[Finish, Any]] = []
        while self._fill(done) | self._drain(done):
            pass
        return done

    def _fill(self, done: list[tuple[Finish, Any]]) -> bool:
        moved = False
        puts: OrderedDict[Any, None] = self._enqueues
        while puts and self._has_space(wait := next(iter(puts))):
            del puts[wait]
            try:
                self._check_free(wait.key, wait.parts)
            except InvalidArgumentError as e:
                done.append((wait.finish, e))
                continue
            self._put_in(wait)
            done.append((wait.finish, ()))
            moved = True
        return moved

    def _drain(self, done: list[tuple[Finish, Any]]) -> bool:
        moved = False
        wishes: OrderedDict[Any, None] = self._dequeues
        for wish in list(wishes):
            found = self._served(wish)
            if found is not None:
                del wishes[wish]
                done.append((wish.finish, found))
                moved = moved or not wish.is_peek
        return moved

    def _has_space(self, wait: _Put) -> bool:
        """Whether components fit: an element that they complete counts against the capacity."""
        if self.memory_limit and self._used + _nbytes(wait.parts) > self.memory_limit:
            return False
        entry = None if wait.key is None else self._entries.get(wait.key)
        has = len(wait.parts) + (0 if entry is None else len(entry.parts))
        return has < len(self.dtypes) or len(self._order) < self.capacity

    def _check_free(self, key: int | None, parts: Parts) -> None:
        entry = None if key is None else self._entries.get(key)
        if entry is not None and not parts.keys().isdisjoint(entry.parts):
            raise InvalidArgumentError(
                f'the key {key} has these components already, in {self.kind} "{self.name}"'
            )

    def _put_in(self, wait: _Put) -> None:
        key = self._next if wait.key is None else wait.key
        rank = key if self.is_ordered else self._next
        self._next += 1
        self._add_parts(key, rank, wait.parts)
        note_put(self, wait.step, [_Moved(key, rank, wait.parts)])  # type: ignore[list-item]

    def _add_parts(self, key: int, rank: int, parts: Parts) -> None:
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(rank)
        was_complete = len(entry.parts) == len(self.dtypes)
        entry.parts |= parts
        self._used += _nbytes(parts)
        if len(entry.parts) == len(self.dtypes) and not was_complete:
            bisect.insort(self._order, (entry.rank, key))

    def _remove_parts(self, key: int, indices: Iterable[int]) -> Parts:
        entry = self._entries[key]
        if len(entry.parts) == len(self.dtypes):
            del self._order[bisect.bisect_left(self._order, (entry.rank, key))]
        taken = {i: entry.parts.pop(i) for i in indices}
        self._used -= _nbytes(taken)
        if not entry.parts:
            del self._entries[key]
        return taken

    def _served(self, wish: Wish) -> tuple[int, list[Any]] | None:
        """Takes or shows components, if they are there."""
        key = wish.key
        if key is None:
            if wish.position >= len(self._order):
                return None
            key = self._order[wish.position][1]
        entry = self._entries.get(key)
        if entry is None or not all(i in entry.parts for i in wish.indices):
            return None
        values = [entry.parts[i] for i in wish.indices]
        if not wish.is_peek:
            rank = entry.rank
            taken = self._remove_parts(key, wish.indices)
            note_taken(self, wish.step, [_Moved(key, rank, taken)])  # type: ignore[list-item]
        return key, values

    def _drop_all(self) -> None:
        self._entries.clear()
        self._order.clear()
        self._used = 0


def _nbytes(parts: Parts) -> int:
    return sum([_bytes_of(v) for v in parts.values()])


def _bytes_of(value: Any) -> int:
    if isinstance(value, bytes):
        return len(value)
    if value.dtype.kind == "O":
        return sum(map(len, value.reshape(-1).tolist()))
    return int(value.nbytes)


def _nobody(result: Any) -> None:
    """Is told nothing."""


__all__ = ["StagingState", "Wish"]
