"""Quantised numbers, under TensorFlow's names."""

from flowscope.ops.quantized.images import quantized_concat as quantized_concat
from flowscope.ops.quantized.quantization import *
from flowscope.ops.quantized.quantization import quantized_matmul as quantized_matmul
from flowscope.ops.quantized.rounding_to_bits import *
