"""What steps took out of this host's queues and their clients have not got for certain.

A step that has ended well here may still fail: on another host, by a stop, or because its client
dies before the answer has come. So what it took is kept, and the client confirms it before its
`run` returns; a client that was given up meanwhile is refused, for the elements are back. One that
has confirmed has the elements, unless it tells that the step has failed after all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flowscope.cluster.transport.channel import StepId
from flowscope.cluster.transport.endpoint import Endpoint
from flowscope.cluster.transport.runs import LateAnswerError
from flowscope.errors import InternalError, UnavailableError
from flowscope.runtime.state.queue_transactions import QueueTransaction
from flowscope.runtime.waits.rendezvous import Waiter
from flowscope.runtime.waits.waiting import wait_for

#: So long another host has for an answer before it is asked again.
_ANSWERS_S = 2.0


class _Taken(NamedTuple):
    """What one step took, its client's name, whether that has confirmed it; who else writes."""

    queues: QueueTransaction
    client: str
    is_confirmed: bool
    writers: Sequence[str]


class TakenElements:
    """The elements that steps took on one host, until their clients have them.

    Args:
        host: The host's name.
        endpoint: Its end of the connections: other hosts are asked what they have written.
    """

    def __init__(self, host: str, endpoint: Endpoint) -> None:
        self._host = host
        self._endpoint = endpoint
        #: Those about which others are asked.
        self._asking: dict[StepId, Waiter] = {}
        self._lock = threading.Lock()
        self._taken: dict[StepId, _Taken] = {}

    def __len__(self) -> int:
        return len(self._taken) + len(self._asking)

    def keep(
        self, number: StepId, client: str, queues: QueueTransaction, writers: Sequence[str] = ()
    ) -> None:
        """Keeps what a step took that has ended here.

        Args:
            number, client: The step, and the name of its client.
            queues: What it took.
            writers: The other hosts that may have written something in it.
        """
        with self._lock:
            self._taken[number] = _Taken(queues, client, False, writers)

    def give_back(self, number: StepId) -> Waiter | None:
        """Gives back what a step took, if it is not settled and nobody has written in it.

        Returns:
            What is woken when that is done; None where it is.
        """
        done = Waiter()
        with self._lock:
            found = self._taken.pop(number, None)
            if found is None:
                return self._asking.get(number)
            if found.writers:
                self._asking[number] = done
        if not found.writers:
            found.queues.give_back()
            return None
        threading.Thread(target=self._ask, args=(number, found, done), daemon=True).start()
        return done

    def _ask(self, number: StepId, found: _Taken, done: Waiter) -> None:
        """Gives back what a step took, unless another host has written in it."""
        if not any(self._has_written(number, host) for host in found.writers):
            found.queues.give_back()
        with self._lock:
            del self._asking[number]
        done.wake()

    def _has_written(self, number: StepId, host: str) -> bool:
        """Whether a host has written in a step, which has ended there then.

        One that stands still is waited for; with one that is gone went what it had written.
        """
        message = {"kind": "step.wrote", "client": number.client, "step": number.number}
        while True:
            try:
                question = self._endpoint.ask(host, message)
                answer = question.result(time.monotonic() + _ANSWERS_S, owned_by=None)
                return bool(answer["wrote"])
            except LateAnswerError:
                continue
            except (UnavailableError, InternalError):
                return False

    def client_lost(self, client: str) -> None:
        """Gives back what the steps of a client took that it has not confirmed."""
        with self._lock:
            lost = {number: one for number, one in self._taken.items() if one.client == client}
            for number in [n for n, one in lost.items() if one.is_confirmed]:
                del self._taken[number]
        for number in reversed(lost):  # each goes to the front
            self.give_back(number)

    # -- what clients tell ------------------------------------------------------------------------

    def on_confirm(
        self, peer: str, header: dict[str, Any], values: list[Any]
    ) -> tuple[dict[str, Any], list[Any]]:
        """Notes that a step's client has its values.

        Raises:
            UnavailableError: if the elements were given back.
        """
        number = _number(header)
        with self._lock:
            found = self._taken.get(number)
            if found is not None:
                self._taken[number] = found._replace(is_confirmed=True)
        if found is None:
            raise UnavailableError(
                f"{self._host} has put the elements that this step took back into their queues: "
                "it had lost this client, or had heard nothing of it for too long. Run the step "
                "again"
            )
        return {}, []

    def on_give_back(
        self, peer: str, message: dict[str, Any]
    ) -> dict[str, Any] | Callable[[], dict[str, Any]]:
        """Gives back what a step took that has failed elsewhere; it is back when this answers."""
        number = _number(message)
        asking = self.give_back(number)
        if asking is None:
            return {}

        def wait() -> dict[str, Any]:
            until = time.monotonic() + _ANSWERS_S
            is_done = lambda: number not in self._asking  # noqa: E731
            wait_for(is_done, asking, what="for other hosts", until=until, owned_by=None)
            return {}

        return wait

    def on_settled(self, peer: str, message: dict[str, Any]) -> None:
        """Lets go of what a step took: all hosts have heard that its client has it."""
        with self._lock:
            self._taken.pop(_number(message), None)


def _number(told: dict[str, Any]) -> StepId:
    return StepId(told["client"], told["step"])


__all__ = ["TakenElements"]
