"""What a step of tokens tells of its loops: limits, what is kept, what holds, and back edges."""

import threading
import time

import numpy as np
import pytest

import flowscope as fs
from flowscope.runtime.state.queue_state import QueueState
from flowscope.runtime.step.frames import running
from flowscope.runtime.waits.gate import Gate

pytestmark = pytest.mark.usefixtures("graph")

#: Longest wait for another thread; only a broken program waits that long.
PATIENCE_S = 30


class Looking(Gate):
    """Looks at every safepoint, and notes the places and which of them end an iteration."""

    def __init__(self):
        super().__init__()
        self.raised = True
        self.places = []
        self.back_edges = []

    def hold(self, point, here=None):
        if here is not None:
            self.places.append(here.where())
            if here.is_back_edge:
                self.back_edges.append(self.places[-1])
        return False


def looked(fetches, feeds=None, mode="tokens", before=()):
    """Runs a step that is looked at; returns its gate and the value."""
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        for op in before:
            sess.run(op)
        gate = sess.gate = Looking()
        value = sess.run(fetches, feeds)
    return gate, value


def frames(gate, name):
    """The reports of a loop, place by place."""
    return [f for w in gate.places for f in running([w]) if f.path == name]


def test_limits_are_told_that_are_fed():
    n = fs.placeholder(fs.int32, [])
    by_test = fs.while_loop(lambda i: i < n, lambda i: i + 1, [0], name="test")
    by_count = fs.while_loop(
        lambda i: True, lambda i: i + 1, [0], maximum_iterations=n + 1, name="count"
    )
    gate, values = looked([by_test, by_count], {n: 5})
    assert values == [5, 6]
    assert {f.limit for f in frames(gate, "test")[3:]} == {5}
    assert {f.limit for f in frames(gate, "count")[3:]} == {6}


def test_the_bytes_that_are_kept_are_those_of_the_real_lists():
    x = fs.placeholder(fs.float64, [None])
    y = fs.while_loop(
        lambda y: True,
        lambda y: fs.tanh(fs.concat([y, y[:1]], 0)),
        [x],
        shape_invariants=[fs.TensorShape([None])],
        maximum_iterations=4,
        name="loop",
    )
    gate, _ = looked(fs.gradients(y, x), {x: np.ones(2)})
    told = [f.kept_bytes for f in frames(gate, "loop")]
    assert told == sorted(told) and told[0] == 0
    shapes, tanhs = 12, [24, 32, 40, 48]
    totals = [shapes * (k + 1) + sum(tanhs[: k + 1]) for k in range(4)]
    assert set(totals) <= set(told) and told[-1] == totals[-1]


def test_operations_of_an_iteration_are_counted_as_the_user_made_them():
    loop = fs.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, fs.sin(y)), [0, 1.0], name="loop",
        parallel_iterations=1,
    )  # fmt: skip
    gate, _ = looked(loop)
    for frame in frames(gate, "loop"):
        for it in frame.window:
            assert it.waiting + it.running + it.done + it.dead == 3, "Less, add, Sin"
    dead = [it.dead for frame in frames(gate, "loop") for it in frame.window]
    assert set(dead) == {0}, "what is dead is dead at once, and the loop ends"


def test_an_iteration_of_the_innermost_loop_ends_at_its_back_edge():
    def outer(i, y):
        _, y = fs.while_loop(
            lambda j, y: j < 3, lambda j, y: (j + 1, fs.sin(y)), [0, y], name="inner",
            parallel_iterations=1,
        )  # fmt: skip
        return i + 1, y

    _, y = fs.while_loop(lambda i, y: i < 2, outer, [0, 1.0], name="outer", parallel_iterations=1)
    gate, _ = looked(y)
    ends = [tuple(f.iteration for f in running([w])) for w in gate.back_edges]
    assert ends == [(0, 1), (0, 2), (0, 3), (1,), (1, 1), (1, 2), (1, 3), (2,)]


