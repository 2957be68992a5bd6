"""Transposed convolutions as layers: what the gradient of a convolution does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowscope.graph.operation import Tensor
from flowscope.layers.base import Activation, function_of
from flowscope.layers.convolutional import Conv
from flowscope.ops.array.joining import stack
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.nn.convolution import conv_transpose
from flowscope.ops.state.initializers import Zeros

__all__ = ["Conv2DTranspose", "Conv3DTranspose", "conv2d_transpose", "conv3d_transpose"]


class ConvTranspose(Conv):
    """A transposed convolution; the base of those that say along how many axes.

    An axis of n elements gets n * stride of them with padding "same", and with "valid" as many as
    the window has more than its stride besides.

    Variables: `kernel` [*kernel_size, filters, channels], and `bias` [filters].

    Args:
        filters: How many outputs per place.
        kernel_size: Size of the window: one number, or one per spatial axis.
        strides: How far the windows are apart in the output, in the same way.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
        activation: See `Conv`, and so the others.
        use_bias: See there.
        kernel_initializer: See there.
        bias_initializer: See there.
        kernel_regularizer: See there.
        bias_regularizer: See there.
        activity_regularizer: See there.
        kernel_constraint: See there.
        bias_constraint: See there.
        trainable: See there.
        name: See there.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        activation: Activation = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = Zeros,
        kernel_regularizer: Callable[[Tensor], Any] | None = None,
        bias_regularizer: Callable[[Tensor], Any] | None = None,
        activity_regularizer: Callable[[Tensor], Any] | None = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters, kernel_size, strides, padding, data_format, 1, activation, use_bias,
            kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
            activity_regularizer, kernel_constraint, bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip

    def build(self, input_shape: Any) -> None:
        """Makes kernel and bias."""
        self.add_kernel([*self.kernel_size, self.filters, self.channels(input_shape)])
        self.add_bias()

    def call(self, inputs: Tensor) -> Tensor:
        """Returns the transposed convolution."""
        strides: Any = list(self.strides)
        y = conv_transpose(
            inputs,
            self.kernel,
            self._sizes(inputs),
            strides,
            self.padding.upper(),
            self.form,
            name=f"conv{self.spatial}d_transpose",
        )
        return self.finished(y)

    def _sizes(self, inputs: Tensor) -> Any:
        """Returns the output's shape: a list, or a tensor where a size is not known."""
        known = inputs.spec.shape or (None,) * (self.spatial + 2)
        dims: list[Any] = list(known)
        if None in known:
            given = shape_of(inputs)
            dims = [given[i] if d is None else d for i, d in enumerate(known)]
        first = 2 if self.data_format == "channels_first" else 1
        for i, (window, step) in enumerate(zip(self.kernel_size, self.strides), first):
            more = max(window - step, 0) if self.padding == "valid" else 0
            dims[i] = dims[i] * step + more
        dims[self.channel_axis] = self.filters
        return stack(dims) if None in known else dims


class Conv2DTranspose(ConvTranspose):
    """A transposed convolution of images, with the arguments of `ConvTranspose`."""

    spatial = 2


class Conv3DTranspose(ConvTranspose):
    """A transposed convolution of volumes, with the arguments of `ConvTranspose`."""

    spatial = 3


conv2d_transpose, conv3d_transpose = function_of(Conv2DTranspose), function_of(Conv3DTranspose)
