"""Loops made of primitives by hand: shown as frames, and watched as others are."""

import contextlib
import threading
import time

import pytest

import flowscope as fs
from flowscope import raw_ops
from flowscope.live.graphs.nodes import node_of
from flowscope.live.watchers import bus
from flowscope.live.watchers.bus import LiveChannel

pytestmark = pytest.mark.usefixtures("graph")

#: Longest wait for another thread; only a broken program waits that long.
PATIENCE_S = 30


def count(n, frame="count", start=0, body=lambda i: i, k=10):
    """A loop by hand that counts from `start` to n; returns the count."""

    def constant(value, name):
        return raw_ops.Enter(
            data=value, frame_name=frame, is_constant=True, parallel_iterations=k, name=name
        )

    begin = raw_ops.Enter(data=start, frame_name=frame, parallel_iterations=k, name="begin")
    i, _ = raw_ops.Merge(inputs=[begin, begin], name="i")
    test = fs.less(i, constant(n, "n"), name="test")
    stop, go = raw_ops.Switch(data=i, pred=raw_ops.LoopCond(input=test), name="choose")
    step = fs.add(body(go), constant(fs.constant(1), "one"), name="step")
    back = raw_ops.NextIteration(data=step, name="back")
    i.op._update_input(1, back)
    return raw_ops.Exit(data=stop, name="end")


def places(graph):
    """Returns where operations are shown, and the frames that they lead into."""
    nodes = [node_of(op, None) for op in graph.get_operations()]
    return {n.name: n.scope for n in nodes}, {n.name: n.frame for n in nodes if n.frame}


def test_what_runs_in_a_loop_is_shown_in_a_scope_of_its_own(graph):
    start = fs.constant(0, name="start")
    fs.negative(count(fs.constant(3, name="limit"), start=start), name="after")
    scopes, frames = places(graph)
    inside = {"begin", "i", "n", "test", "LoopCond", "choose", "one", "step", "back", "end"}
    assert {name for name, scope in scopes.items() if scope == "count"} == inside
    assert {scopes[name] for name in ("start", "limit", "Const", "after")} == {""}
    assert frames == dict.fromkeys(["begin", "n", "one"], "count")


def test_name_scopes_in_and_around_a_loop_are_kept(graph):
    def body(i):
        with fs.name_scope("part"):
            return fs.square(i, name="twice")

    with fs.name_scope("model"):
        count(fs.constant(3), frame="model/run", start=fs.constant(2), body=body)
    scopes, frames = places(graph)
    assert scopes["model/i"] == frames["model/begin"] == "model/run"
    assert scopes["model/part/twice"] == "model/run/part"


def test_a_loop_in_a_loop_is_shown_inside_of_it(graph):
    def body(i):
        with fs.name_scope("part"):
            zero = raw_ops.Enter(data=fs.constant(0), frame_name="out", name="zero")
            limit = raw_ops.Enter(data=i, frame_name="in", is_constant=True, name="to")
            begin = raw_ops.Enter(data=zero, frame_name="in", name="from")
            raw_ops.Exit(data=fs.maximum(begin, limit, name="most"), name="left")
        return i

    count(fs.constant(3), frame="out", start=fs.constant(0), body=body)
    scopes, frames = places(graph)
    assert scopes["part/zero"] == "out/part"
    assert frames["part/to"] == frames["part/from"] == "out/part/in"
    assert scopes["part/most"] == scopes["part/left"] == "out/part/in"


class Running:
    """A loop by hand that runs in another thread, held before its first operation."""

    def __init__(self, monkeypatch, graph, fetch, feeds, mode):
        monkeypatch.setattr(bus, "PERIOD_S", 1e6)
        self.feed = LiveChannel(graph)
        self.sess = fs.Session(config=fs.ConfigProto(mode=mode))
        self.sess.pause()
        self.thread = threading.Thread(target=self._run, args=(fetch, feeds))
        self.thread.start()
        assert self.sess.gate.wait_until_held(PATIENCE_S)
        self.feed.snapshot(0.0)

    def _run(self, fetch, feeds):
        with contextlib.suppress(fs.errors.CancelledError):
            self.sess.run(fetch, feeds)

    def move(self, name="step_op"):
        """Makes one move; returns what is told of it."""
        gate = self.sess.gate
        getattr(self.sess, name)()
        with gate._changed:
            assert gate._changed.wait_for(lambda: gate.state == "paused", PATIENCE_S)
        self.feed.tick(1.0)
        return self.feed._run

    def end(self):
        self.sess.stop()
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()
        self.sess.close()


