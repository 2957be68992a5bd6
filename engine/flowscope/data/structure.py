"""Structures of elements: tuples and dicts of tensors; and the components that stand for them.

A list is no structure here but a value, of which a tensor is made, as in TensorFlow. A sparse
tensor has three components: values, indices and dense shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from flowscope.control.tracing import parts
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import DType, as_dtype, int64
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import Dims, TensorShape, as_dims, compatible, text
from flowscope.ops.sparse.sparse_tensor import SparseTensor, SparseTensorValue


@frozen
class Leaf:
    """Dtype and static shape of one tensor of each element.

    Attributes:
        dtype: Element type; of a sparse tensor that of its values.
        dims: Static shape; of a sparse tensor the dense one.
        is_sparse: Whether it is a `fs.SparseTensor`.
        wrap: Makes the object that stands for it, of a tensor; None where that does itself.
    """

    dtype: DType
    dims: Dims
    is_sparse: bool = False
    wrap: Callable[[Tensor], Any] | None = None

    @property
    def components(self) -> list[tuple[DType, Dims]]:
        """Dtype and static shape of each component."""
        if not self.is_sparse:
            return [(self.dtype, self.dims)]
        rank = None if self.dims is None else len(self.dims)
        return [(self.dtype, (None,)), (int64, (None, rank)), (int64, (rank,))]

    def packed(self, components: Sequence[Any]) -> Any:
        """Returns the tensor that components stand for."""
        if self.wrap is not None:
            return self.wrap(components[0])
        if not self.is_sparse:
            return components[0]
        values, indices, dense_shape = components
        return SparseTensor(indices, values, dense_shape)

    def described(self) -> str:
        """How messages call it."""
        return f"{'sparse ' if self.is_sparse else ''}{self.dtype}{text(self.dims)}"


def _is_nested(value: Any) -> bool:
    if isinstance(value, SparseTensorValue):
        return False
    return isinstance(value, tuple | Mapping) and not isinstance(value, TensorShape)


def _children(value: Any) -> list[Any]:
    return [value[k] for k in sorted(value)] if isinstance(value, Mapping) else list(value)


def flatten(structure: Any) -> list[Any]:
    """Returns the leaves, those of dicts in the order of their sorted keys."""
    if not _is_nested(structure):
        return [structure]
    return [leaf for child in _children(structure) for leaf in flatten(child)]


def mapped(function: Callable[..., Any], structure: Any, *others: Any) -> Any:
    """Applies a function to the leaves, and to what others have in their places.

    Raises:
        InvalidArgumentError: if another one has no such structure.
    """
    if not _is_nested(structure):
        return function(structure, *others)
    for other in others:
        _check_alike(structure, other)
    children = [
        mapped(function, child, *rest)
        for child, *rest in zip(_children(structure), *map(_children, others), strict=True)
    ]
    if isinstance(structure, Mapping):
        made = dict(zip(sorted(structure), children, strict=True))
        return type(structure)({k: made[k] for k in structure})  # type: ignore[call-arg]
    if hasattr(structure, "_fields"):
        return type(structure)(*children)
    return type(structure)(children)


def _check_alike(structure: Any, other: Any) -> None:
    is_dict = isinstance(structure, Mapping)
    if is_dict and isinstance(other, Mapping) and sorted(other) == sorted(structure):
        return
    if not is_dict and isinstance(other, tuple | list) and len(other) == len(structure):
        return
    raise expected(f"the structure {_form(structure)}", _form(other))


def _form(structure: Any) -> str:
    if isinstance(structure, Mapping):
        return "{" + ", ".join(f"{k!r}: {_form(structure[k])}" for k in sorted(structure)) + "}"
    if _is_nested(structure):
        return "(" + ", ".join(map(_form, structure)) + ")"
    return structure.described() if isinstance(structure, Leaf) else "a tensor"


class Structure:
    """The structure of elements, and the components that stand for their leaves.

    Args:
        leaves: Tuples and dicts of `Leaf`.
    """

    def __init__(self, leaves: Any) -> None:
        self.leaves = leaves
        self.flat: list[Leaf] = flatten(leaves)

    @classmethod
    def of(cls, types: Any, shapes: Any = None, classes: Any = None) -> Structure:
        """The structure of some types, with shapes and classes in their places.

        Raises:
            InvalidArgumentError: if those have another structure.
        """

        def leaf(dtype: Any, *more: Any) -> Leaf:
            given = list(more)
            shape = given.pop(0) if shapes is not None else None
            kind = given.pop(0) if classes is not None else Tensor
            return Leaf(as_dtype(dtype), as_dims(shape), kind is SparseTensor)

        types = tuple(types) if isinstance(types, list) else types
        return cls(mapped(leaf, types, *[x for x in (shapes, classes) if x is not None]))

    @property
    def types(self) -> Any:
        """The dtypes, in the structure of elements."""
        return mapped(lambda leaf: leaf.dtype, self.leaves)

    @property
    def shapes(self) -> Any:
        """The static shapes, in the structure of elements."""
        return mapped(lambda leaf: TensorShape(leaf.dims), self.leaves)

    @property
    def classes(self) -> Any:
        """`fs.Tensor` or `fs.SparseTensor`, in the structure of elements."""
        return mapped(lambda leaf: SparseTensor if leaf.is_sparse else Tensor, self.leaves)

    @property
    def components(self) -> list[tuple[DType, Dims]]:
        """Dtype and static shape of each component."""
        return [one for leaf in self.flat for one in leaf.components]

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The components' dtypes."""
        return tuple([dtype for dtype, _ in self.components])

    @property
    def dims(self) -> tuple[Dims, ...]:
        """The components' static shapes."""
        return tuple([dims for _, dims in self.components])

    @property
    def is_sparse(self) -> bool:
        """Whether there is a sparse tensor in it."""
        return any(leaf.is_sparse for leaf in self.flat)

    def packed(self, components: Sequence[Any]) -> Any:
        """Returns the structure of tensors that components stand for."""
        rest: Iterator[Any] = iter(components)
        return mapped(lambda leaf: leaf.packed([next(rest) for _ in leaf.components]), self.leaves)

    def with_dims(self, change: Callable[[Dims], Dims]) -> Structure:
        """Returns it with other static shapes."""
        return Structure(
            mapped(lambda a: Leaf(a.dtype, change(a.dims), a.is_sparse, a.wrap), self.leaves)
        )

    def check_fits(self, other: Structure, what: str) -> None:
        """Raises InvalidArgumentError or DTypeError if elements of another one are no such ones."""

        def check(mine: Leaf, given: Any) -> None:
            if (mine.dtype, mine.is_sparse) != (given.dtype, given.is_sparse):
                raise DTypeError(f"{what}: expected {mine.described()}, got {given.described()}")
            if not compatible(mine.dims, given.dims):
                raise InvalidArgumentError(
                    f"{what}: expected {mine.described()}, got {given.described()}"
                )

        if not _is_nested(self.leaves) and _is_nested(other.leaves):
            raise expected(f"{what}: the structure {_form(self.leaves)}", _form(other.leaves))
        mapped(check, self.leaves, other.leaves)

    def merged(self, other: Structure, what: str) -> Structure:
        """The structure that elements of both have: shapes are open where they differ.

        Raises: as `check_fits` does.
        """
        self.check_fits(other.with_dims(lambda dims: None), what)

        def common(mine: Leaf, given: Leaf) -> Leaf:
            return Leaf(mine.dtype, _common(mine.dims, given.dims), mine.is_sparse)

        return Structure(mapped(common, self.leaves, other.leaves))

    def __str__(self) -> str:
        return _form(self.leaves)


