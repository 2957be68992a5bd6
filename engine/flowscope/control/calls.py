"""Calls of functions: a block of operations that is written once and used many times (SPEC W46).

A `Function` owns a block with `Parameter` operations for its inputs and some of its tensors as
results. A `Call` operation hands it tensors and returns results. The block is closed: a tensor of
another block that is used inside becomes one more parameter, and whoever calls the function passes
it. Plans inline calls, so a call costs nothing and is simplified with what is around it.

The gradient of a call is a call of the function's gradient function, whose extra inputs are tensors
of the body that it reads; the body's results grow by them, and the call's outputs with them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.graph import Block, Graph
from flowscope.graph.op import Op, Spec
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.shapes import compatible, text

#: Computes gradients inside a function's block; the differentiator fills it with a function
#: `(ys, xs, grad_ys) -> gradients`.
differentiator: list[Callable[[list[Tensor], list[Tensor], list[Tensor]], list[Any]]] = []


@dataclass(frozen=True)
class Parameter(Op):
    """An input of a function: its value comes from the call."""

    spec: Spec = field(compare=False)
    index: int
    is_stateful: ClassVar[bool] = True

    def infer(self) -> Spec:
        return _outside(self.spec)

    def grad(self, g: Tensor, y: Tensor) -> Any:
        return ()


def _outside(spec: Spec) -> Spec:
    """Returns what holds for a value of this Spec in every call: not its value."""
    return Spec(spec.dtype, spec.shape, variable=spec.variable)


class Function:
    """A block of operations with parameters and results, callable any number of times.

    Attributes:
        name: Unique in the graph.
        graph: The graph.
        block: The operations.
        parameters: Tensors that stand for the inputs.
        captures: Tensors outside that the last parameters stand for.
        results: Tensors of the block that calls return.
        kept: Further tensors of the block that gradients read: outputs of calls behind the results.
    """

    def __init__(self, graph: Graph, name: str) -> None:
        self.name = name
        self.graph = graph
        self.block = Block(graph.root, capture=self.inside, name=name)
        self.parameters: list[Tensor] = []
        self.captures: list[Tensor] = []
        self.results: list[Tensor] = []
        self.kept: list[Tensor] = []
        self._inside: dict[Tensor, Tensor] = {}
        self._gradients: dict[Any, _Gradient] = {}
        graph.functions[name] = self

    def add_parameter(self, spec: Spec, name: str) -> Tensor:
        """Adds a parameter and returns the tensor that stands for it in the block."""
        with self.graph.enter_block(self.block), self.graph.name_scope(self.name + "/"):
            op = Parameter(spec, len(self.parameters))
            self.parameters.append(self.graph.add(op, (), name).outputs[0])
        return self.parameters[-1]

    def inside(self, tensor: Tensor) -> Tensor:
        """Returns what stands in the block for a tensor of another: a parameter, made at need."""
        found = self._inside.get(tensor)
        if found is None:
            name = tensor.op.name.rpartition("/")[2]
            found = self._inside[tensor] = self.add_parameter(tensor.spec, name)
            self.captures.append(tensor)
        return found

    @property
    def inputs(self) -> list[Tensor]:
        """The parameters that a caller gives: without the captured ones."""
        return self.parameters[: len(self.parameters) - len(self.captures)]

    @property
    def outputs(self) -> list[Tensor]:
        """Tensors of the block that a call has outputs for."""
        return [*self.results, *self.kept]

    @property
    def writes_state(self) -> bool:
        """Whether an operation of the body writes a variable."""
        return any(op.definition.writes_state for op in self.block.operations)

    def __call__(self, *args: Tensor, name: str | None = None) -> tuple[Tensor, ...]:
        """Adds a call to the graph and returns the results.

        Raises:
            InvalidArgumentError: if the number, dtypes or shapes of the arguments do not fit.
        """
        if len(args) != len(self.inputs):
            raise InvalidArgumentError(
                f'"{self.name}" takes {len(self.inputs)} tensors, got {len(args)}'
            )
        op = self.graph.add(Call(self), (*args, *self.captures), name or self.name)
        return op.outputs[: len(self.results)]

    def gradient(self, wanted: tuple[int, ...]) -> _Gradient:
        """Returns the function that turns cotangents of the results `wanted` into the inputs'."""
        found = self._gradients.get(wanted)
        if found is None:
            found = self._gradients[wanted] = _Gradient(self, wanted)
        return found

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        takes = ", ".join(str(t.spec) for t in self.inputs)
        gives = ", ".join(str(t.spec) for t in self.results)
        size = len(self.block.operations)
        return f"<fs.Function '{self.name}' ({takes}) -> ({gives}), {size} operations>"


