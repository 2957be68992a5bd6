"""Layers: parts of a model that own their variables, under TensorFlow 1's names.

In come tensors, out go tensors; variables are made at a layer's first call. Models call them.
"""

from flowscope.layers.base import InputSpec as InputSpec, Layer as Layer
from flowscope.layers.convolutional import *
from flowscope.layers.core import *
from flowscope.layers.normalization import *
from flowscope.layers.pooling import *
from flowscope.layers.separable import *
from flowscope.layers.transposed import *
