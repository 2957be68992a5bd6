"""The live channel's kernel side: snapshots, deltas, commands, progress, TypeScript types."""

import contextlib
import dataclasses
import json
import pathlib
import threading
import time

import pytest

import flowscope as fs
from flowscope.live.answers import progress
from flowscope.live.answers.state import Meter
from flowscope.live.protocol.schema import Command, Connect, Delta, Reply, Snapshot
from flowscope.live.protocol.typescript import typescript
from flowscope.live.watchers import bus
from flowscope.live.watchers.bus import LiveChannel
from flowscope.live.watchers.frames import FrameWatcher
from flowscope.live.watchers.wire import message_from, to_json
from flowscope.plan.analysis.locations import LoopAt, StepLocation
from flowscope.runtime.session import engine
from flowscope.runtime.waits.gate import Gate

pytestmark = pytest.mark.usefixtures("graph")


def test_a_snapshot_holds_everything_and_deltas_what_came_since(feed):
    x = fs.placeholder(fs.float32, [None, 2], name="scope/x")
    feed.receive(Connect(1))
    snapshot = feed.sent[-1]
    assert isinstance(snapshot, Snapshot) and snapshot.session is None
    (node,) = snapshot.graph.added
    assert (node.name, node.type, node.outputs[0].shape) == ("scope/x", "Placeholder", (None, 2))
    assert node.origin.line == x.op.origin.place.line
    assert "scope/x" in node.origin.text
    y = fs.tanh(x, name="y")
    delta = feed.tick(1.0)
    assert isinstance(delta, Delta) and delta.seq == snapshot.seq + 1
    assert [n.name for n in delta.graph.added] == ["y"]
    assert delta.graph.added[0].inputs == ((x.op.id, 0),)
    assert feed.tick(1.1) is None, "nothing changed"
    with fs.Session() as sess:
        sess.run(y, {x: [[1.0, 2.0]]})
        placed = feed.tick(1.2)
    assert dict(placed.graph.placed)[y.op.id].endswith("CPU:0")
    assert placed.session.steps == 1


def test_functions_are_told_by_their_bodies_calls_and_results(feed, graph):
    told = {}

    def look():
        change = feed.tick(1.0).graph
        for node in (*change.changed, *change.added):
            told[node.name] = (node.body, node.is_result, node.calls)

    @fs.function
    def layer(x):
        y = fs.tanh(x)
        look()
        return y

    y = layer(fs.placeholder(fs.float32, [2], name="x"))
    assert told["layer/Tanh"] == ("layer", False, ""), "the body is not complete yet"
    look()
    assert told["layer/x"] == ("layer", False, "")
    assert told["layer/Tanh"] == ("layer", True, "")
    assert told["x"] == ("", False, "")
    assert told[y.op.name] == ("", False, "layer")
    fs.gradients(y, graph.get_tensor_by_name("x:0"))
    look()
    (call,) = [name for name, (_, _, calls) in told.items() if calls == "layer_grad"]
    assert told[call][0] == ""
    assert any(body == "layer_grad" and is_result for body, is_result, _ in told.values())


def test_loops_and_branches_are_told_by_their_bodies(feed):
    x = fs.placeholder(fs.float32, [], name="x")
    fs.while_loop(lambda x: x < 1.0, lambda x: x + 1.0, [x], name="loop")
    fs.cond(x < 1.0, lambda: x + 1.0, lambda: x, name="branch")
    nodes = {n.name: n for n in feed.tick(1.0).graph.added}
    (loop,) = [n for n in nodes.values() if n.type == "Loop"]
    (branch,) = [n for n in nodes.values() if n.type == "Cond"]
    assert set(loop.runs) == {"loop/cond", "loop/body"} and loop.calls == ""
    assert set(branch.runs) == {"branch/then", "branch/else"}
    assert nodes["loop/body/add"].body == "loop/body" and nodes["loop/body/add"].is_result


