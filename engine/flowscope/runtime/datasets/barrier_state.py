"""Barriers as state: a queue by number of complete elements, and those that lack components.

Source: the rules of closing, and numbers that begin at the least int64, are TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import get_ident
from typing import Any

import numpy as np

from flowscope.errors import CancelledError, InvalidArgumentError
from flowscope.graph.current_step import current_step
from flowscope.graph.values.string_values import as_bytes
from flowscope.ops.state.containers.queue_ops import BarrierHandle
from flowscope.runtime.datasets.queue_kinds import PriorityQueueState
from flowscope.runtime.state.queue_state import Element, call_all, note_put

_LEAST = -(2**63)


class _Piece:
    """A component of an element, as a step has put it in."""

    __slots__ = ("entry", "number", "value")

    def __init__(self, entry: _Entry, number: int, value: Any) -> None:
        self.entry = entry
        self.number = number
        self.value = value


class _Entry:
    """An element, complete or not."""

    __slots__ = ("index", "key", "pieces")

    def __init__(self, index: int, key: bytes) -> None:
        self.index = index
        self.key = key
        self.pieces: dict[int, _Piece] = {}


class BarrierState(PriorityQueueState):
    """A queue of (number, key, components), whose elements are put together of components."""

    kind = "Barrier"

    __slots__ = ("_begun", "_count", "_incomplete", "_is_cancelled", "_ready_entries")

    def __init__(self, name: str, handle: BarrierHandle) -> None:
        super().__init__(name, handle)
        self._count = len(handle.dtypes) - 2
        self._begun = 0
        self._is_cancelled = False
        self._incomplete: dict[bytes, _Entry] = {}
        #: The complete ones, by number, until they are taken.
        self._ready_entries: dict[int, _Entry] = {}

    @property
    def incomplete_size(self) -> int:
        """Number of elements that lack components."""
        return len(self._incomplete)

    def insert_many(self, component: int, keys: Sequence[Any], values: Sequence[Any]) -> None:
        """Puts a component of elements in: of all of them, or of none where one is refused."""
        names = [as_bytes(key) for key in keys]
        self._failures.pop(get_ident(), None)
        with self._lock:
            self._check(component, names)
            pieces = [self._put_piece(component, k, v) for k, v in zip(names, values, strict=True)]
            note_put(self, current_step(), pieces)  # type: ignore[arg-type]
            done = self._pump()
        call_all(done)

    def close(self, cancel_pending_enqueues: bool = False) -> None:
        """Takes no new keys in; with the flag no components either.

        Raises:
            CancelledError: if it is closed and nothing is to be cancelled.
        """
        if cancel_pending_enqueues:
            with self._lock:
                self._is_cancelled = True
                self._incomplete.clear()
        super().close(cancel_pending_enqueues)

    def clear(self) -> None:
        """Makes it new: open and empty. Who waits gets a CancelledError."""
        with self._lock:
            self._incomplete.clear()
            self._ready_entries.clear()
            self._is_cancelled = False
        super().clear()

    def take_back(self, put: Sequence[Sequence[Any]]) -> bool:
        """Takes out the components that a step has put in; returns whether all were there."""
        with self._lock:
            pieces = [p for some in put for p in some if isinstance(p, _Piece)]
            count = sum([self._take_piece(p) for p in pieces])
            is_whole = count == sum(map(len, put))
            done = self._pump()
        call_all(done)
        return is_whole

    # -- with the lock held -----------------------------------------------------------------------

    def _check(self, component: int, keys: Sequence[bytes]) -> None:
        if self._is_cancelled:
            raise CancelledError(f'{self.kind} "{self.name}" is closed, and was cancelled')
        fresh: set[bytes] = set()
        for key in keys:
            entry = self._incomplete.get(key)
            if key in fresh or (entry is not None and component in entry.pieces):
                raise InvalidArgumentError(
                    f"the key {key!r} has a value for component {component} already, in "
                    f'{self.kind} "{self.name}"'
                )
            fresh.add(key)
            if entry is None and self._is_closed:
                raise CancelledError(
                    f'{self.kind} "{self.name}" is closed: the key {key!r} is new, and only those '
                    "that are in can be completed"
                )

    def _put_piece(self, component: int, key: bytes, value: Any) -> _Piece:
        entry = self._incomplete.get(key)
        if entry is None:
            entry = self._incomplete[key] = _Entry(_LEAST + self._begun, key)
            self._begun += 1
        piece = entry.pieces[component] = _Piece(entry, component, value)
        if len(entry.pieces) == self._count:
            del self._incomplete[key]
            self._ready_entries[entry.index] = entry
            self._add([self._element_of(entry)])
        return piece

    def _take_piece(self, piece: _Piece) -> bool:
        """Takes a component out; returns whether it was there."""
        entry = piece.entry
        if self._ready_entries.get(entry.index) is entry:
            if entry.key in self._incomplete:  # the key has begun another element since
                return False
            del self._ready_entries[entry.index]
            at = next(e for e in self._elements if int(e[2][0]) == entry.index)
            self._remove({id(at[2])})
            self._incomplete[entry.key] = entry
        if self._incomplete.get(entry.key) is not entry:
            return False
        del entry.pieces[piece.number]
        if not entry.pieces:
            del self._incomplete[entry.key]
        return True

    def _element_of(self, entry: _Entry) -> Element:
        values = [entry.pieces[i].value for i in range(self._count)]
        return (np.int64(entry.index), entry.key, *values)

    def _pull(self, count: int) -> list[Element]:
        found = super()._pull(count)
        for element in found:
            self._ready_entries.pop(int(element[0]), None)
        return found

    def _is_at_end(self) -> bool:
        return self._is_closed and not self._incomplete


__all__ = ["BarrierState"]
