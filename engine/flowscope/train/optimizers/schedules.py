"""Schedules: learning rates that are functions of the step, as tensors of the graph.

Each is computed in the dtype of the learning rate, float32 for a Python number, whatever the dtype
of the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.array.arrays import ones_like
from flowscope.ops.array.selection import where
from flowscope.ops.core.casting import cast
from flowscope.ops.core.flow import identity
from flowscope.ops.math import elementwise as ew
from flowscope.ops.random.normal_and_uniform import random_normal


@frozen
class _Scope:
    """The learning rate of a schedule and its step, both in one dtype."""

    rate: Tensor
    step: Tensor

    def number(self, value: Any) -> Tensor:
        """Returns a number or tensor in the rate's dtype."""
        return _cast(value, self.rate)

    def fraction(self, decay_steps: Any, staircase: bool = False) -> Tensor:
        """Returns the step over `decay_steps`, whole numbers of it for a staircase."""
        p = self.step / self.number(decay_steps)
        return ew.floor(p) if staircase else p

    def done(self, decay_steps: Any) -> Any:
        """Returns which part of `decay_steps` is over, at most 1."""
        steps = self.number(decay_steps)
        return ew.minimum(self.step, steps) / steps


def _schedule(
    name: str | None,
    default: str,
    learning_rate: Any,
    global_step: Any,
    value: Callable[[_Scope], Any],
) -> Tensor:
    """Returns the value of a schedule, made in a name scope and named after it."""
    if global_step is None:
        raise InvalidArgumentError(
            f"{default} needs a global_step: fs.train.get_or_create_global_step() makes one"
        )
    graph = _graph_of(learning_rate, global_step)
    with graph.name_scope(name or default) as scope:
        rate = convert_to_tensor(learning_rate, name="learning_rate")
        if not rate.dtype.is_floating:
            raise expected_dtype("a learning rate of floats", rate.dtype)
        return identity(value(_Scope(rate, _cast(global_step, rate))), scope)


def _graph_of(*values: Any) -> Graph:
    graphs = [v.graph for v in values if hasattr(v, "graph")]
    return graphs[0] if graphs else get_default_graph()


def _cast(value: Any, like: Tensor) -> Tensor:
    if isinstance(value, int | float):
        return convert_to_tensor(float(value), like.dtype)
    return cast(convert_to_tensor(value), like.dtype)


def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns learning_rate * decay_rate ^ (global_step / decay_steps).

    Args:
        learning_rate: The rate at step 0, a number or a scalar tensor of floats.
        global_step: The step, a number, tensor or variable of whole numbers or floats.
        decay_steps: How many steps one decay takes.
        decay_rate: The factor of one decay.
        staircase: Whether to decay every `decay_steps` steps at once.
        name: Name of the tensor.

    Raises:
        InvalidArgumentError: if `global_step` is None.

    Example:
        >>> rate = fs.train.exponential_decay(1.0, global_step=10, decay_steps=5, decay_rate=0.5)
        >>> fs.Session().run(rate)
        np.float32(0.25)
    """

    def value(s: _Scope) -> Any:
        return s.rate * ew.pow(s.number(decay_rate), s.fraction(decay_steps, staircase))

    return _schedule(name, "ExponentialDecay", learning_rate, global_step, value)


def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns learning_rate * exp(-decay_rate * global_step / decay_steps).

    Args and Raises: as `exponential_decay`.
    """

    def value(s: _Scope) -> Any:
        exponent = -s.number(decay_rate) * s.fraction(decay_steps, staircase)
        return s.rate * ew.exp(exponent)

    return _schedule(name, "NaturalExpDecay", learning_rate, global_step, value)


