"""What steps take on simulated devices, against what placement predicts."""

import random

import numpy as np
import pytest

import flowscope as fs
from flowscope.runtime.devices.simulated_step import simulated_step

PROFILES = [
    fs.DeviceProfile(speed=4.0, call_s=1e-6, link=fs.DeviceLink(2e9, 5e-6)),
    fs.DeviceProfile(speed=1.5, call_s=1e-6, link=fs.DeviceLink(8e9, 5e-6)),
]
CONFIG = fs.ConfigProto(fake_devices={"GPU": PROFILES})
DEVICES = ["/cpu:0", "/gpu:0", "/gpu:1"]


def chains(places):
    """Two chains of products that meet."""
    x = fs.placeholder(fs.float32, [300, 300], name="x")
    a = b = x
    for i in range(6):
        with fs.device(places[i]):
            a = fs.matmul(a, x)
        with fs.device(places[6 + i]):
            b = fs.tanh(b)
    return fs.reduce_sum(a + b), {x: np.ones((300, 300), "f") / 300}


def deep(places):
    """Layers one behind the other, with their gradient."""
    x = fs.placeholder(fs.float32, [256, 128], name="x")
    y = x
    for i in range(6):
        with fs.device(places[i]):
            y = fs.nn.relu(fs.matmul(y, fs.ones([128, 128]) * x[0, 0]))
    return fs.gradients(fs.reduce_sum(y), [x])[0], {x: np.full((256, 128), 0.01, "f")}


def looped(places):
    """A loop whose body has work on several devices."""
    x = fs.placeholder(fs.float32, [400, 400], name="x")

    def body(i, v):
        for k in range(4):
            with fs.device(places[k]):
                v = fs.tanh(fs.matmul(v, x)) if k % 2 else fs.exp(-v)
        return i + 1, v

    return fs.while_loop(lambda i, v: i < 4, body, [0, x])[1], {x: np.full((400, 400), 0.01, "f")}


def ranks(values):
    return np.argsort(np.argsort(values))


@pytest.mark.slow
@pytest.mark.parametrize("model", [chains, deep, looped])
def test_predictions_rank_random_placements_as_runs_do(model):
    draw, predicted, took = random.Random(3), [], []
    for _ in range(20):
        with fs.Graph().as_default(), fs.Session(config=CONFIG) as sess:
            fetch, feeds = model([draw.choice(DEVICES) for _ in range(12)])
            predicted.append(sess.placement(fetch, feeds).predicted_s)
            took.append(simulated_step(sess, fetch, feeds).seconds)
    correlation = np.corrcoef(ranks(predicted), ranks(took))[0, 1]
    print(f"{model.__name__}: rank correlation {correlation:.2f}")
    assert correlation >= 0.8


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_a_simulated_step_tells_who_worked_and_waited(graph, mode):
    fetch, feeds = chains([DEVICES[1]] * 6 + [DEVICES[0]] * 6)
    config = fs.ConfigProto(fake_devices={"GPU": PROFILES}, mode=mode)
    with fs.Session(graph=graph, config=config) as sess:
        one, two = (simulated_step(sess, fetch, feeds) for _ in range(2))
        assert one.seconds == pytest.approx(two.seconds)
        gpu, idle = one.busy_s.values()
        assert 6 * 2 * 300**3 / 60e9 / 4 < gpu < one.seconds and idle == 0
        assert 0 < one.waited_s < one.seconds


def test_a_session_without_simulated_devices_is_refused(graph):
    with fs.Session() as sess, pytest.raises(ValueError, match="with simulated devices"):
        simulated_step(sess, fs.constant(1.0))
