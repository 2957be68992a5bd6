"""Batch normalisations large enough for oneDNN, where it is installed: NumPy says the same."""

import numpy as np
import pytest
from onednn_sides import both

import flowscope as fs


@pytest.mark.parametrize("form", ["NHWC", "NCHW"])
@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_training_and_gradients(monkeypatch, form, factor):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((16, 24, 20, 8) if form == "NHWC" else (16, 8, 24, 20)).astype("f4")
    vectors = [rng.random(8).astype("f4") + 0.5 for _ in range(4)]
    slope = rng.standard_normal(x.shape).astype("f4")

    def results(given, scale, offset, mean, variance):
        y, *moments = fs.nn.fused_batch_norm(
            given, scale, offset, mean, variance, data_format=form, exponential_avg_factor=factor
        )
        return [y, *moments, *fs.gradients(y, [given, scale, offset], slope)]

    first, second = both(monkeypatch, results, x + 3, *vectors)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * abs(b).max())
