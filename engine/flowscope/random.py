"""Random functions, under TensorFlow's names."""

from flowscope.ops.random import (
    random_normal as normal,
    random_shuffle as shuffle,
    random_uniform as uniform,
    truncated_normal,
)

__all__ = ["normal", "shuffle", "truncated_normal", "uniform"]
