"""Runs: a message that starts something at a peer, and its answer, on a connection of its own.

Several may be under way at one peer, each on its own connection; connections are used again. At the
peer each has a thread, which does what the message says and answers.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from flowscope.cluster.transport.connections import Connection
from flowscope.cluster.transport.messages import Message, MessageReader, packed
from flowscope.errors import InternalError, OpError, UnavailableError
from flowscope.plan.locations import Here
from flowscope.runtime.rendezvous import Waiter, WaitingGate

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
    connection.limit_reads(0)
    while True:
        try:
            message = reader.next()
            if message is None:
                read_some(connection, reader)
                continue
        except (OSError, OpError) as e:
            connection.fail(e)
            return
        connection.write(*_answer(peer, message, on_run))
        del message  # its values are the step's


def _answer(peer: str, message: Message, on_run: OnRun) -> list[Any]:
    try:
        return packed(*on_run(peer, *message))
    except Exception as e:
        return packed({_RAISED: f"{type(e).__name__}: {e}"})


class RunConnection:
    """This end of a run connection.

    Args:
        peer: Who runs.
        connection: The connection.
        free: Takes it back when its answer has come.
    """

    def __init__(
        self, peer: str, connection: Connection, free: Callable[[RunConnection], None]
    ) -> None:
        self.peer = peer
        self.connection = connection
        self.free = free
        connection.limit_reads(BRIEF_S)

    def start(self, header: dict[str, Any], values: Sequence[Any]) -> PendingRun:
        """Sends a run."""
        parts = packed(header, values)
        run = PendingRun(self)
        self.connection.write(*parts)
        return run


class PendingRun:
    """A run whose answer has not been taken.

    Args:
        carrier: The connection.
    """

    def __init__(self, carrier: RunConnection) -> None:
        self.peer = carrier.peer
        self.waiter: Waiter | None = None
        self._carrier = carrier
        self._reader = MessageReader()
        self._reading = threading.Lock()
        self._answer: Message | None = None
        self._error: Exception | None = None
        connection = carrier.connection
        connection.on_ready = self._on_ready
        connection.on_failed = self._fail
        if connection.error is not None:
            self._fail(connection.error)

    @property
    def is_done(self) -> bool:
        """Whether `result` returns at once."""
        return self._answer is not None or self._error is not None

    def wait(self, gate: WaitingGate, here: Here | None = None) -> Message:
        """Returns the answer; stops, signals and deadlines end the wait as at a mailbox.

        Raises:
            UnavailableError: if the peer is lost.
        """
        first_done([self], gate, here)
        return self.result()

    def result(self) -> Message:
        """Returns the answer of a run that is done; see `wait`."""
        if self._error is not None:
            raise UnavailableError(
                f"{self.peer} is lost: the connection on which it was to answer has ended "
                f"({self._error})"
            ) from self._error
        answer = self._answer
        if answer is None:
            raise InternalError(f"expected a run that is done, got one that {self.peer} runs")
        if _RAISED in answer[0]:
            raise InternalError(f"{self.peer} could not do what it was asked: {answer[0][_RAISED]}")
        return answer

    def abandon(self) -> None:
        """Gives up the answer: its connection is closed, and what comes is thrown away."""
        if not self.is_done:
            self._fail(ConnectionAbortedError("nobody waits for the answer any more"))
            self._carrier.connection.close()
            self._carrier.free(self._carrier)

    def fileno(self) -> int:
        """Returns the descriptor of the socket that the answer comes from."""
        return self._carrier.connection.fileno()

    def read(self, flags: int = 0) -> bool:
        """Reads once, unless another thread does; returns whether there may be more."""
        if not self._reading.acquire(False):
            return False
        try:
            if self.is_done or not read_some(self._carrier.connection, self._reader, flags):
                return False
            answer = self._reader.next()
        except (OSError, OpError) as e:
            self._carrier.connection.fail(e)
            return False
        finally:
            self._reading.release()
        if answer is not None:
            self._answer = answer
            self._carrier.free(self._carrier)
            self._wake()
        return answer is None

    def watch(self, waiter: Waiter) -> None:
        """Has the poller read the answer, and wake somebody when it is there."""
        self.waiter = waiter
        if not self.is_done:
            self._carrier.connection.want_read()

    def _on_ready(self) -> None:
        while self.read(socket.MSG_DONTWAIT):
            pass
        if not self.is_done and self.waiter is not None:
            self._carrier.connection.want_read()

    def _fail(self, error: Exception) -> None:
        if not self.is_done:
            self._error = error
        self._wake()

    def _wake(self) -> None:
        waiter = self.waiter
        if waiter is not None:
            waiter.wake()


def first_done(
    runs: Sequence[PendingRun],
    gate: WaitingGate | None = None,
    here: Here | None = None,
    timeout_s: float | None = None,
) -> PendingRun | None:
    """Waits until one of several runs is done; returns it.

    Args:
        runs: The runs, at least one.
        gate: Where the thread waits; None where nothing but an answer or the time ends the wait.
        here: What tells those who look where the step is.
        timeout_s: How long to wait, where there is no gate; None for ever.

    Returns:
        None if the time is over.
    """
    if gate is None or not gate.raised:
        _read_briefly(runs, gate)
    if found := _done(runs):
        return found
    waiter = Waiter()
    for run in runs:
        run.watch(waiter)
    try:
        if gate is not None:
            waiter.wait(lambda: _done(runs) is not None, gate, here)
        else:
            end = None if timeout_s is None else time.monotonic() + timeout_s
            waiter.wait_on(lambda: _done(runs) is not None or _is_over(end))
    finally:
        for run in runs:
            run.waiter = None
    return _done(runs)


def _is_over(end: float | None) -> bool:
    return end is not None and time.monotonic() >= end


def _done(runs: Sequence[PendingRun]) -> PendingRun | None:
    for run in runs:
        if run.is_done:
            return run
    return None


def _read_briefly(runs: Sequence[PendingRun], gate: WaitingGate | None) -> None:
    if len(runs) == 1:
        while runs[0].read() and (gate is None or not gate.raised):
            pass  # an array comes in pieces
        return
    if _done(runs) is None:
        poll, open_runs = select.poll(), dict[int, PendingRun]()
        for run in runs:
            if (fd := run.fileno()) >= 0:  # its peer may have been lost just now
                open_runs[fd] = run
                poll.register(fd, select.POLLIN)
        for fd, _ in poll.poll(BRIEF_S * 1000) if open_runs else ():
            open_runs[fd].read(socket.MSG_DONTWAIT)


__all__ = ["BRIEF_S", "OnRun", "PendingRun", "RunConnection", "first_done", "read_some", "serve"]
