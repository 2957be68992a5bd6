"""Eager graphs: operations that run as they are added. `py_function` builds in one for each call.

The function's arguments are tensors of a new graph with values. What it adds is computed at once,
so results have values too: `numpy()`, `bool()`, loops over them. The operations stay in the graph,
so the function can ask for gradients, and so can the gradient of a call: it calls the function
again and differentiates its graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowscope import nest
from flowscope.autodiff.aggregation import UnconnectedGradients
from flowscope.autodiff.gradients import gradients
from flowscope.errors import InvalidArgumentError, UnimplementedError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.graph import Graph
from flowscope.graph.op import Op, Spec, has_kernel, kernel_of
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import DType
from flowscope.ops.array.arrays import zeros_like
from flowscope.ops.core.flow import Placeholder
from flowscope.ops.host.py_functions import eager_calls
from flowscope.runtime.session.session import Session


class EagerTensor(Tensor):
    """A tensor with a value."""

    __slots__ = ()

    def numpy(self) -> Any:
        """Returns the value: an array, or a NumPy scalar or bytes for rank 0."""
        graph = self.graph
        assert isinstance(graph, EagerGraph)
        return graph.value(self)

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Refused: the value is there."""
        raise UnimplementedError("a tensor of py_function has a value already: use numpy()")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.numpy(), dtype)

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    __index__ = __int__

    def __len__(self) -> int:
        return len(self.numpy())

    def __repr__(self) -> str:
        return f"<fs.EagerTensor {self.spec} {self.numpy()!r}>"

    __str__ = __repr__


class EagerGraph(Graph):
    """A graph whose operations run as they are added, those in bodies with what runs the body."""

    def __init__(self) -> None:
        super().__init__()
        self.run = None  # no notebook cell builds it: it is gone when the call ends
        #: By operation and index: what an assignment returns is another object.
        self._values: dict[tuple[Operation, int], Any] = {}
        self._session: Session | None = None

    def given(self, value: Any, spec: Spec) -> Tensor:
        """Returns a tensor that has this value."""
        op = super().add(Placeholder(spec.dtype, spec.shape), (), None)
        return self._with_values(op, [value])[0]

    def value(self, tensor: Tensor) -> Any:
        """Returns a tensor's value; one that a gradient has added is computed now."""
        key = tensor.op, tensor.value_index
        if key not in self._values:
            self._values[key] = self._ran(tensor, (tensor.op,))
        return self._values[key]

    def close(self) -> None:
        """Ends the session in which operations with effects run."""
        if self._session is not None:
            self._session.close()

    def add(
        self, definition: Op, inputs: tuple[Tensor, ...] = (), name: str | None = None
    ) -> Operation:
        """Adds one operation and computes its values at once."""
        __tracebackhide__ = True
        op = super().add(definition, inputs, name)
        if op.block is self.root and not definition.is_handle:
            op.control_inputs = ()  # they have run, and would run again
            self._with_values(op, self._computed(op))
        return op

    def _with_values(self, op: Operation, values: Sequence[Any]) -> list[Tensor]:
        known = [_known(t.spec, v) for t, v in zip(op.outputs, values, strict=True)]
        op.outputs = [EagerTensor(op, i, s) for i, s in enumerate(known)]
        self._values.update({(op, i): v for i, v in enumerate(values)})
        return op.outputs

    def _computed(self, op: Operation) -> Sequence[Any]:
        definition = op.definition
        is_plain = definition.is_pure and not getattr(definition, "functions", ())
        if is_plain and has_kernel(definition, "CPU") and len(op.outputs) == 1:
            specs = [t.spec for t in op.inputs], [t.spec for t in op.outputs]
            given = [self.value(t) for t in op.inputs[: definition.kernel_inputs]]
            try:
                with np.errstate(all="ignore"):
                    return [kernel_of(definition, "CPU", *specs)(np, *given)[()]]
            except Exception:  # the session says what is wrong, and where
                pass
        return list(self._ran(op.outputs or [op], (op,)))

    def _ran(self, fetches: Any, ops: Sequence[Operation]) -> Any:
        """Runs fetches on the values that are known."""
        if self._session is None:
            self._session = Session(graph=self)
        return self._session.run(fetches, self._needed(ops))

    def _needed(self, ops: Sequence[Operation]) -> dict[Tensor, Any]:
        """Returns the known values that operations follow from."""
        feeds: dict[Tensor, Any] = {}
        stack, seen = list(ops), set(ops)
        while stack:
            for t in stack.pop().inputs:
                if (t.op, t.value_index) in self._values:
                    feeds[t] = self._values[t.op, t.value_index]
                elif t.op not in seen:
                    seen.add(t.op)
                    stack.append(t.op)
        return feeds


def _known(spec: Spec, value: Any) -> Spec:
    return Spec(spec.dtype, np.shape(value), spec.constant, spec.dims, spec.variable)


def call(function: Callable[..., Any], values: Sequence[Any], dtypes: Sequence[DType]) -> Any:
    """Evaluates a function of tensors; gives arrays.

    Args:
        function: Takes tensors with values; returns tensors, arrays and numbers.
        values: What its arguments are.
        dtypes: Of which dtypes.
    """
    graph = EagerGraph()
    try:
        with graph.as_default():
            inputs = [graph.given(v, Spec(d, np.shape(v))) for v, d in zip(values, dtypes)]
            return nest.map_structure(_array, function(*inputs))
    finally:
        graph.close()


def differentiate(ys: Sequence[Any], xs: Sequence[Tensor], grad_ys: Sequence[Tensor]) -> list[Any]:
    """Returns the gradients of tensors of an eager graph, zeros where there is no influence."""
    pairs = [(y, g) for y, g in zip(ys, grad_ys, strict=True) if isinstance(y, EagerTensor)]
    if not pairs:
        return [zeros_like(x) for x in xs]
    found = gradients(
        [y for y, _ in pairs],
        xs,
        [g for _, g in pairs],
        unconnected_gradients=UnconnectedGradients.ZERO,
    )
    return [convert_to_tensor(g) for g in found]


def _array(value: Any) -> Any:
    if hasattr(value, "_as_graph_element"):  # a variable, or what an assignment returns
        value = convert_to_tensor(value)
    if not isinstance(value, Tensor):
        return value
    if isinstance(value.graph, EagerGraph):
        return value.graph.value(value)
    raise InvalidArgumentError(
        f'"{value.name}" belongs to a graph and has no value in py_function: '
        "give what the function uses in `inp`"
    )


eager_calls.append((call, differentiate))

__all__ = ["EagerGraph", "EagerTensor", "call", "differentiate"]
