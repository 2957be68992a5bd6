"""Circles of waits within one process: steps that wait for each other's queues and locks.

A step *waits* while its machine has nothing ready, and all that is on its way is at a queue, a lock
or another partition. Who could end such a wait are all steps on their way that touch the queue: one
that fills it, and also one that has taken an element and may give it back. A partition waits for
the partition that sends. A function of the user's may do anything: a step that waits for one counts
as one that runs, and so does a step that is held.

That all waits of a circle were there at one moment is proved by two looks. The second begins with a
copy of what steps are on their way; at that moment all steps waited that both looks show with the
same waits, for between the looks none of them can have gone on and come back: each wait has a
number of its own. Each of these waits is still with its queue at the second look, so that nobody
has ended it and has yet to tell.

Threads outside of these steps could run another step that fills the queue. So "nobody can go on" is
said only where there are none, but for those that are known to run no steps; else the steps are
told as waiting for each other. A handler of a signal is not thought of.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from flowscope.graph.current_step import steps_of_threads
from flowscope.ops.core.send_recv import Recv, Send
from flowscope.runtime.state.mutex_state import MutexState
from flowscope.runtime.state.queue_state import QueueState
from flowscope.runtime.waits.wait_graph import circles, stuck

if TYPE_CHECKING:
    from flowscope.plan.ir.program import Node
    from flowscope.runtime.step.step import Step

#: One wait: its number within the step, the operation, its state and since when.
_Wait = tuple[int, "Node", Any, float]

_THREADS = Path(__file__).parents[1] / "threads"
#: Files of threads that run no step unless one hands it to them.
_HELPERS = {
    str(_THREADS / name)
    for name in ("host_calls.py", "matrix_products.py", "native_pool.py", "thread_pool.py")
}
#: Where classes of threads of notebooks are that run no code of the user's.
_NOTEBOOK = {"IPython.core.history", "ipykernel.heartbeat", "ipykernel.iostream"}


class Awaiting(Protocol):
    """What a step's machine tells of its waits: see `flowscope.runtime.step.driver`."""

    finished: Any

    def awaited(self) -> list[_Wait]:
        """Returns the waits, from any thread."""


#: Held by the thread that has switched the collection of garbage off.
_collector = threading.Lock()


class _Look(NamedTuple):
    """What one look has shown.

    Attributes:
        threads: The threads that work for steps, and for which, innermost.
        waits: The steps on their way; per step that waits, its waits.
        running: The steps on their way that do not wait.
    """

    threads: Mapping[int, Step]
    waits: Mapping[Step, tuple[_Wait, ...]]
    running: frozenset[Step]


def circle(own: Step | None) -> str:
    """Returns how a step waits for itself in the end, as an error of it says it; "" if it does not.

    Args:
        own: The step, for which this thread works; None for none.
    """
    if own is None or own.awaits is None:
        return ""
    alive = _alive()
    first = _look()
    if not _circle_from(own, first):
        return ""
    second = _look()
    same = {s: w for s, w in second.waits.items() if first.waits.get(s) == w and _still_waits(s, w)}
    proved = _Look(second.threads, same, second.running | (second.waits.keys() - same.keys()))
    ring = _circle_from(own, proved)
    if not ring:
        return ""
    is_closed = not _outside(alive | _alive(), ring[1], proved)
    return _told(ring[0], proved, is_closed)


def _look() -> _Look:
    threads = dict(steps_of_threads)
    steps: dict[Step, None] = {}
    wholes = set()
    for one in threads.values():
        step: Step | None = one
        while step is not None:
            steps[step] = None
            if step.whole is not step:
                wholes.add(step.whole)
            step = step.around
    waits: dict[Step, tuple[_Wait, ...]] = {}
    running = set()
    for step in steps:
        if step in wholes and not step.unbegun:
            continue  # its partitions stand for it
        awaits = step.awaits
        found = () if awaits is None or awaits.finished else tuple(awaits.awaited())
        if found:
            waits[step] = found
        else:
            running.add(step)
    return _Look(threads, waits, frozenset(running))


def _still_waits(step: Step, waits: Iterable[_Wait]) -> bool:
    """True if all waits of a step are still with what they wait for."""
    counts: dict[Any, int] = {}
    for _, _, state, _ in waits:
        if state is not None:
            counts[state] = counts.get(state, 0) + 1
    return all(_waiters(state).count(step) == count for state, count in counts.items())


def _waiters(state: Any) -> list[Any]:
    if isinstance(state, QueueState):
        return [step for step, _ in state.waiters]
    return state.waiters if isinstance(state, MutexState) else []


def _circle_from(own: Step, look: _Look) -> tuple[list[Step], set[Step]] | None:
    """Returns a circle that a step leads to, and all steps that are stuck; None for none."""
    everybody = (*look.waits, *look.running)
    ends: dict[Step, list[Iterable[Step] | None]] = {
        step: [_could_end(step, wait, everybody) for wait in waits]
        for step, waits in look.waits.items()
    }
    held = stuck(ends)  # type: ignore[arg-type]
    found = circles([own] if own in held else [], lambda s: _fillers(s, look.waits[s], held))
    return (found[0], held) if found else None


