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
from flowscope.cluster.transport.messages import MessageReader, packed
from flowscope.cluster.transport.runs import read_some
from flowscope.errors import DeadlineExceededError, InternalError, OpError, UnavailableError

Answer = dict[str, Any] | None
#: What a peer's message leads to: (peer, message) -> answer, or None for nothing to say; or a
#: function that returns the answer, on a thread of its own.
OnCall = Callable[[str, dict[str, Any]], Answer | Callable[[], Answer]]

#: Each connection is read by another thread, and over Dask's ports they overtake each other: so
#: much later than the end of another one a goodbye may be read, of sockets and over Dask's ports.
_GOODBYE_S, _LATE_GOODBYE_S = 0.5, 1.0
_ASK, _TELL, _ANSWER, _RAISED, _GOODBYE = "ask", "tell", "answer", "raised", "goodbye"


class _Question:
    __slots__ = ("answer", "done", "error")

    def __init__(self) -> None:
        self.done = threading.Event()
        self.answer: dict[str, Any] = {}
        self.error: OpError | None = None


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
        self._questions: dict[int, _Question] = {}
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

    def call(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Returns the answer to a message.

        Raises:
            DeadlineExceededError: if it does not come in time.
            UnavailableError: if the peer is lost.
            InternalError: if the peer's handler has raised.
        """
        number, question = next(self._numbers), _Question()
        self._questions[number] = question
        try:
            self._send({_ASK: message, "number": number})
            if self._has_ended:  # it may have looked through the questions before
                self._lost(question)
            if not question.done.wait(timeout_s):
                raise DeadlineExceededError(
                    f"{self._peer} has not answered {message.get('kind', 'a message')!r} within "
                    f"{timeout_s:g} s"
                )
        finally:
            self._questions.pop(number, None)
        if question.error is not None:
            raise question.error
        return question.answer

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

    def _lost(self, question: _Question) -> None:
        question.error = UnavailableError(f"{self._peer} is lost: its control connection has ended")
        question.done.set()

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
            question.answer = message.get(_ANSWER) or {}
            if _RAISED in message:
                question.error = InternalError(f"{self._peer} raised {message[_RAISED]}")
            question.done.set()

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
    """Returns what something returns, or has raised, as an answer tells it."""
    try:
        return {_ANSWER: do()}
    except Exception as e:
        return {_RAISED: f"{type(e).__name__}: {e}"}


__all__ = ["Control", "OnCall"]