def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns learning_rate / (1 + decay_rate * global_step / decay_steps).

    Args and Raises: as `exponential_decay`.
    """

    def value(s: _Scope) -> Any:
        p = s.fraction(decay_steps, staircase)
        return s.rate / (s.number(decay_rate) * p + 1.0)

    return _schedule(name, "InverseTimeDecay", learning_rate, global_step, value)


def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns a rate that falls from learning_rate to end_learning_rate, as (1 - done) ^ power.

    Args:
        learning_rate: The rate at step 0.
        global_step: The step.
        decay_steps: At which step the end is reached.
        end_learning_rate: The rate from there on.
        power: Exponent; 1 is a straight line.
        cycle: Whether to begin again after the end, each time with the next multiple of
            `decay_steps` as the end.
        name: Name of the tensor.

    Raises:
        InvalidArgumentError: if `global_step` is None.
    """

    def value(s: _Scope) -> Any:
        end = s.number(end_learning_rate)
        done = _cycled(s, s.number(decay_steps)) if cycle else s.done(decay_steps)
        return (s.rate - end) * ew.pow(1.0 - done, s.number(power)) + end

    return _schedule(name, "PolynomialDecay", learning_rate, global_step, value)


def _cycled(s: _Scope, steps: Tensor) -> Any:
    cycles = ew.ceil(s.step / steps)
    return s.step / (steps * where(ew.equal(s.step, 0.0), ones_like(cycles), cycles))


def cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Tensor:
    """Returns a rate that falls from learning_rate to alpha * learning_rate by half a cosine wave.

    Args:
        learning_rate: The rate at step 0.
        global_step: The step.
        decay_steps: At which step the end is reached.
        alpha: The rate from there on, as a part of `learning_rate`.
        name: Name of the tensor.

    Raises:
        InvalidArgumentError: if `global_step` is None.

    Source: Loshchilov & Hutter 2016, "SGDR: stochastic gradient descent with warm restarts".

    Example:
        >>> fs.Session().run(fs.train.cosine_decay(1.0, global_step=5, decay_steps=10)).round(3)
        np.float32(0.5)
    """

    def value(s: _Scope) -> Any:
        least = s.number(alpha)
        return s.rate * ((1.0 - least) * _wave(s.done(decay_steps)) + least)

    return _schedule(name, "CosineDecay", learning_rate, global_step, value)


def _wave(halves: Any) -> Any:
    """Returns a cosine wave between 1 and 0; 1 half wave is once down."""
    return 0.5 * (1.0 + ew.cos(math.pi * halves))


def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: Any = 2.0,
    m_mul: Any = 1.0,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Tensor:
    """Returns a rate that falls as in `cosine_decay`, time after time.

    Args:
        learning_rate: The rate at step 0.
        global_step: The step.
        first_decay_steps: How many steps the first period takes.
        t_mul: By how much each period is longer than the one before.
        m_mul: By how much each starts higher than the one before.
        alpha: Where each ends, as a part of `learning_rate`.
        name: Name of the tensor.

    Raises:
        InvalidArgumentError: if `global_step` is None.

    Source: Loshchilov & Hutter 2016, "SGDR: stochastic gradient descent with warm restarts".
    """

    def value(s: _Scope) -> Any:
        least = s.number(alpha)
        restarts, done = _period(s.fraction(first_decay_steps), s.number(t_mul))
        wave = ew.pow(s.number(m_mul), restarts) * _wave(done)
        return s.rate * ((1.0 - least) * wave + least)

    return _schedule(name, "SGDRDecay", learning_rate, global_step, value)


def _period(time: Tensor, growth: Tensor) -> tuple[Tensor, Tensor]:
    """Returns in which period a time lies, and which part of it is over.

    The first period takes 1, each next one `growth` times the one before.
    """
    is_even = ew.equal(growth, 1.0)
    # Where all are of one length the formula for others divides by 0; there it is not used.
    ratio = where(is_even, growth + 1.0, growth)
    grown = ew.floor(ew.log(1.0 - time * (1.0 - ratio)) / ew.log(ratio))
    length = ew.pow(ratio, grown)
    done = (time - (1.0 - length) / (1.0 - ratio)) / length
    whole = ew.floor(time)
    return where(is_even, whole, grown), where(is_even, time - whole, done)


