"""The ops of normalisation: batches in one op each way, and local responses."""

from __future__ import annotations

from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, compatible, text
from flowscope.ops.array.arrays import size
from flowscope.ops.array.shaping import reshape
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.core.casting import cast
from flowscope.ops.core.shape_rules import check_kind, check_same
from flowscope.ops.kernels.onednn_norms import normalized, normalized_gradient
from flowscope.ops.kernels.sums import column_sums, laid_out, row_blocks
from flowscope.ops.math.elementwise import (
    add,
    multiply,
    negative,
    pow,
    realdiv,
    rsqrt,
    square,
    subtract,
)
from flowscope.ops.math.reductions import reduce_sum


@frozen
class _BatchNorm(Op, abstract=True, calls=20):
    """What the two ops share.

    Attributes:
        epsilon: What is added to variances.
        data_format: Where the channels are.
        is_training: Whether the moments are the batch's own.
    """

    epsilon: float
    exponential_avg_factor: float = 1.0
    data_format: str = "NHWC"
    is_training: bool = True

    def check(self, x: Spec, *vectors: Spec) -> int | None:
        """Checks the inputs; returns how many channels there are, if that is known."""
        check_kind(x.dtype, "f")
        rank = len(self.data_format)
        if x.rank not in (None, rank):
            raise expected(f"rank {rank}", x.shape)
        wide = dtypes.float32 if x.dtype.size <= 2 else x.dtype
        channels = None if x.shape is None else x.shape[self.axis]
        for i, s in enumerate(vectors):
            if s.dtype is not wide:
                raise expected_dtype(f"numbers per channel of {wide}", s.dtype)
            # The moments are [0] where nothing is averaged.
            may_lack = i >= 2 and self.is_training and self.exponential_avg_factor == 1.0
            if not (may_lack and s.shape == (0,)) and not compatible(s.shape, (channels,)):
                raise expected(f"one number per channel: {text((channels,))}", s.shape)
            if channels is None and s.shape is not None and s.shape != (0,):
                channels = s.shape[0]
        return channels

    @property
    def axis(self) -> int:
        """The number of the channels' axis."""
        return self.data_format.index("C")

    def check_ranks(self, x: Array, *vectors: Array) -> None:
        """Raises InvalidArgumentError unless these are images, and vectors."""
        if x.ndim != len(self.data_format) or any(v.ndim != 1 for v in vectors):
            raise InvalidArgumentError(
                f"expected rank {len(self.data_format)} and numbers per channel, got "
                f"{text(x.shape)} and {', '.join(text(v.shape) for v in vectors)}"
            )

    def rows(self, xp: ArrayModule, x: Array) -> Array:
        """Returns the images as rows of channels, in float32 at least."""
        if self.axis == 1:
            x = xp.moveaxis(x, 1, -1)
        flat = x.reshape(-1, x.shape[-1])
        return flat.astype(xp.float32) if flat.dtype.itemsize <= 2 else flat

    def shaped(self, xp: ArrayModule, rows: Array, x: Array) -> Array:
        """Returns rows of channels in x's shape and dtype."""
        if self.axis == 1:
            last = (x.shape[0], *x.shape[2:], x.shape[1])
            rows = xp.ascontiguousarray(xp.moveaxis(rows.reshape(last), -1, 1))
        return rows.reshape(x.shape).astype(x.dtype, copy=False)

    def vectors(self, *tensors: Tensor) -> list[Tensor]:
        """Returns numbers per channel in a shape that is broadcast along the channels."""
        if self.axis != 1:
            return list(tensors)
        shape = [-1, *[1] * (len(self.data_format) - 2)]
        return [reshape(t, shape) for t in tensors]

    def summed(self, x: Tensor) -> Tensor:
        """Returns sums over all but the channels."""
        return reduce_sum(x, [i for i in range(len(self.data_format)) if i != self.axis])


