"""Graphs of ours as ONNX models: operations from the inputs to the outputs, each by its writer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import ModelProto, checker, helper

from flowscope.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from flowscope.graph.constant import Const, get_static_value
from flowscope.graph.default import get_default_session
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.expected import expected
from flowscope.onnx.onnx_writer import OnnxWriter
from flowscope.onnx.protos import number_of
from flowscope.onnx.writers import writers
from flowscope.ops.core.flow import Placeholder
from flowscope.ops.state.variable_ops import ReadVariableOp, VarHandleOp

#: The version of the operators that are written: old enough for what is in use.
OPSET = 21


def exported(outputs: Any, inputs: Any, file: Any, session: Any) -> ModelProto:
    """Writes the part of a graph between tensors as a model; see `fs.onnx.export`."""
    wanted, given = _named(outputs), _named(inputs)
    if not wanted:
        raise expected("an output at least", "none")
    ops = _between(list(wanted.values()), list(given.values()))
    unknown = [o for o in ops if o.type not in writers and not isinstance(o.definition, _VALUES)]
    if unknown:
        listed = ", ".join(f'"{o.name}" ({o.type})' for o in unknown[:20])
        raise UnimplementedError(f"operations without a counterpart in ONNX: {listed}")
    made = OnnxWriter()
    values = _variables([o for o in ops if isinstance(o.definition, ReadVariableOp)], session)
    for name, tensor in given.items():
        if name != made.name_of(tensor):
            made.nodes.append(helper.make_node("Identity", [name], [made.name_of(tensor)]))
    for op in ops:
        if isinstance(op.definition, Const):
            made.array(op.name, get_static_value(op.outputs[0]))
        elif op in values:
            made.array(op.name, values[op])
        elif not isinstance(op.definition, VarHandleOp):
            writers[op.type](made, op)
    for name, tensor in wanted.items():
        if name != made.name_of(tensor):
            made.nodes.append(helper.make_node("Identity", [made.name_of(tensor)], [name]))
    taken, told = ([_info(n, t) for n, t in side.items()] for side in (given, wanted))
    graph = helper.make_graph(made.nodes, "flowscope", taken, told, made.initializers)
    opsets = [helper.make_opsetid("", OPSET)]
    model: ModelProto = helper.make_model(graph, opset_imports=opsets, producer_name="flowscope")
    model.ir_version = helper.find_min_ir_version_for(opsets)
    try:
        checker.check_model(model, full_check=True)
    except (checker.ValidationError, onnx.shape_inference.InferenceError) as e:
        raise InvalidArgumentError(f"ONNX has no such model: {e}") from e
    if file is not None:
        Path(file).write_bytes(model.SerializeToString())
    return model


#: Types whose outputs are values that the model holds.
_VALUES = (Const, ReadVariableOp, VarHandleOp)


def _named(tensors: Any) -> dict[str, Tensor]:
    if isinstance(tensors, Tensor):
        tensors = [tensors]
    if not isinstance(tensors, Mapping):
        tensors = {t.op.name if t.value_index == 0 else t.name: t for t in _all(tensors)}
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise expected("tensors, or a dict of tensors by names", repr({name: tensor}))
    return dict(tensors)


def _all(tensors: Iterable[Any]) -> list[Tensor]:
    found = list(tensors)
    for tensor in found:
        if not isinstance(tensor, Tensor):
            raise expected("tensors, or a dict of tensors by names", repr(tensor))
    return found


def _between(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[Operation]:
    """The operations from which outputs follow, each after those that it needs.

    Raises:
        InvalidArgumentError: if a placeholder among them is no input.
    """
    fed, order = set(inputs), dict[Operation, None]()
    left = [(t.op, False) for t in reversed(outputs) if t not in fed]
    while left:
        op, is_ready = left.pop()
        if op in order:
            continue
        if is_ready:
            order[op] = None
            continue
        if isinstance(op.definition, Placeholder):
            raise expected("all placeholders that the outputs need among the inputs", op.name)
        left.append((op, True))
        left += [(t.op, False) for t in reversed(op.inputs) if t not in fed]
    return list(order)


def _variables(reads: Sequence[Operation], session: Any) -> dict[Operation, Any]:
    if not reads:
        return {}
    session = session or get_default_session()
    if session is None:
        names = ", ".join(op.inputs[0].op.name for op in reads[:5])
        raise FailedPreconditionError(f"the values of {names} need a session: pass it as `session`")
    return dict(zip(reads, session.run([op.outputs[0] for op in reads]), strict=True))


def _info(name: str, tensor: Tensor) -> Any:
    shape = tensor.spec.shape
    return helper.make_tensor_value_info(name, number_of(tensor.dtype), shape)


__all__ = ["OPSET", "exported"]
