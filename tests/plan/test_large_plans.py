"""Large plans: source, memory and what is gathered at safepoints grow with the program, no more."""

import gc
import tracemalloc

import numpy as np
import pytest
from stopping import StopAt

import flowscope as fs
from flowscope.plan.codegen import function as code


def unrolled(steps, units=8):
    """Returns the inputs, the loss and the gradients of an unrolled LSTM."""
    xs = [fs.placeholder(fs.float32, [2, units]) for _ in range(steps)]
    outputs, _ = fs.nn.static_rnn(fs.nn.rnn_cell.BasicLSTMCell(units), xs, dtype=fs.float32)
    loss = fs.add_n([fs.reduce_sum(y * y) for y in outputs])
    return xs, [loss, *fs.gradients(loss, fs.trainable_variables())]


def per_node(steps):
    """Returns bytes of source, of memory that stays and of memory at the peak, per node."""
    with fs.Graph().as_default():
        xs, fetches = unrolled(steps)
        with fs.Session() as s:
            tracemalloc.start()
            plan = s.plan(fetches, xs)
            peak = tracemalloc.get_traced_memory()[1]
            gc.collect()  # it pauses while a plan is made
            stays = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
        nodes = sum(1 for _ in plan.program.walk())
        return np.array([len(plan.text("code")), stays, peak]) / nodes


@pytest.mark.memory
@pytest.mark.slow
def test_source_and_memory_grow_with_the_nodes_no_more():
    per_node(3)  # what is made at first use
    small, large = per_node(12), per_node(96)
    assert (large < 1.2 * small).all(), (small, large)
    assert large[0] < 60
    assert large[2] < 15_000


def test_no_safepoint_names_what_is_alive(graph, monkeypatch):
    monkeypatch.setattr(code, "STRETCH_S", 0.0)
    x = fs.placeholder(fs.float32, [4])
    ys = [x * float(i) for i in range(50)]
    with fs.Session() as s:
        plan = s.plan(fs.add_n(ys), [x])
        points = [line for line in plan.text("code").splitlines() if "gate.raised" in line]
    assert len(points) > 40
    assert len({len(line) for line in points}) < 3


@pytest.mark.memory
def test_a_safepoint_keeps_no_value_alive(graph, monkeypatch):
    """The mapping that it is given lives as long as the call: it is emptied."""
    monkeypatch.setattr(code, "STRETCH_S", 1.0)
    n = 1 << 18
    x = fs.placeholder(fs.float32, [n])

    def body(i, y):
        return i + 1, fs.cumsum(fs.cumsum(fs.cumsum(y)))

    y = fs.while_loop(lambda i, y: i < 4, body, [0, x * 1.5])[1]
    peaks = []
    with fs.Session() as s:
        for gate in (None, StopAt(1000)):
            s.gate = gate or s.gate
            tracemalloc.start()
            s.run(y, {x: np.ones(n)})
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + n * 2
