"""What is recorded of traced steps: spans, totals, frames, lanes, in all modes."""

import contextlib
import itertools
import os
import signal
import threading
import tracemalloc

import numpy as np
import pytest
from late_steps import late

import flowscope as fs
from flowscope.runtime.step.samples import Sample
from flowscope.runtime.trace import step_trace
from flowscope.tracing import Recorder

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]


def session(mode="compiled"):
    return fs.Session(config=fs.ConfigProto(mode=mode))


def nested():
    x = fs.placeholder(fs.float32, [2], name="x")

    def body(i, v):
        v = fs.cond(fs.equal(i % 2, 0), lambda: fs.tanh(v, name="even"), lambda: v * 2.0)
        v = fs.while_loop(
            lambda j, u: j < i, lambda j, u: (j + 1, fs.add(u, x, name="inner")), [0, v]
        )[1]
        return i + 1, v + fs.random_uniform([2], seed=3)

    return x, fs.while_loop(lambda i, v: i < 4, body, [0, x], name="outer")[1]


def short(name):
    return name.rpartition("/")[2]


def spans_of(recording, name):
    """Returns (path of the frame, iteration) of the spans of a node, in order."""
    spans = recording.spans
    return [
        (recording.path(int(spans.frame[i])), int(spans.iteration[i]))
        for i in range(len(spans))
        if spans.node[i] >= 0 and short(recording.nodes[spans.node[i]].name) == name
    ]


def total(recording, name):
    found = [i for i, n in enumerate(recording.nodes) if short(n.name) == name]
    return sum(int(recording.totals.count[i]) for i in found)


@pytest.mark.parametrize("mode", MODES)
def test_spans_tell_frames_and_iterations_in_every_mode(mode):
    x, v = nested()
    feeds = {x: np.array([0.5, -1.0], "f")}
    with session(mode) as sess:
        plain = [sess.run(v, feeds).tobytes() for _ in range(3)]
    with session(mode) as sess:
        sess._entropy = 1
        with fs.profile(sess) as profiled:
            traced = [sess.run(v, feeds).tobytes() for _ in range(3)]
    assert len(plain) == len(traced)
    recording = profiled.recording
    assert [s.number for s in recording.steps] == [0, 1, 2]
    inner = [(p.replace("outer/body/while", "inner"), i) for p, i in spans_of(recording, "inner")]
    expected = [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)] * 3
    if mode != "tokens":  # there iterations of the outer loop overlap
        assert [(int(p.split(":")[1].split("/")[0]), i) for p, i in inner] == expected
    assert sorted(i for _, i in inner) == sorted(i for _, i in expected)
    assert total(recording, "even") == 6 and total(recording, "inner") == 18
    assert {n.device for n in recording.nodes} == {sess.list_devices()[0].name}


@pytest.mark.parametrize("mode", MODES)
def test_tracing_changes_no_bit(mode):
    x, v = nested()
    w = fs.Variable([1.0, 2.0])
    train = fs.train.AdamOptimizer(0.1).minimize(fs.reduce_sum(w * w * v))
    fs.set_random_seed(5)
    feeds = {x: np.array([0.5, -1.0], "f")}
    found = []
    for is_traced in (False, True):
        with session(mode) as sess:
            sess.run(fs.global_variables_initializer())
            options = fs.RunOptions(trace_level=fs.RunOptions.FULL_TRACE) if is_traced else None
            values = [sess.run([v, train, w], feeds, options=options) for _ in range(3)]
            found.append([np.asarray(a).tobytes() for a, _, b in values for a in (a, b)])
    assert found[0] == found[1]


def test_own_times_are_a_partition_of_what_is_computed():
    x, v = nested()
    with session() as sess, fs.profile(sess) as profiled:
        for _ in range(5):
            sess.run(v, {x: np.zeros(2, "f")})
    recording = profiled.recording
    totals, parents = recording.totals, np.array([n.parent for n in recording.nodes])
    assert totals.self_ns.sum() == sum(s.split.compute for s in recording.steps)
    assert totals.total_ns[parents < 0].sum() == totals.self_ns.sum()
    for step in recording.steps:
        parts = step.split
        whole = parts.compute + parts.copies + parts.waits + parts.other
        assert whole == step.end - step.begin
        assert parts.compute > 0 and parts.copies > 0
    assert all(s.split.python > 0 for s in recording.steps[1:])
    python = [i for i, lane in enumerate(recording.lanes) if lane.kind == "python"]
    assert (recording.spans.lane == python[0]).sum() == 4


