"""Random placements of three models: what is predicted puts them in the order that is run."""

from __future__ import annotations

import numpy as np
import pytest
from ranks import rank_correlation

import flowscope as fs
from flowscope.plan.analysis.device_profile import DeviceProfile, Link

PROFILE = DeviceProfile(speed=20.0, call_s=5e-6, link=Link(2e9, 20e-6))
DEVICES, PLACEMENTS = 3, 20


def perceptron():
    x = fs.placeholder(fs.float32, [None, 128])
    y = x
    for i in range(6):
        w = fs.get_variable(f"w{i}", [128, 128])
        y = fs.nn.relu(fs.matmul(y, w))
    loss = fs.reduce_mean(fs.square(y))
    return fs.train.GradientDescentOptimizer(0.01).minimize(loss), {x: np.ones((256, 128))}


def loop():
    x = fs.placeholder(fs.float32, [None, 64])
    w = fs.get_variable("w", [64, 64])
    u = fs.get_variable("u", [64, 64])

    def body(i, h, c):
        gate = fs.sigmoid(fs.matmul(h, w) + x)
        c = gate * c + fs.tanh(fs.matmul(h, u))
        return i + 1, fs.tanh(c), c

    _, h, _ = fs.while_loop(lambda i, h, c: i < 8, body, [0, x, x])
    loss = fs.reduce_sum(h)
    return [loss, *fs.gradients(loss, [w, u])], {x: np.ones((32, 64))}


def branches(size=128):
    x = fs.placeholder(fs.float32, [None, size])
    ends = []
    for i in range(6):
        y = x
        for j in range(4):
            y = fs.tanh(fs.matmul(y, fs.get_variable(f"w{i}_{j}", [size, size])))
        ends.append(y)
    return fs.reduce_sum(fs.add_n(ends)), {x: np.ones((size, size))}


def scatter(graph, rng):
    """Asks for random devices: runs of operations of random lengths on each."""
    change = rng.choice([0.02, 0.1, 0.3, 0.8])
    at = rng.integers(DEVICES)
    for op in graph.get_operations():
        if rng.random() < change:
            at = rng.integers(DEVICES)
        touches = [t for t in (*op.inputs, *op.outputs) if t.dtype in (fs.resource, fs.variant)]
        if not touches and not op.colocation:
            op.device = f"/device:GPU:{at}"
            graph.edited(op)


def virtual_s(sess, fetches, feed):
    """The seconds of a step on the virtual clock, until all devices are done."""
    gpus = [d for d in sess.list_devices() if d.device_type == "GPU"]
    before = gpus[0].clock.now_s
    sess.run(fetches, feed)
    for gpu in gpus:
        gpu.synchronize()
    return gpus[0].clock.now_s - before


@pytest.mark.slow
@pytest.mark.parametrize("model", [perceptron, loop, branches])
def test_predictions_put_placements_in_the_order_in_which_they_run(model):
    predicted, run = [], []
    for seed in range(PLACEMENTS):
        graph = fs.Graph()
        with graph.as_default():
            fetches, feed = model()
            feed = {k: v.astype(np.float32) for k, v in feed.items()}
            init = fs.global_variables_initializer()
        scatter(graph, np.random.default_rng(seed))
        devices = {"GPU": [PROFILE] * DEVICES}
        config = fs.ConfigProto(fake_devices=devices, allow_soft_placement=True)
        with fs.Session(graph=graph, config=config) as sess:
            sess.run(init)
            sess.run(fetches, feed)  # variables go where they are used
            run.append(virtual_s(sess, fetches, feed))
            predicted.append(sess.placement(fetches, feed).predicted_s)
    assert rank_correlation(predicted, run) >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize(("size", "most"), [(128, 1.0), (512, 0.9)])
def test_simulated_placement_is_quicker_than_the_first_device(size, most):
    found = {}
    for way in ("default", "simulated"):
        graph = fs.Graph()
        with graph.as_default():
            fetches, feed = branches(size)
            feed = {k: v.astype(np.float32) for k, v in feed.items()}
            init = fs.global_variables_initializer()
        config = fs.ConfigProto(fake_devices={"GPU": [PROFILE] * DEVICES}, placement=way)
        with fs.Session(graph=graph, config=config) as sess:
            sess.run(init)
            sess.run(fetches, feed)
            found[way] = virtual_s(sess, fetches, feed)
            ratio = sess.placement(fetches, feed).predicted_s / found[way]
            assert 0.5 < ratio < 2
    assert found["simulated"] <= most * found["default"]
