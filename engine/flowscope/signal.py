"""Signals: discrete Fourier and cosine transforms, frames and windows, under TensorFlow's names."""

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
from flowscope.ops.signal.framing import *
