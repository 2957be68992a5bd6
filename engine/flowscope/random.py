"""Random functions, under TensorFlow's names."""

from flowscope.ops.random import random_normal as normal
from flowscope.ops.random import random_shuffle as shuffle
from flowscope.ops.random import random_uniform as uniform
from flowscope.ops.random import truncated_normal

__all__ = ["normal", "shuffle", "truncated_normal", "uniform"]
