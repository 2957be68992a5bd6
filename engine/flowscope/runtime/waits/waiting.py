"""Waits for other threads and processes: what ends them early, and how long they last.

All waits of a cluster's client and workers go through here (`tests/architecture/test_waits.py`). A
wait has an *owner*: the step for which its thread works, or what the session prepares for one
(`Preparation`). A stop, a deadline or a signal that ends the owner ends the wait, with its error. A
wait may have a time of its own, at the end of which it returns; one without an owner must.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, TypeVar

from flowscope.errors import InternalError
from flowscope.graph.current_step import current_step, preparations_of_threads
from flowscope.plan.analysis.locations import StopPoint
from flowscope.runtime.waits.gate_states import Preparation
from flowscope.runtime.waits.rendezvous import Waiter

if TYPE_CHECKING:
    from concurrent.futures import Future

    from flowscope.runtime.step.step import Step
    from flowscope.runtime.waits.gate import Gate

#: So often one looks who may not be woken.
LOOK_S = 0.05
#: So long a thread that has been told to end may take.
ENDS_S = 10.0
#: So often one looks who is never woken.
_GLANCE_S = 0.02
#: The owner of most waits: what its thread works for.
OWN: Final = object()

Found = TypeVar("Found")


def owner() -> Step | Preparation | None:
    """The step, or the preparation of one, that this thread works for; None for neither."""
    found: Step | Preparation | None = preparations_of_threads.get(get_ident()) or current_step()
    return found


def check_owner() -> None:
    """Raises if what this thread works for is to end: after an error that may be of that."""
    found = owner()
    if found is not None:
        found.gate.check(found)


def is_wanted_elsewhere(found: Any) -> bool:
    """Whether an owner's gate is raised: who reads in place goes to where that is heard."""
    return found is not None and found.gate.raised


def wait_for(
    is_done: Callable[[], bool],
    waiter: Waiter,
    *,
    what: str,
    until: float | None = None,
    owned_by: Any = OWN,
    here: StopPoint | None = None,
    look_s: float = LOOK_S,
) -> bool:
    """Waits until something is so that others do; they wake the waiter when they have done it.

    Args:
        is_done: Whether it is so.
        waiter: Is woken.
        what: What is waited for, for errors: "for the answer of ...".
        until: When the wait is over, in seconds of the monotonic clock: infinity for one that ends
            by what `is_done` looks at in any case, None where its owner ends it.
        owned_by: What ends it early. By default what this thread works for; None for nothing: what
            has to be done in the end, whatever has been asked for meanwhile.
        here: What tells those who look where the step is.
        look_s: How often it is looked whether it is so by itself, in seconds.

    Returns:
        Whether it is so; False if its time is over.

    Raises: what ends its owner - CancelledError, DeadlineExceededError, what the handler of a
        signal raises - or InternalError if nothing would end it.
    """
    if is_done():
        return True
    found = owner() if owned_by is OWN else owned_by
    if found is None and until is None:
        raise InternalError(f"nothing would end the wait {what}: expected a time or an owner")
    end = math.inf if until is None else until
    if found is None or waiter.polls:
        return _wait_looking(is_done, waiter, found, end, _GLANCE_S if waiter.polls else look_s)
    if isinstance(found, Preparation):
        with found.waiting(waiter):
            return _wait_looking(is_done, waiter, found, end, LOOK_S)
    return _wait_at_gate(is_done, waiter, found.gate, end, here)


def _wait_looking(
    is_done: Callable[[], bool], waiter: Waiter, found: Any, end: float, look_s: float
) -> bool:
    """Waits, and looks now and then whether the owner is to end."""
    while not is_done():
        if found is not None:
            found.gate.check(found)
        left_s = end - time.monotonic()
        if left_s <= 0:
            return False
        waiter.sleep(min(left_s, look_s))
    return True


def _wait_at_gate(
    is_done: Callable[[], bool],
    waiter: Waiter,
    gate: Gate,
    end: float,
    here: StopPoint | None,
) -> bool:
    def is_over() -> bool:
        return is_done() or time.monotonic() >= end

    while not is_over():
        waiter.wait(is_over, gate, here, end)
    return is_done()


def result_of(
    future: Future[Found], *, what: str, until: float | None = None, owned_by: Any = OWN
) -> Found:
    """Waits for a future's result; see `wait_for`.

    Raises:
        TimeoutError: if its time is over.
    """
    waiter = Waiter()
    future.add_done_callback(lambda _: waiter.wake())
    if not wait_for(future.done, waiter, what=what, until=until, owned_by=owned_by):
        raise TimeoutError(f"waited {what} in vain")
    if future.cancelled():
        raise TimeoutError(f"waited {what} in vain: it was cancelled")
    return future.result(0)


def called_aside(
    function: Callable[[], Found], *, what: str, until: float | None = None, name: str
) -> Found:
    """Waits for a function of another library that has no timeout of its own.

    It runs on a thread that is left alone when the time is over; see `wait_for`.

    Raises:
        TimeoutError: if its time is over.
    """
    from concurrent.futures import Future  # sessions of one process never need it

    future: Future[Found] = Future()

    def call() -> None:
        try:
            future.set_result(function())
        except BaseException as e:
            future.set_exception(e)

    threading.Thread(target=call, name=name, daemon=True).start()
    return result_of(future, what=what, until=until)


def join(thread: threading.Thread, timeout_s: float) -> bool:
    """Waits for the end of a thread of ours, unless it is this one; returns whether it has come."""
    if thread is threading.current_thread() or thread.ident is None:
        return True
    thread.join(timeout_s)
    return not thread.is_alive()


def pause(seconds: float) -> None:
    """Does nothing for some time; its owner ends it."""
    wait_for(lambda: False, Waiter(), what="for some time", until=time.monotonic() + seconds)


class _LockWaiter(Waiter):
    """Sleeps until a lock is free, which it takes."""

    polls = True

    def __init__(self, lock: Any) -> None:
        super().__init__()
        self._wanted = lock
        self.has_it = False

    def try_it(self) -> bool:
        """Takes the lock if it is free; returns whether it has it."""
        self.has_it = self.has_it or self._wanted.acquire(False)
        return self.has_it

    def sleep(self, seconds: float) -> None:
        """Waits for the lock, so long at most."""
        self.has_it = self.has_it or self._wanted.acquire(True, seconds)


def acquire(lock: Any, what: str) -> None:
    """Takes a lock that others may hold for long; its owner ends the wait for it.

    Args:
        lock: The lock.
        what: What is waited for, for errors.
    """
    waiter = _LockWaiter(lock)
    try:
        wait_for(waiter.try_it, waiter, what=what, until=math.inf)
    except BaseException:
        if waiter.has_it:
            lock.release()
        raise


__all__ = [
    "ENDS_S",
    "LOOK_S",
    "OWN",
    "Preparation",
    "acquire",
    "called_aside",
    "check_owner",
    "is_wanted_elsewhere",
    "join",
    "owner",
    "pause",
    "result_of",
    "wait_for",
]