def test_a_loop_tells_its_variables_its_test_and_what_enters_it(feed):
    x = fs.placeholder(fs.float32, [], name="x")
    step = fs.placeholder(fs.float32, [], name="step")
    fs.while_loop(
        lambda i, x: x < 1.0, lambda i, x: (i + 1, x + step), [0, x], name="loop",
        maximum_iterations=9,
    )  # fmt: skip
    nodes = {n.name: n for n in feed.tick(1.0).graph.added}
    (loop,) = [n for n in nodes.values() if n.type == "Loop"]
    names = {n.id: n.name for n in nodes.values()}
    given = [names[i] for i, _ in loop.inputs]
    assert dict(zip(loop.roles, loop.runs)) == {"cond": "loop/cond", "body": "loop/body"}
    assert names[loop.predicate[0]] == "loop/cond/Less"
    _, second = loop.carried
    assert given[second.input] == "x" and second.output == 1
    assert (names[second.parameter], names[second.test]) == ("loop/body/x", "loop/cond/x")
    assert names[second.result[0]] == "loop/body/add_1"
    assert [(names[p], given[i]) for p, i in loop.enters] == [("loop/body/step", "step")]


def test_branches_and_calls_tell_what_enters_them(feed):
    @fs.function
    def double(v):
        return v + v

    x = fs.placeholder(fs.float32, [], name="x")
    y = fs.placeholder(fs.float32, [], name="y")
    fs.cond(x < y, lambda: x + 1.0, lambda: double(y), name="branch")
    nodes = {n.name: n for n in feed.tick(1.0).graph.added}
    names = {n.id: n.name for n in nodes.values()}
    (branch,) = [n for n in nodes.values() if n.type == "Cond"]
    (call,) = [n for n in nodes.values() if n.calls]
    assert branch.roles == ("then", "else") and names[branch.predicate[0]] == "Less"
    assert [names[i] for i, _, _ in branch.leaves] == ["branch/then/add", "branch/else/double"]
    assert [output for _, _, output in branch.leaves] == [0, 0]
    for node, pairs in (branch, {("branch/then/x", "x"), ("branch/else/y", "y")}), (
        call, {("double/y", "branch/else/y")},
    ):  # fmt: skip
        given = [names[i] for i, _ in node.inputs]
        assert {(names[p], given[i]) for p, i in node.enters} == pairs
        assert node.carried == ()


def test_a_gradients_loop_tells_the_lists_that_enter_it(feed, graph):
    x = fs.placeholder(fs.float32, [], name="x")
    y = fs.while_loop(lambda x: x < 9.0, lambda x: x * x, [x], name="loop")
    fs.gradients(y, x)
    nodes = {n.id: n for n in feed.tick(1.0).graph.added}
    forward, backward = [n for n in nodes.values() if n.type == "Loop"]
    lists = [(p, i) for p, i in backward.enters if backward.inputs[i][0] == forward.id]
    assert lists and all(nodes[p].body == backward.runs[0] for p, _ in lists)
    kept = {output: nodes[result].body for result, _, output in forward.leaves}
    assert {backward.inputs[i][1] for _, i in lists} == set(kept)
    assert set(kept.values()) == {forward.runs[0]}
    assert all(nodes[c.result[0]].body == backward.runs[0] for c in backward.carried)


@pytest.mark.parametrize("value", [-1.0, float("inf"), float("nan"), "1", None])
def test_a_pace_is_a_number_of_seconds(value):
    data = {"kind": "command", "command_id": 1, "name": "pace", "value": value}
    with pytest.raises(ValueError, match="not a message"):
        message_from(data)
    assert message_from({**data, "value": 2}) == Command(1, "pace", 2.0)


def test_messages_are_json(feed):
    v = fs.Variable([1.0])
    with fs.Session() as sess:
        sess.run(v.initializer)
        feed.receive(Connect(1))
    data = json.loads(json.dumps(to_json(feed.sent[-1])))
    assert data["kind"] == "snapshot" and data["graph"]["added"][0]["type"] == "Const"
    (told,) = data["graph"]["added"][:1]
    assert told == json.loads(json.dumps(dataclasses.asdict(feed.sent[-1].graph.added[0])))


def test_rates_are_taken_over_a_window():
    meter = Meter(window_s=1.0)
    assert meter.update(0.0, 0, 0) == (None, None)
    assert meter.update(0.5, 50, 250_000_000) == (pytest.approx(100), pytest.approx(0.005))
    assert meter.update(1.0, 100, 500_000_000) == (pytest.approx(100), pytest.approx(0.005))
    assert meter.update(2.0, 100, 500_000_000)[0] is None


