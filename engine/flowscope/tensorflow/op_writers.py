"""What each type of operation is written as for TensorFlow: a function that adds its nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowscope.graph.constant import get_static_value
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values import dtypes
from flowscope.tensorflow.node_writer import NodeWriter, ShapeAttribute

Writer = Callable[[NodeWriter, Operation], Any]

#: Types that take the same inputs, whose attribute T is the dtype of the first; TensorFlow's name
#: where it is another one.
_SAME = (
    "Abs Acos Acosh Add=AddV2 Asin Asinh Atan Atan2 Atanh Ceil Cos Cosh Digamma Elu Equal Erf Erfc "
    "Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Identity Inv IsFinite IsInf IsNan Less "
    "LessEqual Lgamma Log Log1p Maximum Minimum Mul Neg NotEqual Pow RealDiv Reciprocal Relu Relu6 "
    "Rint Round Rsqrt Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Square SquaredDifference "
    "StopGradient Sub Tan Tanh"
)
#: Types whose inputs are truth values, and have no attributes.
_LOGICAL = ("LogicalAnd", "LogicalNot", "LogicalOr")

writers: dict[str, Writer] = {}


def _writes(*types: str) -> Callable[[Writer], Writer]:
    def enter(function: Writer) -> Writer:
        writers.update(dict.fromkeys(types, function))
        return function

    return enter


def _same(kind: str) -> Writer:
    return lambda w, op: w.add(op, kind, T=op.inputs[0].dtype)


for _word in _SAME.split():
    _ours, _, _theirs = _word.partition("=")
    writers[_ours] = _same(_theirs or _ours)
writers |= {_name: lambda w, op: w.add(op, op.type) for _name in _LOGICAL}


def _op(op: Operation) -> Any:
    """The definition, whose attributes follow from its type."""
    return op.definition


def _x(op: Operation) -> Any:
    return op.inputs[0].dtype


def _rank(w: NodeWriter, tensor: Tensor) -> int:
    if tensor.spec.shape is None:
        raise w.refusal(tensor.op, "its rank has to be known")
    return len(tensor.spec.shape)


def _fixed(w: NodeWriter, op: Operation, index: int) -> Any:
    value = get_static_value(op.inputs[index])
    if value is None:
        raise w.refusal(op, f"its input {index} has to be a constant")
    return np.asarray(value)


@_writes("NoOp")
def _no_op(w: NodeWriter, op: Operation) -> None:
    w.add(op, "NoOp")


@_writes("Const")
def _const(w: NodeWriter, op: Operation) -> None:
    dtype = op.outputs[0].dtype
    w.add(op, "Const", dtype=dtype, value=np.asarray(get_static_value(op.outputs[0])))


@_writes("Placeholder")
def _placeholder(w: NodeWriter, op: Operation) -> None:
    w.add(
        op, "Placeholder", dtype=op.outputs[0].dtype, shape=ShapeAttribute(op.outputs[0].spec.shape)
    )


@_writes("VarHandleOp")
def _variable(w: NodeWriter, op: Operation) -> None:
    d = _op(op)
    names = {"container": d.container, "shared_name": d.shared_name}
    w.add(op, "VarHandleOp", dtype=d.dtype, shape=ShapeAttribute(d.shape), **names)


@_writes("ReadVariableOp")
def _read(w: NodeWriter, op: Operation) -> None:
    w.add(op, "ReadVariableOp", dtype=op.outputs[0].dtype)


@_writes("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
def _assign(w: NodeWriter, op: Operation) -> None:
    w.add(op, op.type, dtype=op.inputs[1].dtype)


@_writes("SelectBroadcast")
def _select(w: NodeWriter, op: Operation) -> None:
    w.add(op, "SelectV2", T=op.inputs[1].dtype)


@_writes("AddN")
def _add_n(w: NodeWriter, op: Operation) -> None:
    w.add(op, "AddN", N=len(op.inputs), T=_x(op))


@_writes("LeakyRelu")
def _leaky_relu(w: NodeWriter, op: Operation) -> None:
    w.add(op, "LeakyRelu", alpha=float(_op(op).alpha), T=_x(op))


@_writes("Cast")
def _cast(w: NodeWriter, op: Operation) -> None:
    w.add(op, "Cast", SrcT=_x(op), DstT=op.outputs[0].dtype)


@_writes("BiasAdd")
def _bias_add(w: NodeWriter, op: Operation) -> None:
    w.add(op, "BiasAdd", T=_x(op), data_format=_op(op).data_format)


@_writes("MatMul")
def _matmul(w: NodeWriter, op: Operation) -> None:
    d = _op(op)
    if _rank(w, op.inputs[0]) == _rank(w, op.inputs[1]) == 2:
        w.add(op, "MatMul", T=_x(op), transpose_a=d.transpose_a, transpose_b=d.transpose_b)
    else:
        if op.inputs[0].dtype.kind == "c" and (d.transpose_a or d.transpose_b):
            raise w.refusal(op, "batches of complex matrices are not transposed there")
        w.add(op, "BatchMatMulV2", T=_x(op), adj_x=d.transpose_a, adj_y=d.transpose_b)


@_writes("Softmax", "LogSoftmax")
def _softmax(w: NodeWriter, op: Operation) -> None:
    if _op(op).axis not in (-1, _rank(w, op.inputs[0]) - 1):
        raise w.refusal(op, "its axis has to be the last one")
    w.add(op, op.type, T=_x(op))


@_writes("Sum", "Mean", "Max", "Min", "Prod", "All", "Any")
def _reduction(w: NodeWriter, op: Operation) -> None:
    axes = _op(op).axis
    if len(op.inputs) > 1:
        raise w.refusal(op, "its axes have to be constants")
    axes = range(_rank(w, op.inputs[0])) if axes is None else axes
    inputs = [w.input_of(op.inputs[0]), w.constant(op, "axes", list(axes))]
    dtype = None if op.inputs[0].dtype is dtypes.bool_ else _x(op)  # "All" and "Any" have none
    w.add(op, op.type, inputs, keep_dims=bool(_op(op).keepdims), T=dtype, Tidx=dtypes.int32)


@_writes("ArgMax", "ArgMin")
def _arg(w: NodeWriter, op: Operation) -> None:
    inputs = [w.input_of(op.inputs[0]), w.constant(op, "axis", _op(op).axis)]
    output = op.outputs[0].dtype
    w.add(op, op.type, inputs, T=_x(op), Tidx=dtypes.int32, output_type=output)


@_writes("Shape")
def _shape(w: NodeWriter, op: Operation) -> None:
    w.add(op, "Shape", T=_x(op), out_type=op.outputs[0].dtype)


@_writes("Reshape")
def _reshape(w: NodeWriter, op: Operation) -> None:
    w.add(op, "Reshape", T=_x(op), Tshape=op.inputs[1].dtype)


@_writes("Transpose")
def _transpose(w: NodeWriter, op: Operation) -> None:
    perm = _op(op).perm
    axes = list(range(_rank(w, op.inputs[0])))[::-1] if perm is None else list(perm)
    inputs = [w.input_of(op.inputs[0]), w.constant(op, "perm", axes)]
    w.add(op, "Transpose", inputs, T=_x(op), Tperm=dtypes.int32)


@_writes("Squeeze")
def _squeeze(w: NodeWriter, op: Operation) -> None:
    w.add(op, "Squeeze", T=_x(op), squeeze_dims=list(_op(op).axes or ()))


@_writes("ExpandDims")
def _expand_dims(w: NodeWriter, op: Operation) -> None:
    *before, last = sorted(_op(op).axes)
    at = w.input_of(op.inputs[0])
    facts = {"T": _x(op), "Tdim": dtypes.int32}
    for axis in before:
        at = w.helper(op, "part", "ExpandDims", [at, w.constant(op, "axis", axis)], **facts)
    w.add(op, "ExpandDims", [at, w.constant(op, "axis", last)], **facts)


@_writes("Concat")
def _concat(w: NodeWriter, op: Operation) -> None:
    inputs = [*[w.input_of(t) for t in op.inputs], w.constant(op, "axis", _op(op).axis)]
    w.add(op, "ConcatV2", inputs, N=len(op.inputs), T=_x(op), Tidx=dtypes.int32)


@_writes("Pack")
def _pack(w: NodeWriter, op: Operation) -> None:
    w.add(op, "Pack", N=len(op.inputs), T=_x(op), axis=int(_op(op).axis))


@_writes("Split", "SplitEven")
def _split(w: NodeWriter, op: Operation) -> None:
    sizes = [t.spec.shape[_op(op).axis] if t.spec.shape else None for t in op.outputs]
    if None in sizes:
        raise w.refusal(op, "the sizes of its parts have to be known")
    more = [w.constant(op, "sizes", sizes), w.constant(op, "axis", _op(op).axis)]
    inputs = [w.input_of(op.inputs[0]), *more]
    w.add(op, "SplitV", inputs, T=_x(op), Tlen=dtypes.int32, num_split=len(sizes))


@_writes("Gather")
def _gather(w: NodeWriter, op: Operation) -> None:
    inputs = [*[w.input_of(t) for t in op.inputs[:2]], w.constant(op, "axis", _op(op).axis)]
    facts = {"Tparams": _x(op), "Tindices": op.inputs[1].dtype, "Taxis": dtypes.int32}
    w.add(op, "GatherV2", inputs, batch_dims=0, **facts)


@_writes("Tile")
def _tile(w: NodeWriter, op: Operation) -> None:
    w.add(op, "Tile", T=_x(op), Tmultiples=op.inputs[1].dtype)


@_writes("Pad")
def _pad(w: NodeWriter, op: Operation) -> None:
    mode, paddings = str(_op(op).mode).upper(), op.inputs[1].dtype
    if mode == "CONSTANT":
        value = w.constant(op, "value", _op(op).value, _x(op).np_dtype)
        inputs = [*[w.input_of(t) for t in op.inputs[:2]], value]
        w.add(op, "PadV2", inputs, T=_x(op), Tpaddings=paddings)
    else:
        w.add(op, "MirrorPad", T=_x(op), Tpaddings=paddings, mode=mode)


@_writes("Slice")
def _slice(w: NodeWriter, op: Operation) -> None:
    w.add(op, "Slice", T=_x(op), Index=op.inputs[1].dtype)


@_writes("StridedSlice")
def _strided_slice(w: NodeWriter, op: Operation) -> None:
    if len(op.inputs) > 1:
        raise w.refusal(op, "its indices have to be constants")
    masks = dict.fromkeys(("begin", "end", "ellipsis", "new_axis", "shrink_axis"), 0)
    begins, ends, strides = [], [], []
    for i, part in enumerate(_op(op).index(())):
        begin, end, stride = 0, 0, 1
        if part is None:
            masks["new_axis"] |= 1 << i
        elif part is Ellipsis:
            masks["ellipsis"] |= 1 << i
        elif isinstance(part, slice):
            stride = 1 if part.step is None else part.step
            masks["begin"] |= (part.start is None) << i
            masks["end"] |= (part.stop is None) << i
            begin, end = part.start or 0, part.stop or 0
        else:
            masks["shrink_axis"] |= 1 << i
            begin, end = part, part + 1
        begins.append(begin)
        ends.append(end)
        strides.append(stride)
    parts = {"begin": begins, "end": ends, "strides": strides}
    inputs = [w.input_of(op.inputs[0]), *[w.constant(op, n, v) for n, v in parts.items()]]
    told = {f"{name}_mask": mask for name, mask in masks.items()}
    w.add(op, "StridedSlice", inputs, T=_x(op), Index=dtypes.int32, **told)


def _window(w: NodeWriter, op: Operation) -> dict[str, Any]:
    """The attributes that convolutions and pools have in common."""
    d = _op(op)
    told = {"padding": d.padding, "explicit_paddings": list(d.explicit_paddings) or None}
    return {"T": _x(op), "strides": list(d.strides), "data_format": d.data_format, **told}


@_writes("Conv2D")
def _conv2d(w: NodeWriter, op: Operation) -> None:
    dilations = list(_op(op).dilations or (1, 1, 1, 1))
    w.add(op, "Conv2D", dilations=dilations, **_window(w, op))


@_writes("MaxPool", "AvgPool")
def _pool(w: NodeWriter, op: Operation) -> None:
    d = _op(op)
    if any(n != 1 for n in d.dilations or ()) or d.explicit_paddings:
        raise w.refusal(op, "its windows have no gaps there, and its padding is a word")
    w.add(op, op.type, ksize=list(d.ksize), **_window(w, op))


@_writes("FusedBatchNormV3")
def _batch_norm(w: NodeWriter, op: Operation) -> None:
    d = _op(op)
    if d.is_training:
        raise w.refusal(op, "build it with is_training=False")
    facts = {"epsilon": float(d.epsilon), "data_format": d.data_format, "is_training": False}
    inputs = [w.input_of(t) for t in op.inputs[:5]]
    w.add(op, "FusedBatchNormV3", inputs, T=_x(op), U=op.inputs[1].dtype, **facts)


__all__ = ["writers"]
