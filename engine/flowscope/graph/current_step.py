"""The step for which a thread works now: ops and states ask it what is the step's.

A thread works for one step at a time, the innermost where one runs inside of another; a step may
have several threads, and each of them is noted here while it works for the step. The runtime does
that. A dict by thread is read and written in half the time of a context variable, and a step of one
operation notices.

In a forked process the threads of its parent do not run. What is noted of them here is forgotten
there, and whoever has threads forgets them, before any code of the child runs. A test when work is
handed out would come too late: two threads of the child might both find that the threads are gone,
and each would take away what the other has just started.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Protocol


class CurrentStep(Protocol):
    """What ops ask of the step that runs them.

    Attributes:
        left_call: The operation whose function was started and left to the executor, and its call.
        pool: The threads that share large kernels; None where no kernel of the plan multiplies.
        channel: What the partition that runs sends and receives through; None where all of the
            step is one program.
        whole: The step that it is a part of: itself, where no partition of one runs.
    """

    left_call: tuple[Any, Any] | None
    pool: Any
    channel: Any
    whole: Any

    def call_function(self, function: Callable[[], Any]) -> Any:
        """The result of a function of the user's."""

    def start_function(self, function: Callable[[], Any]) -> Any:
        """Starts a function on a thread of its own; returns its `HostCall`."""


#: The steps by the threads that work for them.
steps_of_threads: dict[int, Any] = {}


#: What sessions prepare outside of steps, by the threads that do it.
preparations_of_threads: dict[int, Any] = {}


#: Begins a function on a thread of the process, and returns what waits for its end; the runtime
#: puts it in, for floors that have no threads.
background: list[Callable[[Callable[[], None]], Callable[[], None]]] = []


def check_preparation() -> None:
    """Raises if what this thread prepares is to end; planning asks between two passes."""
    found = preparations_of_threads.get(get_ident())
    if found is not None:
        found.check()


#: Returns the number of this thread.
current_thread = get_ident


def current_step() -> Any:
    """Returns the step for which this thread works, None for none."""
    return steps_of_threads.get(get_ident())


@contextmanager
def working_for(step: Any) -> Iterator[None]:
    """Notes that this thread helps a step for the time of the block; None for no step."""
    me = get_ident()
    steps_of_threads[me] = step
    try:
        yield
    finally:
        del steps_of_threads[me]


class ThreadOwner(Protocol):
    """Has threads of its own."""

    def before_fork(self) -> None:
        """Lets its threads leave libraries: a lock that is copied while it is held stays held."""

    def forget_threads(self) -> None:
        """Becomes as new: the threads that it has started do not run in this process."""


_thread_owners: weakref.WeakSet[ThreadOwner] = weakref.WeakSet()


def forget_when_forked(owner: ThreadOwner) -> None:
    """Prepares an owner of threads for forks, and has it forget them in the forked process."""
    _thread_owners.add(owner)


def _before_fork() -> None:
    for owner in list(_thread_owners):
        owner.before_fork()


def _forget_threads() -> None:
    for found in (steps_of_threads, preparations_of_threads):
        for thread in [t for t in found if t != get_ident()]:
            del found[thread]
    for owner in list(_thread_owners):
        owner.forget_threads()


if hasattr(os, "register_at_fork"):  # where processes can be forked
    os.register_at_fork(before=_before_fork, after_in_child=_forget_threads)

__all__ = [
    "CurrentStep",
    "check_preparation",
    "current_step",
    "current_thread",
    "forget_when_forked",
    "preparations_of_threads",
    "steps_of_threads",
    "working_for",
]