def test_commands_reach_the_gate_and_are_answered(feed):
    feed.receive(Command(1, "pause"))
    assert feed.sent[-1] == Reply(1, False, "no session runs this graph")
    with fs.Session() as sess:
        feed.receive(Command(2, "pause"))
        replies = [m for m in feed.sent if isinstance(m, Reply)]
        assert replies[-1].ok and sess.gate.state == "pausing"
        assert feed.sent[-1].session.state == "pausing"
        feed.receive(Command(3, "resume"))
        assert sess.gate.state == "open"


def test_stop_is_refused_while_nothing_runs_and_taken_while_a_cell_runs(feed, monkeypatch):
    with fs.Session() as sess:
        feed.receive(Command(1, "stop"))
        assert feed.sent[0] == Reply(1, False, "nothing is running")
        assert sess.run(fs.constant(1.0)) == 1.0
        monkeypatch.setattr(bus.notebook, "cell_running", True)
        feed.receive(Command(2, "stop"))
        with pytest.raises(fs.errors.CancelledError):
            sess.run(fs.constant(1.0))


def test_the_latest_session_of_the_graph_is_shown_unless_one_is_chosen(graph):
    with fs.Session() as first, fs.Session() as second:
        assert LiveChannel(graph).session is second
        assert LiveChannel(graph, first).session is first
    with fs.Session(graph=fs.Graph()):
        assert LiveChannel(graph).session is None


def test_the_thread_looks_by_itself_and_ends_with_the_last_subscriber(graph, monkeypatch):
    import threading

    monkeypatch.setattr(bus, "PERIOD_S", 0.01)
    told = threading.Event()
    feed = LiveChannel(graph)
    others = {t for t in threading.enumerate() if t.name == "flowscope live"}
    end = feed.subscribe(lambda message: told.set())
    fs.constant(1.0)
    assert told.wait(30)
    [thread] = {t for t in threading.enumerate() if t.name == "flowscope live"} - others
    end()
    thread.join(30)
    assert not thread.is_alive()


def test_progress_tells_done_total_and_the_time_left(feed):
    session = fs.Session()
    for i in fs.progress(range(4), "training"):
        if i == 2:
            state = progress.current(session.engine.loops[0].start_s + 1.0, session)
            assert (state.description, state.done, state.total) == ("training", 2, 4)
            assert state.eta_s == pytest.approx(1.0)
    assert progress.current(0.0, session).done == 4
    assert [*fs.progress(iter("ab"), total=2)] == ["a", "b"]


def test_progress_of_a_loop_that_ended_is_shown_until_the_session_goes_on(graph):
    one = fs.constant(1.0)
    with fs.Session() as sess, fs.Session() as idle:
        for _ in fs.progress(range(3)):
            sess.run(one)
        assert progress.current(0.0, sess).done == progress.current(0.0, idle).done == 3
        sess.run(one)
        assert progress.current(0.0, sess) is None
        assert progress.current(0.0, idle).done == 3
        with fs.Session() as later:
            assert progress.current(0.0, later) is None

        def seen():
            return progress.current(0.0, idle) is None

        hidden = fs.py_func(seen, [], fs.bool)
        assert idle.run(hidden)  # while a step is on its way


def test_progress_is_withdrawn_when_the_loop_ends_early():
    for _ in fs.progress(range(10)):
        break
    import gc

    gc.collect()
    assert engine.current().loops == []


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"kind": "command", "command_id": "1", "name": "stop"},
        {"kind": "command", "command_id": 1, "name": "rm"},
        None,
    ],
)
def test_what_is_no_message_is_refused(bad):
    with pytest.raises(ValueError, match="not a message"):
        message_from(bad)


def test_the_front_ends_types_are_those_of_the_schema():
    path = pathlib.Path(__file__).parents[2] / "labextension/src/wire/messages.ts"
    assert path.read_text("utf-8") == typescript(), (
        "run: python -m flowscope.live.protocol.typescript > " + path.name
    )


def test_show_prints_a_text_where_there_is_no_notebook(capsys):
    fs.placeholder(fs.float32, [None, 2], name="layer/x")
    fs.show()
    assert "layer" in capsys.readouterr().out
    with pytest.raises(TypeError, match="expected a graph"):
        fs.show(3)