def _could_end(step: Step, wait: _Wait, everybody: Iterable[Step]) -> tuple[Step, ...] | None:
    """Returns the steps that could end a wait; None where it may be others."""
    _, node, state, _ = wait
    if isinstance(node.op, Send | Recv):
        other = node.op.send_device if isinstance(node.op, Recv) else node.op.recv_device
        found = tuple(
            s for s in everybody if s.whole is step.whole and s is not step and s.device == other
        )
        return found or None
    if not isinstance(state, QueueState | MutexState) or getattr(state, "fills_itself", False):
        return None
    return tuple(s for s in everybody if _touches(s, state))


def _touches(step: Step, state: Any) -> bool:
    """True if a step may change a queue or a lock."""
    resources = getattr(step.call, "resources", None)
    return resources is None or any(one is state for one in resources)


def _fillers(step: Step, waits: Iterable[_Wait], held: set[Step]) -> list[Step]:
    """Returns the stuck steps that a step waits for: those whose operations end such waits."""
    found: dict[Step, None] = {}
    for wait in waits:
        _, node, state, _ = wait
        ends = _could_end(step, wait, held) or ()
        if isinstance(state, MutexState):
            ends = tuple(s for s in ends if s is state.holder)
        elif isinstance(state, QueueState):
            fact = "empties" if getattr(node.op, "fills", False) else "fills"
            ends = tuple(s for s in ends if _does(s, fact, state))
        found |= dict.fromkeys(ends)
    return list(found)


def _does(step: Step, fact: str, queue: QueueState) -> bool:
    """True if an operation of a step fills or empties a queue; in a body perhaps another one."""
    plan = step.call.plan
    states: dict[Node | None, Any] = dict(zip(plan.handles, step.call.resources, strict=True))
    return any(
        getattr(node.op, fact, False) and states.get(node.inputs[0].node, queue) is queue
        for node in plan.program.walk()
    )


# -- threads outside ----------------------------------------------------------------------------


def _files() -> dict[int, set[str]]:
    """The files whose code each thread runs, by the threads' numbers.

    No garbage is collected meanwhile: a collection may wait for a thread that waits for the lock
    which this holds (CPython #106883), and while one makes a frame's object another thread may end
    the frame. One thread at a time switches that off and on.
    """
    with _collector:
        is_collecting = gc.isenabled()
        gc.disable()
        try:
            return {ident: _files_of(frame) for ident, frame in sys._current_frames().items()}
        finally:
            if is_collecting:
                gc.enable()


def _files_of(frame: FrameType | None) -> set[str]:
    """The files of a frame and of those that have called it."""
    files = set()
    while frame is not None:
        files.add(frame.f_code.co_filename)
        frame = frame.f_back
    return files


def _alive() -> set[int]:
    """Returns the threads that run Python code, but for those that run no steps by themselves."""
    files = _files()
    known = {t.ident: t for t in threading.enumerate()}
    return {
        ident
        for ident, found in files.items()
        if ident not in known or not _is_helper(known[ident], found)
    }


def _is_helper(thread: threading.Thread, files: set[str]) -> bool:
    """True if a thread only helps steps, or writes what they print."""
    if type(thread).__module__ in _NOTEBOOK:
        return True
    own = files - {threading.__file__}
    return bool(own) and own <= _HELPERS


def _outside(alive: set[int], held: set[Step], look: _Look) -> bool:
    """True if a thread works for no stuck step."""
    busy = {step.whole if step.whole is not step else step for step in held} | held
    return any(look.threads.get(ident) not in busy for ident in alive)


# -- what is said -------------------------------------------------------------------------------


def _told(ring: list[Step], look: _Look, is_closed: bool) -> str:
    begin = (
        "nobody can go on"
        if is_closed
        else "these wait for each other, and only a step of another thread could end that"
    )
    links = [_link(step, ring[(i + 1) % len(ring)], look) for i, step in enumerate(ring)]
    return f"{begin}: {_name(ring[0])} " + ", which ".join(links)


def _link(step: Step, other: Step, look: _Look) -> str:
    """Says what one step waits for that another one, or itself, would have to do."""
    _, node, state, since = _wait_for(step, other, look)
    whose = "it itself" if other is step else _name(other)
    if isinstance(state, QueueState):
        does = "empties" if getattr(node.op, "fills", False) else "fills"
        what = f'{does} {state.kind} "{state.name}"'
    elif isinstance(state, MutexState):
        what = f'gives back the lock "{state.name}"'
    else:
        what = f'{"sends" if isinstance(node.op, Recv) else "reads"} "{node.name}"'
    return f'waits in "{node.name}" ({time.monotonic() - since:.2f} s) until {whose} {what}'


def _wait_for(step: Step, other: Step, look: _Look) -> _Wait:
    """Returns the longest wait of a step that another one is to end."""
    waits = look.waits[step]
    found = [wait for wait in waits if other in _fillers(step, (wait,), {other})]
    return min(found or waits, key=lambda wait: wait[3])


def _name(step: Step) -> str:
    """Returns how an error names a step: by its thread."""
    whole = step.whole
    thread = next((t.name for t in threading.enumerate() if t.ident == whole.thread), "ended")
    device = f"{step.device} in " if step.device else ""
    return f'{device}the step of thread "{thread}"'


__all__ = ["Awaiting", "circle"]
