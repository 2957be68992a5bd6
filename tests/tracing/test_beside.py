"""Steps that run at the same time: they are seen side by side, each in lanes of its own."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import flowscope as fs
from flowscope.tracing.recorder import Recorder
from flowscope.tracing.windows import window


@pytest.fixture
def session(graph):
    """A session on two simulated accelerators, and two fetches that wait for each other."""
    meet = threading.Barrier(2, timeout=30)

    def met():
        return fs.py_func(lambda: np.float32(meet.wait() >= 0), [], fs.float32)

    x = fs.placeholder(fs.float32, [16, 16], name="x")
    for i in range(2):
        with fs.device(f"/device:GPU:{i}"):
            y = fs.matmul(x, x, name=f"y{i}")
        with fs.device("/device:CPU:0"):
            wait = met()
        with fs.control_dependencies([wait]), fs.device(f"/device:GPU:{i}"):
            z = fs.matmul(y, y, name=f"z{i}")
        with fs.control_dependencies([z]), fs.device("/device:CPU:0"):
            fs.identity(met(), name=f"end{i}")  # so both are computed while both steps run
    with fs.Session(config=fs.ConfigProto(fake_devices={"GPU": 2})) as session:
        yield session


def test_two_steps_fill_two_devices_and_one_window_shows_both(session):
    recorder = Recorder()
    session.tracers = (recorder,)
    feed = {"x:0": np.ones((16, 16), np.float32)}
    steps = [threading.Thread(target=session.run, args=(f"end{i}:0", feed)) for i in range(2)]
    for step in steps:
        step.start()
    for step in steps:
        step.join()
    recorder.totals()
    first, second = recorder.steps(2)
    assert first.begin < second.end and second.begin < first.end
    recording = recorder.recording(first.number)
    (own,) = [s for s in recording.steps if s.number == first.number]
    seen = window(recording, own, own.begin, own.end, 1000)
    names = {recording.nodes[n].name for n in seen.nodes}
    assert names >= {"z0", "z1"}
    lanes = [recording.lanes[i] for i in np.unique(seen.columns["lane"])]
    devices = {lane.name.partition(" (")[0][-5:] for lane in lanes if lane.kind == "device"}
    assert {"GPU:0", "GPU:1"} <= devices
