"""Initializers: functions of a shape that return a variable's first value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import constant
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import as_dtype, float32
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import as_dims, is_known, text
from flowscope.ops.array.arrays import ones, zeros
from flowscope.ops.array.slicing import slice as slice_of
from flowscope.ops.random.normal_and_uniform import random_normal, random_uniform, truncated_normal

__all__ = [
    "Constant",
    "GlorotNormal",
    "GlorotUniform",
    "Initializer",
    "Ones",
    "RandomNormal",
    "RandomUniform",
    "TruncatedNormal",
    "VarianceScaling",
    "Zeros",
    "constant_initializer",
    "glorot_normal_initializer",
    "glorot_uniform_initializer",
    "ones_initializer",
    "random_normal_initializer",
    "random_uniform_initializer",
    "truncated_normal_initializer",
    "uniform_unit_scaling_initializer",
    "variance_scaling_initializer",
    "zeros_initializer",
]


class Initializer:
    """Base class: calling it with a shape returns a tensor of that shape."""

    def __init__(self, dtype: Any = float32) -> None:
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Returns a first value.

        Args:
            shape: Fully known shape.
            dtype: Element type; the initializer's own by default.
            partition_info: For one part of a variable: `full_shape` and `var_offset` in the whole.

        Raises:
            InvalidArgumentError: if the shape is not fully known.
        """
        dims = as_dims(shape)
        if not is_known(dims):
            raise InvalidArgumentError(
                f"an initial value needs a fully known shape, got {text(dims)}"
            )
        dtype = self.dtype if dtype is None else as_dtype(dtype)
        if partition_info is None:
            return self._make(list(dims or ()), dtype)
        return self._make_part(list(dims or ()), dtype, partition_info)

    def _make(self, shape: list[Any], dtype: Any) -> Tensor:
        raise NotImplementedError

    def _make_part(self, shape: list[Any], dtype: Any, part: Any) -> Tensor:
        """Returns one part of a variable's first value: by default as if it were a whole."""
        del part
        return self._make(shape, dtype)


class Constant(Initializer):
    """One value everywhere, or the values of an array of the right size.

    Args:
        value: A number or an array.
        dtype: Element type.
        verify_shape: Whether an array must have exactly the shape.
    """

    def __init__(self, value: Any = 0, dtype: Any = float32, verify_shape: bool = False) -> None:
        super().__init__(dtype)
        self.value = value
        self.verify_shape = verify_shape

    def _make(self, shape: list[Any], dtype: Any) -> Tensor:
        return constant(self.value, dtype, shape, verify_shape=self.verify_shape)

    def _make_part(self, shape: list[Any], dtype: Any, part: Any) -> Tensor:
        if np.ndim(self.value) == 0:
            return self._make(shape, dtype)
        return slice_of(self._make(part.full_shape, dtype), part.var_offset, shape)


class Zeros(Constant):
    """Zeros: False for bools, "" for strings."""

    def __init__(self, dtype: Any = float32) -> None:
        super().__init__(0, dtype)

    def _make(self, shape: list[Any], dtype: Any) -> Tensor:
        return zeros(shape, dtype)


class Ones(Constant):
    """Ones."""

    def __init__(self, dtype: Any = float32) -> None:
        super().__init__(1, dtype)

    def _make(self, shape: list[Any], dtype: Any) -> Tensor:
        return ones(shape, dtype)


class RandomUniform(Initializer):
    """Uniform numbers in [minval, maxval): by default in [0, 1)."""

    def __init__(
        self, minval: Any = 0.0, maxval: Any = None, seed: int | None = None, dtype: Any = float32
    ) -> None:
        super().__init__(dtype)
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def _make(self, shape: list[Any], dtype: Any) -> Tensor:
        return random_uniform(shape, self.minval, self.maxval, dtype, seed=self.seed)