def _common(a: Dims, b: Dims) -> Dims:
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple([x if x == y else None for x, y in zip(a, b)])


def tensors_of(value: Any, name: str) -> tuple[Structure, list[Tensor]]:
    """Returns the structure of a value - tensors, or what can be made some - and its components.

    Raises:
        DTypeError: if something in it can be made no tensor.
    """
    components: list[Tensor] = []

    def leaf(one: Any) -> Leaf:
        if isinstance(one, SparseTensorValue):
            one = SparseTensor(*one)
        if one is None or isinstance(one, Operation):
            raise DTypeError(f"expected tensors, got {one!r}")
        if isinstance(one, SparseTensor):
            components.extend(parts(one))
            return Leaf(one.dtype, one.shape._dims, True)
        tensor = convert_to_tensor(one, name=name)
        components.append(tensor)
        return Leaf(tensor.dtype, tensor.spec.shape)

    return Structure(mapped(leaf, value)), components


def get_output_types(dataset_or_iterator: Any) -> Any:
    """Dtypes of the elements of a dataset or an iterator, in their structure."""
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """Static shapes of the elements of a dataset or an iterator, in their structure."""
    return dataset_or_iterator.output_shapes


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """`fs.Tensor` or `fs.SparseTensor` of the elements of a dataset or an iterator."""
    return dataset_or_iterator.output_classes


__all__ = [
    "Leaf",
    "Structure",
    "flatten",
    "get_output_classes",
    "get_output_shapes",
    "get_output_types",
    "mapped",
    "tensors_of",
]
