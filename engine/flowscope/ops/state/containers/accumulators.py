"""Accumulators: gradients of several steps are averaged, and those of old steps dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from flowscope.errors import DTypeError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype, int32, int64
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, TensorShape, as_dims, compatible, text
from flowscope.ops.core.build import apply, apply_many, apply_none
from flowscope.ops.core.casting import cast
from flowscope.ops.core.handles import add_handle
from flowscope.ops.kernels.gradient_sums import as_rows
from flowscope.ops.state.containers import queue_ops as ops

__all__ = [
    "ConditionalAccumulator",
    "ConditionalAccumulatorBase",
    "SparseConditionalAccumulator",
]

_REDUCTIONS = ("MEAN", "SUM")


@frozen
class AccumulatorHandle(Op, is_stateful=True, is_handle=True, family="accumulator"):
    """The handle of an accumulator.

    Attributes: `shape` is that of the gradients; `reduction_type` is "MEAN" or "SUM".
    """

    dtype: DType
    shape: Dims
    reduction_type: str
    is_sparse: bool
    container: str
    shared_name: str

    def infer(self) -> Spec:
        return Spec(dtypes.resource, ())


class _Applies(ops.Blocking, abstract=True, fills=True):
    """Base of ops that add a gradient.

    Attributes: `source` says where in a sum the gradient stands.
    """

    dtype: DType
    shape: Dims
    source: str

    def _check(self, handle: Spec, local_step: Spec, values: Spec) -> None:
        _check_accumulator(handle)
        if local_step.dtype is not int64 or not compatible((), local_step.shape):
            raise expected_dtype("local_step as an int64 scalar", local_step)
        if values.dtype is not self.dtype:
            raise expected_dtype(f"a gradient of dtype {self.dtype}", values.dtype)

    def begin(
        self, state: Any, finish: Callable[[Any], None], *inputs: Array
    ) -> Callable[[], None]:
        """Adds the gradient at once."""
        finish(self.attempt(state, *inputs))
        return lambda: None

    def failed(self, state: Any, error: BaseException) -> None:
        """An accumulator is not closed, so nobody is told later why its producer failed."""


@frozen
class AccumulatorApplyGradient(_Applies):
    """Adds a gradient to an accumulator, unless it is stale; never waits.

    Shapes: handle [], local_step [], gradient of the accumulator's shape
    Raises: InvalidArgumentError if the gradient's shape does not fit.
    """

    dtype: DType
    shape: Dims
    source: str

    def infer(self, handle: Spec, local_step: Spec, gradient: Spec) -> tuple[Spec, ...]:
        self._check(handle, local_step, gradient)
        if not compatible(self.shape, gradient.shape):
            raise expected(f"a gradient of shape {text(self.shape)}", text(gradient.shape))
        return ()

    def attempt(self, state: Any, *inputs: Array) -> tuple[Any, ...]:
        """Adds the gradient."""
        local_step, gradient = inputs
        state.apply(self.source, int(local_step), lambda: ops.kept(gradient))
        return ()


@frozen
class SparseAccumulatorApplyGradient(_Applies):
    """Adds a sparse gradient to an accumulator, unless it is stale; never waits.

    Shapes: handle [], local_step [], indices [n], values [n, ...], perhaps the dense shape [r]
    Raises: InvalidArgumentError if a shape does not fit, or an index is no row of the shape.
    """

    dtype: DType
    shape: Dims
    source: str

    def infer(
        self, handle: Spec, local_step: Spec, indices: Spec, values: Spec, *shape: Spec
    ) -> tuple[Spec, ...]:
        self._check(handle, local_step, values)
        for what, spec in (("indices", indices), *[("the shape", s) for s in shape]):
            if spec.dtype is not int64 or not compatible((None,), spec.shape):
                raise expected_dtype(f"{what} as an int64 vector", spec)
        count = indices.shape[0] if indices.shape else None
        if values.shape is not None and not compatible((count,), values.shape[:1]):
            raise expected("a row of values for each index", text(values.shape))
        rows = self.shape[1:] if self.shape else ()
        if values.shape is not None and not compatible(rows, values.shape[1 : 1 + len(rows)]):
            raise expected(f"values of shape {text((None, *rows))}", text(values.shape))
        return ()

    def attempt(self, state: Any, *inputs: Array) -> tuple[Any, ...]:
        """Adds the gradient."""
        local_step, *parts = inputs
        state.apply(self.source, int(local_step), lambda: self._rows(*parts))
        return ()

    def _rows(self, indices: Array, values: Array, *shape: Array) -> Any:
        if not np.ndim(values) or len(values) != len(indices):
            raise expected(f"values of {len(indices)} rows, one per index", np.shape(values))
        if len(indices) and indices.min() < 0:
            raise expected("indices of 0 or more", int(indices.min()))
        if shape and self.shape:
            given = tuple(shape[0].tolist())
            if not compatible(self.shape, given[: len(self.shape)]):
                raise expected(f"a gradient of shape {text(self.shape)}", text(given))
        return as_rows(indices, values)


class _Takes(ops.Blocking, abstract=True, empties=True):
    """Base of ops that take all gradients, once there are enough."""

    dtype: DType
    shape: Dims

    def _check(self, handle: Spec, count: Spec) -> None:
        _check_accumulator(handle)
        if count.dtype is not int32 or not compatible((), count.shape):
            raise expected_dtype("num_required as an int32 scalar", count)
        if count.constant is not None:
            _required(count.constant)

    def attempt(self, state: Any, *inputs: Array) -> tuple[Any, ...] | None:
        """Takes the gradients if there are enough."""
        taken = state.take_all(_required(inputs[0]))
        return None if taken is None else self._outputs(state.reduced(taken))

    def begin(
        self, state: Any, finish: Callable[[Any], None], *inputs: Array
    ) -> Callable[[], None]:
        """Asks the accumulator for the gradients."""

        def finished(found: Any) -> None:
            if not isinstance(found, BaseException):
                try:
                    found = self._outputs(state.reduced(found))
                except Exception as e:  # such as too little memory
                    found = e
            finish(found)

        give_up: Callable[[], None] = state.wait(_required(inputs[0]), finished)
        return give_up

    def _outputs(self, value: Any) -> tuple[Any, ...]:
        return (value,)


@frozen
class AccumulatorTakeGradient(_Takes):
    """The sum or the mean of the gradients in an accumulator, once there are num_required.

    Shapes: handle [], num_required [] -> the accumulator's shape
    Raises: InvalidArgumentError if num_required is less than 1.
    """

    dtype: DType
    shape: Dims

    def infer(self, handle: Spec, count: Spec) -> Spec:
        self._check(handle, count)
        return Spec(self.dtype, self.shape)


@frozen
class SparseAccumulatorTakeGradient(_Takes):
    """The sum or the mean of the sparse gradients in an accumulator, once there are num_required.

    Shapes: handle [], num_required [] -> indices [n], values [n, ...], the dense shape [r]
    Raises: InvalidArgumentError if num_required is less than 1.
    """

    dtype: DType
    shape: Dims

    def infer(self, handle: Spec, count: Spec) -> tuple[Spec, ...]:
        self._check(handle, count)
        values = (None, *self.shape[1:]) if self.shape else None
        rank = len(self.shape) if self.shape else None
        return Spec(int64, (None,)), Spec(self.dtype, values), Spec(int64, (rank,))

    def _outputs(self, value: Any) -> tuple[Any, ...]:
        count = self.shape[0] if self.shape else None
        shape = [-1 if count is None else count, *value.values.shape[1:]]
        return value.indices, value.values, np.array(shape, np.int64)


class AccumulatorNumAccumulated(ops.Asks):
    """The number of gradients in an accumulator."""

    def infer(self, handle: Spec) -> Spec:
        _check_accumulator(handle)
        return Spec(int32, ())

    def kernel(self, xp: ArrayModule, state: Any) -> Array:
        return np.int32(state.size)


class AccumulatorSetGlobalStep(ops.QueueOp):
    """Sets the time stamp of an accumulator."""

    def infer(self, handle: Spec, step: Spec) -> tuple[Spec, ...]:
        _check_accumulator(handle)
        if step.dtype is not int64 or not compatible((), step.shape):
            raise expected_dtype("the time stamp as an int64 scalar", step)
        return ()

    def kernel(self, xp: ArrayModule, state: Any, step: Array) -> None:
        state.set_stamp(int(step))


def _check_accumulator(handle: Spec) -> None:
    if handle.dtype is not dtypes.resource or handle.variable is not None:
        raise expected_dtype("an accumulator", handle)


def _required(count: Array) -> int:
    if count < 1:
        raise expected("a num_required of 1 or more", int(count))
    return int(count)


class _TakenSlices(NamedTuple):
    """A sparse gradient, as `SparseConditionalAccumulator.take_grad` gives it."""

    indices: Tensor
    values: Tensor
    shape: Tensor


class ConditionalAccumulatorBase:
    """What accumulators of dense and of sparse gradients have in common.

    Make a `ConditionalAccumulator` or a `SparseConditionalAccumulator`.
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any,
        shared_name: str | None,
        name: str,
        reduction_type: str,
        is_sparse: bool,
    ) -> None:
        self._dtype: DType = as_dtype(dtype)
        if not self._dtype.is_floating:
            raise DTypeError(f"expected a floating dtype of gradients, got {self._dtype}")
        if reduction_type not in _REDUCTIONS:
            raise expected('"MEAN" or "SUM" as reduction_type', repr(reduction_type))
        self._shape = as_dims(shape)
        self._ref: Tensor = add_handle(
            AccumulatorHandle,
            name,
            shared_name,
            dtype=self._dtype,
            shape=self._shape,
            reduction_type=reduction_type,
            is_sparse=is_sparse,
        )

    @property
    def accumulator_ref(self) -> Tensor:
        """The handle."""
        return self._ref

    @property
    def name(self) -> str:
        """Name of the operation that makes the handle, without its scopes."""
        return self._ref.op.name.rpartition("/")[2]

    @property
    def dtype(self) -> DType:
        """Dtype of the gradients."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """Shape of the gradients."""
        return TensorShape(self._shape)

    def __repr__(self) -> str:
        return f"<fs.{type(self).__name__} '{self._ref.op.name}' of {self._dtype}>"

    def _called(self, name: str | None, what: str) -> str:
        return name or f"{self.name}_{what}"

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """Returns the number of gradients that are in, an int32 scalar.

        Args:
            name: Name of the operation.
        """
        called = self._called(name, "NumAccumulated")
        return apply(AccumulatorNumAccumulated(), self._ref, name=called)

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        """Returns an operation that sets the time stamp; gradients that are in stay in.

        Args:
            new_global_step: The time stamp, an integer scalar. A gradient whose local step is
                smaller is stale from then on.
            name: Name of the operation.
        """
        step = cast(convert_to_tensor(new_global_step), int64)
        called = self._called(name, "SetGlobalStep")
        return apply_none(AccumulatorSetGlobalStep(), self._ref, step, name=called)


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Adds gradients up until somebody takes their mean or sum, and drops those of old steps.

        accumulator = fs.ConditionalAccumulator(fs.float32, shape=[2])
        add = accumulator.apply_grad([1.0, 2.0], local_step=global_step)
        mean = accumulator.take_grad(3)       # waits until there are three

    It has a time stamp, 0 at first: each `take_grad` makes it one greater, and a gradient whose
    `local_step` is smaller is dropped. What waits holds no thread. Gradients add up by the place
    where they are computed - the tensor's device, then its name, numbers in both by their value -
    and not by arrival; those of one tensor in the order in which they came.

    Args:
        dtype: Dtype of the gradients, a floating one.
        shape: Of the gradients; None: any, but all that are in at a time have one shape.
        shared_name: Name in the container (see `fs.container`), by which others can use it; the
            handle's by default.
        name: Name of the operation that makes the handle.
        reduction_type: "MEAN" or "SUM".

    Raises:
        DTypeError: for another dtype.
        InvalidArgumentError: for another reduction; when it is first used, if the container has an
            accumulator of this name that differs.
        FailedPreconditionError: when it is used, if it was lost with its worker.
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        super().__init__(dtype, shape, shared_name, name, reduction_type, is_sparse=False)

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Operation:
        """Returns an operation that adds a gradient, or drops it if it is stale.

        Args:
            grad: The gradient, of the accumulator's shape.
            local_step: Its time stamp, an integer scalar.
            name: Name of the operation.

        Raises:
            InvalidArgumentError: if the shape does not fit, perhaps only when it runs.
        """
        gradient = convert_to_tensor(grad, self._dtype)
        step = cast(convert_to_tensor(local_step), int64)
        op = AccumulatorApplyGradient(self._dtype, self._shape, _source(gradient))
        return apply_none(op, self._ref, step, gradient, name=name)

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """Returns the mean, or the sum, of all gradients that are in, once there are enough.

        It empties the accumulator, and makes the time stamp one greater. Several are served in the
        order in which they came. A step that is stopped puts the gradients back.

        Args:
            num_required: How many gradients there have to be, an int32 scalar of 1 or more.
            name: Name of the operation.

        Raises:
            InvalidArgumentError: if num_required is less than 1, perhaps only when it runs.
        """
        op = AccumulatorTakeGradient(self._dtype, self._shape)
        count = convert_to_tensor(num_required, int32)
        return apply(op, self._ref, count, name=name)


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """As `ConditionalAccumulator`, of sparse gradients: rows, and their numbers.

    A mean is by row: its sum divided by the number of gradients that have it. Rows come out in
    ascending order; those that a gradient repeats are added up.

    Args:
        dtype: Dtype of the gradients, a floating one.
        shape: Of the dense gradients; None or (): any.
        shared_name: Name in the container, as there.
        name: Name of the operation that makes the handle.
        reduction_type: "MEAN" or "SUM".

    Raises:
        DTypeError, InvalidArgumentError, FailedPreconditionError: as there.
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        super().__init__(dtype, shape, shared_name, name, reduction_type, is_sparse=True)

    def apply_indexed_slices_grad(
        self, grad: IndexedSlices, local_step: Any = 0, name: str | None = None
    ) -> Operation:
        """Returns an operation that adds a gradient, or drops it if it is stale.

        Args:
            grad: The gradient, an `fs.IndexedSlices`.
            local_step: Its time stamp, an integer scalar.
            name: Name of the operation.

        Raises:
            DTypeError: if the gradient is no IndexedSlices.
            InvalidArgumentError: as `apply_grad`.
        """
        if not isinstance(grad, IndexedSlices):
            raise DTypeError(f"expected an IndexedSlices as gradient, got {grad!r}")
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self,
        grad_indices: Any,
        grad_values: Any,
        grad_shape: Any = None,
        local_step: Any = 0,
        name: str | None = None,
    ) -> Operation:
        """Returns an operation that adds a gradient, or drops it if it is stale.

        Args:
            grad_indices: Numbers of the rows, an integer vector [n].
            grad_values: The rows, [n, ...].
            grad_shape: Shape of the dense gradient, an integer vector; None where it is not known.
            local_step: Its time stamp, an integer scalar.
            name: Name of the operation.

        Raises:
            InvalidArgumentError: if a shape does not fit, or an index is outside of the
                accumulator's shape, perhaps only when it runs.
        """
        indices = cast(convert_to_tensor(grad_indices), int64)
        values = convert_to_tensor(grad_values, self._dtype)
        shape = [] if grad_shape is None else [cast(convert_to_tensor(grad_shape), int64)]
        step = cast(convert_to_tensor(local_step), int64)
        op = SparseAccumulatorApplyGradient(self._dtype, self._shape, _source(values))
        return apply_none(op, self._ref, step, indices, values, *shape, name=name)

    def take_grad(self, num_required: Any, name: str | None = None) -> _TakenSlices:
        """Returns the mean, or the sum, of all gradients that are in, once there are enough.

        Args:
            num_required: How many gradients there have to be, an int32 scalar of 1 or more.
            name: Name of the operation.

        Returns:
            A tuple: `indices`, int64 [n]; `values`, [n, ...]; `shape`, int64, the dense one, with
            -1 in the first place where the accumulator does not know it.

        Raises:
            InvalidArgumentError: if num_required is less than 1, perhaps only when it runs.
        """
        op = SparseAccumulatorTakeGradient(self._dtype, self._shape)
        count = convert_to_tensor(num_required, int32)
        return _TakenSlices(*apply_many(op, self._ref, count, name=name))

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """The gradients that `take_grad` takes, as an `fs.IndexedSlices`.

        Args:
            num_required: How many gradients there have to be, an int32 scalar of 1 or more.
            name: Name of the operation.

        Raises:
            InvalidArgumentError: as `take_grad`.
        """
        taken = self.take_grad(num_required, name)
        return IndexedSlices(taken.values, taken.indices, taken.shape)


def _source(gradient: Tensor) -> str:
    """What a gradient's place in a sum follows from."""
    return f"{gradient.device} {gradient.name}"
