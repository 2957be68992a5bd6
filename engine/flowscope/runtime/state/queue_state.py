"""Queues as state: a bounded buffer, and who waits for elements or for space.

Whoever has to wait leaves a function behind, and no thread waits: each change of the queue moves
what can be moved and then, with no lock held, calls the functions of those who have what they
wanted. So a queue with ten thousand dequeues waiting is a buffer and ten thousand small objects.

Both sides are served in the order in which they came. An `enqueue_many` that waits for space has
put in what fits, and what others put in comes behind all of it; a `dequeue_many` at the head has
taken out what there is, so it may ask for more than the capacity. What it took goes back to the
front if it is given up, or if the queue closes before it has enough: no element is lost.

All that it has is read and changed with its lock, but for what is said of it (`size`, `waiting`,
`has_room`): those are single looks, good for the moment. An element is in the queue, with one wait
or with one who was told; a step that waits is noted to have it in the same hold of the lock in
which it leaves the queue, so who gives up and then moves back what is noted misses none.

Source: the order and the rules of closing are TensorFlow's; there, a dequeue that is cancelled
loses what it took, and a close waits for the enqueues before it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence, Set
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar

from flowscope.errors import (
    CancelledError,
    OpError,
    OutOfRangeError,
    UnknownError,
)
from flowscope.graph.current_step import current_step
from flowscope.graph.summary import counted
from flowscope.graph.values.shapes import Dims

if TYPE_CHECKING:
    from flowscope.runtime.step.step import Step

#: The values of one element, one per component.
Element = tuple[Any, ...]
#: What is called once with the result, or with what went wrong.
Finish = Callable[[Any], None]


class _Enqueue:
    """Elements that wait for space; those before `next` are in the queue."""

    __slots__ = ("elements", "finish", "next", "since", "step")

    def __init__(self, elements: Sequence[Element], finish: Finish) -> None:
        self.step: Step | None = current_step()
        self.since = time.monotonic()
        self.elements = elements
        self.finish = finish
        self.next = 0


class _Dequeue:
    """A wish for `count` elements, of which some are `taken`."""

    __slots__ = ("count", "finish", "noted", "since", "step", "taken", "up_to")

    def __init__(self, count: int, up_to: bool, finish: Finish, reader: Any) -> None:
        #: For whom it waits, and who has what was taken until it ends well.
        self.step: Step | None = current_step() if reader is None else reader.step
        self.noted = self.step if reader is None else None
        self.since = time.monotonic()
        self.count = count
        self.up_to = up_to
        self.finish = finish
        self.taken: list[Element] = []


class QueueState:
    """A first-in, first-out queue; `flowscope.runtime.datasets.queue_kinds` has the other kinds.

    Attributes:
        name: The queue's name in its container.
        capacity: Most elements that it holds.
        dtypes, shapes: Per component; `shapes` is None where every element may have its own.
        taken: How many elements were taken out so far, those that were given back too.
    """

    family = "queue"
    kind = "FIFOQueue"
    #: Whether it makes its elements itself: no other step has to put any in.
    fills_itself = False
    #: What has to be the same where two handles name one queue.
    identity: ClassVar[tuple[str, ...]] = ("kind", "capacity", "dtypes", "shapes")

    __slots__ = (
        "__weakref__",
        "_dequeues",
        "_elements",
        "_enqueues",
        "_failures",
        "_is_closed",
        "_lock",
        "capacity",
        "dtypes",
        "name",
        "shapes",
        "taken",
    )

    def __init__(
        self,
        name: str,
        capacity: int,
        dtypes: tuple[Any, ...],
        shapes: tuple[Dims, ...] | None,
    ) -> None:
        self.name = name
        self.capacity = capacity
        self.dtypes = dtypes
        self.shapes = shapes
        self._lock = threading.Lock()
        self._elements: Any = deque()
        # Who waits, first come first: by themselves, for one in the middle can leave.
        self._enqueues: OrderedDict[_Enqueue, None] = OrderedDict()
        self._dequeues: OrderedDict[_Dequeue, None] = OrderedDict()
        self._is_closed = False
        self.taken = 0
        #: Why the last step of a producer - a thread, as queue runners are - failed that was to put
        #: something in.
        self._failures: dict[int, BaseException] = {}

    # -- what is asked of it --------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of elements."""
        return len(self._elements)

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        with self._lock:
            return sum(getattr(part, "nbytes", 0) for e in self._contents() for part in e)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed: nothing new is taken in."""
        return self._is_closed

    @property
    def waiting(self) -> tuple[int, int]:
        """How many enqueues wait for space, and how many dequeues for elements."""
        return len(self._enqueues), len(self._dequeues)

    @property
    def waiters(self) -> list[tuple[Step | None, float]]:
        """The steps whose enqueues and dequeues wait, and since when by the monotonic clock."""
        waits: list[_Enqueue | _Dequeue] = [*list(self._enqueues), *list(self._dequeues)]
        return [(wait.step, wait.since) for wait in waits]

    @property
    def failure(self) -> BaseException | None:
        """Why a producer has failed that has put nothing in since; None where none has."""
        found = [*self._failures.values()]  # in one step: producers fail meanwhile
        return found[0] if found else None

    def __str__(self) -> str:
        most = f" of {self.capacity}" if self.capacity < bounded(-1) else ""
        parts = [f"{self.size}{most} elements"]
        enqueues, dequeues = self.waiting
        if enqueues:
            parts.append(f"{counted(enqueues, 'enqueue')} waiting")
        if dequeues:
            parts.append(f"{counted(dequeues, 'dequeue')} waiting")
        if self._is_closed:
            parts.append("closed")
        failure = self.failure
        if failure is not None:
            parts.append(f"a producer failed: {_first_line(failure)}")
        return f'{self.kind} "{self.name}" ({", ".join(parts)})'

    # -- what is done to it ---------------------------------------------------------------------

    def put(self, elements: Sequence[Element]) -> bool:
        """Puts elements in if there is space, and nobody waits for it; returns whether it did."""
        with self._lock:
            if not self.has_room(len(elements)):
                return False
            self._add(elements)
            note_put(self, current_step(), elements)
            done = self._pump() if self._dequeues else None
        if done:
            call_all(done)
        if self._failures:
            self._failures.pop(get_ident(), None)
        return True

    def has_room(self, count: int) -> bool:
        """Whether there is space that nobody waits for; without the lock it may be so no more."""
        if self._enqueues or self._is_closed:
            return False
        return len(self._elements) + count <= self.capacity

    def take(self, count: int, is_noted: bool = True) -> list[Element] | None:
        """Takes elements out if there are as many, and nobody waits for them; else returns None.

        Args:
            count: How many.
            is_noted: Whether they are the step's, which gives them back if it is stopped.
        """
        with self._lock:
            if self._dequeues or self._ready() < count:
                return None
            taken = self._pull(count)
            if is_noted:
                note_taken(self, current_step(), taken)
            done = self._pump() if self._enqueues else None
        if done:
            call_all(done)
        return taken

    def enqueue(self, elements: Sequence[Element], finish: Finish) -> Callable[[], None]:
        """Puts elements in, waiting for space; returns what gives the wait up.

        Elements that are in when it is given up stay in, but for those of a stopped step: see
        `take_back`.

        Args:
            elements: What is put in, in this order.
            finish: Called once: with () when all are in, or with a CancelledError if the queue is
                closed or gets closed.
        """
        wait = _Enqueue(elements, finish)
        done: list[tuple[Callable[[Any], None], Any]]
        if self._failures:
            self._failures.pop(get_ident(), None)
        with self._lock:
            if self._is_closed:
                done = [(finish, self._closed())]
            else:
                self._enqueues[wait] = None
                done = self._pump()
        call_all(done)
        return lambda: self._leave(self._enqueues, wait)

    def dequeue(
        self, count: int, finish: Finish, up_to: bool = False, reader: Any = None
    ) -> Callable[[], None]:
        """Takes elements out, waiting for them; returns what gives the wait up.

        Args:
            count: How many.
            finish: Called once: with a list of elements; or, where the queue is closed and has
                fewer, with an OutOfRangeError - or with what the producer failed with.
            up_to: Whether what a closed queue has left, if anything, will do.
            reader: A read that needs a name. It has a `step`, which waits; what is taken is not
                the step's.
        """
        wait = _Dequeue(count, up_to, finish, reader)
        with self._lock:
            self._dequeues[wait] = None
            done = self._pump()
        call_all(done)
        return lambda: self._leave(self._dequeues, wait)

    def take_back(self, put: Sequence[Sequence[Element]]) -> bool:
        """Takes out what a step has put in; returns whether all of it was there."""
        with self._lock:
            mine = {id(e) for elements in put for e in elements}
            before = len(self._elements)
            if mine:
                self._remove(mine)
            is_whole = before - len(self._elements) == len(mine)
            done = self._pump()
        call_all(done)
        return is_whole

    def give_back(self, taken: Sequence[Sequence[Element]]) -> None:
        """Puts back what a step has taken: it comes out first, in the order that it had."""
        with self._lock:
            for elements in reversed(taken):
                self._restore(elements)
            done = self._pump()
        call_all(done)

    def close(self, cancel_pending_enqueues: bool = False) -> None:
        """Takes nothing new in. Dequeues get what is there, and then fail.

        Enqueues that wait still get their space.

        Args:
            cancel_pending_enqueues: Whether those that wait are cancelled instead.

        Raises:
            CancelledError: if it is closed and nothing is to be cancelled.
        """
        with self._lock:
            if self._is_closed and not cancel_pending_enqueues:
                raise CancelledError(f'{self.kind} "{self.name}" is closed already')
            self._is_closed = True
            done: list[tuple[Finish, Any]] = []
            if cancel_pending_enqueues:
                done += [(w.finish, self._cancelled()) for w in self._enqueues]
                self._enqueues.clear()
            done += self._pump()
        call_all(done)

    def producer_failed(self, error: BaseException) -> None:
        """Notes why a step of this thread that was to put something in failed.

        The consumers of the closed queue get it in place of an OutOfRangeError, unless the thread
        has put something in since. The end of a queue before this one, and being stopped, are no
        failures.
        """
        if not isinstance(error, OutOfRangeError | CancelledError):
            self._failures[get_ident()] = error

    def clear(self) -> None:
        """Makes it new: open and empty. Who waits gets a CancelledError."""
        with self._lock:
            waits: list[Any] = [*self._enqueues, *self._dequeues]
            self._enqueues.clear()
            self._dequeues.clear()
            self._elements.clear()
            self._is_closed = False
            self._failures.clear()
        gone = f'{self.kind} "{self.name}" was dropped with its container'
        call_all([(w.finish, CancelledError(gone)) for w in waits])

    # -- its buffer, which other kinds have in another order; with the lock held -------------------

    def _contents(self) -> Iterable[Element]:
        """All elements."""
        return list(self._elements)

    def _ready(self) -> int:
        """How many elements may be taken out."""
        return len(self._elements)

    def _add(self, elements: Sequence[Element]) -> None:
        """Puts elements in."""
        self._elements.extend(elements)

    def _pull(self, count: int) -> list[Element]:
        """Takes the next elements out; so many are ready."""
        popleft = self._elements.popleft
        return [popleft()] if count == 1 else [popleft() for _ in range(count)]

    def _restore(self, elements: Sequence[Element]) -> None:
        """Puts elements back that were pulled in this order."""
        self._elements.extendleft(reversed(elements))

    def _remove(self, identities: Set[int]) -> None:
        """Takes the elements with these `id`s out."""
        self._elements = deque([e for e in self._elements if id(e) not in identities])

    # -- how it moves; with the lock held -------------------------------------------------------

    def _pump(self) -> list[tuple[Finish, Any]]:
        """Moves what can be moved; returns whom to call, with what."""
        done: list[tuple[Finish, Any]] = []
        while self._fill(done) | self._drain(done):
            pass
        return done

    def _fill(self, done: list[tuple[Finish, Any]]) -> bool:
        """Lets the enqueues that wait put in what fits; returns whether any did."""
        moved = False
        while self._enqueues:
            wait = next(iter(self._enqueues))
            space = self.capacity - len(self._elements)
            left = len(wait.elements) - wait.next
            if space <= 0 and left:
                break
            # Most have one element, and slicing is for the others.
            if left <= space and not wait.next:
                moving = wait.elements
            else:
                moving = wait.elements[wait.next : wait.next + space]
            self._add(moving)
            note_put(self, wait.step, moving)
            moved = True
            wait.next += min(left, space)
            if left <= space:
                del self._enqueues[wait]
                done.append((wait.finish, ()))
        return moved

    def _drain(self, done: list[tuple[Finish, Any]]) -> bool:
        """Lets the dequeues that wait take what there is; returns whether any did."""
        moved = False
        while self._dequeues:
            wait = next(iter(self._dequeues))
            moves = min(wait.count - len(wait.taken), self._ready())
            wait.taken += self._pull(moves)
            moved = moved or moves > 0
            if len(wait.taken) == wait.count:
                done.append((wait.finish, wait.taken))
                note_taken(self, wait.noted, wait.taken)
            elif self._is_at_end():
                done.append((wait.finish, self._last(wait)))
            else:
                break
            del self._dequeues[wait]
        return moved

    def _is_at_end(self) -> bool:
        """Whether nothing more comes in."""
        return self._is_closed and not self._enqueues

    def _last(self, wait: _Dequeue) -> Any:
        """The elements of a queue that has fewer than asked for and gets no more."""
        if wait.up_to and wait.taken:
            note_taken(self, wait.noted, wait.taken)
            return wait.taken
        self._restore(wait.taken)
        size = len(self._elements)
        failure = self.failure
        if failure is not None:
            return self._handed_on(failure)
        return OutOfRangeError(
            f'{self.kind} "{self.name}" is closed and has insufficient elements '
            f"(requested {wait.count}, current size {size})"
        )

    def _leave(self, waits: OrderedDict[Any, None], wait: Any) -> None:
        with self._lock:
            if wait not in waits:
                return
            del waits[wait]
            if isinstance(wait, _Dequeue):
                self._restore(wait.taken)
            done = self._pump()
        call_all(done)

    def _closed(self) -> CancelledError:
        return CancelledError(f'{self.kind} "{self.name}" is closed')

    def _cancelled(self) -> CancelledError:
        return CancelledError(
            f'enqueue was cancelled: {self.kind} "{self.name}" was closed while it waited'
        )

    def _handed_on(self, failure: BaseException) -> OpError:
        """Returns the producer's failure as an error of the consumer."""
        message = (
            f'the producer of {self.kind} "{self.name}" failed, and the queue is closed and has '
            f"too few elements: {failure}"
        )
        kind = type(failure) if isinstance(failure, OpError) else UnknownError
        error = kind(message)
        error.__cause__ = failure
        return error


def note_put(queue: QueueState, step: Step | None, elements: Sequence[Element]) -> None:
    """Has a step remember what it has put in."""
    if step is not None and step.queues is not None:
        step.queues.put(queue, elements)


def note_taken(queue: QueueState, step: Step | None, elements: Sequence[Element]) -> None:
    """Counts what a step has taken out, and has it remember that."""
    queue.taken += len(elements)
    if step is not None and step.queues is not None:
        step.queues.took(queue, elements)


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def call_all(done: list[tuple[Finish, Any]]) -> None:
    """Tells those who waited; no lock is held."""
    for finish, result in done:
        finish(result)


def bounded(capacity: int) -> int:
    """Returns the capacity as a number: TensorFlow's -1 is "as many as there are"."""
    return capacity if capacity >= 0 else 2**62


__all__ = ["Element", "Finish", "QueueState", "bounded", "call_all", "note_put", "note_taken"]
