"""Operations of staging areas and barriers as TensorFlow's `raw_ops` name them.

A staging area has no handle there: operations with one `shared_name` in one container use the same.
Its handle is made with the first of them.

Source: names, arguments and meaning are TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from flowscope.graph.constant import convert_to_tensor, get_static_value
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.unsupported import refuse
from flowscope.graph.values.dtypes import as_dtype
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.core.handles import in_container
from flowscope.ops.state.containers import queue_ops
from flowscope.ops.state.containers.barriers import Barrier as _Barrier
from flowscope.ops.state.containers.staging import MapStagingArea, StagingArea

__all__ = [
    "Barrier",
    "BarrierClose",
    "BarrierIncompleteSize",
    "BarrierInsertMany",
    "BarrierReadySize",
    "BarrierTakeMany",
    "MapClear",
    "MapIncompleteSize",
    "MapPeek",
    "MapSize",
    "MapStage",
    "MapUnstage",
    "MapUnstageNoKey",
    "OrderedMapClear",
    "OrderedMapIncompleteSize",
    "OrderedMapPeek",
    "OrderedMapSize",
    "OrderedMapStage",
    "OrderedMapUnstage",
    "OrderedMapUnstageNoKey",
    "Stage",
    "StageClear",
    "StagePeek",
    "StageSize",
    "Unstage",
]


class _Taken(NamedTuple):
    """An element with its key."""

    key: Tensor
    values: list[Tensor]


class _TakenMany(NamedTuple):
    """Elements of a barrier."""

    indices: Tensor
    keys: Tensor
    values: list[Tensor]


# -- staging areas --------------------------------------------------------------------------------


def _area(
    facts: tuple[str, str, int, int],
    dtypes: Sequence[Any],
    name: str,
    is_ordered: bool | None = None,
    indices: Sequence[int] | None = None,
) -> Any:
    """The staging area of these facts, which is made unless an operation before has.

    Args:
        facts: Container, shared name, capacity and memory limit.
        dtypes: Of the components with these numbers.
        name: Of the operation.
        is_ordered: Of an area with keys; None for one without.
        indices: Numbers of the components; None for all.
    """
    container, shared_name, capacity, memory_limit = facts
    kinds = [as_dtype(d) for d in dtypes]
    graph = get_default_graph()
    held = container or graph.extras.get("container", "")
    kind: Any = StagingArea if is_ordered is None else MapStagingArea
    if shared_name:
        for op in graph.get_operations():
            made: Any = op.definition
            is_area = isinstance(made, queue_ops.StagingAreaHandle)
            if is_area and (made.container, made.shared_name) == (held, shared_name):
                return _known(kind, op.outputs[0], kinds, indices)
    if indices is not None and list(indices) != list(range(len(kinds))):
        raise expected(f"an operation before that says all components of {shared_name!r}", "none")
    keyed: dict[str, Any] = {} if is_ordered is None else {"ordered": is_ordered}
    with in_container(container):
        return kind(
            kinds, shared_name=shared_name or f"{name}/area", capacity=capacity,
            memory_limit=memory_limit, **keyed,
        )  # fmt: skip


def _known(kind: Any, handle: Tensor, kinds: list[Any], indices: Sequence[int] | None) -> Any:
    area = kind.of_handle(handle)
    numbers = range(len(area.dtypes)) if indices is None else indices
    own = [area.dtypes[i] for i in numbers if i < len(area.dtypes)]
    if own != kinds:
        wanted = ", ".join(map(str, own))
        raise expected_dtype(f"dtypes {wanted}, the staging area's", ", ".join(map(str, kinds)))
    return area


def Stage(
    *,
    values: Sequence[Any],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Operation:
    """An operation that puts an element into a staging area, and waits while there is no space.

    Args:
        values: A tensor for each component.
        capacity: Most elements; 0: no limit.
        memory_limit: Most bytes of all elements; 0: no limit.
        container: Container of the area; the one that is open by default.
        shared_name: Name in the container, the same for all operations of the area.
        name: Name of the operation.
    """
    tensors = _tensors(values)
    facts = container, shared_name, capacity, memory_limit
    called = name or "Stage"
    area = _area(facts, [t.dtype for t in tensors], called)
    return area.put(tensors, called)  # type: ignore[no-any-return]


def _tensors(values: Sequence[Any]) -> list[Tensor]:
    return [convert_to_tensor(v) for v in values]


def Unstage(
    *,
    dtypes: Sequence[Any],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> list[Tensor]:
    """The components of the oldest element, which is taken out; waits for one.

    Args:
        dtypes: Of the components; the other arguments are those of `Stage`.
        capacity, memory_limit, container, shared_name, name: See `Stage`.
    """
    called = name or "Unstage"
    area = _area((container, shared_name, capacity, memory_limit), dtypes, called)
    return list(area.get(called))


def StagePeek(
    *,
    index: Any,
    dtypes: Sequence[Any],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> list[Tensor]:
    """The components of the element at a position, which stays in; waits until it is there.

    Args:
        index: The position, 0 for the oldest one: an int32 scalar.
        dtypes: Of the components.
        capacity, memory_limit, container, shared_name, name: See `Stage`.
    """
    called = name or "StagePeek"
    area = _area((container, shared_name, capacity, memory_limit), dtypes, called)
    return list(area.peek(index, called))


def StageSize(
    *,
    dtypes: Sequence[Any],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """The number of elements, an int32 scalar; arguments are those of `Unstage`."""
    called = name or "StageSize"
    area = _area((container, shared_name, capacity, memory_limit), dtypes, called)
    return area.size(called)  # type: ignore[no-any-return]


def StageClear(
    *,
    dtypes: Sequence[Any],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Operation:
    """An operation that drops all elements; arguments are those of `Unstage`."""
    called = name or "StageClear"
    area = _area((container, shared_name, capacity, memory_limit), dtypes, called)
    return area.clear(called)  # type: ignore[no-any-return]


# -- staging areas with keys: a function for those by age, and one for those by key ---------------


def _numbers(indices: Any) -> list[int]:
    """Numbers of components, which are known before a step."""
    found = get_static_value(indices) if isinstance(indices, Tensor) else indices
    if found is None:
        raise expected("indices that are known", repr(indices))
    return [int(i) for i in found]


class _MapOps:
    """The operations of areas whose elements come out by age, or by key.

    Args:
        prefix: What the names of the op types begin with.
        is_ordered: Whether it is by key.
    """

    def __init__(self, prefix: str, is_ordered: bool) -> None:
        self._prefix = prefix
        self._is_ordered = is_ordered

    def _area(self, facts: Any, dtypes: Any, name: str, indices: Any = None) -> Any:
        return _area(facts, dtypes, name, self._is_ordered, indices)

    def stage(
        self,
        *,
        key: Any,
        indices: Any,
        values: Sequence[Any],
        dtypes: Sequence[Any],
        capacity: int = 0,
        memory_limit: int = 0,
        container: str = "",
        shared_name: str = "",
        name: str | None = None,
    ) -> Operation:
        """An operation that puts components of an element in, and waits while there is no space.

        Args:
            key: The element's key, an int64 scalar.
            indices: Numbers of the components, known before a step.
            values: A tensor for each of them.
            dtypes: Of all components of an element.
            capacity: Most complete elements; 0: no limit.
            memory_limit: Most bytes of all components; 0: no limit.
            container: Container of the area; the one that is open by default.
            shared_name: Name in the container, the same for all operations of the area.
            name: Name of the operation.
        """
        called = name or f"{self._prefix}Stage"
        area = self._area((container, shared_name, capacity, memory_limit), dtypes, called)
        return area.put(key, list(values), _numbers(indices), called)  # type: ignore[no-any-return]

    def unstage(
        self,
        *,
        key: Any,
        indices: Any,
        dtypes: Sequence[Any],
        capacity: int = 0,
        memory_limit: int = 0,
        container: str = "",
        shared_name: str = "",
        name: str | None = None,
    ) -> list[Tensor]:
        """Components of the element with a key, which are taken out; waits for them.

        Args:
            key: The element's key, an int64 scalar.
            indices: Numbers of the components, known before a step.
            dtypes: Of these components.
            capacity, memory_limit, container, shared_name, name: See `MapStage`.
        """
        called, numbers = name or f"{self._prefix}Unstage", _numbers(indices)
        facts = container, shared_name, capacity, memory_limit
        return list(self._area(facts, dtypes, called, numbers).get(key, numbers, called)[1])

    def unstage_no_key(
        self,
        *,
        indices: Any,
        dtypes: Sequence[Any],
        capacity: int = 0,
        memory_limit: int = 0,
        container: str = "",
        shared_name: str = "",
        name: str | None = None,
    ) -> _Taken:
        """`key` and `values`: components of the next complete element, which are taken out.

        Args:
            indices: Numbers of the components, known before a step.
            dtypes: Of these components.
            capacity, memory_limit, container, shared_name, name: See `MapStage`.
        """
        called, numbers = name or f"{self._prefix}UnstageNoKey", _numbers(indices)
        facts = container, shared_name, capacity, memory_limit
        key, values = self._area(facts, dtypes, called, numbers).get(None, numbers, called)
        return _Taken(key, list(values))

    def peek(
        self,
        *,
        key: Any,
        indices: Any,
        dtypes: Sequence[Any],
        capacity: int = 0,
        memory_limit: int = 0,
        container: str = "",
        shared_name: str = "",
        name: str | None = None,
    ) -> list[Tensor]:
        """As `unstage`, but the components stay in."""
        called, numbers = name or f"{self._prefix}Peek", _numbers(indices)
        facts = container, shared_name, capacity, memory_limit
        return list(self._area(facts, dtypes, called, numbers).peek(key, numbers, called))

    def size(
        self,
        *,
        dtypes: Sequence[Any],
        capacity: int = 0,
        memory_limit: int = 0,
        container: str = "",
        shared_name: str = "",
        name: str | None = None,
    ) -> Tensor:
        """The number of complete elements, an int32 scalar; arguments are those of `MapStage`."""
        called = name or f"{self._prefix}Size"
        area = self._area((container, shared_name, capacity, memory_limit), dtypes, called)
        return area.size(called)  # type: ignore[no-any-return]

    def incomplete_size(
        self,
        *,
        dtypes: Sequence[Any],
        capacity: int = 0,
        memory_limit: int = 0,
        container: str = "",
        shared_name: str = "",
        name: str | None = None,
    ) -> Tensor:
        """The number of elements that lack components, an int32 scalar."""
        called = name or f"{self._prefix}IncompleteSize"
        area = self._area((container, shared_name, capacity, memory_limit), dtypes, called)
        return area.incomplete_size(called)  # type: ignore[no-any-return]

    def clear(
        self,
        *,
        dtypes: Sequence[Any],
        capacity: int = 0,
        memory_limit: int = 0,
        container: str = "",
        shared_name: str = "",
        name: str | None = None,
    ) -> Operation:
        """An operation that drops all elements."""
        called = name or f"{self._prefix}Clear"
        area = self._area((container, shared_name, capacity, memory_limit), dtypes, called)
        return area.clear(called)  # type: ignore[no-any-return]


_by_age, _by_key = _MapOps("Map", False), _MapOps("OrderedMap", True)
MapStage, OrderedMapStage = _by_age.stage, _by_key.stage
MapUnstage, OrderedMapUnstage = _by_age.unstage, _by_key.unstage
MapUnstageNoKey, OrderedMapUnstageNoKey = _by_age.unstage_no_key, _by_key.unstage_no_key
MapPeek, OrderedMapPeek = _by_age.peek, _by_key.peek
MapSize, OrderedMapSize = _by_age.size, _by_key.size
MapIncompleteSize, OrderedMapIncompleteSize = _by_age.incomplete_size, _by_key.incomplete_size
MapClear, OrderedMapClear = _by_age.clear, _by_key.clear


# -- barriers -------------------------------------------------------------------------------------


def Barrier(
    *,
    component_types: Sequence[Any],
    shapes: Sequence[Any] = (),
    capacity: int = -1,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of a barrier, which puts elements together of components by their keys.

    Args:
        component_types: Dtypes of the components.
        shapes: Of the components, fully known; none: each element may have its own.
        capacity: -1: a barrier has no limit.
        container: Container of the barrier; the one that is open by default.
        shared_name: Name in the container; the operation's by default.
        name: Name of the operation.

    Raises:
        UnimplementedError: for a capacity.
    """
    refuse("raw_ops.Barrier", capacity=capacity)
    types, dims = list(component_types), list(shapes) or None
    with in_container(container):
        return _Barrier(types, dims, shared_name or None, name or "Barrier").barrier_ref


