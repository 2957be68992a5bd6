"""Pools: maxima and means under moving windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from flowscope.errors import InvalidArgumentError
from flowscope.graph import dtypes
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.dtypes import DType, as_dtype
from flowscope.graph.op import Array, ArrayModule, Op, Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.shapes import Dims, compatible, text
from flowscope.ops.broadcasting import as_sizes, check_shape_vector
from flowscope.ops.build import apply, apply_many
from flowscope.ops.pooling_kernels import (
    counts,
    pick_max,
    spread_max,
    spread_sum,
    window_max,
    window_sum,
)
from flowscope.ops.shaping import expand_dims, shape_of, squeeze
from flowscope.ops.table import check_kind, check_same
from flowscope.ops.windows import (
    FORMATS,
    Axis,
    Windowed,
    as_format,
    as_padding,
    as_steps,
    axis_of,
    count,
)

__all__ = [
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "avg_pool_v2",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool_v2",
    "max_pool_with_argmax",
    "pool",
]


@dataclass(frozen=True)
class Pooling(Windowed, abstract=True):
    """Base of pools. Windows may span any axis, channels and batch included.

    Attributes:
        ksize: The windows' size along each axis; dilations: the distance of their elements.
    """

    ksize: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    memory_order: ClassVar[str | None] = "K"

    def rates(self) -> tuple[int, ...]:
        """Returns the dilation along each axis."""
        return self.dilations or (1,) * len(self.ksize)

    def pairs(self) -> list[tuple[int, int]]:
        """Returns the explicit margins of each axis."""
        pads = self.explicit_paddings or (0, 0) * len(self.ksize)
        return list(zip(pads[::2], pads[1::2], strict=True))

    def pooled(self, dims: Dims) -> Dims:
        """Returns the output's shape as far as it is known."""
        if dims is None:
            return (None,) * len(self.ksize)
        if len(dims) != len(self.ksize):
            raise InvalidArgumentError(f"expected rank {len(self.ksize)}, got {text(dims)}")
        parts = zip(dims, self.ksize, self.strides, self.rates(), self.pairs(), strict=True)
        return tuple(count(d, k, s, r, self.padding, p) for d, k, s, r, p in parts)

    def every_axis(self, dims: Sequence[int]) -> tuple[Axis, ...]:
        """Returns all axes of an array of this shape."""
        self.pooled(tuple(dims))
        parts = zip(dims, self.ksize, self.strides, self.rates(), self.pairs(), strict=True)
        return tuple(axis_of(d, k, s, r, self.padding, p) for d, k, s, r, p in parts)

    def turned(self, op: type[Pooling]) -> Op:
        """Returns another op of the same attributes."""
        return op(**{k: v for k, v in self.attributes().items() if k in _NAMES})

    def check_gradient(self, dims: Dims, g: Dims) -> None:
        """Raises InvalidArgumentError unless g has the shape of the output."""
        if not compatible(self.pooled(dims), g):
            raise InvalidArgumentError(
                f"expected a gradient of shape {text(self.pooled(dims))}, got {text(g)}"
            )


_NAMES = frozenset(["strides", "padding", "data_format", "explicit_paddings", "ksize", "dilations"])


