"""Layers that know no axes but the last: products, dropout, flattening."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowscope.control.branches import cond
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.operation import Tensor
from flowscope.graph.values.shapes import size_of
from flowscope.layers.base import (
    Activation,
    InputSpec,
    Layer,
    activated,
    activation_of,
    channels_of,
    function_of,
    one_of,
    training_flag,
)
from flowscope.ops.array.shaping import reshape, shape_of, transpose
from flowscope.ops.core.flow import identity
from flowscope.ops.linalg.products import matmul, tensordot
from flowscope.ops.nn.bias import bias_add
from flowscope.ops.nn.dropout import dropout as nn_dropout
from flowscope.ops.state.initializers import Zeros

__all__ = ["Dense", "Dropout", "Flatten", "dense", "dropout", "flatten"]


class Dense(Layer):
    """A dense layer: activation(inputs @ kernel + bias), along the last axis.

    Variables: `kernel` [channels, units], and `bias` [units].

    Args:
        units: How many outputs.
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
    """

    def __init__(
        self,
        units: int,
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
        if isinstance(units, bool) or int(units) < 1:
            raise InvalidArgumentError(f"expected 1 unit at least, got {units!r}")
        self.units = int(units)
        self.activation, self.use_bias = activation_of(activation), use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.input_spec = InputSpec(min_ndim=2)
        self.kernel: Any = None
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        """Makes kernel and bias."""
        if self.dtype is not None and not (self.dtype.is_floating or self.dtype.is_complex):
            raise DTypeError(
                f"layer {self.name!r} expected floating-point inputs, got {self.dtype}"
            )
        channels = channels_of(input_shape, -1, self)
        self.input_spec = InputSpec(min_ndim=2, axes={-1: channels})
        self.kernel = self.add_weight(
            "kernel",
            [channels, self.units],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                [self.units],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )

    def call(self, inputs: Tensor) -> Tensor:
        """Returns activation(inputs @ kernel + bias)."""
        rank = len(inputs.spec.shape or ())
        is_matrix = rank == 2
        y = (
            matmul(inputs, self.kernel)
            if is_matrix
            else tensordot(inputs, self.kernel, [[rank - 1], [0]])
        )
        if self.use_bias:
            y = bias_add(y, self.bias)
        return activated(y, self.activation)


class Dropout(Layer):
    """Dropout: in training, elements set to 0 at random, the others scaled up.

    Args:
        rate: The probability that an element is set to 0; a number or a tensor.
        noise_shape: Shape of the random choices, see `fs.nn.dropout`.
        seed: Seed of the op.
        name: Name of the scope.
    """

    def __init__(
        self,
        rate: Any = 0.5,
        noise_shape: Any = None,
        seed: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs: Tensor, training: Any = False) -> Tensor:
        """Returns the inputs, thinned out if `training` (a bool, or a tensor of one)."""

        def thinned() -> Tensor:
            return nn_dropout(inputs, None, self.noise_shape, self.seed, rate=self.rate)

        flag = training_flag(training)
        if isinstance(flag, Tensor):
            result: Tensor = cond(flag, thinned, lambda: identity(inputs))
            return result
        return thinned() if flag else identity(inputs)


class Flatten(Layer):
    """Flattening: one row per example.

    Args:
        data_format: "channels_last", or "channels_first": the channels then change fastest all the
            same.
        name: Name of the scope.
    """

    def __init__(
        self, data_format: str = "channels_last", name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        choices = ("channels_last", "channels_first")
        self.data_format = one_of(data_format, choices, "data_format")

    def call(self, inputs: Tensor) -> Tensor:
        """Returns the inputs as a matrix."""
        dims = inputs.spec.shape
        if dims is None and self.data_format == "channels_last":
            return reshape(inputs, [shape_of(inputs)[0], -1])
        InputSpec(min_ndim=1).check(inputs, self.name)
        assert dims is not None
        rank = len(dims)
        if self.data_format == "channels_first" and rank > 2:
            inputs = transpose(inputs, [0, *range(2, rank), 1])
            dims = (dims[0], *dims[2:], dims[1])
        if rank == 1:
            return reshape(inputs, [-1, 1])
        width = size_of(dims[1:])
        rows: Any = dims[0]
        if rows is None:
            rows = -1 if width else shape_of(inputs)[0]
        return reshape(inputs, [rows, -1 if width is None else width])


dense = function_of(Dense)


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Tensor:
    """Returns the inputs, in training with elements set to 0 at random.

    Args:
        inputs: A floating-point tensor.
        rate: The probability that an element is set to 0.
        noise_shape: See `fs.nn.dropout`.
        seed: Seed of the op.
        training: A bool, or a tensor of one: whether this is training.
        name: Name of the scope.
    """
    result: Tensor = Dropout(rate, noise_shape, seed, name)(inputs, training=training)
    return result


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """Returns the inputs as a matrix of one row per example.

    Args:
        inputs: A tensor of rank 1 at least.
        name: Name of the scope.
        data_format: See `Flatten`.
    """
    result: Tensor = Flatten(data_format, name)(inputs)
    return result
