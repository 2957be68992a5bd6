"""Random tensors that follow from a seed given as a tensor, and from nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.constant import convert_to_tensor, get_static_value
from flowscope.graph.op import FROM_0, Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.unsupported import refuse
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import broadcast, compatible, text
from flowscope.graph.values.work import per_element
from flowscope.ops.core.broadcasting import as_shape, as_sizes, check_shape_vector, unbroadcast
from flowscope.ops.core.build import apply
from flowscope.ops.core.shape_rules import check_kind, check_rank, check_shape
from flowscope.ops.math.elementwise import multiply, realdiv
from flowscope.ops.random.distributions import RandomGammaGrad, gamma_numbers, host
from flowscope.ops.random.normal_and_uniform import _float, _scaled, draw_truncated

__all__: list[str] = []

_WORD = (1 << 64) - 1


def check_seed(seed: Spec) -> None:
    """Raises unless this can be the seed of a stateless op: two integers."""
    if seed.dtype.name not in ("int32", "int64"):
        raise expected_dtype("a seed of two int32 or int64", seed.dtype)
    check_shape(seed, (2,), "a seed of two integers")


def generator_of(seed: Array) -> Any:
    """Returns the generator of a seed: Philox, as everywhere, with the seed as its key."""
    return np.random.Generator(np.random.Philox(key=[v & _WORD for v in seed.tolist()]))


class _Stateless(Op, abstract=True, is_differentiable=False, host_inputs=(0, 1)):
    dtype: DType

    def infer(self, shape: Spec, seed: Spec, *parameters: Spec) -> Spec:
        check_shape_vector(shape)
        check_seed(seed)
        dims = shape.shape_value()
        for p in parameters:
            if not compatible(broadcast(dims, p.shape), dims):
                raise expected(f"parameters that fit shape {text(dims)}", p.shape)
        return Spec(self.dtype, dims)

    def _made(self, xp: ArrayModule, drawn: Any) -> Array:
        return xp.asarray(drawn).astype(self.dtype.np_dtype)[()]

    def _wide(self) -> str:
        """Returns the dtype to draw in: NumPy draws float32 and float64 only."""
        return "float64" if self.dtype is dtypes.float64 else "float32"


@frozen
class StatelessUniform(_Stateless, work=per_element(8e-9)):
    """Uniform numbers in [0, 1).

    Shapes: shape [n], seed [2] -> shape
    """

    dtype: DType

    def kernel(self, xp: ArrayModule, shape: Array, seed: Array) -> Array:
        return self._made(xp, generator_of(seed).random(as_sizes(shape), self._wide()))


@frozen
class StatelessUniformInt(_Stateless, host_inputs=FROM_0):
    """Uniform integers in [low, high), or all that the dtype has if there are no limits.

    Shapes: shape [n], seed [2], low and high [] -> shape
    """

    dtype: DType

    def kernel(self, xp: ArrayModule, shape: Array, seed: Array, *limits: Array) -> Array:
        low, high = [int(v) for v in limits] or [self.dtype.min, self.dtype.max + 1]
        if not low < high:
            raise expected("a maxval above minval", high, low)
        rng, sizes = generator_of(seed), as_sizes(shape)
        return self._made(xp, rng.integers(low, high - 1, sizes, self.dtype.np_dtype, True))


@frozen
class StatelessNormal(_Stateless, work=per_element(8e-9)):
    """Normal numbers of mean 0 and standard deviation 1.

    Shapes: shape [n], seed [2] -> shape
    """

    dtype: DType

    def kernel(self, xp: ArrayModule, shape: Array, seed: Array) -> Array:
        rng = generator_of(seed)
        return self._made(xp, rng.standard_normal(as_sizes(shape), self._wide()))


@frozen
class StatelessTruncatedNormal(_Stateless, work=per_element(8e-9)):
    """Normal numbers, drawn again where they lie more than two standard deviations from the mean.

    Shapes: shape [n], seed [2] -> shape
    """

    dtype: DType

    def kernel(self, xp: ArrayModule, shape: Array, seed: Array) -> Array:
        rng = generator_of(seed)
        return self._made(xp, draw_truncated(rng, as_sizes(shape), self._wide()))


@frozen
class StatelessGamma(
    _Stateless, is_differentiable=True, grad_reads=("y", "alpha"), devices=("CPU",)
):
    """Numbers of gamma distributions with scale 1.

    Shapes: shape [n], seed [2], alpha broadcast to shape -> shape
    """

    dtype: DType

    def infer(self, shape: Spec, seed: Spec, alpha: Spec) -> Spec:  # type: ignore[override]
        check_kind(alpha.dtype, "f")
        return super().infer(shape, seed, alpha)

    def grad(self, g: Tensor, y: Tensor, shape: Tensor, seed: Tensor, alpha: Tensor) -> Any:
        slope = apply(RandomGammaGrad(), alpha, y)
        return None, None, unbroadcast(multiply(g, slope), alpha, y)

    def kernel(self, xp: ArrayModule, shape: Array, seed: Array, alpha: Array) -> Array:
        return gamma_numbers(xp, generator_of(seed), as_sizes(shape), alpha)


@frozen
class StatelessPoisson(_Stateless, devices=("CPU",)):
    """Numbers of Poisson distributions.

    Shapes: shape [n], seed [2], rate broadcast to shape -> shape
    """

    dtype: DType

    def kernel(self, xp: ArrayModule, shape: Array, seed: Array, rate: Array) -> Array:
        return self._made(xp, generator_of(seed).poisson(host(rate), as_sizes(shape)))


@frozen
class StatelessBinomial(_Stateless, devices=("CPU",)):
    """Numbers of successes.

    Shapes: shape [n], seed [2], counts and probabilities broadcast to shape -> shape
    """

    dtype: DType

    def kernel(
        self, xp: ArrayModule, shape: Array, seed: Array, counts: Array, probs: Array
    ) -> Array:
        times = host(counts).astype(np.int64)
        return self._made(xp, generator_of(seed).binomial(times, host(probs), as_sizes(shape)))


@frozen
class StatelessCategorical(Op, is_differentiable=False, host_inputs=(1,)):
    """Classes drawn by their unnormalised log-probabilities.

    Shapes: logits [batch, classes], seed [2] -> [batch, num]
    """

    num: int
    dtype: DType

    def infer(self, logits: Spec, seed: Spec) -> Spec:
        check_kind(logits.dtype, "f")
        check_seed(seed)
        check_rank(logits, 2, "logits of rank 2")
        return Spec(self.dtype, (None if logits.shape is None else logits.shape[0], self.num))

    def kernel(self, xp: ArrayModule, logits: Array, seed: Array) -> Array:
        rows, classes = logits.shape
        noise = xp.asarray(generator_of(seed).gumbel(size=(rows, self.num, classes)))
        return (logits[:, None, :] + noise).argmax(axis=-1).astype(self.dtype.np_dtype)


# -- functions ------------------------------------------------------------------------------------


def _seed_of(seed: Any) -> Tensor:
    return convert_to_tensor(seed, None, None, dtypes.int32)


def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """Returns uniform numbers in [minval, maxval), which follow from the seed alone.

    Args:
        shape: Shape of the result.
        seed: Two integers; equal ones give equal numbers, wherever and however often it runs.
        minval: Lower limit, included; None, with maxval, for all integers that the dtype has.
        maxval: Upper limit, excluded; 1 by default, and needed for integers.
        dtype: Element type.
        name: Name of the operation.
        alg: "auto_select": there is one generator of numbers.
    """
    refuse("random.stateless_uniform", alg=alg)
    found, name, given = as_dtype(dtype), name or "stateless_random_uniform", _seed_of(seed)
    if found.is_integer:
        op = StatelessUniformInt(found)
        if minval is None and maxval is None:
            return apply(op, as_shape(shape, name), given, name=name)
        if maxval is None:
            raise expected("a maxval for integers", "none")
        limits = convert_to_tensor(minval, found), convert_to_tensor(maxval, found)
        return apply(op, as_shape(shape, name), given, *limits, name=name)
    maxval = 1 if maxval is None else maxval
    if isinstance(maxval, Tensor) or isinstance(minval, Tensor):
        scale = convert_to_tensor(maxval, found) - convert_to_tensor(minval, found)
    else:
        scale = maxval - minval
    real = StatelessUniform(_float(dtype))
    return _scaled(lambda s, n: apply(real, s, given, name=n), shape, scale, minval, found, name)


def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """Returns normal numbers, which follow from the seed alone; see `stateless_uniform`."""
    refuse("random.stateless_normal", alg=alg)
    op, given = StatelessNormal(_float(dtype)), _seed_of(seed)
    name = name or "stateless_random_normal"
    return _scaled(lambda s, n: apply(op, s, given, name=n), shape, stddev, mean, op.dtype, name)


def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """Returns normal numbers within two standard deviations, which follow from the seed alone."""
    refuse("random.stateless_truncated_normal", alg=alg)
    op, given = StatelessTruncatedNormal(_float(dtype)), _seed_of(seed)
    name = name or "stateless_truncated_normal"
    return _scaled(lambda s, n: apply(op, s, given, name=n), shape, stddev, mean, op.dtype, name)


def stateless_gamma(
    shape: Any,
    seed: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Returns numbers of gamma distributions, which follow from the seed alone.

    Args:
        shape: Shape of the result, to which the parameters are broadcast.
        seed: Two integers.
        alpha: Shape parameters, above 0.
        beta: Rates, 1 by default.
        dtype: Element type.
        name: Name scope of the operations.
    """
    from flowscope.graph.default import get_default_graph

    op = StatelessGamma(_float(dtype))
    with get_default_graph().name_scope(name or "stateless_gamma"):
        a = convert_to_tensor(alpha, op.dtype, "alpha")
        drawn = apply(op, as_shape(shape, None), _seed_of(seed), a)
        return drawn if beta is None else realdiv(drawn, convert_to_tensor(beta, op.dtype, "beta"))


