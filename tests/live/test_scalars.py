"""Numbers that are fetched or summarised are told to views, unasked, and cost next to nothing."""

import time

import numpy as np
import pytest
from live_views import View

import flowscope as fs
from flowscope.live.answers.scalars import POINTS, STEPS
from flowscope.live.watchers.bus import LiveChannel

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def view(graph):
    with fs.Session() as sess:
        made = View(LiveChannel(graph, sess))
        made.session = sess
        yield made
        made.feed.leave(made.send)


def told(view):
    view.feed.tick(0.0)
    [*_, session] = [m.session for m in view.got if getattr(m, "session", None)]
    return {one.name: one for one in session.scalars}


def test_a_fetched_number_has_a_curve_and_arrays_have_none(view):
    x = fs.placeholder(fs.float32, [3], name="x")
    loss = fs.reduce_sum(x, name="loss")
    count = fs.constant(7, name="count")
    flag = fs.less(loss, 1.0, name="flag")
    for k in range(5):
        view.feed.tick(float(k))
        view.session.run([loss, x, count, flag], {x: np.full(3, k, np.float32)})
    found = told(view)
    assert found.keys() == {"loss", "count"}
    assert found["loss"].op == loss.op.id and found["loss"].curve == (0.0, 3.0, 6.0, 9.0, 12.0)
    assert (found["loss"].value, found["loss"].step) == (12.0, 5)


def test_one_that_is_fetched_now_and_then_is_found(view):
    x = fs.placeholder(fs.float32, [], name="x")
    train, loss = fs.exp(x, name="train"), fs.square(x, name="loss")
    for k in range(12):
        view.feed.tick(float(k))
        for _ in range(10):
            view.session.run(train.op, {x: 1.0})
        view.session.run(loss, {x: float(k)})
    assert len(told(view)["loss"].curve) == 12


def test_curves_are_short_and_only_some_steps_are_asked(view):
    y = fs.square(fs.constant(2.0), name="y")
    view.feed.tick(0.0)
    for _ in range(3 * STEPS):
        view.session.run(y)
    assert view.session.tracers == ()
    assert len(told(view)["y"].curve) == STEPS
    for k in range(6):
        view.feed.tick(float(k))
        for _ in range(STEPS):
            view.session.run(y)
    assert len(told(view)["y"].curve) == POINTS


def test_a_summary_is_found_by_its_tag(view, tmp_path):
    loss = fs.placeholder(fs.float32, [], name="loss")
    merged = fs.summary.scalar("error", loss)
    writer = fs.summary.FileWriter(str(tmp_path))
    for k in range(4):
        writer.add_summary(view.session.run(merged, {loss: 1.0 / (k + 1)}), k)
    writer.close()
    found = told(view)["error"]
    assert found.op == view.session.graph.get_operation_by_name("error").id
    assert found.step == 3 and found.curve[0] == 1.0 and len(found.curve) == 4


def test_another_session_begins_anew_and_leaving_ends_it(graph):
    y = fs.square(fs.constant(2.0), name="y")
    view = View(LiveChannel(graph))
    first = fs.Session()
    view.feed.tick(0.0)
    first.run(y)
    assert told(view).keys() == {"y"}
    second = fs.Session()
    assert told(view) == {} and first.tracers == ()
    view.feed.leave(view.send)
    assert second.tracers == ()
    first.close()
    second.close()


def test_looking_takes_less_than_two_percent_of_a_core(view):
    x = fs.placeholder(fs.float32, [64, 64], name="x")
    loss = fs.reduce_mean(fs.matmul(x, x), name="loss")
    array = np.ones((64, 64), np.float32)
    view.session.run(loss, {x: array})
    view.feed.tick(0.0)
    looks = 40
    begin = time.thread_time()
    for _ in range(looks * STEPS):
        view.session.run(loss, {x: array})
    plain = time.thread_time() - begin
    begin = time.thread_time()
    for k in range(looks):
        view.feed.tick(float(k))
        for _ in range(STEPS):
            view.session.run(loss, {x: array})
    looked = time.thread_time() - begin
    share = (looked - plain) / looks * 8
    assert share < 0.02, f"{share:.1%} of a core at eight looks a second"
