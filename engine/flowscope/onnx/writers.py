"""What each type of operation is written as: a function that adds ONNX's nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowscope.graph.constant import get_static_value
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values import dtypes
from flowscope.onnx.onnx_writer import OnnxWriter
from flowscope.onnx.protos import number_of

Writer = Callable[[OnnxWriter, Operation], Any]

#: Types with an operator that takes the same inputs.
_SAME = {
    "Abs": "Abs", "Add": "Add", "AddN": "Sum", "Ceil": "Ceil", "Cos": "Cos", "Elu": "Elu",
    "Equal": "Equal", "Erf": "Erf", "Exp": "Exp", "Floor": "Floor", "Greater": "Greater",
    "GreaterEqual": "GreaterOrEqual", "Identity": "Identity", "Less": "Less",
    "LessEqual": "LessOrEqual", "Log": "Log", "LogicalAnd": "And", "LogicalNot": "Not",
    "LogicalOr": "Or", "Maximum": "Max", "Minimum": "Min", "Mul": "Mul", "Neg": "Neg",
    "Pow": "Pow", "RealDiv": "Div", "Reciprocal": "Reciprocal", "Relu": "Relu",
    "SelectBroadcast": "Where", "Sigmoid": "Sigmoid", "Sign": "Sign", "Sin": "Sin",
    "Softplus": "Softplus", "Softsign": "Softsign", "Sqrt": "Sqrt", "StopGradient": "Identity",
    "Sub": "Sub", "Tanh": "Tanh",
}  # fmt: skip


def _same(kind: str) -> Writer:
    return lambda w, op: w.add(op, kind, w.inputs(op), op.name)


writers: dict[str, Writer] = {ours: _same(theirs) for ours, theirs in _SAME.items()}


def _writes(*types: str) -> Callable[[Writer], Writer]:
    def enter(function: Writer) -> Writer:
        writers.update(dict.fromkeys(types, function))
        return function

    return enter


def _op(op: Operation) -> Any:
    """The definition, whose attributes follow from its type."""
    return op.definition


def _rank(w: OnnxWriter, tensor: Tensor) -> int:
    if tensor.spec.shape is None:
        raise w.refusal(tensor.op, "its rank has to be known")
    return len(tensor.spec.shape)


def _int64(w: OnnxWriter, op: Operation, tensor: Tensor) -> str:
    """The name of an integer tensor as int64, which ONNX wants for shapes, axes and counts."""
    value = get_static_value(tensor)
    if value is not None:
        return w.constant(value)
    return w.add(op, "Cast", [w.name_of(tensor)], to=number_of(dtypes.int64))


def _fixed(w: OnnxWriter, op: Operation, index: int) -> Any:
    """The value of an input that has to be known."""
    value = get_static_value(op.inputs[index])
    if value is None:
        raise w.refusal(op, f"its input {index} has to be a constant")
    return value


@_writes("Square")
def _square(w: OnnxWriter, op: Operation) -> None:
    w.add(op, "Mul", w.inputs(op) * 2, op.name)


@_writes("SquaredDifference")
def _squared_difference(w: OnnxWriter, op: Operation) -> None:
    difference = w.add(op, "Sub", w.inputs(op))
    w.add(op, "Mul", [difference] * 2, op.name)


@_writes("Rsqrt")
def _rsqrt(w: OnnxWriter, op: Operation) -> None:
    w.add(op, "Reciprocal", [w.add(op, "Sqrt", w.inputs(op))], op.name)


@_writes("Relu6")
def _relu6(w: OnnxWriter, op: Operation) -> None:
    limits = [w.constant(v, op.inputs[0].dtype.np_dtype) for v in (0, 6)]
    w.add(op, "Clip", [*w.inputs(op), *limits], op.name)


@_writes("LeakyRelu")
def _leaky_relu(w: OnnxWriter, op: Operation) -> None:
    w.add(op, "LeakyRelu", w.inputs(op), op.name, alpha=_op(op).alpha)


@_writes("Cast")
def _cast(w: OnnxWriter, op: Operation) -> None:
    w.add(op, "Cast", w.inputs(op), op.name, to=number_of(op.outputs[0].dtype))


@_writes("BiasAdd")
def _bias_add(w: OnnxWriter, op: Operation) -> None:
    if _op(op).data_format != "NHWC":
        raise w.refusal(op, "channels have to come last")
    w.add(op, "Add", w.inputs(op), op.name)


@_writes("MatMul")
def _matmul(w: OnnxWriter, op: Operation) -> None:
    sides = []
    flags = (_op(op).transpose_a, _op(op).transpose_b)
    for tensor, name, is_turned in zip(op.inputs, w.inputs(op), flags, strict=True):
        if is_turned:
            *axes, row, column = range(_rank(w, tensor))
            name = w.add(op, "Transpose", [name], perm=[*axes, column, row])
        sides.append(name)
    w.add(op, "MatMul", sides, op.name)


@_writes("Softmax", "LogSoftmax")
def _softmax(w: OnnxWriter, op: Operation) -> None:
    w.add(op, op.type, w.inputs(op), op.name, axis=_op(op).axis)


@_writes("Sum", "Mean", "Max", "Min", "Prod")
def _reduction(w: OnnxWriter, op: Operation) -> None:
    axes, rank = _op(op).axis, _rank(w, op.inputs[0])
    if len(op.inputs) > 1:
        raise w.refusal(op, "its axes have to be constants")
    axes = range(rank) if axes is None else axes
    inputs = [w.inputs(op)[0], w.constant(list(axes))]
    keeps, nothing = int(bool(_op(op).keepdims)), int(not list(axes))
    w.add(op, f"Reduce{op.type}", inputs, op.name, keepdims=keeps, noop_with_empty_axes=nothing)


@_writes("ArgMax", "ArgMin")
def _arg(w: OnnxWriter, op: Operation) -> None:
    is_wide = op.outputs[0].dtype is dtypes.int64
    output = op.name if is_wide else None
    found = w.add(op, op.type, w.inputs(op)[:1], output, axis=_op(op).axis, keepdims=0)
    if not is_wide:
        w.add(op, "Cast", [found], op.name, to=number_of(op.outputs[0].dtype))


@_writes("Shape")
def _shape(w: OnnxWriter, op: Operation) -> None:
    found = w.add(op, "Shape", w.inputs(op))
    w.add(op, "Cast", [found], op.name, to=number_of(op.outputs[0].dtype))


@_writes("Reshape")
def _reshape(w: OnnxWriter, op: Operation) -> None:
    shape = _int64(w, op, op.inputs[1])
    w.add(op, "Reshape", [w.inputs(op)[0], shape], op.name, allowzero=1)


@_writes("Transpose")
def _transpose(w: OnnxWriter, op: Operation) -> None:
    w.add(op, "Transpose", w.inputs(op)[:1], op.name, perm=_op(op).perm)


@_writes("Squeeze")
def _squeeze(w: OnnxWriter, op: Operation) -> None:
    axes = _op(op).axes
    w.add(op, "Squeeze", [w.inputs(op)[0], *([w.constant(list(axes))] if axes else [])], op.name)


@_writes("ExpandDims")
def _expand_dims(w: OnnxWriter, op: Operation) -> None:
    w.add(op, "Unsqueeze", [w.inputs(op)[0], w.constant(list(_op(op).axes))], op.name)


@_writes("Concat")
def _concat(w: OnnxWriter, op: Operation) -> None:
    w.add(op, "Concat", w.inputs(op), op.name, axis=_op(op).axis)


@_writes("Pack")
def _pack(w: OnnxWriter, op: Operation) -> None:
    axis = _op(op).axis
    at = w.constant([axis])
    w.add(op, "Concat", [w.add(op, "Unsqueeze", [x, at]) for x in w.inputs(op)], op.name, axis=axis)


@_writes("Split", "SplitEven")
def _split(w: OnnxWriter, op: Operation) -> None:
    sizes = [t.spec.shape[_op(op).axis] if t.spec.shape else None for t in op.outputs]
    if None in sizes:
        raise w.refusal(op, "the sizes of its parts have to be known")
    w.add(op, "Split", [w.inputs(op)[0], w.constant(sizes)], op.name, axis=_op(op).axis)
    w.nodes[-1].output[:] = [w.name_of(t) for t in op.outputs]


@_writes("Gather")
def _gather(w: OnnxWriter, op: Operation) -> None:
    w.add(op, "Gather", w.inputs(op)[:2], op.name, axis=_op(op).axis)


@_writes("Tile")
def _tile(w: OnnxWriter, op: Operation) -> None:
    w.add(op, "Tile", [w.inputs(op)[0], _int64(w, op, op.inputs[1])], op.name)


@_writes("Pad")
def _pad(w: OnnxWriter, op: Operation) -> None:
    mode = str(_op(op).mode).lower()
    if mode not in ("constant", "reflect"):
        raise w.refusal(op, f"mode {mode}")
    pads = w.constant(np.asarray(_fixed(w, op, 1)).T.reshape(-1))
    value = [w.constant(_op(op).value, op.inputs[0].dtype.np_dtype)]
    more = value if mode == "constant" else []
    w.add(op, "Pad", [w.inputs(op)[0], pads, *more], op.name, mode=mode)


@_writes("Slice")
def _slice(w: OnnxWriter, op: Operation) -> None:
    begins, sizes = (np.asarray(_fixed(w, op, i), np.int64) for i in (1, 2))
    ends = np.where(sizes < 0, np.iinfo(np.int64).max, begins + sizes)
    w.add(op, "Slice", [w.inputs(op)[0], w.constant(begins), w.constant(ends)], op.name)


@_writes("StridedSlice")
def _strided_slice(w: OnnxWriter, op: Operation) -> None:
    if len(op.inputs) > 1:
        raise w.refusal(op, "its indices have to be constants")
    index, rank = _op(op).index(()), _rank(w, op.inputs[0])
    if any(part is None or part is Ellipsis for part in index):
        raise w.refusal(op, "new axes and ellipses are not written")
    name, starts, ends, steps, dropped = w.inputs(op)[0], [], [], [], []
    large = np.iinfo(np.int64).max
    for axis, part in enumerate([*index, *[slice(None)] * (rank - len(index))]):
        if not isinstance(part, slice):
            dropped.append(axis)
            part = slice(part, part + 1 or None)
        step = 1 if part.step is None else part.step
        first, beyond = (0, large) if step > 0 else (large, -large)
        starts.append(first if part.start is None else part.start)
        ends.append(beyond if part.stop is None else part.stop)
        steps.append(step)
    inputs = [name, *map(w.constant, (starts, ends, list(range(rank)), steps))]
    found = w.add(op, "Slice", inputs, None if dropped else op.name)
    if dropped:
        w.add(op, "Squeeze", [found, w.constant(dropped)], op.name)


def _channels_first(w: OnnxWriter, op: Operation) -> str:
    if _op(op).data_format == "NCHW":
        return w.inputs(op)[0]
    return w.add(op, "Transpose", w.inputs(op)[:1], perm=[0, 3, 1, 2])


def _channels_as_before(w: OnnxWriter, op: Operation, name: str) -> None:
    if _op(op).data_format == "NCHW":
        w.add(op, "Identity", [name], op.name)
    else:
        w.add(op, "Transpose", [name], op.name, perm=[0, 2, 3, 1])


def _window(w: OnnxWriter, op: Operation) -> dict[str, Any]:
    """The attributes that convolutions and pools have in common."""
    found = _op(op)
    at = slice(1, 3) if found.data_format == "NHWC" else slice(2, 4)
    window = {"strides": found.strides[at], "dilations": found.dilations[at] or None}
    if found.padding == "EXPLICIT":
        pads = np.reshape(found.explicit_paddings, (-1, 2))[at]
        return {**window, "pads": pads.T.reshape(-1).tolist()}
    return {**window, "auto_pad": "SAME_UPPER" if found.padding == "SAME" else "VALID"}


@_writes("Conv2D")
def _conv2d(w: OnnxWriter, op: Operation) -> None:
    kernel, x = op.inputs[1].spec.shape, op.inputs[0].spec.shape
    has = x[3 if _op(op).data_format == "NHWC" else 1] if x else None
    takes = kernel[2] if kernel else None
    if has is None or takes is None:
        raise w.refusal(op, "the numbers of channels have to be known")
    turned = w.add(op, "Transpose", w.inputs(op)[1:], perm=[3, 2, 0, 1])
    inputs = [_channels_first(w, op), turned]
    _channels_as_before(w, op, w.add(op, "Conv", inputs, group=has // takes, **_window(w, op)))


def _pool(kind: str) -> Writer:
    def write(w: OnnxWriter, op: Operation) -> None:
        at = slice(1, 3) if _op(op).data_format == "NHWC" else slice(2, 4)
        inputs, sizes = [_channels_first(w, op)], _op(op).ksize[at]
        found = w.add(op, kind, inputs, kernel_shape=sizes, **_window(w, op))
        _channels_as_before(w, op, found)

    return write


writers |= {"MaxPool": _pool("MaxPool"), "AvgPool": _pool("AveragePool")}


@_writes("FusedBatchNormV3")
def _batch_norm(w: OnnxWriter, op: Operation) -> None:
    if _op(op).is_training:
        raise w.refusal(op, "build it with is_training=False")
    inputs = [_channels_first(w, op), *w.inputs(op)[1:5]]
    found = w.add(op, "BatchNormalization", inputs, epsilon=_op(op).epsilon)
    _channels_as_before(w, op, found)


__all__ = ["writers"]
