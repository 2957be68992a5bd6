"""Signals cut into frames, windows for them, and spectra of the frames over time.

Source: Allen 1977, "Short term spectral analysis, synthesis, and modification by discrete Fourier
transform"; Griffin & Lim 1984 for the window of the inverse.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor, get_static_value
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import DType, as_dtype, float32
from flowscope.graph.values.expected import expected
from flowscope.ops.array.arrays import range as range_of
from flowscope.ops.array.gathering import gather
from flowscope.ops.array.joining import concat, stack
from flowscope.ops.array.moving import roll
from flowscope.ops.array.padding import pad
from flowscope.ops.array.segments import unsorted_segment_sum
from flowscope.ops.array.shaping import expand_dims, reshape, shape_of, transpose
from flowscope.ops.core.axes import as_axes, positive_axis
from flowscope.ops.core.casting import cast
from flowscope.ops.core.flow import identity
from flowscope.ops.math.elementwise import add, cos, maximum, multiply, negative, realdiv, square
from flowscope.ops.math.reductions import reduce_sum
from flowscope.ops.signal.fourier import irfft, rfft

__all__ = [
    "fftshift",
    "frame",
    "hamming_window",
    "hann_window",
    "ifftshift",
    "inverse_stft",
    "inverse_stft_window_fn",
    "overlap_and_add",
    "stft",
]

WindowFunction = Callable[..., Tensor]


def _known(value: Any, what: str) -> int:
    found = get_static_value(value)
    if found is None or int(found) < 1:
        raise expected(f"{what} of 1 at least, known while the graph is built", repr(value))
    return int(found)


def frame(
    signal: Any,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: int = -1,
    name: str | None = None,
) -> Tensor:
    """Returns a signal cut into frames: the axis becomes two, frames and their elements.

    Args:
        signal: A tensor of known rank.
        frame_length: How many elements a frame has.
        frame_step: By how many elements each frame begins behind the one before.
        pad_end: Whether the signal is continued, so that a frame begins at every step inside it.
        pad_value: The number that continues it.
        axis: The axis.
        name: Name scope of the operations.

    Raises:
        InvalidArgumentError: if the rank is unknown or a number is not positive.
    """
    x = convert_to_tensor(signal)
    length, step = _known(frame_length, "frame_length"), _known(frame_step, "frame_step")
    rank = x.spec.rank
    if rank is None:
        raise expected("a signal of known rank", x.spec)
    axis = positive_axis(axis, rank)
    with x.graph.name_scope(name or "frame"):
        count = shape_of(x)[axis]
        if pad_end:
            frames = -(-count // step)
            more = maximum((frames - 1) * step + length - count, 0)
            before = [[0, 0]] * axis
            behind = [[0, 0]] * (rank - 1 - axis)
            x = pad(x, [*before, [0, more], *behind], constant_values=pad_value)
        else:
            frames = maximum((count - length) // step + 1, 0)
        starts = multiply(expand_dims(range_of(frames), 1), step)
        return gather(x, add(starts, expand_dims(range_of(length), 0)), axis=axis)


def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """Returns the signal that overlapping frames [..., frames, length] add up to, a step apart.

    Args:
        signal: Frames, of known rank 2 at least.
        frame_step: By how many elements each frame begins behind the one before.
        name: Name scope of the operations.
    """
    x, step = convert_to_tensor(signal), _known(frame_step, "frame_step")
    rank = x.spec.rank
    if rank is None or rank < 2:
        raise expected("frames of rank 2 at least", x.spec)
    with x.graph.name_scope(name or "overlap_and_add"):
        sizes = shape_of(x)
        frames, length = sizes[rank - 2], sizes[rank - 1]
        places = add(expand_dims(range_of(frames) * step, 1), expand_dims(range_of(length), 0))
        total = maximum((frames - 1) * step + length, 0)
        front = transpose(x, [rank - 2, rank - 1, *range(rank - 2)])
        summed = unsorted_segment_sum(front, places, total)
        return transpose(summed, [*range(1, rank - 1), 0])


def _raised_cosine(length: Any, periodic: bool, dtype: Any, share: float, name: str) -> Tensor:
    """Returns share - (1 - share) * cos(2 pi i / n), n one less where it is not periodic."""
    kind: DType = as_dtype(dtype)
    if not kind.is_floating:
        raise expected("a floating-point dtype", kind)
    n = _known(length, "window_length")
    if n == 1:
        return convert_to_tensor([1.0], kind)
    with get_default_graph().name_scope(name):
        # As the original does: an odd window is symmetrical in any case.
        count = n if periodic and n % 2 == 0 else n - 1
        angles = multiply(cast(range_of(n), kind), 2 * math.pi / count)
        return add(multiply(cos(angles), share - 1), share)


def hann_window(
    window_length: Any, periodic: bool = True, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """Returns a Hann window: a raised cosine.

    Args:
        window_length: How many elements.
        periodic: Whether it goes on with itself, and not symmetrical.
        dtype: Element type.
        name: Name scope of the operations.
    """
    return _raised_cosine(window_length, periodic, dtype, 0.5, name or "hann_window")


def hamming_window(
    window_length: Any, periodic: bool = True, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """Returns a Hamming window: a raised cosine that does not reach 0; see `hann_window`."""
    return _raised_cosine(window_length, periodic, dtype, 0.54, name or "hamming_window")


def _enclosing(length: int) -> int:
    return 1 << (length - 1).bit_length()


def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: WindowFunction | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns the spectra of a signal's frames: complex, [..., frames, fft_length // 2 + 1].

    Args:
        signals: Real signals along the last axis.
        frame_length: How many elements a frame has.
        frame_step: By how many elements each frame begins behind the one before.
        fft_length: Length of the transform; the next power of 2 by default.
        window_fn: Function of a length and a dtype that returns a window, or None.
        pad_end: Whether signals are continued by zeros, see `frame`.
        name: Name scope of the operations.
    """
    x, length = convert_to_tensor(signals), _known(frame_length, "frame_length")
    with x.graph.name_scope(name or "stft"):
        size = _enclosing(length) if fft_length is None else _known(fft_length, "fft_length")
        frames = frame(x, length, frame_step, pad_end)
        if window_fn is not None:
            frames = multiply(frames, window_fn(length, dtype=frames.dtype))
        spectra: Tensor = rfft(frames, [size])
        return spectra