def test_a_loop_in_a_branch_that_is_not_taken_is_not_told():
    x = fs.placeholder(fs.float32, [])

    def outer(i, y):
        return i + 1, fs.cond(i < 1, lambda: y, lambda: inner(y))

    def inner(y):
        return fs.while_loop(lambda y: y < x, lambda y: y + 1.0, [y], name="inner")

    i, y = fs.while_loop(lambda i, y: i < 2, outer, [0, 0.0], name="outer")
    gate, value = looked([i, y], {x: 3.0})
    assert value == [2, 3.0]
    told = {f.path.rpartition("/")[0] for w in gate.places for f in running([w])} - {""}
    assert len(told) == 1 and "outer:1" in told.pop()


def test_regions_tell_the_frames_around_them(monkeypatch):
    # One that is never served at once leaves the code for the machine.
    monkeypatch.setattr(QueueState, "take", lambda queue, count: None)
    queue = fs.FIFOQueue(9, [fs.float64], shapes=[[]])

    def outer(i, y):
        x = queue.dequeue()
        _, z = fs.while_loop(
            lambda j, z: j < 3, lambda j, z: (j + 1, fs.sin(z)), [0, x], name="inner"
        )
        return i + 1, y + z

    start = [0, fs.constant(0.0, fs.float64)]
    _, y = fs.while_loop(lambda i, y: i < 4, outer, start, name="outer")
    fill = queue.enqueue_many([np.ones(4)])
    gate, _ = looked(y, mode="compiled", before=[fill])
    inside = [w for w in gate.places if w.mode == "compiled" and len(w.loops) == 2]
    assert {w.loops[0].iteration for w in inside} == {0, 1, 2, 3}
    for where in inside:
        found = {f.path: f for f in running([where])}
        inner = found[f"outer:{where.loops[0].iteration}/inner"]
        assert found["outer"].mode == "tokens" and found["outer"].limit == 4
        assert inner.mode == "compiled" and inner.limit == 3
        assert inner.around.path == "outer"


class Waiting:
    """A step in another thread that waits for a queue, and what it tells then."""

    def __init__(self, fetches, queue, count, mode="tokens"):
        x = fs.placeholder(fs.float32, [])
        fill = queue.enqueue(x)
        with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
            thread = threading.Thread(target=lambda: sess.run(fetches))
            thread.start()
            pending = f"{count} dequeue"
            end_s = time.monotonic() + PATIENCE_S
            while pending not in str(sess.frames()[:1] and sess.frames()[0].held):
                assert time.monotonic() < end_s
            self.frames = sess.frames()
            for _ in range(9):
                sess.run(fill, {x: 1.0})
            thread.join(PATIENCE_S)
        assert not thread.is_alive()


def waits(queue):
    """How a view names an operation that waits for a queue."""
    return f'"loop/body/taken" on FIFOQueue "{queue}" (0 of 9 elements, 1 dequeue waiting)'


def test_an_edge_that_holds_the_next_iteration_is_named_with_what_it_waits_for():
    queue = fs.FIFOQueue(9, [fs.float32], shapes=[[]], name="orders")

    def body(y):
        return y + queue.dequeue(name="taken")

    y = fs.while_loop(lambda y: y < 3.0, body, [0.0], name="loop")
    (frame,) = Waiting(y, queue, 1).frames
    edge = '"loop/body/add" -> "loop/Loop/NextIteration"'
    assert frame.held == f"{edge} waits for {waits('orders')}"
    assert [(i.number, i.is_busy) for i in frame.window] == [(0, False)]


def test_a_full_window_names_what_the_oldest_waits_for_and_the_next_the_edge_to_it():
    queue = fs.FIFOQueue(9, [fs.float32], shapes=[[]], name="orders")

    def body(i, y):
        with fs.control_dependencies([fs.sin(y)]):
            taken = queue.dequeue(name="taken")
        return i + 1, y + taken

    y = fs.while_loop(lambda i, y: i < 5, body, [0, 0.0], name="loop", parallel_iterations=3)
    (frame,) = Waiting(y, queue, 1).frames
    first = f"parallel_iterations = 3 are in flight, the oldest waits for {waits('orders')}"
    assert frame.held.startswith(first)
    assert '; iteration 1 waits for "loop/body/add_1" -> "loop/Loop/NextIteration_1' in frame.held
    assert [i.number for i in frame.window] == [0, 1, 2]
