"""Staging areas: elements that wait between a producer and a consumer, by order or by key.

area = fs.contrib.staging.StagingArea([fs.float32, fs.int32], capacity=2)
put = area.put([images, labels])        # waits while there are two
images, labels = area.get()             # waits until there is one
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Spec, frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype, int32, int64
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import TensorShape, as_dims, compatible, text
from flowscope.ops.core.build import apply, apply_many, apply_none
from flowscope.ops.core.handles import add_handle
from flowscope.ops.state.containers import queue_ops as ops
from flowscope.ops.state.containers.queues import as_kinds, as_names

__all__ = ["MapStagingArea", "StagingArea"]


@frozen
class StagePut(ops.Blocking, fills=True):
    """Puts components of an element into a staging area, waiting for space.

    Attributes:
        indices: The components' numbers.
        has_key: Whether the first value is the element's key.
    Shapes: handle [], perhaps key [], then one value per component
    Raises: InvalidArgumentError if the element has a component already; ResourceExhaustedError if
        the values are larger than the memory limit.
    """

    dtypes: tuple[DType, ...]
    shapes: ops.Shapes
    indices: tuple[int, ...]
    has_key: bool = False

    def infer(self, handle: Spec, *inputs: Spec) -> tuple[Spec, ...]:
        ops.check_queue(handle)
        values = _after_key(self.has_key, inputs)
        for i, spec in zip(self.indices, values, strict=True):
            if spec.dtype is not self.dtypes[i]:
                raise expected_dtype(f"component {i} of dtype {self.dtypes[i]}", spec.dtype)
            self._check_shape(i, spec.shape)
        return ()

    def _check_shape(self, index: int, shape: Any) -> None:
        wanted = self._element(index)
        if not compatible(wanted, shape):
            raise expected(f"component {index} of shape {text(wanted)}", shape)

    def _parts(self, inputs: Sequence[Array]) -> tuple[int | None, dict[int, Array]]:
        values = inputs[1:] if self.has_key else inputs
        for i, value in zip(self.indices, values, strict=True):
            self._check_shape(i, np.shape(value))
        parts = {i: ops.kept(v) for i, v in zip(self.indices, values, strict=True)}
        return (int(inputs[0]) if self.has_key else None), parts

    def attempt(self, state: Any, *inputs: Array) -> tuple[Any, ...] | None:
        return () if state.put_parts(*self._parts(inputs)) else None

    def begin(
        self, state: Any, finish: Callable[[Any], None], *inputs: Array
    ) -> Callable[[], None]:
        give_up: Callable[[], None] = state.stage(*self._parts(inputs), finish)
        return give_up


def _after_key(has_key: bool, inputs: Sequence[Spec]) -> Sequence[Spec]:
    """The inputs behind the key; raises unless that is an int64 scalar."""
    if not has_key:
        return inputs
    if inputs[0].dtype is not int64 or not compatible((), inputs[0].shape):
        raise expected_dtype("the key as an int64 scalar", inputs[0])
    return inputs[1:]


@frozen
class StageGet(ops.Blocking, empties=True):
    """Takes components of an element out of a staging area, or shows them, waiting for them.

    Attributes:
        indices: The components' numbers.
        has_key: Whether an input says which element.
        gives_key: Whether the first output is the element's key.
        is_peek: Whether the element stays in; an input says which one then: its key, or its
            position in an area without keys.
    Shapes: handle [], perhaps key or position [] -> perhaps key [], one value per component
    """

    dtypes: tuple[DType, ...]
    shapes: ops.Shapes
    indices: tuple[int, ...]
    has_key: bool = False
    gives_key: bool = False
    is_peek: bool = False

    def infer(self, handle: Spec, *inputs: Spec) -> tuple[Spec, ...]:
        ops.check_queue(handle)
        if inputs and not self.has_key:
            if inputs[0].dtype is not int32 or not compatible((), inputs[0].shape):
                raise expected_dtype("the position as an int32 scalar", inputs[0])
        elif inputs:
            _after_key(True, inputs)
        values = [Spec(self.dtypes[i], self._element(i)) for i in self.indices]
        return (*([Spec(int64, ())] if self.gives_key else []), *values)

    def _wish(self, state: Any, inputs: Sequence[Array]) -> Any:
        asked = int(inputs[0]) if inputs else 0
        if not self.has_key and asked < 0:
            raise expected("a position of 0 or more", asked)
        return state.wish(
            asked if self.has_key else None,
            self.indices,
            self.is_peek,
            0 if self.has_key else asked,
        )

    def _given(self, found: tuple[int, list[Array]]) -> tuple[Array, ...]:
        key, values = found
        given = [ops.kept(v) for v in values] if self.is_peek else values
        return (np.int64(key), *given) if self.gives_key else tuple(given)

    def attempt(self, state: Any, *inputs: Array) -> tuple[Any, ...] | None:
        found = state.serve(self._wish(state, inputs))
        return None if found is None else self._given(found)

    def begin(
        self, state: Any, finish: Callable[[Any], None], *inputs: Array
    ) -> Callable[[], None]:
        def finished(found: Any) -> None:
            finish(found if isinstance(found, BaseException) else self._given(found))

        give_up: Callable[[], None] = state.unstage(self._wish(state, inputs), finished)
        return give_up


@frozen
class StageClear(ops.QueueOp, fills=True, empties=True):
    """Drops all elements of a staging area."""

    def infer(self, handle: Spec) -> tuple[Spec, ...]:
        ops.check_queue(handle)
        return ()

    def kernel(self, xp: ArrayModule, state: Any) -> None:
        state.empty()


class StageIncompleteSize(ops.Asks):
    """The number of elements of a staging area that lack components."""

    def infer(self, handle: Spec) -> Spec:
        ops.check_queue(handle)
        return Spec(dtypes.int32, ())

    def kernel(self, xp: ArrayModule, state: Any) -> Array:
        return np.int32(state.incomplete_size)


class BaseStagingArea:
    """What the two kinds of staging areas have in common.

    Attributes:
        name: Name of the operation that makes the handle.
        dtypes: Of the components of an element.
        shapes: Of the components.
        names: Of the components, None where they are taken by position.
        capacity: Most elements; 0: no limit.
        memory_limit: Most bytes; 0: no limit.
    """

    def __init__(
        self,
        dtypes: Any,
        shapes: Any,
        names: Any,
        shared_name: str | None,
        capacity: int,
        memory_limit: int,
        **facts: Any,
    ) -> None:
        self.dtypes: list[DType] = as_kinds(dtypes, as_dtype)
        count = len(self.dtypes)
        given = [None] * count if shapes is None else list(shapes)
        if len(given) != count:
            raise expected(f"a shape for each of the {count} components", len(given))
        dims = tuple([as_dims(s) for s in given])
        self.shapes = [TensorShape(d) for d in dims]
        self.names = as_names(names, count)
        for what, number in (("capacity", capacity), ("memory_limit", memory_limit)):
            if isinstance(number, bool) or not hasattr(number, "__index__") or number < 0:
                raise expected(f"a {what} of 0 or more", number)
        self.capacity, self.memory_limit = int(capacity), int(memory_limit)
        self._of = tuple(self.dtypes), dims
        self._handle: Tensor = add_handle(
            ops.StagingAreaHandle,
            shared_name or type(self).__name__,
            shared_name,
            capacity=self.capacity,
            dtypes=self._of[0],
            shapes=self._of[1],
            memory_limit=self.memory_limit,
            **facts,
        )

    @classmethod
    def of_handle(cls, handle: Tensor) -> Self:
        """The staging area of a handle that exists already."""
        made: Any = handle.op.definition
        found = cls.__new__(cls)
        found.dtypes, found.shapes = list(made.dtypes), [TensorShape(d) for d in made.shapes]
        found.names, found._of, found._handle = None, (made.dtypes, made.shapes), handle
        found.capacity, found.memory_limit = made.capacity, made.memory_limit
        return found

    @property
    def name(self) -> str:
        """Name of the operation that makes the handle."""
        return self._handle.op.name

    def __repr__(self) -> str:
        kinds = ", ".join(map(str, self.dtypes))
        return f"<fs.contrib.staging.{type(self).__name__} '{self.name}' of {kinds}>"

    def _called(self, name: str | None, what: str) -> str:
        return name or f"{self.name.rpartition('/')[2]}_{what}"

    def _parts(self, values: Any, indices: Any) -> tuple[tuple[int, ...], list[Tensor]]:
        """The numbers of components, and their tensors."""
        if isinstance(values, Mapping):
            if self.names is None:
                raise InvalidArgumentError(
                    "expected values by position, for the staging area has no names, got a dict"
                )
            unknown = sorted(map(str, values.keys() - set(self.names)))
            if unknown:
                raise expected(f"names among {', '.join(self.names)}", ", ".join(unknown))
            numbers = tuple([i for i, n in enumerate(self.names) if n in values])
            listed = [values[self.names[i]] for i in numbers]
        else:
            if self.names is not None:
                raise expected(f"a dict with {', '.join(self.names)}", repr(values))
            listed = list(values) if isinstance(values, list | tuple) else [values]
            numbers = tuple(range(len(listed))) if indices is None else self._numbers(indices)
        if len(numbers) != len(listed) or not numbers or max(numbers) >= len(self.dtypes):
            raise expected(f"a value for each of the {len(self.dtypes)} components", len(listed))
        tensors = [
            convert_to_tensor(v, self.dtypes[i], f"component_{i}")
            for i, v in zip(numbers, listed, strict=True)
        ]
        return numbers, tensors

    def _numbers(self, indices: Any) -> tuple[int, ...]:
        """Components by number or by name, as numbers; None: all."""
        count = len(self.dtypes)
        if indices is None:
            return tuple(range(count))
        listed = list(indices) if isinstance(indices, list | tuple) else [indices]
        names = self.names or []
        numbers = [names.index(i) if i in names else i for i in listed]
        for number in numbers:
            is_number = hasattr(number, "__index__") and not isinstance(number, bool)
            if not is_number or not 0 <= number < count:
                raise expected(f"indices of components, 0 to {count - 1}", repr(number))
        if not numbers or len(set(numbers)) < len(numbers):
            raise expected("indices that differ, one at least", listed)
        return tuple(map(int, numbers))

    def _returned(self, tensors: Sequence[Tensor], numbers: Sequence[int]) -> Any:
        if self.names is not None:
            return {self.names[i]: t for i, t in zip(numbers, tensors, strict=True)}
        return list(tensors)

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of complete elements, an int32 scalar."""
        return apply(ops.QueueSize(), self._handle, name=self._called(name, "size"))

    def clear(self, name: str | None = None) -> Operation:
        """Returns an operation that drops all elements."""
        return apply_none(StageClear(), self._handle, name=self._called(name, "clear"))


