"""Graphs of ours as TensorFlow's GraphDef messages: `serializers["write_tensorflow"]`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from flowscope.errors import UnimplementedError
from flowscope.graph.graph import Graph
from flowscope.graph.messages.tensorflow_schema import text_of
from flowscope.graph.operation import Operation
from flowscope.graph.providers import serializers
from flowscope.tensorflow.node_writer import NodeWriter
from flowscope.tensorflow.op_writers import writers

#: Operations without a counterpart that an error names.
_NAMED = 20


def graph_message(
    graph: Graph, operations: Iterable[Operation] | None = None,
    values: Mapping[Operation, Any] | None = None,
) -> Any:  # fmt: skip
    """Returns operations as a GraphDef message.

    Args:
        graph: Their graph.
        operations: Those that are written; all if it is None.
        values: By operation an array that is written in its place, as a constant.

    Raises:
        UnimplementedError: if operations have no counterpart: all of them, by name and type.
        FailedPreconditionError: if protobuf is not installed.
    """
    values = {} if values is None else values
    ops = graph.get_operations() if operations is None else list(operations)
    unknown = [
        o for o in ops
        if o not in values and (o.type not in writers or o.block is not graph.root)
    ]  # fmt: skip
    if unknown:
        told = ", ".join(f'"{o.name}" ({o.type})' for o in unknown[:_NAMED])
        more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
        raise UnimplementedError(f"operations that cannot be written for TensorFlow: {told}{more}")
    writer = NodeWriter()
    writer.reserve([o.name for o in ops])
    for op in ops:
        if op in values:
            dtype = op.outputs[0].dtype
            writer.add(op, "Const", [], dtype=dtype, value=np.asarray(values[op]))
        else:
            writers[op.type](writer, op)
    return writer.message


def write_tensorflow(graph: Graph, as_text: bool) -> bytes:
    """Returns a graph in TensorFlow's text form or its binary one, always the same bytes."""
    message = graph_message(graph)
    if as_text:
        return text_of(message).encode()
    found: bytes = message.SerializeToString(deterministic=True)
    return found


serializers.update(write_tensorflow=write_tensorflow)

__all__ = ["graph_message", "write_tensorflow"]
