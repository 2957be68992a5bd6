"""What a client does of a step over several workers while that is paused or has breakpoints."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flowscope.cluster.debug.paused_step import JointPlan, PausedClusterStep
from flowscope.cluster.shipping import failures
from flowscope.cluster.transport.channel import StepId
from flowscope.cluster.transport.runs import Answers
from flowscope.errors import UnavailableError
from flowscope.runtime.step.split import SplitStep

if TYPE_CHECKING:
    from flowscope.cluster.client.session import ClusterSession
    from flowscope.cluster.transport.runs import PendingRun

#: So long a task may take to say where its partitions stand.
_ANSWERS_S = 10.0


class PauseCoordinator:
    """What is done of one step while it is paused, and what its tasks are asked about it then.

    Args:
        session: The session's part in the cluster.
        number: The step.
        split: The client's part of it.
        plan: Its partitions.
    """

    def __init__(
        self, session: ClusterSession, number: StepId, split: SplitStep, plan: JointPlan
    ) -> None:
        self._session = session
        self._endpoint = session.cluster.endpoint
        self._id = number
        self._split = split
        self._plan = plan
        #: Whether all tasks have their messages, and not all have answered.
        self._is_under_way = False
        self._joint: PausedClusterStep | None = None
        self._joining = threading.Lock()
        #: What waits for answers about it.
        self._asking: set[Answers] = set()

    @property
    def can_be_stepped(self) -> bool:
        """Whether the step can be stepped through once it is paused."""
        return self._split.takes_turns

    @property
    def asks(self) -> bool:
        """Whether the step has breakpoints, which were set after it had begun."""
        return any(self._split.step.call.tests.names) and self.can_be_stepped

    def begin(self) -> None:
        """Notes that all tasks have their messages; the step may have been paused before."""
        self._is_under_way = True
        if self._split.gate.raised or self.asks:
            self.join()

    def rearm(self) -> None:
        """Has the step go on by turns, if it has breakpoints: what stands for it asks at them."""
        self.join()
        joint = self._joint
        if joint is not None and self.asks:
            joint.keep_turns()

    def join(self) -> None:
        """Has something stand for the whole step while it is paused or has breakpoints."""
        with self._joining:
            if not self._is_under_way or self._joint is not None or not self._split.takes_turns:
                return
            is_held = self._split.gate.state in ("pausing", "paused", "stepping")
            if not is_held and not self.asks:
                return
            for one in self._split.runs:
                if one.step is not None:
                    one.step.takes_turns = True
            self._joint = PausedClusterStep(self, self._split, self._plan)
            self._joint.start()

    @property
    def is_joined(self) -> bool:
        """Whether something stands for the whole step, which is paused."""
        return self._joint is not None

    def joint_ended(self, is_left: bool) -> None:
        """Notes that nothing stands for it any more.

        Args:
            is_left: Whether it goes on to its end, or is over; else a pause may have come.
        """
        with self._joining:
            self._joint = None
        if not is_left:
            self.join()

    def end(self) -> None:
        """Notes that the step is over."""
        with self._joining:
            self._is_under_way, joint = False, self._joint
        for answers in list(self._asking):
            answers.wake()
        if joint is not None:
            joint.end()

    @property
    def is_alone(self) -> bool:
        """Whether no other step of the session is on its way."""
        return len(self._session.steps) == 1

    def let_go(self) -> None:
        """Lets the partitions on all tasks go on, whatever the gate of this process does."""
        self._session.tell({"kind": "gate", "request": "resume"})

    def start(self, task: str, header: dict[str, Any], values: Sequence[Any] = ()) -> PendingRun:
        """Asks a task something about its partitions of this step."""
        about = {"client": self._id.client, "step": self._id.number}
        return self._endpoint.start_run(
            task, {**header, **about, "session": self._session.number}, values
        )

    def result(self, pending: PendingRun) -> tuple[dict[str, Any], list[Any]]:
        """A task's answer: facts, and arrays.

        Raises:
            UnavailableError: if it does not, or the step is over.
        """
        answers = Answers([pending])
        self._asking.add(answers)
        try:
            # A stop ends the step itself, and with it the wait.
            until = time.monotonic() + _ANSWERS_S
            done = answers.next(owned_by=None, until=until, is_over=lambda: not self._is_under_way)
        finally:
            self._asking.discard(answers)
        if done is None:
            pending.abandon()
            raise UnavailableError(f"{pending.peer} does not answer about a step that is held")
        answer, values = pending.answer()
        if "error" in answer:
            raise failures.of_answer(answer, ())
        return answer, list(values)


__all__ = ["PauseCoordinator"]
