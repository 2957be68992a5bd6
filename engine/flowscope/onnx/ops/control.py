"""Conditions, loops and scans as structured control flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto

import flowscope as fs
from flowscope.errors import InvalidArgumentError, UnimplementedError
from flowscope.onnx.node import OnnxNode, dims_of, normalized, rank_of
from flowscope.onnx.protos import dtype_of
from flowscope.onnx.table import converts


@converts("If")
def _if(n: OnnxNode) -> Any:
    pred = fs.reshape(n.x(0), [])
    bodies = [n.needed("then_branch"), n.needed("else_branch")]
    known = n.known(0)
    if known is not None:
        found = n.run_graph(bodies[0 if bool(np.reshape(known, ())) else 1], [])
        return tuple(fs.identity(v) if isinstance(v, fs.Tensor) else v for v in found)

    def branch(body: GraphProto) -> list[Any]:
        values = _tensors(n.run_graph(body, []), "the values of a branch")
        return [fs.identity(v) for v in values]

    found = fs.cond(pred, lambda: branch(bodies[0]), lambda: branch(bodies[1]), strict=True)
    return tuple(found)


def _tensors(values: Sequence[Any], what: str) -> list[fs.Tensor]:
    """The values, which must be tensors."""
    for v in values:
        if not isinstance(v, fs.Tensor):
            raise UnimplementedError(f"sequences and optionals cannot be {what}")
    return list(values)


def _invariant(start: fs.Tensor, declared: Any) -> Any:
    """The shape that a value has in all iterations: what its start and its declaration share."""
    tensor = declared.type.tensor_type
    if start.ndim is None or not tensor.HasField("shape"):
        return fs.TensorShape(None)
    dims = dims_of(start)
    if len(tensor.shape.dim) != len(dims):
        return fs.TensorShape(None)
    return fs.TensorShape(
        [
            d if w.HasField("dim_value") and w.dim_value == d else None
            for d, w in zip(dims, tensor.shape.dim)
        ]
    )


def _array(size: Any, dtype: Any) -> Any:
    return fs.TensorArray(dtype, size=size, dynamic_size=True, infer_shape=False)


def _output_dtypes(outputs: Sequence[Any], beside: Sequence[fs.Tensor]) -> list[Any]:
    """The element types of a body's outputs; one that is not declared is that of a value beside."""
    found = []
    for o in outputs:
        number = o.type.tensor_type.elem_type
        if not number and not beside:
            raise InvalidArgumentError(f"expected the element type of the body's output {o.name!r}")
        found.append(dtype_of(number) if number else beside[0].dtype)
    return found


def _shaped(value: fs.Tensor, shape: fs.TensorShape) -> fs.Tensor:
    """A value for the next iteration, of which the shape is known."""
    found = fs.identity(value)
    if found.shape.is_compatible_with(shape):
        found.set_shape(shape)
    return found


@converts("Loop")
def _loop(n: OnnxNode) -> Any:
    body = n.needed("body")
    starts = _tensors(n.inputs[2:], "carried through a loop")
    count = len(starts)
    if len(body.input) != count + 2 or len(body.output) < count + 1:
        raise InvalidArgumentError(
            f"expected a body of {count + 2} inputs and at least {count + 1} outputs"
        )
    most = fs.reshape(n.x(0), []) if n.has(0) else None
    going = fs.reshape(n.x(1), []) if n.has(1) else fs.constant(True)
    scanned = _output_dtypes(body.output[count + 1 :], starts)
    size = fs.constant(0, fs.int32)
    arrays = [_array(size, t) for t in scanned]

    def test(i: Any, goes: Any, *rest: Any) -> Any:
        return goes if most is None else fs.logical_and(goes, fs.less(i, most))

    def step(i: Any, goes: Any, *rest: Any) -> Any:
        carried, made = list(rest[:count]), list(rest[count:])
        is_scalar = [_rank_of_declared(v) for v in body.input[:2]]
        given = [fs.reshape(v, [1]) if r == 1 else v for v, r in zip((i, goes), is_scalar)]
        found = n.run_graph(body, [*given, *carried])
        goes, *values = _tensors(found, "carried through a loop")
        at = fs.cast(i, fs.int32)
        made = [a.write(at, v) for a, v in zip(made, values[count:], strict=True)]
        return [
            i + fs.constant(1, fs.int64),
            fs.reshape(goes, []),
            *[_shaped(v, s) for v, s in zip(values[:count], shapes, strict=True)],
            *made,
        ]

    shapes = [_invariant(s, d) for s, d in zip(starts, body.input[2:], strict=True)]
    found = fs.while_loop(
        test,
        step,
        [fs.constant(0, fs.int64), going, *starts, *arrays],
        shape_invariants=[
            fs.TensorShape([]),
            fs.TensorShape([]),
            *shapes,
            *[fs.TensorShape(None)] * len(arrays),
        ],
        return_same_structure=True,
    )
    return (
        *found[2 : count + 2],
        *[_stacked(a, d) for a, d in zip(found[count + 2 :], body.output[count + 1 :])],
    )


