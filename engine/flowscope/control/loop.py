"""Loops: an operation that runs a function again and again.

A `Loop` hands the body's results to its parameters in the next iteration, as long as its `cond`
says so, at most so many times as its count says, or both. Its inputs and outputs:

    inputs   [count]  variables  lists to take an element of per iteration  what cond captures
             what the body captures
    outputs  variables at the end  the number of iterations  lists of what the body keeps

The body's parameters are the variables, the lists' elements and what it captures; its results are
the next variables. Lists are read from their ends: the first iteration gets the last element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from flowscope.control.blocks import Function
from flowscope.control.lists import element_spec, list_spec
from flowscope.control.specs import outside
from flowscope.control.trampoline import Work
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Op, Spec, frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.providers import load
from flowscope.graph.values.dtypes import bool_, int64
from flowscope.graph.values.shapes import compatible

#: Adds the gradient of a Loop operation; `flowscope.control.loop_gradient` fills it with a function
#: `(operation, cotangents by output) -> cotangents of the inputs`.
loop_gradients: list[Callable[[Operation, dict[int, Tensor]], Work[list[Any]]]] = []


@frozen
class Loop(Op):
    """Runs a body again and again, as long as its condition is true or as often as it is told.

    The head of this module lists its inputs and outputs.

    Raises: DTypeError or InvalidArgumentError if the functions and the inputs do not fit together.
    """

    body: Function
    cond: Function | None
    variables: int
    lists: int
    has_count: bool
    back_prop: bool
    parallel_iterations: int = 10
    swap_memory: bool = False
    recompute: bool = False
    is_stateful: ClassVar[bool] = True

    @property
    def functions(self) -> tuple[Function, ...]:
        """Its blocks."""
        return (self.body,) if self.cond is None else (self.cond, self.body)

    @property
    def is_differentiable(self) -> bool:  # type: ignore[override]
        """Whether cotangents flow through."""
        return self.back_prop

    @property
    def writes_state(self) -> bool:  # type: ignore[override]
        """Whether a block writes a variable."""
        return any(f.writes_state for f in self.functions)

    @property
    def reads_state(self) -> bool:  # type: ignore[override]
        """Whether a block reads a variable."""
        return any(f.reads_state for f in self.functions)

    @property
    def has_effect(self) -> bool:
        """Whether a block does something beyond its results."""
        return any(f.has_effect for f in self.functions)

    @property
    def first(self) -> int:
        """Position of the first variable among the inputs."""
        return int(self.has_count)

    @property
    def carried(self) -> int:
        """How many of the body's parameters change from one iteration to the next."""
        return self.variables + self.lists

    def infer(self, *inputs: Spec) -> Any:
        if self.has_count and (not inputs[0].dtype.is_integer or inputs[0].shape not in (None, ())):
            raise DTypeError(f"expected an integer scalar as count, got {inputs[0]}")
        if self.cond is not None:
            (pred,) = self.cond.outputs
            if pred.spec.dtype is not bool_ or pred.spec.shape not in (None, ()):
                raise DTypeError(f"expected a bool scalar from cond, got {pred.spec}")
        given = inputs[self.first :]
        expected = [t.spec for t in self.body.parameters]
        for i in range(self.variables):
            _check_fits(f"loop variable {i}", expected[i], given[i])
            _check_fits(f"loop variable {i}", expected[i], self.body.outputs[i].spec)
        for i in range(self.variables, self.carried):
            _check_fits(f"list {i}", expected[i], element_spec(given[i]))
        results = [outside(s) for s in expected[: self.variables]]
        kept = [list_spec(t.spec) for t in self.body.outputs[self.variables :]]
        return (*results, Spec(int64, ()), *kept)

    def grad(self, g: Any, y: Any, *inputs: Tensor) -> Any:
        if not loop_gradients:
            load("loop_gradients")
        op = y[0].op if isinstance(y, tuple) else y.op
        cotangents = g if isinstance(g, tuple) else (g,)
        given = {i: convert_to_tensor(c) for i, c in enumerate(cotangents) if c is not None}
        return (yield from loop_gradients[0](op, given))


def _check_fits(what: str, expected: Spec, got: Spec) -> None:
    if got.dtype is not expected.dtype:
        raise DTypeError(f"{what}: expected {expected}, got {got}")
    if not compatible(got.shape, expected.shape):
        raise InvalidArgumentError(f"{what}: expected {expected}, got {got}")


__all__ = ["Loop", "loop_gradients"]