def test_a_span_lies_inside_of_what_runs_it():
    x, v = nested()
    with session() as sess, fs.profile(sess) as profiled:
        sess.run(v, {x: np.zeros(2, "f")})
    recording = profiled.recording
    spans = recording.spans
    assert (spans.end >= spans.begin).all() and (np.diff(spans.end) >= 0).all()
    own = [i for i in range(len(spans)) if spans.node[i] >= 0]
    for a, b in itertools.combinations(own, 2):
        is_apart = spans.end[a] <= spans.begin[b]
        is_inside = spans.begin[b] <= spans.begin[a] and spans.end[a] <= spans.end[b]
        assert is_apart or is_inside


def test_phases_are_told():
    w = fs.Variable([[1.0, 2.0]], name="w")
    loss = fs.reduce_sum(fs.square(w) * 3.0)
    train = fs.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    with session() as sess:
        sess.run(fs.global_variables_initializer())
        with fs.profile(sess) as profiled:
            sess.run([train, loss])
    phases = {n.name: n.phase for n in profiled.recording.nodes}
    assert {p for name, p in phases.items() if "Apply" in name} == {"update"}
    gradients = {p for name, p in phases.items() if name.startswith("gradients/")}
    assert gradients == {"gradient"}
    assert phases["Square"] == "forward"


def test_a_node_leads_to_all_operations_it_was_made_of():
    x = fs.placeholder(fs.float32, [2])
    a, b = fs.exp(x, name="a"), fs.exp(x, name="b")
    with session() as sess, fs.profile(sess) as profiled:
        sess.run([a, b], {x: [1.0, 2.0]})
    (node,) = [n for n in profiled.recording.nodes if n.type == "Exp"]
    assert node.names == ("a", "b") and node.operations == (a.op.id, b.op.id)
    assert node.line.text.startswith("a, b = fs.exp(x")


def test_old_steps_are_dropped_and_totals_stay_exact():
    x = fs.placeholder(fs.float32, [2])
    y = fs.exp(x) + 1.0
    with session() as sess, fs.profile(sess, most_spans=10) as profiled:
        for _ in range(50):
            sess.run(y, {x: [1.0, 2.0]})
    recording = profiled.recording
    assert recording.traced_steps == 50
    assert [s.number for s in recording.steps] == [45, 46, 47, 48, 49]
    assert recording.totals.count.tolist() == [50, 50]
    (gap,) = recording.gaps
    assert gap.spans == 45 * 4 and gap.end <= recording.steps[0].begin and "newer" in gap.why


@pytest.mark.parametrize("mode", ["compiled", "op"])
def test_a_long_loop_keeps_its_newest_iterations(monkeypatch, mode):
    monkeypatch.setattr(step_trace, "MOST", 1 << 15)
    monkeypatch.setattr(step_trace, "MOST_ROWS", 4000)
    n = 30_000 if mode == "compiled" else 3000
    _, v = fs.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, fs.tanh(v, name="t")), [0, 1.0])
    with session(mode) as sess, fs.profile(sess) as profiled:
        sess.run(v)
    recording = profiled.recording
    assert total(recording, "t") == n
    kept = spans_of(recording, "t")
    assert 500 < len(kept) < n
    assert kept == [("while", i) for i in range(n - len(kept), n)]
    (gap,), (step,) = recording.gaps, recording.steps
    assert not step.is_whole and gap.spans > 1000 and step.begin < gap.begin < gap.end < step.end
    assert recording.totals.self_ns.sum() <= step.end - step.begin
    name = {short(n.name): i for i, n in enumerate(recording.nodes)}
    assert recording.totals.total_ns[name["Loop"]] == recording.totals.self_ns.sum()


def test_an_error_ends_a_trace():
    x = fs.placeholder(fs.int32, [], name="x")
    y = (
        1
        + fs.while_loop(
            lambda i, s: i < 5, lambda i, s: (i + 1, s + fs.floordiv(6, x - i, name="d")), [0, 0]
        )[1]
    )
    with session() as sess, fs.profile(sess) as profiled:
        with pytest.raises(fs.errors.InvalidArgumentError, match="in iteration 3 of"):
            sess.run(y, {x: 3})
        assert sess.run(y, {x: 7})
    recording = profiled.recording
    first, second = recording.steps
    assert first.error and first.split.compute and second.error == ""
    spans = recording.spans
    rows = range(first.first, first.last)
    names = [short(recording.nodes[spans.node[r]].name) for r in rows if spans.node[r] >= 0]
    assert names[-1] == "Loop" and "d" in names


def test_a_stop_ends_a_trace():
    i = fs.while_loop(lambda i: i < 10**9, lambda i: i + 1, [0])
    with session() as sess, fs.profile(sess) as profiled:
        late(sess, i, ms=100)
    (step,) = profiled.recording.steps
    assert "100 ms" in step.error


