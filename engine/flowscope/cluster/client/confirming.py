"""What a client's step took from queues of tasks: confirmed before `run` returns, or given back.

The tasks' side is `flowscope.cluster.worker.taken_elements`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection
from typing import Any

from flowscope.cluster.shipping import failures
from flowscope.cluster.transport.channel import StepId
from flowscope.cluster.transport.endpoint import Endpoint
from flowscope.cluster.transport.runs import Answers, PendingRun
from flowscope.errors import OpError, UnavailableError
from flowscope.runtime.step.split import SplitStep


class Confirming:
    """Confirms what one step took, or has it given back.

    Args:
        endpoint: The client's end.
        split: The client's part of the step.
        step: The step.

    Attributes:
        tasks: Who keeps what the step took there until this client has it.
    """

    __slots__ = ("_endpoint", "_split", "_step", "tasks")

    def __init__(self, endpoint: Endpoint, split: SplitStep, step: StepId) -> None:
        self.tasks: set[str] = set()
        self._endpoint = endpoint
        self._split = split
        self._step = step

    def confirm(self) -> None:
        """Tells the tasks that this client has what they keep; the step has ended well then.

        Raises:
            UnavailableError: if a task has given it back, for it had given this client up.
        """
        split = self._split
        pending: dict[PendingRun, str] = {}
        try:
            for task in sorted(self.tasks):
                pending[self._endpoint.start_run(task, self._message("step.confirm"), ())] = task
        except BaseException as e:
            split.failed(e)
        answers = Answers(pending)
        while pending and not split.is_ending:
            try:
                done = answers.next(is_over=lambda: split.is_ending)
                if done is not None:
                    del pending[done]
                    _check(done)
            except BaseException as e:
                split.failed(e)
        for run in pending:
            run.abandon()
        self._hear()
        split.close()
        split.step.is_settled = True
        self._settle()

    def give_back(self, lost: Collection[str], within_s: float) -> None:
        """Waits until what the step took is in its queues again.

        Args:
            lost: Tasks that are not asked.
            within_s: Who has not answered by then, in seconds, is left alone.
        """
        end = time.monotonic() + within_s
        asked = []
        for task in self.tasks.difference(lost):
            with contextlib.suppress(UnavailableError):  # it is gone, and its queues
                asked.append(self._endpoint.ask(task, self._message("step.give_back")))
        for question in asked:
            with contextlib.suppress(OpError):  # it is gone meanwhile, or hangs
                question.result(end, owned_by=None)

    def _hear(self) -> None:
        """Is held, stopped or late here, where that is meant for the end of the step."""
        gate = self._split.gate
        try:
            if gate.raised:
                gate.hold(-2)
        except BaseException as e:
            self._split.failed(e)

    def _settle(self) -> None:
        for task in self.tasks:
            with contextlib.suppress(UnavailableError):  # it keeps nothing any more
                self._endpoint.tell(task, self._message("step.settled"))

    def _message(self, kind: str) -> dict[str, Any]:
        return {"kind": kind, "client": self._step.client, "step": self._step.number}


def _check(run: PendingRun) -> None:
    answer, _ = run.answer()
    if "error" in answer:
        raise failures.of_answer(answer, ())


__all__ = ["Confirming"]
