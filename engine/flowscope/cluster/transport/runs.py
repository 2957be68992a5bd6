"""Runs: a message that starts something at a peer, and its answer, on a connection of its own.

Several may be under way at one peer, each on its own connection; connections are used again. At the
peer each has a thread, which does what the message says and answers.
"""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flowscope.cluster.transport.connections import Connection
from flowscope.cluster.transport.encoding.messages import Message, MessageReader, packed
from flowscope.cluster.transport.encoding.values import Data
from flowscope.errors import DeadlineExceededError, InternalError, OpError, UnavailableError
from flowscope.plan.analysis.locations import StopPoint
from flowscope.runtime.waits.rendezvous import Waiter
from flowscope.runtime.waits.waiting import OWN, is_wanted_elsewhere, owner, wait_for

#: So long a thread reads by itself before it waits at the gate, where its step can be held.
BRIEF_S = 0.005
#: The header of an answer where what was run has raised; no other header has it.
_RAISED = "raised"

#: What a peer does with a run: (peer, header, values) -> answer.
OnRun = Callable[[str, dict[str, Any], list[Any]], Message]


def read_some(connection: Connection, reader: MessageReader, flags: int = 0) -> bool:
    """Reads once; returns whether something came. Large arrays are read into their places."""
    target = reader.target
    if target is not None:
        count = connection.read_into(target, flags)
        reader.filled(count)
        return bool(count)
    data = connection.read(flags)
    reader.feed(data)
    return bool(data)


def serve(connection: Connection, peer: str, on_run: OnRun) -> None:
    """Does what comes on a run connection, until that ends."""
    reader = MessageReader()
    try:
        connection.limit_reads(0)
    except OSError as e:  # it has ended already
        connection.fail(e)
        return
    while True:
        try:
            read_some(connection, reader)
            message = reader.next()
        except (OSError, OpError) as e:
            connection.fail(e)
            return
        if message is not None:  # the next one comes when this one is answered
            connection.write(*_answer(peer, message, on_run))
            message = None  # its values are the step's


def _answer(peer: str, message: Message, on_run: OnRun) -> list[Any]:
    try:
        return packed(*on_run(peer, *message))
    except Exception as e:
        return packed({_RAISED: f"{type(e).__name__}: {e}"})


class RunConnection:
    """This end of a run connection: one run after the other.

    Args:
        peer: Who runs.
        connection: The connection.
        free: Takes it back when its answer has come.

    Attributes:
        peer, connection, free: As above.
        reader: Puts answers together.
        reading: Held by the thread that reads.
    """

    def __init__(
        self, peer: str, connection: Connection, free: Callable[[RunConnection], None]
    ) -> None:
        self.peer = peer
        self.connection = connection
        self.free = free
        self.reader = MessageReader()
        self.reading = threading.Lock()
        #: The run that was started last.
        self._run: PendingRun | None = None
        connection.on_ready = self._on_ready
        connection.on_failed = self._on_failed
        connection.limit_reads(BRIEF_S)

    def start(self, parts: Sequence[Data]) -> PendingRun:
        """Sends a run, the parts of a message."""
        run = self._run = PendingRun(self)
        connection = self.connection
        if connection.error is not None:
            run.fail(connection.error)
        if len(parts) == 1:
            connection.write_one(parts[0])
        else:
            connection.write(*parts)
        return run

    def _on_ready(self) -> None:
        if self._run is not None:
            self._run.read_all()

    def _on_failed(self, error: Exception) -> None:
        if self._run is not None:
            self._run.fail(error)


class LateAnswerError(DeadlineExceededError):
    """A peer has not answered within the time of the wait, which is none of the step's."""