def test_a_cell_that_is_run_again_changes_adds_and_removes(graph):
    feed = LiveChannel(graph)

    def build(again):
        x = fs.placeholder(fs.float32, [2], name="x")
        fs.tanh(x, name="y") if again else fs.exp(x, name="y")
        fs.constant(1.0, name="new" if again else "old")

    with graph.cell("3"):
        build(False)
    with graph.cell("5"):
        z = graph.get_tensor_by_name("old:0") + 1.0
    told = {n.name: n for n in feed.snapshot(0.0).graph.added}
    with graph.cell("3"):
        build(True)
        meanwhile = feed.tick(0.5).graph
        assert meanwhile.removed == (), "what is gone is known at the end"
    change = feed.tick(1.0).graph
    by_name = {n.name: n for n in (*meanwhile.changed, *change.changed)}
    assert (by_name["y"].id, by_name["y"].type) == (told["y"].id, "Tanh")
    assert "re-run cell 5" in by_name["add"].stale
    assert change.removed == (told["old"].id,)
    new = graph.get_operation_by_name("new").id
    assert change.marked == tuple(sorted((told["y"].id, new)))
    assert {n.name for n in feed.snapshot(2.0).graph.added} == {"x", "y", "new", "add/y", "add"}
    assert feed.describe().graph.marked == change.marked
    with graph.cell("3"):
        build(True)
    again = feed.tick(3.0).graph
    assert (again.added, again.removed, again.marked) == ((), (), ())
    assert z.op.stale is not None


def test_what_a_new_cell_adds_is_marked_until_another_builds(graph):
    feed = LiveChannel(graph)
    with graph.cell("1"):
        x = fs.placeholder(fs.float32, [2], name="x")
    assert feed.tick(0.0).graph.marked == (), "all of a first cell is new"
    with graph.cell("2"):
        y = fs.exp(x, name="y")
    assert feed.tick(1.0).graph.marked == (y.op.id,)
    with graph.cell("3"):
        pass
    assert graph.observer.marked == {y.op.id}, "a cell that builds nothing changes nothing"
    with graph.cell("2"):
        y = fs.exp(x, name="y")
        z = fs.tanh(y, name="z")
    assert feed.tick(2.0).graph.marked == (z.op.id,)
    with graph.cell("4"):
        last = fs.constant(1.0, name="last")
    assert feed.tick(3.0).graph.marked == (last.op.id,)


def test_a_run_that_is_taken_back_leaves_no_trace(graph):
    feed = LiveChannel(graph)
    with graph.cell("3"):
        fs.constant(1.0, name="x")
    before = feed.snapshot(0.0).graph.added
    with pytest.raises(ZeroDivisionError), graph.cell("3"):  # noqa: PT012
        fs.constant(2.0, name="x")
        fs.constant(2.0, name="y")
        added = feed.tick(1.0).graph.added
        raise ZeroDivisionError
    change = feed.tick(2.0).graph
    assert [n.name for n in added] == ["y"]
    assert change.removed == (added[0].id,)
    assert [(n.id, n.attributes) for n in change.changed] == [(before[0].id, before[0].attributes)]
    assert change.marked == ()


class Running:
    """A session with a loop in a loop that another thread runs, and a feed that looks at it."""

    def __init__(self, feed):
        self.n = fs.placeholder(fs.int64, [], name="n")

        def outer(i, x):
            inner = lambda j, x: (j + 1, x + fs.sin(x))  # noqa: E731
            _, x = fs.while_loop(lambda j, x: j < 3, inner, [0, x], name="inner")
            return i + 1, x

        start = [fs.constant(0, fs.int64), 1.0]
        self.loop = fs.while_loop(lambda i, x: i < self.n, outer, start, name="outer")
        self.feed = feed
        self.sess = fs.Session()
        feed.receive(Connect(1))
        self.command("pause")
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        assert self.sess.gate.wait_until_held(30)

    def _run(self):
        with contextlib.suppress(fs.errors.CancelledError):
            self.sess.run(self.loop, {self.n: 10**12})

    def command(self, name, value=None):
        self.feed.receive(Command(7, name, value))
        replies = [m for m in self.feed.sent if isinstance(m, Reply)]
        assert replies[-1].ok, replies[-1]

    def move(self, name):
        """Moves and waits until it is done; returns what is told then, with all tokens since."""
        before = len(self.feed.sent)
        self.command(name)
        gate = self.sess.gate
        with gate._changed:
            assert gate._changed.wait_for(lambda: gate.state == "paused", 30)
        self.feed.tick(1.0)
        runs = [m.run for m in self.feed.sent if isinstance(m, Delta) and m.run]
        # the command itself looks, too: where the move is done by then, it tells the tokens
        new = [m.run for m in self.feed.sent[before:] if isinstance(m, Delta) and m.run]
        return dataclasses.replace(runs[-1], tokens=tuple(t for run in new for t in run.tokens))


