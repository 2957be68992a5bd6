# ruff: noqa: E501
# fmt: off
"""The functions that take an axis, each with a call: test_axes.py counts its axes from both ends.

A row names functions, the arguments that are an axis, and the inputs. `NO_AXIS` are the arguments
that sound like one and are none; a test finds all that stand in neither.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from row_tools import In

import flowscope as fs


def plain(f: Any, xs: list[Any], axis: dict[str, Any]) -> Any:
    return f(*xs, **axis)


@dataclass(frozen=True)
class AxisRow:
    """Functions called alike.

    Attributes:
        names: Public names below `fs`, with spaces between.
        arguments: Names of the argument, older ones as well.
        inputs: What it is called with; the axes counted are the first one's.
        call: (function, tensors, the argument by name) -> one output or several.
        new: How many axes the result has that can be meant besides those of the input.
        several: Whether it takes a list of axes; `again`: which may hold one twice.
        listed: Whether it takes nothing but lists.
        late: Whether it takes an axis whose value is not known yet.
        axes: The axes to try, counted from the front; all by default.
        rank: Whether it has to know its input's rank; `static`: its shape.
    """

    names: str
    arguments: str
    inputs: tuple[In, ...]
    call: Callable[..., Any] = plain
    new: int = 0
    several: bool = False
    again: bool = False
    listed: bool = False
    late: bool = False
    axes: tuple[int, ...] | None = None
    rank: bool = False
    static: bool = False


_X = In((2, 3, 4))
_I = In((2, 3, 4), -9, 9, dtype="int32")
_B = In((2, 3, 4), dtype="bool")
_S = In(value=np.arange(6).reshape(1, 2, 3).astype(bytes), dtype="object")
_ONE = In((1, 1, 1))
_CUBE = In((3, 3, 3))


def _joined(f: Any, xs: list[Any], axis: dict[str, Any]) -> Any:
    return f([xs[0], xs[0] * 2.0], **axis)


def _sparse(f: Any, xs: list[Any], axis: dict[str, Any]) -> Any:
    return parts(f(fs.sparse.from_dense(xs[0]), **axis))


def parts(made: Any) -> Any:
    """A sparse tensor as a list of its parts."""
    is_sparse = isinstance(made, fs.SparseTensor)
    return [made.indices, made.values, made.dense_shape] if is_sparse else made


def _sparse_joined(f: Any, xs: list[Any], axis: dict[str, Any]) -> Any:
    sparse = [fs.sparse.from_dense(x) for x in (xs[0], xs[0])]
    return parts(f(sp_inputs=sparse, **{"axis": None, **axis}))


def _sparse_split(f: Any, xs: list[Any], axis: dict[str, Any]) -> Any:
    made = f(sp_input=fs.sparse.from_dense(xs[0]), num_split=2, **axis)
    return [t for part in made for t in parts(part)]


def _reversed(**other: int) -> Any:
    def call(f: Any, xs: list[Any], axis: dict[str, Any]) -> Any:
        return f(xs[0], np.int32([1, 0, 2]), **other, **axis)

    return call


def _moments(f: Any, xs: list[Any], axis: dict[str, Any]) -> Any:
    return list(f(xs[0], **axis))[:3]


def _ranges(f: Any, xs: list[Any], axis: dict[str, Any]) -> Any:
    low, high = np.float32([-1, -2, -2.5]), np.float32([1, 2, 3])
    return list(f(xs[0], low, high, fs.qint8, mode="SCALED", **axis))[:1]


def _rounded(f: Any, xs: list[Any], axis: dict[str, Any]) -> Any:
    low, high = np.float32([-1, -2, -2.5]), np.float32([1, 2, 3])
    return f(xs[0], fs.cast(low, xs[0].dtype), fs.cast(high, xs[0].dtype), range_given=True, **axis)


def _dequantized(f: Any, xs: list[Any], axis: dict[str, Any]) -> Any:
    low, high = np.float32([-1, -2, -2.5]), np.float32([1, 2, 3])
    return f(fs.bitcast(xs[0], fs.qint8), low, high, mode="SCALED", **axis)


def _quantized_joined(f: Any, xs: list[Any], axis: dict[str, Any]) -> Any:
    x = fs.bitcast(xs[0], fs.quint8)
    return list(f(axis["concat_dim"], [x, x], [-1.0, -2.0], [2.0, 1.0]))


def _metric(f: Any, xs: list[Any], axis: dict[str, Any]) -> Any:
    _, update = f(xs[0], xs[0], weights=2.0, **axis)
    return update


AXIS_ROWS = [
    # Reductions.
    AxisRow("reduce_sum reduce_mean reduce_prod reduce_max reduce_min reduce_logsumexp", "axis reduction_indices", (_X,), several=True, late=True),
    AxisRow("reduce_euclidean_norm math.reduce_std math.reduce_variance", "axis", (_X,), several=True, late=True),
    AxisRow("reduce_all reduce_any", "axis reduction_indices", (_B,), several=True, late=True),
    AxisRow("count_nonzero", "axis reduction_indices", (_I,), several=True, late=True),
    AxisRow("reduce_join", "axis reduction_indices", (_S,), several=True),
    AxisRow("argmax argmin", "axis dimension", (_X,), late=True),
    AxisRow("arg_max arg_min", "dimension", (_X,), late=True),
    AxisRow("norm", "axis", (_X,), several=True),
    AxisRow("linalg.normalize", "axis", (_X,), lambda f, xs, axis: list(f(*xs, **axis)), several=True),
    AxisRow("nn.moments", "axes", (_X,), _moments, several=True, listed=True),
    AxisRow("nn.sufficient_statistics", "axes", (_X,), _moments, several=True, listed=True),
    AxisRow("nn.weighted_moments", "axes", (_X,), lambda f, xs, axis: list(f(xs[0], frequency_weights=2.0, **axis)), several=True, listed=True),
    AxisRow("nn.l2_normalize", "axis dim", (_X,), several=True, late=True),
    AxisRow("clip_by_norm", "axes", (_X,), lambda f, xs, axis: f(xs[0], 1.0, **axis), several=True),
    AxisRow("losses.cosine_distance", "axis dim", (_X, _X)),
    AxisRow("metrics.mean_cosine_distance", "dim", (_X,), _metric, rank=True),
    # Along an axis.
    AxisRow("cumsum cumprod math.cumulative_logsumexp", "axis", (_X,), late=True),
    AxisRow("sort argsort", "axis", (_X,), late=True),
    AxisRow("nn.softmax nn.log_softmax", "axis dim", (_X,)),
    AxisRow("nn.softmax_cross_entropy_with_logits_v2 nn.softmax_cross_entropy_with_logits", "axis dim", (_X, _X), lambda f, xs, axis: f(labels=xs[0], logits=xs[1], **axis), rank=True),
    AxisRow("nn.crelu", "axis", (_X,)),
    AxisRow("reverse", "axis", (_X,), several=True, listed=True, late=True),
    AxisRow("roll", "axis", (_X,), lambda f, xs, axis: f(xs[0], 1 if np.ndim(axis["axis"]) == 0 else [1, 2][: len(axis["axis"])], **axis), several=True, again=True),
    AxisRow("roll", "axis", (_X,), lambda f, xs, axis: f(xs[0], 1, **axis), late=True),
    AxisRow("reverse_sequence", "seq_axis seq_dim", (_CUBE,), _reversed(batch_axis=0), axes=(1, 2)),
    AxisRow("reverse_sequence", "batch_axis batch_dim", (_CUBE,), _reversed(seq_axis=0), axes=(1, 2)),
    AxisRow("repeat", "axis", (_X,), lambda f, xs, axis: f(xs[0], 2, **axis)),
    AxisRow("signal.frame", "axis", (_X,), lambda f, xs, axis: f(xs[0], 2, 1, **axis), rank=True),
    AxisRow("signal.fftshift signal.ifftshift", "axes", (_X,), several=True, again=True),
    # Joined, parted, chosen.
    AxisRow("concat", "axis", (_X,), _joined, late=True),
    AxisRow("split", "axis", (In((4, 2, 6)),), lambda f, xs, axis: f(xs[0], 2, **axis), late=True),
    AxisRow("split", "axis", (_CUBE,), lambda f, xs, axis: f(xs[0], [1, 2], **axis), late=True),
    AxisRow("split", "axis", (_CUBE, In(value=[1, 2], dtype="int32")), lambda f, xs, axis: f(*xs, num=2, **axis)),
    AxisRow("unstack", "axis", (_CUBE,), lambda f, xs, axis: f(xs[0], 3, **axis)),
    AxisRow("gather", "axis", (_X,), lambda f, xs, axis: f(xs[0], [1, 0, 1], **axis), late=True),
    AxisRow("gather", "axis", (_X,), lambda f, xs, axis: f(xs[0], np.int32([[0, 1], [1, 0]]), batch_dims=1, **axis), axes=(1, 2)),
    AxisRow("boolean_mask", "axis", (_CUBE,), lambda f, xs, axis: f(xs[0], [True, False, True], **axis), rank=True),
    # Axes of the result.
    AxisRow("expand_dims", "axis dim", (_X,), new=1, late=True),
    AxisRow("stack", "axis", (_X,), _joined, new=1),
    AxisRow("one_hot", "axis", (In((2, 3), 0, 3, dtype="int32"),), lambda f, xs, axis: f(xs[0], 4, **axis), new=1),
    AxisRow("linspace", "axis", (_X, _X), lambda f, xs, axis: f(*xs, 3, **axis), new=1),
    AxisRow("squeeze", "axis squeeze_dims", (_ONE,), several=True, again=True),
    # Numbers of few bits.
    AxisRow("quantize quantization.quantize_v2", "axis", (In((3, 3, 3), dtype="float32"),), _ranges),
    AxisRow("dequantize", "axis", (In((3, 3, 3), -9, 9, dtype="int8"),), _dequantized),
    AxisRow("quantization.quantize_and_dequantize quantization.quantize_and_dequantize_v2", "axis", (_CUBE,), _rounded),
    AxisRow("quantized_concat", "concat_dim", (In((3, 3, 3), 0, 9, dtype="uint8"),), _quantized_joined),
    # Sparse tensors.
    AxisRow("sparse.reduce_sum sparse.reduce_max sparse.reduce_sum_sparse sparse.reduce_max_sparse", "axis reduction_axes", (_X,), _sparse, several=True, again=True, rank=True),
    AxisRow("sparse.expand_dims", "axis", (_X,), _sparse, new=1, rank=True),
    AxisRow("sparse.concat", "axis concat_dim", (_X,), _sparse_joined, rank=True),
    AxisRow("sparse.split", "axis split_dim", (_X,), _sparse_split, static=True),
]

#: (function, argument) that are no axis counted from either end, and why.
NO_AXIS = {
    **dict.fromkeys([("fill", "dims"), ("unravel_index", "dims")], "a shape"),
    **dict.fromkeys([("transpose", "perm"), ("sparse.transpose", "perm")], "an order of all axes"),
    **dict.fromkeys([("linalg.lu_matrix_inverse", "perm"), ("linalg.lu_reconstruct", "perm"), ("linalg.lu_solve", "perm")], "an order of rows"),
    **dict.fromkeys([("sparse.concat", "expand_nonconcat_dim"), ("sparse.concat", "expand_nonconcat_dims")], "whether"),
    **dict.fromkeys([("gather", "batch_dims"), ("gather_nd", "batch_dims"), ("raw_ops.ResourceGather", "batch_dims")], "a number of axes"),
    ("nn.with_space_to_batch", "spatial_dims"): "counted from 1: the batch is none of them",
    ("tensordot", "axes"): "a number, or two lists: test_tensordot",
    **dict.fromkeys([("signal.dct", "axis"), ("signal.idct", "axis"), ("spectral.dct", "axis"), ("spectral.idct", "axis")], "-1 and no other, as in TensorFlow"),
    **dict.fromkeys([(f"{n}_partitioner", "axis") for n in ("fixed_size", "min_max_variable", "variable_axis_size")], "of a shape that comes later: tests/ops/test_variable_scope.py"),
}
