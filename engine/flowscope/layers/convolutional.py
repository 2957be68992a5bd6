"""Convolutions as layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from flowscope.errors import InvalidArgumentError
from flowscope.graph.operation import Tensor
from flowscope.layers.base import (
    Activation,
    InputSpec,
    Layer,
    activated,
    activation_of,
    channels_of,
    function_of,
    one_of,
    sizes,
)
from flowscope.ops.kernels.windows import FORMATS
from flowscope.ops.nn.bias import bias_add
from flowscope.ops.nn.convolution import convolution
from flowscope.ops.state.initializers import Zeros

__all__ = ["Conv1D", "Conv2D", "Conv3D", "conv1d", "conv2d", "conv3d"]


class Conv(Layer):
    """A convolution along 1 to 3 axes; the base of those that say how many.

    Variables: `kernel` [*kernel_size, channels, filters], and `bias` [filters].

    Args:
        filters: How many outputs per place.
        kernel_size: Size of the window: one number, or one per spatial axis.
        strides: Its steps, in the same way.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
        dilation_rate: Distance of the elements under the window, in the same way.
        activation: Function of the result, or the name of one in `fs.nn`, or None.
        use_bias: Whether there is a bias.
        kernel_initializer: Initializer, the scope's by default, else Glorot's uniform one.
        bias_initializer: Initializer.
        kernel_regularizer: Function of the kernel that returns a loss.
        bias_regularizer: The same of the bias.
        activity_regularizer: The same of the output.
        kernel_constraint: Function that an optimizer applies to the kernel after each update.
        bias_constraint: The same of the bias.
        trainable: Whether the variables are trained.
        name: Name of the variables' scope.

    Raises:
        InvalidArgumentError: if there are both strides and a dilation.
    """

    #: How many axes the window moves along.
    spatial: ClassVar[int]

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
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
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        n = self.spatial
        (self.filters,) = sizes(filters, 1, "filters")
        self.kernel_size = sizes(kernel_size, n, "kernel_size")
        self.strides = sizes(strides, n, "strides")
        self.padding = one_of(padding, ("valid", "same"), "padding")
        choices = ("channels_last", "channels_first")
        self.data_format = one_of(data_format, choices, "data_format")
        self.dilation_rate = sizes(dilation_rate, n, "dilation_rate")
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise InvalidArgumentError(
                f"expected strides or a dilation of 1, got {self.strides} and {self.dilation_rate}"
            )
        self.activation, self.use_bias = activation_of(activation), use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.input_spec = InputSpec(ndim=n + 2)
        self.kernel: Any = None
        self.bias: Any = None

    @property
    def channel_axis(self) -> int:
        """The number of the channels' axis."""
        return 1 if self.data_format == "channels_first" else self.spatial + 1

    @property
    def form(self) -> str:
        """The data format as ops call it, such as "NHWC"."""
        return FORMATS[self.spatial][self.data_format == "channels_first"]

    def channels(self, input_shape: Any) -> int:
        """Returns the inputs' channels, and demands as many from now on."""
        found = channels_of(input_shape, self.channel_axis, self)
        self.input_spec = InputSpec(ndim=self.spatial + 2, axes={self.channel_axis: found})
        return found

    def build(self, input_shape: Any) -> None:
        """Makes kernel and bias."""
        self.add_kernel([*self.kernel_size, self.channels(input_shape), self.filters])
        self.add_bias()

    def add_kernel(self, shape: list[int]) -> None:
        """Makes the kernel."""
        self.kernel = self.add_weight(
            "kernel",
            shape,
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )

    def add_bias(self) -> None:
        """Makes the bias, if there is one."""
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                [self.filters],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )

    def finished(self, y: Tensor) -> Tensor:
        """Returns the output from what the window makes: with bias and activation."""
        if self.use_bias:
            y = bias_add(y, self.bias, "NCHW" if self.data_format == "channels_first" else "NHWC")
        return activated(y, self.activation)

    def call(self, inputs: Tensor) -> Tensor:
        """Returns the convolution."""
        y = convolution(
            inputs,
            self.kernel,
            self.padding.upper(),
            list(self.strides),
            list(self.dilation_rate),
            f"Conv{self.spatial}D",
            self.form,
        )
        return self.finished(y)


class Conv1D(Conv):
    """A convolution of signals [n, length, channels], with the arguments of `Conv`."""

    spatial = 1


class Conv2D(Conv):
    """A convolution of images [n, height, width, channels], with the arguments of `Conv`."""

    spatial = 2


class Conv3D(Conv):
    """A convolution of volumes [n, depth, height, width, c], with the arguments of `Conv`."""

    spatial = 3


conv1d, conv2d, conv3d = function_of(Conv1D), function_of(Conv2D), function_of(Conv3D)