@pytest.fixture
def running(feed):
    made = Running(feed)
    yield made
    made.sess.stop()
    made.thread.join(30)
    assert not made.thread.is_alive()
    made.sess.close()


def test_running_loops_are_told_as_a_tree_of_frames_with_the_place_of_the_step(running, graph):
    run = running.move("step_iteration")
    outer, inner = run.frames
    names = {op.id: op.name for op in graph.get_operations()}
    assert (outer.id, outer.parent, outer.iteration) == ("outer", None, 0)
    assert (inner.id, inner.parent, inner.parent_iteration) == ("outer:0/inner", "outer", 0)
    assert names[outer.loop] == outer.name == "outer/Loop"
    assert inner.iteration == 1 and inner.window[0].number == 1
    assert inner.window[0].total == 4 and outer.window[0].finished > 0
    assert (outer.limit, inner.limit) == (10**12, 3)
    assert inner.parallel_iterations == 10 and inner.kept_bytes is None
    assert run.position.frame == "outer:0/inner" and run.position.iterations == (0, 1)
    assert run.position.op is None
    assert run.position.what == 'before iteration 1 of "outer:0/inner"'
    assert run.tokens == ()
    for _ in range(3):
        run = running.move("step_iteration")
    assert run.frames[0].iteration == 1 and run.position.iterations[0] == 1
    running.move("step_op")
    run = running.move("step_iteration")
    assert run.frames[0].mode == "compiled" and run.frames[0].limit == 10**12


def test_a_step_by_operation_tells_the_position_and_what_moved(running, graph):
    names = {op.id: op.name for op in graph.get_operations()}
    running.move("step_iteration")
    run = running.move("step_op")
    assert run.frames[0].mode == "compiled" and run.frames[0].limit == 10**12
    assert run.position.what.endswith(" (stepped by operation)")
    before = names[run.position.op]
    run = running.move("step_op")
    assert names[run.position.op] != before
    assert {names[t.target] for t in run.tokens} == {before}
    edges = {(t.op.id, t.value_index, op.id) for op in graph.get_operations() for t in op.inputs}
    assert all((t.source, t.output, t.target) in edges for t in run.tokens)
    assert {(t.frame, t.iterations, t.is_dead) for t in run.tokens} == {
        ("outer:0/inner", (0, 1), False)
    }
    moved = [t for _ in range(4) for t in running.move("step_op").tokens]
    backs = [t for t in moved if (t.source, t.output, t.target) not in edges]
    (loop,) = [op for op in graph.get_operations() if op.name == "outer/body/inner/Loop"]
    parameters = [p.op.id for p in loop.definition.body.parameters]
    assert [t.target for t in backs] == parameters
    assert {t.iterations for t in backs} == {(0, 2)}


def test_slow_motion_is_told_with_its_pace_and_its_place(running):
    running.move("step_iteration")
    running.command("pace", 1e6)
    running.command("resume")
    gate = running.sess.gate

    def is_slow():
        seen, held = gate.report()
        return gate.state == "open" and held and all(w.node for w in seen.values())

    with gate._changed:
        assert gate._changed.wait_for(is_slow, 30)
    running.feed.tick(2.0)
    run = running.feed.sent[-1].run
    assert run.pace_s == 1e6 and run.position.op is not None
    running.command("pace", 0.0)
    assert running.feed.sent[-1].session.state == "running"


