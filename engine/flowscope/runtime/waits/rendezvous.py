"""The rendezvous of a step: how values get from the partitions that make them to those that wait.

A key says from which device to which, and which tensor; a step's channel holds one mailbox per
key. Sending never waits. Whoever receives may come before or after the value. An abort fails all
that waits and all that comes later, with the error that it is given.

Partitions that are compiled send and receive the values of one key in the same order, so their
mailboxes are queues (`Mailbox`). The machine of tokens has several iterations on their way: its
mailboxes go by the numbers of the iterations around, the *tag* (`TaggedMailbox`).

A producer may run ahead. How far is not the rendezvous' affair: it tells how much is unread, and
lets a producer wait until less is. Producers do so between two iterations, never inside one.

No lock is taken for a value in order: the append to a deque, the pop and each access to a field are
single steps of the interpreter's, and who waits and who wakes do two of them in opposite order. Who
waits shows itself (`_reader`, `_writer`), and then looks whether it has to; who sends, reads or
fails does so, and then looks who waits. So one of them sees the other, and no wake is lost. A field
that the other thread sets to None is read once. An error is set before what is unread is dropped,
and a sender looks for it behind its append: nothing is left in a mailbox that has failed.

Other transports implement `Channel`; `tests/runtime/test_rendezvous.py` holds what all of them do.
"""

from __future__ import annotations

import copy
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from flowscope.errors import OpError
from flowscope.graph.current_step import current_step
from flowscope.graph.lazy import frozen
from flowscope.plan.analysis.locations import StopPoint

#: The numbers of the iterations around, from the outermost loop.
Tag = tuple[int, ...]
#: Is told a value that has come, or the error that has ended the step.
Finish = Callable[[Any], None]

#: What is sent in the place of a value that is dead.
DEAD: Any = type("Dead", (), {"__repr__": lambda self: "dead"})()

#: So long a thread waits for another one before it looks at the gate: most waits are shorter, and
#: at the gate they would take twice as long.
_BRIEF_S = 0.005
#: So often one looks that may not be held where it waits.
_LOOK_S = 0.25


class WaitingGate(Protocol):
    """Where threads wait that can be stopped meanwhile: see `flowscope.runtime.waits.gate.Gate`."""

    raised: bool

    def wait(
        self,
        is_done: Callable[[], bool],
        here: StopPoint | None = None,
        until: float = math.inf,
    ) -> None:
        """Waits for something that others do; ends the wait where the step is to end."""

    def wake(self) -> None:
        """Makes those who wait look again."""


@frozen
class Pending:
    """Somebody waits.

    Attributes:
        key: The key of what it waits for.
        seconds: How long it has waited.
        is_producer: Whether it waits for others to read what it has sent.
        is_on_way: Whether the value has been sent, and is on its way.
    """

    key: str
    seconds: float
    is_producer: bool = False
    is_on_way: bool = False


class EndedWait(BaseException):
    """A wait was ended by a stop or a deadline of the step: no error of who waited.

    Attributes:
        error: What the gate has raised.
        pending: Who waited.
    """

    def __init__(self, error: OpError, pending: Pending) -> None:
        super().__init__(error, pending)
        self.error = error
        self.pending = pending


def full_key(key: str, incarnation: int = 0, tag: Tag = (), frames: tuple[str, ...] = ()) -> str:
    """Returns the whole key of one message: what leaves a process carries it.

    Args:
        key: Sending device, receiving device and tensor name, by semicolons.
        incarnation: Which life of the sending device it is.
        tag: The numbers of the iterations around.
        frames: The names of the loops around; none for "".
    """
    sender, receiver, name = key.split(";", 2)
    names = frames or ("",) * len(tag)
    path = "/".join(f"{f}:{i}" for f, i in zip(names, tag, strict=True)) or ":0"
    return f"{sender};{incarnation:x};{receiver};{name};{path}"


