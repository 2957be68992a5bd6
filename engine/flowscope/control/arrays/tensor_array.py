"""`TensorArray`: tensors by index, written and read in loops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from flowscope.control.arrays import array_ops as ops
from flowscope.control.cond import widened
from flowscope.control.lists import element_spec
from flowscope.control.tracing import Composite
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor, get_static_value
from flowscope.graph.default import get_default_graph
from flowscope.graph.op import Spec
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.scopes import device
from flowscope.graph.values.dtypes import DType, as_dtype, int32, int64, variant
from flowscope.graph.values.shapes import Dims, TensorShape, as_dims, merge_dims
from flowscope.ops.array.arrays import range as range_of, shape
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.core.casting import cast
from flowscope.ops.core.flow import identity, no_op

__all__ = ["TensorArray"]


class TensorArray(Composite):
    """Tensors by index, each of which is written once.

    An array is a value: writing returns a new one, which has to be used from then on, and the old
    one stays what it was. What was never written reads as zeros, if the elements' shape is known.
    Gradients of any order lead through; what is read twice gets the sum of both cotangents.

    Args:
        dtype: Element type of the tensors.
        size: Number of indices.
        dynamic_size: Whether a write behind the last index makes it larger.
        clear_after_read: Whether a value is freed when it is read, so that reading it again is an
            error: by default, as in TensorFlow. If not, it is freed with the last array that has
            it.
        tensor_array_name: Name of the operation that makes it, if `name` is not given.
        handle: The `handle` of another array, to make one of it.
        flow: The tensor of another array, to make one of it.
        infer_shape: Whether all tensors have one shape: that of the first that is written, where
            `element_shape` does not say it.
        element_shape: Shape of the tensors, as far as it is known.
        colocate_with_first_write_call: Whether the array lies where the tensor is made that is
            written first, and the `fs.device` that is open here does not count. If not, it does.
        name: Name of the operation that makes it.

    Attributes:
        flow: The tensor that stands for it.

    Raises:
        InvalidArgumentError: if there is neither a size nor a flow, or both; or what a handle says
            is said again.
        DTypeError: if the flow is not that of an array of this dtype.

    Example:
        >>> array = fs.TensorArray(fs.float32, size=2, element_shape=[])
        >>> array = array.write(0, 1.0).write(1, 2.0)
        >>> fs.Session().run(array.stack())
        array([1., 2.], dtype=float32)
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
        if handle is not None:
            said = {"size": size, "tensor_array_name": tensor_array_name}
            said |= {"dynamic_size": dynamic_size, "clear_after_read": clear_after_read}
            _check_handle(handle, {**said, "element_shape": element_shape})
            flow = handle if flow is None else flow
        self._dtype: DType = as_dtype(dtype)
        self._dims: Dims = as_dims(element_shape)
        self._grows = bool(dynamic_size)
        self._infer = bool(infer_shape)
        self._clears = clear_after_read is None or bool(clear_after_read)
        self._colocates = bool(colocate_with_first_write_call)
        #: The number of indices, where it is known and stays.
        self._count: int | None = None
        #: For an array of cotangents: the array whose elements' cotangents it has.
        self._source: TensorArray | None = None
        self.flow: Tensor = self._new(size, name or tensor_array_name) if flow is None else flow
        if flow is not None and size is not None:
            raise InvalidArgumentError("expected a size or the flow of an array, got both")
        self._check_flow()

    def _new(self, size: Any, name: str | None) -> Tensor:
        if size is None:
            raise InvalidArgumentError("expected a size of the array, got none")
        graph = get_default_graph()
        name = name or "TensorArray"
        full = graph.unique_name(name, mark_as_used=False)
        op = ops.NewArray(self._dtype, self._dims, self._grows, self._infer, self._clears, full)
        size = convert_to_tensor(size)
        with device(None) if self._colocates else nullcontext():
            flow = apply(op, size, name=name)
        known = get_static_value(size)
        self._count = None if known is None or self._grows else int(known)
        return flow

    def _check_flow(self) -> None:
        spec = self.flow.spec
        element = element_spec(spec) if spec.dtype is variant else spec
        if spec.dtype is not variant or element.dtype is not self._dtype:
            raise DTypeError(
                f"expected the flow of an array of {self._dtype}, got {element} from "
                f'"{self.flow.name}"'
            )

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
        made = TensorArray(
            self._dtype,
            dynamic_size=self._grows,
            clear_after_read=self._clears,
            flow=tensor,
            infer_shape=self._infer,
            element_shape=self._dims,
            colocate_with_first_write_call=self._colocates,
        )
        made._count, made._source = self._count, self._source
        return made

    def common(self, other: Any) -> TensorArray:
        """Returns an array with the tensor of this one, of which holds what holds of both."""
        if not isinstance(other, TensorArray):
            return self
        made = self.from_flow(self.flow)
        made._dims = widened(self._dims, other._dims)
        made._count = self._count if self._count == other._count else None
        return made

    def lasting(self, after: Any) -> TensorArray:
        """Returns itself, without its size where that of the array after an iteration differs."""
        if self._count is None or self._count == getattr(after, "_count", None):
            return self
        made = self.from_flow(self.flow)
        made._count = None
        return made

    def identity(self) -> TensorArray:
        """Returns the same array, as it is behind the control dependencies that are open."""
        return self.from_flow(identity(self.flow))

    def mark_used(self) -> None:
        """Does nothing: here an array need not be used."""

    def grad(self, source: str, flow: Any = None, name: str | None = None) -> TensorArray:
        """Returns a new array for cotangents of this one's elements, of the same size.

        What is written to one index of it adds up, and what was not written reads as zeros. It is a
        value like all arrays, so each call makes one of its own. `fs.gradients` needs none of this.

        Args:
            source: What tells it apart in names.
            flow: The tensor of a version of this array, by default its own.
            name: Name of the operation.
        """
        made = self.from_flow(self.flow if flow is None else flow)
        made._source = made.from_flow(made.flow)
        made.flow = apply(ops.EmptyArray(), made.flow, name=name or f"TensorArrayGrad_{source}")
        return made

    @property
    def _adds(self) -> bool:
        return self._source is not None

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Returns the array with `value` at `index`, which must not have been written."""
        value = convert_to_tensor(value, self._dtype)
        op = ops.WriteArray(self._adds, self._infer)
        inputs = self.flow, convert_to_tensor(index), value
        with self._beside(value):
            flow = apply(op, *inputs, name=name or "TensorArrayWrite")
        return self._after(flow, value.spec.shape)

    @contextmanager
    def _beside(self, value: Tensor) -> Iterator[None]:
        """Has a write ask for the device that the value's operation asks for, if for any."""
        if not self._colocates:
            yield
            return
        with device(None), device(value.op.device):
            yield

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Returns the tensor at `index`: zeros where none was written and its shape is known."""
        index = convert_to_tensor(index)
        name = name or "TensorArrayRead"
        if self._source is not None:
            op = ops.ReadCotangent(self._dtype)
            found = apply(op, self.flow, self._source.flow, index, name=name)
        else:
            found = apply(ops.ReadArray(self._clears), self.flow, index, name=name)
        if self._dims is not None:
            found.set_shape(self._dims)
        return found

    def stack(self, name: str | None = None) -> Tensor:
        """Returns all tensors one behind the other along a new first axis."""
        indices = range_of(self.size() if self._count is None else self._count)
        return self.gather(indices, name or "TensorArrayStack")

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """Returns the tensors at `indices` one behind the other along a new first axis."""
        indices = convert_to_tensor(indices, preferred_dtype=int32)
        name = name or "TensorArrayGather"
        if self._source is None:
            op = ops.GatherArray(self._dims, self._clears)
            return apply(op, self.flow, indices, name=name)
        return apply(
            ops.GatherCotangents(self._dtype), self.flow, self._source.flow, indices, name=name
        )

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Returns the array with the parts of `value` along its first axis, from index 0 on."""
        value = convert_to_tensor(value, self._dtype)
        count = value.spec.shape[0] if value.spec.shape else None
        indices = range_of(shape(value)[0] if count is None else count)
        return self.scatter(indices, value, name or "TensorArrayUnstack")

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Returns the array with the parts of `value` along its first axis at `indices`."""
        value = convert_to_tensor(value, self._dtype)
        indices = convert_to_tensor(indices, preferred_dtype=int32)
        op = ops.ScatterArray(self._adds, self._infer)
        with self._beside(value):
            flow = apply(op, self.flow, indices, value, name=name or "TensorArrayScatter")
        dims = value.spec.shape
        return self._after(flow, None if dims is None else dims[1:])

    def concat(self, name: str | None = None) -> Tensor:
        """Returns all tensors one behind the other along their first axis."""
        op = ops.ConcatArray(self._dims, self._clears)
        found = apply_many(op, self.flow, name=name or "TensorArrayConcat")[0]
        if self._dims and self._dims[0] is not None and self._count is not None and self._infer:
            found.set_shape([self._dims[0] * self._count, *self._dims[1:]])
        return found

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Returns the array with parts of `value`, of these lengths along its first axis.

        Args:
            value: The tensor.
            lengths: An integer vector: as many as the array has indices, unless it can grow.
            name: Name of the operation.
        """
        value = convert_to_tensor(value, self._dtype)
        lengths = cast(convert_to_tensor(lengths), int64)
        op = ops.SplitArray(self._adds, self._infer)
        with self._beside(value):
            flow = apply(op, self.flow, value, lengths, name=name or "TensorArraySplit")
        dims = value.spec.shape
        known = get_static_value(lengths)
        sizes = set() if known is None else set(known.tolist())
        first = sizes.pop() if len(sizes) == 1 else None
        return self._after(flow, None if dims is None else (first, *dims[1:]))

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of indices, an int32 scalar."""
        return apply(ops.SizeOfArray(), self.flow, name=name or "TensorArraySize")

    def close(self, name: str | None = None) -> Operation:
        """Returns an operation that does nothing: an array is freed with its last use."""
        return no_op(name or "TensorArrayClose")

    def _after(self, flow: Tensor, dims: Dims) -> TensorArray:
        made = self.from_flow(flow)
        if self._infer:
            made._dims = merge_dims(self._dims, dims)
        return made

    def __repr__(self) -> str:
        return f'<fs.TensorArray {Spec(self._dtype, self._dims)}, "{self.flow.name}">'


def _check_handle(handle: Any, said: dict[str, Any]) -> None:
    if not isinstance(handle, Tensor):
        raise DTypeError(f"expected the handle of an array, got {handle!r}")
    for name, value in said.items():
        if value is not None:
            raise InvalidArgumentError(f"expected a handle or {name}, got both: it has its own")
