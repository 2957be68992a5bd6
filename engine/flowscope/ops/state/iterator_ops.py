"""Iterators as ops: a handle, what sets one on a dataset, and what takes elements from it.

An iterator is a queue that fills itself (`runtime.datasets.iterator_state`): taking an element out
of it is taking one out of a queue, with all that holds there of waiting and of giving back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, compatible, text
from flowscope.ops.state.containers.queue_ops import Finish, QueueHandle, Shapes


class AnyIteratorHandle(QueueHandle, abstract=True):
    """Base of the handles of iterators."""

    capacity: ClassVar[int] = 0  # type: ignore[misc]


@frozen
class IteratorHandle(AnyIteratorHandle, is_stateful=True, is_handle=True):
    """The handle of an iterator over datasets whose elements have these components.

    Attributes: `target` is the device to which elements that are computed ahead are brought; "" for
        none.
    """

    dtypes: tuple[DType, ...]
    shapes: Shapes
    container: str
    shared_name: str
    target: str = ""


@frozen
class FeedableIteratorHandle(AnyIteratorHandle, is_stateful=True, is_handle=True):
    """The handle of an iterator that stands for another one, which each step names."""

    dtypes: tuple[DType, ...]
    shapes: Shapes
    container: str
    shared_name: str


def _check_handle(handle: Spec) -> None:
    if handle.dtype is not dtypes.resource or handle.variable is not None:
        raise expected_dtype("an iterator", handle)


def _check_string(what: str, given: Spec) -> None:
    if given.dtype is not dtypes.string:
        raise expected_dtype(f"{what} as string", given.dtype)
    if not compatible((), given.shape):
        raise expected(f"{what} as a scalar", f"shape {text(given.shape)}")


class _IteratorOp(Op, abstract=True, is_stateful=True, is_differentiable=False, devices=("CPU",)):
    fills: ClassVar[bool] = False
    empties: ClassVar[bool] = False


@frozen
class MakeIterator(_IteratorOp, makes_anew=True):
    """Sets an iterator on a dataset: it begins anew.

    Shapes: handle [], dataset [] ->
    """

    fills: ClassVar[bool] = True

    def infer(self, handle: Spec, dataset: Spec) -> tuple[Spec, ...]:
        _check_handle(handle)
        if dataset.dtype is not dtypes.variant:
            raise expected_dtype("a dataset", dataset.dtype)
        return ()

    def kernel(self, xp: ArrayModule, state: Any, dataset: Any) -> None:
        state.initialize(dataset)


class _GetsNext(_IteratorOp, abstract=True, is_blocking=True):
    dtypes: tuple[DType, ...]
    shapes: Shapes
    empties: ClassVar[bool] = True

    def infer(self, handle: Spec, *inputs: Spec) -> tuple[Spec, ...]:
        _check_handle(handle)
        shapes: Any = self.shapes or (None,) * len(self.dtypes)
        return tuple([Spec(d, s) for d, s in zip(self.dtypes, shapes, strict=True)])

    def attempt(self, state: Any, *inputs: Array) -> tuple[Any, ...] | None:
        """Takes the next element, computing it where nobody does so already."""
        found = self._iterator(state, *inputs).take(1)
        return None if found is None else found[0]

    def begin(self, state: Any, finish: Finish, *inputs: Array) -> Callable[[], None]:
        """Waits for the next element."""

        def finished(found: Any) -> None:
            finish(found if isinstance(found, BaseException) else found[0])

        give_up: Callable[[], None] = self._iterator(state, *inputs).dequeue(1, finished)
        return give_up

    def _iterator(self, state: Any, *inputs: Array) -> Any:
        return state


@frozen
class IteratorGetNext(_GetsNext):
    """The next element of an iterator, a value per component.

    Attributes: `function` makes the dataset of a one-shot iterator when it is first used; None for
        others.
    Raises: OutOfRangeError at the end; FailedPreconditionError if the iterator has no dataset yet.
    """

    dtypes: tuple[DType, ...]
    shapes: tuple[Dims, ...]
    function: Any = None
    plans_function: ClassVar[bool] = True

    def _iterator(self, state: Any, *inputs: Array) -> Any:
        if self.function is not None:
            state.ensure(self.function)
        return state


@frozen
class FeedableGetNext(_GetsNext):
    """The next element of the iterator that a string names, a value per component.

    Shapes: handle [], string_handle [] -> one value per component
    Raises: NotFoundError if there is no such iterator; InvalidArgumentError if its components
        differ.
    """

    dtypes: tuple[DType, ...]
    shapes: tuple[Dims, ...]

    def infer(self, handle: Spec, *inputs: Spec) -> tuple[Spec, ...]:
        _check_string("the name of an iterator", inputs[0])
        return super().infer(handle)

    def _iterator(self, state: Any, *inputs: Array) -> Any:
        return state.find(bytes(inputs[0]))


@frozen
class OnTarget(Op, views=(0,), is_differentiable=False):
    """A component of an element, on the device where it is used: perhaps it is there already.

    Shapes: x [...] -> [...]
    """

    def infer(self, x: Spec) -> Spec:
        return x.like()

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return x


class _Asks(_IteratorOp, abstract=True, reads_state=True, accepts_empty=True):
    function: Any

    def _iterator(self, state: Any) -> Any:
        if self.function is not None:
            state.ensure(self.function)
        return state


@frozen
class IteratorToStringHandle(_Asks):
    """A string that names an iterator, for `Iterator.from_string_handle`.

    Attributes: `function` as of `IteratorGetNext`.
    """

    function: Any = None
    plans_function: ClassVar[bool] = True

    def infer(self, handle: Spec) -> Spec:
        _check_handle(handle)
        return Spec(dtypes.string, ())

    def kernel(self, xp: ArrayModule, state: Any) -> Array:
        return self._iterator(state).string_handle


@frozen
class SerializeIterator(_Asks):
    """The position of an iterator, as text: how many elements were taken, and its random key.

    Attributes: `function` as of `IteratorGetNext`.
    Raises: FailedPreconditionError if the iterator has no dataset yet.
    """

    function: Any = None
    plans_function: ClassVar[bool] = True

    def infer(self, handle: Spec) -> Spec:
        _check_handle(handle)
        return Spec(dtypes.string, ())

    def kernel(self, xp: ArrayModule, state: Any) -> Array:
        return self._iterator(state).position()


@frozen
class DeserializeIterator(_IteratorOp, makes_anew=True):
    """Brings an iterator to a position; one without a dataset once it gets one.

    Attributes: `function` as of `IteratorGetNext`.
    Shapes: handle [], position [] ->
    Raises: DataLossError if it is no position.
    """

    function: Any = None
    plans_function: ClassVar[bool] = True

    def infer(self, handle: Spec, position: Spec) -> tuple[Spec, ...]:
        _check_handle(handle)
        _check_string("a position", position)
        return ()

    def kernel(self, xp: ArrayModule, state: Any, position: Array) -> None:
        if self.function is not None:
            state.ensure(self.function)
        state.restore(bytes(position))


__all__ = [
    "AnyIteratorHandle",
    "DeserializeIterator",
    "FeedableGetNext",
    "FeedableIteratorHandle",
    "IteratorGetNext",
    "IteratorHandle",
    "IteratorToStringHandle",
    "MakeIterator",
    "OnTarget",
    "SerializeIterator",
]
