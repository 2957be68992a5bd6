"""TensorFlow's nodes while a graph is written in its form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowscope.errors import UnimplementedError
from flowscope.graph.messages.tensor_arrays import array_bytes
from flowscope.graph.messages.tensorflow_schema import message_class
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.shapes import Dims

#: Of the graphs that are written: old enough for every TensorFlow 2 to read.
PRODUCER = 1395


class NodeWriter:
    """A GraphDef message that is being filled.

    Attributes:
        message: The message.
    """

    def __init__(self) -> None:
        self.message = message_class("GraphDef")()
        self.message.versions.producer = PRODUCER
        self._names: set[str] = set()
        #: What stands for outputs that another node has under another number or name.
        self._outputs: dict[Tensor, str] = {}

    def reserve(self, names: Sequence[str]) -> None:
        """Notes names that helper nodes do not get."""
        self._names.update(names)

    def input_of(self, tensor: Tensor) -> str:
        """What a node's input says of a tensor: "name", or "name:1"."""
        if tensor in self._outputs:
            return self._outputs[tensor]
        return tensor.op.name if tensor.value_index == 0 else tensor.name

    def stands_for(self, tensor: Tensor, text: str) -> None:
        """Notes what inputs say of a tensor."""
        self._outputs[tensor] = text

    def add(
        self, op: Operation, kind: str, inputs: Sequence[str] | None = None, **attributes: Any
    ) -> str:
        """Adds the node that has an operation's name; returns that.

        Args:
            op: The operation.
            kind: TensorFlow's op type.
            inputs: What it takes; the operation's inputs if it is None.
            attributes: Its attributes: numbers, texts, dtypes, lists of these, arrays, and shapes
                in a `ShapeAttribute`.
        """
        taken = [self.input_of(t) for t in op.inputs] if inputs is None else list(inputs)
        taken += [f"^{c.name}" for c in op.control_inputs]
        return self._node(op, op.name, kind, taken, attributes)

    def helper(
        self, op: Operation, what: str, kind: str, inputs: Sequence[str], **more: Any
    ) -> str:
        """Adds a node beside an operation's; returns its name."""
        name, count = f"{op.name}/{what}", 1
        while name in self._names:
            name, count = f"{op.name}/{what}_{count}", count + 1
        self._names.add(name)
        return self._node(op, name, kind, list(inputs), more)

    def constant(self, op: Operation, what: str, value: Any, dtype: Any = np.int32) -> str:
        """Adds an array beside an operation; returns its name."""
        array = np.asarray(value, dtype)
        return self.helper(op, what, "Const", [], dtype=as_dtype(array.dtype), value=array)

    def _node(self, op: Operation, name: str, kind: str, inputs: list[str], more: Any) -> str:
        node = self.message.node.add(name=name, op=kind, input=inputs, device=op.device)
        for key, value in more.items():
            if value is not None:
                _set(node.attr[key], value)
        return name

    def refusal(self, op: Operation, why: str) -> UnimplementedError:
        """The error for an operation that cannot be written."""
        return UnimplementedError(
            f'"{op.name}" ({op.type}) cannot be written for TensorFlow: {why}'
        )


class ShapeAttribute:
    """A shape as an attribute.

    Args:
        dims: The sizes, None for an unknown one; None as a whole for an unknown rank.
    """

    def __init__(self, dims: Dims) -> None:
        self.dims = dims

    def fill(self, message: Any) -> None:
        """Writes it to a TensorShapeProto."""
        if self.dims is None:
            message.unknown_rank = True
        for size in self.dims or ():
            message.dim.add(size=-1 if size is None else size)


def _set(message: Any, value: Any) -> None:
    if isinstance(value, ShapeAttribute):
        message.shape.SetInParent()
        value.fill(message.shape)
    elif isinstance(value, DType):
        message.type = value.as_datatype_enum
    elif isinstance(value, bool):
        message.b = value
    elif isinstance(value, int):
        message.i = value
    elif isinstance(value, float):
        message.f = value
    elif isinstance(value, str):
        message.s = value.encode()
    elif isinstance(value, tuple | list):
        message.list.SetInParent()
        message.list.i.extend([int(v) for v in value])
    else:
        message.tensor.ParseFromString(array_bytes(value, _dtype(value)))


def _dtype(value: Any) -> DType:
    array = np.asarray(value)
    return as_dtype("string" if array.dtype == object else array.dtype)


__all__ = ["NodeWriter", "ShapeAttribute"]
