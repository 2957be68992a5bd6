"""What tensors are like that are not there yet: dtypes and shapes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.op import Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import DType, as_dtype, float32, int64
from flowscope.graph.values.shapes import TensorShape, as_dims

__all__ = ["IndexedSlicesSpec", "TensorSpec"]


class TensorSpec:
    """Dtype and static shape of a tensor that is not there yet. Immutable.

    Args:
        shape: Static shape; None for an unknown rank.
        dtype: Element type.
        name: A name for what it stands for, or None.
    """

    __slots__ = ("_dims", "_dtype", "_name")

    def __init__(self, shape: Any, dtype: Any = float32, name: str | None = None) -> None:
        self._dtype = as_dtype(dtype)
        self._dims = as_dims(shape)
        self._name = name

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """Static shape."""
        return TensorShape(self._dims)

    @property
    def name(self) -> str | None:
        """The name, or None."""
        return self._name

    @property
    def value_type(self) -> type[Tensor]:
        """`Tensor`."""
        return Tensor

    @property
    def spec(self) -> Spec:
        """The engine's own form."""
        return Spec(self._dtype, self._dims)

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        """Returns the spec of what has a shape and a dtype, under another name if one is given."""
        return cls(spec.shape, spec.dtype, name or getattr(spec, "name", None))

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """Returns the spec of a tensor."""
        tensor = convert_to_tensor(tensor)
        return cls(tensor.spec.shape, tensor.dtype, name or tensor.op.name)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a tensor or spec has this dtype and a shape that fits."""
        try:
            dtype, shape = as_dtype(spec_or_value.dtype), spec_or_value.shape
        except (AttributeError, TypeError):
            return False
        return self._dtype is dtype and self.shape.is_compatible_with(shape)

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every tensor of this spec fits `other` too."""
        return (
            isinstance(other, TensorSpec)
            and self._dtype is other._dtype
            and self.shape.is_subtype_of(other.shape)
        )

    def most_specific_common_supertype(self, others: Iterable[Any]) -> TensorSpec | None:
        """Returns the spec that keeps what it and all `others` agree on; None if dtypes differ."""
        others = list(others)
        if any(not isinstance(o, TensorSpec) or o._dtype is not self._dtype for o in others):
            return None
        shape = self.shape.most_specific_common_supertype([o.shape for o in others])
        name = self._name if all(o._name == self._name for o in others) else None
        return TensorSpec(shape, self._dtype, name)

    def most_specific_compatible_type(self, other: Any) -> TensorSpec:
        """Returns the spec that keeps what both agree on.

        Raises:
            InvalidArgumentError: if their dtypes differ.
        """
        found = self.most_specific_common_supertype([other])
        if found is None:
            raise InvalidArgumentError(f"{self} and {other} have no type in common")
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorSpec, (self._dims, self._dtype, self._name)

    def _parts(self) -> tuple[Any, ...]:
        return self._dtype, self._dims, self._name

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self._dtype!r}, name={self._name!r})"


class IndexedSlicesSpec:
    """What `IndexedSlices` are like: static shape and dtypes. Immutable.

    Args:
        shape: Static shape of the whole tensor, None for any.
        dtype: Element type.
        indices_dtype: Element type of the indices.
        dense_shape_dtype: Element type of the dense shape; None if there is none.
        indices_shape: Static shape of the indices, [n].
    """

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = float32,
        indices_dtype: Any = int64,
        dense_shape_dtype: Any = None,
        indices_shape: Any = None,
    ) -> None:
        self._shape, self._dtype = TensorShape(shape), as_dtype(dtype)
        self._indices_dtype = as_dtype(indices_dtype)
        self._dense = None if dense_shape_dtype is None else as_dtype(dense_shape_dtype)
        self._indices_shape = TensorShape([None] if indices_shape is None else indices_shape)

    @property
    def value_type(self) -> type[IndexedSlices]:
        """`IndexedSlices`."""
        return IndexedSlices

    @classmethod
    def from_value(cls, value: Any) -> IndexedSlicesSpec:
        """Returns the spec of `IndexedSlices`; raises DTypeError for anything else."""
        if not isinstance(value, IndexedSlices):
            raise DTypeError(f"expected fs.IndexedSlices, got {value!r}")
        dense = value.dense_shape
        return cls(
            value.shape,
            value.dtype,
            value.indices.dtype,
            None if dense is None else dense.dtype,
            value.indices.shape,
        )

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether slices (or their spec) may be what this spec says."""
        other = spec_or_value
        if isinstance(other, IndexedSlices):
            other = IndexedSlicesSpec.from_value(other)
        if not isinstance(other, IndexedSlicesSpec):
            return False
        mine, theirs = self._dtypes(), other._dtypes()
        shapes = zip(self._shapes(), other._shapes(), strict=True)
        return mine == theirs and all(a.is_compatible_with(b) for a, b in shapes)

    def _dtypes(self) -> tuple[Any, ...]:
        return self._dtype, self._indices_dtype, self._dense

    def _shapes(self) -> tuple[TensorShape, TensorShape]:
        return self._shape, self._indices_shape

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IndexedSlicesSpec):
            return NotImplemented
        return (self._dtypes(), self._shapes()) == (other._dtypes(), other._shapes())

    def __hash__(self) -> int:
        return hash((self._dtypes(), self._shapes()))

    def __repr__(self) -> str:
        parts = (self._shape, self._dtype, self._indices_dtype, self._dense, self._indices_shape)
        return f"IndexedSlicesSpec({', '.join(map(repr, parts))})"
