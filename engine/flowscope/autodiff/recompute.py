"""`recompute_grad`: a function whose inner values are computed again for its gradient, not kept.

The backward pass copies the operations that the function made and differentiates the copies. The
copies draw the same random numbers (their ops carry the same seeds; in bodies, where iterations
would count too, these are kept) and share the reads of variables, so they have the very values of
the originals. They wait for the results' cotangents.

Source: Chen et al. 2016, "Training deep nets with sublinear memory cost".
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from flowscope import nest
from flowscope.autodiff.aggregation import Cotangent, summed
from flowscope.autodiff.custom_gradient import (
    GradientHub,
    HubGradient,
    WithOwnGradient,
    handles_behind,
    hold,
)
from flowscope.autodiff.gradients import gradients
from flowscope.autodiff.sweep import ancestors
from flowscope.control.blocks import Parameter
from flowscope.control.calls import Call
from flowscope.graph.constant import Const, convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.op import Op
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.order import in_order
from flowscope.ops.core.flow import identity

__all__ = ["recompute_grad"]


def recompute_grad(f: Callable[..., Any]) -> Any:
    """Returns `f` with a gradient that computes inner values again instead of keeping them.

    Args:
        f: Function of tensors; it may use variables and random ops. Tensors from outside that are
            no arguments get no gradient.

    Results and gradients are those of `f`, to any order; a step takes more time and less memory.
    """

    @functools.wraps(f)
    def recomputed(*args: Any, **kwargs: Any) -> Any:
        graph = get_default_graph()
        before = len(graph)
        results = f(*args, **kwargs)
        made = frozenset(graph.operations_since(before))
        ys = tuple([convert_to_tensor(y) for y in nest.flatten(results)])
        xs = tuple(nest.flatten(list(args)))
        return results, _Recompute(made, xs, ys)

    return WithOwnGradient(recomputed, f, recompute_grad)


@dataclasses.dataclass(frozen=True, eq=False)
class _Recompute:
    """The gradient function: a copy of operations, and the gradient of the copy."""

    _made: frozenset[Operation]
    _xs: tuple[Tensor, ...]
    _ys: tuple[Tensor, ...]

    def __call__(self, *dys: Tensor, variables: Sequence[Any] = ()) -> Any:
        graph = self._ys[0].graph
        with graph.name_scope("recompute"):
            with graph.control_dependencies([g for g in dys if g is not None]):
                same = {x: identity(x) for x in self._xs}
                kept = self._copy(same)
            found = self._cotangents(same, kept, list(dys))
        mine, theirs = found[: len(self._xs)], found[len(self._xs) :]
        return (mine, theirs) if variables else mine

    def _cotangents(
        self, same: dict[Tensor, Tensor], kept: Sequence[Tensor], dys: list[Any]
    ) -> list[Cotangent | None]:
        """Returns those of the arguments and variables: through the copies, then what was kept."""
        ends = [*self._xs, *handles_behind(self._ys, self._xs)]
        ys = [same.get(y, y) for y in self._ys]
        found = gradients(ys, [same[t] for t in (*self._xs, *kept)], dys)
        parts = [[g] for g in found[: len(self._xs)]] + [[] for _ in ends[len(self._xs) :]]
        sent = [(t, g) for t, g in zip(kept, found[len(self._xs) :], strict=True) if g is not None]
        rest = gradients([t for t, _ in sent], ends, [g for _, g in sent])
        for part, g in zip(parts, rest, strict=True):
            part.append(g)
        return [_sum(part) for part in parts]

    def _copy(self, same: dict[Tensor, Tensor]) -> list[Tensor]:
        """Adds the copies, and stands-in for tensors that are kept; returns the kept ones."""
        needed = ancestors(self._ys, lambda op: op in self._made)
        ops = in_order(op for op in needed if _is_copied(op))
        made = {t for op in ops for t in op.outputs}
        read = dict.fromkeys([*(t for op in ops for t in op.inputs), *self._ys])
        kept = [t for t in read if t not in made and t not in same and _is_smooth(t)]
        same.update((t, identity(t)) for t in kept)
        for op in ops:
            _copy(op, same)
        return kept

    def copied(self, same: dict[Tensor, Tensor]) -> _Recompute:
        """Returns the function for a copy: `same` maps tensors to their copies."""
        made = frozenset(same[op.outputs[0]].op if op.outputs and op.outputs[0] in same else op
                         for op in self._made)  # fmt: skip
        xs, ys = (tuple([same.get(t, t) for t in ts]) for ts in (self._xs, self._ys))
        return _Recompute(made, xs, ys)


def _is_copied(op: Operation) -> bool:
    """Whether an operation is run again: it must give the same, and there must be work in it."""
    if isinstance(op.definition, Call):
        return all(_is_simple(o) for o in op.definition.function.block.operations)
    if op.definition.is_random:
        return not _in_loop(op)  # a backward loop counts its iterations from the other end
    return bool(op.inputs) and op.definition.is_pure


def _in_loop(op: Operation) -> bool:
    """Whether an operation may run in several iterations: in any body, for all that is known."""
    return op.block.parent is not None


def _is_simple(op: Operation) -> bool:
    """Whether an operation of a body gives the same in each call."""
    if isinstance(op.definition, Call):
        return _is_copied(op)
    return op.definition.is_pure or isinstance(op.definition, Parameter)


def _is_smooth(t: Tensor) -> bool:
    return t.spec.dtype.is_differentiable and not isinstance(t.op.definition, Const)


def _sum(parts: Sequence[Cotangent | None]) -> Cotangent | None:
    known = [g for g in parts if g is not None]
    return summed(known) if known else None


def _copy(op: Operation, same: dict[Tensor, Tensor]) -> None:
    """Adds a copy of an operation and notes its outputs in `same`."""
    graph = op.graph
    inputs = tuple([same.get(t, t) for t in op.inputs])
    with graph.gradient_of(op), graph.device(None), graph.device(op.device):
        copy = graph.add(_copied(graph, op.definition, same), inputs, op.type)
    copy.gradient = op.gradient
    same.update(zip(op.outputs, copy.outputs, strict=True))


def _copied(graph: Graph, definition: Op, same: dict[Tensor, Tensor]) -> Op:
    """Returns an op's definition for a copy: what recomputes copies then recomputes the copies."""
    if not isinstance(definition, GradientHub) or definition.held is None:
        return definition
    own = definition.held.function
    if not isinstance(own, HubGradient) or not isinstance(own.function, _Recompute):
        return definition
    copy = dataclasses.replace(definition)
    hold(graph, copy, own.with_function(own.function.copied(same)))
    return copy
