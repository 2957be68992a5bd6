"""The program as lowered, told in place of the graph as written; queues; what always runs."""

import time

import numpy as np
import pytest

import flowscope as fs
from flowscope.live.graphs.lowered import FIRST_ID, FOLLOW_S
from flowscope.live.protocol.schema import Command, Connect, Delta, Reply, Snapshot

pytestmark = pytest.mark.usefixtures("graph")


def show(feed, level):
    """Asks for a level; returns the reply, and the snapshot that came with it if any."""
    before = len(feed.sent)
    feed.receive(Command(3, "level", level))
    news = feed.sent[before:]
    snapshots = [m for m in news if isinstance(m, Snapshot)]
    (reply,) = [m for m in news if isinstance(m, Reply)]
    return reply, snapshots[-1] if snapshots else None


def built():
    x = fs.placeholder(fs.float32, [], name="x")
    i, y = fs.while_loop(
        lambda i, y: i < 3,
        lambda i, y: (i + 1, fs.cond(y < 1.0, lambda: y + x, lambda: fs.sin(y), name="choice")),
        [0, x],
        name="loop",
    )
    return x, [i, y]


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_a_plans_primitives_are_told_with_what_they_were_made_of(feed, graph, mode):
    x, loop = built()
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(loop, {x: 0.5})
        reply, snapshot = show(feed, "lowered")
        assert reply.ok and snapshot.level == "lowered"
        nodes = snapshot.graph.added
        by_id = {n.id: n for n in nodes}
        assert len(by_id) == len(nodes) == len({n.name for n in nodes})
        assert all(i in by_id for n in nodes for i, _ in n.inputs)
        assert all(i in by_id for n in nodes for i in n.control)
        types = {n.type for n in nodes}
        assert {"Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond"} <= types
        assert not {"Loop", "Cond", "Parameter"} & types
        for node in nodes:
            for source in node.made_from:
                op = graph.get_operation_by_name(source.name)
                assert (op.id, op.type) == (source.id, source.type)
        loops = [n for n in nodes if n.type in ("Enter", "NextIteration", "LoopCond", "Exit")]
        assert {n.made_from[0].name for n in loops} == {"loop/Loop"}
        assert {n.name.rpartition("/")[0] for n in loops} == {"loop"}, "they stand in its scope"
        merges = {n.made_from[0].type for n in nodes if n.type == "Merge"}
        assert merges == {"Loop", "Cond"}
        back = {by_id[i].name for n in nodes if n.type == "Merge" for i, _ in n.inputs}
        assert any(name.startswith("loop/NextIteration") for name in back)
        (fed,) = [n for n in nodes if n.type == "Placeholder"]
        assert fed.id == x.op.id and fed.name == "x"
        (less,) = [n for n in nodes if n.name == "loop/cond/Less"]
        assert less.id == graph.get_operation_by_name("loop/cond/Less").id < FIRST_ID


def test_the_level_stays_until_another_is_asked_for(feed):
    x, loop = built()
    with fs.Session() as sess:
        sess.run(loop, {x: 0.5})
        _, lowered = show(feed, "lowered")
        feed.receive(Connect(1))
        assert feed.sent[-1].graph.added == lowered.graph.added
        fs.exp(x)
        sess.run(loop, {x: 0.5})
        feed.tick(time.monotonic())
        assert isinstance(feed.sent[-1], Delta) and feed.sent[-1].graph is None
        assert lowered.graph.fetches == ("loop/Loop", "loop/Loop:1")
        assert feed.sent[-1].session.steps == 2
        reply, written = show(feed, "graph")
        assert reply.message == "the graph as written" and written.level == "graph"
        assert {"Loop", "Exp"} <= {n.type for n in written.graph.added}
        assert not any(n.made_from for n in written.graph.added)