class StagingArea(BaseStagingArea):
    """A place where elements wait for whoever takes them, in the order in which they were put in.

    Args:
        dtypes: Of the components of an element.
        shapes: Of the components; None for those that are not known.
        names: Of the components: elements are dicts then.
        shared_name: Name in the container (see `fs.container`); the handle's by default.
        capacity: Most elements; what puts more in waits. 0: no limit.
        memory_limit: Most bytes of all elements, likewise.

    Raises:
        InvalidArgumentError: if shapes or names do not fit the dtypes, or a limit is negative; when
            it is first used, if the container has a staging area of this name that differs.
    """

    def __init__(
        self,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        super().__init__(dtypes, shapes, names, shared_name, capacity, memory_limit)

    def put(self, values: Any, name: str | None = None) -> Operation:
        """Returns an operation that puts an element in, and waits while there is no space.

        Args:
            values: A value for each component: a list, or a dict for an area with names.
            name: Name of the operation.

        Raises:
            ResourceExhaustedError: when it runs, if the element is larger than the memory limit.
        """
        numbers, tensors = self._parts(values, None)
        if len(numbers) < len(self.dtypes):
            raise expected(f"a value for each of the {len(self.dtypes)} components", len(numbers))
        op = StagePut(*self._of, numbers)
        return apply_none(op, self._handle, *tensors, name=self._called(name, "put"))

    def get(self, name: str | None = None) -> Any:
        """Returns the components of the oldest element, which is taken out; waits for one.

        Args:
            name: Name of the operation.

        Returns:
            A list of tensors, or a dict for an area with names.
        """
        numbers = self._numbers(None)
        op = StageGet(*self._of, numbers)
        tensors = apply_many(op, self._handle, name=self._called(name, "get"))
        return self._returned(tensors, numbers)

    def peek(self, index: Any, name: str | None = None) -> Any:
        """Returns the components of an element, which stays in; waits until it is there.

        Args:
            index: Its position, 0 for the oldest one: an int32 scalar.
            name: Name of the operation.

        Returns:
            As `get`.
        """
        numbers = self._numbers(None)
        op = StageGet(*self._of, numbers, is_peek=True)
        position = convert_to_tensor(index, int32)
        tensors = apply_many(op, self._handle, position, name=self._called(name, "peek"))
        return self._returned(tensors, numbers)


class MapStagingArea(BaseStagingArea):
    """A place where elements wait by key; their components may be put in and taken out one by one.

    Args:
        dtypes: Of the components of an element.
        shapes: Of the components; None for those that are not known.
        names: Of the components: elements are dicts then.
        shared_name: Name in the container (see `fs.container`); the handle's by default.
        ordered: Whether `get` without a key takes the least key, and not the oldest element.
        capacity: Most complete elements; what would complete more waits. 0: no limit.
        memory_limit: Most bytes of all components, likewise.

    Raises:
        InvalidArgumentError: if shapes or names do not fit the dtypes, or a limit is negative; when
            it is first used, if the container has a staging area of this name that differs.
    """

    def __init__(
        self,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        ordered: bool = False,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        super().__init__(
            dtypes, shapes, names, shared_name, capacity, memory_limit,
            has_keys=True, is_ordered=bool(ordered),
        )  # fmt: skip

    def put(self, key: Any, vals: Any, indices: Any = None, name: str | None = None) -> Operation:
        """Returns an operation that puts components of an element in, and waits for space.

        Args:
            key: The element's key, an int64 scalar.
            vals: Values of components: a list, or a dict for an area with names.
            indices: Which components these are; by default the first ones, or those of the dict.
            name: Name of the operation.

        Raises:
            InvalidArgumentError: when it runs, if the element has one of them already.
            ResourceExhaustedError: when it runs, if they are larger than the memory limit.
        """
        numbers, tensors = self._parts(vals, indices)
        op = StagePut(*self._of, numbers, has_key=True)
        key = convert_to_tensor(key, int64)
        return apply_none(op, self._handle, key, *tensors, name=self._called(name, "put"))

    def get(self, key: Any = None, indices: Any = None, name: str | None = None) -> tuple[Any, Any]:
        """Returns the key and the components of an element, which are taken out; waits for them.

        Args:
            key: The element's key, an int64 scalar; None: any complete element.
            indices: Numbers or names of the components; all by default.
            name: Name of the operation.

        Returns:
            The key, and a list of tensors or a dict for an area with names.
        """
        numbers = self._numbers(indices)
        if key is None:
            op = StageGet(*self._of, numbers, gives_key=True)
            found, *tensors = apply_many(op, self._handle, name=self._called(name, "get"))
            return found, self._returned(tensors, numbers)
        op = StageGet(*self._of, numbers, has_key=True)
        asked = convert_to_tensor(key, int64)
        tensors = list(apply_many(op, self._handle, asked, name=self._called(name, "get")))
        return asked, self._returned(tensors, numbers)

    def peek(self, key: Any, indices: Any = None, name: str | None = None) -> Any:
        """Returns components of an element, which stay in; waits for them.

        Args:
            key: The element's key, an int64 scalar.
            indices: Numbers or names of the components; all by default.
            name: Name of the operation.

        Returns:
            A list of tensors, or a dict for an area with names.
        """
        numbers = self._numbers(indices)
        op = StageGet(*self._of, numbers, has_key=True, is_peek=True)
        asked = convert_to_tensor(key, int64)
        tensors = apply_many(op, self._handle, asked, name=self._called(name, "peek"))
        return self._returned(tensors, numbers)

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """Returns the number of elements that lack components, an int32 scalar."""
        called = self._called(name, "incomplete_size")
        return apply(StageIncompleteSize(), self._handle, name=called)
