"""Losses, under TensorFlow 1's names."""

from flowscope.ops.loss_functions import *
