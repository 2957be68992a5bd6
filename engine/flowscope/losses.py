"""Losses, under TensorFlow 1's names."""

from flowscope.ops.objectives.losses import *
