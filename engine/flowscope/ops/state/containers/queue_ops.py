"""Queues as ops: a handle, and what puts in, takes out, closes and asks.

Putting in and taking out may have to wait. Such an op has `begin` in place of a kernel: it asks the
queue behind the handle (see `runtime.state.queue_state`), and hands a function over that is
called when there is an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, compatible, is_known, text

#: Called once with the op's outputs, or with what went wrong.
Finish = Callable[[Any], None]
#: Shapes of the components, None where each element may have its own.
Shapes = tuple[Dims, ...] | None


class QueueHandle(Op, abstract=True, is_stateful=True, is_handle=True, family="queue"):
    """Base of the handles of queues, which live in a container."""

    capacity: int
    #: Of the components of an element, a priority included.
    dtypes: tuple[DType, ...]
    shapes: Shapes
    container: str
    shared_name: str

    def infer(self) -> Spec:
        """A resource."""
        return Spec(dtypes.resource, ())


@frozen
class FIFOQueueHandle(QueueHandle, is_stateful=True, is_handle=True):
    """The handle of a first-in, first-out queue."""

    capacity: int
    dtypes: tuple[DType, ...]
    shapes: Shapes
    container: str
    shared_name: str


@frozen
class PaddingFIFOQueueHandle(QueueHandle, is_stateful=True, is_handle=True):
    """The handle of a first-in, first-out queue that fills elements up to one shape."""

    capacity: int
    dtypes: tuple[DType, ...]
    shapes: Shapes
    container: str
    shared_name: str


@frozen
class RandomShuffleQueueHandle(QueueHandle, is_stateful=True, is_handle=True):
    """The handle of a queue whose elements come out in random order.

    Attributes: `seed` is (graph seed, op seed); None: another order each time.
    """

    capacity: int
    dtypes: tuple[DType, ...]
    shapes: Shapes
    container: str
    shared_name: str
    min_after_dequeue: int = 0
    seed: tuple[int, int] | None = None


@frozen
class PriorityQueueHandle(QueueHandle, is_stateful=True, is_handle=True):
    """The handle of a queue whose elements come out by their first component, the least first."""

    capacity: int
    dtypes: tuple[DType, ...]
    shapes: Shapes
    container: str
    shared_name: str


@frozen
class BarrierHandle(QueueHandle, is_stateful=True, is_handle=True):
    """The handle of a barrier: a queue whose elements are put together of components by key.

    `dtypes` and `shapes` are those of the elements that come out: a number, a key, the components.
    """

    capacity: int
    dtypes: tuple[DType, ...]
    shapes: Shapes
    container: str
    shared_name: str


@frozen
class StagingAreaHandle(QueueHandle, is_stateful=True, is_handle=True, family="staging area"):
    """The handle of a staging area.

    Attributes:
        memory_limit: Most bytes that it holds; 0: no limit.
        has_keys: Whether each element has a key.
        is_ordered: Whether elements come out by their keys, the least first.
    """

    capacity: int
    dtypes: tuple[DType, ...]
    shapes: Shapes
    container: str
    shared_name: str
    memory_limit: int = 0
    has_keys: bool = False
    is_ordered: bool = False


class QueueOp(Op, abstract=True, is_stateful=True, is_differentiable=False, devices=("CPU",)):
    """Base of all ops of queues.

    Attributes:
        fills, empties: Whether it may end a wait for elements, or for space.
    """

    fills: ClassVar[bool] = False
    empties: ClassVar[bool] = False


class Blocking(QueueOp, abstract=True, is_blocking=True):
    """Base of ops that may wait."""

    #: Those of the queue.
    dtypes: tuple[DType, ...]
    shapes: Shapes

    def begin(self, state: Any, finish: Finish, *inputs: Array) -> Callable[[], None]:
        """Asks the queue; see `flowscope.graph.op.Op.begin`."""
        raise NotImplementedError

    def failed(self, state: Any, error: BaseException) -> None:
        """Tells the queue that a step failed in which this was to put something in."""
        if self.fills:
            state.producer_failed(error)

    def _element(self, index: int) -> Dims:
        return None if self.shapes is None else self.shapes[index]


class _Enqueues(Blocking, abstract=True):
    fills: ClassVar[bool] = True
    #: What an error calls a value.
    what: ClassVar[str] = "element"

    def infer(self, handle: Spec, *components: Spec) -> tuple[Spec, ...]:
        check_queue(handle)
        if len(components) != len(self.dtypes):
            raise expected(f"{len(self.dtypes)} components", len(components))
        for i, (spec, dtype) in enumerate(zip(components, self.dtypes)):
            if spec.dtype is not dtype:
                raise expected_dtype(f"component {i} of dtype {dtype}", spec.dtype)
            self._check_shape(i, spec.shape)
        return ()

    def _elements(self, inputs: Sequence[Array]) -> Sequence[tuple[Array, ...]]:
        """The elements to enqueue; raises InvalidArgumentError if they do not fit."""
        raise NotImplementedError

    def attempt(self, state: Any, *inputs: Array) -> tuple[Any, ...] | None:
        """Puts the elements in if the queue takes them at once."""
        return () if state.put(self._elements(inputs)) else None

    def begin(self, state: Any, finish: Finish, *inputs: Array) -> Callable[[], None]:
        """Asks the queue to take the elements."""
        give_up: Callable[[], None] = state.enqueue(self._elements(inputs), finish)
        return give_up

    def _check_shape(self, index: int, shape: Dims) -> None:
        wanted = None if self.shapes is None else self.shapes[index]
        if shape != wanted and not compatible(wanted, shape):
            raise expected(f"component {index} of an {self.what} of shape {text(wanted)}", shape)


@frozen
class Enqueue(_Enqueues):
    """Puts one element into a queue, waiting for space.

    Shapes: handle [], one value per component of the queue's shapes
    Raises: CancelledError if the queue is closed.
    """

    dtypes: tuple[DType, ...]
    shapes: Shapes

    def _elements(self, inputs: Sequence[Array]) -> Sequence[tuple[Array, ...]]:
        for i, value in enumerate(inputs):
            self._check_shape(
                i, getattr(value, "shape", ())
            )  # a string of rank 0 is a bytes object
        return (tuple([v.copy() if isinstance(v, np.ndarray) else v for v in inputs]),)


@frozen
class EnqueueMany(_Enqueues, what="element, the part behind the first axis,"):
    """Puts the slices of values along their first axis into a queue, waiting for space.

    Shapes: handle [], one value [n, ...] per component
    Raises: CancelledError if the queue is closed; InvalidArgumentError if the n differ.
    """

    dtypes: tuple[DType, ...]
    shapes: Shapes

    def _check_shape(self, index: int, shape: Dims) -> None:
        if shape == ():
            raise expected(
                f"component {index} with a first axis that counts the elements",
                "a scalar: enqueue takes a single element",
            )
        super()._check_shape(index, None if shape is None else shape[1:])

    def infer(self, handle: Spec, *components: Spec) -> tuple[Spec, ...]:
        out = super().infer(handle, *components)
        _check_counts([s.shape[0] for s in components if s.shape])
        return out

    def attempt(self, state: Any, *inputs: Array) -> tuple[Any, ...] | None:
        # What cannot be put in is not copied for nothing.
        has_room = not inputs[0].shape or state.has_room(len(inputs[0]))
        return super().attempt(state, *inputs) if has_room else None

    def _elements(self, inputs: Sequence[Array]) -> Sequence[tuple[Array, ...]]:
        for i, value in enumerate(inputs):
            self._check_shape(i, value.shape)
        _check_counts([len(v) for v in inputs])
        # Slices of a copy that is the queue's own.
        return list(zip(*[list(v.copy()) for v in inputs]))


class _Dequeues(Blocking, abstract=True):
    empties: ClassVar[bool] = True

    def _outputs(self, leading: tuple[int | None, ...]) -> tuple[Spec, ...]:
        shapes = [self._element(i) for i in range(len(self.dtypes))]
        return tuple([
            Spec(d, None if s is None else (*leading, *s)) for d, s in zip(self.dtypes, shapes)
        ])  # fmt: skip


@frozen
class Dequeue(_Dequeues):
    """Takes the next element out of a queue, waiting for one.

    Shapes: handle [] -> one value per component
    Raises: OutOfRangeError if the queue is closed and empty, or what its producer failed with.
    """

    dtypes: tuple[DType, ...]
    shapes: Shapes

    def infer(self, handle: Spec) -> tuple[Spec, ...]:
        check_queue(handle)
        return self._outputs(())

    def attempt(self, state: Any, *inputs: Array) -> tuple[Any, ...] | None:
        found = state.take(1)
        return None if found is None else tuple([_owned(v) for v in found[0]])

    def begin(self, state: Any, finish: Finish, *inputs: Array) -> Callable[[], None]:
        def finished(found: Any) -> None:
            failed = isinstance(found, BaseException)
            finish(found if failed else tuple([_owned(v) for v in found[0]]))

        give_up: Callable[[], None] = state.dequeue(1, finished)
        return give_up


class DequeuesMany(_Dequeues, abstract=True):
    """Base of ops that take several elements, stacked."""

    up_to: ClassVar[bool] = False

    def infer(self, handle: Spec, count: Spec) -> tuple[Spec, ...]:
        check_queue(handle)
        if self.shapes is None:
            raise InvalidArgumentError(
                "elements of a queue without shapes cannot be stacked: make it with shapes="
            )
        if count.dtype is not dtypes.int32:
            raise expected_dtype("the number of elements as int32", count.dtype)
        if not compatible((), count.shape):
            raise expected("the number of elements as a scalar", f"shape {text(count.shape)}")
        known = None if count.constant is None else _counted(count.constant)
        return self._outputs((None if self.up_to else known,))

    def attempt(self, state: Any, *inputs: Array) -> tuple[Any, ...] | None:
        """Takes the elements out if they are there."""
        found = state.take(_counted(inputs[0]))
        return None if found is None else self._stacked(found)

    def begin(self, state: Any, finish: Finish, *inputs: Array) -> Callable[[], None]:
        """Asks the queue for the elements."""

        def finished(found: Any) -> None:
            if not isinstance(found, BaseException):
                try:
                    found = self._stacked(found)
                except Exception as e:  # such as too little memory
                    found = e
            finish(found)

        count = _counted(inputs[0])
        give_up: Callable[[], None] = state.dequeue(count, finished, self.up_to)
        return give_up

    def _stacked(self, elements: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
        columns: Any = zip(*elements) if elements else [()] * len(self.dtypes)
        return tuple([
            _stack(column, dtype, self._element(i))
            for i, (column, dtype) in enumerate(zip(columns, self.dtypes))
        ])  # fmt: skip


@frozen
class DequeueMany(DequeuesMany):
    """Takes the n next elements out of a queue, stacked, waiting until there are as many.

    Shapes: handle [], n [] -> one value [n, ...] per component
    Raises: OutOfRangeError if the queue is closed and has fewer, or what its producer failed with.
    """

    dtypes: tuple[DType, ...]
    shapes: Shapes


@frozen
class DequeueUpTo(DequeuesMany, up_to=True):
    """Takes the n next elements out of a queue, stacked; of a closed one as many as it has.

    Shapes: handle [], n [] -> one value [at most n, ...] per component
    Raises: OutOfRangeError if the queue is closed and empty, or what its producer failed with.
    """

    dtypes: tuple[DType, ...]
    shapes: Shapes


@frozen
class QueueClose(QueueOp):
    """Closes a queue: nothing new is taken in, and what is in can be taken out.

    Attributes: `cancel_pending_enqueues` also ends the waits of those that are to put something in.
    Raises: CancelledError if it is closed already and nothing is to be cancelled.
    """

    fills: ClassVar[bool] = True
    empties: ClassVar[bool] = True
    cancel_pending_enqueues: bool = False

    def infer(self, handle: Spec) -> tuple[Spec, ...]:
        check_queue(handle)
        return ()

    def kernel(self, xp: ArrayModule, state: Any) -> None:
        state.close(self.cancel_pending_enqueues)


class Asks(QueueOp, abstract=True, reads_state=True, accepts_empty=True):
    """Base of ops that ask a queue about itself."""


class QueueSize(Asks):
    """The number of elements in a queue."""

    def infer(self, handle: Spec) -> Spec:
        check_queue(handle)
        return Spec(dtypes.int32, ())

    def kernel(self, xp: ArrayModule, state: Any) -> Array:
        return np.int32(state.size)


class QueueIsClosed(Asks):
    """Whether a queue is closed."""

    def infer(self, handle: Spec) -> Spec:
        check_queue(handle)
        return Spec(dtypes.bool_, ())

    def kernel(self, xp: ArrayModule, state: Any) -> Array:
        return np.bool_(state.is_closed)


def check_queue(handle: Spec) -> None:
    """Raises DTypeError unless this is the handle of a queue."""
    if handle.dtype is not dtypes.resource or handle.variable is not None:
        raise expected_dtype("a queue", handle)


def _check_counts(counts: Sequence[int | None]) -> None:
    known = {n for n in counts if n is not None}
    if len(known) > 1:
        raise expected("components with the same number of elements", sorted(known))


def _counted(count: Array) -> int:
    n = int(count)
    if n < 0:
        raise expected("a number of elements of 0 or more", n)
    return n


def kept(value: Array) -> Array:
    """Returns a value that nobody else can change: scalars are so, arrays are copied."""
    return value.copy() if isinstance(value, np.ndarray) else value


def _owned(value: Array) -> Array:
    """Returns a value, or a copy of a view, so that the larger array can be freed."""
    is_part = isinstance(value, np.ndarray) and value.base is not None
    return value.copy() if is_part else value


def _stack(values: Sequence[Array], dtype: DType, shape: Dims) -> Array:
    """Values of one component as one array, filled up with zeros where lengths are open."""
    if not values:
        assert shape is not None  # or it could not be asked for
        return np.empty((0, *[d or 0 for d in shape]), dtype.np_dtype)
    if not shape:
        return np.array(values, dtype.np_dtype)
    if is_known(shape):
        return np.stack(values)
    sizes = np.max([np.shape(v) for v in values], axis=0)
    out = np.full((len(values), *sizes), b"" if dtype is dtypes.string else 0, dtype.np_dtype)
    for row, value in zip(out, values):
        row[tuple(slice(n) for n in np.shape(value))] = value
    return out


__all__ = [
    "BarrierHandle",
    "Dequeue",
    "DequeueMany",
    "DequeueUpTo",
    "Enqueue",
    "EnqueueMany",
    "FIFOQueueHandle",
    "PaddingFIFOQueueHandle",
    "PriorityQueueHandle",
    "QueueClose",
    "QueueHandle",
    "QueueIsClosed",
    "QueueSize",
    "RandomShuffleQueueHandle",
    "StagingAreaHandle",
]