class Waiter:
    """What one thread waits at until another one has done something."""

    __slots__ = ("_gate", "_lock")

    #: Whether who waits has to `sleep` again and again: nobody wakes it.
    polls = False

    def __init__(self) -> None:
        self._gate: WaitingGate | None = None
        #: Held, but for the moment between a wake and the end of the wait.
        self._lock = threading.Lock()
        self._lock.acquire()

    def wake(self) -> None:
        """Ends the wait; from any thread, any number of times."""
        try:
            self._lock.release()
        except RuntimeError:  # somebody has done so already
            return
        finally:
            gate = self._gate
            if gate is not None:
                gate.wake()

    def wait(
        self,
        is_done: Callable[[], bool],
        gate: WaitingGate,
        here: StopPoint | None,
        until: float = math.inf,
    ) -> None:
        """Waits for a wake; a stop, a signal and a deadline end the wait, with an error.

        Args:
            is_done: Whether there is nothing to wait for.
            gate: Where the thread waits.
            here: What tells those who look where the step is.
            until: When the wait is over, in seconds of the monotonic clock.
        """
        if is_done() or (not gate.raised and self._lock.acquire(True, _BRIEF_S)):
            return
        self._gate = gate
        try:
            gate.wait(is_done, here, until)
        finally:
            self._gate = None

    def sleep(self, seconds: float) -> None:
        """Waits for a wake, so long at most; see `flowscope.runtime.waits.waiting`."""
        self._lock.acquire(True, seconds)

    def wait_on(self, is_done: Callable[[], bool]) -> None:
        """Waits where the step may not be held: nothing but the wake ends it."""
        while not is_done():
            self._lock.acquire(True, _LOOK_S)