def test_another_plan_that_is_run_is_told_as_what_differs(feed):
    x, (i, y) = built()
    z = fs.exp(y, name="z")
    with fs.Session() as sess:
        sess.run(y, {x: 0.5})
        _, first = show(feed, "lowered")
        before = {n.name: n for n in first.graph.added}
        sess.run([z, i], {x: 0.5})
        assert feed.tick(10.0).graph is None, "steps may follow each other quickly"
        change = feed.tick(10.1).graph
        assert change.fetches == ("z", "loop/Loop")
        assert "z" in {n.name for n in change.added}
        assert not {n.name for n in change.added} & before.keys(), "what is called the same stays"
        assert {n.id for n in change.changed} < {n.id for n in before.values()}
        assert set(change.removed) <= {n.id for n in before.values()}
        told = {n.id: n for n in first.graph.added}
        told = {i: n for i, n in told.items() if i not in change.removed}
        told |= {n.id: n for n in (*change.added, *change.changed)}
        feed.receive(Connect(1))
        whole = next(m for m in reversed(feed.sent) if isinstance(m, Snapshot))
        assert {n.id: n for n in whole.graph.added} == told
        assert whole.graph.fetches == change.fetches
        again = feed.tick(20.0)
        assert again is None or again.graph is None


def test_steps_of_several_plans_that_follow_each_other_do_not_flicker(feed):
    x, (i, y) = built()
    with fs.Session() as sess:
        sess.run(y, {x: 0.5})
        show(feed, "lowered")
        for look in range(50):
            sess.run(i if look % 3 else y, {x: 0.5})
            delta = feed.tick(100 + look * 0.125)
            assert delta.graph is None, "the plan that is shown is still run"
        told = []
        for look in range(20):
            sess.run(i, {x: 0.5})
            delta = feed.tick(200 + look * 0.125)
            told += [look] if delta.graph else []
        assert len(told) == 1 and told[0] * 0.125 <= FOLLOW_S


def test_loops_are_frames_in_the_program_as_lowered_too(feed):
    x, loop = built()
    with fs.Session() as sess:
        sess.run(loop, {x: 0.5})
        _, snapshot = show(feed, "lowered")
    entries = [n for n in snapshot.graph.added if n.type == "Enter"]
    assert {n.frame for n in entries} == {"loop"}
    assert {s.type for n in entries for s in n.made_from} == {"Loop"}
    assert not any(n.frame for n in snapshot.graph.added if n.type != "Enter")


def test_a_graph_without_a_step_is_not_lowered(feed):
    _, loop = built()
    reply, snapshot = show(feed, "lowered")
    assert not reply.ok and "run something first" in reply.message and snapshot is None
    with fs.Session() as sess:
        reply, snapshot = show(feed, "lowered")
        assert not reply.ok and snapshot is None
        sess.run(loop, {"x:0": 0.5})
        assert show(feed, "lowered")[0].ok


def test_what_runs_whichever_branch_is_taken_is_told_until_something_else_takes_it(feed):
    x = fs.placeholder(fs.float32, [], name="x")
    squared, sine = fs.square(x, name="squared"), fs.sin(x, name="sine")
    with pytest.warns(fs.errors.ControlFlowWarning, match="is used nowhere else"):
        fs.cond(x > 0.0, lambda: squared, lambda: sine, name="choice")
    nodes = {n.name: n for n in feed.tick(1.0).graph.added}
    assert nodes["choice/Cond"].always_runs == (squared.op.id, sine.op.id)
    fs.exp(squared)
    (changed,) = feed.tick(2.0).graph.changed
    assert changed.name == "choice/Cond" and changed.always_runs == (sine.op.id,)


def test_the_fill_of_queues_is_told_by_their_handles(feed):
    queue = fs.FIFOQueue(10, [fs.float32], shapes=[[]], name="orders")
    fill, take = queue.enqueue_many([np.ones(3, np.float32)]), queue.dequeue()
    with fs.Session() as sess:
        sess.run(fill)
        (told,) = feed.tick(1.0).session.queues
        (handle,) = [n for n in feed.sent[-1].graph.added if n.name == "orders"]
        assert (told.op, told.size, told.capacity) == (handle.id, 3, 10)
        assert (told.enqueues, told.dequeues, told.is_closed) == (0, 0, False)
        sess.run(take)
        sess.run(queue.close())
        (told,) = feed.tick(2.0).session.queues
        assert (told.size, told.is_closed) == (2, True)
