"""Placement for views: what was chosen and why, what a move would change, and what it did."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Literal

from flowscope.errors import OpError
from flowscope.live.answers.asking import Asked, Send, answers, refusals
from flowscope.live.protocol.placement_schema import (
    AskPlacement,
    CandidateState,
    MovePrediction,
    MoveState,
    MoveWish,
    OpPlacementState,
    Placement,
)
from flowscope.ops.core.send_recv import Transfer
from flowscope.plan.ir.program import Node
from flowscope.plan.plan import Plan
from flowscope.runtime.devices.fake import FakeDevice
from flowscope.runtime.planning.placement import Move, OpPlacement, placement_of, predict_move_of
from flowscope.runtime.session.session import Session

#: Of larger programs no candidates are told: that takes more than a moment.
MOST_EXPLAINED = 3000
#: Steps before a move whose mean time is told.
MEASURED = 8


class Placing:
    """Answers what views ask about devices, and moves what they want moved."""

    def __init__(self) -> None:
        #: What was explained of which plan: an operation is looked at again and again.
        self._explained: tuple[Plan | None, dict[str, OpPlacementState]] = (None, {})
        #: The latest times at which steps were counted: (steps, nanoseconds spent in them).
        self._samples: deque[tuple[int, int]] = deque(maxlen=MEASURED + 1)
        self._session: Session | None = None
        self._moved: MoveState | None = None
        #: Steps and nanoseconds when all steps that ran at the move had ended.
        self._since: tuple[int, int] | None = None

    def answer(self, session: Session | None, asked: AskPlacement) -> Placement:
        """Returns the answer to a question about devices."""
        told = Placement(asked.request_id, "", None, None, asked.view)
        if session is None:
            return replace(told, error="no session runs this graph")
        plan = session.latest_plan
        if plan is None:
            return told
        if asked.device:
            return replace(told, move=_predicted(session, plan, asked))
        return replace(told, op=self._op(session, plan, asked.name))

    def move(self, session: Session, wish: MoveWish) -> str:
        """Moves an operation or a scope; returns what was done.

        Raises:
            InvalidArgumentError: if that cannot be; it says which constraint forbids it.
        """
        self.look(session)
        plan = session.latest_plan
        told = None if plan is None else _predict(session, plan, wish)
        move = session.move(_meant(wish), wish.device)
        told = told or move
        before = _mean(self._samples[0], self._samples[-1])
        clock: Literal["wall", "simulated"] = "simulated" if is_simulated(session) else "wall"
        self._moved = MoveState(
            wish.name, wish.device, told.before_s, told.after_s, before, None, clock
        )
        self._since = None if session.running else (session.steps, _time_ns(session))
        return f'"{wish.name}" stands on {wish.device} from the next step on'

    def look(self, session: Session) -> MoveState | None:
        """Counts the session's steps; returns what is known of the latest move."""
        if session is not self._session:
            self._session, self._moved, self._since = session, None, None
            self._samples.clear()
        now = session.steps, _time_ns(session)
        if not self._samples or self._samples[-1][0] != now[0]:
            self._samples.append(now)
        if self._moved is not None and self._since is None and not session.running:
            self._since = now
        if self._moved is not None and self._since is not None and now[0] > self._since[0]:
            self._moved = replace(self._moved, measured_after_s=_mean(self._since, now))
        return self._moved

    def _op(self, session: Session, plan: Plan, name: str) -> OpPlacementState | None:
        """Returns where an operation stands; None where the plan has no node of it."""
        if self._explained[0] is not plan:
            self._explained = plan, {}
        node = next((n for n in plan.program.walk() if _is_of(n, name)), None)
        if node is None:
            return None
        known = self._explained[1]
        if not known and len(plan.operations) <= MOST_EXPLAINED:
            known.update((p.name, _told(p)) for p in placement_of(session, plan))
        found = node.op.type, node.requested, node.device, node.reason
        return known.get(name) or OpPlacementState(name, *found, candidates=())


def _is_of(node: Node, name: str) -> bool:
    is_own = not isinstance(node.op, Transfer)  # that has its maker's origins
    return is_own and any(origin.name == name for origin in node.origins)


def _told(one: OpPlacement) -> OpPlacementState:
    candidates = tuple([CandidateState(c.device, c.seconds, c.reason) for c in one.candidates])
    return OpPlacementState(one.name, one.type, one.requested, one.device, one.reason, candidates)


def _predicted(session: Session, plan: Plan, asked: AskPlacement) -> MovePrediction:
    found = _predict(session, plan, asked)
    return MovePrediction(
        asked.device, found.before_s, found.after_s, found.moved_bytes, found.refused or ""
    )


def _meant(asked: AskPlacement | MoveWish) -> str | tuple[str, ...]:
    return asked.parts or asked.name


def _predict(session: Session, plan: Plan, asked: AskPlacement | MoveWish) -> Move:
    try:
        return predict_move_of(session, plan, _meant(asked), asked.device)
    except OpError as e:
        return Move(None, None, 0, str(e).partition("\n")[0])


def is_simulated(session: Session) -> bool:
    """Whether a session has simulated devices, which have a clock of their own."""
    return any(isinstance(device, FakeDevice) for device in session.devices)


def _time_ns(session: Session) -> int:
    """The time of all steps so far; with simulated devices, on their virtual clock."""
    clock = next((d.clock for d in session.devices if isinstance(d, FakeDevice)), None)
    return session.busy_ns if clock is None else int(clock.now_s * 1e9)


def _mean(begin: tuple[int, int], end: tuple[int, int]) -> float | None:
    """Returns the mean seconds of the steps between two times; None where none ended."""
    steps = end[0] - begin[0]
    return (end[1] - begin[1]) * 1e-9 / steps if steps else None


@answers(AskPlacement)
def _live(channel: Asked, asked: AskPlacement, send: Send) -> None:
    send(channel.placing.answer(channel.session, asked))


@refusals(AskPlacement)
def _refused(asked: AskPlacement, why: str) -> Placement:
    return Placement(asked.request_id, why, None, None, asked.view)


__all__ = ["Placing", "is_simulated"]
