"""What is sent to a view: two messages on their way at most, changes in order, the newest state."""

import gc
import threading

import pytest
from work import calls_in

import flowscope as fs
from flowscope.live.protocol.schema import (
    PROTOCOL,
    Ack,
    Alive,
    Command,
    Connect,
    Delta,
    Disconnect,
    GraphChange,
    Reply,
    SessionState,
    Snapshot,
)
from flowscope.live.watchers import bus
from flowscope.live.watchers.bus import PERIOD_S, LiveChannel
from flowscope.live.watchers.outbox import WINDOW, Outbox, merged
from flowscope.live.watchers.wire import message_from, to_json, to_wire
from flowscope.runtime.session import engine


@pytest.fixture
def feed(graph, monkeypatch):
    """A feed that looks only when the test says so."""
    monkeypatch.setattr(bus, "PERIOD_S", 1e6)
    made = LiveChannel(graph)
    yield made
    for port in list(made._ports):
        made._leave(port)


class View:
    """A view that keeps what it is sent, and what that makes of the graph."""

    def __init__(self, feed, number):
        self.feed, self.number = feed, number
        self.messages, self.names = [], {}
        feed.hear(Connect(number), self.take)

    def take(self, message):
        self.messages.append(message)
        if isinstance(message, Reply):
            return
        if isinstance(message, Snapshot):
            self.names = {}
        for node in (*message.graph.changed, *message.graph.added) if message.graph else ():
            self.names[node.id] = node.name
        for i in message.graph.removed if message.graph else ():
            del self.names[i]

    def acknowledge(self):
        self.feed.hear(Ack(self.number, self.messages[-1].seq), self.take)

    def say(self, message):
        self.feed.hear(message, self.take)


def state(steps):
    return SessionState("running", steps, None, None, None)


def test_two_messages_are_on_their_way_at_most_and_the_newest_state_waits():
    outbox = Outbox()
    outbox.snapshot(Snapshot(0, PROTOCOL, "g", GraphChange(0, (), ()), None, "live"))
    outbox.put(None, state(1), None)
    assert outbox.take().session.steps == 1
    for steps in (2, 3, 4):
        outbox.put(None, state(steps), None)
        assert outbox.take() is None
    outbox.acknowledge(1)
    message = outbox.take()
    assert (message.seq, message.session.steps, message.skipped) == (3, 4, 2)
    assert outbox.take() is None


def test_changes_of_a_graph_become_one_in_their_order(graph):
    x, y, z = (fs.constant(float(i), name=n).op for i, n in enumerate("xyz"))
    change = lambda added=(), changed=(), removed=(): GraphChange(  # noqa: E731
        1, tuple(added), (), tuple(changed), tuple(removed)
    )
    found = merged(change([x, y]), change([z], [x], [y.id]))
    assert (list(found.added), list(found.changed), found.removed) == ([x, z], [], ())
    found = merged(change(removed=[x.id]), change([x]))
    assert (list(found.added), list(found.changed), found.removed) == ([], [x], ())
    found = merged(change(changed=[x]), change(removed=[x.id]))
    assert (list(found.changed), found.removed) == ([], (x.id,))


def test_a_snapshot_goes_only_to_the_view_that_asked(feed, graph):
    fs.constant(1.0, name="x")
    first, second = View(feed, 1), View(feed, 2)
    assert [type(m) for m in first.messages] == [Snapshot]
    fs.constant(1.0, name="y")
    second.say(Connect(2))
    assert [type(m) for m in first.messages] == [Snapshot, Delta], "a change that was due"
    assert [type(m) for m in second.messages][-1:] == [Snapshot]
    want = sorted(op.name for op in graph.get_operations())
    assert sorted(first.names.values()) == sorted(second.names.values()) == want
    assert {m.view for m in first.messages} == {1}


def test_views_that_read_at_different_speeds_have_the_same_graph_in_the_end(feed, graph):
    quick, slow = View(feed, 1), View(feed, 2)
    for k in range(6):
        with graph.cell("a"):
            for i in range(k % 3 + 1):
                fs.constant(float(k), name=f"c{i}")
        with graph.cell(k):
            fs.constant(1.0, name="own")
        feed.tick(float(k))
        quick.acknowledge()
    assert len(slow.messages) == WINDOW
    for _ in range(4):
        slow.acknowledge()
    want = {op.id: op.name for op in graph.get_operations()}
    assert quick.names == slow.names == want


def test_boxes_come_at_each_look_while_a_cell_builds(feed, graph):
    """Eight times a second where the view reads as quickly, and four where it takes its time."""
    assert PERIOD_S == 1 / 8
    quick, slow = View(feed, 1), View(feed, 2)
    for view in (quick, slow):
        view.acknowledge()
    with graph.cell("a"):
        for k in range(16):  # two seconds
            fs.constant(float(k), name=f"c{k}")
            feed.tick(k / 8)
            quick.acknowledge()
            assert len(quick.names) == k + 1, "what was built is told before the cell has ended"
            if k % 2:
                slow.acknowledge()
                assert len(slow.names) >= k
    deltas = [m for m in slow.messages if isinstance(m, Delta) and m.graph is not None]
    assert 8 <= len(deltas) <= 16