class FusedBatchNormV3(_BatchNorm, grad_reads=("x", "scale", "y")):
    """Images normalised per channel: (x - mean) / sqrt(variance + epsilon) * scale + offset.

    In training the moments are the batch's own, and moving averages of them come out; the variance
    that is averaged is the unbiased one.

    Shapes: x [..., c], scale [c], offset [c], mean [c] or [0], variance [c] or [0]
        -> y [..., c], means [c], variances [c], and for the gradient the moments used [c], [c]
    Source: Ioffe & Szegedy 2015.
    """

    def infer(self, x: Spec, scale: Spec, offset: Spec, mean: Spec, variance: Spec) -> Any:
        channels = self.check(x, scale, offset, mean, variance)
        per_channel = Spec(scale.dtype, (channels,))
        dims: Dims = x.shape
        if dims is None:
            dims = (None,) * len(self.data_format)
        dims = (*dims[: self.axis], channels, *dims[self.axis + 1 :])
        return Spec(x.dtype, dims), per_channel, per_channel, per_channel, per_channel

    def grad(
        self, g: Any, y: Any, x: Tensor, scale: Tensor, offset: Tensor, mean: Tensor, variance: Any
    ) -> Any:
        """The moving averages count as constants, as in the original."""
        if g[0] is None:
            return (None,) * 5
        op = FusedBatchNormGradV3(**self.attributes())
        parts = apply_many(op, g[0], x, scale, y[3], y[4])
        return *parts, None, None

    def kernel(
        self, xp: ArrayModule, x: Array, scale: Array, offset: Array, mean: Array, variance: Array
    ) -> Any:
        self.check_ranks(x, scale, offset, mean, variance)
        rows = self.rows(xp, x)
        n = len(rows)
        found = normalized(rows, scale, offset, self.epsilon) if self.is_training else None
        if found is not None:
            y, used, spread = found
            return self._averaged(self.shaped(xp, y, x), used, spread, n, mean, variance)
        wide, side = laid_out(xp, rows)
        out = xp.empty(wide.shape, wide.dtype)
        if self.is_training:
            used = column_sums(xp, rows) / max(n, 1)
            spread = _centred(xp, wide, used, side, out) / max(n, 1)
            given, shift = out, offset
        else:
            used, spread = mean.copy(), variance.copy()
            given = wide
        factor = xp.reciprocal(xp.sqrt(spread + rows.dtype.type(self.epsilon))) * scale
        if not self.is_training:
            shift = offset - used * factor
        times, plus = xp.tile(factor, side), xp.tile(shift, side)
        for some in row_blocks(xp, wide):
            xp.multiply(given[some], times, out=out[some])
            out[some] += plus
        y = self.shaped(xp, out, x)
        if not self.is_training:
            return y, mean.copy(), variance.copy(), used, spread
        return self._averaged(y, used, spread, n, mean, variance)

    def _averaged(
        self, y: Array, used: Array, spread: Array, n: int, mean: Array, variance: Array
    ) -> Any:
        """Returns the outputs in training: the moving averages take in the batch's moments."""
        unbiased = spread * spread.dtype.type(n / max(n - 1, 1))
        f = self.exponential_avg_factor
        if f == 1.0:
            return y, used.copy(), unbiased, used, spread
        keep, new = spread.dtype.type(1 - f), spread.dtype.type(f)
        return y, mean * keep + used * new, variance * keep + unbiased * new, used, spread


