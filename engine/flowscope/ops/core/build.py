"""How op functions turn their arguments into tensors and add an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.op import Op
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import DType


def apply(op: Op, *inputs: Tensor, name: str | None = None) -> Tensor:
    """Adds `op` on tensors and returns its only output."""
    graph = inputs[0].op.graph if inputs else get_default_graph()
    return graph.add(op, inputs, name).outputs[0]


def apply_many(op: Op, *inputs: Tensor, name: str | None = None) -> tuple[Tensor, ...]:
    """Adds `op` on tensors and returns all its outputs."""
    graph = inputs[0].op.graph if inputs else get_default_graph()
    return tuple(graph.add(op, inputs, name).outputs)


def apply_none(op: Op, *inputs: Tensor, name: str | None = None) -> Operation:
    """Adds `op`, which has no output, and returns the operation."""
    graph = inputs[0].op.graph if inputs else get_default_graph()
    return graph.add(op, inputs, name)


def unary(op: Op, x: Any, name: str | None = None, dtype: DType | None = None) -> Tensor:
    """Adds `op` on `x`; a constant that is made for it is named "<op's name>/x"."""
    if type(x) is not Tensor:
        x = _argument(x, "x", name or op.type, dtype)
    return x.op.graph.add(op, (x,), name).outputs[0]  # type: ignore[no-any-return]


def on_values(t: Any, function: Callable[[Tensor], Any]) -> Any:
    """Returns `function` of a tensor; of a SparseTensor or IndexedSlices the like of its values.

    Only for functions that leave 0 as it is.
    """
    if hasattr(t, "with_values"):
        return t.with_values(function(t.values))
    if isinstance(t, IndexedSlices):
        return IndexedSlices(function(t.values), t.indices, t.dense_shape)
    return function(convert_to_tensor(t))


def binary(op: Op, x: Any, y: Any, name: str | None = None) -> Tensor:
    """Adds `op` on `x` and `y`; a Python value among them takes the other's dtype.

    A constant that is made is named "<op's name>/x" or "/y", and lies in the other's graph, as in
    TensorFlow.
    """
    if type(x) is not Tensor:
        if isinstance(x, Convertible):
            x = x._as_tensor()
        elif isinstance(y, Tensor | Convertible):
            y = convert_to_tensor(y)
            x = _argument(x, "x", name or op.type, y.spec.dtype, y.op.graph)
        else:
            x = _argument(x, "x", name or op.type, None)
    if type(y) is not Tensor:
        y = _argument(y, "y", name or op.type, x.spec.dtype, x.op.graph)
    return x.op.graph.add(op, (x, y), name).outputs[0]  # type: ignore[no-any-return]


def _argument(
    value: Any, letter: str, op_name: str | bytes, dtype: DType | None, graph: Graph | None = None
) -> Tensor:
    if isinstance(value, Tensor | Convertible):
        return convert_to_tensor(value)
    default = get_default_graph()
    if graph is not None and graph is not default:
        with graph.as_default():
            return _argument(value, letter, op_name, dtype)
    graph = default
    op_name = op_name.decode() if isinstance(op_name, bytes) else op_name
    owner = (
        op_name.rstrip("/")
        if op_name.endswith("/")
        else graph.unique_name(op_name, mark_as_used=False)
    )
    return convert_to_tensor(value, dtype, name=f"{owner}/{letter}/")
