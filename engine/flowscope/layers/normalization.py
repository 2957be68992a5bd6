"""Batch normalization as a layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowscope.control.branches import cond
from flowscope.errors import InvalidArgumentError, UnimplementedError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import DType, float32
from flowscope.layers.base import InputSpec, Layer, channels_of, training_flag
from flowscope.ops.array.selection import where
from flowscope.ops.array.shaping import reshape
from flowscope.ops.core.casting import cast
from flowscope.ops.math.elementwise import multiply, subtract
from flowscope.ops.nn.moments import moments
from flowscope.ops.nn.normalization import (
    batch_normalization as nn_batch_normalization,
    fused_batch_norm,
)
from flowscope.ops.state.initializers import Ones, Zeros

__all__ = ["BatchNormalization", "batch_normalization"]


class BatchNormalization(Layer):
    """Batch normalization: each channel with mean 0 and variance 1, then scaled and shifted.

    In training the batch's own moments are used, and operations are made (and listed in
    `GraphKeys.UPDATE_OPS`) that carry moving averages along; otherwise those averages are used.

    Variables: `gamma` and `beta` [channels], and `moving_mean` and `moving_variance`, which are not
    trained.

    Args:
        axis: The channels' axis, or several axes.
        momentum: How much of a moving average is kept.
        epsilon: A small number that is added to variances.
        center: Whether there is a `beta`.
        scale: Whether there is a `gamma`.
        beta_initializer: Initializer.
        gamma_initializer: Initializer.
        moving_mean_initializer: Initializer.
        moving_variance_initializer: Initializer.
        beta_regularizer: Function of beta that returns a loss.
        gamma_regularizer: The same of gamma.
        beta_constraint: Function that an optimizer applies to beta after each update.
        gamma_constraint: The same of gamma.
        trainable: Whether gamma and beta are trained.
        name: Name of the variables' scope.
        renorm: False: there is no batch renormalization.
        renorm_clipping: None.
        renorm_momentum: Read by nothing.
        fused: Whether one op does it all: None for where it can (images, the channels first or
            last). Its moving variance is that of a sample: n / (n - 1) times the batch's.
        virtual_batch_size: None: a batch is not cut into smaller ones.
        adjustment: None: there is no adjustment of the normalized values.

    Raises:
        UnimplementedError: for `renorm`, `renorm_clipping`, `virtual_batch_size` or `adjustment`.

    Source: Ioffe & Szegedy 2015.
    """

    def __init__(
        self,
        axis: Any = -1,
        momentum: Any = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = Zeros,
        gamma_initializer: Any = Ones,
        moving_mean_initializer: Any = Zeros,
        moving_variance_initializer: Any = Ones,
        beta_regularizer: Callable[[Tensor], Any] | None = None,
        gamma_regularizer: Callable[[Tensor], Any] | None = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        renorm: bool = False,
        renorm_clipping: Any = None,
        renorm_momentum: Any = 0.99,
        fused: bool | None = None,
        virtual_batch_size: int | None = None,
        adjustment: Any = None,
        **kwargs: Any,
    ) -> None:
        del renorm_momentum
        _refuse(
            name or "batch_normalization", renorm=renorm or None, renorm_clipping=renorm_clipping,
            virtual_batch_size=virtual_batch_size, adjustment=adjustment,
        )  # fmt: skip
        super().__init__(trainable, name, **kwargs)
        self.axis: list[int] = list(axis) if isinstance(axis, list | tuple) else [axis]
        self.momentum, self.epsilon = momentum, epsilon
        self.center, self.scale, self.fused = center, scale, fused
        self.initializers = {
            "gamma": gamma_initializer,
            "beta": beta_initializer,
            "moving_mean": moving_mean_initializer,
            "moving_variance": moving_variance_initializer,
        }
        self.regularizers = {"gamma": gamma_regularizer, "beta": beta_regularizer}
        self.constraints = {"gamma": gamma_constraint, "beta": beta_constraint}
        self.gamma: Any = None
        self.beta: Any = None
        self.moving_mean: Any = None
        self.moving_variance: Any = None

    # -- variables ---------------------------------------------------------------------------------

    def build(self, input_shape: Any) -> None:
        """Makes the variables.

        Raises:
            InvalidArgumentError: if an axis does not exist, or the op cannot do what is asked for.
        """
        rank = input_shape.ndims
        if rank is None:
            raise InvalidArgumentError(f"layer {self.name!r} expected an input of known rank")
        if any(not -rank <= a < rank for a in self.axis):
            raise InvalidArgumentError(
                f"layer {self.name!r} expected axes of rank {rank}, got {self.axis}"
            )
        self.axis = [a % rank for a in self.axis]
        can_fuse = rank in (4, 5) and self.axis in ([1], [rank - 1])
        if self.fused and not can_fuse:
            raise InvalidArgumentError(
                f"layer {self.name!r} expected images with channels first or last for `fused`, got "
                f"rank {rank} and axis {self.axis}"
            )
        self.fused = can_fuse and rank == 4 if self.fused is None else self.fused
        sizes = {a: channels_of(input_shape, a, self) for a in self.axis}
        self.input_spec = InputSpec(ndim=rank, axes=sizes)  # type: ignore[arg-type]
        shape = list(sizes.values())
        if len(sizes) > 1:
            shape = [sizes.get(a, 1) for a in range(rank)]
        if self.scale:
            self.gamma = self._weight("gamma", shape, True)
        if self.center:
            self.beta = self._weight("beta", shape, True)
        self.moving_mean = self._weight("moving_mean", shape, False)
        self.moving_variance = self._weight("moving_variance", shape, False)

    def _weight(self, name: str, shape: list[int], is_trained: bool) -> Any:
        return self.add_weight(
            name,
            shape,
            dtype=self._kept_dtype(),
            initializer=self.initializers[name],
            regularizer=self.regularizers.get(name),
            constraint=self.constraints.get(name),
            trainable=is_trained,
        )

    def _kept_dtype(self) -> DType:
        """Returns the variables' dtype: float32 for short floats."""
        dtype = self.dtype or float32
        return float32 if dtype.size <= 2 else dtype

    # -- computation -------------------------------------------------------------------------------

    def call(self, inputs: Tensor, training: Any = False) -> Tensor:
        """Returns the inputs normalised, by the batch's moments if `training`.

        Args:
            inputs: A floating-point tensor.
            training: A bool, or a tensor of one.
        """
        flag = training_flag(training)
        compute = self._fused if self.fused else self._plain
        if isinstance(flag, Tensor):
            y, mean, variance = cond(
                flag, lambda: compute(inputs, True), lambda: compute(inputs, False)
            )
        else:
            y, mean, variance = compute(inputs, flag)
        if flag is not False:
            self._carry_along(self.moving_mean, mean, flag)
            self._carry_along(self.moving_variance, variance, flag)
        y.set_shape(inputs.shape)
        return y  # type: ignore[no-any-return]

    def _fused(self, inputs: Tensor, training: bool) -> tuple[Tensor, Tensor, Tensor]:
        dtype, (axis,) = self._kept_dtype(), self.axis
        shape = self.moving_mean.shape
        last, first = {4: ("NHWC", "NCHW"), 5: ("NDHWC", "NCDHW")}[len(inputs.spec.shape or ())]
        y, mean, variance = fused_batch_norm(
            inputs,
            self.gamma if self.scale else Ones()(shape, dtype),
            self.beta if self.center else Zeros()(shape, dtype),
            None if training else self.moving_mean,
            None if training else self.moving_variance,
            self.epsilon,
            first if axis == 1 else last,
            training,
        )
        return y, mean, variance

    def _plain(self, inputs: Tensor, training: bool) -> tuple[Tensor, Tensor, Tensor]:
        rank, dtype = len(inputs.spec.shape or ()), self._kept_dtype()
        if training:
            others = [a for a in range(rank) if a not in self.axis]
            x = inputs if inputs.dtype is dtype else cast(inputs, dtype)
            mean, variance = moments(x, others, keepdims=len(self.axis) > 1)
        else:
            mean, variance = self.moving_mean.value(), self.moving_variance.value()
        m, v, beta, gamma = [self._spread(v, rank) for v in (mean, variance, self.beta, self.gamma)]
        y = nn_batch_normalization(inputs, m, v, beta, gamma, self.epsilon)
        return y, mean, variance

    def _spread(self, per_channel: Any, rank: int) -> Any:
        """Returns one number per channel as an array that is broadcast along the inputs."""
        if per_channel is None or self.axis == [rank - 1] or len(self.axis) > 1:
            return per_channel
        (axis,) = self.axis
        return reshape(per_channel, [-1 if i == axis else 1 for i in range(rank)])

    def _carry_along(self, average: Any, batch: Tensor, flag: bool | Tensor) -> None:
        kept = self.momentum
        if isinstance(kept, Tensor):
            kept = cast(kept, average.dtype)
        share: Any = subtract(1.0, convert_to_tensor(kept, average.dtype))
        if isinstance(flag, Tensor):
            share = where(flag, share, Zeros()([], average.dtype))
        step = multiply(subtract(average, cast(batch, average.dtype)), share)
        self.add_update(average.assign_sub(step, name="AssignMovingAvg").op)


