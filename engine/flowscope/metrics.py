"""Metrics, under TensorFlow 1's names."""

from flowscope.ops.metrics import *
from flowscope.ops.metrics_binary import *
from flowscope.ops.metrics_ranking import *
