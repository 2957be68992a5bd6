"""Random tensors: each op draws from a generator of its own, made anew for every run.

The generator follows from the graph's seed, the op's and the number of the run, so the same program
draws the same numbers in every order and on every device.
"""

from __future__ import annotations

import operator
import zlib
from typing import Any

from flowscope.graph import dtypes
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.dtypes import DType, as_dtype
from flowscope.graph.expected import expected, expected_dtype
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.ops.core.broadcasting import as_shape, as_sizes, check_shape_vector
from flowscope.ops.core.build import apply
from flowscope.ops.core.shape_rules import check_kind, check_rank
from flowscope.ops.math.elementwise import add, multiply

__all__ = [
    "get_seed",
    "multinomial",
    "random_normal",
    "random_shuffle",
    "random_uniform",
    "set_random_seed",
    "truncated_normal",
]


#: Stands in for the graph's seed where only the op has one.
DEFAULT_GRAPH_SEED = 87654321
_MAX_SEED = 2**31 - 1
#: Seeds from here on follow from operations' names.
NAME_SEEDS = 1 << 64


@frozen
class _Random(Op, abstract=True, is_random=True, is_differentiable=False):
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
class RandomUniform(_Random):
    """Uniform numbers in [0, 1).

    Shapes: shape [n] -> shape
    """

    def kernel(self, xp: ArrayModule, rng: Any, shape: Array) -> Array:
        return self._drawn(lambda t: xp.asarray(rng.random(as_sizes(shape), t))[()])


@frozen
class RandomUniformInt(_Random):
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
class RandomNormal(_Random):
    """Normal numbers of mean 0 and standard deviation 1.

    Shapes: shape [n] -> shape
    """

    def kernel(self, xp: ArrayModule, rng: Any, shape: Array) -> Array:
        return self._drawn(lambda t: xp.asarray(rng.standard_normal(as_sizes(shape), t))[()])


@frozen
class TruncatedNormal(_Random):
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


@frozen
class RandomShuffle(Op, is_random=True, is_differentiable=False):
    """The slices along the first axis in random order."""

    seed: int

    def infer(self, x: Spec) -> Spec:
        return x.like()

    def kernel(self, xp: ArrayModule, rng: Any, x: Array) -> Array:
        return x[xp.asarray(rng.permutation(x.shape[0]))] if x.ndim else x


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


def set_random_seed(seed: int | None) -> None:
    """Sets the seed of the default graph: its random ops draw the same numbers in every session.

    Args:
        seed: An integer; None takes the seed away.
    """
    try:
        get_default_graph().seed = None if seed is None else operator.index(seed)
    except TypeError:
        raise expected_dtype("an integer seed", repr(seed)) from None


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """Returns (graph seed, op seed), both None where nothing is set.

    A graph without a seed counts as one with a fixed seed for an op that has one. In a graph with a
    seed an op without one gets the number of operations so far. Both lie in the range of int32,
    and (0, 0), which stands for no seed elsewhere, is never returned.
    """
    graph = get_default_graph()
    graph_seed = graph.seed
    if graph_seed is None and op_seed is None:
        return None, None
    if graph_seed is None:
        graph_seed = DEFAULT_GRAPH_SEED
    op_seed = len(graph) if op_seed is None else op_seed
    found = graph_seed % _MAX_SEED, op_seed % _MAX_SEED
    return (0, _MAX_SEED) if found == (0, 0) else found


def _seed(seed: int | None, name: str) -> int:
    """Returns the op's seed: the user's, or else one from its name, which a rebuild keeps."""
    if seed is not None:
        return int(seed)
    full = get_default_graph().unique_name(name, mark_as_used=False)
    return NAME_SEEDS + zlib.crc32(full.encode())


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
    """
    found = as_dtype(dtype)
    name = name or "random_uniform"
    if found in (dtypes.int32, dtypes.int64):
        if maxval is None:
            raise expected("a maxval for integers", "none")
        limits = convert_to_tensor(minval, found), convert_to_tensor(maxval, found)
        op = RandomUniformInt(_seed(seed, name), found)
        return apply(op, as_shape(shape, name), *limits, name=name)
    maxval = 1 if maxval is None else maxval
    if isinstance(maxval, Tensor) or isinstance(minval, Tensor):
        scale = convert_to_tensor(maxval, found) - convert_to_tensor(minval, found)
    else:
        scale = maxval - minval
    real = RandomUniform(_seed(seed, name), _float(dtype))
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
    """
    name, found = name or "random_normal", _float(dtype)
    op = RandomNormal(_seed(seed, name), found)
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
    op = TruncatedNormal(_seed(seed, name), found)
    return _scaled(lambda s, n: apply(op, s, name=n), shape, stddev, mean, found, name)


def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """Returns the slices of `value` along its first axis in random order."""
    op = RandomShuffle(_seed(seed, name or "RandomShuffle"))
    return apply(op, convert_to_tensor(value), name=name)


def multinomial(
    logits: Any,
    num_samples: int,
    seed: int | None = None,
    name: str | None = None,
    output_dtype: Any = dtypes.int64,
) -> Tensor:
    """Returns `num_samples` classes per row, drawn by their unnormalised log-probabilities."""
    op = Multinomial(_seed(seed, name or "Multinomial"), num_samples, as_dtype(output_dtype))
    return apply(op, convert_to_tensor(logits), name=name)
