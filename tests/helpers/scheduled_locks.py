"""Locks, events, queues, clocks and threads that a scheduler of `schedules` knows.

They do what those of `threading`, `time` and `queue` do. On a thread that no schedule runs the real
ones are made.
"""

from __future__ import annotations

import queue
import threading
import time
import types
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from schedules import Schedule, Task, schedule_here


def _here() -> Schedule:
    found = schedule_here()
    assert found is not None, "what was made in a schedule is used outside of it"
    return found


def _point() -> None:
    """Lets another thread go on, perhaps; what is collected later runs in no schedule."""
    run = schedule_here()
    if run is not None:
        run.point()


class Lock:
    """`threading.Lock`: any thread may release it."""

    def __init__(self) -> None:
        self._is_held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Takes it, once it is free."""
        run = _here()
        run.point()
        if self._is_held:
            if not blocking:
                return False
            seconds = None if timeout < 0 else timeout
            if not run.wait(lambda: not self._is_held, seconds, "a lock"):
                return False
        self._is_held = True
        return True

    def release(self) -> None:
        """Frees it."""
        if not self._is_held:
            raise RuntimeError("release unlocked lock")
        self._is_held = False
        _point()

    def locked(self) -> bool:
        """Whether somebody has it."""
        return self._is_held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class RLock:
    """`threading.RLock`."""

    def __init__(self) -> None:
        self._owner: Task | None = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Takes it, once it is free or the thread's own."""
        run = _here()
        run.point()
        me = run.current
        if self._owner not in (None, me):
            if not blocking:
                return False
            seconds = None if timeout < 0 else timeout
            if not run.wait(lambda: self._owner is None, seconds, "a lock"):
                return False
        self._owner = me
        self._count += 1
        return True

    def release(self) -> None:
        """Frees it, if it was acquired no more often."""
        run = _here()
        if self._owner is not run.current:
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if not self._count:
            self._owner = None
            run.point()

    def release_all(self) -> int:
        """Frees it for a wait; returns how often it was acquired."""
        count, self._count, self._owner = self._count, 0, None
        return count

    def acquire_again(self, count: int) -> None:
        """Takes it behind a wait."""
        run = _here()
        if self._owner is not None:
            run.wait(lambda: self._owner is None, None, "a lock")
        self._owner, self._count = run.current, count

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Condition:
    """`threading.Condition`, of an `RLock`."""

    def __init__(self, lock: RLock | None = None) -> None:
        self._lock = RLock() if lock is None else lock
        self._waiting: deque[list[bool]] = deque()

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until somebody notifies, so long at most."""
        told = [False]
        self._waiting.append(told)
        count = self._lock.release_all()
        try:
            return _here().wait(lambda: told[0], timeout, "a condition")
        finally:
            if told in self._waiting:
                self._waiting.remove(told)
            self._lock.acquire_again(count)

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """Waits until something is true, so long at most."""
        end = None if timeout is None else _here().now + timeout
        found = predicate()
        while not found and (end is None or _here().now < end):
            self.wait(None if end is None else end - _here().now)
            found = predicate()
        return found

    def notify(self, n: int = 1) -> None:
        """Wakes some of those who wait."""
        for _ in range(min(n, len(self._waiting))):
            self._waiting.popleft()[0] = True

    def notify_all(self) -> None:
        """Wakes all who wait."""
        self.notify(len(self._waiting))


class Event:
    """`threading.Event`."""

    def __init__(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        """Whether it has come."""
        return self._is_set

    def set(self) -> None:
        """Wakes all who wait."""
        self._is_set = True
        _point()

    def clear(self) -> None:
        """Has those wait who come later."""
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for it, so long at most."""
        run = _here()
        run.point()
        return self._is_set or run.wait(lambda: self._is_set, timeout, "an event")


class SimpleQueue:
    """`queue.SimpleQueue`."""

    def __new__(cls) -> Any:
        """Returns a real one outside of schedules."""
        return _SimpleQueue() if schedule_here() is None else super().__new__(cls)

    def __init__(self) -> None:
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        """Puts something in."""
        self._items.append(item)
        _point()

    def get(self) -> Any:
        """Takes something out, once there is something."""
        run = _here()
        run.point()
        if not self._items:
            run.wait(lambda: bool(self._items), None, "a queue")
        return self._items.popleft()

    def qsize(self) -> int:
        """Returns how much is in it."""
        return len(self._items)


class Thread:
    """`threading.Thread`; the schedule may end before it if it is a daemon."""

    def __init__(
        self,
        target: Callable[..., Any],
        args: tuple[Any, ...] = (),
        name: str = "thread",
        daemon: bool = False,
    ) -> None:
        self._function, self._args, self.name, self.daemon = target, args, name, daemon
        self._task: Task | None = None

    def start(self) -> None:
        """Starts it."""
        run = _here()
        self._task = run.start(lambda: self._function(*self._args), self.name, self.daemon)
        run.point()

    def join(self, timeout: float | None = None) -> None:
        """Waits for its end."""
        assert self._task is not None
        _here().join(self._task, timeout)

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._task is not None and not self._task.has_ended


_SimpleQueue = queue.SimpleQueue
_KINDS = {"Lock": Lock, "RLock": RLock, "Condition": Condition, "Event": Event, "Thread": Thread}


class _Threading:
    """Stands for the module `threading`."""

    def __getattr__(self, name: str) -> Any:
        kind = _KINDS.get(name)
        return getattr(threading, name) if kind is None or schedule_here() is None else kind


class _Time:
    """Stands for the module `time`."""

    def __getattr__(self, name: str) -> Any:
        run = schedule_here()
        if run is None:
            return getattr(time, name)
        if name == "sleep":
            return run.sleep
        if name.endswith("_ns"):
            return lambda: round(run.now * 1e9)
        return lambda: run.now


@contextmanager
def replaced(*modules: Any) -> Iterator[None]:
    """Has modules use these, for the time of the block."""
    stand_ins: dict[Any, Any] = {threading: _Threading(), time: _Time()}
    before = [
        (module, name, value)
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, types.ModuleType) and value in stand_ins
    ]
    for module, name, value in before:
        setattr(module, name, stand_ins[value])
    queue.SimpleQueue = SimpleQueue  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        queue.SimpleQueue = _SimpleQueue  # type: ignore[misc]
        for module, name, value in before:
            setattr(module, name, value)
