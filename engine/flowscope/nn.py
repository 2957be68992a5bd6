"""Neural-network functions, under TensorFlow 1's names."""

from flowscope.ops.nn import *
from flowscope.ops.nn import __all__ as __all__
