"""Initializers that make matrices: orthogonal ones and identities."""

from __future__ import annotations

import math
from typing import Any

from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import float32
from flowscope.graph.values.expected import expected
from flowscope.ops.array.one_hot import eye
from flowscope.ops.array.shaping import reshape
from flowscope.ops.array.slicing import slice as slice_of
from flowscope.ops.linalg.factors import qr
from flowscope.ops.linalg.matrices import matrix_diag_part
from flowscope.ops.linalg.products import matrix_transpose
from flowscope.ops.math.elementwise import multiply, sign
from flowscope.ops.random.normal_and_uniform import random_normal
from flowscope.ops.state.initializers import Initializer, VarianceScaling

__all__ = [
    "Identity",
    "Orthogonal",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
    "orthogonal_initializer",
]


class Orthogonal(Initializer):
    """Matrices with orthogonal rows or columns, whichever are fewer, all equally likely.

    Tensors of more axes are matrices whose columns are the last axis.

    Args:
        gain: Factor.
        seed: Seed.
        dtype: Element type.

    Raises:
        InvalidArgumentError: when called, if the shape has fewer than two axes.

    Source: Saxe et al. 2014; Mezzadri 2007, "How to generate random matrices from the classical
        compact groups", section 5.
    """

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: Any = float32) -> None:
        super().__init__(dtype)
        self.gain, self.seed = gain, seed

    def _make(self, shape: list[Any], dtype: Any) -> Tensor:
        if len(shape) < 2:
            raise expected("a shape of two axes at least", shape)
        rows, columns = math.prod(shape[:-1]), shape[-1]
        sizes = [max(rows, columns), min(rows, columns)]
        q, r = qr(random_normal(sizes, dtype=dtype, seed=self.seed), full_matrices=False)
        q = multiply(q, sign(matrix_diag_part(r)))
        if rows < columns:
            q = matrix_transpose(q)
        return multiply(reshape(q, shape), self.gain)


class Identity(Initializer):
    """Ones on the main diagonal of a matrix, times a factor.

    Args:
        gain: The factor.
        dtype: Element type.

    Raises:
        InvalidArgumentError: when called, if the shape is not a matrix's.
    """

    def __init__(self, gain: float = 1.0, dtype: Any = float32) -> None:
        super().__init__(dtype)
        self.gain = gain

    def _make(self, shape: list[Any], dtype: Any) -> Tensor:
        if len(shape) != 2:
            raise expected("the shape of a matrix", shape)
        return multiply(eye(shape[0], shape[1], dtype=dtype), self.gain)

    def _make_part(self, shape: list[Any], dtype: Any, part: Any) -> Tensor:
        return slice_of(self._make(part.full_shape, dtype), part.var_offset, shape)


def he_normal(seed: int | None = None) -> VarianceScaling:
    """Returns an initializer of normal numbers with variance 2 / inputs (He et al. 2015)."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> VarianceScaling:
    """Returns an initializer of uniform numbers with variance 2 / inputs (He et al. 2015)."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """Returns an initializer of normal numbers with variance 1 / inputs (LeCun et al. 1998)."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """Returns an initializer of uniform numbers with variance 1 / inputs (LeCun et al. 1998)."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


orthogonal_initializer = Orthogonal
