"""Ops that apply a gradient to a variable and its slots, for optimizers.

Each op is a rule that changes arrays in place. The base class finds the arrays: all of the
variable's for a gradient of its shape, in stretches that stay in the processor's cache from one
pass to the next; or the rows that the gradient has, where indices say which these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from flowscope.errors import InvalidArgumentError
from flowscope.graph.op import Array, ArrayModule, Cost, Spec, frozen
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import compatible, size_of, text
from flowscope.ops.array.gathering import check_range
from flowscope.ops.core.shape_rules import check_kind
from flowscope.ops.kernels import fused_updates
from flowscope.ops.kernels.blocking import scratch, stretches
from flowscope.ops.kernels.denormals import denormals_as_zeros
from flowscope.ops.state.variable_ops import Write, has_shape, like_variable, variable_spec


class Apply(Write, abstract=True, reads_state=True, is_checkable=True, calls=6):
    """Base of the ops that apply a gradient; the output is the variable's new value.

    Inputs: the variable, its slots, numbers, the gradient, and where the gradient is sparse the
    rows that it has, as integers; rows that are named twice add up.

    What has 16 bits is computed in float32 and rounded once an update. In large gradients denormal
    numbers count as zeros, as in TensorFlow.

    Class attributes:
        slots, numbers: Names of these inputs; numbers are scalars of the variable's dtype.
        temporaries: How many arrays of the gradient's shape the rule needs to work with.

    Shapes: var, slots and gradient alike (sparse: gradient [n] + var.shape[1:], rows [n])
    Raises: InvalidArgumentError if a row is out of range.
    """

    slots: ClassVar[tuple[str, ...]] = ()
    numbers: ClassVar[tuple[str, ...]] = ()
    temporaries: ClassVar[int] = 1

    def infer(self, var: Spec, *rest: Spec) -> Spec:
        slots, numbers, (grad, *rows) = self._split(rest)
        variable = variable_spec(var)
        for name, s in zip(self.numbers, numbers, strict=True):
            _check_number(name, s, variable)
        if not rows:
            for slot in (*slots, var):
                like_variable(slot, grad, "a gradient")
            return variable.like()
        _check_rows(variable, grad, rows[0])
        return variable.like()

    def _split(self, rest: tuple[Any, ...]) -> tuple[Any, Any, Any]:
        first, last = len(self.slots), len(self.slots) + len(self.numbers)
        return rest[:first], rest[first:last], rest[last:]

    def kernel(self, xp: ArrayModule, var: Any, *rest: Array) -> Array:
        slots, numbers, (given, *rows) = self._split(rest)
        grad, *numbers = [widened(xp, a) for a in (given, *numbers)]
        numbers = self.prepared(xp, *numbers)

        def dense(*arrays: Array) -> None:
            _check_fits(arrays, grad, None)
            wide = [widened(xp, a) for a in arrays]
            if not fused_updates.update(self, (*wide, grad), numbers):
                for parts in stretches(xp, (*wide, grad), self.temporaries):
                    self.rule(xp, *parts, *numbers)
            put_back(arrays, wide)

        def sparse(*arrays: Array) -> None:
            _check_fits(arrays, grad, rows[0])
            self.sparse_rule(xp, arrays, *summed(xp, rows[0], grad), numbers)

        with denormals_as_zeros(xp, grad):
            return var.change(slots, sparse if rows else dense)

    def check(self, state: Any, *inputs: Array) -> None:
        slots, _, (grad, *rows) = self._split(inputs)
        for variable in (state, *slots):
            variable.check_update()
        arrays = [variable.current() for variable in (state, *slots)]
        _check_fits(arrays, grad, rows[0] if rows else None)

    def always_fits(self, handle: Spec, *inputs: Spec) -> bool:
        slots, _, (grad, *rows) = self._split(inputs)
        return not rows and all(has_shape(h, grad) for h in (handle, *slots))

    def prepared(self, xp: ArrayModule, *numbers: Array) -> tuple[Array, ...]:
        """Returns the numbers as the rule wants them."""
        return numbers

    def rule(self, xp: ArrayModule, *parts: Array) -> None:
        """Changes var and slots in place; gets them, the gradient, temporaries and numbers."""
        raise NotImplementedError

    def sparse_rule(self, xp: ArrayModule, arrays: tuple[Array, ...], rows: Array, grad: Array,
                    numbers: tuple[Array, ...]) -> None:  # fmt: skip
        """Applies the rule to some rows, each of which is named once; the others stay."""
        parts = [widened(xp, a[rows]) for a in arrays]
        temporaries = [scratch(xp, grad) for _ in range(self.temporaries)]
        self.rule(xp, *parts, grad, *temporaries, *numbers)
        for a, part in zip(arrays, parts, strict=True):
            a[rows] = part

    def cost(self, inputs: tuple[Spec, ...], outputs: tuple[Spec, ...]) -> Cost:
        grad = inputs[1 + len(self.slots) + len(self.numbers)]
        size, item = size_of(grad.shape), grad.dtype.size
        if size is None:
            return Cost(None, None)
        passes = 2 + 3 * len(self.slots)
        return Cost(float(passes * size), float(passes * size * item))


def _check_number(name: str, s: Spec, variable: Spec) -> None:
    if s.dtype is not variable.dtype or s.rank not in (0, None):
        raise expected(f"{name} as a scalar of dtype {variable.dtype}, the variable's", s)


def _check_rows(variable: Spec, grad: Spec, rows: Spec) -> None:
    if grad.dtype is not variable.dtype:
        raise expected_dtype(f"a gradient of dtype {variable.dtype}, the variable's", grad.dtype)
    check_kind(rows.dtype, "iu", "integers that name rows")
    if variable.shape is None:
        return
    count = (None,) if rows.shape is None else rows.shape
    wanted = (*count, *variable.shape[1:])
    if not variable.shape or len(count) != 1 or not compatible(grad.shape, wanted):
        raise expected(
            f"a gradient of shape {text(wanted)}, as the rows named by {rows} and the variable "
            f"{variable} say",
            grad.shape,
        )


def _check_fits(arrays: Sequence[Array], grad: Array, rows: Array | None) -> None:
    """Raises InvalidArgumentError unless a gradient fits the variable and all of its slots."""
    first = 0 if rows is None else 1
    if rows is not None and rows.shape != grad.shape[:1]:
        raise expected(
            "one row of the gradient per row named",
            f"a gradient of shape {text(grad.shape)} and rows of shape {text(rows.shape)}",
        )
    for array in arrays:
        if grad.shape[first:] != array.shape[first:]:
            raise _unlike(array, grad)
        if rows is not None:
            check_range(rows, array.shape[0])


def _unlike(variable: Array, grad: Array) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"a gradient of shape {text(grad.shape)} does not fit a variable of shape "
        f"{text(variable.shape)}"
    )


def widened(xp: ArrayModule, x: Array) -> Array:
    """Returns floating-point numbers of 16 bits as float32, and others as they are."""
    return x.astype(xp.float32) if x.dtype.itemsize == 2 else x


def put_back(arrays: tuple[Array, ...], wide: list[Array]) -> None:
    """Writes what was computed in float32 into the arrays of 16 bits that it was made of."""
    for a, w in zip(arrays, wide, strict=True):
        if a is not w:
            a[...] = w


def summed(xp: ArrayModule, rows: Array, grad: Array) -> tuple[Array, Array]:
    """Returns the rows without repeats, and the gradient with those of equal rows added up."""
    if rows.size < 2:
        return rows, grad
    order = xp.argsort(rows, kind="stable")
    in_order = rows[order]
    is_first = xp.ones(rows.shape, bool)
    xp.not_equal(in_order[1:], in_order[:-1], out=is_first[1:])
    starts = xp.flatnonzero(is_first)
    if starts.size == rows.size:
        return rows, grad
    return in_order[starts], xp.add.reduceat(grad[order], starts, axis=0)


@frozen
class ApplyGradientDescent(Apply, numbers=("alpha",)):
    """var -= alpha * delta."""

    group: str = ""

    def kernel(self, xp: ArrayModule, var: Any, *rest: Array) -> Array:
        if len(rest) > 2:
            return super().kernel(xp, var, *rest)
        # Two passes alone: stretches and the locks of several variables cost more than they gain.
        alpha, delta = rest
        step = widened(xp, alpha) * widened(xp, delta)

        def in_place(old: Array) -> None:
            if old.shape != delta.shape:
                raise _unlike(old, delta)
            xp.subtract(old, step, out=old, casting="unsafe")

        def fresh(old: Array) -> Array:
            if old.shape != delta.shape:
                raise _unlike(old, delta)
            return (old - step).astype(old.dtype, copy=False)

        return var.update(fresh, in_place)

    def rule(self, xp: ArrayModule, *parts: Array) -> None:
        var, delta, t, alpha = parts
        xp.multiply(delta, alpha, t)
        xp.subtract(var, t, var)


@frozen
class ApplyMomentum(Apply, slots=("accum",), numbers=("lr", "momentum")):
    """accum = momentum * accum + grad; var -= lr * accum.

    Attributes:
        use_nesterov: Whether to step by the accumulator as it would be one step later:
            var -= lr * (grad + momentum * accum).

    Source: Sutskever et al. 2013, "On the importance of initialization and momentum".
    """

    use_nesterov: bool = False
    group: str = ""

    def rule(self, xp: ArrayModule, *parts: Array) -> None:
        var, accum, grad, t, lr, momentum = parts
        xp.multiply(accum, momentum, accum)
        xp.add(accum, grad, accum)
        if self.use_nesterov:
            xp.multiply(accum, momentum, t)
            xp.add(t, grad, t)
            xp.multiply(t, lr, t)
        else:
            xp.multiply(accum, lr, t)
        xp.subtract(var, t, var)


@frozen
class ApplyAdagrad(Apply, slots=("accum",), numbers=("lr",)):
    """accum += grad^2; var -= lr * grad / sqrt(accum).

    Source: Duchi, Hazan & Singer 2011, "Adaptive subgradient methods".
    """

    group: str = ""

    def rule(self, xp: ArrayModule, *parts: Array) -> None:
        var, accum, grad, t, lr = parts
        xp.multiply(grad, grad, t)
        xp.add(accum, t, accum)
        xp.sqrt(accum, t)
        xp.divide(grad, t, t)
        xp.multiply(t, lr, t)
        xp.subtract(var, t, var)


@frozen
class ApplyAdagradDA(
    Apply, slots=("total", "squares"), numbers=("lr", "l1", "l2", "global_step"), calls=16
):
    """Adagrad with dual averaging: var follows from the sums of gradients alone.

    total += grad; squares += grad^2; var = -lr * shrunk / (l2 * step * lr + sqrt(squares)), where
    shrunk is the total moved towards 0 by l1 * step.

    Source: Duchi, Hazan & Singer 2011, "Adaptive subgradient methods", section 5.
    """

    group: str = ""

    def rule(self, xp: ArrayModule, *parts: Array) -> None:
        var, total, squares, grad, t, lr, l1, l2, step = parts
        xp.add(total, grad, total)
        xp.multiply(grad, grad, t)
        xp.add(squares, t, squares)
        xp.sqrt(squares, t)
        xp.add(t, l2 * step * lr, t)
        _shrink_negative(xp, total, l1 * step, var)
        xp.multiply(var, lr, var)
        xp.divide(var, t, var)


@frozen
class ApplyAdadelta(
    Apply,
    slots=("accum", "accum_update"),
    numbers=("lr", "rho", "epsilon"),
    temporaries=2,
    calls=16,
):
    """Steps scaled by the running size of steps over that of gradients.

    accum = rho * accum + (1 - rho) * grad^2; step = sqrt(steps + eps) / sqrt(accum + eps) * grad;
    steps = rho * steps + (1 - rho) * step^2; var -= lr * step.

    Source: Zeiler 2012, "ADADELTA: an adaptive learning rate method".
    """

    group: str = ""

    def rule(self, xp: ArrayModule, *parts: Array) -> None:
        var, accum, steps, grad, t, step, lr, rho, epsilon = parts
        xp.multiply(grad, grad, t)
        _decay(xp, accum, rho, t)
        xp.add(steps, epsilon, step)
        xp.sqrt(step, step)
        xp.add(accum, epsilon, t)
        xp.sqrt(t, t)
        xp.divide(step, t, step)
        xp.multiply(step, grad, step)
        xp.multiply(step, lr, t)
        xp.subtract(var, t, var)
        xp.multiply(step, step, t)
        _decay(xp, steps, rho, t)


@frozen
class ApplyRMSProp(
    Apply, slots=("ms", "mom"), numbers=("lr", "rho", "momentum", "epsilon"), calls=16
):
    """Gradients scaled by their running size, with momentum.

    ms = rho * ms + (1 - rho) * grad^2; mom = momentum * mom + lr * grad / sqrt(ms + epsilon);
    var -= mom.

    Source: Tieleman & Hinton 2012, lecture 6.5 of "Neural Networks for Machine Learning".
    """

    group: str = ""

    def rule(self, xp: ArrayModule, *parts: Array) -> None:
        var, ms, mom, grad, t, lr, rho, momentum, epsilon = parts
        xp.multiply(grad, grad, t)
        _decay(xp, ms, rho, t)
        xp.add(ms, epsilon, t)
        _momentum_step(xp, var, mom, grad, t, lr, momentum)


@frozen
class ApplyCenteredRMSProp(
    Apply, slots=("mg", "ms", "mom"), numbers=("lr", "rho", "momentum", "epsilon"), calls=20
):
    """RMSProp that scales by the running variance: ms - mg^2, mg the running mean of gradients.

    Source: Graves 2013, "Generating sequences with recurrent neural networks", section 3.2.
    """

    group: str = ""

    def rule(self, xp: ArrayModule, *parts: Array) -> None:
        var, mg, ms, mom, grad, t, lr, rho, momentum, epsilon = parts
        xp.multiply(grad, grad, t)
        _decay(xp, ms, rho, t)
        xp.copyto(t, grad)
        _decay(xp, mg, rho, t)
        xp.multiply(mg, mg, t)
        xp.subtract(ms, t, t)
        xp.add(t, epsilon, t)
        _momentum_step(xp, var, mom, grad, t, lr, momentum)


@frozen
class ApplyAdam(Apply, slots=("m", "v"), calls=16):
    """One Adam update: steps by the running mean of gradients over the root of that of squares.

    A sparse gradient counts as zeros in the other rows: these decay and move too.

    Source: Kingma & Ba 2014, section 2, with the bias correction folded into the step size.
    """

    group: str = ""
    numbers: ClassVar[tuple[str, ...]] = ("beta1_power", "beta2_power", "lr", "beta1", "beta2",
                                          "epsilon")  # fmt: skip

    def prepared(self, xp: ArrayModule, *numbers: Array) -> tuple[Array, ...]:
        beta1_power, beta2_power, lr, beta1, beta2, epsilon = numbers
        rate = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
        return beta1, 1 - beta1, beta2, 1 - beta2, rate, epsilon

    def rule(self, xp: ArrayModule, *parts: Array) -> None:
        var, m, v, grad, t, beta1, share1, beta2, share2, rate, epsilon = parts
        xp.multiply(m, beta1, m)
        xp.multiply(grad, share1, t)
        xp.add(m, t, m)
        xp.multiply(v, beta2, v)
        xp.multiply(grad, grad, t)
        xp.multiply(t, share2, t)
        xp.add(v, t, v)
        _adam_step(xp, var, m, v, t, rate, epsilon)

    def sparse_rule(self, xp: ArrayModule, arrays: tuple[Array, ...], rows: Array, grad: Array,
                    numbers: tuple[Array, ...]) -> None:  # fmt: skip
        wide = [widened(xp, a) for a in arrays]
        _, m, v = wide
        beta1, share1, beta2, share2, rate, epsilon = numbers
        xp.multiply(m, beta1, m)
        m[rows] += grad * share1
        xp.multiply(v, beta2, v)
        v[rows] += grad * grad * share2
        for part_of_var, part_of_m, part_of_v, t in stretches(xp, tuple(wide), self.temporaries):
            _adam_step(xp, part_of_var, part_of_m, part_of_v, t, rate, epsilon)
        put_back(arrays, wide)


@frozen
class ApplyLazyAdam(ApplyAdam):
    """An Adam update of the rows alone that a sparse gradient has; the others and their moments
    stay as they are.

    Source: TensorFlow 1's `contrib.opt.LazyAdamOptimizer`.
    """

    sparse_rule = Apply.sparse_rule


@frozen
class ApplyFtrl(
    Apply,
    slots=("accum", "linear"),
    numbers=("lr", "l1", "l2", "l2_shrinkage", "lr_power"),
    temporaries=2,
    calls=16,
    host_inputs=(7,),  # lr_power says which routine takes the power
):
    """Follow the regularized leader: var is the minimum of all linearized losses so far, plus l1
    and l2 norms.

    accum' = accum + grad^2; linear += grad + 2 * l2_shrinkage * var - (accum'^-p - accum^-p) / lr
    * var, where p is lr_power; var = -shrunk / (accum'^-p / lr + 2 * l2), where shrunk is linear
    moved towards 0 by l1.

    Source: McMahan et al. 2013, "Ad click prediction: a view from the trenches".
    """

    group: str = ""

    def rule(self, xp: ArrayModule, *parts: Array) -> None:
        var, accum, linear, grad, t, u, lr, l1, l2, l2_shrinkage, lr_power = parts
        _power(xp, accum, -lr_power, u)
        xp.multiply(grad, grad, t)
        xp.add(accum, t, accum)
        _power(xp, accum, -lr_power, t)
        xp.subtract(u, t, u)
        xp.divide(u, lr, u)
        xp.add(u, 2 * l2_shrinkage, u)
        xp.multiply(u, var, u)
        xp.add(linear, u, linear)
        xp.add(linear, grad, linear)
        xp.divide(t, lr, t)
        xp.add(t, 2 * l2, t)
        _shrink_negative(xp, linear, l1, var)
        xp.divide(var, t, var)


@frozen
class ApplyProximalGradientDescent(Apply, numbers=("alpha", "l1", "l2"), calls=10):
    """Gradient descent, then a step towards 0: var = shrunk / (1 + l2 * alpha), where shrunk is
    var - alpha * delta moved towards 0 by l1 * alpha.

    Source: Duchi & Singer 2009, "Efficient online and batch learning using forward backward
        splitting".
    """

    group: str = ""

    def rule(self, xp: ArrayModule, *parts: Array) -> None:
        var, delta, t, alpha, l1, l2 = parts
        xp.multiply(delta, alpha, t)
        xp.subtract(var, t, t)
        _shrink(xp, t, l1 * alpha, var)
        xp.divide(var, 1 + l2 * alpha, var)


@frozen
class ApplyProximalAdagrad(
    Apply, slots=("accum",), numbers=("lr", "l1", "l2"), temporaries=2, calls=12
):
    """Adagrad, then a step towards 0, as in proximal gradient descent with each element's own rate.

    Source: Duchi & Singer 2009, with the rates of Duchi, Hazan & Singer 2011.
    """

    group: str = ""

    def rule(self, xp: ArrayModule, *parts: Array) -> None:
        var, accum, grad, rate, t, lr, l1, l2 = parts
        xp.multiply(grad, grad, t)
        xp.add(accum, t, accum)
        xp.sqrt(accum, rate)
        xp.divide(lr, rate, rate)
        xp.multiply(grad, rate, t)
        xp.subtract(var, t, t)
        _shrink(xp, t, rate * l1, var)
        xp.multiply(rate, l2, rate)
        xp.add(rate, 1, rate)
        xp.divide(var, rate, var)


def _decay(xp: ArrayModule, average: Array, keep: Array, t: Array) -> None:
    """average = keep * average + (1 - keep) * t; changes t."""
    xp.subtract(t, average, t)
    xp.multiply(t, 1 - keep, t)
    xp.add(average, t, average)


def _momentum_step(xp: ArrayModule, var: Array, mom: Array, grad: Array, t: Array, lr: Array,
                   momentum: Array) -> None:  # fmt: skip
    """mom = momentum * mom + lr * grad / sqrt(t); var -= mom; changes t."""
    xp.sqrt(t, t)
    xp.divide(grad, t, t)
    xp.multiply(t, lr, t)
    xp.multiply(mom, momentum, mom)
    xp.add(mom, t, mom)
    xp.subtract(var, mom, var)


def _adam_step(xp: ArrayModule, var: Array, m: Array, v: Array, t: Array, rate: Array,
               epsilon: Array) -> None:  # fmt: skip
    xp.sqrt(v, t)
    xp.add(t, epsilon, t)
    xp.divide(m, t, t)
    xp.multiply(t, rate, t)
    xp.subtract(var, t, var)


def _shrink(xp: ArrayModule, x: Array, by: Array, out: Array) -> None:
    """out = x moved towards 0 by `by` >= 0, not beyond 0."""
    xp.clip(x, -by, by, out)
    xp.subtract(x, out, out)


def _shrink_negative(xp: ArrayModule, x: Array, by: Array, out: Array) -> None:
    """out = -x moved towards 0 by `by` >= 0, not beyond 0; no negative zeros."""
    xp.clip(x, -by, by, out)
    xp.subtract(out, x, out)


def _power(xp: ArrayModule, x: Array, exponent: Array, out: Array) -> None:
    if exponent == 0.5:
        xp.sqrt(x, out)
    else:
        xp.power(x, exponent, out)
