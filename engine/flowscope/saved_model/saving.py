"""Models written for TensorFlow: one graph with its variables' values, and a signature."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.messages.tensorflow_schema import message_class
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.serialization.files import write_bytes
from flowscope.graph.values.expected import expected
from flowscope.ops.core.flow import Placeholder
from flowscope.ops.state.variable_ops import ReadVariableOp, VarHandleOp
from flowscope.runtime.session.session import Session
from flowscope.saved_model import signature_constants, tag_constants
from flowscope.tensorflow.node_writer import ShapeAttribute
from flowscope.tensorflow.writing import graph_message


def simple_save(
    session: Session, export_dir: Any, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]
) -> None:
    """Writes what computes some tensors from others as a saved model, which TensorFlow loads.

        fs.saved_model.simple_save(session, "exported", {"x": x}, {"y": y})

    Variables are constants in it, with the values that they have in the session: it can be run and
    not trained on. Its signature is "serving_default", its tag "serve".

    Args:
        session: The session with the variables.
        export_dir: The folder, which must not exist, or be empty.
        inputs: Placeholders by the names that they have in the signature.
        outputs: What is computed, by name.

    Raises:
        InvalidArgumentError: if an input is no placeholder, one that is needed is missing, or the
            folder has files.
        UnimplementedError: if operations have no counterpart: all of them, by name and type.
        FailedPreconditionError: if protobuf is not installed.
    """
    for sides in (inputs, outputs):
        for name, tensor in sides.items():
            if not isinstance(name, str) or not isinstance(tensor, Tensor):
                raise expected("tensors by names", repr({name: tensor}))
    for tensor in inputs.values():
        if not isinstance(tensor.op.definition, Placeholder):
            raise expected("placeholders as inputs", f'"{tensor.op.name}" ({tensor.op.type})')
    folder = os.fsdecode(export_dir)
    if Path(folder).is_dir() and any(Path(folder).iterdir()):
        raise InvalidArgumentError(f'expected an empty folder to write to, "{folder}" has files')
    ops = _needed(list(outputs.values()), {t.op for t in inputs.values()})
    reads = [o for o in ops if isinstance(o.definition, ReadVariableOp)]
    values = dict(zip(reads, session.run([o.outputs[0] for o in reads]), strict=True))
    model = message_class("SavedModel")(saved_model_schema_version=1)
    meta = model.meta_graphs.add()
    meta.meta_info_def.tags.append(tag_constants.SERVING)
    written = [o for o in ops if not isinstance(o.definition, VarHandleOp)]
    meta.graph_def.CopyFrom(graph_message(session.graph, written, values))
    key = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    found = meta.signature_def[key]
    found.method_name = signature_constants.PREDICT_METHOD_NAME
    for side, tensors in ((found.inputs, inputs), (found.outputs, outputs)):
        for name, tensor in tensors.items():
            _describe(side[name], tensor)
    path = os.path.join(folder, "saved_model.pb")
    write_bytes(path, model.SerializeToString(deterministic=True))


def _needed(outputs: list[Tensor], fed: set[Operation]) -> list[Operation]:
    """The operations from which outputs follow, in the order in which they were made."""
    found = set(fed)
    left = [t.op for t in outputs]
    while left:
        op = left.pop()
        if op in found:
            continue
        if isinstance(op.definition, Placeholder):
            raise expected("all placeholders that the outputs need among the inputs", op.name)
        found.add(op)
        left += [*[t.op for t in op.inputs], *op.control_inputs]
    return sorted(found, key=lambda op: op.order)


def _describe(info: Any, tensor: Tensor) -> None:
    info.name, info.dtype = tensor.name, tensor.dtype.as_datatype_enum
    info.tensor_shape.SetInParent()
    ShapeAttribute(tensor.spec.shape).fill(info.tensor_shape)


__all__ = ["simple_save"]
