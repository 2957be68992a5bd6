"""Barriers: elements whose components come one by one, by key, and that go out when complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from flowscope.errors import InvalidArgumentError, UnimplementedError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Spec, frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype, int32, int64, string
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import compatible, text
from flowscope.ops.core.build import apply, apply_many, apply_none
from flowscope.ops.core.handles import add_handle
from flowscope.ops.state.containers import queue_ops as ops
from flowscope.ops.state.containers.queues import as_kinds, as_shapes

__all__ = ["Barrier"]


@frozen
class BarrierInsertMany(ops.Blocking, fills=True):
    """Puts one component of several elements into a barrier; never waits.

    Attributes: `component` is the component's number; `dtypes` and `shapes` are the barrier's.
    Shapes: handle [], keys [n], values [n, ...]
    Raises: InvalidArgumentError if a key has the component already; CancelledError for a new key if
        the barrier is closed.
    """

    dtypes: tuple[DType, ...]
    shapes: ops.Shapes
    component: int

    def infer(self, handle: Spec, keys: Spec, values: Spec) -> tuple[Spec, ...]:
        ops.check_queue(handle)
        if keys.dtype is not string or not compatible((None,), keys.shape):
            raise expected_dtype("keys as a vector of strings", keys)
        wanted = self.dtypes[2 + self.component]
        if values.dtype is not wanted:
            raise expected_dtype(f"values of dtype {wanted}, the component's", values.dtype)
        count = keys.shape[0] if keys.shape else None
        element = self._element(2 + self.component)
        dims = (count, *element) if element is not None else None
        is_one_each = values.shape is None or (
            len(values.shape) > 0 and compatible((count,), values.shape[:1])
        )
        if not compatible(dims, values.shape) or not is_one_each:
            raise expected(
                f"a value for each key, of shape {text(dims) if dims else '[n, ...]'}", values.shape
            )
        return ()

    def attempt(self, state: Any, *inputs: Array) -> tuple[Any, ...]:
        """Puts the components in."""
        keys, values = inputs
        self._check(keys, values)
        state.insert_many(self.component, keys.tolist(), list(values.copy()))
        return ()

    def begin(
        self, state: Any, finish: Callable[[Any], None], *inputs: Array
    ) -> Callable[[], None]:
        finish(self.attempt(state, *inputs))
        return lambda: None

    def _check(self, keys: Array, values: Array) -> None:
        element = self._element(2 + self.component)
        if len(keys) != len(values) or not compatible(element, values.shape[1:]):
            raise expected(
                f"{len(keys)} values of shape {text(element)}, one per key", values.shape
            )


@frozen
class BarrierTakeMany(ops.DequeuesMany):
    """Takes complete elements out of a barrier, waiting until there are as many.

    Attributes: `allow_small_batch`: of a closed barrier what it has left will do.
    Shapes: handle [], n [] -> numbers [n], keys [n], one value [n, ...] per component
    Raises: OutOfRangeError if the barrier is closed and has fewer.
    """

    dtypes: tuple[DType, ...]
    shapes: ops.Shapes
    allow_small_batch: bool = False

    @property
    def up_to(self) -> bool:  # type: ignore[override]
        """Whether what a closed barrier has left will do."""
        return self.allow_small_batch

    def _stacked(self, elements: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
        for i, shape in enumerate(self.shapes or ()):
            found = {np.shape(e[i]) for e in elements} if shape is None else ()
            if len(found) > 1:
                raise InvalidArgumentError(
                    f"elements of different shapes cannot be stacked: component {i - 2} has "
                    f"{', '.join(map(str, sorted(found)))}"
                )
        return super()._stacked(elements)


class BarrierIncompleteSize(ops.Asks):
    """The number of elements of a barrier that lack components."""

    def infer(self, handle: Spec) -> Spec:
        ops.check_queue(handle)
        return Spec(dtypes.int32, ())

    def kernel(self, xp: ArrayModule, state: Any) -> Array:
        return np.int32(state.incomplete_size)


class Barrier:
    """Puts elements together of components that come at different times, by their keys.

        barrier = fs.Barrier((fs.string, fs.int32))
        insert = barrier.insert_many(0, keys=["k1", "k2"], values=["a", "b"])
        insert_more = barrier.insert_many(1, keys=["k1"], values=[13])
        indices, keys, (words, numbers) = barrier.take_many(1)      # waits until one is complete

    Args:
        types: Dtypes of the components.
        shapes: Of the components, fully known; None: each element may have its own.
        shared_name: Name of the barrier in its container (see `fs.container`), by which others can
            use it; the handle's by default.
        name: Name of the operation that makes the handle.

    Attributes:
        barrier_ref: The handle.

    Raises:
        InvalidArgumentError: if shapes do not fit the types, or are not known; when it is first
            used, if the container has a queue of this name that differs.
    """

    #: Components before those of the user: the number of an element, and its key.
    _HEAD: ClassVar[tuple[DType, ...]] = (int64, string)

    def __init__(
        self, types: Any, shapes: Any = None, shared_name: str | None = None, name: str = "barrier"
    ) -> None:
        self._types: list[DType] = as_kinds(types, as_dtype)
        found = as_shapes(shapes, len(self._types)) or (None,) * len(self._types)
        self._of = (*self._HEAD, *self._types), ((), (), *found)
        self.barrier_ref: Tensor = add_handle(
            ops.BarrierHandle,
            name,
            shared_name,
            capacity=-1,
            dtypes=self._of[0],
            shapes=self._of[1],
        )

    @classmethod
    def of_handle(cls, handle: Tensor) -> Barrier:
        """The barrier of a handle that exists already."""
        made: Any = handle.op.definition
        found = cls.__new__(cls)
        found.barrier_ref, found._of = handle, (made.dtypes, made.shapes)
        found._types = list(made.dtypes[len(cls._HEAD) :])
        return found

    @property
    def dtypes(self) -> list[DType]:
        """Dtypes of the components."""
        return list(self._types)

    @property
    def name(self) -> str:
        """Name of the operation that makes the handle."""
        return self.barrier_ref.op.name

    def __repr__(self) -> str:
        return f"<fs.Barrier '{self.name}' of {', '.join(map(str, self._types))}>"

    def _called(self, name: str | None, what: str) -> str:
        return name or f"{self.name.rpartition('/')[2]}_{what}"

    def insert_many(
        self, component_index: int, keys: Any, values: Any, name: str | None = None
    ) -> Operation:
        """Returns an operation that puts a component of several elements in.

        Args:
            component_index: The component's number.
            keys: The elements' keys, a vector of strings. A new key begins an element.
            values: The component's values, with a first axis as long as keys.
            name: Name of the operation.

        Raises:
            InvalidArgumentError: if there is no such component; when it runs, if an element has the
                component already.
            CancelledError: when it runs, for a new key if the barrier is closed, and for any key if
                it was closed with `cancel_pending_enqueues`.
        """
        count = len(self._types)
        if not 0 <= component_index < count:
            raise expected(f"a component_index of 0 to {count - 1}", component_index)
        op = BarrierInsertMany(*self._of, component_index)
        tensors = (
            convert_to_tensor(keys, string),
            convert_to_tensor(values, self._types[component_index]),
        )
        called = self._called(name, "BarrierInsertMany")
        return apply_none(op, self.barrier_ref, *tensors, name=called)

    def take_many(
        self,
        num_elements: Any,
        allow_small_batch: bool = False,
        timeout: Any = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Returns complete elements, in the order in which their keys came first.

        Args:
            num_elements: How many, an int32 scalar; waits until there are as many.
            allow_small_batch: Whether of a closed barrier fewer will do, but one at least.
            timeout: None: deadlines are of steps, `fs.RunOptions(timeout_in_ms=...)`.
            name: Name of the operation.

        Returns:
            The elements' numbers, int64, by which they can be ordered; their keys; and a list of
            the components, each with a first axis as long.

        Raises:
            OutOfRangeError: when it runs, if the barrier is closed and has too few.
            UnimplementedError: for a timeout.
        """
        if timeout is not None:
            raise UnimplementedError(
                "take_many has no timeout of its own: give the step one, with "
                "fs.RunOptions(timeout_in_ms=...)"
            )
        op = BarrierTakeMany(*self._of, bool(allow_small_batch))
        count = convert_to_tensor(num_elements, int32)
        called = self._called(name, "BarrierTakeMany")
        numbers, keys, *values = apply_many(op, self.barrier_ref, count, name=called)
        return numbers, keys, values

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Returns an operation that closes the barrier: no new keys are taken in.

        Elements that lack components can still be completed.

        Args:
            cancel_pending_enqueues: Whether these cannot either, and are given up.
            name: Name of the operation.

        Raises:
            CancelledError: when it runs, if the barrier is closed already and nothing is to be
                cancelled.
        """
        op = ops.QueueClose(bool(cancel_pending_enqueues))
        return apply_none(op, self.barrier_ref, name=self._called(name, "BarrierClose"))

    def ready_size(self, name: str | None = None) -> Tensor:
        """Returns the number of complete elements, an int32 scalar."""
        return apply(ops.QueueSize(), self.barrier_ref, name=self._called(name, "BarrierReadySize"))

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """Returns the number of elements that lack components, an int32 scalar."""
        called = self._called(name, "BarrierIncompleteSize")
        return apply(BarrierIncompleteSize(), self.barrier_ref, name=called)
