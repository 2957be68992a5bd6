"""Random tensors: each op draws from a generator of its own, made anew for every run.

The generator follows from the graph's seed, the op's and the number of the run, so the same program
draws the same numbers in every order and on every device.
"""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.work import per_element
from flowscope.ops.core.broadcasting import as_shape, as_sizes, check_shape_vector
from flowscope.ops.core.build import apply
from flowscope.ops.core.shape_rules import check_rank
from flowscope.ops.math.elementwise import add, multiply
from flowscope.ops.random.seeds import seed_of

__all__ = [
    "random_normal",
    "random_uniform",
    "truncated_normal",
]


@frozen
class _Random(Op, abstract=True, is_random=True, is_differentiable=False, host_inputs=(0,)):
    seed: int
    dtype: DType

    def infer(self, shape: Spec) -> Spec:
        check_shape_vector(shape)
        return Spec(self.dtype, shape.shape_value())

    def _drawn(self, draw: Any) -> Array:
        """Returns `draw(dtype)` in the op's dtype: NumPy draws float32 and float64 only."""
        dtype = self.dtype.np_dtype
        if dtype.itemsize >= 4:
            return draw(dtype)
        return draw("float32").astype(dtype)


@frozen
class RandomUniform(_Random, work=per_element(8e-9), keeps_finite=True):
    """Uniform numbers in [0, 1).

    Shapes: shape [n] -> shape
    """

    def kernel(self, xp: ArrayModule, rng: Any, shape: Array) -> Array:
        return self._drawn(lambda t: xp.asarray(rng.random(as_sizes(shape), t))[()])


@frozen
class RandomUniformInt(_Random, host_inputs=(0, 1, 2)):
    """Uniform integers in [low, high).

    Shapes: shape [n], low [], high [] -> shape
    Raises: InvalidArgumentError if high is not above low.
    """

    def infer(self, shape: Spec, low: Spec, high: Spec) -> Spec:  # type: ignore[override]
        for s in (low, high):
            if s.dtype is not self.dtype:
                raise expected_dtype(f"limits of {self.dtype}", s.dtype)
            check_rank(s, 0, "scalar limits")
        return super().infer(shape)

    def kernel(self, xp: ArrayModule, rng: Any, shape: Array, low: Array, high: Array) -> Array:
        if not low < high:
            raise expected("a maxval above minval", high, low)
        drawn = rng.integers(int(low), int(high), as_sizes(shape), self.dtype.np_dtype)
        return xp.asarray(drawn)[()]


@frozen
class RandomNormal(_Random, work=per_element(8e-9)):
    """Normal numbers of mean 0 and standard deviation 1.

    Shapes: shape [n] -> shape
    """

    def kernel(self, xp: ArrayModule, rng: Any, shape: Array) -> Array:
        return self._drawn(lambda t: xp.asarray(rng.standard_normal(as_sizes(shape), t))[()])


@frozen
class TruncatedNormal(_Random, work=per_element(8e-9)):
    """Normal numbers, drawn again where they lie more than two standard deviations from the mean.

    Shapes: shape [n] -> shape
    """

    def kernel(self, xp: ArrayModule, rng: Any, shape: Array) -> Array:
        sizes = as_sizes(shape)
        return self._drawn(lambda t: xp.asarray(draw_truncated(rng, sizes, t))[()])


def draw_truncated(rng: Any, sizes: Any, dtype: Any) -> Any:
    """Returns normal numbers within two standard deviations as a NumPy array."""
    flat = rng.standard_normal(sizes, dtype).reshape(-1) if sizes else rng.standard_normal(1, dtype)
    while (bad := abs(flat) > 2).any():
        flat[bad] = rng.standard_normal(int(bad.sum()), dtype)
    return flat.reshape(sizes)


def _float(dtype: Any) -> DType:
    found = as_dtype(dtype)
    if found.kind != "f":
        raise expected_dtype("a floating-point dtype", found)
    return found


def _scaled(drawn: Any, shape: Any, scale: Any, shift: Any, dtype: DType, name: str) -> Tensor:
    """Returns drawn * scale + shift in a scope of the function's name, which the last op gets."""
    graph = get_default_graph()
    scales = not (isinstance(scale, int | float) and scale == 1)
    shifts = not (isinstance(shift, int | float) and shift == 0)
    with graph.name_scope(name) as scope:
        x: Tensor = drawn(as_shape(shape, None), None if scales or shifts else scope)
        if scales:
            x = multiply(x, convert_to_tensor(scale, dtype, "scale"), "mul" if shifts else scope)
        if shifts:
            x = add(x, convert_to_tensor(shift, dtype, "shift"), scope)
        return x


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns uniform numbers in [minval, maxval).

    Args:
        shape: Shape of the result.
        minval: Lower limit, included.
        maxval: Upper limit, excluded; 1 by default, and needed for integers.
        dtype: Element type, floating-point, int32 or int64.
        seed: Seed of the op; by default it follows from the operation's name.
        name: Name of the operation.

    Example:
        >>> x = fs.random_uniform([1000], 2.0, 3.0, seed=1)
        >>> fs.Session().run(fs.reduce_mean(x)).round(1)
        np.float32(2.5)
    """
    found = as_dtype(dtype)
    name = name or "random_uniform"
    if found in (dtypes.int32, dtypes.int64):
        if maxval is None:
            raise expected("a maxval for integers", "none")
        limits = convert_to_tensor(minval, found), convert_to_tensor(maxval, found)
        op = RandomUniformInt(seed_of(seed, name), found)
        return apply(op, as_shape(shape, name), *limits, name=name)
    maxval = 1 if maxval is None else maxval
    if isinstance(maxval, Tensor) or isinstance(minval, Tensor):
        scale = convert_to_tensor(maxval, found) - convert_to_tensor(minval, found)
    else:
        scale = maxval - minval
    real = RandomUniform(seed_of(seed, name), _float(dtype))
    return _scaled(lambda s, n: apply(real, s, name=n), shape, scale, minval, found, name)


def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns normal numbers.

    Args:
        shape: Shape of the result.
        mean: Mean.
        stddev: Standard deviation.
        dtype: Element type, floating-point.
        seed: Seed of the op; by default it follows from the operation's name.
        name: Name of the operation.

    Example:
        >>> x = fs.random_normal([10_000], mean=5.0, seed=1)
        >>> fs.Session().run(fs.reduce_mean(x)).round(1)
        np.float32(5.0)
    """
    name, found = name or "random_normal", _float(dtype)
    op = RandomNormal(seed_of(seed, name), found)
    return _scaled(lambda s, n: apply(op, s, name=n), shape, stddev, mean, found, name)


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns normal numbers none of which lies more than two standard deviations from the mean."""
    name, found = name or "truncated_normal", _float(dtype)
    op = TruncatedNormal(seed_of(seed, name), found)
    return _scaled(lambda s, n: apply(op, s, name=n), shape, stddev, mean, found, name)
