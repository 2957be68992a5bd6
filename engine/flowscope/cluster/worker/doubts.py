"""Variables of a host that are in doubt: what their clients say of them, and who asks.

The outcome of a step's update groups comes with the next message of its client, by itself where the
step has failed or somebody may want it, and as an answer to who wants a value before that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from flowscope.cluster.transport.channel import StepId
from flowscope.cluster.worker.owners import HostOwner
from flowscope.errors import CancelledError, FailedPreconditionError, UnavailableError
from flowscope.graph.current_step import current_step
from flowscope.runtime.state.device_variable import PlacedVariable
from flowscope.runtime.state.resources import VariableState
from flowscope.runtime.state.shared_updates import Doubt, SharedUpdates
from flowscope.runtime.step.split import DerivedError
from flowscope.runtime.step.step import Step

#: So often a client that has not answered is asked again.
_AGAIN_S = 0.25
#: So long who wants a value waits for a client whose connection is lost to come back.
_COMES_BACK_S = 2.0
#: So long who wants a value outside of a step waits for the answer.
_ANSWERS_S = 10.0

#: So many outcomes are kept of what is not known here.
_MOST_EARLY = 1000
#: What a held step keeps is a group of this name.
HELD = "held"

#: How many of each group are written; None where all that have begun are.
Outcome = Mapping[str, int] | None


class _Updates:
    """The update groups of a step of several processes, until their outcome is known here.

    Args:
        client: The name of the step's client.
        updates: The groups.
        stop: Ends the step.

    Attributes:
        client, updates, stop: As above.
        doubt: What is in doubt; None before the groups are closed.
        told: The outcomes that have come before that.
        is_closed: Whether the step writes for no group any more.
        is_forgotten: Whether the client does not know the outcome any more.
        is_held: Whether it is what a held step keeps: its operations come one at a time.
        busy: How many of these run here.
        is_over: Whether no other one comes: the client was lost.
        changed: Is told when something is known.
    """

    def __init__(
        self, client: str, updates: SharedUpdates, stop: Callable[[], None], is_held: bool = False
    ) -> None:
        self.client, self.updates, self.stop = client, updates, stop
        self.doubt: Doubt | None = None
        self.told: list[Outcome] = []
        self.is_closed = self.is_forgotten = self.is_over = False
        self.is_held, self.busy = is_held, 0
        self.changed = threading.Condition()


class WorkerDoubts:
    """What is in doubt on a host, by steps.

    Args:
        host: The host.
    """

    def __init__(self, host: HostOwner) -> None:
        self._host = host
        self._steps: dict[StepId, _Updates] = {}
        #: Those that are at work on a group though their outcome is known.
        self._told: dict[StepId, _Updates] = {}
        self._lock = threading.Lock()
        #: The outcomes of what is not known here: a message may be overtaken by its outcome.
        self._early: dict[StepId, Outcome] = {}

    def begin(
        self, number: StepId, client: str, updates: SharedUpdates, stop: Callable[[], None]
    ) -> None:
        """Notes that a step begins that writes for groups of several processes.

        Args:
            number: The step.
            client: The name of its client.
            updates: The groups.
            stop: Ends the step, which has failed elsewhere.
        """
        self._steps[number] = _Updates(client, updates, stop)

    # -- what held steps keep -------------------------------------------------------------------

    def keep(
        self, number: StepId, client: str, whole: Step, state: VariableState | PlacedVariable
    ) -> None:
        """Keeps the value of a variable for a held step, and others from writing, until it is told.

        Args:
            number: The number of the update, which no other has.
            client: The name of the step's client.
            whole: What the step's operations are parts of here.
            state: The variable.

        Raises:
            DerivedError: if the step has ended meanwhile.
        """
        one = _Updates(client, SharedUpdates(whole, (HELD,)), _nothing, is_held=True)
        one.busy = 1
        with self._lock:
            self._steps[number] = one
            if number in self._early:
                one.told.append(self._early.pop(number))
        one.is_over = not self._host.endpoint.is_connected(client)
        try:
            one.updates.begin(HELD, [state])
        finally:
            self._leave(number, one)
        if one.is_closed:
            raise DerivedError("the step has ended")

    @contextmanager
    def operating(self, numbers: Iterable[StepId]) -> Iterator[None]:
        """Lets an operation of a held step run, which may write what some updates keep.

        Raises:
            DerivedError: if one of them is over: the operation would write behind its end.
        """
        entered: list[tuple[StepId, _Updates]] = []
        try:
            for number in numbers:
                one = self._steps.get(number)
                if one is None or not self._enter(one):
                    raise DerivedError("the step has ended")
                entered.append((number, one))
            yield
        finally:
            for number, one in entered:
                self._leave(number, one)

    @staticmethod
    def _enter(one: _Updates) -> bool:
        with one.changed:
            is_open = not (one.told or one.is_over or one.is_closed)
            one.busy += is_open
            return is_open

    def _leave(self, number: StepId, one: _Updates) -> None:
        with one.changed:
            one.busy -= 1
            if not one.busy and (one.told or one.is_over):
                self._close(number, one, is_over=True)

    def client_lost(self, client: str) -> None:
        """Has what a client's held steps keep be in doubt."""
        for number, one in list(self._steps.items()):
            if one.is_held and one.client == client:
                with one.changed:
                    one.is_over = True
                    if not one.busy:
                        self._close(number, one, is_over=True)

    # -- outcomes -------------------------------------------------------------------------------

    def end(self, number: StepId) -> None:
        """Has what is not settled of a step be in doubt: nothing of it runs here any more."""
        one = self._steps.get(number)
        if one is not None:
            self._close(number, one, is_over=True)

    def written(self, number: StepId) -> dict[str, int]:
        """Returns how many of each group of a step are known here to be written everywhere."""
        one = self._steps.get(number)
        return {} if one is None or one.doubt is None else one.doubt.written

    def heed(self, client: str, message: Mapping[str, Any]) -> None:
        """Takes the outcomes that a client has sent with a message; waits for nothing."""
        for uid, number, outcome in message.get("settled", ()):
            self.told(StepId(uid, number), outcome)

    def wait_for_news(self, client: str, header: Mapping[str, Any]) -> None:
        """Takes the outcomes that have come with a run, which finds all of them done.

        Raises:
            FailedPreconditionError: if a step that has failed elsewhere still writes here.
        """
        if "settled" in header:
            self.heed(client, header)
        for number, one in list(self._told.items()) if self._told else ():
            with one.changed:
                if not one.changed.wait_for(partial(getattr, one, "is_closed"), _ANSWERS_S):
                    raise FailedPreconditionError(
                        f"step {number.number} of {one.client}, which has failed elsewhere, is "
                        "still at work on an update here: run this again later"
                    )

    def told(self, number: StepId, outcome: Outcome, is_forgotten: bool = False) -> None:
        """Takes the outcome of a step, as far as it is known.

        Args:
            number: The step.
            outcome: The outcome.
            is_forgotten: Whether the client does not know it any more.
        """
        with self._lock:
            one = self._steps.get(number)
            if one is None:
                self._early[number] = outcome
                while len(self._early) > _MOST_EARLY:
                    del self._early[next(iter(self._early))]
                return
        one.is_forgotten = one.is_forgotten or is_forgotten
        if not is_forgotten:
            with one.changed:
                one.told.append(outcome)
                if one.busy:
                    self._told[number] = one  # what runs closes it
            if not one.is_closed:
                one.stop()
            if not one.busy:
                self._close(number, one, is_over=one.is_held)
        with one.changed:
            one.changed.notify_all()

    def _close(self, number: StepId, one: _Updates, is_over: bool) -> None:
        """Closes the groups of a step, if none is open or the step is over; does what was told."""
        with one.changed:
            if not one.is_closed:
                if not one.updates.close(partial(self._wait, number, one), is_over):
                    self._told[number] = one
                    return
                self._told.pop(number, None)
                one.is_closed, one.doubt = True, one.updates.doubt
            if (doubt := one.doubt) is not None:
                doubt.on_settled = partial(self._forget, number)
                for outcome in one.told:
                    doubt.conclude(outcome)
            one.told.clear()
            if doubt is None or doubt.is_settled:
                self._forget(number)
            one.changed.notify_all()

    def _forget(self, number: StepId) -> None:
        self._steps.pop(number, None)

    def _wait(self, number: StepId, one: _Updates, state: VariableState) -> None:
        """Waits until a variable is not in doubt any more.

        Raises:
            FailedPreconditionError: if the outcome cannot be told.
            CancelledError: if the step that wants the value ends.
        """
        begin = connected = time.monotonic()
        doubt = one.doubt
        while doubt is not None and state.doubt is doubt:
            now = time.monotonic()
            if one.is_forgotten:
                raise FailedPreconditionError(f"{one.client} does not know it any more")
            if self._ask(number, one):
                connected = now
            elif now - connected > _COMES_BACK_S:
                raise FailedPreconditionError(f"{one.client}, which has run it, is gone")
            self._check(one, now - begin)
            with one.changed:
                if state.doubt is doubt and not one.is_forgotten:
                    one.changed.wait(_AGAIN_S)

    @staticmethod
    def _check(one: _Updates, seconds: float) -> None:
        step = current_step()
        if step is None:
            if seconds > _ANSWERS_S:
                raise FailedPreconditionError(f"{one.client}, which has run it, does not answer")
        elif step.is_stopping or step.whole.is_stopping:
            raise CancelledError("the step ends, and waits for no outcome any more")

    def _ask(self, number: StepId, one: _Updates) -> bool:
        """Asks the client; returns whether it is connected."""
        endpoint = self._host.endpoint
        message = {
            "kind": "step.ask",
            "step": number.number,
            "ended": self.written(number),
            "incarnation": endpoint.incarnation,
        }
        with suppress(UnavailableError):
            endpoint.tell(one.client, message)
            return True
        return False


def _nothing() -> None:
    return None


__all__ = ["HELD", "Outcome", "WorkerDoubts"]
