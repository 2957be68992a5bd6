"""What views are told of traces."""

import contextlib
import json
import threading
import time

import numpy as np
import pytest

import flowscope as fs
from flowscope.live.protocol.schema import Ack, AskSpans, Command, Connect
from flowscope.live.protocol.tables import Numbers, columns_of
from flowscope.live.watchers import bus
from flowscope.live.watchers.wire import message_from, to_wire
from flowscope.runtime.trace.tracers import FetchObserver

pytestmark = pytest.mark.usefixtures("graph")


class View:
    """A view that takes each message at once."""

    def __init__(self, graph, number=1):
        self.feed = bus.LiveChannel(graph)
        self.number = number
        self.messages = []
        self.feed.hear(Connect(number), self.take)

    def take(self, message):
        self.messages.append(message)
        if message.kind in ("snapshot", "delta"):
            self.feed.hear(Ack(self.number, message.seq), self.take)

    def say(self, message):
        self.feed.hear(message, self.take)
        return self.messages[-1]

    def trace(self, steps_per_s):
        self.feed.hear(Command(1, "trace", steps_per_s, self.number), self.take)

    @property
    def told(self):
        return [m.trace for m in self.messages if getattr(m, "trace", None) is not None]


@pytest.fixture
def view():
    made = []

    def make(graph, number=1):
        made.append(View(graph, number))
        return made[-1]

    yield make
    for one in made:
        one.feed.leave(one.take)


def run(x, y, sess, view, steps=3):
    """Runs steps until so many are traced."""
    view.trace(1000.0)
    while not view.told or view.told[-1].traced_steps < steps:
        sess.run(y, {x: [1.0, 2.0]})
        view.feed.tick(time.monotonic())


def test_heat_tells_each_operation_and_its_share(view):
    x = fs.placeholder(fs.float32, [2], name="x")
    y = fs.add(fs.exp(x, name="a"), fs.exp(x, name="b"), name="y")
    with fs.Session() as sess:
        view = view(x.graph)
        run(x, y, sess, view)
        told = view.told[-1]
    assert told.steps_per_s == 1000.0
    heat = columns_of(told.heat, told.heat.data)
    a, b = (y.graph.get_operation_by_name(name) for name in "ab")
    assert heat["id"].tolist() == [a.id, b.id, y.op.id]
    assert heat["node"][0] == heat["node"][1] != heat["node"][2]
    assert heat["count"].tolist() == [1.0] * 3
    (program,) = told.programs
    assert (program.name, program.basis, program.steps) == ("y", "median", told.traced_steps - 1)
    assert 0 <= program.age_s < 10 and set(heat["program"].tolist()) == {program.number}
    unique = np.unique(heat["node"], return_index=True)[1]
    assert heat["share"][unique].sum() == pytest.approx(1.0)
    assert all(s.compute_us > 0 and s.end_us > s.begin_us for s in told.steps)
    json.dumps(to_wire(view.messages[-1])[0])


def test_spans_are_told_on_request(view):
    x = fs.placeholder(fs.float32, [2], name="x")
    _, y = fs.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, fs.tanh(v, name="t")), [0, x])
    with fs.Session() as sess:
        view = view(x.graph)
        nothing = view.say(AskSpans(7, None, None, None, 100, 1))
        assert nothing.step is None and nothing.request_id == 7
        run(x, y, sess, view)
        number = view.told[-1].steps[-1].number
        found = view.say(AskSpans(8, number, None, None, 1000, 1))
        content, buffers = to_wire(found)
        spans = columns_of(found.spans, buffers[content["spans"]["buffer"]])
        frames = columns_of(found.frames, buffers[content["frames"]["buffer"]])
        gone = view.say(AskSpans(9, 10**6, None, None, 1000, 1))
        first = columns_of(found.spans, found.spans.data)
        part = view.say(
            AskSpans(10, number, float(first["begin_us"][6]), float(first["end_us"][6]), 1000, 1)
        )
        few = view.say(AskSpans(11, number, None, None, 4, 1))
    assert found.step.number == number and gone.step is None
    names = [n.name.rpartition("/")[2] for n in found.nodes]
    rows = [(names[n], int(i)) for n, i in zip(spans["node"], spans["iteration"]) if n >= 0]
    assert [i for name, i in rows if name == "t"] == [0, 1, 2, 3]
    loop = names.index("Loop")
    assert frames["loop"].tolist() == [loop] and frames["parent"].tolist() == [-1]
    depth = {name: {int(d) for n, d in zip(spans["node"], spans["depth"]) if n >= 0 and
                    names[n] == name} for name in ("t", "Loop")}  # fmt: skip
    assert depth == {"t": {1}, "Loop": {0}}
    assert (np.diff(spans["begin_us"]) >= 0).all()
    assert {lane.kind for lane in found.lanes} >= {"device", "feeds", "fetches"}
    assert 1 <= part.spans.rows < found.spans.rows
    merged = columns_of(few.spans, few.spans.data)
    assert few.spans.rows < found.spans.rows and merged["count"].sum() == found.spans.rows


