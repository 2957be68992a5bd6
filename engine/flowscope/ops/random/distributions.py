"""Random tensors of further distributions: gamma, Poisson, categories."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.constant import convert_to_tensor, get_static_value
from flowscope.graph.default import get_default_graph
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.array.arrays import zeros_like
from flowscope.ops.core.broadcasting import as_shape, as_sizes, check_shape_vector, unbroadcast
from flowscope.ops.core.build import apply
from flowscope.ops.core.shape_rules import check_kind, check_rank, check_same
from flowscope.ops.kernels.incomplete_gamma import derivative_by_a
from flowscope.ops.kernels.scipy_modules import scipy_of
from flowscope.ops.math.elementwise import add, maximum, multiply, realdiv
from flowscope.ops.random.normal_and_uniform import _float
from flowscope.ops.random.seeds import seed_of

__all__ = ["multinomial", "random_gamma", "random_poisson", "random_poisson_v2"]


def host(x: Array) -> Any:
    """Returns the values of a parameter as a NumPy array: the generators draw on the host."""
    return np.asarray(x.tolist(), np.float64)


@frozen
class RandomGamma(
    Op, is_random=True, grad_reads=("y", "alpha"), host_inputs=(0,), devices=("CPU",)
):
    """Numbers of gamma distributions with scale 1, so many for each shape parameter.

    Shapes: shape [n], alpha s -> shape + s
    """

    seed: int

    def infer(self, shape: Spec, alpha: Spec) -> Spec:
        check_shape_vector(shape)
        check_kind(alpha.dtype, "f")
        front = shape.shape_value()
        known = front is not None and alpha.shape is not None
        return Spec(alpha.dtype, (*front, *alpha.shape) if known else None)  # type: ignore[misc]

    def grad(self, g: Tensor, y: Tensor, shape: Tensor, alpha: Tensor) -> Any:
        slope = apply(RandomGammaGrad(), alpha, y)
        return None, unbroadcast(multiply(g, slope), alpha, y)

    def kernel(self, xp: ArrayModule, rng: Any, shape: Array, alpha: Array) -> Array:
        return gamma_numbers(xp, rng, (*as_sizes(shape), *alpha.shape), alpha)


def gamma_numbers(xp: ArrayModule, rng: Any, sizes: Any, alpha: Array) -> Array:
    """Returns numbers of gamma distributions with scale 1, in the parameter's dtype."""
    if alpha.size and not bool((alpha > 0).all()):
        raise expected("shape parameters above 0", alpha.min())
    drawn = rng.standard_gamma(host(alpha), sizes)
    return xp.asarray(drawn).astype(alpha.dtype)[()]


class RandomGammaGrad(Op):
    """How a number drawn from a gamma distribution follows its shape parameter.

    Shapes: alpha, sample are broadcast
    Source: implicit reparametrisation, Figurnov et al. 2018: -(dP/da) / density.
    """

    def infer(self, alpha: Spec, sample: Spec) -> Spec:
        check_same(alpha, sample)
        return sample.like()

    def kernel(self, xp: ArrayModule, alpha: Array, sample: Array) -> Array:
        special = scipy_of(xp, "special")
        a, x = alpha.astype(xp.float64), sample.astype(xp.float64)
        log_density = special.xlogy(a - 1, x) - x - special.gammaln(a)
        slope = -derivative_by_a(xp, special, a, x) * xp.exp(-log_density)
        return slope.astype(sample.dtype)[()]


@frozen
class RandomPoisson(
    Op, is_random=True, is_differentiable=False, host_inputs=(0,), devices=("CPU",)
):
    """Numbers of Poisson distributions, so many for each rate.

    Shapes: shape [n], rate s -> shape + s
    """

    seed: int
    dtype: DType

    def infer(self, shape: Spec, rate: Spec) -> Spec:
        check_shape_vector(shape)
        check_kind(rate.dtype, "fi")
        front = shape.shape_value()
        known = front is not None and rate.shape is not None
        return Spec(self.dtype, (*front, *rate.shape) if known else None)  # type: ignore[misc]

    def kernel(self, xp: ArrayModule, rng: Any, shape: Array, rate: Array) -> Array:
        if rate.size and not bool((rate >= 0).all()):
            raise expected("rates from 0 on", rate.min())
        drawn = rng.poisson(host(rate), (*as_sizes(shape), *rate.shape))
        return xp.asarray(drawn).astype(self.dtype.np_dtype)[()]