def _rank_of_declared(value: Any) -> int | None:
    tensor = value.type.tensor_type
    return len(tensor.shape.dim) if tensor.HasField("shape") else None


def _stacked(array: Any, declared: Any) -> Any:
    found = array.stack()
    rank = _rank_of_declared(declared)
    if rank is not None and found.ndim is None:
        dims = declared.type.tensor_type.shape.dim
        found.set_shape([None, *[d.dim_value if d.HasField("dim_value") else None for d in dims]])
    return found


@converts("Scan")
def _scan(n: OnnxNode) -> Any:
    if n.opset < 9:
        raise UnimplementedError("a scan of batches, of opset 8, is not supported")
    body, count = n.needed("body"), n.needed("num_scan_inputs")
    values = n.tensors()
    states, scanned = values[: len(values) - count], values[len(values) - count :]
    results = len(body.output) - len(states)
    if results < 0 or count < 1:
        raise InvalidArgumentError("expected a body that returns the state, and an input to scan")
    axes = n.attr("scan_input_axes", [0] * count)
    turns = n.attr("scan_input_directions", [0] * count)
    rows = []
    for x, axis, turn in zip(scanned, axes, turns, strict=True):
        axis = normalized([axis], rank_of(x))[0]
        order = [axis, *[i for i in range(rank_of(x)) if i != axis]]
        moved = x if axis == 0 else fs.transpose(x, order)
        rows.append(fs.reverse(moved, [0]) if turn else moved)
    length = fs.shape(rows[0])[0]
    arrays = [_array(length, t) for t in _output_dtypes(body.output[len(states) :], scanned)]
    size = len(states)

    def step(i: Any, *rest: Any) -> Any:
        given = [*rest[:size], *[fs.gather(r, i) for r in rows]]
        found = _tensors(n.run_graph(body, given), "scanned")
        made = [a.write(i, v) for a, v in zip(rest[size:], found[size:], strict=True)]
        return [i + 1, *[_shaped(v, s) for v, s in zip(found[:size], shapes, strict=True)], *made]

    shapes = [s.shape for s in states]  # a scan's states keep their shapes
    found = fs.while_loop(
        lambda i, *rest: fs.less(i, length),
        step,
        [fs.constant(0, fs.int32), *states, *arrays],
        shape_invariants=[fs.TensorShape([]), *shapes, *[fs.TensorShape(None)] * len(arrays)],
        return_same_structure=True,
    )
    made = [_stacked(a, d) for a, d in zip(found[size + 1 :], body.output[size:], strict=True)]
    out_axes = n.attr("scan_output_axes", [0] * results)
    out_turns = n.attr("scan_output_directions", [0] * results)
    for i, (axis, turn) in enumerate(zip(out_axes, out_turns, strict=True)):
        if turn:
            made[i] = fs.reverse(made[i], [0])
        axis = normalized([axis], rank_of(made[i]))[0] if axis else 0
        if axis:
            order = list(range(1, rank_of(made[i])))
            order.insert(axis, 0)
            made[i] = fs.transpose(made[i], order)
    return (*found[1 : size + 1], *made)