def free_name(graph: Graph, name: str) -> str:
    """Returns a name for a function, from the top of the graph: it belongs to no scope."""
    with graph.name_scope(None):
        return graph.unique_name(name)


class _Gradient:
    """A function's gradient function, and how its inputs are found at a call."""

    def __init__(self, forward: Function, wanted: tuple[int, ...]) -> None:
        graph = forward.graph
        name = free_name(graph, f"{forward.name}_grad")
        self.function = Function(graph, name)
        ys = [forward.outputs[i] for i in wanted]
        cotangents = [self.function.add_parameter(y.spec, "g") for y in ys]
        xs = forward.parameters
        with graph.enter_block(self.function.block), graph.name_scope(name + "/"):
            found = differentiator[0](ys, list(xs), cotangents)
            kept = [(i, g) for i, g in enumerate(found) if g is not None]
            #: Inputs of the forward function that have a gradient, in the order of the results.
            self.inputs = [i for i, _ in kept]
            self.function.results = [self._inner(g) for _, g in kept]

    def _inner(self, cotangent: Any) -> Tensor:
        tensor = convert_to_tensor(cotangent)
        return tensor if tensor.op.block is self.function.block else self.function.inside(tensor)

    def apply(self, call: Operation, cotangents: list[Tensor]) -> list[Tensor | None]:
        """Adds a call of it for `call` and returns a cotangent per input."""
        forward = call.definition.function  # type: ignore[attr-defined]
        read = [_at_call(forward, call, t) for t in self.function.captures]
        op = call.graph.add(Call(self.function), (*cotangents, *read), self.function.name)
        out: list[Tensor | None] = [None] * len(call.inputs)
        for i, g in zip(self.inputs, op.outputs, strict=False):
            out[i] = g
        return out


def _at_call(function: Function, call: Operation, tensor: Tensor) -> Tensor:
    """Returns the tensor outside that has the value of a tensor of the body in this call."""
    if tensor.op.block is not function.block:
        return tensor
    if isinstance(tensor.op.definition, Parameter):
        return call.inputs[tensor.op.definition.index]
    if tensor not in function.outputs:
        function.kept.append(tensor)
    index = function.outputs.index(tensor)
    for missing in function.outputs[len(call.outputs) : index + 1]:
        call.add_output(_outside(missing.spec))
    return call.outputs[index]


@dataclass(frozen=True)
class Call(Op):
    """A call of a function: its results for these inputs."""

    function: Function
    is_stateful: ClassVar[bool] = True

    @property
    def writes_state(self) -> bool:  # type: ignore[override]
        """Whether the function writes a variable."""
        return self.function.writes_state

    def infer(self, *inputs: Spec) -> Any:
        for i, (given, t) in enumerate(zip(inputs, self.function.parameters, strict=True)):
            if given.dtype is not t.spec.dtype:
                raise DTypeError(
                    f'expected {t.spec.dtype} as argument {i} of "{self.function.name}", '
                    f"got {given.dtype}"
                )
            if not compatible(given.shape, t.spec.shape):
                raise InvalidArgumentError(
                    f"expected shape {text(t.spec.shape)} as argument {i} of "
                    f'"{self.function.name}", got {text(given.shape)}'
                )
        return tuple([_outside(t.spec) for t in self.function.outputs])

    def grad(self, g: Any, y: Any, *inputs: Tensor) -> Any:
        cotangents = g if isinstance(g, tuple) else (g,)
        call = y[0].op if isinstance(y, tuple) else y.op
        wanted = tuple([i for i, one in enumerate(cotangents) if one is not None])
        given = [convert_to_tensor(one) for one in cotangents if one is not None]
        return self.function.gradient(wanted).apply(call, given)


__all__ = ["Call", "Function", "Parameter", "differentiator"]