def test_a_pause_is_nobodys_time():
    y = fs.while_loop(lambda i: i < 300_000, lambda i: i + 1, [0])
    with session() as sess, fs.profile(sess) as profiled:
        thread = threading.Thread(target=sess.run, args=(y,))
        thread.start()
        while not sess.running:
            pass
        sess.pause()
        assert sess.gate.wait_until_held(20)
        held = threading.Event()
        held.wait(0.2)
        sess.resume()
        thread.join()
    (step,) = profiled.recording.steps
    assert step.split.waits > 150e6
    assert step.split.compute < step.end - step.begin - step.split.waits
    assert "pause" in {lane.kind for lane in profiled.recording.lanes}


@pytest.mark.parametrize("mode", MODES)
def test_a_wait_has_a_lane(mode):
    q = fs.FIFOQueue(1, [fs.float32], [[]])
    y = fs.negative(q.dequeue(), name="y")
    put = q.enqueue(2.0)
    with session(mode) as sess, fs.profile(sess) as profiled:
        thread = threading.Thread(target=sess.run, args=(y,))
        thread.start()
        while not sess.running:
            pass
        threading.Event().wait(0.1)
        sess.run(put)
        thread.join()
    recording = profiled.recording
    step = max(recording.steps, key=lambda s: s.end - s.begin)
    assert step.split.waits > 50e6 and total(recording, "y") == 1


def test_helper_threads_have_lanes():
    x = fs.placeholder(fs.float32, [1 << 21])
    y = fs.exp(x * 2.0 + 1.0)
    with session() as sess, fs.profile(sess) as profiled:
        sess.engine.pool.limit(2)
        for _ in range(20):
            sess.run(y, {x: np.zeros(1 << 21, "f")})
            if "helper" in {lane.kind for lane in profiled.recording.lanes}:
                break
    recording = profiled.recording
    (lane,) = [i for i, one in enumerate(recording.lanes) if one.kind == "helper"]
    (row,) = np.flatnonzero(recording.spans.lane == lane)[-1:]
    device = recording.spans
    own = [i for i in range(len(device)) if device.node[i] >= 0]
    assert any(
        device.begin[i] <= device.begin[row] and device.end[row] <= device.end[i] for i in own
    )


def test_sessions_of_a_block_are_all_traced():
    y = fs.exp(fs.placeholder_with_default(1.0, []))
    with fs.Session() as before, fs.profile() as profiled:
        before.run(y)
        with fs.Session() as later:
            later.run(y)
            later.make_callable(y)()
    assert profiled.recording.traced_steps == 3
    before_count = profiled.recording.traced_steps
    with fs.Session() as sess:
        sess.run(y)
        assert not sess.tracers
    assert profiled.recording.traced_steps == before_count


def test_the_critical_path_is_the_longest_chain():
    x = fs.placeholder(fs.float32, [300, 300])
    slow = fs.matmul(fs.matmul(x, x, name="s1"), x, name="s2")
    quick = fs.negative(x, name="q")
    y = fs.add(slow, quick, name="end")
    with session() as sess, fs.profile(sess) as profiled:
        sess.run(y, {x: np.ones((300, 300), "f")})
    recording = profiled.recording
    path = [
        recording.nodes[recording.spans.node[i]].name
        for i in recording.critical_path(recording.steps[0])
    ]
    assert path == ["s1", "s2", "end"]


def test_an_empty_recorder_tells_nothing():
    recording = Recorder().recording()
    assert not recording.steps and not len(recording.spans) and "0 steps" in repr(recording)


def test_tables_tell_where_the_time_went():
    x, v = nested()
    with session() as sess, fs.profile(sess) as profiled:
        sess.run(v, {x: np.zeros(2, "f")})
    whole = profiled.recording.totals.self_ns.sum()
    for by in ("op", "type", "scope", "line", "device", "phase"):
        found = profiled.table(by)
        assert sum(r.self_ns for r in found) == whole
        assert sum(r.share for r in found) == pytest.approx(1.0)
        assert [r.self_ns for r in found] == sorted((r.self_ns for r in found), reverse=True)
        assert all(r.self_ns <= r.total_ns <= whole for r in found)
        assert repr(found[:1]) == "\n".join(repr(found).splitlines()[:2]) and found[0] in found[:1]
    by_type = {r.name: r for r in profiled.table("type")}
    assert by_type["Loop"].count == 1 + 4 and by_type["Tanh"].count == 2
    assert by_type["Loop"].total_ns == max(r.total_ns for r in profiled.table("op"))
    (device,) = profiled.table("device")
    assert device.share == 1.0 and "100.0%" in repr(profiled.table("device"))
    with pytest.raises(fs.errors.InvalidArgumentError, match="one of op, type"):
        profiled.table("colour")


