"""What views are told of queues, of who waits at them, and of runners, coordinators and hooks."""

from __future__ import annotations

import time
import weakref
from collections import defaultdict, deque
from typing import Any

from flowscope.graph.current_step import steps_of_threads
from flowscope.live.protocol.input_schema import HelperState, QueueState, QueueWait
from flowscope.runtime.session.helpers import Helper
from flowscope.runtime.session.session import Session
from flowscope.runtime.state.queue_state import QueueState as Queue
from flowscope.runtime.step.step import Step

#: Seconds over which elements are counted.
_WINDOW_S = 2.0
#: Waits of a queue that are told, and helpers.
_MOST_WAITS, _MOST_HELPERS = 8, 64


class QueueMeter:
    """Counts the elements that are taken from queues."""

    def __init__(self) -> None:
        #: (time, elements taken so far) of each queue.
        self._samples: weakref.WeakKeyDictionary[Queue, deque[tuple[float, int]]]
        self._samples = weakref.WeakKeyDictionary()

    def per_s(self, queue: Queue) -> float | None:
        """Takes a sample; elements a second, None where none were taken lately."""
        now_s = time.monotonic()
        samples = self._samples.setdefault(queue, deque())
        samples.append((now_s, queue.taken))
        while len(samples) > 2 and now_s - samples[1][0] >= _WINDOW_S:
            samples.popleft()
        since_s, before = samples[0]
        moved = queue.taken - before
        return float(f"{moved / (now_s - since_s):.3g}") if moved > 0 and now_s > since_s else None


def queue_states(session: Session, meter: QueueMeter | None) -> tuple[QueueState, ...]:
    """How full the queues are that steps have used, and who waits at them."""
    waits = _waits(session)
    return tuple([
        QueueState(
            op, queue.size, queue.capacity, *queue.waiting, queue.is_closed, queue.fills_itself,
            least=getattr(queue, "min_after_dequeue", 0),
            per_s=None if meter is None else meter.per_s(queue),
            waits=tuple(waits.get(id(queue), ())[:_MOST_WAITS]),
            error=_told(queue.failure),
            stamp=getattr(queue, "stamp", None),
            dropped=getattr(queue, "dropped", 0),
        )
        for op, queue in session.queues.items()
        if queue.kind != "FeedableIterator"  # it stands for another
    ])  # fmt: skip


def helper_states(session: Session) -> tuple[HelperState, ...]:
    """The runners, coordinators and hooks of a session, and what they wait for."""
    found = list(session.helpers)[:_MOST_HELPERS]
    return tuple([
        HelperState(one.kind, one.name, one.operation, _doing(one), one.has_failed)
        for one in found
    ])  # fmt: skip


def _doing(helper: Helper) -> str:
    if helper.text or helper.thread is None:
        return helper.text
    step = steps_of_threads.get(helper.thread)
    if step is None:
        return "between two steps"
    waits = [_wait(*one[1:]) for one in _awaited(step)]
    if not waits:
        return "held in a pause" if step.held else "runs"
    first, state = waits[0]
    if not isinstance(state, Queue):
        return f'waits in "{first.name}"'
    seconds = f" for {first.seconds} s" if first.seconds else ""
    return f'waits for {first.kind} in "{state.name}"{seconds}'


def _waits(session: Session) -> dict[int, list[QueueWait]]:
    found: dict[int, list[QueueWait]] = defaultdict(list)
    for step in session.gate.inside:
        for _, node, state, since in _awaited(step):
            if isinstance(state, Queue):
                found[id(state)].append(_wait(node, state, since)[0])
    for waits in found.values():
        waits.sort(key=lambda one: -one.seconds)
    return found


def _awaited(step: Step) -> list[tuple[int, Any, Any, float]]:
    awaiting = step.awaits
    return [] if awaiting is None else awaiting.awaited()


def _wait(node: Any, state: Any, since: float) -> tuple[QueueWait, Any]:
    origin = node.origins[0] if node.origins else None
    seconds = int(time.monotonic() - since)
    number = None if origin is None else origin.id
    what = "gradients" if getattr(state, "family", "") == "accumulator" else "elements"
    kind = "space" if getattr(node.op, "fills", False) else what
    return QueueWait(number, node.name, kind, seconds), state  # type: ignore[arg-type]


def _told(error: BaseException | None) -> str:
    return "" if error is None else f"{type(error).__name__}: {error}".partition("\n")[0]


__all__ = ["QueueMeter", "helper_states", "queue_states"]
