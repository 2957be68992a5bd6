"""Samples: a step that lasts is traced for a while, and goes on in the same code."""

import sys
import threading
import tracemalloc

import numpy as np
import pytest

import flowscope as fs
from flowscope.runtime.step import samples
from flowscope.tracing import Recorder

pytestmark = [
    pytest.mark.usefixtures("graph"),
    pytest.mark.skipif(sys.gettrace() is not None, reason="something traces Python already"),
]


def sampled(sess, fetches, feeds=None, most=samples.LINES):
    """Runs a step, samples it while it runs; returns its values and the recording."""
    recorder, values = Recorder(), []
    thread = threading.Thread(target=lambda: values.append(sess.run(fetches, feeds)))
    thread.start()
    while not sess.gate.inside and thread.is_alive():
        pass
    for step in sess.gate.inside:
        step.sample = samples.Sample(step, recorder, most)
    while thread.is_alive() and not recorder.version:
        sess.gate.look(0.05)
    thread.join()
    return values[0], recorder.recording()


def nested(n):
    def body(i, v):
        v = fs.cond(fs.equal(i % 2, 0), lambda: fs.tanh(v, name="even"), lambda: v * 2.0)
        v = fs.while_loop(
            lambda j, u: j < 3, lambda j, u: (j + 1, fs.add(u, 0.25, name="inner")), [0, v]
        )[1]
        return i + 1, v

    start = fs.placeholder_with_default(np.ones(2, "f"), [2])
    return fs.while_loop(lambda i, v: i < n, body, [0, start], name="outer")[1]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "op"])
def test_some_iterations_are_traced_and_the_step_goes_on(mode):
    v = nested(40_000 if mode == "compiled" else 3000)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        plain = sess.run(v)
        values, recording = sampled(sess, v)
    assert values.tobytes() == plain.tobytes()
    spans, nodes = recording.spans, recording.nodes
    rows = [
        (nodes[spans.node[i]].name.rpartition("/")[2], recording.path(int(spans.frame[i])),
         int(spans.iteration[i]))
        for i in range(len(spans))
    ]  # fmt: skip
    assert 300 < len(rows) <= samples.LINES
    inner = [(path, i) for name, path, i in rows if name == "inner"]
    assert {i for _, i in inner} == {0, 1, 2}
    assert [i for _, i in inner[1:]] == [(i + 1) % 3 for _, i in inner[:-1]]
    outer = [int(path.split(":")[1].split("/")[0]) for path, _ in inner]
    assert outer == sorted(outer) and len(set(outer)) > 20
    assert set(range(outer[0], outer[-1] + 1)) == set(outer)
    even = [i for name, _, i in rows if name == "even"]
    assert all(i % 2 == 0 for i in even) and len(even) > 10
    assert (np.diff(spans.end) >= 0).all()
    assert sys.gettrace() is None and not recording.steps[0].is_whole


@pytest.mark.memory
@pytest.mark.slow
def test_a_sampled_step_takes_no_more_memory():
    def body(i, v):
        return i + 1, fs.tanh(v) * 0.5 + 0.25

    big = fs.placeholder(fs.float32, [1 << 16])
    v = fs.while_loop(lambda i, v: i < 1500, body, [0, big])[1]
    feeds = {big: np.zeros(1 << 16, "f")}
    with fs.Session() as sess:
        sess.run(v, feeds)
        peaks = []
        for is_sampled in (False, True):
            tracemalloc.start()
            if is_sampled:
                _, recording = sampled(sess, v, feeds, most=50)
                assert len(recording.spans)
            else:
                sess.run(v, feeds)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + (1 << 17)
