"""Quantised numbers, under TensorFlow's names."""

import typing as _typing

from flowscope.absent import refusal as _refusal
from flowscope.ops.quantized.fake_quant import *
from flowscope.ops.quantized.images import quantized_concat as quantized_concat
from flowscope.ops.quantized.quantization import *
from flowscope.ops.quantized.quantization import quantized_matmul as quantized_matmul
from flowscope.ops.quantized.quantize_and_dequantize import *

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
