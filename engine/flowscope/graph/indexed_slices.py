"""Sparse tensors as slices of a dense one: what the gradient of a gather is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor, where
from flowscope.graph.providers import load
from flowscope.graph.values.dtypes import DType, as_dtype, int32, int64
from flowscope.graph.values.shapes import TensorShape, as_dims, text

#: `(values, indices, dense_shape) -> Tensor`: the dense form; the op library fills it.
densifier: list[Callable[[Tensor, Tensor, Tensor], Tensor]] = []


class IndexedSlicesValue(NamedTuple):
    """What `Session.run` gives for an `IndexedSlices`, and takes as a feed for one."""

    values: Any
    indices: Any
    dense_shape: Any = None


class IndexedSlices(Convertible):
    """Slices of a tensor along its first axis; all others are zero, and repeats add up.

    Every op takes it as it takes a tensor: it then becomes dense.

    Args:
        values: The slices, [n, ...].
        indices: Where they lie along the first axis: int32 or int64, [n].
        dense_shape: Shape of the whole tensor, an integer vector; None where it is not known.

    Raises:
        DTypeError: if the indices are no int32 or int64.
    """

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self._values = convert_to_tensor(values)
        self._indices = convert_to_tensor(indices, preferred_dtype=int32)
        self._dense_shape = None if dense_shape is None else convert_to_tensor(dense_shape)
        self._check()

    def _check(self) -> None:
        indices, shape = self._indices.spec, self._dense_shape
        if indices.dtype not in (int32, int64):
            raise DTypeError(f"expected int32 or int64 indices of slices, got {indices.dtype}")
        if shape is not None and shape.spec.dtype not in (int32, int64):
            raise DTypeError(f"expected an int32 or int64 dense_shape, got {shape.spec.dtype}")

    @property
    def values(self) -> Tensor:
        """The slices."""
        return self._values

    @property
    def indices(self) -> Tensor:
        """Where they lie along the first axis of the whole."""
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        """Shape of the whole tensor, None if not known."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """Static shape of the whole tensor."""
        shape = self._dense_shape
        return TensorShape(None if shape is None else shape.spec.shape_value())

    def get_shape(self) -> TensorShape:
        """Returns the static shape of the whole tensor."""
        return self.shape

    @property
    def name(self) -> str:
        """Name of the values."""
        return self._values.name

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._values.spec.dtype

    @property
    def device(self) -> str:
        """The device that was asked for the values, "" for none."""
        return self._values.device

    @property
    def op(self) -> Operation:
        """The operation that makes the values."""
        return self._values.op

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._values.graph

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self._values, self._indices, self._dense_shape)

    def _as_tensor(self) -> Tensor:
        if self._dense_shape is None:
            raise InvalidArgumentError(
                "slices without a dense_shape cannot become a dense tensor: "
                "give fs.IndexedSlices the shape of the whole"
            ).located(op=self.op, op_type="IndexedSlices", **where(self.op))
        if not densifier:
            load("densifier")
        return densifier[0](self._values, self._indices, self._dense_shape)

    def _as_graph_element(self) -> Tensor:
        return self._values

    def __repr__(self) -> str:
        parts = f"values={self._values!r}, indices={self._indices!r}"
        whole = f", dense_shape={self._dense_shape!r}" if self._dense_shape is not None else ""
        return f"<fs.IndexedSlices {self.dtype}{text(as_dims(self.shape))}: {parts}{whole}>"


def convert_to_tensor_or_indexed_slices(
    value: Any, dtype: Any = None, name: str | None = None
) -> Tensor | IndexedSlices:
    """Returns slices as they are, anything else as `convert_to_tensor` does.

    Raises:
        DTypeError: if `dtype` is given and the value has another.
    """
    if not isinstance(value, IndexedSlices):
        return convert_to_tensor(value, dtype, name)
    if dtype is not None and as_dtype(dtype) is not value.dtype:
        raise DTypeError(f'expected {as_dtype(dtype)}, got {value.dtype} from "{value.name}"')
    return value


__all__ = ["IndexedSlices", "IndexedSlicesValue", "convert_to_tensor_or_indexed_slices"]
