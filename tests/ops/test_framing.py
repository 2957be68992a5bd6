"""Frames of signals, windows, and spectra over time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import flowscope as fs
from flowscope.errors import InvalidArgumentError

SIGNAL = np.random.default_rng(1).normal(size=(2, 11))


def framed(x: Any, length: int, step: int) -> Any:
    starts = range(0, x.shape[-1] - length + 1, step)
    return np.stack([x[..., i : i + length] for i in starts], -2)


@pytest.mark.parametrize("shape", [[2, 11], [None, None]])
def test_frames(graph: Any, sess: Any, shape: list[int | None]) -> None:
    x = fs.placeholder(fs.float64, shape)
    plain, long = fs.signal.frame(x, 4, 3), fs.signal.frame(x, 12, 3)
    whole = fs.signal.frame(x, 4, 3, pad_end=True, pad_value=7)
    turned = fs.signal.frame(fs.transpose(x), 4, 3, axis=0)
    a, b, c, d = sess.run([plain, long, whole, turned], {x: SIGNAL})
    np.testing.assert_array_equal(a, framed(SIGNAL, 4, 3))
    assert b.shape == (2, 0, 12)
    wide = np.pad(SIGNAL, [(0, 0), (0, 2)], constant_values=7)
    np.testing.assert_array_equal(c, framed(wide, 4, 3))
    np.testing.assert_array_equal(d, framed(SIGNAL, 4, 3).transpose(1, 2, 0))
    for t, v in ((plain, a), (whole, c)):
        assert t.shape.is_compatible_with(v.shape)


def test_frames_add_up(graph: Any, sess: Any) -> None:
    frames = np.random.default_rng(2).normal(size=(2, 3, 4))
    x = fs.constant(frames)
    y = fs.signal.overlap_and_add(x, 3)
    want = np.zeros((2, 10))
    for i in range(3):
        want[:, 3 * i : 3 * i + 4] += frames[:, i]
    weights = np.random.default_rng(3).normal(size=want.shape)
    got, slope = sess.run([y, fs.gradients(fs.reduce_sum(y * weights), x)[0]])
    np.testing.assert_allclose(got, want)
    np.testing.assert_allclose(slope, framed(weights, 4, 3))


@pytest.mark.parametrize("length", [1, 2, 5, 8])
@pytest.mark.parametrize("name", ["hann", "hamming"])
def test_windows(graph: Any, sess: Any, name: str, length: int) -> None:
    function = getattr(fs.signal, f"{name}_window")
    whole, periodic = function(length, periodic=False), function(length, dtype=fs.float64)
    a, b = sess.run([whole, periodic])
    np.testing.assert_allclose(a, scipy.signal.get_window(name, length, False), atol=1e-6)
    # Odd ones are symmetrical all the same.
    np.testing.assert_allclose(b, scipy.signal.get_window(name, length, length % 2 == 0), atol=1e-9)


@pytest.mark.parametrize(("length", "step", "size"), [(4, 2, None), (5, 2, 7), (6, 3, 4)])
def test_spectra_over_time(graph: Any, sess: Any, length: int, step: int, size: int | None) -> None:
    y = fs.signal.stft(SIGNAL, length, step, size)
    size = size or 4
    window = scipy.signal.get_window("hann", length, length % 2 == 0)
    want = np.fft.rfft(framed(SIGNAL, length, step) * window, size)
    np.testing.assert_allclose(sess.run(y), want, atol=1e-9)


def test_the_inverse_gives_the_signal_back(graph: Any, sess: Any) -> None:
    x = np.random.default_rng(5).normal(size=40)
    window = fs.signal.inverse_stft_window_fn(2)
    y = fs.signal.inverse_stft(fs.signal.stft(x, 8, 2), 8, 2, window_fn=window)
    np.testing.assert_allclose(sess.run(y)[8:-8], x[8:-8], atol=1e-9)


def test_halves_are_exchanged(graph: Any, sess: Any) -> None:
    x = np.arange(30.0).reshape(5, 6)
    tensors = [
        fs.signal.fftshift(x),
        fs.signal.ifftshift(x, axes=0),
        fs.signal.ifftshift(fs.signal.fftshift(x, axes=[0, -1]), axes=[0, -1]),
    ]
    a, b, c = sess.run(tensors)
    np.testing.assert_array_equal(a, np.fft.fftshift(x))
    np.testing.assert_array_equal(b, np.fft.ifftshift(x, 0))
    np.testing.assert_array_equal(c, x)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fs.signal.frame(SIGNAL, 0, 1), "frame_length"),
        (lambda: fs.signal.frame(SIGNAL, 2, 1, axis=2), "got 2"),
        (lambda: fs.signal.frame(fs.placeholder(fs.float32), 2, 1), "known rank"),
        (lambda: fs.signal.overlap_and_add(fs.ones([3]), 1), "rank 2"),
        (lambda: fs.signal.hann_window(4, dtype=fs.int32), "floating-point"),
    ],
)
def test_errors(graph: Any, make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()