def test_two_notebooks_on_one_kernel_see_the_same_graph(feed, graph, monkeypatch):
    first, second, other = View(feed, 1), View(feed, 2), View(feed, 3)
    looks, changes = [], feed._changes
    monkeypatch.setattr(feed, "_changes", lambda now_s: looks.append(now_s) or changes(now_s))
    fs.constant(1.0, name="x")
    feed.tick(0.0)
    assert looks == [0.0], "it is looked at once for all"
    assert [list(v.names.values()) for v in (first, second, other)] == [["x"]] * 3
    second.say(Command(7, "pause", None, 2))
    replies = [[m.view for m in v.messages if isinstance(m, Reply)] for v in (first, second, other)]
    assert replies == [[], [2], []]
    second.say(Disconnect(2))
    fs.constant(1.0, name="y")
    for view in (first, other):
        view.acknowledge()
    feed.tick(1.0)
    assert len(first.names) == len(other.names) == 2 and len(second.names) == 1


def test_a_view_that_reads_nothing_costs_nothing(feed, graph, monkeypatch):
    fs.constant(1.0)
    view = View(feed, 1)
    fs.constant(1.0)
    feed.tick(0.0)
    looked = []
    monkeypatch.setattr(feed, "_changes", lambda now_s: looked.append(now_s))
    for i in range(480):  # a minute
        fs.constant(1.0)
        assert feed.tick(i / 8) is None
    assert looked == [] and len(view.messages) == WINDOW
    monkeypatch.undo()
    view.acknowledge()
    feed.tick(61.0)
    assert len(view.names) == len(graph)


def test_more_than_the_graph_has_becomes_a_snapshot(feed, graph):
    fs.constant(1.0, name="x")
    quick, slow = View(feed, 1), View(feed, 2)
    for k in range(8):
        with graph.cell("a"):
            for i in range(10):
                fs.constant(float(k), name=f"c{i}") if k % 2 else fs.zeros([k + 1], name=f"c{i}")
        feed.tick(float(k))
        quick.acknowledge()
    slow.acknowledge()
    assert slow.names == quick.names == {op.id: op.name for op in graph.get_operations()}


def test_a_view_of_another_version_is_told_so_and_nothing_else(feed):
    fs.constant(1.0)
    sent = []
    feed.hear(message_from({"kind": "connect", "view": 7, "protocol": PROTOCOL + 1}), sent.append)
    (message,) = [m for m in sent if isinstance(m, Snapshot) and not m.graph.added]
    assert message.protocol == PROTOCOL
    assert message_from({"kind": "connect", "view": 7}).protocol != PROTOCOL


def test_a_level_is_each_views_own(feed, graph):
    x = fs.placeholder(fs.float32, [], name="x")
    y = fs.while_loop(lambda i: i < 3.0, lambda i: i + x, [0.0], name="loop")
    with fs.Session() as sess:
        sess.run(y, {x: 1.0})
        lowered, written = View(feed, 1), View(feed, 2)
        lowered.say(Command(5, "level", "lowered", 1))
        assert any("Switch" in name for name in lowered.names.values())
        assert not any("Switch" in name for name in written.names.values())
        assert [m.view for m in lowered.messages if isinstance(m, Reply)] == [1]
        assert not any(isinstance(m, Reply) for m in written.messages)
        lowered.say(Command(6, "level", "graph", 1))
        assert lowered.names == written.names


def test_a_view_that_was_not_known_is_told_everything(feed):
    fs.constant(1.0, name="x")
    view = View(feed, 1)
    view.say(Disconnect(1))
    assert feed._ports == []
    view.say(Alive(1))
    assert isinstance(view.messages[-1], Snapshot) and list(view.names.values()) == ["x"]


def test_an_acknowledgement_that_comes_late_brings_no_view_back(feed):
    view = View(feed, 1)
    view.say(Disconnect(1))
    view.acknowledge()
    assert feed._ports == [] and len(feed.audience) == 0


def test_what_views_held_is_let_go(graph, monkeypatch):
    monkeypatch.setattr(bus, "PERIOD_S", 1e6)
    with graph.cell("a"):
        fs.constant(1.0, name="x")
    feed = bus.shared_feed(graph)
    assert bus.shared_feed(graph) is feed
    view = View(feed, 1)
    view.say(Disconnect(1))
    for thread in [t for t in threading.enumerate() if t.name == "flowscope live"]:
        thread.join(30)
    del feed, view, thread
    gc.collect()
    assert all(one.graph is not graph for one in engine.current().feeds.values())


@pytest.mark.slow
def test_a_large_graph_is_told_with_little_work_per_operation(feed):
    """`bench_live.py` has the time that it takes."""
    x = fs.placeholder(fs.float32, [4], name="x")
    y = x
    for i in range(5_000):
        with fs.name_scope(f"s{i % 97}"):
            y = fs.tanh(y * x + x)
    sent = []
    calls, _ = calls_in(lambda: feed.hear(Connect(1), lambda m: sent.append(to_wire(m))))
    ((content, buffers),) = sent
    columns = content["graph"]["added"]
    assert columns["rows"] == len(feed.graph) == 15_001
    assert sum(map(len, buffers)) < 80 * len(feed.graph)
    assert calls < 60 * len(feed.graph)
    # A cell that adds to it.
    feed.hear(Ack(1, 1), sent.append)
    for _ in range(100):
        y = y + x
    calls, delta = calls_in(lambda: feed.tick(1.0))
    assert calls + calls_in(lambda: to_wire(delta))[0] < 300 * 100
    assert len(delta.graph.added) == 100


def test_a_delta_travels_as_columns(feed, graph):
    sent = []
    feed.subscribe(sent.append)
    x = fs.placeholder(fs.float32, [2], name="x")
    feed.tick(1.0)
    content, buffers = to_wire(sent[-1])
    assert content["graph"]["added"]["rows"] == 1 and len(buffers) == 2
    told = to_json(sent[-1])["graph"]["added"]
    assert told[0]["name"] == x.op.name
