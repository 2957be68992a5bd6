"""Iterators as state: a queue that fills itself from a dataset.

Whoever wants an element that is not in the buffer computes it, on its own thread, unless a thread
does so already: then it waits as for a queue, and holds no thread. Elements that are computed ahead
- as many as the `prefetch` at the end of the dataset says - are computed by a task on a thread of
the engine, which ends when the buffer is full.

A step that does not come to its end gives back what it took, as to any queue. So the position of an
iterator is the number of elements that were computed, less those in the buffer; together with the
key of its random numbers it says all that comes, for a pipeline is at element n in a state that n
alone says.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from flowscope.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
)
from flowscope.graph.current_step import current_step
from flowscope.graph.devices import DeviceSpec
from flowscope.graph.summary import counted
from flowscope.graph.values.shapes import compatible, text
from flowscope.ops.host.dataset_ops import DatasetValue, PrefetchDataset
from flowscope.plan.partition.element_functions import FunctionProgram
from flowscope.runtime.datasets.dataset_ahead import Failed, Job, ahead_of, outcome
from flowscope.runtime.datasets.dataset_functions import ElementFunction, PassControl
from flowscope.runtime.datasets.dataset_pipelines import (
    Context,
    EndOfDataset,
    Pipeline,
    pipeline_of,
)
from flowscope.runtime.datasets.dataset_reduction import KINDS as KINDS
from flowscope.runtime.devices.device import Device
from flowscope.runtime.state.queue_state import Element, Finish, QueueState
from flowscope.runtime.state.queue_transactions import goes_back
from flowscope.runtime.waits.rendezvous import Waiter

_WORD = (1 << 64) - 1


class _Pass:
    """One pass of an iterator through a dataset.

    Attributes:
        dataset: The dataset.
        key: What random numbers follow from where nothing else says so.
        control: Ends what computes ahead.
        pulled: How many elements were computed, or passed over.
        before: How many are to be passed over first.
        is_busy: Whether a thread computes elements.
        has_ended: Whether there are no more.
    """

    def __init__(
        self, dataset: DatasetValue, key: int, control: PassControl, before: int = 0
    ) -> None:
        self.dataset = dataset
        self.key = key
        self.control = control
        self.pulled = 0
        self.before = before
        self.is_busy = False
        self.has_ended = False
        self._pipeline: Pipeline | None = None

    def next(self) -> Element:
        """Computes the next element, which nobody else has.

        Raises:
            EndOfDataset: if there is none.
        """
        if self._pipeline is None:
            self._pipeline = pipeline_of(self.dataset, Context(self.control, self.key, {}))
        pipeline = self._pipeline
        while self.before:
            passed = pipeline.skip(min(self.before, _AT_ONCE))
            self.pulled += passed
            self.before -= passed
            if not passed:
                raise EndOfDataset
            self.control.check()
        try:
            found = pipeline.next()
        except EndOfDataset:
            raise
        except Exception as e:
            if not goes_back(e):
                self.pulled += 1
            raise
        self.pulled += 1
        return found if pipeline.is_fresh else tuple([_own(v) for v in found])


#: So long a step waits for an element before it does what else it can, in seconds.
_PATIENCE_S = 0.002
#: Of so many plans it is known that they make the same dataset.
_MOST_KNOWN = 16
#: So many elements are passed over between two looks whether somebody wants something.
_AT_ONCE = 4096


class IteratorState(QueueState):
    """An iterator.

    Attributes:
        name: Its name in its container.
        container: The container's.
        capacity: How many elements are computed ahead.
        dtypes, shapes: Per component.
    """

    kind = "Iterator"
    fills_itself = True
    identity: ClassVar[tuple[str, ...]] = ("kind", "dtypes", "shapes")

    __slots__ = ("_device", "_factories", "_pass", "_restored", "_waiter", "container")

    def __init__(self, name: str, container: str, dtypes: Any, shapes: Any) -> None:
        super().__init__(name, 0, dtypes, shapes)
        self.container = container
        self._pass: _Pass | None = None
        #: Of the thread that waits briefly for the one that computes.
        self._waiter = Waiter()
        #: To which elements are brought that are computed ahead.
        self._device: Device | None = None
        #: The programs that make the dataset that it has begun with: one per plan.
        self._factories: list[FunctionProgram] = []
        #: The position to be at once there is a dataset.
        self._restored: tuple[int, int] | None = None

    # -- what is asked of it --------------------------------------------------------------------

    @property
    def has_dataset(self) -> bool:
        """Whether it has begun with one."""
        return self._pass is not None

    @property
    def produced(self) -> int:
        """How many elements it has given or has ready, since its beginning."""
        current = self._pass
        return 0 if current is None else current.pulled

    @property
    def is_closed(self) -> bool:
        """Whether it has come to the end of its dataset."""
        current = self._pass
        return current is not None and current.has_ended

    @property
    def string_handle(self) -> bytes:
        """Its name as a string, for `FeedableGetNext`."""
        return f"{self.container}|{self.name}".encode()

    def __str__(self) -> str:
        parts = [f"{counted(self.produced, 'element')} computed, {self.size} of them ready"]
        if self._pass is None:
            parts = ["without a dataset"]
        elif self.is_closed:
            parts.append("at its end")
        waits = self.waiting[1]
        if waits:
            parts.append(f"{counted(waits, 'step')} waiting")
        return f'{self.kind} "{self.name}" ({", ".join(parts)})'

    def _contents(self) -> Iterable[Element]:
        return [e for e in self._elements if not isinstance(e, Failed)]

    def send_to(self, target: str, home: str, devices: Iterable[Device]) -> None:
        """Brings elements that are computed ahead to a device.

        Where that is none of this process, the step that takes an element brings it there.

        Args:
            target: The device, perhaps not all of its name.
            home: The full name of the iterator's own.
            devices: Those of this process.
        """
        own = DeviceSpec.from_string(home).replace(device_type=None, device_index=None)
        wish = own.make_merged_spec(DeviceSpec.from_string(target))
        found = (d for d in devices if wish.allows(DeviceSpec.from_string(d.name)))
        self._device = next(found, None)

    def _ahead(self, current: _Pass) -> Element:
        """Computes an element, and brings it to the device of who takes it."""
        found = current.next()
        device = self._device
        if device is None:
            return found
        kinds = zip(self.dtypes, found, strict=True)
        return tuple([v if dtype.kind in "srv" else device.put(v) for dtype, v in kinds])

    # -- its dataset ----------------------------------------------------------------------------

    def initialize(self, dataset: DatasetValue) -> None:
        """Begins with a dataset, at its first element."""
        with self._lock:
            restored, self._restored = self._restored, None
            self._begin(dataset, *(restored or (int.from_bytes(os.urandom(8)), 0)))
        self._go_on()

    def ensure(self, factory: FunctionProgram) -> None:
        """Begins with the dataset that a function makes, unless it has begun with that."""
        if any(one is factory for one in self._factories):
            return
        (made,) = ElementFunction(factory, (), PassControl(), 0, 0)(0, ())
        with self._lock:
            known = self._factories  # another step may have begun with it meanwhile
            if known and known[0] == factory:
                known.append(factory)
                del known[1:-_MOST_KNOWN]
                return
            # A cell that was run again may have made the dataset another one.
            self._factories = [factory]
            restored, self._restored = self._restored, None
            self._begin(made, *(restored or (int.from_bytes(os.urandom(8)), 0)))

    def _begin(self, dataset: DatasetValue, key: int, before: int) -> None:
        step = current_step()
        control = PassControl(None if step is None else step.host_threads)
        if self._pass is not None:
            self._pass.control.is_ended = True
        self.capacity = 0
        if isinstance(dataset.op, PrefetchDataset):
            # The buffer of the last prefetch is the iterator's own.
            self.capacity = ahead_of(int(dataset.inputs[1]))
            dataset = dataset.inputs[0]
        self._elements.clear()
        self._pass = _Pass(dataset, key & _WORD, control, before)

    def position(self) -> bytes:
        """Returns where it is, for `restore`.

        Raises:
            FailedPreconditionError: if it has no dataset yet.
        """
        with self._lock:
            current = self._begun()
            taken = current.pulled + current.before - len(self._elements)
            return json.dumps({"version": 1, "key": current.key, "taken": taken}).encode()

    def restore(self, position: bytes) -> None:
        """Goes to where it was; without a dataset, once it gets one.

        Raises:
            DataLossError: if it is not what `position` has returned.
        """
        try:
            match json.loads(position):
                case {"version": 1, "key": int(key), "taken": int(taken)} if taken >= 0:
                    pass
                case _:
                    raise ValueError("other facts")
        except ValueError as e:
            raise DataLossError(f"expected the position of an iterator: {e}") from e
        with self._lock:
            if self._pass is None:
                self._restored = key, taken
                return
            capacity = self.capacity
            self._begin(self._pass.dataset, key, taken)
            self.capacity = capacity
        self._go_on()

    def clear(self) -> None:
        """Has no dataset, and nobody computes ahead. Who waits gets a CancelledError."""
        with self._lock:
            if self._pass is not None:
                self._pass.control.is_ended = True
            self._pass = self._restored = None
            self._factories = []
        super().clear()

    def _begun(self) -> _Pass:
        if self._pass is None:
            raise FailedPreconditionError(
                f'{self.kind} "{self.name}" has no dataset yet: run its initializer first'
            )
        return self._pass

    # -- taking out -----------------------------------------------------------------------------

    def take(self, count: int, is_noted: bool = True) -> list[Element] | None:
        """Takes an element out, or computes it; returns None if somebody else computes one.

        Raises:
            OutOfRangeError: at the end.
            FailedPreconditionError: without a dataset.
            OpError: what the element fails with.
        """
        if not self._elements:
            self._wait_briefly()
        with self._lock:
            current = self._begun()
            if self._dequeues or (current.is_busy and not self._elements):
                return None
            if self._elements:
                found = self._elements.popleft()
                self._note_taken(current_step() if is_noted else None, found)
            elif current.has_ended:
                raise self._end()
            else:
                found = None
                current.is_busy = True
        if found is None:
            found = self._computed(current, is_noted)
        elif len(self._elements) <= self.capacity // 2:  # a thread is worth while for several
            self._go_on()
        if isinstance(found, Failed):
            raise found.error
        return [found]

    def _wait_briefly(self) -> None:
        """Waits for the thread that computes elements: to leave a step's code takes longer."""
        current = self._pass
        if current is None or not current.is_busy:
            return
        waiter = self._waiter = Waiter()
        if current.is_busy and not self._elements:
            begin, step = time.perf_counter_ns(), current_step()
            waiter.sleep(_PATIENCE_S)
            if step is not None and step.call.trace is not None:
                step.call.trace.waited("wait", begin)

    def _computed(self, current: _Pass, is_noted: bool) -> Element:
        """Returns the next element, computed on this thread."""
        try:
            found = current.next()
        except EndOfDataset:
            current.has_ended = True
            raise self._end() from None
        finally:
            current.is_busy = False
            self._waiter.wake()
            self._go_on()
        self._note_taken(current_step() if is_noted else None, found)
        return found

    def dequeue(
        self, count: int, finish: Finish, up_to: bool = False, reader: Any = None
    ) -> Callable[[], None]:
        """Takes an element out, waiting for it; returns what gives the wait up."""
        try:
            found = self.take(1, reader is None)
        except Exception as e:
            found = e  # type: ignore[assignment]
        if found is not None:
            finish(found)
            return lambda: None
        give_up = super().dequeue(1, finish, up_to, reader)
        self._go_on()
        return give_up

    def _note_taken(self, step: Any, element: Any) -> None:
        self.taken += 1
        if step is not None and step.queues is not None and not isinstance(element, Failed):
            step.queues.took(self, [element])

    def _end(self) -> OutOfRangeError:
        return OutOfRangeError(f'End of sequence: {self.kind} "{self.name}" has no more elements')

    # -- computing ahead ------------------------------------------------------------------------

    def _drain(self, done: list[tuple[Finish, Any]]) -> bool:
        """Gives elements to who waits; with the lock held."""
        moved = False
        while self._dequeues:
            wait = next(iter(self._dequeues))
            if self._elements:
                found = self._elements.popleft()
                self._note_taken(wait.noted, found)
                done.append((wait.finish, found.error if isinstance(found, Failed) else [found]))
            elif self._pass is not None and self._pass.has_ended:
                done.append((wait.finish, self._end()))
            else:
                break
            del self._dequeues[wait]
            moved = True
        return moved

    def _wants(self, current: _Pass) -> bool:
        """Whether an element is to be computed ahead; with the lock held."""
        if current is not self._pass or current.has_ended or current.control.is_ended:
            return False
        return len(self._elements) < self.capacity or bool(self._dequeues)

    def _go_on(self) -> None:
        """Gives what there is to who waits, and has a thread compute what is wanted."""
        with self._lock:
            done = self._pump()
            current = self._pass
            threads = None if current is None else current.control.threads
            is_begun = current is not None and not current.is_busy and self._wants(current)
            if current is not None and is_begun:
                current.is_busy = True
        for finish, result in done:
            finish(result)
        if is_begun and current is not None:
            if threads is None:
                step = current_step()
                threads = None if step is None else step.host_threads
            if threads is None:
                current.is_busy = False
            else:
                threads.run(Job(lambda: self._run(current)))

    def _run(self, current: _Pass) -> None:
        """Computes elements while somebody wants them."""
        while True:
            found = outcome(lambda: self._ahead(current))
            is_end = isinstance(found, Failed) and isinstance(found.error, EndOfDataset)
            with self._lock:
                if current is self._pass and not current.control.is_ended and not is_end:
                    self._elements.append(found)
                current.has_ended = current.has_ended or is_end
                done = self._pump()
                goes_on = self._wants(current)
                current.is_busy = goes_on
            self._waiter.wake()
            for finish, result in done:
                finish(result)
            if not goes_on:
                return