def _barrier(handle: Any) -> _Barrier:
    if isinstance(handle, _Barrier):
        return handle
    is_tensor = isinstance(handle, Tensor)
    if not is_tensor or not isinstance(handle.op.definition, queue_ops.BarrierHandle):
        raise expected_dtype("the handle of a barrier", repr(handle))
    return _Barrier.of_handle(handle)


def BarrierInsertMany(
    *, handle: Any, keys: Any, values: Any, component_index: int, name: str | None = None
) -> Operation:
    """An operation that puts a component of several elements in.

    Args:
        handle: The barrier.
        keys: The elements' keys, a vector of strings.
        values: The component's values, one per key.
        component_index: The component's number.
        name: Name of the operation.
    """
    called = name or "BarrierInsertMany"
    return _barrier(handle).insert_many(component_index, keys, values, called)


def BarrierTakeMany(
    *,
    handle: Any,
    num_elements: Any,
    component_types: Sequence[Any],
    allow_small_batch: bool = False,
    wait_for_incomplete: bool = False,
    timeout_ms: int = -1,
    name: str | None = None,
) -> _TakenMany:
    """`indices`, `keys` and a list of `values`: complete elements, for which it waits.

    Args:
        handle: The barrier.
        num_elements: How many, an int32 scalar.
        component_types: Dtypes of the components.
        allow_small_batch: Whether of a closed barrier fewer will do.
        wait_for_incomplete: False: elements of a closed barrier that lack components do not come.
        timeout_ms: -1: deadlines are of steps, `fs.RunOptions(timeout_in_ms=...)`.
        name: Name of the operation.

    Raises:
        DTypeError: if the barrier has other components.
        UnimplementedError: for `wait_for_incomplete` or a timeout.
    """
    refuse(
        "raw_ops.BarrierTakeMany", wait_for_incomplete=wait_for_incomplete, timeout_ms=timeout_ms
    )
    barrier = _barrier(handle)
    wanted = [as_dtype(d) for d in component_types]
    if wanted != barrier.dtypes:
        raise expected_dtype(f"component_types {barrier.dtypes}, the barrier's", wanted)
    called = name or "BarrierTakeMany"
    found = barrier.take_many(num_elements, allow_small_batch, name=called)
    return _TakenMany(*found)


def BarrierClose(
    *, handle: Any, cancel_pending_enqueues: bool = False, name: str | None = None
) -> Operation:
    """An operation that closes the barrier: no new keys are taken in."""
    return _barrier(handle).close(cancel_pending_enqueues, name or "BarrierClose")


def BarrierReadySize(*, handle: Any, name: str | None = None) -> Tensor:
    """The number of complete elements, an int32 scalar."""
    return _barrier(handle).ready_size(name or "BarrierReadySize")


def BarrierIncompleteSize(*, handle: Any, name: str | None = None) -> Tensor:
    """The number of elements that lack components, an int32 scalar."""
    return _barrier(handle).incomplete_size(name or "BarrierIncompleteSize")
