"""Batch normalisations large enough for oneDNN, where it is installed: NumPy says the same."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.ops import onednn_norms


@pytest.mark.parametrize("form", ["NHWC", "NCHW"])
@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_training_and_gradients(monkeypatch, form, factor):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((16, 24, 20, 8) if form == "NHWC" else (16, 8, 24, 20)).astype("f4")
    vectors = [rng.random(8).astype("f4") + 0.5 for _ in range(4)]
    slope = rng.standard_normal(x.shape).astype("f4")

    def run():
        with fs.Graph().as_default() as graph, fs.Session(graph=graph) as sess:
            given = fs.constant(x + 3)
            scale, offset, mean, variance = map(fs.constant, vectors)
            y, *moments = fs.nn.fused_batch_norm(
                given,
                scale,
                offset,
                mean,
                variance,
                data_format=form,
                exponential_avg_factor=factor,
            )
            return sess.run([y, *moments, *fs.gradients(y, [given, scale, offset], slope)])

    first = run()
    monkeypatch.setattr(onednn_norms, "WORTH_ELEMENTS", float("inf"))
    for a, b in zip(first, run(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * abs(b).max())