class PendingRun:
    """A run whose answer has not been taken.

    Args:
        carrier: The connection.

    Attributes:
        peer: Who runs it.
        on_done: Is told once that it is done; on any thread, must be quick.
    """

    __slots__ = ("_answer", "_carrier", "_error", "on_done", "peer")

    def __init__(self, carrier: RunConnection) -> None:
        self.peer = carrier.peer
        self.on_done: Callable[[PendingRun], None] | None = None
        self._carrier = carrier
        self._answer: Message | None = None
        self._error: Exception | None = None

    @property
    def is_done(self) -> bool:
        """Whether `answer` returns at once."""
        return self._answer is not None or self._error is not None

    @property
    def is_cut(self) -> bool:
        """Whether its connection has ended before the answer came."""
        error = self._error
        return self._answer is None and error is not None and not isinstance(error, OpError)

    def wait(self, owned_by: Any = OWN, until: float | None = None) -> Message:
        """Returns the answer; see `flowscope.runtime.waits.waiting.wait_for`.

        Raises:
            LateAnswerError: if it does not come in time.
            UnavailableError: if the peer is lost or hangs.
        """
        if first_done([self], owned_by=owned_by, until=until) is None:
            raise LateAnswerError(f"{self.peer} has not answered in time")
        return self.answer()

    def answer(self) -> Message:
        """Returns the answer of a run that is done; see `wait`."""
        error = self._error
        if isinstance(error, UnavailableError):
            raise UnavailableError(error.message) from error
        if error is not None:
            raise UnavailableError(
                f"{self.peer} is lost: the connection on which it was to answer has ended ({error})"
            ) from error
        answer = self._answer
        if answer is None:
            raise InternalError(f"expected a run that is done, got one that {self.peer} runs")
        if _RAISED in answer[0]:
            raise InternalError(f"{self.peer} could not do what it was asked: {answer[0][_RAISED]}")
        return answer

    def abandon(self) -> None:
        """Gives up the answer: its connection is closed, and what comes is thrown away."""
        if not self.is_done:
            self.fail(ConnectionAbortedError("nobody waits for the answer any more"))
            self._carrier.connection.close()
            self._carrier.free(self._carrier)

    def read(self, flags: int = 0) -> bool:
        """Reads once, unless another thread does; returns whether there may be more."""
        carrier = self._carrier
        if not carrier.reading.acquire(False):
            return False
        try:
            # Once it is done, what comes is the answer of another run.
            is_done = self._answer is not None or self._error is not None
            if is_done or not read_some(carrier.connection, carrier.reader, flags):
                return False
            answer = self._answer = carrier.reader.next()
        except (OSError, OpError) as e:
            carrier.connection.fail(e)
            return False
        finally:
            carrier.reading.release()
        if answer is None:
            return True
        carrier.free(carrier)
        if self.on_done is not None:
            self.on_done(self)
        return False

    def read_all(self) -> None:
        """Reads what has come; has the poller go on where somebody waits for the rest."""
        while self.read(socket.MSG_DONTWAIT):
            pass
        if self.on_done is not None:
            self.watch()

    def watch(self) -> None:
        """Has the poller read the answer until it is there."""
        if not self.is_done:
            self._carrier.connection.want_read()

    def fail(self, error: Exception) -> None:
        """Ends the wait for the answer with an error, unless that has come."""
        if not self.is_done:
            self._error = error
            if self.on_done is not None:
                self.on_done(self)


class Answers:
    """The answers of several runs, which one thread takes.

    The thread reads them itself for a moment, one connection after the other: all of them are
    waited for, so it sleeps less often than if it woke for each. Then the poller reads, and the
    thread waits where its step can be held and ended.
    """

    def __init__(self, runs: Iterable[PendingRun]) -> None:
        self._waiter = Waiter()
        #: Those that are not done, and those that are and were not taken.
        self._open = dict.fromkeys(runs)
        self._done: deque[PendingRun] = deque()
        #: How many were not taken. Whoever hands an answer over takes it out of `_open` before it
        #: stands in `_done`: both may be empty for a moment, and one is still to come.
        self._left = len(self._open)
        self._is_watched = False
        for run in list(self._open):
            run.on_done = self._take
            if run.is_done:
                self._take(run)

    def _take(self, run: PendingRun) -> None:
        if self._open.pop(run, run) is None:  # told once, by any thread
            self._done.append(run)
            self._waiter.wake()

    def wake(self) -> None:
        """Has whoever waits look again; from any thread."""
        self._waiter.wake()

    def next(
        self,
        *,
        owned_by: Any = OWN,
        until: float | None = None,
        here: StopPoint | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> PendingRun | None:
        """Waits until one of the runs is done; returns it, once.

        Args:
            owned_by, until, here: See `flowscope.runtime.waits.waiting.wait_for`.
            is_over: Whether nobody wants the answers any more; `wake` has it looked at.

        Returns:
            None if the time is over, or it is over.
        """
        done = self._done
        if not done and not self._is_watched and not is_over():
            self._read_briefly(owner() if owned_by is OWN else owned_by)
        if not done and not self._watched():
            return None
        if not done and not wait_for(
            lambda: bool(done) or is_over(),
            self._waiter,
            what="for answers",
            until=until,
            owned_by=owned_by,
            here=here,
        ):
            return None
        if not done:
            return None
        self._left -= 1
        return done.popleft()

    def _watched(self) -> bool:
        """Has the poller read from now on; returns whether there is something to wait for."""
        if not self._is_watched:
            self._is_watched = True
            for run in list(self._open):
                run.read_all()
        return self._left > 0

    def _read_briefly(self, found: Any) -> None:
        """Reads the next answer for a moment, unless something is wanted of the owner."""
        for run in list(self._open)[:1]:
            while not is_wanted_elsewhere(found) and run.read():
                pass  # an array comes in pieces


def first_done(
    runs: Sequence[PendingRun], *, owned_by: Any = OWN, until: float | None = None
) -> PendingRun | None:
    """Waits until one of several runs is done; returns it, or None if the time is over.

    Args:
        runs: The runs, at least one.
        owned_by, until: See `flowscope.runtime.waits.waiting.wait_for`.
    """
    return Answers(runs).next(owned_by=owned_by, until=until)


__all__ = [
    "BRIEF_S",
    "Answers",
    "LateAnswerError",
    "OnRun",
    "PendingRun",
    "RunConnection",
    "first_done",
    "read_some",
    "serve",
]
