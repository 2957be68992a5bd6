"""Queues: elements that steps hand to other steps, or to later parts of themselves.

    queue = fs.FIFOQueue(capacity=10, dtypes=[fs.float32, fs.int32], shapes=[[28, 28], []])
    put = queue.enqueue([image, label])             # waits while there are ten
    images, labels = queue.dequeue_many(4)          # waits until there are four

A step that waits holds no thread but the one that called `Session.run`; loops go on with what else
they can do meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.op import Op
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.providers import load
from flowscope.graph.values.dtypes import DType, as_dtype, int32, int64
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, TensorShape, as_dims, is_known
from flowscope.ops.core.build import apply, apply_many, apply_none
from flowscope.ops.core.handles import add_handle
from flowscope.ops.random.seeds import get_seed
from flowscope.ops.state.containers import queue_ops as ops

__all__ = ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue"]

#: Makes a queue of several, of which each step chooses one: `flowscope.control.chosen_queue`.
choosers: list[Callable[[Any, Any], QueueBase]] = []


class QueueBase:
    """What queues of all kinds have in common; make one of the kinds, such as `fs.FIFOQueue`.

    Attributes:
        name: Name of the operation that makes the handle.
        queue_ref: The handle.
        dtypes: Of the components of an element.
        shapes: Of the components, unknown ones where each element may have its own.
        names: Of the components, None where they are taken by position.
    """

    def __init__(
        self,
        dtypes: Sequence[DType],
        shapes: Sequence[Dims] | None,
        names: Sequence[str] | None,
        queue_ref: Tensor,
    ) -> None:
        self._shapes: ops.Shapes = None if shapes is None else tuple(shapes)
        self.dtypes: list[DType] = list(dtypes)
        self.names = None if names is None else list(names)
        self.queue_ref = queue_ref

    @staticmethod
    def from_list(index: Any, queues: Any) -> QueueBase:
        """Returns a queue that is one of several: each operation is that of the chosen one.

        Args:
            index: Its number in the list, an integer scalar; a tensor is evaluated by each step
                that uses the queue.
            queues: A list of queues whose components have the same dtypes and names. Where shapes
                differ, they are unknown.

        Returns:
            A queue without a handle of its own: operations that take a queue's handle refuse it.

        Raises:
            DTypeError: if `queues` is no list of queues, or dtypes or names differ.
            InvalidArgumentError: if there is no queue of this number; when it runs, for a tensor.
        """
        if not choosers:
            load("queue_choosers")
        return choosers[0](index, queues)

    @property
    def name(self) -> str:
        """Name of the operation that makes the handle."""
        return self.queue_ref.op.name

    @property
    def shapes(self) -> list[TensorShape]:
        """Shapes of the components."""
        return [TensorShape(s) for s in self._shapes or [None] * len(self.dtypes)]

    def __repr__(self) -> str:
        return f"<fs.{type(self).__name__} '{self.name}' of {', '.join(map(str, self.dtypes))}>"

    # -- putting in -----------------------------------------------------------------------------

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """Returns an operation that puts one element in, and waits while the queue is full.

        Args:
            vals: A value for each component: a tensor, a list or tuple of them, or for a queue with
                names a dict.
            name: Name of the operation.

        Raises:
            CancelledError: when it runs, if the queue is closed, or gets closed with
                `cancel_pending_enqueues` while it waits.
        """
        return self._put(ops.Enqueue, vals, name or f"{self._last}_enqueue")

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """Returns an operation that puts several elements in: the slices of `vals`, in order.

        Nothing that others put in comes between them.

        Args:
            vals: As in `enqueue`, with a first axis more.
            name: Name of the operation.

        Raises:
            CancelledError: when it runs, as for `enqueue`; what is in by then stays in.
        """
        return self._put(ops.EnqueueMany, vals, name or f"{self._last}_EnqueueMany")

    def _put(self, op: Any, vals: Any, name: str) -> Operation:
        values = self._components(vals)
        full = get_default_graph().unique_name(name, mark_as_used=False)
        tensors = [
            convert_to_tensor(v, d, name=f"{full}/component_{i}/")
            for i, (v, d) in enumerate(zip(values, self.dtypes))
        ]
        return apply_none(op(tuple(self.dtypes), self._shapes), self.queue_ref, *tensors, name=name)

    def _components(self, vals: Any) -> list[Any]:
        if isinstance(vals, Mapping) != (self.names is not None):
            wanted = f"a dict with {self._described()}, the queue has names"
            raise InvalidArgumentError(
                f"expected {wanted}, got {vals!r}"
                if self.names is not None
                else f"expected values by position, for the queue has no names, got {vals!r}"
            )
        if self.names is not None:
            if sorted(vals) != sorted(self.names):
                raise expected(f"values for {self._described()}", ", ".join(map(repr, vals)))
            return [vals[n] for n in self.names]
        # A list for a queue of one component may be that component's value.
        values = list(vals) if isinstance(vals, list | tuple) else [vals]
        if len(self.dtypes) == 1 and (len(values) != 1 or not isinstance(vals, list | tuple)):
            values = [vals]
        if len(values) != len(self.dtypes):
            raise expected(f"{len(self.dtypes)} components, {self._described()}", len(values))
        return values

    def _described(self) -> str:
        names = self.names or [str(i) for i in range(len(self.dtypes))]
        return ", ".join(f"{n!r} ({d})" for n, d in zip(names, self.dtypes))

    # -- taking out -----------------------------------------------------------------------------

    def dequeue(self, name: str | None = None) -> Any:
        """Returns the components of one element, and waits for one.

        Args:
            name: Name of the operation.

        Returns:
            A tensor for a queue of one component, else a list of them; for a queue with names a
            dict.

        Raises:
            OutOfRangeError: when it runs, if the queue is closed and empty.
        """
        op = ops.Dequeue(tuple(self.dtypes), self._shapes)
        return self._taken(op, name or f"{self._last}_Dequeue")

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """Returns `n` elements, stacked by component, and waits until there are as many.

        Args:
            n: int32 scalar; may be more than the capacity.
            name: Name of the operation.

        Shapes: [n, ...] per component

        Raises:
            OutOfRangeError: when it runs, if the queue is closed and has fewer.
        """
        op = ops.DequeueMany(tuple(self.dtypes), self._shapes)
        return self._taken_many(op, n, name or f"{self._last}_DequeueMany")

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """Returns `n` elements, stacked by component; of a closed queue what it has left.

        Args:
            n: int32 scalar; may be more than the capacity.
            name: Name of the operation.

        Shapes: [between 1 and n, ...] per component

        Raises:
            OutOfRangeError: when it runs, if the queue is closed and empty.
        """
        op = ops.DequeueUpTo(tuple(self.dtypes), self._shapes)
        return self._taken_many(op, n, name or f"{self._last}_DequeueUpTo")

    def _taken_many(self, op: Op, n: Any, name: str) -> Any:
        full = get_default_graph().unique_name(name, mark_as_used=False)
        return self._taken(op, name, convert_to_tensor(n, int32, name=f"{full}/n/"))

    def _taken(self, op: Op, name: str, *inputs: Tensor) -> Any:
        tensors = apply_many(op, self.queue_ref, *inputs, name=name)
        if self.names is not None:
            return dict(zip(self.names, tensors, strict=True))
        return tensors[0] if len(tensors) == 1 else list(tensors)

    # -- its end, and what is asked -------------------------------------------------------------

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Returns an operation that closes the queue: it takes in nothing new.

        What is in can be taken out. Who waits to put something in still may, and the operation does
        not wait for them, unlike TensorFlow's.

        Args:
            cancel_pending_enqueues: Whether the waits of those are ended with a CancelledError.
            name: Name of the operation.

        Raises:
            CancelledError: when it runs, if the queue is closed already and nothing is to be
                cancelled.
        """
        op = ops.QueueClose(bool(cancel_pending_enqueues))
        return apply_none(op, self.queue_ref, name=name or f"{self._last}_Close")

    def is_closed(self, name: str | None = None) -> Tensor:
        """Returns whether the queue is closed, a bool scalar."""
        return apply(ops.QueueIsClosed(), self.queue_ref, name=name or f"{self._last}_Is_Closed")

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of elements in the queue, an int32 scalar."""
        return apply(ops.QueueSize(), self.queue_ref, name=name or f"{self._last}_Size")

    @property
    def _last(self) -> str:
        """The last part of the name, after which the operations are called."""
        return self.name.rpartition("/")[2]


class FIFOQueue(QueueBase):
    """A queue whose elements come out in the order in which they went in.

    Args:
        capacity: Most elements that it holds; what puts more in waits. Negative: no limit.
        dtypes: Of the components of an element; one alone for elements of one component.
        shapes: Of the components, fully known; None: each element may have its own, and elements
            cannot be stacked.
        names: Of the components: elements are dicts then.
        shared_name: Name of the queue in its container (see `fs.container`), by which others can
            use it; the handle's by default.
        name: Name of the operation that makes the handle.

    Raises:
        InvalidArgumentError: if shapes or names do not fit the dtypes, or a shape is not known;
            when it is first used, if the container has a queue of this name that differs.

    Example:
        >>> queue = fs.FIFOQueue(3, fs.int32, [])
        >>> fill, take = queue.enqueue_many([[1, 2, 3]]), queue.dequeue()
        >>> sess = fs.Session()
        >>> sess.run(fill)
        >>> sess.run(take), sess.run(queue.size())
        (np.int32(1), np.int32(2))
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:
        kinds = as_kinds(dtypes, as_dtype)
        dims = as_shapes(shapes, len(kinds))
        called = as_names(names, len(kinds))
        facts = _Facts(_as_capacity(capacity), kinds, dims, shared_name, name)
        super().__init__(kinds, dims, called, facts.handle(ops.FIFOQueueHandle))