def _refuse(layer: str, **arguments: Any) -> None:
    """Raises UnimplementedError for an argument that asks for what there is not."""
    for name, value in arguments.items():
        if value is not None:
            raise UnimplementedError(
                f"layer {layer!r}: batch normalization has no {name}, got {value!r}: leave it out"
            )


def batch_normalization(
    inputs: Any,
    axis: Any = -1,
    momentum: Any = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = Zeros,
    gamma_initializer: Any = Ones,
    moving_mean_initializer: Any = Zeros,
    moving_variance_initializer: Any = Ones,
    beta_regularizer: Callable[[Tensor], Any] | None = None,
    gamma_regularizer: Callable[[Tensor], Any] | None = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_momentum: Any = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: Any = None,
) -> Tensor:
    """Returns the inputs with each channel normalised, see `BatchNormalization`.

    The operations that carry the moving averages along stand in `GraphKeys.UPDATE_OPS`: training
    must run them.

    Args:
        inputs: A floating-point tensor.
        axis: See `BatchNormalization`, and so the others.
        momentum: See there.
        epsilon: See there.
        center: See there.
        scale: See there.
        beta_initializer: See there.
        gamma_initializer: See there.
        moving_mean_initializer: See there.
        moving_variance_initializer: See there.
        beta_regularizer: See there.
        gamma_regularizer: See there.
        beta_constraint: See there.
        gamma_constraint: See there.
        training: A bool, or a tensor of one: whether this is training.
        trainable: See there.
        name: See there.
        reuse: Whether the variables of an earlier layer of the same name are shared.
        renorm: See there.
        renorm_clipping: See there.
        renorm_momentum: See there.
        fused: See there.
        virtual_batch_size: See there.
        adjustment: See there.
    """
    layer = BatchNormalization(
        axis, momentum, epsilon, center, scale, beta_initializer, gamma_initializer,
        moving_mean_initializer, moving_variance_initializer, beta_regularizer, gamma_regularizer,
        beta_constraint, gamma_constraint, trainable, name, renorm, renorm_clipping,
        renorm_momentum, fused, virtual_batch_size, adjustment, _reuse=reuse, _scope=name,
    )  # fmt: skip
    result: Tensor = layer(inputs, training=training)
    return result
