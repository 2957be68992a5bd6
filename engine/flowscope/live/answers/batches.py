"""Work that would hold up all messages, done on a thread of its own, a batch at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Batches(Generic[T]):
    """Hands items to a function on a thread: those that come while it works, together afterwards.

    The thread ends when nothing is left to do.

    Args:
        name: The thread's name.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._waiting: list[T] = []
        self._is_working = False

    def put(self, item: T, work: Callable[[list[T]], None]) -> None:
        """Has an item worked on: by `work`, or by that of an item before it."""
        with self._lock:
            self._waiting.append(item)
            is_first, self._is_working = not self._is_working, True
        if is_first:
            threading.Thread(target=self._run, args=(work,), name=self._name, daemon=True).start()

    def _run(self, work: Callable[[list[T]], None]) -> None:
        while True:
            with self._lock:
                items, self._waiting = self._waiting, []
                self._is_working = bool(items)
            if not items:
                return
            work(items)


__all__ = ["Batches"]
