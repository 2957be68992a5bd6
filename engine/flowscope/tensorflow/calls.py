"""Calls, branches and loops of a file's functions become ours.

A handle of a variable is not an argument of ours: bodies use it as they use what is outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowscope.control.branches import cond, switch_case
from flowscope.control.while_loop import while_loop
from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import bool_, resource
from flowscope.graph.values.shapes import as_dims
from flowscope.ops.array.arrays import size
from flowscope.ops.core.casting import cast
from flowscope.ops.math.elementwise import not_equal
from flowscope.ops.strings.elementwise import string_length
from flowscope.tensorflow.op_table import OpUse, maker
from flowscope.tensorflow.values import FunctionRef


@maker("PartitionedCall", "StatefulPartitionedCall")
def _call(use: OpUse) -> Any:
    return _outputs(use.functions.call(use.attribute("f", FunctionRef), use.inputs))


@maker("If", "StatelessIf")
def _if(use: OpUse) -> Any:
    pred, *inputs = use.inputs
    found = cond(
        _truth(pred),
        _branch(use, use.attribute("then_branch", FunctionRef), inputs),
        _branch(use, use.attribute("else_branch", FunctionRef), inputs),
        strict=True,
        name=use.name,
    )
    return _outputs(found)


@maker("Case", "StatelessCase")
def _case(use: OpUse) -> Any:
    index, *inputs = use.inputs
    refs = use.attribute("branches", list)
    if not refs or not all(isinstance(r, FunctionRef) for r in refs):
        raise InvalidArgumentError(f"expected functions as the attribute branches, got {refs}")
    branches = [_branch(use, r, inputs) for r in refs]
    if len(branches) == 1:
        return _outputs(branches[0]())
    return _outputs(switch_case(index, branches[:-1], default=branches[-1], name=use.name))


@maker("While", "StatelessWhile")
def _while(use: OpUse) -> Any:
    test, turn = use.attribute("cond", FunctionRef), use.attribute("body", FunctionRef)
    handles = {i: t for i, t in enumerate(use.inputs) if t.spec.dtype is resource}
    start = [t for i, t in enumerate(use.inputs) if i not in handles]

    def full(variables: Sequence[Tensor]) -> list[Tensor]:
        left = iter(variables)
        return [handles[i] if i in handles else next(left) for i in range(len(use.inputs))]

    def body(*variables: Tensor) -> list[Tensor]:
        found = use.functions.body(turn, full(variables))
        return [t for i, t in enumerate(found) if i not in handles]

    found = while_loop(
        lambda *variables: _truth(use.functions.body(test, full(variables))[0]),
        body,
        start,
        parallel_iterations=use.attribute("parallel_iterations", int, 10),
        name=use.name,
        return_same_structure=True,
    )
    return _outputs(full(found))


def _branch(use: OpUse, ref: FunctionRef, inputs: list[Tensor]) -> Callable[[], list[Tensor]]:
    return lambda: use.functions.body(ref, inputs)


def _outputs(found: Sequence[Any]) -> Any:
    return tuple(found)


def _truth(value: Any) -> Tensor:
    """Returns whether a value counts as true in TensorFlow: a number, a text or a list of them."""
    tensor = convert_to_tensor(value)
    if as_dims(tensor.shape) not in (None, ()):
        return not_equal(size(tensor), 0)
    if tensor.dtype is bool_:
        return tensor
    if tensor.dtype.kind == "s":
        return not_equal(string_length(tensor), 0)
    return not_equal(tensor, cast(0, tensor.dtype))


__all__: list[str] = []