def stateless_poisson(
    shape: Any, seed: Any, lam: Any, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Returns numbers of Poisson distributions of rates `lam`, which follow from the seed alone."""
    name = name or "stateless_poisson"
    op = StatelessPoisson(as_dtype(dtype))
    return apply(op, as_shape(shape, name), _seed_of(seed), convert_to_tensor(lam), name=name)


def stateless_binomial(
    shape: Any,
    seed: Any,
    counts: Any,
    probs: Any,
    output_dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Returns numbers of successes in `counts` trials, which follow from the seed alone."""
    name = name or "stateless_random_binomial"
    op = StatelessBinomial(as_dtype(output_dtype))
    parameters = convert_to_tensor(counts), convert_to_tensor(probs)
    return apply(op, as_shape(shape, name), _seed_of(seed), *parameters, name=name)


def stateless_categorical(
    logits: Any,
    num_samples: Any,
    seed: Any,
    dtype: Any = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Returns classes drawn by log-probabilities, which follow from the seed alone.

    Args:
        logits: Log-probabilities, [batch, classes].
        num_samples: How many for each row.
        seed: Two integers.
        dtype: int32 or int64.
        name: Name of the operation.
    """
    count = get_static_value(num_samples)
    if count is None or count.shape != ():
        raise expected("a number of samples known while the graph is built", repr(num_samples))
    op = StatelessCategorical(int(count), as_dtype(dtype))
    name = name or "stateless_categorical"
    return apply(op, convert_to_tensor(logits), _seed_of(seed), name=name)


def stateless_multinomial(
    logits: Any,
    num_samples: Any,
    seed: Any,
    output_dtype: Any = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Returns classes drawn by log-probabilities; see `stateless_categorical`."""
    return stateless_categorical(logits, num_samples, seed, output_dtype, name)
