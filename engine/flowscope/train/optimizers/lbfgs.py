"""L-BFGS: quasi-Newton steps from the last few gradients, all in the graph.

Idea. Each update sees how the gradient g changed along the last step: a pair s = x - x_before,
y = g - g_before. Products with the last few pairs give the product of g with an approximation of
the inverse Hessian, which is the direction to go (two-loop recursion). The variables count as one
vector, in the order in which they are given.

State. Slots: the x and g of the update before, as they were, one per variable. Beside the first
variable: rings of older pairs, a row each, their 1 / (s . y), and a count of pairs. The newest pair
is in no ring yet while it is used, so a history of m pairs takes rings of m - 1 rows.

Rules that need no control flow. A pair with too little curvature along it (s . y <= eps * y . y)
would break the approximation: it is left out, as a weight of 0 by `where`. Rows that were never
written have the weight 0 too. A direction that does not go downhill is replaced by the gradient.

Limits. There is no line search, for that needs loops: the step is `learning_rate` times the
direction, which 1 suits near a minimum of a smooth function; elsewhere choose less, or a schedule.
Gradients should be of the same data from update to update.

Source: Nocedal & Wright 2006, "Numerical Optimization", algorithms 7.4 and 7.5.
"""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import int32
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.array.arrays import zeros, zeros_like
from flowscope.ops.array.gathering import gather
from flowscope.ops.array.joining import concat, split
from flowscope.ops.array.selection import where
from flowscope.ops.array.shaping import reshape
from flowscope.ops.core.casting import cast
from flowscope.ops.math.elementwise import abs as absolute, floormod, maximum, minimum
from flowscope.ops.math.reductions import reduce_sum
from flowscope.ops.state.scatters import scatter_update
from flowscope.ops.state.variables import Variable
from flowscope.train.optimizers.optimizer import Gradient, Optimizer
from flowscope.train.optimizers.slots import as_dtype_of

#: One pair: s, y and 1 / (s . y), which is 0 for a pair that does not count.
Pair = tuple[Tensor, Tensor, Tensor]


