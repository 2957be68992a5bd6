"""Metrics, under TensorFlow 1's names."""

from flowscope.ops.objectives.metrics import *
from flowscope.ops.objectives.metrics_binary import *
from flowscope.ops.objectives.metrics_ranking import *