class MaxPooling(Pooling, abstract=True):
    """Base of the pools of maxima."""

    grad_reads: ClassVar[Any] = ("x",)
    backward: ClassVar[type[Pooling]]

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "fiu")
        return Spec(x.dtype, self.pooled(x.shape))

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(self.turned(self.backward), x, g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        y = window_max(xp, x, self.every_axis(x.shape))
        return x.copy() if y is x else y


class MaxPoolingGrad(Pooling, abstract=True):
    """Base of the gradients of pools of maxima."""

    grad_reads: ClassVar[Any] = ("x",)
    backward: ClassVar[type[Pooling]]

    def infer(self, x: Spec, g: Spec) -> Spec:
        check_same(x, g)
        self.check_gradient(x.shape, g.shape)
        return Spec(g.dtype, x.shape or (None,) * len(self.ksize))

    def grad(self, g: Tensor, y: Tensor, x: Tensor, dy: Tensor) -> Any:
        return None, apply(self.turned(self.backward), x, g)

    def kernel(self, xp: ArrayModule, x: Array, g: Array) -> Array:
        self.check_gradient(x.shape, g.shape)
        return spread_max(xp, x, g, self.every_axis(x.shape))


class MaxPoolingPick(Pooling, abstract=True):
    """Base of the gradients of those gradients."""

    grad_reads: ClassVar[Any] = ("x",)
    backward: ClassVar[type[Pooling]]

    def infer(self, x: Spec, values: Spec) -> Spec:
        check_same(x, values)
        if not compatible(x.shape, values.shape):
            raise InvalidArgumentError(
                f"expected values of shape {text(x.shape)}, got {text(values.shape)}"
            )
        return Spec(values.dtype, self.pooled(x.shape))

    def grad(self, g: Tensor, y: Tensor, x: Tensor, values: Tensor) -> Any:
        return None, apply(self.turned(self.backward), x, g)

    def kernel(self, xp: ArrayModule, x: Array, values: Array) -> Array:
        out = pick_max(xp, x, values, self.every_axis(x.shape))
        return values.copy() if out is values else out


class MeanPooling(Pooling, abstract=True):
    """Base of the pools of means; margins do not count."""

    backward: ClassVar[type[Pooling]]

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "f")
        return Spec(x.dtype, self.pooled(x.shape))

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(self.turned(self.backward), shape_of(x), g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        axes = self.every_axis(x.shape)
        y = window_sum(xp, x, axes)
        if y is x:
            return x.copy()
        y /= counts(xp, axes, x.dtype)
        return y


class MeanPoolingGrad(Pooling, abstract=True):
    """Base of the gradients of pools of means."""

    forward: ClassVar[type[Pooling]]

    def infer(self, sizes: Spec, g: Spec) -> Spec:
        check_shape_vector(sizes)
        dims = sizes.shape_value() or (None,) * len(self.ksize)
        self.check_gradient(dims, g.shape)
        return Spec(g.dtype, dims)

    def grad(self, g: Tensor, y: Tensor, sizes: Tensor, dy: Tensor) -> Any:
        return None, apply(self.turned(self.forward), g)

    def kernel(self, xp: ArrayModule, sizes: Array, g: Array) -> Array:
        dims = as_sizes(sizes)
        self.check_gradient(dims, g.shape)
        axes = self.every_axis(dims)
        return spread_sum(xp, g / counts(xp, axes, g.dtype), axes)


class MaxPool(MaxPooling):
    """The largest element under a moving window; NaN if one is.

    Shapes: [n, height, width, c] -> [n, height', width', c]
    """


class MaxPoolGrad(MaxPoolingGrad):
    """The gradient of MaxPool: it goes to the first of the largest elements.

    Shapes: x [n, height, width, c], g [n, height', width', c] -> x's
    """


class MaxPoolGradGrad(MaxPoolingPick):
    """The gradient of MaxPoolGrad for g: the values where the largest elements are.

    Shapes: x [n, height, width, c], values of x's -> [n, height', width', c]
    """


class MaxPool3D(MaxPooling):
    """The largest element under a moving window of a volume; NaN if one is.

    Shapes: [n, depth, height, width, c] -> [n, depth', height', width', c]
    """


class MaxPool3DGrad(MaxPoolingGrad):
    """The gradient of MaxPool3D: it goes to the first of the largest elements.

    Shapes: x [n, depth, height, width, c], g [n, depth', height', width', c] -> x's
    """


class MaxPool3DGradGrad(MaxPoolingPick):
    """The gradient of MaxPool3DGrad for g: the values where the largest elements are.

    Shapes: x [n, depth, height, width, c], values of x's -> [n, depth', height', width', c]
    """


class AvgPool(MeanPooling):
    """The mean under a moving window; of what lies in a margin nothing counts.

    Shapes: [n, height, width, c] -> [n, height', width', c]
    """


class AvgPoolGrad(MeanPoolingGrad):
    """The gradient of AvgPool.

    Shapes: sizes [4], g [n, height', width', c] -> sizes
    """

    forward = AvgPool


class AvgPool3D(MeanPooling):
    """The mean under a moving window of a volume.

    Shapes: [n, depth, height, width, c] -> [n, depth', height', width', c]
    """


class AvgPool3DGrad(MeanPoolingGrad):
    """The gradient of AvgPool3D.

    Shapes: sizes [5], g [n, depth', height', width', c] -> sizes
    """

    forward = AvgPool3D


MaxPool.backward, MaxPoolGrad.backward, MaxPoolGradGrad.backward = (
    MaxPoolGrad,
    MaxPoolGradGrad,
    MaxPoolGrad,
)
MaxPool3D.backward, MaxPool3DGrad.backward, MaxPool3DGradGrad.backward = (
    MaxPool3DGrad,
    MaxPool3DGradGrad,
    MaxPool3DGrad,
)
AvgPool.backward, AvgPool3D.backward = AvgPoolGrad, AvgPool3DGrad


@dataclass(frozen=True)
class MaxPoolWithArgmax(MaxPooling):
    """The largest element under a moving window, and its number in the image (or the batch).

    Shapes: [n, height, width, c] -> [n, height', width', c], [n, height', width', c]
    """

    dtype: DType = dtypes.int64
    include_batch_in_index: bool = False
    backward = MaxPoolGrad

    def infer(self, x: Spec) -> Any:
        y = super().infer(x)
        return y, y.like(self.dtype)

    def grad(self, g: Any, y: Any, x: Tensor) -> Any:
        return super().grad(g[0], y[0], x)

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        axes = self.every_axis(x.shape)
        first = 0 if self.include_batch_in_index else 1
        sizes = (1,) * first + x.shape[first:]
        numbers = xp.arange(int(xp.ones(sizes, bool).size), dtype=self.dtype.np_dtype)
        numbers = xp.broadcast_to(numbers.reshape(sizes), x.shape)
        places = pick_max(xp, x, numbers, axes)
        return super().kernel(xp, x), places.copy() if places is numbers else places


class MaxPoolWithArgmaxOutputs(NamedTuple):
    """What `max_pool_with_argmax` returns."""

    output: Tensor
    argmax: Tensor


def _op(
    kind: type[Pooling],
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: tuple[int, ...] = (),
    **more: Any,
) -> Any:
    """Returns an op from arguments as users write them."""
    spatial = 3 if "3D" in kind.__name__ else 2
    form = as_format(data_format, spatial)
    sizes = as_steps(ksize, spatial, form, "ksize")
    steps = as_steps(strides, spatial, form, "strides")
    if kind is AvgPool and not isinstance(padding, str):
        raise InvalidArgumentError(f'expected padding "SAME" or "VALID", got {padding!r}')
    name, margins = as_padding(padding, spatial, form)
    return kind(steps, name, form, margins, sizes, dilations, **more)


def _value(value: Any, other: Any) -> Any:
    if (value is None) == (other is None):
        raise InvalidArgumentError("expected one of `value` and `input`, got both or none")
    return convert_to_tensor(value if other is None else other)


def max_pool(
    value: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Returns the largest elements under a moving window.

    Args:
        value: Images, [n, height, width, channels].
        ksize: The window's size: one number, one per spatial axis, or one per axis.
        strides: Its steps, in the same way.
        padding: "SAME", "VALID", or a list of margins, [before, behind] for every axis.
        data_format: "NHWC" or "NCHW".
        name: Name of the operation.
        input: New name of `value`.
    """
    op = _op(MaxPool, ksize, strides, padding, data_format)
    return apply(op, _value(value, input), name=name)


def avg_pool(
    value: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Returns the means under a moving window; margins do not count.

    The arguments are those of `max_pool`, but that padding is "SAME" or "VALID".
    """
    op = _op(AvgPool, ksize, strides, padding, data_format)
    return apply(op, _value(value, input), name=name)


def max_pool2d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """Returns the largest elements under a moving window; as `max_pool`."""
    return max_pool(input, ksize, strides, padding, data_format, name or "MaxPool2d")


avg_pool2d = avg_pool


def max_pool3d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Returns the largest elements under a moving window of volumes; as `max_pool`."""
    op = _op(MaxPool3D, ksize, strides, padding, data_format)
    return apply(op, convert_to_tensor(input), name=name)


def avg_pool3d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Returns the means under a moving window of volumes; as `avg_pool`."""
    op = _op(AvgPool3D, ksize, strides, padding, data_format)
    return apply(op, convert_to_tensor(input), name=name)


def _pool1d(
    kind: type[Pooling], x: Any, ksize: Any, strides: Any, padding: Any, form: Any, name: str
) -> Tensor:
    """Returns the pool of signals [n, length, channels], as images of one row."""
    x, form = convert_to_tensor(x), as_format(form, 1)
    at = 2 if form == "NCW" else 1
    sizes, steps = [as_steps(v, 1, form, what) for v, what in ((ksize, "ksize"), (strides, "strides"))]  # fmt: skip  # noqa: E501
    if not isinstance(padding, str):
        padding = [*padding[:at], [0, 0], *padding[at:]]
    with x.graph.name_scope(name):
        size, step = [[*v[:at], 1, *v[at:]] for v in (sizes, steps)]
        op = _op(kind, size, step, padding, FORMATS[2][form == "NCW"])
        return squeeze(apply(op, expand_dims(x, at)), [at])


def max_pool1d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """Returns the largest elements under a moving window of signals [n, length, channels]."""
    return _pool1d(MaxPool, input, ksize, strides, padding, data_format, name or "MaxPool1d")


def avg_pool1d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """Returns the means under a moving window of signals [n, length, channels]."""
    return _pool1d(AvgPool, input, ksize, strides, padding, data_format, name or "AvgPool1D")


def _by_rank(functions: dict[int, Any], input: Any, *arguments: Any) -> Tensor:
    x = convert_to_tensor(input)
    if x.spec.rank not in functions:
        raise InvalidArgumentError(f"expected an input of rank 3, 4 or 5, got {x.spec}")
    result: Tensor = functions[x.spec.rank](x, *arguments)
    return result


def max_pool_v2(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns the largest elements under a moving window, of 1 to 3 axes by the input's rank."""
    functions = {3: max_pool1d, 4: max_pool, 5: max_pool3d}
    return _by_rank(functions, input, ksize, strides, padding, data_format, name)


def avg_pool_v2(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns the means under a moving window, of 1 to 3 axes by the input's rank."""
    functions = {3: avg_pool1d, 4: avg_pool, 5: avg_pool3d}
    return _by_rank(functions, input, ksize, strides, padding, data_format, name)


def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    padding: Any,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Returns a pool of 1 to 3 spatial axes.

    Args:
        input: [n, *sizes, channels].
        window_shape: One number per spatial axis.
        pooling_type: "MAX" or "AVG".
        padding: "SAME" or "VALID".
        dilation_rate: One number per spatial axis; the elements' distance under the window.
        strides: One number per spatial axis.
        name: Name of the operation.
        data_format: As in `convolution`.
        dilations: New name of `dilation_rate`.

    Raises:
        InvalidArgumentError: if there are both strides and a dilation, or "SAME" and a dilation.
    """
    if pooling_type not in ("MAX", "AVG"):
        raise InvalidArgumentError(f'expected pooling_type "MAX" or "AVG", got {pooling_type!r}')
    x, n = convert_to_tensor(input), len(window_shape)
    if n not in FORMATS:
        raise InvalidArgumentError(f"expected a window of 1 to 3 axes, got {window_shape!r}")
    rates = list((dilation_rate if dilations is None else dilations) or [1] * n)
    steps = list(strides or [1] * n)
    name = name or f"{pooling_type.lower()}_pool"
    if any(r != 1 for r in rates):
        if padding == "SAME" or any(s != 1 for s in steps):
            raise InvalidArgumentError(
                "expected a dilated pool without strides and with padding VALID, got "
                f"strides {steps}, {padding}"
            )
    form = as_format(data_format, n)
    if n == 1:
        return _dilated1d(x, window_shape, pooling_type, padding, rates, steps, form, name)
    kinds = {("MAX", 2): MaxPool, ("AVG", 2): AvgPool, ("MAX", 3): MaxPool3D, ("AVG", 3): AvgPool3D}
    spread = as_steps(rates, n, form, "dilations")
    op = _op(kinds[pooling_type, n], list(window_shape), steps, padding, form, spread)
    return apply(op, x, name=name)


def _dilated1d(
    x: Tensor, window: Any, kind: str, padding: Any, rates: Any, steps: Any, form: str, name: str
) -> Tensor:
    at = 2 if form == "NCW" else 1
    wide = FORMATS[2][form == "NCW"]
    with x.graph.name_scope(name):
        y = pool(
            expand_dims(x, at), [1, *window], kind, padding, [1, *rates], [1, *steps], None, wide
        )
        return squeeze(y, [at])


def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    Targmax: Any = None,
    name: str | None = None,
    output_dtype: Any = None,
    include_batch_in_index: bool = False,
) -> MaxPoolWithArgmaxOutputs:
    """Returns the largest elements under a moving window, and where they are.

    Args:
        input: Images, [n, height, width, channels].
        ksize: See `max_pool`, and so the others.
        strides: See there.
        padding: See there.
        data_format: "NHWC".
        Targmax: dtype of the numbers, int64 by default.
        name: Name of the operation.
        output_dtype: New name of `Targmax`.
        include_batch_in_index: Whether the numbers count through the batch, not through each image.

    Returns:
        The maxima, and for each the number (row * width + column) * channels + channel.
    """
    if data_format not in (None, "NHWC"):
        raise InvalidArgumentError(f"expected data_format NHWC, got {data_format!r}")
    dtype = as_dtype(output_dtype or Targmax or dtypes.int64)
    op = _op(
        MaxPoolWithArgmax,
        ksize,
        strides,
        padding,
        "NHWC",
        dtype=dtype,
        include_batch_in_index=bool(include_batch_in_index),
    )
    return MaxPoolWithArgmaxOutputs(*apply_many(op, convert_to_tensor(input), name=name))