def random_gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns numbers of gamma distributions; gradients flow to both parameters.

    Args:
        shape: How many for each distribution, in front of the parameters' shape.
        alpha: Shape parameters, above 0.
        beta: Rates, 1 by default; broadcast with `alpha`.
        dtype: Element type, floating-point.
        seed: Seed of the op; by default it follows from the operation's name.
        name: Name scope of the operations.
    """

    found, name = _float(dtype), name or "random_gamma"
    op = RandomGamma(seed_of(seed, name))
    with get_default_graph().name_scope(name):
        a = convert_to_tensor(alpha, found, "alpha")
        b = convert_to_tensor(1.0 if beta is None else beta, found, "beta")
        wide = a if beta is None else add(a, zeros_like(b))
        drawn = apply(op, as_shape(shape, None), wide)
        smallest = float(np.finfo(found.np_dtype).tiny) if found.name != "bfloat16" else 1e-38
        return maximum(realdiv(drawn, b), smallest)


def random_poisson(
    lam: Any,
    shape: Any,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns numbers of Poisson distributions.

    Args:
        lam: Rates.
        shape: How many for each rate, in front of the rates' shape.
        dtype: Element type.
        seed: Seed of the op; by default it follows from the operation's name.
        name: Name of the operation.
    """
    return random_poisson_v2(shape, lam, dtype, seed, name)


def random_poisson_v2(
    shape: Any,
    lam: Any,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns numbers of Poisson distributions; as `random_poisson`, the shape comes first."""
    found, name = as_dtype(dtype), name or "random_poisson"
    if found.kind not in "fi":
        raise expected_dtype("a dtype of real numbers", found)
    op = RandomPoisson(seed_of(seed, name), found)
    return apply(op, as_shape(shape, name), convert_to_tensor(lam), name=name)


def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Returns classes drawn by their unnormalised log-probabilities.

    Args:
        logits: Log-probabilities, [batch, classes].
        num_samples: How many for each row.
        dtype: int32 or int64, the default.
        seed: Seed of the op; by default it follows from the operation's name.
        name: Name of the operation.
    """
    name, count = name or "categorical", get_static_value(num_samples)
    if count is None or count.shape != ():
        raise expected("a number of samples known while the graph is built", repr(num_samples))
    found = dtypes.int64 if dtype is None else as_dtype(dtype)
    op = Multinomial(seed_of(seed, name), int(count), found)
    return apply(op, convert_to_tensor(logits), name=name)


@frozen
class Multinomial(Op, is_random=True, is_differentiable=False):
    """Classes drawn by their unnormalised log-probabilities.

    Shapes: logits [batch, classes] -> [batch, num]
    """

    seed: int
    num: int
    dtype: DType

    def infer(self, logits: Spec) -> Spec:
        check_kind(logits.dtype, "f", "floating-point logits")
        check_rank(logits, 2, "logits of rank 2")
        return Spec(self.dtype, (None if logits.shape is None else logits.shape[0], self.num))

    def kernel(self, xp: ArrayModule, rng: Any, logits: Array) -> Array:
        # The largest of logit + Gumbel noise is a draw from the softmax.
        noise = xp.asarray(rng.gumbel(size=(logits.shape[0], self.num, logits.shape[1])))
        return (logits[:, None, :] + noise).argmax(axis=-1).astype(self.dtype.np_dtype)


def multinomial(
    logits: Any,
    num_samples: int,
    seed: int | None = None,
    name: str | None = None,
    output_dtype: Any = dtypes.int64,
) -> Tensor:
    """Returns `num_samples` classes per row, drawn by their unnormalised log-probabilities."""
    op = Multinomial(seed_of(seed, name or "Multinomial"), num_samples, as_dtype(output_dtype))
    return apply(op, convert_to_tensor(logits), name=name)
