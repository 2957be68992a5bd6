"""Separable convolutions as layers: a window per channel, then a product across the channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowscope.graph.operation import Tensor
from flowscope.layers.base import Activation, function_of, sizes
from flowscope.layers.convolutional import Conv
from flowscope.ops.array.shaping import expand_dims, squeeze
from flowscope.ops.kernels.windows import FORMATS
from flowscope.ops.nn.convolution import separable_conv2d as nn_separable_conv2d
from flowscope.ops.state.initializers import Zeros

__all__ = ["SeparableConv1D", "SeparableConv2D", "separable_conv1d", "separable_conv2d"]


class SeparableConv(Conv):
    """A separable convolution; the base of those that say along how many axes.

    Variables: `depthwise_kernel` [*kernel_size, channels, depth_multiplier], `pointwise_kernel`
    [1, ..., channels * depth_multiplier, filters], and `bias` [filters].

    Args:
        filters: How many outputs per place.
        kernel_size: Size of the window: one number, or one per spatial axis.
        strides: Its steps, in the same way; along both axes of an image the same.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
        dilation_rate: Distance of the elements under the window, in the same way.
        depth_multiplier: How many windows each channel has.
        activation: See `Conv`.
        use_bias: See `Conv`.
        depthwise_initializer: Initializer of the windows.
        pointwise_initializer: Initializer of the product's matrix.
        bias_initializer: See `Conv`.
        depthwise_regularizer: Function of the windows that returns a loss.
        pointwise_regularizer: The same of the product's matrix.
        bias_regularizer: See `Conv`, and so the others.
        activity_regularizer: See there.
        depthwise_constraint: Function that an optimizer applies after each update.
        pointwise_constraint: The same.
        bias_constraint: The same.
        trainable: See `Conv`.
        name: See there.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Activation = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = Zeros,
        depthwise_regularizer: Callable[[Tensor], Any] | None = None,
        pointwise_regularizer: Callable[[Tensor], Any] | None = None,
        bias_regularizer: Callable[[Tensor], Any] | None = None,
        activity_regularizer: Callable[[Tensor], Any] | None = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters, kernel_size, strides, padding, data_format, dilation_rate, activation,
            use_bias, None, bias_initializer, None, bias_regularizer, activity_regularizer, None,
            bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip
        (self.depth_multiplier,) = sizes(depth_multiplier, 1, "depth_multiplier")
        self.depthwise = depthwise_initializer, depthwise_regularizer, depthwise_constraint
        self.pointwise = pointwise_initializer, pointwise_regularizer, pointwise_constraint
        self.depthwise_kernel: Any = None
        self.pointwise_kernel: Any = None

    def build(self, input_shape: Any) -> None:
        """Makes both kernels and the bias."""
        channels = self.channels(input_shape)
        wide = channels * self.depth_multiplier
        shapes = {
            "depthwise": [*self.kernel_size, channels, self.depth_multiplier],
            "pointwise": [*[1] * self.spatial, wide, self.filters],
        }
        made = {}
        for part, shape in shapes.items():
            initializer, regularizer, constraint = getattr(self, part)
            made[part] = self.add_weight(
                f"{part}_kernel",
                shape,
                initializer=initializer,
                regularizer=regularizer,
                constraint=constraint,
            )
        self.depthwise_kernel, self.pointwise_kernel = made["depthwise"], made["pointwise"]
        self.add_bias()

    def call(self, inputs: Tensor) -> Tensor:
        """Returns the separable convolution."""
        is_first = self.data_format == "channels_first"
        x, windows, matrix = inputs, self.depthwise_kernel, self.pointwise_kernel
        strides, rates, at = list(self.strides), list(self.dilation_rate), 1 + is_first
        if self.spatial == 1:
            # Signals are images of one row; both axes have the same stride, as the op demands.
            x = expand_dims(inputs, at)
            windows, matrix = expand_dims(windows, 0), expand_dims(matrix, 0)
            strides, rates = strides * 2, [1, *rates]
        form = FORMATS[2][is_first]
        steps = [1, 1, *strides] if is_first else [1, *strides, 1]
        y = nn_separable_conv2d(
            x, windows, matrix, steps, self.padding.upper(), rates, data_format=form
        )
        return self.finished(squeeze(y, [at]) if self.spatial == 1 else y)


class SeparableConv1D(SeparableConv):
    """A separable convolution of signals, with the arguments of `SeparableConv`."""

    spatial = 1


class SeparableConv2D(SeparableConv):
    """A separable convolution of images, with the arguments of `SeparableConv`."""

    spatial = 2


separable_conv1d, separable_conv2d = function_of(SeparableConv1D), function_of(SeparableConv2D)