class FusedBatchNormGradV3(_BatchNorm, grad_reads=("dy", "x", "scale", "mean", "variance")):
    """The gradient of FusedBatchNormV3 for x, scale and offset.

    Shapes: dy [..., c], x [..., c], scale [c], mean [c], variance [c] -> dx [..., c], [c], [c]
    """

    def infer(self, dy: Spec, x: Spec, scale: Spec, mean: Spec, variance: Spec) -> Any:
        check_same(dy, x)
        channels = self.check(x, scale, mean, variance)
        if not compatible(dy.shape, x.shape):
            raise expected(f"a gradient of shape {text(x.shape)}", dy.shape)
        per_channel = Spec(scale.dtype, (channels,))
        dims = x.shape if x.shape is not None else (None,) * len(self.data_format)
        return Spec(x.dtype, dims), per_channel, per_channel

    def kernel(
        self, xp: ArrayModule, dy: Array, x: Array, scale: Array, mean: Array, variance: Array
    ) -> Any:
        self.check_ranks(x, scale, mean, variance)
        g, rows = self.rows(xp, dy), self.rows(xp, x)
        if self.is_training:
            found = normalized_gradient(g, rows, scale, mean, variance, self.epsilon)
            if found is not None:
                return self.shaped(xp, found[0], x), found[1], found[2]
        n = max(len(rows), 1)
        inverse = xp.reciprocal(xp.sqrt(variance + rows.dtype.type(self.epsilon)))
        to_offset = column_sums(xp, g)
        # Sums of g * (x - mean) are sums of g * x less mean times those of g, but far less exact.
        wide, side = laid_out(xp, rows)
        slopes, _ = laid_out(xp, g)
        out = xp.empty(wide.shape, wide.dtype)
        to_scale = _centred(xp, wide, mean, side, out, slopes) * inverse
        factor = scale * inverse
        parts = [factor]
        if self.is_training:
            parts += [factor * inverse * to_scale / n, factor * to_offset / n]
        times = [xp.tile(p, side) for p in parts]
        for some in row_blocks(xp, wide):
            part = out[some]
            if not self.is_training:
                xp.multiply(slopes[some], times[0], out=part)
                continue
            part *= times[1]
            part += times[2]
            xp.subtract(slopes[some] * times[0], part, out=part)
        return self.shaped(xp, out, x), to_scale, to_offset

    def grad(
        self,
        g: Any,
        y: Any,
        dy: Tensor,
        x: Tensor,
        scale: Tensor,
        mean: Tensor,
        variance: Tensor,
    ) -> Any:
        """The moments are functions of x in training, and constants otherwise.

        With u = (x - mean) * r and r = 1 / sqrt(variance + epsilon): dx = scale * r * D(dy), where
        D takes out of dy its mean and its part along u; D is its own transpose. The rest is the
        product rule; r and u depend on x through the moments.
        """
        hx, hs, ho = g
        cotangents = self._second(hx, hs, ho, dy, x, scale, mean, variance)
        return (*cotangents, None, None)

    def _second(self, hx: Any, hs: Any, ho: Any, dy: Tensor, x: Tensor, scale: Tensor, mean: Tensor,
                variance: Tensor) -> tuple[Any, Any, Any]:  # fmt: skip
        wide = scale.dtype
        dy32, x32 = cast(dy, wide), cast(x, wide)
        hx = None if hx is None else cast(hx, wide)
        s, m, v = self.vectors(scale, mean, variance)
        r = rsqrt(add(v, self.epsilon))
        u = multiply(subtract(x32, m), r)
        if not self.is_training:
            return self._constant_moments(hx, hs, ho, dy, x, dy32, s, r, u)
        n = realdiv(cast(_size(x), wide), cast(_size(scale), wide))

        def mean_of(t: Tensor) -> Tensor:
            (wrapped,) = self.vectors(realdiv(self.summed(t), n))
            return wrapped

        def projected(t: Tensor) -> Tensor:
            """D(t)."""
            return subtract(subtract(t, mean_of(t)), multiply(u, mean_of(multiply(t, u))))

        to_dy: Any = None
        to_u: Any = None
        to_scale: Any = None
        to_r: Any = None
        if hx is not None:
            d = projected(dy32)
            sr = multiply(s, r)
            to_dy = multiply(sr, projected(hx))
            product = self.summed(multiply(hx, d))
            to_scale = multiply(product, self._flat(r))
            to_r = multiply(product, scale)
            # d(D(dy))/du, applied to hx: both places where u stands.
            inner = add(
                multiply(dy32, mean_of(multiply(hx, u))), multiply(hx, mean_of(multiply(dy32, u)))
            )
            to_u = negative(multiply(sr, inner))
        if hs is not None:
            (per,) = self.vectors(hs)
            to_dy = _plus(to_dy, multiply(per, u))
            to_u = _plus(to_u, multiply(per, dy32))
        if ho is not None:
            (per,) = self.vectors(ho)
            to_dy = _plus(to_dy, add(per, multiply(0.0, dy32)))
        to_x: Any = None
        if to_u is not None:
            # u normalises x, so its own gradient is the first-order formula with scale 1.
            to_x = multiply(r, projected(to_u))
        if to_r is not None:
            # r = (variance + eps)^(-1/2), and d variance / dx = 2 (x - mean) / n.
            (per,) = self.vectors(multiply(to_r, square(self._flat(r))))
            to_x = _plus(to_x, negative(realdiv(multiply(per, u), n)))
        return _as(to_dy, dy), _as(to_x, x), to_scale

    def _constant_moments(
        self, hx: Any, hs: Any, ho: Any, dy: Tensor, x: Tensor, dy32: Tensor, s: Any, r: Any, u: Any
    ) -> tuple[Any, Any, Any]:
        to_dy: Any = None
        to_x: Any = None
        to_scale: Any = None
        if hx is not None:
            to_dy = multiply(hx, multiply(s, r))
            to_scale = multiply(self.summed(multiply(hx, dy32)), self._flat(r))
        if hs is not None:
            (per,) = self.vectors(hs)
            to_dy = _plus(to_dy, multiply(per, u))
            to_x = multiply(multiply(per, r), dy32)
        if ho is not None:
            (per,) = self.vectors(ho)
            to_dy = _plus(to_dy, add(per, multiply(0.0, dy32)))
        return _as(to_dy, dy), _as(to_x, x), to_scale

    def _flat(self, t: Tensor) -> Tensor:
        return reshape(t, [-1]) if self.axis == 1 else t


