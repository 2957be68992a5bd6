"""Calls of functions: a block of operations that is written once and used many times.

A `Call` operation hands tensors to a function and returns its results. Plans inline calls, so a
call costs nothing and is simplified with what is around it.

The gradient of a call is a call of the function's gradient function, whose extra inputs are tensors
of the body that it reads; the body's results grow by them, and the call's outputs with them.
"""

from __future__ import annotations

from typing import Any, ClassVar

from flowscope.control.blocks import (
    Function,
    GradientBody,
    Parameter,
    call_types,
    settled,
)
from flowscope.control.slices import parts_of, value_shape
from flowscope.control.specs import outside
from flowscope.control.trampoline import Work
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.op import Op, Spec, frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.shapes import compatible, text

Cotangent = Tensor | IndexedSlices


class CallGradient:
    """A function's gradient function, and how its inputs are found at a call."""

    def __init__(self, forward: Function, wanted: tuple[int, ...]) -> None:
        self._forward, self._wanted = forward, wanted
        self.function = GradientBody(forward, f"{forward.name}_grad")
        #: Inputs of the forward function that have a gradient, in the order of the results; those
        #: with slices have two results, values and indices.
        self.inputs: list[int] = []
        self.sliced: set[int] = set()

    def build(self) -> Work[None]:
        """Builds the function."""
        forward, function, wanted = self._forward, self.function, self._wanted
        graph = forward.graph
        function.block.captured = list  # what stands for a tensor of the body differs by call
        ys = [forward.outputs[i] for i in wanted]
        cotangents = [function.add_parameter(outside(y.spec), "g") for y in ys]
        with graph.enter_block(function.block), graph.name_scope(function.name + "/"):
            parameters = list(forward.parameters)
            found = yield from function.differentiate(ys, parameters, cotangents)
            self.inputs = [i for i, g in enumerate(found) if g is not None]
            self.sliced = {i for i, g in enumerate(found) if isinstance(g, IndexedSlices)}
            function.results = [t for g in found if g is not None for t in _own(function, g)]
        (self.function,) = settled([function])

    def apply(self, call: Operation, cotangents: list[Tensor]) -> list[Cotangent | None]:
        """Adds a call of it for `call` and returns a cotangent per input."""
        forward = call.definition.function  # type: ignore[attr-defined]
        read = [_at_call(forward, call, t) for t in self.function.captures]
        op = call.graph.add(Call(self.function), (*cotangents, *read), self.function.name)
        out: list[Cotangent | None] = [None] * len(call.inputs)
        results = iter(op.outputs)
        for i in self.inputs:
            g = out[i] = next(results)
            if i in self.sliced:
                out[i] = IndexedSlices(g, next(results), value_shape(call.inputs[i]))
        return out


def _own(function: Function, cotangent: Cotangent) -> list[Tensor]:
    if isinstance(cotangent, IndexedSlices):
        return parts_of(function, cotangent)
    return [function.own(cotangent)]


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
        call.add_output(outside(missing.spec))
    return call.outputs[index]


@frozen
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
        return tuple([outside(t.spec) for t in self.function.outputs])

    def grad(self, g: Any, y: Any, *inputs: Tensor) -> Any:
        cotangents = g if isinstance(g, tuple) else (g,)
        call = y[0].op if isinstance(y, tuple) else y.op
        wanted = tuple([i for i, one in enumerate(cotangents) if one is not None])
        given = [convert_to_tensor(one) for one in cotangents if one is not None]
        gradient = yield from self.function.gradient(wanted)
        return gradient.apply(call, given)


call_types.append((Call, CallGradient))


__all__ = ["Call", "CallGradient"]