class FeedableState(QueueState):
    """Stands for another iterator of its container, which each step names.

    Args:
        handle: Its handle.
        lookup: Returns the state of a family and a name in the container, or None.
    """

    kind = "FeedableIterator"
    identity: ClassVar[tuple[str, ...]] = ("kind", "dtypes", "shapes")

    __slots__ = ("_container", "_lookup")

    def __init__(self, handle: Any, lookup: Callable[[str, str], Any]) -> None:
        super().__init__(handle.shared_name, 0, handle.dtypes, handle.shapes)
        self._container = handle.container
        self._lookup = lookup

    def find(self, string_handle: bytes) -> IteratorState:
        """Returns the iterator that a string names.

        Raises:
            NotFoundError: if there is none.
            InvalidArgumentError: if its elements have other components.
        """
        container, _, name = string_handle.decode(errors="replace").partition("|")
        found = self._lookup("queue", name) if container == self._container else None
        if not isinstance(found, IteratorState):
            raise NotFoundError(
                f"no iterator is named {string_handle!r} where this operation is placed"
            )
        if found.dtypes != self.dtypes or not _fit(self.shapes or (), found.shapes or ()):
            raise InvalidArgumentError(
                f'expected an iterator of components {self._described(self)}, got "{name}" of '
                f"{self._described(found)}"
            )
        return found

    @staticmethod
    def _described(state: QueueState) -> str:
        pairs = zip(state.dtypes, state.shapes or ())
        return ", ".join(f"{d}{text(s)}" for d, s in pairs)


def _fit(wanted: Sequence[Any], found: Sequence[Any]) -> bool:
    return len(wanted) == len(found) and all(map(compatible, wanted, found))


def _own(value: Any) -> Any:
    """Returns a value that nobody else can change: scalars are so, arrays are copied."""
    return value.copy() if isinstance(value, np.ndarray) else value


__all__ = ["FeedableState", "IteratorState"]