def test_when_a_step_has_ended_no_frames_are_left(running):
    running.move("step_iteration")
    running.sess.stop()
    running.thread.join(30)
    delta = running.feed.tick(3.0)
    assert delta.run == bus.NOTHING_RUNS
    running.feed.receive(Connect(1))
    assert running.feed.sent[-1].run is None


def test_iterations_per_second_are_taken_over_a_window(graph):
    i = fs.while_loop(lambda i: i < 9, lambda i: i + 1, [0], name="loop")
    with fs.Session() as sess:
        (node,) = [n for n in sess.plan(i).program.nodes if n.op.type == "Loop"]
    watcher = FrameWatcher(graph)

    def rate(now_s, count):
        where = StepLocation("compiled", (LoopAt(node, count, None, 0, ()),), None)
        (frame,) = watcher.state(now_s, {1: where}, (), (), 0.0).frames
        return frame.iterations_per_s

    assert rate(0.0, 10) is None
    assert rate(0.5, 60) == rate(1.0, 110) == 100.0
    assert rate(2.5, 560) == pytest.approx(300.0)
    assert rate(2.75, 5) is None, "the loop has begun again"
    assert rate(3.0, 30) == 100.0


def test_bytes_that_are_kept_and_will_be_are_told(graph):
    x = fs.placeholder(fs.float32, [10])
    y = fs.while_loop(lambda x: True, lambda x: fs.tanh(x), [x], maximum_iterations=8, name="loop")
    g = fs.gradients(y, x)
    with fs.Session() as sess:
        places = []

        class Watching(Gate):
            def hold(self, point, here=None):
                if here is not None:
                    places.append(here.where())
                return False

        sess.gate = Watching()
        sess.gate.raised = True
        sess.run(g, {x: [0.5] * 10})
    frames = [FrameWatcher(graph).state(0.0, {1: w}, (), (), 0.0).frames[0] for w in places]
    told = [(f.iteration, f.kept_bytes, f.kept_estimate_bytes) for f in frames[:8]]
    assert told == [(i, 40 * i, 320) for i in range(1, 9)]


def test_iterations_in_flight_are_told_with_what_holds_the_next(feed):
    queue = fs.FIFOQueue(9, [fs.float32], shapes=[[]])

    def body(i, total):
        return i + 1, total + fs.square(queue.dequeue())

    loop = fs.while_loop(lambda i, _: i < 5, body, [0, 0.0], parallel_iterations=3, name="loop")
    x = fs.placeholder(fs.float32, [])
    fill = queue.enqueue(x)
    with fs.Session() as sess:
        thread = threading.Thread(target=lambda: sess.run(loop))
        thread.start()
        gate = sess.gate
        end_s = time.monotonic() + 30
        frames = ()
        while not frames or not frames[0].held:  # until the fourth waits
            assert time.monotonic() < end_s
            table = sess.frames()
            if len(table):
                frames = FrameWatcher(sess.graph).state(0.0, gate.report()[0], (), (), 0.0).frames
        (frame,) = frames
        for value in range(5):
            sess.run(fill, {x: value})
        thread.join(30)
    assert not thread.is_alive()
    assert (frame.id, frame.mode, frame.parallel_iterations) == ("loop", "tokens", 3)
    assert [i.number for i in frame.window] == [0, 1, 2] and frame.iteration == 2
    waits = 'the oldest waits for "loop/body/fifo_queue_Dequeue" on FIFOQueue "fifo_queue" (0 of 9'
    assert frame.held.startswith(f"parallel_iterations = 3 are in flight, {waits}")
    assert [i.state for i in frame.window] == ["waiting"] * 3
    assert all(0 < i.finished < i.total for i in frame.window)
    lines = repr(table).splitlines()
    assert " ".join(lines[0].split()) == "frame iteration of on the way kept runs as"
    assert lines[1].split() == ["loop", "2", "5", "3", "tokens"]


def test_each_of_two_feeds_is_told_all_tokens(running, graph):
    other = LiveChannel(graph, running.sess)
    other.snapshot(time.monotonic())
    running.feed.tick(time.monotonic())
    running.move("step_iteration")
    moved = [running.move("step_op").tokens for _ in range(3)]
    seen = other.tick(time.monotonic()).run.tokens
    assert any(moved) and list(seen[-sum(map(len, moved)) :]) == [t for m in moved for t in m]
