"""Quantised numbers, under TensorFlow's names."""

from flowscope.ops.quantization import *
from flowscope.ops.quantization import quantized_matmul as quantized_matmul
from flowscope.ops.quantized_images import quantized_concat as quantized_concat
from flowscope.ops.rounding_to_bits import *