def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """Returns learning_rate * ((alpha + linear) * wave + beta), both falling to 0.

    Args:
        learning_rate: The rate at step 0, nearly.
        global_step: The step.
        decay_steps: At which step the end is reached.
        num_periods: How many cosine waves lie before the end.
        alpha: Added to the straight line from 1 to 0.
        beta: Added to the product.
        name: Name of the tensor.

    Raises:
        InvalidArgumentError: if `global_step` is None.

    Source: Bello et al. 2017, "Neural optimizer search with reinforcement learning".
    """

    def value(s: _Scope) -> Any:
        done = s.done(decay_steps)
        wave = _wave(2.0 * s.number(num_periods) * done)
        return s.rate * ((s.number(alpha) + (1.0 - done)) * wave + s.number(beta))

    return _schedule(name, "LinearCosineDecay", learning_rate, global_step, value)


def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: Any = 1.0,
    variance_decay: Any = 0.55,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """Returns `linear_cosine_decay` with normal noise added to its straight line.

    Args:
        learning_rate: The rate at step 0, but for the noise.
        global_step: The step.
        decay_steps: At which step the end is reached.
        initial_variance: Variance of the noise at step 0.
        variance_decay: It falls as (1 + global_step) ^ -variance_decay.
        num_periods: How many cosine waves lie before the end.
        alpha: Added to the straight line from 1 to 0.
        beta: Added to the product.
        name: Name of the tensor.

    Raises:
        InvalidArgumentError: if `global_step` is None.

    Source: Bello et al. 2017, "Neural optimizer search with reinforcement learning".
    """

    def value(s: _Scope) -> Any:
        done = s.done(decay_steps)
        step = ew.minimum(s.step, s.number(decay_steps))
        variance = s.number(initial_variance) / ew.pow(1.0 + step, s.number(variance_decay))
        noise = random_normal([], dtype=s.rate.dtype) * ew.sqrt(variance)
        wave = _wave(2.0 * s.number(num_periods) * done)
        return s.rate * ((s.number(alpha) + (1.0 - done) + noise) * wave + s.number(beta))

    return _schedule(name, "NoisyLinearCosineDecay", learning_rate, global_step, value)


def piecewise_constant(
    x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
) -> Tensor:
    """Returns the value of the stretch in which `x` lies.

    Args:
        x: A scalar, such as the step.
        boundaries: Where stretches end, ascending: the first goes up to and including the first.
        values: One for each stretch, that is one more than boundaries; of one dtype.
        name: Name scope of the operations.

    Raises:
        InvalidArgumentError: if the numbers of boundaries and values do not fit.
        DTypeError: if boundaries are floats and `x` is not, or values differ in dtype.
    """
    if len(boundaries) != len(values) - 1:
        raise expected(
            "one value more than boundaries",
            f"{len(values)} values and {len(boundaries)} boundaries",
        )
    with _graph_of(x).name_scope(name or "PiecewiseConstant") as scope:
        x = convert_to_tensor(x)
        edges = [_edge(b, x) for b in boundaries]
        levels = [convert_to_tensor(v) for v in values]
        for v in levels:
            if v.dtype is not levels[0].dtype:
                raise expected_dtype("values of one dtype", f"{levels[0].dtype}, {v.dtype}")
        out = levels[-1]
        for edge, level in zip(reversed(edges), reversed(levels[:-1]), strict=True):
            out = where(ew.less_equal(x, edge), level, out)
        return identity(out, scope)


def _edge(boundary: Any, x: Tensor) -> Tensor:
    edge = convert_to_tensor(boundary)
    if edge.dtype is x.dtype:
        return edge
    if edge.dtype.is_floating and not x.dtype.is_floating:
        raise expected_dtype(f"boundaries of dtype {x.dtype}, x's", edge.dtype)
    return cast(edge, x.dtype)


piecewise_constant_decay = piecewise_constant

__all__ = [
    "cosine_decay",
    "cosine_decay_restarts",
    "exponential_decay",
    "inverse_time_decay",
    "linear_cosine_decay",
    "natural_exp_decay",
    "noisy_linear_cosine_decay",
    "piecewise_constant",
    "piecewise_constant_decay",
    "polynomial_decay",
]
