"""Readers as state: the work unit in progress, where it is read, and who waits for a record.

Reads are served in the order in which they came. One that needs a name asks the queue for it as a
dequeue does, and no thread waits; whoever puts the name in opens the file. A name that a reader has
taken is the reader's: a step that is stopped gives back the records that it has read - they come
again, first - and not the name.

One thread at a time *serves*: it alone opens and reads files, without the lock. Who comes meanwhile
says that there is more to do. All else is read and changed with the lock.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from flowscope.errors import CancelledError, InvalidArgumentError
from flowscope.graph.current_step import current_step
from flowscope.graph.messages.protobuf import BYTES, INT, Wire, WireMessage
from flowscope.graph.summary import counted
from flowscope.graph.values.dtypes import string
from flowscope.graph.values.expected import expected_dtype
from flowscope.ops.input.reader_ops import ReaderHandle
from flowscope.ops.input.sources import Item, Position, Source
from flowscope.runtime.state.queue_state import Finish, QueueState

if TYPE_CHECKING:
    from flowscope.runtime.step.step import Step

__all__ = ["ReaderProgress", "ReaderState"]


class ReaderProgress(WireMessage):
    """Where a reader is; the first four fields are those of TensorFlow's `ReaderBaseState`.

    Attributes:
        work_started, work_finished: How many work units it has begun, and ended.
        num_records_produced: How many records it has produced.
        current_work: The work unit in progress.
        position_byte, position_count: Where the next record of that begins, behind how many.
    """

    work_started: int = 0
    work_finished: int = 0
    num_records_produced: int = 0
    current_work: Any = b""
    position_byte: int = 0
    position_count: int = 0

    WIRE: ClassVar[Wire] = {
        "work_started": (1, INT),
        "work_finished": (2, INT),
        "num_records_produced": (3, INT),
        "current_work": (4, BYTES),
        "position_byte": (101, INT),
        "position_count": (102, INT),
    }


class _Read:
    """A wish for at most `most` records."""

    __slots__ = ("finish", "most", "queue", "step")

    def __init__(self, queue: QueueState, most: int, finish: Finish) -> None:
        self.step: Step | None = current_step()
        self.queue = queue
        self.most = most
        self.finish = finish


class ReaderState:
    """A reader.

    Args:
        handle: The op that makes its handle.

    Attributes:
        name: Its name in its container.
        kind: Its kind, such as "TextLineReader".
        settings: What else makes it what it is.
    """

    family = "reader"
    identity: ClassVar[tuple[str, ...]] = ("kind", "settings")

    def __init__(self, handle: ReaderHandle) -> None:
        self.name = handle.shared_name
        self.kind = handle.type.removesuffix("Handle")
        names = [f.name for f in dataclasses.fields(handle)]
        own = [n for n in names if n not in ("container", "shared_name")]
        self.settings = tuple([f"{n}={getattr(handle, n)!r}" for n in own])
        self._open = handle.source
        self._lock = threading.Condition()
        self._reads: OrderedDict[_Read, None] = OrderedDict()
        self._is_serving = self._is_more = False
        #: The read for which a name is asked, and what gives that up.
        self._asking: _Read | None = None
        self._give_up: Callable[[], None] | None = None
        #: What queues have answered: names, or why there are none.
        self._answers: deque[Any] = deque()
        self._source: Source | None = None
        #: Records that were given back.
        self._unread: deque[Item] = deque()
        self._started = self._finished = self._produced = 0

    # -- what is asked of it --------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of the records that were given back."""
        return sum(len(item.value) for item in list(self._unread))

    @property
    def waiters(self) -> list[Step | None]:
        """The steps whose reads wait."""
        return [read.step for read in list(self._reads)]

    @property
    def progress(self) -> ReaderProgress:
        """Where it is."""
        return self._alone(self._progress)  # type: ignore[no-any-return]

    def __str__(self) -> str:
        source = self._source
        parts = ["no file" if source is None else f"at {source.path!r}"]
        parts.append(counted(self._produced, "record"))
        if self._reads:
            parts.append(f"{counted(len(self._reads), 'read')} waiting")
        return f'{self.kind} "{self.name}" ({", ".join(parts)})'

    # -- what is done to it ---------------------------------------------------------------------

    def take(self, queue: QueueState, most: int) -> list[Item] | None:
        """Returns the next records if nobody waits and no name has to be waited for; else None.

        Args:
            queue: Where names come from.
            most: How many records at most.
        """
        _check(queue)
        with self._lock:
            if self._is_serving or self._reads:
                return None
            self._is_serving = True
        items: list[Item] | None = None
        try:
            items = self._next(queue, most)
        finally:
            self._end_serving(items, current_step())
        return items

    def read(self, queue: QueueState, most: int, finish: Finish) -> Callable[[], None]:
        """Asks for the next records; returns what gives that up.

        Args:
            queue: Where names come from.
            most: How many records at most.
            finish: Called once: with a list of records, or with what went wrong.
        """
        _check(queue)
        read = _Read(queue, most, finish)
        with self._lock:
            self._reads[read] = None
        self._serve()
        return lambda: self._leave(read)

    def give_back(self, taken: Sequence[Sequence[Any]]) -> None:
        """Puts back records that a step has read: they come first, in the order that they had."""
        with self._lock:
            for items in reversed(taken):
                self._return(items)
        self._serve()

    def take_back(self, put: Sequence[Sequence[Any]]) -> bool:
        """A step puts nothing into a reader: all of that can be taken back."""
        return True

    def reset(self) -> None:
        """Makes it new: no work unit is in progress, and the counts are 0."""
        self._alone(self._reset)

    def restore(self, state: bytes) -> None:
        """Puts it to where a reader of its kind has been.

        Raises:
            InvalidArgumentError: if that is no state of a reader; what opening the file raises.
        """
        found = ReaderProgress.FromString(state)
        counts = [getattr(found, name) for name in found.WIRE if name != "current_work"]
        if min(counts) < 0 or not 0 <= found.work_started - found.work_finished <= 1:
            raise InvalidArgumentError(f"expected the state of a reader, got {found!r}")

        def put() -> None:
            source = None
            if found.work_started > found.work_finished:
                position = Position(found.position_byte, found.position_count)
                source = self._open(found.current_work, position)
            self._reset()
            self._source = source
            self._started, self._finished = found.work_started, found.work_finished
            self._produced = found.num_records_produced

        self._alone(put)

    def clear(self) -> None:
        """Makes it new. Who waits gets a CancelledError."""
        with self._lock:
            reads = list(self._reads)
            self._reads.clear()
        self.reset()
        gone = f'{self.kind} "{self.name}" was dropped with its container'
        for read in reads:
            self._stop_asking(read)
            read.finish(CancelledError(gone))

    # -- how it serves --------------------------------------------------------------------------

    def _serve(self) -> None:
        """Serves the reads that wait, until there are none or one has to wait for a name."""
        while True:
            with self._lock:
                if self._is_serving:
                    self._is_more = True
                    return
                read = next(iter(self._reads), None)
                if read is None:
                    return
                self._is_serving = True
            found: Any = None
            try:
                found = self._next(read.queue, read.most)
                if found is None:
                    self._ask(read)
            except BaseException as e:  # such as a file that is gone; a queue that is closed
                found = e
            with self._lock:
                is_wanted = found is not None and read in self._reads
                if is_wanted:
                    del self._reads[read]
                    if isinstance(found, list):
                        self._note(read.step, found)
                elif isinstance(found, list):
                    self._return(found)  # it was given up meanwhile
                is_more, self._is_more, self._is_serving = self._is_more, False, False
                self._lock.notify_all()
            if is_wanted:
                read.finish(found)
            elif found is None and not is_more:
                return

    def _next(self, queue: QueueState, most: int) -> list[Item] | None:
        """Returns the next records; None where a name has to be waited for. By who serves."""
        while True:
            if self._unread:
                items = [self._unread.popleft() for _ in range(min(most, len(self._unread)))]
                self._produced += len(items)
                return items
            if self._source is None:
                if self._answers:
                    name = self._answers.popleft()
                    if isinstance(name, BaseException):
                        raise name
                else:
                    taken = queue.take(1, is_noted=False)
                    if taken is None:
                        return None
                    name = taken[0][0]
                self._source = self._open(name, Position())
                self._started += 1
            items = self._source.read(most)
            if items:
                self._produced += len(items)
                return items
            self._source.close()
            self._source = None
            self._finished = self._started

    def _end_serving(self, items: list[Item] | None, step: Step | None) -> None:
        with self._lock:
            if items:
                self._note(step, items)
            is_more, self._is_more, self._is_serving = self._is_more, False, False
            self._lock.notify_all()
        if is_more:
            self._serve()

    def _alone(self, function: Callable[[], Any]) -> Any:
        """Returns the result of a function, while which nobody serves."""
        with self._lock:
            while self._is_serving:
                self._lock.wait()
            return function()

    # -- names that are waited for --------------------------------------------------------------

    def _ask(self, read: _Read) -> None:
        """Asks the queue for a name, unless that was done; by who serves."""
        with self._lock:
            if self._asking is not None or read not in self._reads:
                return
            self._asking = read
        give_up = read.queue.dequeue(1, lambda answer: self._answered(read, answer), reader=read)
        with self._lock:
            if self._asking is not read:
                return
            self._give_up = give_up
            is_wanted = read in self._reads
        if not is_wanted:
            self._stop_asking(read)

    def _answered(self, read: _Read, answer: Any) -> None:
        with self._lock:
            if self._asking is read:
                self._asking = self._give_up = None
            if not isinstance(answer, BaseException):
                self._answers.append(answer[0][0])
            elif read in self._reads:
                self._answers.append(answer)
        self._serve()

    def _leave(self, read: _Read) -> None:
        with self._lock:
            if read not in self._reads:
                return
            del self._reads[read]
        self._stop_asking(read)
        self._serve()

    def _stop_asking(self, read: _Read) -> None:
        with self._lock:
            if self._asking is not read or self._give_up is None:
                return
            give_up = self._give_up
            self._asking = self._give_up = None
        give_up()

    # -- with the lock held ---------------------------------------------------------------------

    def _note(self, step: Step | None, items: list[Item]) -> None:
        """Has a step remember what it has read."""
        if step is not None and step.queues is not None:
            step.queues.took(self, items)

    def _return(self, items: Sequence[Any]) -> None:
        self._unread.extendleft(reversed(items))
        self._produced -= len(items)

    def _reset(self) -> None:
        if self._source is not None:
            self._source.close()
        self._source = None
        self._unread.clear()
        self._started = self._finished = self._produced = 0

    def _progress(self) -> ReaderProgress:
        source = self._source
        work, position = (b"", Position()) if source is None else (source.work, source.position)
        if self._unread:
            work, position = self._unread[0].work, self._unread[0].position
        return ReaderProgress(
            work_started=self._started,
            work_finished=self._finished - (source is None and bool(self._unread)),
            num_records_produced=self._produced,
            current_work=work,
            position_byte=position.byte,
            position_count=position.records,
        )


def _check(queue: Any) -> None:
    if not isinstance(queue, QueueState) or queue.dtypes != (string,):
        raise expected_dtype("a queue of strings", queue)
