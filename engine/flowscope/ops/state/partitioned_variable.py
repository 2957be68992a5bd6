"""Variables in several parts along one axis: how they are cut, and what stands for the whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.graph import Graph
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import Dims, TensorShape, as_dims, is_known, text
from flowscope.ops.array.joining import concat, split
from flowscope.ops.core.flow import group, identity
from flowscope.ops.state.variables import SaveSliceInfo, Variable

__all__ = [
    "PartitionedVariable",
    "fixed_size_partitioner",
    "min_max_variable_partitioner",
    "variable_axis_size_partitioner",
]

#: `(shape, dtype) -> how many parts along each axis`, with arguments by keyword.
Partitioner = Callable[..., Sequence[int]]


@frozen
class PartitionInfo:
    """Which part of the whole an initializer makes.

    Attributes:
        full_shape: Shape of the whole.
        var_offset: First position of the part, per axis.
    """

    full_shape: list[int]
    var_offset: list[int]

    def single_offset(self, shape: Sequence[int]) -> int:
        """Returns the first position along the axis that is cut, 0 if none is."""
        axis = self.single_slice_dim(shape)
        return 0 if axis is None else self.var_offset[axis]

    def single_slice_dim(self, shape: Sequence[int]) -> int | None:
        """Returns the axis along which a part of `shape` is smaller than the whole, or None."""
        smaller = [i for i, (n, d) in enumerate(zip(shape, self.full_shape)) if n < d]
        return smaller[0] if smaller else None


# -- partitioners ---------------------------------------------------------------------


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """Returns a partitioner that cuts one axis into `num_shards` parts (or into single slices)."""

    def partitioner(shape: Any, **_: Any) -> list[int]:
        dims = _whole(shape, axis)
        return _along(dims, axis, min(num_shards, dims[axis]))

    return partitioner


def variable_axis_size_partitioner(
    max_shard_bytes: int,
    axis: int = 0,
    bytes_per_string_element: int = 16,
    max_shards: int | None = None,
) -> Partitioner:
    """Returns a partitioner that cuts one axis so that no part is larger than a number of bytes.

    Args:
        max_shard_bytes: Largest size of a part, in bytes (a single slice may be larger).
        axis: The axis.
        bytes_per_string_element: A guess of a string's size, in bytes.
        max_shards: Largest number of parts; None for no bound.

    Raises:
        InvalidArgumentError: if a bound is less than 1.
    """
    _positive(max_shard_bytes=max_shard_bytes, bytes_per_string_element=bytes_per_string_element)
    if max_shards is not None:
        _positive(max_shards=max_shards)

    def partitioner(shape: Any, dtype: Any, **_: Any) -> list[int]:
        dims = _whole(shape, axis)
        size = math.prod(dims) * _bytes(dtype, bytes_per_string_element)
        slice_bytes = size // dims[axis] if dims[axis] else 0
        per_part = max(1, max_shard_bytes // max(1, slice_bytes))
        count = math.ceil(dims[axis] / per_part)
        return _along(dims, axis, count if max_shards is None else min(max_shards, count))

    return partitioner


def min_max_variable_partitioner(
    max_partitions: int = 1,
    axis: int = 0,
    min_slice_size: int = 256 << 10,
    bytes_per_string_element: int = 16,
) -> Partitioner:
    """Returns a partitioner that cuts one axis into as many parts as are not too small.

    Args:
        max_partitions: Largest number of parts.
        axis: The axis.
        min_slice_size: Smallest size of a part, in bytes.
        bytes_per_string_element: A guess of a string's size, in bytes.

    Raises:
        InvalidArgumentError: if `max_partitions` or `min_slice_size` is less than 1.
    """
    _positive(max_partitions=max_partitions, min_slice_size=min_slice_size)

    def partitioner(shape: Any, dtype: Any, **_: Any) -> list[int]:
        dims = _whole(shape, axis)
        size = math.prod(dims) * _bytes(dtype, bytes_per_string_element)
        return _along(dims, axis, min(dims[axis], max_partitions, size // min_slice_size))

    return partitioner


def _positive(**bounds: int) -> None:
    for name, value in bounds.items():
        if value < 1:
            raise expected(f"{name} of at least 1", value)


def _whole(shape: Any, axis: int) -> list[int]:
    dims = as_dims(shape)
    if not is_known(dims) or dims is None:
        raise InvalidArgumentError(
            f"a variable in parts needs a fully known shape, got {text(dims)}"
        )
    if not -len(dims) <= axis < len(dims):
        raise InvalidArgumentError(f"cannot cut axis {axis} of shape {text(dims)}")
    return [int(d) for d in dims if d is not None]


def _bytes(dtype: Any, string_bytes: int) -> int:
    dtype = as_dtype(dtype)
    return string_bytes if dtype.kind == "s" else dtype.size


def _along(dims: Sequence[int], axis: int, count: int) -> list[int]:
    out = [1] * len(dims)
    out[axis] = max(1, count)
    return out


# -- cutting ---------------------------------------------------------------------


def partitions_of(partitioner: Partitioner, dims: Dims, dtype: DType) -> tuple[int, ...]:
    """Returns how many parts a partitioner wants along each axis.

    Raises:
        InvalidArgumentError: if what it returns does not fit the shape, or cuts several axes.
    """
    if not is_known(dims) or dims is None:
        raise InvalidArgumentError(
            f"a variable in parts needs a fully known shape, got {text(dims)}"
        )
    return checked_partitions(partitioner(shape=TensorShape(dims), dtype=dtype), dims)


def checked_partitions(wanted: Any, dims: Sequence[int | None]) -> tuple[int, ...]:
    """Returns numbers of parts; raises InvalidArgumentError if they do not fit the shape."""
    if not isinstance(wanted, list | tuple) or len(wanted) != len(dims):
        raise expected(
            f"a number of parts for each axis of shape {text(tuple(dims))}", repr(wanted)
        )
    if any(n < 1 or (d is not None and n > max(d, 1)) for n, d in zip(wanted, dims)):
        raise expected(
            f"from one part to one per slice for shape {text(tuple(dims))}", repr(wanted)
        )
    if sum(n > 1 for n in wanted) > 1:
        raise expected("one axis at most to be cut", repr(wanted))
    return tuple(int(n) for n in wanted)


def cut(dims: Sequence[int], partitions: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Yields (offset, shape) of each part; the first ones are longer where it does not divide."""
    axis = max(range(len(partitions)), key=partitions.__getitem__, default=0)
    count = partitions[axis] if partitions else 1
    length, longer = divmod(dims[axis], count) if dims else (0, 0)
    at = 0
    for i in range(count):
        offset, shape = [0] * len(dims), list(dims)
        if dims:
            offset[axis], shape[axis] = at, length + (i < longer)
            at += shape[axis]
        yield offset, shape