def _centred(
    xp: ArrayModule, x: Array, mean: Array, side: int, out: Array, other: Array | None = None
) -> Array:
    """Writes x - mean to `out`; returns the sums, per channel, of that times itself (or another).

    Shapes: x [m, side * c], mean [c], out and other as x -> [c]
    """
    repeated = xp.tile(mean, side)
    total = xp.zeros(x.shape[1], x.dtype)
    for some in row_blocks(xp, x):
        part = xp.subtract(x[some], repeated, out=out[some])
        total += (part * (part if other is None else other[some])).sum(axis=0)
    return total.reshape(side, -1).sum(axis=0)


def _size(x: Tensor) -> Tensor:
    return size(x)


def _plus(total: Tensor | None, part: Tensor) -> Tensor:
    return part if total is None else add(total, part)


def _as(t: Tensor | None, like: Tensor) -> Tensor | None:
    return None if t is None else cast(t, like.dtype)


@frozen
class LRN(Op, grad_reads=("x",), accumulates=True):
    """Each element over (bias + alpha * the sum of squares of its neighbours) ** beta.

    The neighbours are the elements of the channels (the last axis) up to a radius away.

    Shapes: x [..., c] -> [..., c]
    Source: Krizhevsky, Sutskever & Hinton 2012, section 3.3.
    """

    depth_radius: int = 5
    bias: float = 1.0
    alpha: float = 1.0
    beta: float = 0.5

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "f")
        if x.shape == ():
            raise expected("rank 1 at least", "a scalar")
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        """With n = bias + alpha * sums: g / n^beta - 2 alpha beta x * sums(g x / n^(beta + 1))."""
        n = add(multiply(_neighbours(self.depth_radius, square(x)), self.alpha), self.bias)
        lowered = multiply(g, pow(n, -self.beta))
        sums = _neighbours(self.depth_radius, multiply(multiply(g, x), pow(n, -self.beta - 1.0)))
        return (subtract(lowered, multiply(multiply(2 * self.alpha * self.beta, x), sums)),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        n = windows_of(xp, xp.square(x), self.depth_radius)
        n *= x.dtype.type(self.alpha)
        n += x.dtype.type(self.bias)
        if self.beta == 0.5:
            return x / xp.sqrt(n)
        return x * n ** x.dtype.type(-self.beta)


def windows_of(xp: ArrayModule, x: Array, radius: int) -> Array:
    """Returns sums over the last axis of each element and its neighbours."""
    y = x.copy()
    for step in range(1, min(radius, x.shape[-1] - 1) + 1):
        y[..., step:] += x[..., :-step]
        y[..., :-step] += x[..., step:]
    return y


@frozen
class NeighbourSum(Op, accumulates=True):
    """The sum of each element and its neighbours along the last axis, up to a radius away.

    Shapes: x [..., c] -> [..., c]
    """

    radius: int

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "f")
        if x.rank == 0:
            raise expected("rank 1 at least", "a scalar")
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (_neighbours(self.radius, g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return windows_of(xp, x, self.radius)


def _neighbours(radius: int, x: Tensor) -> Tensor:
    return apply(NeighbourSum(radius), x)