class RandomNormal(Initializer):
    """Normal numbers."""

    def __init__(
        self, mean: Any = 0.0, stddev: Any = 1.0, seed: int | None = None, dtype: Any = float32
    ) -> None:
        super().__init__(dtype)
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def _make(self, shape: list[Any], dtype: Any) -> Tensor:
        return random_normal(shape, self.mean, self.stddev, dtype, seed=self.seed)


class TruncatedNormal(RandomNormal):
    """Normal numbers, drawn again where they lie more than two standard deviations off."""

    def _make(self, shape: list[Any], dtype: Any) -> Tensor:
        return truncated_normal(shape, self.mean, self.stddev, dtype, seed=self.seed)


class VarianceScaling(Initializer):
    """Numbers whose variance is `scale` over the number of inputs, outputs or their mean.

    Args:
        scale: Factor.
        mode: "fan_in", "fan_out" or "fan_avg".
        distribution: "truncated_normal" (or "normal"), "untruncated_normal" or "uniform".
        seed: Seed.
        dtype: Element type.

    Source: Glorot & Bengio 2010 (fan_avg); He et al. 2015 (fan_in, scale 2).
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        dtype: Any = float32,
    ) -> None:
        super().__init__(dtype)
        if scale <= 0:
            raise expected("a positive scale", scale)
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise expected("mode fan_in, fan_out or fan_avg", repr(mode))
        if distribution not in ("normal", "truncated_normal", "untruncated_normal", "uniform"):
            raise InvalidArgumentError(f"unknown distribution {distribution!r}")
        self.scale, self.mode, self.distribution, self.seed = scale, mode, distribution, seed

    def _make(self, shape: list[Any], dtype: Any) -> Tensor:
        return self._scaled(shape, dtype, shape)

    def _make_part(self, shape: list[Any], dtype: Any, part: Any) -> Tensor:
        return self._scaled(shape, dtype, part.full_shape)

    def _scaled(self, shape: list[Any], dtype: Any, whole: list[Any]) -> Tensor:
        fan_in, fan_out = _fans(whole)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        if self.distribution == "uniform":
            limit = math.sqrt(3 * variance)
            return random_uniform(shape, -limit, limit, dtype, seed=self.seed)
        if self.distribution == "untruncated_normal":
            return random_normal(shape, 0.0, math.sqrt(variance), dtype, seed=self.seed)
        # Cutting at two standard deviations leaves 0.8796 of the standard deviation.
        return truncated_normal(
            shape, 0.0, math.sqrt(variance) / 0.87962566103423978, dtype, seed=self.seed
        )


class GlorotUniform(VarianceScaling):
    """Uniform numbers with variance 2 / (inputs + outputs)."""

    def __init__(self, seed: int | None = None, dtype: Any = float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)


class GlorotNormal(VarianceScaling):
    """Normal numbers with variance 2 / (inputs + outputs)."""

    def __init__(self, seed: int | None = None, dtype: Any = float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)


class _UnitScaling(VarianceScaling):
    """Uniform numbers that keep the scale of the input through a layer."""

    def __init__(self, factor: float = 1.0, seed: int | None = None, dtype: Any = float32) -> None:
        super().__init__(factor * factor, "fan_in", "uniform", seed, dtype)


def _fans(shape: list[int]) -> tuple[float, float]:
    """Returns a weight's (inputs, outputs): a matrix's, or a filter's with its window first."""
    if not shape:
        return 1.0, 1.0
    if len(shape) == 1:
        return float(shape[0]), float(shape[0])
    window = math.prod(shape[:-2])
    return float(shape[-2] * window), float(shape[-1] * window)


zeros_initializer = Zeros
ones_initializer = Ones
constant_initializer = Constant
random_uniform_initializer = RandomUniform
random_normal_initializer = RandomNormal
truncated_normal_initializer = TruncatedNormal
variance_scaling_initializer = VarianceScaling
glorot_uniform_initializer = GlorotUniform
glorot_normal_initializer = GlorotNormal
uniform_unit_scaling_initializer = _UnitScaling