#: What is a part's value in a list of them; numbers and lists make up a value of the whole.
_WHOLE = (Tensor, Convertible, np.ndarray)


# -- the whole ---------------------------------------------------------------------


class PartitionedVariable(Convertible):
    """A variable in several parts along one axis; every op takes it as it takes a tensor.

    Iterating over it gives the parts, which are variables; a saver writes it as one tensor.

    Args:
        name: Name of the whole.
        shape: Shape of the whole.
        dtype: Element type.
        variable_list: The parts, in order.
        partitions: How many parts along each axis.

    Raises:
        InvalidArgumentError: if there are not as many parts as `partitions` say.
    """

    #: As in TensorFlow, for programs that ask.
    class PartitionedVariableIterator:
        """Iterates over the parts."""

        def __init__(self, partitioned_variable: PartitionedVariable) -> None:
            self._parts = iter(partitioned_variable._parts)

        def __iter__(self) -> Iterator[Variable]:
            return self

        def __next__(self) -> Variable:
            return next(self._parts)

    def __init__(
        self,
        name: str,
        shape: Any,
        dtype: Any,
        variable_list: Sequence[Variable],
        partitions: Sequence[int],
    ) -> None:
        dims = _whole(shape, 0) if as_dims(shape) else []
        self._partitions = checked_partitions(list(partitions), dims)
        if len(variable_list) != math.prod(self._partitions):
            raise expected(
                f"{math.prod(self._partitions)} parts for {list(partitions)}", len(variable_list)
            )
        self._name = name
        self._dims = tuple(dims)
        self._dtype = as_dtype(dtype)
        self._parts = list(variable_list)
        self._wholes: dict[tuple[Tensor, ...], Tensor] = {}

    @property
    def name(self) -> str:
        """Name of the whole."""
        return self._name

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """Shape of the whole."""
        return TensorShape(self._dims)

    def get_shape(self) -> TensorShape:
        """Returns the shape of the whole."""
        return self.shape

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._parts[0].graph

    @property
    def _axis(self) -> int:
        cut_axes = [i for i, n in enumerate(self._partitions) if n > 1]
        return cut_axes[0] if cut_axes else 0

    def _get_variable_list(self) -> list[Variable]:
        return list(self._parts)

    def _get_partitions(self) -> list[int]:
        return list(self._partitions)

    def _partition_axes(self) -> list[int]:
        return [self._axis]

    def __iter__(self) -> Any:
        return self.PartitionedVariableIterator(self)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return (
            f"<fs.PartitionedVariable '{self._name}' {self._dtype}{text(self._dims)}, "
            f"{len(self._parts)} parts along axis {self._axis}>"
        )

    # -- reading --------------------------------------------------------------------------------

    def as_tensor(self) -> Tensor:
        """Returns the whole value at this place in program order."""
        reads = tuple([v.value() for v in self._parts])
        found = self._wholes.get(reads)
        if found is None:
            found = self._wholes[reads] = self._joined(list(reads))
        return found

    def _joined(self, parts: list[Tensor]) -> Tensor:
        graph = self.graph
        with graph.name_scope(f"{self._name}/ConcatPartitions/"):
            whole = parts[0] if len(parts) == 1 else concat(parts, self._axis)
        with graph.name_scope(None):
            return identity(whole, self._name)

    def _as_tensor(self) -> Tensor:
        return self.as_tensor()

    def _as_graph_element(self) -> Tensor:
        return self.as_tensor()

    def eval(self, session: Any = None) -> Any:
        """Returns the whole value as an array."""
        return self.as_tensor().eval(session=session)

    # -- writing --------------------------------------------------------------------------------

    @property
    def initializer(self) -> Any:
        """The operation that sets the initial value of all parts."""
        return group(*[v.initializer for v in self._parts], name="init")

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None,
               read_value: bool = True) -> list[Any]:  # fmt: skip
        """Returns, per part, its new value; running them sets the parts.

        Args:
            value: A value of the whole's shape, another partitioned variable that is cut alike, or
                a list of tensors or arrays, one per part.
            use_locking: Writes are always atomic per part.
            name: Name of the operations.
            read_value: False returns the operations instead.
        """
        return self._write("assign", value, name, read_value)

    def assign_add(self, value: Any, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> list[Any]:  # fmt: skip
        """Returns, per part, its new value; running them adds `value`, see `assign`."""
        return self._write("assign_add", value, name, read_value)

    def assign_sub(self, value: Any, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> list[Any]:  # fmt: skip
        """Returns, per part, its new value; running them subtracts `value`, see `assign`."""
        return self._write("assign_sub", value, name, read_value)

    def _write(self, method: str, value: Any, name: str | None, read_value: bool) -> list[Any]:
        return [
            getattr(v, method)(x, name=name, read_value=read_value)
            for v, x in zip(self._parts, self._cut(value), strict=True)
        ]

    def _cut(self, value: Any) -> list[Any]:
        if isinstance(value, PartitionedVariable):
            value = [v.value() for v in value._parts]
        elif not (isinstance(value, list) and any(isinstance(v, _WHOLE) for v in value)):
            whole = convert_to_tensor(value, self._dtype)
            sizes = [shape[self._axis] for _, shape in cut(self._dims, self._partitions)]
            return list(split(whole, sizes, self._axis)) if len(sizes) > 1 else [whole]
        if len(value) != len(self._parts):
            raise expected(f"{len(self._parts)} parts", len(value))
        return list(value)


def slice_infos(name: str, dims: Sequence[int], partitions: Sequence[int]) -> list[SaveSliceInfo]:
    """Returns, per part, which part of the whole it is."""
    return [
        SaveSliceInfo(name, list(dims), offset, shape) for offset, shape in cut(dims, partitions)
    ]
