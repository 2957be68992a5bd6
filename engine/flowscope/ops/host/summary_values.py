"""What summary ops make of arrays: histograms and pictures, as TensorFlow makes them."""

from __future__ import annotations

import struct
import zlib
from functools import cache
from typing import Any

import numpy as np

from flowscope.graph.messages.event_messages import HistogramProto
from flowscope.graph.values.expected import expected

#: The largest finite number of 64 bits.
_LARGEST = float(np.finfo(np.float64).max)
#: What a pixel becomes that is not finite: red, and opaque where there is a fourth channel.
_NOT_FINITE = (255, 0, 0, 255)


@cache
def bucket_limits() -> Any:
    """Returns the upper limits of all buckets: they grow by a tenth from 1e-12 to 1e20 on both
    sides of 0.
    """
    positive = [1e-12]
    while (following := positive[-1] * 1.1) < 1e20:
        positive.append(following)
    positive.append(_LARGEST)
    limits = np.array([*[-v for v in reversed(positive)], 0.0, *positive])
    limits.flags.writeable = False
    return limits


def histogram(values: Any, tag: str) -> HistogramProto:
    """Returns how real numbers are distributed; neighbouring empty buckets become one.

    Raises:
        InvalidArgumentError: if one is NaN or infinite.
    """
    x = np.asarray(values).reshape(-1).astype(np.float64)
    if not np.isfinite(x).all():
        raise expected(f"finite values for the histogram {tag!r}", "NaN or infinity")
    limits = bucket_limits()
    places = np.minimum(np.searchsorted(limits, x, side="right"), limits.size - 1)
    counts = np.bincount(places, minlength=limits.size)
    # The last of a run of empty buckets stands for the run.
    shown = (counts > 0) | np.append(counts[1:] > 0, True)
    with np.errstate(over="ignore"):
        sums = [float(np.cumsum(v)[-1]) if v.size else 0.0 for v in (x, x * x)]  # one by one
    return HistogramProto(
        min=float(x.min()) if x.size else _LARGEST,
        max=float(x.max()) if x.size else -_LARGEST,
        num=float(x.size),
        sum=sums[0],
        sum_squares=sums[1],
        bucket_limit=limits[shown].tolist(),
        bucket=counts[shown].astype(np.float64).tolist(),
    )


def pixels(image: Any) -> Any:
    """Returns an image as uint8: 0 and the largest become 0 and 255, or, where there are negative
    numbers, 0 becomes 128 and what is farthest from it lies at an end.

    Shapes: [height, width, channels], uint8 or floating-point -> the same, uint8
    """
    if image.dtype == np.uint8:
        return image
    finite = np.isfinite(image).all(axis=-1)
    known = image[finite]
    kind = image.dtype.type
    low, high = (known.min(), known.max()) if known.size else (kind(0), kind(0))
    top, span, zero = (max(-low, high), 127, 128) if low < 0 else (high, 255, 0)
    scale = kind(0) if top < kind(1e-6) else kind(span) / top
    out = np.empty(image.shape, np.uint8)
    out[finite] = (known * scale + kind(zero)).astype(np.uint8)
    out[~finite] = _NOT_FINITE[: image.shape[-1]]
    return out


def png(image: Any) -> bytes:
    """Returns an image as a PNG file.

    Shapes: [height, width, channels] of uint8, with 1 (grey), 3 (RGB) or 4 (RGBA) channels

    Source: the PNG specification, third edition; no filter, no interlacing.
    """
    height, width, channels = image.shape
    color = {1: 0, 3: 2, 4: 6}[channels]
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # in front of each row: no filter
    rows[:, 1:] = image.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(rows.tobytes()))
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


__all__ = ["bucket_limits", "histogram", "pixels", "png"]
