"""An ONNX model while it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from flowscope.errors import UnimplementedError
from flowscope.graph.operation import Operation, Tensor


class OnnxWriter:
    """The model while it is written.

    Attributes:
        nodes, initializers: What is there so far.
    """

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.initializers: list[TensorProto] = []
        self._constants = 0

    def name_of(self, tensor: Tensor) -> str:
        """The name of a tensor's value: its operation's, with a number behind the first output."""
        return tensor.op.name if tensor.value_index == 0 else tensor.name

    def inputs(self, op: Operation) -> list[str]:
        """The names of an operation's inputs."""
        return [self.name_of(t) for t in op.inputs]

    def add(
        self,
        op: Operation,
        kind: str,
        inputs: Sequence[str],
        output: str | None = None,
        **settings: Any,
    ) -> str:
        """Adds a node; returns the name of its output.

        Args:
            op: The operation that it is of.
            kind: ONNX's operator.
            inputs: The names of its inputs.
            output: The name of its output; None for a new one.
            settings: Its attributes; None leaves one out.
        """
        name = output or f"{op.name}::{kind}_{len(self.nodes)}"
        kept = {k: v for k, v in settings.items() if v is not None}
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **kept))
        return name

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        """Adds an array; returns its name."""
        self._constants += 1
        return self.array(f"constant::{self._constants}", np.asarray(value, dtype))

    def array(self, name: str, value: Any) -> str:
        """Adds an array of a name; returns that."""
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def refusal(self, op: Operation, why: str) -> UnimplementedError:
        """The error for an operation that cannot be written."""
        return UnimplementedError(f'"{op.name}" ({op.type}) cannot be written as ONNX: {why}')


__all__ = ["OnnxWriter"]
