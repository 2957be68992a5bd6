"""Control messages: questions, answers and what is told, on a connection that is always read.

One thread of the endpoint reads those of all its peers and does what comes, in its order: so
handlers must be quick. A handler with more to do returns a function, which runs on a thread of its
own. What takes long goes by a run.
"""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from flowscope.cluster.transport.connections import Connection
from flowscope.cluster.transport.encoding.messages import MessageReader, packed
from flowscope.cluster.transport.runs import LateAnswerError, read_some
from flowscope.errors import InternalError, OpError, UnavailableError
from flowscope.runtime.waits.rendezvous import Waiter
from flowscope.runtime.waits.waiting import OWN, wait_for

Answer = dict[str, Any] | None
#: What a peer's message leads to: (peer, message) -> answer, or None for nothing to say; or a
#: function that returns the answer, on a thread of its own.
OnCall = Callable[[str, dict[str, Any]], Answer | Callable[[], Answer]]

#: Each connection is read by another thread, and over Dask's ports they overtake each other: so
#: much later than the end of another one a goodbye may be read, of sockets and over Dask's ports.
_GOODBYE_S, _LATE_GOODBYE_S = 0.5, 1.0
_ASK, _TELL, _ANSWER, _RAISED, _GOODBYE = "ask", "tell", "answer", "raised", "goodbye"


class PendingAnswer:
    """A message whose answer has not been taken.

    Args:
        peer: Who is asked.
        kind: The message's kind, for errors.
        forget: Is told that nobody waits for the answer any more.

    Attributes:
        answered: When the answer came, by `time.perf_counter`.
    """

    def __init__(self, peer: str, kind: str, forget: Callable[[], Any]) -> None:
        self._peer = peer
        self._kind = kind
        self._forget = forget
        self._waiter = Waiter()
        self._is_done = False
        self.answered = 0.0
        self._answer: dict[str, Any] = {}
        self._error: OpError | None = None

    def told(self, answer: dict[str, Any], error: OpError | None = None) -> None:
        """Takes the answer, or the error in the place of one."""
        self._answer, self._error = answer, error
        self.answered = time.perf_counter()
        self._is_done = True
        self._waiter.wake()

    def result(self, until: float, owned_by: Any = OWN) -> dict[str, Any]:
        """Returns the answer; waits for it until a time of the monotonic clock.

        Raises:
            LateAnswerError: if it does not come in time, a DeadlineExceededError.
            UnavailableError: if the peer is lost, or hangs.
            InternalError: if the peer's handler has raised.
        """
        begun = time.monotonic()
        what = f"for the answer of {self._peer} to {self._kind!r}"
        try:
            is_there = wait_for(
                lambda: self._is_done, self._waiter, what=what, until=until, owned_by=owned_by
            )
        finally:
            self._forget()
        if not is_there:
            raise LateAnswerError(
                f"{self._peer} has not answered {self._kind!r} within {until - begun:.3g} s"
            )
        if self._error is not None:
            raise self._error
        return self._answer


