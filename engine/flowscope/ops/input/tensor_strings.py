"""Tensors, dense and sparse, as strings: TensorFlow's messages, with the same bytes.

    record = fs.io.serialize_tensor(image)                 # a string scalar
    image = fs.io.parse_tensor(record, fs.float32)

A sparse tensor is three such strings: its indices, its values and its shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.messages.tensor_arrays import array_bytes, array_from_bytes
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import compatible, text
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.sparse.sparse_tensor import SparseTensor, as_sparse
from flowscope.ops.strings.string_op import as_strings, check_string

__all__ = [
    "deserialize_many_sparse",
    "parse_tensor",
    "serialize_many_sparse",
    "serialize_sparse",
    "serialize_tensor",
]


class _AsString(Op, abstract=True, devices=("CPU",), is_differentiable=False):
    """Base of ops that write tensors as strings, or read them."""


class SerializeTensor(_AsString):
    """A tensor as the bytes of a TensorProto.

    Shapes: tensor [...] -> []
    """

    def infer(self, tensor: Spec) -> Spec:
        _check_writable(tensor.dtype)
        return Spec(dtypes.string, ())

    def kernel(self, xp: ArrayModule, tensor: Array) -> Array:
        return _written(tensor)


@frozen
class ParseTensor(_AsString):
    """The tensor that the bytes of a TensorProto stand for.

    Shapes: serialized [] -> any
    Raises: InvalidArgumentError if the bytes are none, or of a tensor of another dtype;
        ResourceExhaustedError if a few bytes stand for a very large tensor.
    """

    dtype: DType

    def infer(self, serialized: Spec) -> Spec:
        check_string(serialized)
        if not compatible((), serialized.shape):
            raise expected("a serialized tensor as a scalar", f"shape {text(serialized.shape)}")
        return Spec(self.dtype, None)

    def kernel(self, xp: ArrayModule, serialized: Array) -> Array:
        return _parsed(serialized, self.dtype, "a serialized tensor")


def _check_writable(dtype: DType) -> None:
    if dtype.kind in "rv":
        raise expected_dtype("a tensor of numbers, bools or strings", dtype)


def _written(array: Array) -> bytes:
    dtype = dtypes.string if isinstance(array, bytes) else as_dtype(array.dtype)
    return array_bytes(array, dtype)


def _parsed(data: bytes, dtype: DType, what: str) -> Array:
    try:
        found, array = array_from_bytes(data)
    except InvalidArgumentError as e:
        raise InvalidArgumentError(f"{what} of {len(data)} bytes: {e.message}") from None
    if found is not dtype:
        raise InvalidArgumentError(f"{what}: expected dtype {dtype}, got {found}")
    # Arrays of a string's bytes cannot be written to, and keep all of it.
    return array.copy() if isinstance(array, np.ndarray) else array


class SerializeSparse(_AsString):
    """A sparse tensor as three strings: indices, values, shape.

    Shapes: indices [n, rank], values [n], shape [rank] -> [3]
    """

    def infer(self, indices: Spec, values: Spec, shape: Spec) -> Spec:
        _check_writable(values.dtype)
        return Spec(dtypes.string, (3,))

    def kernel(self, xp: ArrayModule, indices: Array, values: Array, shape: Array) -> Array:
        return _three(indices, values, shape)


def _three(*arrays: Array) -> Array:
    found = np.empty(3, object)
    found[:] = [_written(a) for a in arrays]
    return found


class SerializeManySparse(_AsString):
    """The slices of a sparse tensor along its first axis, as three strings each.

    Shapes: indices [n, rank], values [n], shape [rank] -> [first size, 3]
    Raises: InvalidArgumentError if the rank is below 2, or indices are not in order of the slices.
    """

    def infer(self, indices: Spec, values: Spec, shape: Spec) -> Spec:
        _check_writable(values.dtype)
        rank = shape.shape[0] if shape.shape else None
        if rank is not None and rank < 2:
            raise expected("a sparse tensor of rank 2 or more, the first axis that of slices", rank)
        return Spec(dtypes.string, (None, 3))

    def kernel(self, xp: ArrayModule, indices: Array, values: Array, shape: Array) -> Array:
        if len(shape) < 2:
            raise expected("a sparse tensor of rank 2 or more", f"rank {len(shape)}")
        count, slices = int(shape[0]), indices[:, 0]
        is_inside = not len(slices) or (slices[0] >= 0 and slices[-1] < count)
        if not is_inside or np.any(slices[1:] < slices[:-1]):
            raise InvalidArgumentError(
                f"expected indices of slices 0 to {count - 1}, in that order: see fs.sparse.reorder"
            )
        ends = np.searchsorted(slices, np.arange(count), "right").tolist()
        out = np.empty((count, 3), object)
        rest = _written(shape[1:])
        start = 0
        for i, end in enumerate(ends):
            inner = np.ascontiguousarray(indices[start:end, 1:])
            out[i, 0], out[i, 1] = _written(inner), _written(values[start:end])
            out[i, 2], start = rest, end
        return out


@frozen
class DeserializeManySparse(_AsString):
    """One sparse tensor of many that are three strings each, behind each other on a new axis.

    Attributes: `rank` of the result; None where it is not known.
    Shapes: serialized [n, 3] -> indices [m, rank], values [m], shape [rank]
    Raises: InvalidArgumentError if the strings are no sparse tensors of this dtype, or of ranks
        that differ.
    """

    dtype: DType
    rank: int | None = None

    def infer(self, serialized: Spec) -> tuple[Spec, ...]:
        check_string(serialized)
        if not compatible((None, 3), serialized.shape):
            raise expected("serialized sparse tensors of shape [n, 3]", text(serialized.shape))
        values = Spec(self.dtype, (None,))
        return Spec(dtypes.int64, (None, self.rank)), values, Spec(dtypes.int64, (self.rank,))

    def kernel(self, xp: ArrayModule, serialized: Array) -> tuple[Array, ...]:
        indices, values, shapes = [], [], []
        rank = None if self.rank is None else self.rank - 1
        for number, row in enumerate(serialized.tolist()):
            parts = self._parts(number, row)
            rank = len(parts[2]) if rank is None else rank
            if len(parts[2]) != rank:
                raise expected(f"sparse tensors of rank {rank}", f"{len(parts[2])} in row {number}")
            of_row = np.full((len(parts[1]), 1), number, np.int64)
            indices.append(np.hstack([of_row, parts[0]]))
            values.append(parts[1])
            shapes.append(parts[2])
        if rank is None:
            raise expected("one sparse tensor at least where no rank is given", "none")
        largest = np.max(shapes, 0) if shapes else np.zeros(rank, np.int64)
        dims = np.array([len(shapes), *largest], np.int64)
        none = np.empty((0, rank + 1), np.int64), np.empty(0, self.dtype.np_dtype)
        return np.concatenate([none[0], *indices]), np.concatenate([none[1], *values]), dims

    def _parts(self, number: int, row: list[bytes]) -> tuple[Array, Array, Array]:
        names = [f"the {what} of row {number}" for what in ("indices", "values", "shape")]
        kinds = (dtypes.int64, self.dtype, dtypes.int64)
        found = [np.asarray(_parsed(*one)) for one in zip(row, kinds, names, strict=True)]
        indices, values, shape = found
        sizes = (len(values) if values.ndim == 1 else -1, len(shape) if shape.ndim == 1 else -1)
        if indices.shape != sizes:
            given = [f.shape for f in found]
            raise expected(f"indices [n, rank], values [n], shape [rank] in row {number}", given)
        return indices, values, shape


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """Returns a tensor as a string scalar, the bytes of TensorFlow's TensorProto.

    Args:
        tensor: Numbers, bools or strings of any shape.
        name: Name of the operation.

    Raises:
        DTypeError: if it is a resource or a variant.
    """
    return apply(SerializeTensor(), convert_to_tensor(tensor), name=name)


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """Returns the tensor that a string scalar holds as a TensorProto.

    Args:
        serialized: What `serialize_tensor`, or TensorFlow, has written.
        out_type: The tensor's dtype.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: when it runs, if the bytes are no TensorProto, or one of another
            dtype.
        ResourceExhaustedError: when it runs, if a few bytes stand for a very large tensor.
    """
    return apply(ParseTensor(as_dtype(out_type)), as_strings(serialized), name=name)


def _checked(out_type: Any) -> None:
    if as_dtype(out_type) is not dtypes.string:
        raise expected_dtype("string as out_type", as_dtype(out_type))


def serialize_sparse(
    sp_input: Any, name: str | None = None, out_type: Any = dtypes.string
) -> Tensor:
    """Returns a sparse tensor as three strings, of its indices, values and shape.

    Args:
        sp_input: A SparseTensor.
        name: Name of the operation.
        out_type: `fs.string`.

    Shapes: -> [3]

    Raises:
        DTypeError: if it is no SparseTensor, or `out_type` is another dtype.
    """
    _checked(out_type)
    return apply(SerializeSparse(), *_taken_apart(sp_input), name=name)


def serialize_many_sparse(
    sp_input: Any, name: str | None = None, out_type: Any = dtypes.string
) -> Tensor:
    """Returns the slices of a sparse tensor along its first axis, as three strings each.

    Args:
        sp_input: A SparseTensor of rank 2 or more, its indices in order.
        name: Name of the operation.
        out_type: `fs.string`.

    Shapes: -> [size of the first axis, 3]

    Raises:
        DTypeError: if it is no SparseTensor, or `out_type` is another dtype.
        InvalidArgumentError: if its rank is below 2; when it runs, if indices are not in order.
    """
    _checked(out_type)
    return apply(SerializeManySparse(), *_taken_apart(sp_input), name=name)


def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """Returns one sparse tensor of many serialized ones, which its new first axis counts.

    Args:
        serialized_sparse: Strings of shape [n, 3]: rows of `serialize_many_sparse`, or what
            `serialize_sparse` has given, stacked.
        dtype: Dtype of their values.
        rank: Rank of the result, one more than theirs; None where it is not known.
        name: Name of the operation.

    Returns:
        A SparseTensor of shape [n, largest sizes].

    Raises:
        InvalidArgumentError: if `rank` is below 1; when it runs, if the strings are no such
            tensors, or ranks differ.
    """
    if rank is not None and rank < 1:
        raise expected("rank of 1 or more", rank)
    op = DeserializeManySparse(as_dtype(dtype), rank)
    return SparseTensor(*apply_many(op, as_strings(serialized_sparse), name=name))


def _taken_apart(sp_input: Any) -> tuple[Tensor, Tensor, Tensor]:
    found = as_sparse(sp_input)
    return found.indices, found.values, found.dense_shape