def who_traces(sess):
    """Returns the tracers of a session that have steps traced."""
    return [one for one in sess.tracers if not isinstance(one, FetchObserver)]


def test_nothing_is_traced_unless_a_view_wants_it(view):
    x = fs.placeholder(fs.float32, [2], name="x")
    y = fs.exp(x)
    with fs.Session() as sess:
        view = view(x.graph)
        for _ in range(3):
            sess.run(y, {x: [1.0, 2.0]})
            view.feed.tick(time.monotonic())
        assert not who_traces(sess) and not view.told
        run(x, y, sess, view)
        view.trace(0.0)
        assert not who_traces(sess)
        before = view.told[-1].traced_steps
        sess.run(y, {x: [1.0, 2.0]})
        view.feed.tick(time.monotonic())
        assert view.told[-1].traced_steps == before and view.told[-1].steps_per_s == 0.0
        view.trace(8.0)
        view.feed.tick(time.monotonic() + 1.0)
        assert sess.tracers
        view.feed.leave(view.take)
        assert not who_traces(sess)


def test_a_view_that_comes_later_is_told_what_was_traced(view):
    x = fs.placeholder(fs.float32, [2], name="x")
    y = fs.exp(x)
    with fs.Session() as sess:
        first = view(x.graph)
        run(x, y, sess, first)
        messages = []
        first.feed.hear(Connect(2), messages.append)
        assert messages[-1].kind == "snapshot" and messages[-1].trace.traced_steps >= 3
        content, buffers = to_wire(messages[-1])
        heat = content["trace"]["heat"]
        assert heat["rows"] == 1 and len(buffers) == 3 and heat["buffer"] == 2
        first.feed.leave(messages.append)


def test_a_step_that_lasts_is_sampled(view):
    start = fs.constant(0, fs.int64)
    y = fs.while_loop(lambda i: i >= 0, lambda i: fs.bitwise.bitwise_xor(i, 0) + 1, [start])
    with fs.Session() as sess:
        view = view(y.graph)
        view.trace(1000.0)

        def run_until_stopped():
            with contextlib.suppress(fs.errors.CancelledError):
                sess.run(y)

        thread = threading.Thread(target=run_until_stopped)
        thread.start()
        until = time.monotonic() + 30
        while time.monotonic() < until and not any(t.traced_steps for t in view.told):
            threading.Event().wait(0.02)
        sess.stop()
        thread.join()
    assert any(t.traced_steps and not t.steps[-1].is_whole for t in view.told)


@pytest.mark.parametrize(
    "data",
    [
        {"request_id": 1, "step": None, "begin_us": None, "end_us": None, "most": 0},
        {"request_id": 1, "step": "x", "begin_us": None, "end_us": None, "most": 5},
        {"request_id": 1, "step": 1, "begin_us": float("nan"), "end_us": None, "most": 5},
        {"request_id": 1, "step": 1, "most": 5},
    ],
)
def test_a_wish_that_cannot_be_read_is_refused(data):
    with pytest.raises(ValueError, match="not a message"):
        message_from({"kind": "ask_spans", "view": 1, **data})


def test_columns_are_aligned():
    table = Numbers({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5]})
    assert len(table.data) == 16 + 24
    found = columns_of(table, table.data)
    assert found["a"].tolist() == [1, 2, 3] and found["b"].tolist() == [0.5, 1.5, 2.5]
    assert message_from(
        {"kind": "ask_spans", "request_id": 1, "step": None, "begin_us": 0, "end_us": 5.5,
         "most": 9, "view": 3}
    ) == AskSpans(1, None, 0, 5.5, 9, 3)  # fmt: skip
