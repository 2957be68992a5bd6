"""What maps and folds go through, and what a map returns: tensors and sparse tensors, by part."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flowscope import nest
from flowscope.control.arrays.tensor_array import TensorArray
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.specs import TensorSpec
from flowscope.graph.values.dtypes import int32, int64
from flowscope.graph.values.shapes import as_dims
from flowscope.ops.array.arrays import fill, shape
from flowscope.ops.array.joining import concat
from flowscope.ops.array.selection import boolean_mask
from flowscope.ops.core.casting import cast
from flowscope.ops.math.elementwise import equal
from flowscope.ops.math.reductions import reduce_max
from flowscope.ops.sparse.sparse_tensor import SparseTensor, SparseTensorSpec

#: The arrays in which a map keeps one result.
Arrays = list[TensorArray]


class Elements:
    """Tensors and sparse tensors, taken apart along their first axes."""

    def __init__(self, elems: Any) -> None:
        self.structure = elems
        wholes = [_whole(e) for e in nest.flatten(elems)]
        if not wholes:
            raise InvalidArgumentError("expected one tensor at least as elems, got none")
        for t in wholes:
            if t.shape.ndims == 0:
                raise InvalidArgumentError(f'elems must have a first axis: "{t.name}" is a scalar')
        known = [as_dims(t.shape)[0] for t in wholes if as_dims(t.shape)]  # type: ignore[index]
        sizes = {n for n in known if n is not None}
        if len(sizes) > 1:
            raise InvalidArgumentError(f"elems must have one length, got {sorted(sizes)}")
        self.static = next(iter(sizes), None)
        self.count: Any = self.static if sizes else _length(wholes[0])
        #: What `fn` of a map returns, unless it says otherwise: a dtype or a spec per part.
        self.kinds = [SparseTensorSpec(t.shape[1:], t.dtype) if isinstance(t, SparseTensor)
                      else t.dtype for t in wholes]  # fmt: skip
        self._parts = [self._apart(t) for t in wholes]

    def _apart(self, whole: Tensor | SparseTensor) -> Callable[[Any], Any]:
        if isinstance(whole, SparseTensor):
            return functools.partial(_row, whole)
        return array(whole.dtype, self.count, element_shape=_tail(whole)).unstack(whole).read

    def at(self, i: Any) -> Any:
        """Returns the elements at an index, in the structure of what was given."""
        return nest.pack_sequence_as(self.structure, [part(i) for part in self._parts])


def _length(whole: Tensor | SparseTensor) -> Tensor:
    if isinstance(whole, SparseTensor):
        return cast(whole.dense_shape[0], int32)
    first: Tensor = shape(whole)[0]
    return first


def _row(whole: SparseTensor, i: Any) -> SparseTensor:
    """Returns the part of a sparse tensor at an index of its first axis."""
    is_in = equal(whole.indices[:, 0], cast(i, int64))
    return SparseTensor(
        boolean_mask(whole.indices[:, 1:], is_in),
        boolean_mask(whole.values, is_in),
        whole.dense_shape[1:],
    )


def array(dtype: Any, count: Any, **options: Any) -> TensorArray:
    """Returns an array that keeps what is read."""
    # What is read once need not be cleared, and reads of arrays that are not can be merged.
    return TensorArray(dtype, count, clear_after_read=False, **options)


def _whole(value: Any) -> Tensor | SparseTensor:
    if isinstance(value, SparseTensor):
        return value
    if isinstance(value, TensorArray):
        raise DTypeError(f"expected tensors as elems, got {value!r}: use its stack()")
    return convert_to_tensor(value)


def _tail(t: Tensor) -> Any:
    return None if t.spec.shape is None else t.spec.shape[1:]


def new_arrays(kinds: list[Any], count: Any, infer_shape: bool) -> list[Arrays]:
    """Returns the arrays for the results of a map.

    Args:
        kinds: Per result its dtype, a spec with one, or the spec of a sparse tensor.
        count: How many parts there are.
        infer_shape: Whether all parts of a result have the shape of the first.
    """
    return [_arrays(kind, count, infer_shape) for kind in kinds]


def _arrays(kind: Any, count: Any, infer_shape: bool) -> Arrays:
    if not isinstance(kind, SparseTensorSpec | SparseTensor):
        dims = kind.shape if isinstance(kind, TensorSpec) else None
        dtype = getattr(kind, "dtype", kind)
        return [array(dtype, count, infer_shape=infer_shape, element_shape=dims)]
    rank = kind.shape.ndims
    return [
        array(kind.dtype, count, infer_shape=False, element_shape=[None]),
        array(int64, count, infer_shape=False, element_shape=[None, rank and rank + 1]),
        array(int64, count, element_shape=[rank]),
    ]


def written(arrays: list[Arrays], i: Any, found: list[Any], hint: str) -> list[Arrays]:
    """Returns the arrays with what `fn` returned for a part.

    Raises:
        DTypeError: if a result has another dtype, or is sparse where it is not to be.
    """
    return [_written(k, a, i, v, hint) for k, (a, v) in enumerate(zip(arrays, found, strict=True))]


def _written(k: int, arrays: Arrays, i: Any, value: Any, hint: str) -> Arrays:
    is_sparse = len(arrays) > 1
    if is_sparse is not isinstance(value, SparseTensor):
        expected = "a sparse tensor" if is_sparse else "a tensor"
        raise DTypeError(f"fn returned {value!r} as result {k}, expected {expected}: {hint}")
    value = value if is_sparse else convert_to_tensor(value)
    if value.dtype is not arrays[0].dtype:
        one = value.values if is_sparse else value
        raise DTypeError(
            f'fn returned {one.spec} ("{one.name}") as result {k}, expected {arrays[0].dtype}: '
            f"{hint}"
        )
    if not is_sparse:
        return [arrays[0].write(i, value)]
    column = fill([shape(value.values)[0], 1], cast(i, int64))
    parts = value.values, concat([column, value.indices], 1), value.dense_shape
    return [a.write(i, t) for a, t in zip(arrays, parts, strict=True)]


def stacked(arrays: Arrays, static: int | None) -> Any:
    """Returns a result of all parts, one behind the other along a new first axis.

    The shape of a sparse one has room for the largest part.

    Args:
        arrays: Its arrays.
        static: How many parts there are, where that is known.
    """
    if len(arrays) == 1:
        found, dims = arrays[0].stack(), arrays[0].element_shape
        if dims.ndims is not None:
            found.set_shape([static, *dims.as_list()])
        return found
    values, indices, shapes = arrays
    count = cast(shapes.size(), int64)
    dense_shape = concat([[count], reduce_max(shapes.stack(), 0)], 0)
    return SparseTensor(indices.concat(), values.concat(), dense_shape)


__all__ = ["Arrays", "Elements", "array", "new_arrays", "stacked", "written"]
