"""The primitives of control flow by hand, and other ops as TensorFlow's `raw_ops` name them.

A loop is made of Enter, Merge, Switch, NextIteration and Exit:

    start = raw_ops.Enter(data=fs.constant(0), frame_name="count")
    limit = raw_ops.Enter(data=n, frame_name="count", is_constant=True)
    i, _ = raw_ops.Merge(inputs=[start, start])
    stop, go = raw_ops.Switch(data=i, pred=raw_ops.LoopCond(input=fs.less(i, limit)))
    one = raw_ops.Enter(data=fs.constant(1), frame_name="count", is_constant=True)
    i.op._update_input(1, raw_ops.NextIteration(data=go + one))
    result = raw_ops.Exit(data=stop)

`fs.cond` and `fs.while_loop` are what most programs want: they check more, run faster and bring in
by themselves what they use.

Source: names, arguments and meaning are TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from flowscope.control.dynamic import primitives, stacks
from flowscope.control.dynamic.frames import frames_of
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import as_dtype, bool_, int64, string
from flowscope.ops.array import arrays
from flowscope.ops.array.arrays import shape, size
from flowscope.ops.core.build import apply, apply_many, apply_none
from flowscope.ops.core.casting import cast
from flowscope.ops.core.flow import identity
from flowscope.ops.math.elementwise import add, not_equal
from flowscope.ops.math.reductions import reduce_any
from flowscope.ops.sparse.sparse_tensor import SparseTensor
from flowscope.ops.strings.elementwise import string_length

__all__ = ["merge", "switch"]


class SwitchOutput(NamedTuple):
    """What Switch returns: the value is in one of them, the other one is dead."""

    output_false: Tensor
    output_true: Tensor


class MergeOutput(NamedTuple):
    """What Merge returns: the value, and which input it came from."""

    output: Any
    value_index: Tensor


def Switch(*, data: Any, pred: Any, name: str | None = None) -> SwitchOutput:
    """Returns `data` as one of two tensors: the second where `pred` is true.

    What follows from the other one does not run. What is to run on one side without taking a value
    waits for an `fs.identity` of that side: to wait for a side itself is to wait for the Switch,
    which has run on either.

    Args:
        data: A tensor.
        pred: A bool scalar.
        name: Name of the operation.
    """
    pair = apply_many(
        primitives.Switch(), convert_to_tensor(data), convert_to_tensor(pred), name=name
    )
    return SwitchOutput(*pair)


def Merge(*, inputs: Sequence[Any], name: str | None = None) -> MergeOutput:
    """Returns the first of its inputs that is there, and which one that is.

    Args:
        inputs: Tensors of one dtype, of which one will be there. In a loop: what Enter returned and
            what NextIteration will return; give Enter's twice, and replace the second by
            `output.op._update_input(1, next_iteration)`.
        name: Name of the operation.
    """
    tensors = [convert_to_tensor(t) for t in inputs]
    return MergeOutput(*apply_many(primitives.Merge(), *tensors, name=name))


def Enter(
    *,
    data: Any,
    frame_name: str,
    is_constant: bool = False,
    parallel_iterations: int = 10,
    name: str | None = None,
) -> Tensor:
    """Returns `data` in the first iteration of the loop `frame_name`.

    Args:
        data: A tensor.
        frame_name: Names the loop; all values that it starts with have Enters of one name.
        is_constant: Whether it is there in all iterations, and is not to be merged.
        parallel_iterations: At most so many iterations overlap.
        name: Name of the operation.
    """
    tensor = convert_to_tensor(data)
    frames_of(tensor.op.graph)
    op = primitives.Enter(frame_name, bool(is_constant), int(parallel_iterations))
    return apply(op, tensor, name=name)


def Exit(*, data: Any, name: str | None = None) -> Tensor:
    """Returns `data`, a value of the last iteration, behind the loop."""
    return apply(primitives.Exit(), _in_loop(data), name=name)


def NextIteration(*, data: Any, name: str | None = None) -> Tensor:
    """Returns `data` in the next iteration of the loop."""
    return apply(primitives.NextIteration(), _in_loop(data), name=name)


def _in_loop(data: Any) -> Tensor:
    tensor = convert_to_tensor(data)
    frames_of(tensor.op.graph)
    return tensor


def LoopCond(*, input: Any, name: str | None = None) -> Tensor:
    """Returns `input`, a bool scalar: whether the loop runs another iteration."""
    return apply(primitives.LoopCond(), convert_to_tensor(input), name=name)


def ControlTrigger(*, name: str | None = None) -> Operation:
    """Returns an operation that does nothing, also where what it waits for does not run."""
    return apply_none(primitives.ControlTrigger(), name=name)


def switch(data: Any, pred: Any, dtype: Any = None, name: str | None = None) -> tuple[Any, Any]:
    """Returns (output_false, output_true): `data` is the one that `pred` says, the other is dead.

    Args:
        data: A tensor or a value; slices and sparse tensors have their parts switched.
        pred: A bool scalar.
        dtype: Dtype of `data`, for a value.
        name: Name of the operation.
    """
    parts = _parts(data)
    if parts is not None:
        sides = zip(*[Switch(data=t, pred=pred, name=name) for t in parts], strict=True)
        return tuple([type(data)(*side) for side in sides])
    found = Switch(data=convert_to_tensor(data, dtype and as_dtype(dtype)), pred=pred, name=name)
    return tuple(found)  # type: ignore[return-value]


def merge(inputs: Sequence[Any], name: str | None = None) -> MergeOutput:
    """Returns (output, value_index): the first of the inputs that is there, and which one it is.

    Args:
        inputs: Tensors of one dtype; or slices, beside which tensors become slices of all rows; or
            sparse tensors, among themselves. What is merged of these is one, too.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if there is None among them, or only some slices have a dense_shape.
        DTypeError: if only some of them are sparse tensors.
    """
    if any(t is None for t in inputs):
        raise InvalidArgumentError(f"expected tensors to merge, got None among {list(inputs)!r}")
    if any(isinstance(t, SparseTensor) for t in inputs):
        if not all(isinstance(t, SparseTensor) for t in inputs):
            raise DTypeError(f"expected sparse tensors alone to merge, got {list(inputs)!r}")
        return _merged(SparseTensor, inputs, name)
    if any(isinstance(t, IndexedSlices) for t in inputs):
        return _merged(IndexedSlices, [_as_slices(t) for t in inputs], name)
    return Merge(inputs=inputs, name=name)


def _parts(data: Any) -> list[Tensor] | None:
    """The tensors of slices or of a sparse tensor, in their order; None for others."""
    if isinstance(data, SparseTensor):
        return [data.indices, data.values, data.dense_shape]
    if isinstance(data, IndexedSlices):
        found = [data.values, data.indices]
        return found if data.dense_shape is None else [*found, data.dense_shape]
    return None


def _as_slices(value: Any) -> IndexedSlices:
    """Returns slices as they are, and a tensor as slices of all its rows."""
    if isinstance(value, IndexedSlices):
        return value
    tensor = convert_to_tensor(value)
    sizes = shape(tensor)
    return IndexedSlices(tensor, arrays.range(sizes[0]), sizes)


def _merged(kind: Any, inputs: Sequence[Any], name: str | None) -> MergeOutput:
    columns = [_parts(value) or [] for value in inputs]
    if len({len(column) for column in columns}) > 1:
        raise InvalidArgumentError("expected all slices to have a dense_shape, or none of them")
    indices = [t for column in columns for t in column if kind is IndexedSlices and t is column[1]]
    if any(t.dtype is int64 for t in indices):
        columns = [[c[0], cast(c[1], int64), *c[2:]] for c in columns]
    found = [Merge(inputs=row, name=name) for row in zip(*columns, strict=True)]
    return MergeOutput(kind(*[m.output for m in found]), found[0].value_index)


# -- stacks ---------------------------------------------------------------------------------------


def StackV2(
    *, max_size: Any, elem_type: Any, stack_name: str = "", name: str | None = None
) -> Tensor:
    """Returns the handle of a new stack, which lives as long as the step.

    Args:
        max_size: Most elements that it holds, an int32 scalar; negative: no limit.
        elem_type: Dtype of the elements.
        stack_name: What messages call it.
        name: Name of the operation.
    """
    op = stacks.NewStack(as_dtype(elem_type), stack_name)
    return apply(op, convert_to_tensor(max_size, "int32"), name=name or "Stack")


def StackPushV2(
    *, handle: Tensor, elem: Any, swap_memory: bool = False, name: str | None = None
) -> Tensor:
    """Returns `elem`; running it puts it on the stack."""
    del swap_memory
    return apply(stacks.StackPush(), handle, convert_to_tensor(elem), name=name)


def StackPopV2(*, handle: Tensor, elem_type: Any, name: str | None = None) -> Tensor:
    """The element on top of the stack; running it takes it off."""
    return apply(stacks.StackPop(as_dtype(elem_type)), handle, name=name)


def StackCloseV2(*, handle: Tensor, name: str | None = None) -> Operation:
    """Returns an operation that drops what is on the stack, and refuses what is done to it then."""
    return apply_none(stacks.StackClose(), handle, name=name)


def Stack(*, elem_type: Any, stack_name: str = "", name: str | None = None) -> Tensor:
    """Returns the handle of a new stack without a limit; see `StackV2`."""
    return StackV2(max_size=-1, elem_type=elem_type, stack_name=stack_name, name=name)


StackPush, StackPop, StackClose = StackPushV2, StackPopV2, StackCloseV2


# -- other ops under these names ------------------------------------------------------------------


def Add(*, x: Any, y: Any, name: str | None = None) -> Tensor:
    """Returns x + y, element by element."""
    return add(x, y, name=name)


def Any_(*, input: Any, axis: Any, keep_dims: bool = False, name: str | None = None) -> Tensor:
    """Returns whether any of the elements along the axes is true."""
    return reduce_any(input, axis, keepdims=keep_dims, name=name)


def ToBool(*, input: Any, name: str | None = None) -> Tensor:
    """Returns a bool scalar: whether a number is not zero, or something else is not empty.

    A scalar string counts as true unless it is empty, an array of any rank but 0 unless it has no
    elements.
    """
    tensor = convert_to_tensor(input)
    if tensor.spec.shape is None:
        raise InvalidArgumentError(f'the rank of "{tensor.name}" must be known')
    if tensor.spec.shape != ():
        return not_equal(size(tensor), 0, name=name)
    if tensor.spec.dtype is string:
        return not_equal(string_length(tensor), 0, name=name)
    return cast(tensor, bool_, name=name)


def RefIdentity(*, input: Any, name: str | None = None) -> Tensor:
    """Returns the value of a tensor or a variable."""
    return identity(input, name=name)


RefSwitch, RefMerge, RefEnter, RefExit, RefNextIteration = (
    Switch,
    Merge,
    Enter,
    Exit,
    NextIteration,
)
