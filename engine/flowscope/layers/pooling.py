"""Pools as layers."""

from __future__ import annotations

from typing import Any, ClassVar

from flowscope.graph.operation import Tensor
from flowscope.layers.base import InputSpec, Layer, function_of, one_of, sizes
from flowscope.ops.kernels.windows import FORMATS
from flowscope.ops.nn.pooling import pool

__all__ = [
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
    "average_pooling1d",
    "average_pooling2d",
    "average_pooling3d",
    "max_pooling1d",
    "max_pooling2d",
    "max_pooling3d",
]


class PoolingLayer(Layer):
    """A pool; the base of those that say along how many axes, and of what.

    Args:
        pool_size: Size of the window: one number, or one per spatial axis.
        strides: Its steps, in the same way.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
        name: Name of the scope.
    """

    spatial: ClassVar[int]
    kind: ClassVar[str]

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.pool_size = sizes(pool_size, self.spatial, "pool_size")
        self.strides = sizes(strides, self.spatial, "strides")
        self.padding = one_of(padding, ("valid", "same"), "padding")
        choices = ("channels_last", "channels_first")
        self.data_format = one_of(data_format, choices, "data_format")
        self.input_spec = InputSpec(ndim=self.spatial + 2)

    def call(self, inputs: Tensor) -> Tensor:
        """Returns the pool."""
        form = FORMATS[self.spatial][self.data_format == "channels_first"]
        name = {"MAX": "MaxPool", "AVG": "AvgPool"}[self.kind]
        return pool(
            inputs,
            list(self.pool_size),
            self.kind,
            self.padding.upper(),
            strides=list(self.strides),
            name=name,
            data_format=form,
        )


class AveragePooling1D(PoolingLayer):
    """Means under a moving window of signals, with the arguments of `PoolingLayer`."""

    spatial, kind = 1, "AVG"


class AveragePooling2D(PoolingLayer):
    """Means under a moving window of images, with the arguments of `PoolingLayer`."""

    spatial, kind = 2, "AVG"


class AveragePooling3D(PoolingLayer):
    """Means under a moving window of volumes, with the arguments of `PoolingLayer`."""

    spatial, kind = 3, "AVG"


class MaxPooling1D(PoolingLayer):
    """Maxima under a moving window of signals, with the arguments of `PoolingLayer`."""

    spatial, kind = 1, "MAX"


class MaxPooling2D(PoolingLayer):
    """Maxima under a moving window of images, with the arguments of `PoolingLayer`."""

    spatial, kind = 2, "MAX"


class MaxPooling3D(PoolingLayer):
    """Maxima under a moving window of volumes, with the arguments of `PoolingLayer`."""

    spatial, kind = 3, "MAX"


average_pooling1d = function_of(AveragePooling1D)
average_pooling2d = function_of(AveragePooling2D)
average_pooling3d = function_of(AveragePooling3D)
max_pooling1d = function_of(MaxPooling1D)
max_pooling2d = function_of(MaxPooling2D)
max_pooling3d = function_of(MaxPooling3D)
