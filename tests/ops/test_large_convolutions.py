"""Convolutions large enough for oneDNN, where it is installed: NumPy says the same."""

import numpy as np
import pytest
from onednn_sides import both

import flowscope as fs
from flowscope.ops.kernels.convolution import _block, columns
from flowscope.ops.kernels.windows import axis_of

SHAPES = [
    # images, filters, stride, dilation, padding
    ((8, 15, 14, 16), (3, 3, 16, 32), 1, 1, "SAME"),
    ((8, 15, 14, 16), (3, 2, 16, 32), 2, 1, "VALID"),
    ((8, 15, 14, 16), (3, 3, 16, 32), 1, 2, "SAME"),
    ((8, 30, 28, 3), (5, 5, 3, 16), 2, 1, "SAME"),
    ((4, 40, 40, 16), (1, 1, 16, 32), 1, 1, "SAME"),
    ((4, 16, 16, 32), (3, 3, 16, 32), 1, 1, "SAME"),
    ((1, 120, 100, 8), (5, 5, 8, 4), 1, 1, "SAME"),
]


def agree(first, second):
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * abs(b).max())


@pytest.mark.parametrize(("x", "k", "stride", "rate", "padding"), SHAPES)
def test_convolution_and_gradients(monkeypatch, x, k, stride, rate, padding):
    rng = np.random.default_rng(0)

    def results(images, filters):
        y = fs.nn.conv2d(images, filters, stride, padding, dilations=rate)
        return [y, *fs.gradients(fs.square(y), [images, filters])]

    arrays = [rng.standard_normal(s).astype("f4") for s in (x, k)]
    agree(*both(monkeypatch, results, *arrays))


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("form", ["NHWC", "NCHW"])
def test_depthwise_convolution_and_gradients(monkeypatch, multiplier, form):
    rng = np.random.default_rng(0)

    def results(images, filters):
        y = fs.nn.depthwise_conv2d(images, filters, 1, "SAME", data_format=form)
        return [y, *fs.gradients(fs.square(y), [images, filters])]

    shape = (16, 24, 24, 32) if form == "NHWC" else (16, 32, 24, 24)
    arrays = [rng.standard_normal(s).astype("f4") for s in (shape, (3, 3, 32, multiplier))]
    agree(*both(monkeypatch, results, *arrays))


def test_a_convolution_of_one_large_image_takes_its_windows_in_blocks():
    x = np.zeros((2, 300, 300, 8), "f4")
    axes = tuple(axis_of(300, 5, 1, 1, "SAME") for _ in range(2))
    whole = x.size * 25
    matrices = [m.size for _, m in columns(np, x, axes)]
    assert sum(matrices) == whole
    assert max(matrices) <= whole / 50


def test_blocks_of_small_images_hold_several():
    axes = tuple(axis_of(10, 3, 1, 1, "SAME") for _ in range(2))
    images, rows = _block(np, 1000, 9 * 4, axes)
    assert rows == 10
    assert images > 10
