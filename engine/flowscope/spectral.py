"""Discrete Fourier and cosine transforms, under TensorFlow 1's names."""

import typing as _typing

from flowscope.absent import refusal as _refusal
from flowscope.ops.signal.cosines import dct as dct, idct as idct
from flowscope.ops.signal.fourier import (
    fft as fft,
    fft2d as fft2d,
    fft3d as fft3d,
    ifft as ifft,
    ifft2d as ifft2d,
    ifft3d as ifft3d,
    irfft as irfft,
    irfft2d as irfft2d,
    irfft3d as irfft3d,
    rfft as rfft,
    rfft2d as rfft2d,
    rfft3d as rfft3d,
)

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
