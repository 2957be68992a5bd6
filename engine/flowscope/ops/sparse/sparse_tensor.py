"""Sparse tensors: coordinates, values and a shape; three dense tensors under one name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import constant, convert_to_tensor
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.overloads import operate, operators
from flowscope.graph.serialization.meta import CollectionKind, register_kind
from flowscope.graph.values.dtypes import DType, as_dtype, float32, int64
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import TensorShape, as_dims, merge_dims, text
from flowscope.ops.core.flow import placeholder, placeholder_with_default
from flowscope.ops.math.elementwise import multiply

__all__ = [
    "SparseTensor",
    "SparseTensorSpec",
    "SparseTensorValue",
    "convert_to_tensor_or_sparse_tensor",
    "sparse_placeholder",
]


class SparseTensorValue(NamedTuple):
    """What `Session.run` gives for a `SparseTensor`, and takes as a feed for one."""

    indices: Any
    values: Any
    dense_shape: Any


class SparseTensor:
    """A tensor of which most elements are zero: only the others are kept.

    Most functions of the name `sparse_...` expect the coordinates in row-major order, each once;
    `sparse_reorder` sorts them.

    Args:
        indices: Coordinates, int64 [n, rank].
        values: The elements there, [n].
        dense_shape: Shape of the whole, int64 [rank].

    Raises:
        InvalidArgumentError: if their shapes do not fit together.

    Example:
        >>> s = fs.SparseTensor([[0, 1], [1, 0]], [5, 6], [2, 2])
        >>> fs.Session().run(fs.sparse_tensor_to_dense(s))
        array([[0, 5],
               [6, 0]], dtype=int32)
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self._indices = convert_to_tensor(indices, int64, "indices")
        self._values = convert_to_tensor(values, name="values")
        self._dense_shape = convert_to_tensor(dense_shape, int64, "dense_shape")
        try:
            places = merge_dims(self._indices.spec.shape, (None, None))
            elements = merge_dims(self._values.spec.shape, (None,))
            sizes = merge_dims(self._dense_shape.spec.shape, (None,))
            self._count = merge_dims(places and places[:1], elements)
            self._rank = (merge_dims(places and places[1:], sizes) or (None,))[0]
        except InvalidArgumentError:
            raise expected(
                "indices [n, rank], values [n] and a dense_shape [rank]",
                self._indices.spec,
                self._values.spec,
                self._dense_shape.spec,
            ) from None
        dims = self._dense_shape.spec.shape_value()
        self._shape = TensorShape(dims if dims is not None or self._rank is None else
                                  [None] * self._rank)  # fmt: skip

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """Returns a `SparseTensorValue`, a tuple of arrays or a `SparseTensor` as the latter."""
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        if not isinstance(sparse_tensor_value, tuple) or len(sparse_tensor_value) != 3:
            raise expected_dtype(
                "fs.SparseTensorValue or a tuple (indices, values, dense_shape)",
                repr(sparse_tensor_value),
            )
        return cls(*sparse_tensor_value)

    @property
    def indices(self) -> Tensor:
        """Coordinates of the elements that are kept."""
        return self._indices

    @property
    def values(self) -> Tensor:
        """The elements."""
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        """Shape of the whole."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """Static shape of the whole."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """Returns the static shape of the whole."""
        return self._shape

    def set_shape(self, shape: Any) -> None:
        """Adds what is known of the shape; raises ValueError if it contradicts."""
        self._shape = self._shape.merge_with(shape)

    @property
    def rank(self) -> int | None:
        """The rank, None if it is not known."""
        return self._rank if self._shape.ndims is None else self._shape.ndims

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._values.spec.dtype

    @property
    def name(self) -> str:
        """Name of the values."""
        return self._values.name

    @property
    def op(self) -> Operation:
        """The operation that makes the values."""
        return self._values.op

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._values.graph

    def consumers(self) -> list[Operation]:
        """Returns the operations that take the values."""
        return self._values.consumers()

    def with_values(self, new_values: Any) -> SparseTensor:
        """Returns a tensor with other values at the same places."""
        made = SparseTensor(self._indices, new_values, self._dense_shape)
        made.set_shape(self._shape)
        return made

    def eval(self, feed_dict: Any = None, session: Any = None) -> SparseTensorValue:
        """Runs it in `session` (by default the default session) and returns its parts."""
        parts = (self._indices, self._values, self._dense_shape)
        return SparseTensorValue(*[t.eval(feed_dict, session) for t in parts])

    def _as_graph_element(self) -> Tensor:
        return self._values

    def __mul__(self, other: Any) -> SparseTensor:
        return operate("__sparse_mul__", self, other)  # type: ignore[no-any-return]

    def __truediv__(self, other: Any) -> SparseTensor:
        return operate("__sparse_truediv__", self, other)  # type: ignore[no-any-return]

    def __rmul__(self, other: Any) -> SparseTensor:
        return operate("__sparse_mul__", self, other)  # type: ignore[no-any-return]

    def __neg__(self) -> SparseTensor:
        return self.with_values(-self._values)

    #: NumPy must not take over `array * tensor`.
    __array_ufunc__ = None

    def __repr__(self) -> str:
        return (
            f"<fs.SparseTensor {self.dtype}{text(as_dims(self._shape))}: "
            f"indices={self._indices!r}, values={self._values!r}>"
        )


class SparseTensorSpec:
    """What a sparse tensor is like: its static shape and dtype. Immutable.

    Args:
        shape: Static shape of the whole, None for any.
        dtype: Element type.
    """

    def __init__(self, shape: Any = None, dtype: Any = float32) -> None:
        self._shape, self._dtype = TensorShape(shape), as_dtype(dtype)

    @property
    def shape(self) -> TensorShape:
        """Static shape of the whole."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._dtype

    @property
    def rank(self) -> int | None:
        """The rank, None if it is not known."""
        return self._shape.ndims

    @property
    def value_type(self) -> type[SparseTensor]:
        """`SparseTensor`."""
        return SparseTensor

    @classmethod
    def from_value(cls, value: Any) -> SparseTensorSpec:
        """Returns the spec of a `SparseTensor` or a `SparseTensorValue`."""
        if isinstance(value, SparseTensor):
            return cls(value.shape, value.dtype)
        if isinstance(value, SparseTensorValue):
            return cls(np.asarray(value.dense_shape).tolist(), np.asarray(value.values).dtype)
        raise expected_dtype("a sparse tensor", repr(value))

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a sparse tensor (or its spec) may be what this spec says."""
        if not isinstance(spec_or_value, SparseTensorSpec | SparseTensor | SparseTensorValue):
            return False
        other = spec_or_value
        if not isinstance(other, SparseTensorSpec):
            other = SparseTensorSpec.from_value(other)
        return self._dtype is other.dtype and self._shape.is_compatible_with(other.shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SparseTensorSpec):
            return NotImplemented
        return self._dtype is other._dtype and self._shape == other._shape

    def __hash__(self) -> int:
        return hash((self._shape, self._dtype))

    def __repr__(self) -> str:
        return f"SparseTensorSpec({self._shape!r}, {self._dtype!r})"


def as_sparse(value: Any) -> SparseTensor:
    """Returns a `SparseTensor`, or what stands for one; raises DTypeError for anything else."""
    if isinstance(value, SparseTensor):
        return value
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    raise expected_dtype("fs.SparseTensor", repr(value))


def convert_to_tensor_or_sparse_tensor(
    value: Any, dtype: Any = None, name: str | None = None
) -> Tensor | SparseTensor:
    """Returns sparse tensors (and their values) as such, anything else as `convert_to_tensor`.

    Raises:
        DTypeError: if `dtype` is given and the value has another.
    """
    if not isinstance(value, SparseTensor | SparseTensorValue):
        return convert_to_tensor(value, dtype, name)
    found = SparseTensor.from_value(value)
    if dtype is not None and as_dtype(dtype) is not found.dtype:
        raise expected_dtype(f"{as_dtype(dtype)}", f'{found.dtype} from "{found.name}"')
    return found


def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """Returns a sparse tensor that is fed: by an `fs.SparseTensorValue` or a tuple of three.

    Args:
        dtype: Element type.
        shape: Static shape, None for any.
        name: Prefix of the names of its parts.
    """
    prefix = (name or "sparse_placeholder").rstrip("/")
    dims = as_dims(shape)
    rank = None if dims is None else len(dims)
    if dims is None:
        sizes = placeholder(int64, [None], f"{prefix}/shape")
    else:
        known = [-1 if d is None else d for d in dims]
        default = constant(np.array(known, np.int64), name=f"{prefix}/default_shape")
        sizes = placeholder_with_default(default, [rank], f"{prefix}/shape")
    made = SparseTensor(
        placeholder(int64, [None, rank], f"{prefix}/indices"),
        placeholder(dtype, [None], f"{prefix}/values"),
        sizes,
    )
    made.set_shape(dims)
    return made


def _write(tensor: SparseTensor) -> dict[str, Any]:
    return {
        "indices": tensor.indices.name,
        "values": tensor.values.name,
        "dense_shape": tensor.dense_shape.name,
        "shape": None if tensor.shape.ndims is None else tensor.shape.as_list(),
    }


def _read(facts: dict[str, Any], find: Callable[[str], Any]) -> SparseTensor:
    parts = [facts.get(k) for k in ("indices", "values", "dense_shape")]
    if not all(isinstance(p, str) for p in parts):
        raise expected("a sparse tensor's parts", json.dumps(facts))
    made = SparseTensor(*[find(str(p)) for p in parts])
    made.set_shape(facts.get("shape"))
    return made


register_kind(CollectionKind("sparse", SparseTensor, _write, _read))


def _product(x: Any, y: Any) -> Any:
    """What `x * y` does once there are sparse tensors."""
    if isinstance(y, SparseTensor):
        return y * x
    return multiply(x, y, "mul")


operators["__mul__"] = _product
