"""Quantised numbers, under TensorFlow's names."""

from flowscope.ops.quantization import *
from flowscope.ops.quantization import quantized_matmul as quantized_matmul