@pytest.fixture
def run(monkeypatch, graph):
    """A function that starts a held step, which ends with the test."""
    made = []

    def start(fetch, feeds=None, mode="tokens"):
        made.append(Running(monkeypatch, graph, fetch, feeds, mode))
        return made[-1]

    yield start
    for one in made:
        one.end()


def test_a_loop_that_runs_as_code_is_told_by_the_names_of_its_frame(graph, run):
    n = fs.placeholder(fs.int32, [], name="n")
    running = run(count(n, start=fs.constant(2), k=3), {n: 9}, "compiled")
    ids = {op.name: op.id for op in graph.get_operations()}
    states = [running.move("step_iteration") for _ in range(3)]
    frames = [s.frames[0] for s in states]
    assert {(f.id, f.name, f.loop) for f in frames} == {("count", "count", ids["begin"])}
    assert [f.iteration for f in frames] == [0, 1, 2] or [f.iteration for f in frames] == [1, 2, 3]


def test_a_running_loop_is_told_with_its_window_limit_and_back_edge(graph, run):
    n = fs.placeholder(fs.int32, [], name="n")
    running = run(count(n, start=fs.constant(2), k=3), {n: 9})
    ids = {op.name: op.id for op in graph.get_operations()}
    first = running.move()
    (frame,) = first.frames
    assert (frame.id, frame.name, frame.mode) == ("count", "count", "tokens")
    assert (frame.loop, frame.parallel_iterations) == (ids["begin"], 3)
    assert frame.window[0].number == 0 and frame.window[0].total == 2
    assert (first.position.frame, first.position.iterations) == ("count", (0,))
    states = [running.move("step_iteration") for _ in range(3)]
    assert [s.frames[0].iteration for s in states] == [1, 2, 3]
    assert states[-1].frames[0].limit == 7
    assert states[0].frames[0].held == ""
    tokens = [t for _ in range(4) for t in running.move().tokens]
    back = [t for t in tokens if t.source == ids["back"]]
    assert {(t.target, t.frame) for t in back} == {(ids["i"], "count")}
    assert all(t.iterations[0] >= 4 for t in back) and back
    assert any((t.source, t.target) == (ids["choose"], ids["step"]) for t in tokens)
    assert repr(running.sess.frames()).splitlines()[1].split()[0] == "count"


def test_what_holds_the_next_iteration_is_told(run):
    queue = fs.FIFOQueue(9, [fs.int32], shapes=[[]], name="orders")

    def body(i):
        with fs.control_dependencies([i]):
            total = queue.dequeue(name="take")
        return i + 0 * total

    running = run(count(fs.constant(5), start=fs.constant(0), body=body, k=2))
    running.sess.resume()
    end_s = time.monotonic() + PATIENCE_S
    while not (table := running.sess.frames()) or "orders" not in table[0].held:
        assert time.monotonic() < end_s
    (frame,) = table
    assert '"take" on FIFOQueue "orders"' in frame.held
    assert frame.limit is None, "what is added in an iteration is not known before"


def test_a_loop_by_hand_around_a_while_loop(graph, run):
    def body(i):
        return fs.while_loop(lambda v: v < 2, lambda v: v + 1, [i], name="inner")

    running = run(count(fs.constant(5), start=fs.constant(0), body=body))
    for _ in range(12):
        told = running.move().frames
        if len(told) == 2:
            break
    assert [f.id for f in told] == ["count", "count:0/inner"]
    assert told[1].parent == "count" and told[1].parent_iteration == 0
