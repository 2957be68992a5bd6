"""`TensorArray`: tensors by index, written and read in loops (SPEC C4, C5)."""

from __future__ import annotations

from typing import Any

from flowscope.control import array_ops as ops
from flowscope.control.lists import element_spec
from flowscope.control.tracing import Composite
from flowscope.errors import InvalidArgumentError, UnimplementedError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.dtypes import DType, as_dtype, int32, int64
from flowscope.graph.operation import Tensor
from flowscope.graph.shapes import Dims, TensorShape, as_dims, merge_dims
from flowscope.ops.arrays import range as range_of, shape
from flowscope.ops.build import apply, apply_many
from flowscope.ops.casting import cast

__all__ = ["TensorArray"]


class TensorArray(Composite):
    """Tensors by index, each of which is written once.

    An array is a value: writing returns a new one, which has to be used from then on, and the old
    one stays what it was. Gradients of any order lead through.

    Args:
        dtype: Element type of the tensors.
        size: Number of indices.
        dynamic_size: Whether a write behind the last index makes it larger.
        clear_after_read: Not used: a value is freed with the last array that has it.
        tensor_array_name: Name of the operation that makes it, if `name` is not given.
        handle: Not used.
        flow: The tensor of another array, to make one of it.
        infer_shape: Whether the first value that is written says the shape of all.
        element_shape: Shape of the tensors.
        colocate_with_first_write_call: Not used.
        name: Name of the operation that makes it.

    Attributes:
        flow: The tensor that stands for it.
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Tensor | None = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        del clear_after_read, colocate_with_first_write_call, handle
        self._dtype: DType = as_dtype(dtype)
        self._dims: Dims = as_dims(element_shape)
        self._grows = bool(dynamic_size)
        self._infer = infer_shape
        if flow is None:
            if size is None:
                raise InvalidArgumentError("expected a size of the array, got none")
            op = ops.NewArray(self._dtype, self._dims, self._grows)
            flow = apply(op, convert_to_tensor(size), name=name or tensor_array_name)
        self.flow: Tensor = flow

    @property
    def dtype(self) -> DType:
        """Element type of the tensors."""
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        """Whether a write behind the last index makes it larger."""
        return self._grows

    @property
    def element_shape(self) -> TensorShape:
        """What is known of the tensors' shape."""
        return TensorShape(self._dims)

    @property
    def handle(self) -> Tensor:
        """The tensor that stands for it."""
        return self.flow

    def to_flow(self) -> Tensor:
        """Returns the tensor that stands for it."""
        return self.flow

    def from_flow(self, tensor: Tensor) -> TensorArray:
        """Returns an array like this one, for another tensor."""
        return TensorArray(
            self._dtype,
            dynamic_size=self._grows,
            flow=tensor,
            infer_shape=self._infer,
            element_shape=self._dims,
        )

    def identity(self) -> TensorArray:
        """Returns the same array."""
        return self.from_flow(self.flow)

    def grad(self, source: Any, flow: Any = None, name: str | None = None) -> TensorArray:
        """Not needed here: `fs.gradients` leads through arrays."""
        raise UnimplementedError("arrays are values here: fs.gradients leads through them")

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Returns the array with `value` at `index`, which must not have been written."""
        value = convert_to_tensor(value, self._dtype)
        flow = apply(ops.WriteArray(False), self.flow, convert_to_tensor(index), value, name=name)
        return self._after(flow, value.spec.shape)

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Returns the tensor at `index`, which must have been written."""
        found = apply(ops.ReadArray(), self.flow, convert_to_tensor(index), name=name)
        if self._dims is not None:
            found.set_shape(self._dims)
        return found

    def stack(self, name: str | None = None) -> Tensor:
        """Returns all tensors one behind the other along a new first axis."""
        return self.gather(range_of(self.size()), name or "stack")

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """Returns the tensors at `indices` one behind the other along a new first axis."""
        indices = convert_to_tensor(indices, preferred_dtype=int32)
        return apply(ops.GatherArray(self._dims), self.flow, indices, name=name)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Returns the array with the parts of `value` along its first axis, from index 0 on."""
        value = convert_to_tensor(value, self._dtype)
        return self.scatter(range_of(shape(value)[0]), value, name or "unstack")

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Returns the array with the parts of `value` along its first axis at `indices`."""
        value = convert_to_tensor(value, self._dtype)
        indices = convert_to_tensor(indices, preferred_dtype=int32)
        flow = apply(ops.ScatterArray(False), self.flow, indices, value, name=name)
        dims = value.spec.shape
        return self._after(flow, None if dims is None else dims[1:])

    def concat(self, name: str | None = None) -> Tensor:
        """Returns all tensors one behind the other along their first axis."""
        return apply_many(ops.ConcatArray(), self.flow, name=name)[0]

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Returns the array with parts of `value`, of these lengths along its first axis."""
        value = convert_to_tensor(value, self._dtype)
        lengths = cast(convert_to_tensor(lengths), int64)
        flow = apply(ops.SplitArray(False), self.flow, value, lengths, name=name)
        dims = value.spec.shape
        return self._after(flow, None if dims is None else (None, *dims[1:]))

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of indices, an int32 scalar."""
        return apply(ops.SizeOfArray(), self.flow, name=name)

    def close(self, name: str | None = None) -> Any:
        """Returns an operation that does nothing: an array is freed with its last use."""
        from flowscope.ops.flow import no_op

        return no_op(name)

    def _after(self, flow: Tensor, dims: Dims) -> TensorArray:
        known = merge_dims(self._dims, dims) if self._infer else self._dims
        made = self.from_flow(flow)
        made._dims = known
        return made

    def __repr__(self) -> str:
        return f'<fs.TensorArray {self._dtype}{element_spec(self.flow.spec)}, "{self.flow.name}">'
