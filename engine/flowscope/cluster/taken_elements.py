"""What steps took out of this host's queues and their clients have not got for certain.

A step that has ended well here may still fail: on another host, by a stop, or because its client
dies before the answer has come. So what it took is kept, and the client confirms it before its
`run` returns; a client that was given up meanwhile is refused, for the elements are back. One that
has confirmed has the elements, unless it tells that the step has failed after all.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from flowscope.cluster.transport.channel import StepId
from flowscope.errors import UnavailableError
from flowscope.runtime.queue_transactions import QueueTransaction


class _Taken(NamedTuple):
    """What one step took, its client's name, and whether that has confirmed it."""

    queues: QueueTransaction
    client: str
    is_confirmed: bool


class TakenElements:
    """The elements that steps took on one host, until their clients have them.

    Args:
        host: The host's name.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._taken: dict[StepId, _Taken] = {}

    def __len__(self) -> int:
        return len(self._taken)

    def keep(self, number: StepId, client: str, queues: QueueTransaction) -> None:
        """Keeps what a step took that has ended well here."""
        with self._lock:
            self._taken[number] = _Taken(queues, client, False)

    def give_back(self, number: StepId) -> None:
        """Gives back what a step took, if it is not settled."""
        with self._lock:
            found = self._taken.pop(number, None)
        if found is not None:
            found.queues.give_back()

    def client_lost(self, client: str) -> None:
        """Gives back what the steps of a client took that it has not confirmed."""
        with self._lock:
            lost = [number for number, one in self._taken.items() if one.client == client]
            found = [self._taken.pop(number) for number in lost]
        for one in reversed(found):  # each goes to the front
            if not one.is_confirmed:
                one.queues.give_back()

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

    def on_give_back(self, peer: str, message: dict[str, Any]) -> dict[str, Any]:
        """Gives back what a step took that has failed elsewhere; it is back when this answers."""
        self.give_back(_number(message))
        return {}

    def on_settled(self, peer: str, message: dict[str, Any]) -> None:
        """Lets go of what a step took: all hosts have heard that its client has it."""
        with self._lock:
            self._taken.pop(_number(message), None)


def _number(told: dict[str, Any]) -> StepId:
    return StepId(told["client"], told["step"])


__all__ = ["TakenElements"]