class LBFGSOptimizer(Optimizer):
    """Limited-memory BFGS, without a line search.

    The first update goes along the gradient, a step of length `learning_rate` at most (by the sum
    of absolute values).

    Args:
        learning_rate: Length of a step, as a part of the quasi-Newton step.
        history: How many pairs of steps and changes of the gradient to use; 2 at least.
        epsilon: A pair counts if s . y > epsilon * y . y.
        use_locking: Updates are always atomic per variable.
        name: Name of the update operation and the slots.

    Raises:
        InvalidArgumentError: if the history is shorter than 2.

    Source: Nocedal & Wright 2006, "Numerical Optimization", algorithms 7.4 and 7.5.
    """

    def __init__(
        self,
        learning_rate: Any = 1.0,
        history: int = 10,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        name: str = "LBFGS",
    ) -> None:
        super().__init__(use_locking, name)
        if history < 2:
            raise expected("a history of 2 pairs at least", history)
        self._history = history
        self._given = {"learning_rate": learning_rate, "epsilon": epsilon}
        self._rings: tuple[Variable, Variable, Variable, Variable]
        self._numbers: list[Tensor] = []

    def _create_slots(self, var_list: list[Variable]) -> None:
        for v in var_list:
            if v.dtype is not var_list[0].dtype or not v.dtype.is_floating:
                raise expected_dtype(
                    "variables of one floating dtype", f'{v.dtype} from "{v.name}"'
                )
            if not v.shape.is_fully_defined():
                raise expected("a known shape", f'{v.shape} of "{v.name}"')
            self._zeros_slot(v, "previous", self._name)
            self._zeros_slot(v, "previous_gradient", self._name)
        size, dtype, rows = sum(map(_size, var_list)), var_list[0].dtype, self._history - 1
        first = var_list[0]

        def ring(name: str, shape: list[int], dtype: Any) -> Variable:
            wanted = f"{self._name}/{name}"
            return self._create_non_slot_variable(lambda: zeros(shape, dtype), wanted, first)

        self._rings = (
            ring("steps", [rows, size], dtype),
            ring("changes", [rows, size], dtype),
            ring("weights", [rows], dtype),
            ring("count", [2], int32),
        )

    def _prepare(self) -> None:
        self._numbers = [
            convert_to_tensor(self._call_if_callable(v), name=n) for n, v in self._given.items()
        ]

    def _apply_all(self, grads_and_vars: list[tuple[Gradient, Variable]]) -> list[Operation]:
        variables = [v for _, v in grads_and_vars]
        rate, epsilon = (as_dtype_of(t, variables[0]) for t in self._numbers)
        x = _joined([v.value() for v in variables])
        g = _joined([_dense(g, v) for g, v in grads_and_vars])
        newest = self._newest(x, g, variables, epsilon)
        step = rate * self._direction(g, newest)
        parts = _parted(x - step, variables)
        written = self._remember(newest, x, g, variables)
        return written + [_assigned(v, p) for v, p in zip(variables, parts, strict=True)]

    def _newest(self, x: Tensor, g: Tensor, variables: list[Variable], epsilon: Tensor) -> Pair:
        s = x - _joined([self._slots["previous"][v].value() for v in variables])
        y = g - _joined([self._slots["previous_gradient"][v].value() for v in variables])
        curvature = reduce_sum(s * y)
        updates = self._rings[3].value()[0]
        counts = (curvature > epsilon * reduce_sum(y * y)) & (updates > 0)
        one = cast(1, curvature.dtype)
        return s, y, where(counts, one / where(counts, curvature, one), zeros_like(curvature))

    def _direction(self, g: Tensor, newest: Pair) -> Tensor:
        """Returns the product of the gradient with the approximate inverse Hessian."""
        pairs = [newest, *self._older()]
        q, shares = g, []
        for s, y, weight in pairs:
            share = weight * reduce_sum(s * q)
            q -= share * y
            shares.append(share)
        q *= self._scale(g, pairs)
        for (s, y, weight), share in zip(reversed(pairs), reversed(shares), strict=True):
            q += (share - weight * reduce_sum(y * q)) * s
        return where(reduce_sum(q * g) > 0, q, g)

    def _older(self) -> list[Pair]:
        """Returns the pairs of the rings, newest first."""
        steps, changes, weights, counts = (v.value() for v in self._rings)
        rows = self._history - 1
        places = [floormod(counts[1] - 1 - i, rows) for i in range(rows)]
        return [(gather(steps, i), gather(changes, i), gather(weights, i)) for i in places]

    def _scale(self, g: Tensor, pairs: list[Pair]) -> Tensor:
        """Returns the first guess of the inverse Hessian: a number, from the newest pair that
        counts; without any, one that makes the first step short."""
        scale = minimum(1.0, 1.0 / maximum(reduce_sum(absolute(g)), 1e-30))
        for _, y, weight in reversed(pairs):
            counts = weight > 0
            curvature = weight * reduce_sum(y * y)
            one = cast(1, curvature.dtype)
            scale = where(counts, one / where(counts, curvature, one), scale)
        return scale

    def _remember(
        self, newest: Pair, x: Tensor, g: Tensor, variables: list[Variable]
    ) -> list[Operation]:
        """Returns the writes that make this update the one before the next."""
        steps, changes, weights, counts = self._rings
        before = counts.value()
        s, y, weight = newest
        is_new = weight > 0
        place = floormod(before[1], self._history - 1)
        done = []
        for ring, row in ((steps, s), (changes, y), (weights, weight)):
            kept = where(is_new, row, gather(ring.value(), place))
            done.append(scatter_update(ring, place, kept).op)
        added = convert_to_tensor([1, 0]) + cast(is_new, int32) * convert_to_tensor([0, 1])
        done.append(_assigned(counts, before + added))
        for slot_name, whole in (("previous", x), ("previous_gradient", g)):
            for v, part in zip(variables, _parted(whole, variables), strict=True):
                done.append(_assigned(self._slots[slot_name][v], part))
        return done


def _size(var: Variable) -> int:
    return int(var.shape.num_elements())  # type: ignore[arg-type]


def _dense(grad: Gradient, var: Variable) -> Tensor:
    if isinstance(grad, IndexedSlices):
        grad = IndexedSlices(grad.values, grad.indices, var.shape.as_list())
    return convert_to_tensor(grad)


def _joined(tensors: list[Tensor]) -> Tensor:
    return concat([reshape(t, [-1]) for t in tensors], 0)


def _parted(whole: Tensor, variables: list[Variable]) -> list[Tensor]:
    parts = split(whole, [_size(v) for v in variables], 0)
    return [reshape(p, v.shape.as_list()) for p, v in zip(parts, variables, strict=True)]


def _assigned(var: Variable, value: Tensor) -> Operation:
    """Returns the operation that sets a variable, to what its constraint allows."""
    if var.constraint is not None:
        value = var.constraint(value)
    with var.graph.colocate_with(var.op):
        return var.assign(value, read_value=False)  # type: ignore[no-any-return]


__all__ = ["LBFGSOptimizer"]