def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: WindowFunction | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """Returns the signals of spectra over time: exact where the windows' products add up to 1.

    Args:
        stfts: Spectra, [..., frames, fft_length // 2 + 1].
        frame_length: As for `stft`, and so the others.
        frame_step: See there.
        fft_length: See there.
        window_fn: The window of the inverse, such as `inverse_stft_window_fn(frame_step)`.
        name: Name scope of the operations.
    """
    x, length = convert_to_tensor(stfts), _known(frame_length, "frame_length")
    with x.graph.name_scope(name or "inverse_stft"):
        size = _enclosing(length) if fft_length is None else _known(fft_length, "fft_length")
        frames = irfft(x, [size])[..., :length]
        if size < length:
            rank = len(frames.shape)
            frames = pad(frames, [*[[0, 0]] * (rank - 1), [0, length - size]])
        if window_fn is not None:
            frames = multiply(frames, window_fn(length, dtype=frames.dtype))
        return overlap_and_add(frames, frame_step)


def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: WindowFunction = hann_window, name: str | None = None
) -> WindowFunction:
    """Returns the window function with which `inverse_stft` gives back the signal of a `stft`.

    Args:
        frame_step: By how many elements each frame begins behind the one before.
        forward_window_fn: The window function of the `stft`.
        name: Name scope of the operations.
    """
    step = _known(frame_step, "frame_step")

    def window(frame_length: Any, dtype: Any) -> Tensor:
        length = _known(frame_length, "frame_length")
        forward = forward_window_fn(length, dtype=dtype)
        with forward.graph.name_scope(name or "inverse_stft_window_fn"):
            count = -(-length // step)
            whole = pad(square(forward), [[0, count * step - length]])
            sums = reduce_sum(reshape(whole, [count, step]), 0)
            return realdiv(forward, concat([sums] * count, 0)[:length])

    return window


def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Returns a spectrum with the frequency 0 in the middle of each axis (or of those given)."""
    return _half_turned(x, axes, False, name or "fftshift")


def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Returns a spectrum with the frequency 0 at the beginning: what undoes `fftshift`."""
    return _half_turned(x, axes, True, name or "ifftshift")


def _half_turned(value: Any, axes: Any, is_back: bool, name: str) -> Tensor:
    x = convert_to_tensor(value)
    rank, places = x.spec.rank, as_axes(axes)
    if rank is not None:
        places = tuple(positive_axis(a, rank) for a in (range(rank) if places is None else places))
    elif places is None:
        raise InvalidArgumentError("expected axes, or a spectrum of known rank")
    with x.graph.name_scope(name):
        if not places:
            return identity(x)
        sizes = shape_of(x)
        halves = [sizes[i] // 2 for i in places]
        return roll(x, stack([negative(h) if is_back else h for h in halves]), list(places))