def nested_counts(outer_n, inner_n):
    def outer(i, s):
        inner = fs.while_loop(lambda j, t: j < inner_n, lambda j, t: (j + 1, t + 1), [0, s])
        return i + 1, inner[1]

    return fs.while_loop(lambda i, s: i < outer_n, outer, [0, 0], name="outer")[1]


@pytest.mark.slow
def test_nested_loops_of_a_million_iterations_are_traced_and_the_newest_kept():
    y = nested_counts(1000, 1000)
    with session() as sess, fs.profile(sess) as profiled:
        assert sess.run(y) == 10**6
    recording = profiled.recording
    assert recording.totals.count.max() >= 10**6
    (gap,), (step,) = recording.gaps, recording.steps
    assert not step.is_whole and gap.spans > 10**6 and len(recording.spans) < step_trace.MOST * 1.1


@pytest.mark.memory
@pytest.mark.slow
def test_a_trace_of_nested_loops_takes_bounded_memory(monkeypatch):
    monkeypatch.setattr(step_trace, "MOST", 1 << 15)
    peaks = []
    for n in (100, 300):
        y = nested_counts(n, 300)
        with session() as sess:
            sess.run(y)
            tracemalloc.start()
            try:
                with fs.profile(sess) as profiled:
                    sess.run(y)
                peaks.append(tracemalloc.get_traced_memory()[1])
            finally:
                tracemalloc.stop()
        assert profiled.recording.totals.count.max() >= 300 * n
    assert peaks[1] < 1.2 * peaks[0] < 8 << 20


@pytest.mark.parametrize("mode", MODES)
def test_an_interrupt_ends_a_traced_step(mode):
    i = fs.while_loop(lambda i: i < 10**9, lambda i: i + 1, [0])
    with session(mode) as sess:

        def interrupt_when_it_runs():
            while not (sess.running and sess.gate.inside[0].number is not None):
                pass
            sess.frames()
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt_when_it_runs)
        with fs.profile(sess) as profiled:
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                sess.run(i)
            thread.join()
        again = fs.add(1, 2)
        assert sess.run(again) == 3
    (step, *_) = profiled.recording.steps
    assert not step.is_whole or step.error or len(profiled.recording.spans) > 1


@pytest.mark.parametrize("mode", MODES)
def test_parts_of_a_step_that_lasts_are_traced_in_every_mode(mode):
    taken = []

    class Taker:
        def wants(self, plan):
            return False

        def take(self, trace):
            taken.append(trace)

    y = fs.while_loop(lambda i: i < 10**9, lambda i: fs.add(i, 1, name="add"), [0])
    with session(mode) as sess:
        thread = threading.Thread(target=run_until_stopped, args=(sess, y))
        thread.start()
        while not sess.running:
            pass
        (step,) = sess.gate.inside
        step.sample = Sample(step, Taker(), most=300)
        sess.gate.look(wait_s=20)
        while not taken and thread.is_alive():
            sess.gate.look(wait_s=20)
        sess.stop()
        thread.join()
    (trace, *_) = taken
    names = {row.node.name.rpartition("/")[2] for row in trace.rows.rows}
    assert trace.is_sample and 0 < len(trace.rows.rows) <= 300 and "add" in names
    iterations = [row.iterations[-1] for row in trace.rows.rows if row.iterations]
    assert iterations == sorted(iterations) and iterations[-1] > iterations[0]


def run_until_stopped(sess, fetch):
    with contextlib.suppress(fs.errors.CancelledError):
        sess.run(fetch)


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_traced_steps_stop_at_breakpoints_and_are_recorded(mode):
    with fs.Graph().as_default():
        x = fs.placeholder(fs.float32, [2], name="x")
        _, v = fs.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, fs.tanh(v)), [0, x], name="w")
        y = fs.reduce_sum(v, name="y")
        with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
            plain, stops = sess.run(y, {x: [1, 2]}), []
            sess.debug.on_stop(lambda stop: stops.append(stop.op.name))
            sess.debug.break_before("w/body/Tanh", iteration=1)
            history = sess.debug.record(["w/body/Tanh"])
            with fs.profile(sess) as profiled:
                assert sess.run(y, {x: [1, 2]}) == plain
    assert stops == ["w/body/Tanh"]
    assert [k.iterations for k in history.values("w/body/Tanh")] == [(0,), (1,), (2,)]
    counts = {
        n.name: c
        for n, c in zip(profiled.recording.nodes, profiled.recording.totals.count, strict=True)
    }
    assert counts["w/body/Tanh"] == 3
