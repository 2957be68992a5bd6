"""`recompute_grad`: a function whose inner values are computed again for its gradient, not kept.

The backward pass copies the operations that the function made and differentiates the copies. The
copies draw the same random numbers (their ops carry the same seeds) and share the reads of
variables, so they have the very values of the originals. They wait for the results' cotangents.

Source: Chen et al. 2016, "Training deep nets with sublinear memory cost".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from flowscope import nest
from flowscope.autodiff.custom_gradient import HubGradient, custom_gradient
from flowscope.autodiff.gradients import gradients
from flowscope.autodiff.registry import held
from flowscope.autodiff.sweep import ancestors
from flowscope.graph.constant import Const, convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.ops.flow import identity

__all__ = ["recompute_grad"]


def recompute_grad(f: Callable[..., Any]) -> Any:
    """Returns `f` with a gradient that computes inner values again instead of keeping them.

    Args:
        f: Function of tensors; it may use variables and random ops. Tensors from outside that are
            no arguments get no gradient.

    Results and gradients are those of `f`, to any order; a step takes more time and less memory.
    """

    @custom_gradient
    @functools.wraps(f)
    def recomputed(*args: Any, **kwargs: Any) -> Any:
        graph = get_default_graph()
        before = len(graph)
        results = f(*args, **kwargs)
        made = frozenset(graph.operations_since(before))
        ys = [convert_to_tensor(y) for y in nest.flatten(results)]
        xs = nest.flatten(list(args))
        return results, _Recompute(made, xs, ys)

    return recomputed


class _Recompute:
    """The gradient function: a copy of operations, and the gradient of the copy."""

    def __init__(
        self, made: frozenset[Operation], xs: Sequence[Tensor], ys: Sequence[Tensor]
    ) -> None:
        self._made = made
        self._xs = list(xs)
        self._ys = list(ys)

    def __call__(self, *dys: Tensor, variables: Sequence[Any] = ()) -> Any:
        graph = self._ys[0].graph
        with graph.name_scope("recompute"):
            with graph.control_dependencies(dys):
                same = {x: identity(x) for x in self._xs}
                _copy(self._needed(), same)
            ys = [same.get(y, y) for y in self._ys]
            xs = [same[x] for x in self._xs]
            found = gradients(ys, [*xs, *variables], list(dys))
        mine, theirs = found[: len(xs)], found[len(xs) :]
        return (mine, theirs) if variables else mine

    def copied(self, same: dict[Tensor, Tensor]) -> _Recompute:
        """Returns the function for a copy: `same` maps tensors to their copies."""
        made = frozenset(same[op.outputs[0]].op if op.outputs and op.outputs[0] in same else op
                         for op in self._made)  # fmt: skip
        xs, ys = ([same.get(t, t) for t in ts] for ts in (self._xs, self._ys))
        return _Recompute(made, xs, ys)

    def _needed(self) -> list[Operation]:
        """Returns what is copied, in order: all that the results need but constants and state."""
        needed = ancestors(self._ys, lambda op: op in self._made)
        return sorted([op for op in needed if _is_copied(op)], key=lambda op: op.id)


def _is_copied(op: Operation) -> bool:
    return not (op.definition.is_stateful or isinstance(op.definition, Const))


def _copy(ops: Sequence[Operation], same: dict[Tensor, Tensor]) -> None:
    """Adds copies of operations, in order, and notes their outputs in `same`."""
    for op in ops:
        graph = op.graph
        inputs = tuple([same.get(t, t) for t in op.inputs])
        with graph.gradient_of(op), graph.device(None), graph.device(op.device):
            copy = graph.add(op.definition, inputs, op.type)
        copy.gradient = op.gradient
        own = held(graph).get(op)
        if own is not None:
            held(graph)[copy] = _copied(own, same)
        same.update(zip(op.outputs, copy.outputs, strict=True))


def _copied(own: Any, same: dict[Tensor, Tensor]) -> Any:
    if isinstance(own, HubGradient) and isinstance(own.function, _Recompute):
        return own.with_function(own.function.copied(same))
    return own