class PaddingFIFOQueue(QueueBase):
    """A first-in, first-out queue whose elements may have shapes of their own.

    `dequeue_many` and `dequeue_up_to` fill the elements that they stack up with zeros, or empty
    strings, to the size of the largest one.

    Args:
        capacity: Most elements that it holds; what puts more in waits. Negative: no limit.
        dtypes: Of the components of an element; one alone for elements of one component.
        shapes: Of the components, of known rank; None for a dimension that is open.
        names: Of the components: elements are dicts then.
        shared_name: Name of the queue in its container (see `fs.container`), by which others can
            use it; the handle's by default.
        name: Name of the operation that makes the handle.

    Raises:
        InvalidArgumentError: if shapes or names do not fit the dtypes, or a rank is not known;
            when it is first used, if the container has a queue of this name that differs.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        kinds = as_kinds(dtypes, as_dtype)
        if shapes is None:
            raise expected("a shape for each component of a PaddingFIFOQueue", "None")
        dims = as_shapes(shapes, len(kinds), is_open=True)
        called = as_names(names, len(kinds))
        facts = _Facts(_as_capacity(capacity), kinds, dims, shared_name, name)
        super().__init__(kinds, dims, called, facts.handle(ops.PaddingFIFOQueueHandle))


class RandomShuffleQueue(QueueBase):
    """A queue whose elements come out in random order.

    Args:
        capacity: Most elements that it holds; what puts more in waits. Negative: no limit.
        min_after_dequeue: Until the queue is closed so many elements stay in: what would take one
            of them waits. The more, the better they are mixed.
        dtypes: Of the components of an element; one alone for elements of one component.
        shapes: Of the components, fully known; None: each element may have its own, and elements
            cannot be stacked.
        names: Of the components: elements are dicts then.
        seed: Says the order, together with the graph's (see `fs.set_random_seed`): the same
            elements, put in in the same order, come out in the same order. With
            `min_after_dequeue` above 0 that holds whatever those who put in are ahead: an element
            is chosen from the `min_after_dequeue` + 1 that have been in longest. Without either
            seed the order is another one each time, and an element is chosen from all.
        shared_name: Name of the queue in its container (see `fs.container`), by which others can
            use it; the handle's by default.
        name: Name of the operation that makes the handle.

    Raises:
        InvalidArgumentError: if shapes or names do not fit the dtypes, a shape is not known, or
            `min_after_dequeue` is negative or not below the capacity; when it is first used, if
            the container has a queue of this name that differs.

    Example:
        >>> queue = fs.RandomShuffleQueue(9, 0, fs.int32, [], seed=1)
        >>> fill, take = queue.enqueue_many([[1, 2, 3]]), queue.dequeue_many(3)
        >>> sess = fs.Session()
        >>> sess.run(fill)
        >>> sorted(sess.run(take).tolist())
        [1, 2, 3]
    """

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        kinds = as_kinds(dtypes, as_dtype)
        dims = as_shapes(shapes, len(kinds))
        called = as_names(names, len(kinds))
        facts = _Facts(_as_capacity(capacity), kinds, dims, shared_name, name)
        kept = _as_capacity(min_after_dequeue, "min_after_dequeue, a number of elements")
        if kept < 0 or 0 <= facts.capacity <= kept:
            raise expected(
                f"min_after_dequeue of 0 or more, below the capacity of {facts.capacity}", kept
            )
        seeds = get_seed(seed)
        pair = None if seeds[0] is None or seeds[1] is None else (seeds[0], seeds[1])
        handle = facts.handle(ops.RandomShuffleQueueHandle, min_after_dequeue=kept, seed=pair)
        super().__init__(kinds, dims, called, handle)


class PriorityQueue(QueueBase):
    """A queue whose elements come out by priority, the least first; of equals the older one.

    The first component of an element is its priority, an int64 scalar: it is given to `enqueue`
    before the others, and taken out with them.

    Args:
        capacity: Most elements that it holds; what puts more in waits. Negative: no limit.
        types: Dtypes of the other components; none, with [], for priorities alone.
        shapes: Of the other components, fully known; None: each element may have its own, and
            elements cannot be stacked.
        names: Of all components: elements are dicts then.
        shared_name: Name of the queue in its container (see `fs.container`), by which others can
            use it; the handle's by default.
        name: Name of the operation that makes the handle.

    Raises:
        InvalidArgumentError: if shapes or names do not fit the dtypes, or a shape is not known;
            when it is first used, if the container has a queue of this name that differs.

    Example:
        >>> queue = fs.PriorityQueue(9, fs.string, [])
        >>> fill, take = queue.enqueue_many([[2, 1], ["later", "first"]]), queue.dequeue()
        >>> sess = fs.Session()
        >>> sess.run(fill)
        >>> sess.run(take)
        [np.int64(1), b'first']
    """

    def __init__(
        self,
        capacity: int,
        types: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        others = [] if isinstance(types, list | tuple) and not types else as_kinds(types, as_dtype)
        kinds = [int64, *others]
        dims = None if shapes is None else ((), *(as_shapes(shapes, len(others)) or ()))
        called = as_names(names, len(kinds))
        facts = _Facts(_as_capacity(capacity), kinds, dims, shared_name, name)
        super().__init__(kinds, dims, called, facts.handle(ops.PriorityQueueHandle))


class _Facts(NamedTuple):
    """What the handles of all kinds of queues are made of."""

    capacity: int
    dtypes: Sequence[DType]
    shapes: ops.Shapes
    shared_name: str | None
    name: str

    def handle(self, op: Any, **more: Any) -> Tensor:
        """Adds the operation that makes the handle."""
        return add_handle(
            op,
            self.name,
            self.shared_name,
            capacity=self.capacity,
            dtypes=tuple(self.dtypes),
            shapes=self.shapes,
            **more,
        )


def _as_capacity(capacity: Any, what: str = "a capacity, a number of elements") -> int:
    if isinstance(capacity, bool) or not hasattr(capacity, "__index__"):
        raise expected_dtype(what, repr(capacity))
    return int(capacity)


def as_kinds(dtypes: Any, convert: Any) -> list[Any]:
    """One or several dtypes, as a list."""
    given = dtypes if isinstance(dtypes, list | tuple) else [dtypes]
    if not given:
        raise expected("a dtype for each component", "none")
    return [convert(d) for d in given]


def as_shapes(shapes: Any, count: int, is_open: bool = False) -> tuple[Dims, ...] | None:
    """Shapes of the components; their dimensions may be unknown where `is_open`."""
    if shapes is None:
        return None
    # One shape alone may be given for one component: [2, 3], or [] for a scalar.
    is_one = isinstance(shapes, TensorShape) or all(isinstance(s, int | None) for s in shapes)
    given = [shapes] if is_one and count == 1 else list(shapes)
    if len(given) != count:
        raise expected(f"a shape for each of the {count} components", len(given))
    dims = tuple([as_dims(s) for s in given])
    if is_open and None in dims:
        raise expected("shapes of known rank", ", ".join(map(str, given)))
    if not is_open and not all(is_known(d) for d in dims):
        raise InvalidArgumentError(
            f"expected shapes that are fully known, got {', '.join(map(str, given))}; "
            "shapes=None leaves them open"
        )
    return dims


def as_names(names: Any, count: int) -> list[str] | None:
    """Names of components as a list, None for none; raises unless there is one for each."""
    if names is None:
        return None
    given = [names] if isinstance(names, str) else list(names)
    if len(given) != count:
        raise expected(f"a name for each of the {count} components", len(given))
    if len(set(given)) < len(given):
        raise expected("names that differ", ", ".join(given))
    return given