class Control:
    """The control connection with one peer.

    Args:
        peer: The peer's name.
        connection: The connection.
        on_call: Does what comes.
        on_ended: Is told once that it has ended: with the error, or None after a goodbye.
        aside: Has a thread of its own do something.

    Attributes:
        heard_at: When something came last, by the monotonic clock.
    """

    def __init__(
        self,
        peer: str,
        connection: Connection,
        on_call: OnCall,
        on_ended: Callable[[Exception | None], None],
        aside: Callable[[Callable[[], Any]], None],
    ) -> None:
        self.connection = connection
        self._peer = peer
        self._on_call = on_call
        self._on_ended = on_ended
        self._aside = aside
        self._numbers = itertools.count()
        self._questions: dict[int, PendingAnswer] = {}
        self._reader = MessageReader()
        self._ending = threading.Lock()
        self._has_ended = False
        self.heard_at = time.monotonic()
        connection.on_ready = self._on_ready
        connection.on_failed = self._end

    def start(self) -> None:
        """Begins to read."""
        self.connection.want_read()
        if self.connection.error is not None:  # it has ended before anybody listened
            self._end(self.connection.error)

    def end_with(self, error: Exception) -> None:
        """Ends it, for another connection with the peer has ended."""
        if not isinstance(error, ConnectionResetError):
            self.connection.fail(error)
            return
        seconds = _GOODBYE_S if self.connection.is_direct else _LATE_GOODBYE_S
        timer = threading.Timer(seconds, self.connection.fail, (error,))
        timer.daemon = True
        timer.start()

    def tell(self, message: dict[str, Any]) -> None:
        """Sends a message that has no answer; never waits."""
        self._send({_TELL: message})

    def say_goodbye(self) -> None:
        """Tells the peer that this end goes by itself."""
        self._send({_GOODBYE: True})

    def ask(self, message: dict[str, Any]) -> PendingAnswer:
        """Sends a message that has an answer; never waits."""
        number, kind = next(self._numbers), str(message.get("kind", "a message"))
        question = PendingAnswer(self._peer, kind, lambda: self._questions.pop(number, None))
        self._questions[number] = question
        self._send({_ASK: message, "number": number})
        if self._has_ended:  # it may have looked through the questions before
            self._lost(question)
        return question

    def end_waits(self, error: OpError) -> None:
        """Has all questions end with an error: the peer hangs."""
        for question in list(self._questions.values()):
            question.told({}, type(error)(error.message))

    def _send(self, message: dict[str, Any]) -> None:
        self.connection.write(*packed(message))

    def close(self) -> None:
        """Ends it at this end; `on_ended` is not told."""
        self._end(ConnectionAbortedError("it was given up"), is_told=False)

    def _end(self, error: Exception | None, is_told: bool = True) -> None:
        """Ends it, once; what follows from that is done on another thread."""
        with self._ending:
            if self._has_ended:
                return
            self._has_ended = True
        self.connection.fail(error or ConnectionResetError(f"{self._peer} has left"))
        for question in list(self._questions.values()):
            self._lost(question)
        if is_told:
            self._aside(lambda: self._on_ended(error))

    def _lost(self, question: PendingAnswer) -> None:
        why = "its control connection has ended"
        question.told({}, UnavailableError(f"{self._peer} is lost: {why}"))

    def _on_ready(self) -> None:
        """Takes what has come; on the poller's thread."""
        reader = self._reader
        try:
            while read_some(self.connection, reader, socket.MSG_DONTWAIT):
                self.heard_at = time.monotonic()
                while (message := reader.next()) is not None:
                    if _GOODBYE in message[0]:
                        self._end(None)
                        return
                    self._take(message[0])
        except (OSError, OpError) as e:
            self._end(self.connection.error or e)
            return
        self.connection.want_read()

    def _take(self, message: dict[str, Any]) -> None:
        if _TELL in message:
            later = self._do(message[_TELL]).get(_ANSWER)
            if callable(later):
                self._aside(lambda: _told(later))
        elif _ASK in message:
            self._answer(message.get("number"), self._do(message[_ASK]))
        else:
            question = self._questions.get(message.get("number", -1))
            if question is None:  # nobody waits for it any more
                return
            raised = message.get(_RAISED)
            error = InternalError(f"{self._peer} raised {raised}") if _RAISED in message else None
            question.told(message.get(_ANSWER) or {}, error)

    def _do(self, message: Any) -> dict[str, Any]:
        if type(message) is not dict:
            return {_RAISED: f"InvalidArgumentError: expected a dict, got {type(message).__name__}"}
        return _told(lambda: self._on_call(self._peer, message))

    def _answer(self, number: Any, told: dict[str, Any]) -> None:
        """Sends an answer, now or when it is there."""
        later = told.get(_ANSWER)
        if not callable(later):
            self._send({**told, "number": number})
            return
        self._aside(lambda: self._send({**_told(later), "number": number}))


def _told(do: Callable[[], Any]) -> dict[str, Any]:
    """Calls something; its result or its error as the item of an answer."""
    try:
        return {_ANSWER: do()}
    except Exception as e:
        return {_RAISED: f"{type(e).__name__}: {e}"}


__all__ = ["Control", "OnCall", "PendingAnswer"]