class Mailbox:
    """The values of one key, in order.

    Attributes:
        key: The key.
        values: Those that have come and were not taken. Generated code looks whether there are
            some before it waits.
        since: When a thread began to wait for a value, by the monotonic clock; 0 while none does.
        since_ahead: When the producer began to wait for others to read; 0 while it does not.
    """

    __slots__ = ("_error", "_low", "_reader", "_writer", "key", "since", "since_ahead", "values")

    def __init__(self, key: str) -> None:
        self.key = key
        self.values: deque[Any] = deque()
        self.since = self.since_ahead = 0.0
        self._error: BaseException | None = None
        self._reader: Waiter | None = None
        self._writer: Waiter | None = None
        #: With so many unread values the producer goes on.
        self._low = 0

    def send(self, value: Any) -> None:
        """Hands over a value; never waits."""
        self.values.append(value)
        if self._error is not None:
            self.values.clear()
            raise copy.copy(self._error)  # its traceback would hold values
        reader = self._reader
        if reader is not None:
            reader.wake()

    def send_with_next(self, value: Any) -> None:
        """Hands over a value that may travel with the one that is sent next to the same process.

        That one is sent before this thread waits for anything.
        """
        self.send(value)

    def receive(
        self, gate: WaitingGate, here: StopPoint | None = None, is_safe: bool = True
    ) -> Any:
        """Returns the next value; waits until it has come.

        Args:
            gate: Where the thread waits.
            here: What tells those who look where the step is.
            is_safe: Whether the step may be held and ended here.
        """
        values = self.values
        while True:
            try:
                value = values.popleft()
                break
            except IndexError:
                self._wait_for_value(gate, here, is_safe)
        writer = self._writer
        if writer is not None and len(values) <= self._low:
            writer.wake()
        return value

    def is_ahead(self, most: int, nbytes: int = 0) -> bool:
        """Whether so many values are unread, and so many bytes."""
        count = len(self.values)
        return count >= most and (not nbytes or count * _size(self.values) >= nbytes)

    def throttle(
        self,
        most: int,
        nbytes: int,
        gate: WaitingGate,
        here: StopPoint | None = None,
        is_safe: bool = True,
    ) -> None:
        """Waits, if so much is unread, until half of that is read: threads change seldom then.

        Args:
            most: As many values as may be unread, and one more; at least 1.
            nbytes: As many bytes; 0 where only the values count.
            gate, here, is_safe: See `receive`.
        """
        if not self.is_ahead(most, nbytes):
            return
        self._low = min(most - 1, len(self.values) // 2)
        waiter = self._writer = Waiter()
        self.since_ahead = time.monotonic()
        try:
            self._wait(waiter, self._is_read, gate, here, is_safe)
        finally:
            self._writer, self.since_ahead = None, 0.0
        if self._error is not None:
            raise copy.copy(self._error)  # its traceback would hold values

    def fail(self, error: BaseException) -> None:
        """Fails who waits and who comes later; lets go of what was not read."""
        self._error = error
        self.values.clear()
        for waiter in (self._reader, self._writer):
            if waiter is not None:
                waiter.wake()

    def _wait_for_value(self, gate: WaitingGate, here: StopPoint | None, is_safe: bool) -> None:
        if self._error is not None:
            raise copy.copy(self._error)  # its traceback would hold values
        waiter = self._reader = Waiter()
        self.since = time.monotonic()
        try:
            self._wait(waiter, self._has_come, gate, here, is_safe)
        finally:
            self._reader, self.since = None, 0.0

    def pending(self) -> list[Pending]:
        """Returns those who wait here."""
        now = time.monotonic()
        waits = (self.since, False), (self.since_ahead, True)
        return [
            Pending(self.key, now - since, is_ahead, not is_ahead and self.is_on_way())
            for since, is_ahead in waits
            if since and self.lacks(is_ahead)
        ]

    def lacks(self, is_ahead: bool) -> bool:
        """Whether what somebody waits for is not there: a value, or others that read."""
        return not (self._is_read() if is_ahead else self._has_come())

    def is_on_way(self) -> bool:
        """Whether the next value has been sent and has not come."""
        return False

    def _wait(
        self,
        waiter: Waiter,
        is_done: Callable[[], bool],
        gate: WaitingGate,
        here: StopPoint | None,
        is_safe: bool,
    ) -> None:
        if not is_safe:
            _wait_unsafely(waiter, is_done)
            return
        try:
            waiter.wait(is_done, gate, here)
        except OpError as e:
            is_ahead = waiter is self._writer
            since = self.since_ahead if is_ahead else self.since
            ended = Pending(self.key, time.monotonic() - since, is_ahead)
            raise EndedWait(e, ended) from None

    def _has_come(self) -> bool:
        return bool(self.values) or self._error is not None

    def _is_read(self) -> bool:
        return len(self.values) <= self._low or self._error is not None


def _wait_unsafely(waiter: Waiter, is_done: Callable[[], bool]) -> None:
    """Waits where the step may not be held; it is told of it, for whoever gives turns."""
    step = current_step()
    if step is not None:
        step.is_blocked = True
    try:
        waiter.wait_on(is_done)
    finally:
        if step is not None:
            step.is_blocked = False


def _size(values: deque[Any]) -> int:
    try:
        return getattr(values[-1], "nbytes", 0)
    except IndexError:  # they were read meanwhile
        return 0


class TaggedMailbox:
    """The values of one key by the iterations that they belong to; nobody waits in place.

    What is unread counts by *frame*, one run of the innermost loop: the tag but for its last
    number. Several runs of an inner loop may be on their way. If what one of them has sent kept
    another one waiting, and were read only behind the values of that one, neither would go on.

    Attributes:
        key: The key.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self._lock = threading.Lock()
        self._values: dict[Tag, Any] = {}
        #: How many values are unread, by frame; of those of which none is, nothing.
        self._unread: dict[Tag, int] = {}
        self._waiting: dict[Tag, tuple[Finish, float]] = {}
        #: Producers by frame, with how many values may be unread.
        self._producers: dict[Tag, deque[tuple[int, Callable[[], None], float]]] = {}
        self._error: BaseException | None = None

    def send(self, value: Any, tag: Tag) -> None:
        """Hands over the value of an iteration; never waits."""
        if not self._put(value, tag):
            assert self._error is not None
            raise copy.copy(self._error)  # its traceback would hold values

    def _put(self, value: Any, tag: Tag) -> bool:
        """Hands over the value of an iteration; returns False if the mailbox has failed."""
        with self._lock:
            if self._error is not None:
                return False
            waiting = self._waiting.pop(tag, None)
            if waiting is None:
                self._values[tag] = value
                self._unread[tag[:-1]] = self._unread.get(tag[:-1], 0) + 1
        if waiting is not None:
            waiting[0](value)
        return True

    def receive(self, tag: Tag, finish: Finish) -> Any:
        """Returns the value of an iteration in a tuple; None if `finish` will be told it."""
        with self._lock:
            if self._error is not None:
                raise copy.copy(self._error)  # its traceback would hold values
            if tag not in self._values:
                self._waiting[tag] = finish, time.monotonic()
                return None
            value = self._values.pop(tag)
            self._note_read(tag[:-1], 1)
        if self._producers:
            self._tell_producers(tag[:-1])
        return (value,)

    def forget(self, tag: Tag) -> None:
        """Gives up to wait for the value of an iteration."""
        with self._lock:
            self._waiting.pop(tag, None)

    def unread(self, frame: Tag) -> int:
        """Returns how many values of a frame have come that were not taken."""
        return self._unread.get(frame, 0)

    def when_below(self, most: int, frame: Tag, tell: Callable[[], None]) -> bool:
        """Whether fewer values of a frame than `most` are unread; else `tell` is called then."""
        with self._lock:
            if self.unread(frame) < most or self._error is not None:
                return True
            waiting = self._producers.setdefault(frame, deque())
            waiting.append((most, tell, time.monotonic()))
            return False

    def fail(self, error: BaseException) -> None:
        """Fails who waits and who comes later; lets go of what was not read."""
        with self._lock:
            self._error = error
            waiting, self._waiting = self._waiting, {}
            self._values.clear()
            self._unread.clear()
            frames = list(self._producers)
        for finish, _ in waiting.values():
            finish(error)
        for frame in frames:
            self._tell_producers(frame)

    def pending(self) -> list[Pending]:
        """Returns those who wait."""
        now = time.monotonic()
        with self._lock:
            found = [
                Pending(self.key, now - since, False, self.is_on_way(tag))
                for tag, (_, since) in self._waiting.items()
            ]
            producers = [one for waiting in self._producers.values() for one in waiting]
            return found + [Pending(self.key, now - since, True) for *_, since in producers]

    def is_on_way(self, tag: Tag) -> bool:
        """Whether the value of an iteration has been sent and has not come."""
        return False

    def _note_read(self, frame: Tag, count: int) -> None:
        """Notes that values of a frame have been read; called with the lock."""
        left = self._unread.get(frame, 0) - count
        if left > 0:
            self._unread[frame] = left
        else:
            self._unread.pop(frame, None)

    def _tell_producers(self, frame: Tag) -> None:
        while True:
            with self._lock:
                waiting = self._producers.get(frame)
                if waiting is None:
                    return
                if self.unread(frame) >= waiting[0][0] and self._error is None:
                    return
                _, tell, _ = waiting.popleft()
                if not waiting:
                    del self._producers[frame]
            tell()


class Channel(Protocol):
    """What the partitions of one step send and receive through; any thread may use it."""

    def mailbox(self, key: str) -> Mailbox:
        """Returns where the values of a key are sent and received in order."""

    def tagged(self, key: str) -> TaggedMailbox:
        """Returns where the values of a key are sent and received by iterations."""

    def abort(self, error: BaseException) -> None:
        """Fails all that waits and all that comes later; the first error counts."""

    def pending(self) -> list[Pending]:
        """Returns those who wait, the longest wait first."""


class Rendezvous:
    """The channel between threads of one process: values are handed over as they are.

    Attributes:
        error: What it was aborted with; None while it was not.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        #: Held for the moment in which an abort becomes the one that counts.
        self._lock = threading.Lock()
        self._boxes: dict[str, Mailbox] = {}
        self._tagged: dict[str, TaggedMailbox] = {}

    def mailbox(self, key: str) -> Mailbox:
        """Returns where the values of a key are sent and received in order."""
        found = self._boxes.get(key)
        if found is None:
            found = self._boxes.setdefault(key, self._made(key))
            if self.error is not None:
                found.fail(self.error)
        return found

    def _made(self, key: str) -> Mailbox:
        return Mailbox(key)

    def _made_tagged(self, key: str) -> TaggedMailbox:
        return TaggedMailbox(key)

    def tagged(self, key: str) -> TaggedMailbox:
        """Returns where the values of a key are sent and received by iterations."""
        found = self._tagged.get(key)
        if found is None:
            found = self._tagged.setdefault(key, self._made_tagged(key))
            if self.error is not None:
                found.fail(self.error)
        return found

    def abort(self, error: BaseException) -> None:
        """Fails all that waits and all that comes later; the first error counts."""
        with self._lock:
            if self.error is not None:
                return
            self.error = error
        for box in list(self._boxes.values()):
            box.fail(error)
        for tagged in list(self._tagged.values()):
            tagged.fail(error)

    def pending(self) -> list[Pending]:
        """Returns those who wait, the longest wait first."""
        boxes = [*self._boxes.values()], [*self._tagged.values()]
        found = [p for some in boxes for box in some for p in box.pending()]
        return sorted(found, key=lambda p: -p.seconds)


__all__ = [
    "DEAD",
    "Channel",
    "EndedWait",
    "Finish",
    "Mailbox",
    "Pending",
    "Rendezvous",
    "Tag",
    "TaggedMailbox",
    "Waiter",
    "WaitingGate",
    "full_key",
]
