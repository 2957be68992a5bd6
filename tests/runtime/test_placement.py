"""`Session.placement`, `predict_move`, `move`: what is told is so, and what is moved is moved."""

import threading

import numpy as np
import pytest

import flowscope as fs
from flowscope.plan.analysis.device_profile import DeviceProfile, Link
from flowscope.runtime.devices.device_profiles import machine_of, measured
from flowscope.runtime.trace.cost_learning import learn_costs

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture(params=["compiled", "op", "tokens"])
def session(request, graph):
    config = fs.ConfigProto(device_count={"CPU": 3}, mode=request.param)
    with fs.Session(graph=graph, config=config) as found:
        yield found


def model():
    x = fs.placeholder(fs.float32, [None, 4], name="x")
    with fs.name_scope("layer"):
        w = fs.Variable(np.ones((4, 2), np.float32), name="w")
        y = fs.matmul(x, w, name="y")
    return x, w, fs.reduce_sum(y, name="total")


def told(placement):
    return {one.name: one for one in placement}


def test_a_placement_tells_each_operation(session):
    x, _, total = model()
    with fs.device("/cpu:1"):
        z = fs.exp(total, name="z")
    found = session.placement(z, [x])
    ops = told(found)
    assert ops["z"].requested == "/device:CPU:1" and ops["z"].device.endswith("CPU:1")
    assert ops["z"].reason == "asked for /device:CPU:1"
    assert [c.device[-1] for c in ops["z"].candidates] == ["0", "1", "2"]
    assert [c.reason for c in ops["z"].candidates] == [
        "asked for /device:CPU:1",
        "",
        *["asked for /device:CPU:1"],
    ]
    assert all(c.seconds is not None for c in ops["total"].candidates)
    assert found.predicted_s > 0 and found.moved == ()
    assert "predicted: " in found.text() and "z " in found.text()
    assert repr(found) == found.text()


def test_soft_placement_lists_every_operation_that_it_moved(graph):
    with fs.device("/gpu:0"):
        x = fs.placeholder(fs.float32, [2], name="x")
        y = fs.exp(x, name="y")
        z = fs.while_loop(lambda i: i < 3, lambda i: fs.add(i, 1, name="added"), [0])
    with fs.Session(config=fs.ConfigProto(allow_soft_placement=True)) as sess:
        found = sess.placement([y, z], [x])
        names = {one.name.rpartition("/")[2] for one in found.moved}
        assert {"y", "added"} <= names
        assert all("which is not there; moved" in one.reason for one in found.moved)
        assert 'moved: "' in found.text()
        notes = sess.plan([y, z], [x]).program.notes
        assert len(notes) == len(found.moved)


def test_a_move_is_a_wish_and_takes_values_along(session):
    x, w, total = model()
    session.run(w.initializer)
    feed = {x: np.ones((3, 4), np.float32)}
    assert session.run(total, feed) == 24
    assert session.predict_move("layer", "/cpu:2", total, feed).refused is None
    assert w.op.device == "", "a prediction changes nothing"
    moved = session.move("layer", "/cpu:2")
    assert moved.moved_bytes == 32
    assert {op.device for op in session.graph.get_operations() if "layer/" in op.name} == {
        "/device:CPU:2"
    }
    assert session.run(total, feed) == 24
    ops = told(session.placement(total, [x]))
    assert ops["layer/y"].device.endswith("CPU:2") and ops["layer/w"].device.endswith("CPU:2")
    assert ops["total"].device.endswith("CPU:0")
    assert "asked for /device:CPU:2" in ops["layer/y"].reason


def test_other_plans_stay(session):
    x, w, total = model()
    other = fs.exp(fs.placeholder_with_default(1.0, []), name="other")
    session.run(w.initializer)
    session.run([total], {x: np.ones((3, 4))})
    plan = session.plan(other)
    session.move(total, "/cpu:1")
    assert session.plan(other) is plan
    assert told(session.placement(total, [x]))["total"].device.endswith("CPU:1")


def test_a_variable_moves_with_what_touches_it(session):
    _, w, _ = model()
    up = w.assign_add(np.ones((4, 2), np.float32))
    session.run(w.initializer)
    session.run(up)
    session.move(w, "/cpu:1")
    assert session.run(up)[0, 0] == 3
    assert {one.device[-1] for one in session.placement(up) if one.type != "Const"} == {"1"}


def test_a_move_inside_of_a_loop(session):
    y = fs.while_loop(lambda i: i < 5, lambda i: fs.add(i, 2, name="added"), [0], name="loop")
    assert session.run(y) == 6
    name = next(op.name for op in session.graph.get_operations() if op.name.endswith("added"))
    session.move(name, "/cpu:2")
    assert session.run(y) == 6
    found = [one for one in session.placement(y) if one.name.endswith("added")]
    assert [one.device[-1] for one in found] == ["2"]


def test_impossible_moves_are_refused_with_what_forbids_them(session):
    with fs.device("/cpu:1"):
        w = fs.Variable(1.0, name="w")
    up = w.assign_add(1.0, name="up")
    session.run(w.initializer)
    session.run(up)
    found = session.predict_move(up.op, "/cpu:2", up)
    assert 'shares a device with "w"' in found.refused and found.after_s is None
    with pytest.raises(fs.errors.InvalidArgumentError, match='shares a device with "w"'):
        session.move(up.op, "/cpu:2")
    assert up.op.device == "/device:CPU:1"
    assert session.run(up) == 3
    with pytest.raises(fs.errors.InvalidArgumentError, match="expected a device among"):
        session.move(up.op, "/cpu:7")
    with pytest.raises(fs.errors.InvalidArgumentError, match="expected a device among"):
        session.move(up.op, "")
    with pytest.raises(fs.errors.OpError):
        session.move("nowhere", "/cpu:1")


def test_what_has_no_kernel_there_is_not_moved(graph):
    text = fs.placeholder_with_default(["a"], [1], name="text")
    join = fs.string_join([text, text], name="join")
    with fs.Session(config=fs.ConfigProto(fake_devices={"GPU": 1})) as sess:
        sess.run(join)
        with pytest.raises(fs.errors.InvalidArgumentError, match="no kernel for GPU"):
            sess.move(join, "/gpu:0")
        assert "StringJoin has no kernel" in sess.predict_move(join, "/gpu:0", join).refused
        reasons = {c.device[-5:]: c.reason for c in told(sess.placement(join))["join"].candidates}
    assert reasons == {"CPU:0": "", "GPU:0": "StringJoin has no kernel for GPU"}


def test_a_value_goes_to_the_memory_of_the_device(graph):
    v = fs.Variable(np.ones(3, np.float32), name="v")
    up = v.assign_add(np.ones(3, np.float32))
    with fs.Session(config=fs.ConfigProto(fake_devices={"GPU": 2})) as sess:
        sess.run(v.initializer)
        sess.run(up)
        devices = {d.name[-5:]: d for d in sess.list_devices()}
        assert devices["GPU:0"].holds(sess.variable_state(v.handle).value)
        assert sess.move(v, "/gpu:1").moved_bytes == 12
        assert devices["GPU:1"].holds(sess.variable_state(v.handle).value)
        assert sess.run(up).tolist() == [3, 3, 3]
        sess.move(v, "/cpu:0")
        assert isinstance(sess.variable_state(v.handle).value, np.ndarray)
        assert sess.run(up).tolist() == [4, 4, 4]


def test_running_steps_finish_on_the_old_plan(session):
    started, go_on = threading.Event(), threading.Event()

    def wait(x):
        started.set()
        assert go_on.wait(30)
        return x + 1

    w = fs.Variable(1.0, name="w")
    y = fs.add(fs.py_func(wait, [w.read_value()], fs.float32), 0.0, name="y")
    session.run(w.initializer)
    got = []
    thread = threading.Thread(target=lambda: got.append(session.run(y)))
    thread.start()
    assert started.wait(30)
    session.move(w, "/cpu:1")
    session.move(y, "/cpu:2")
    go_on.set()
    thread.join(30)
    assert got == [2.0]
    assert session.run(y) == 2.0
    assert told(session.placement(y))["y"].device.endswith("CPU:2")


def test_a_rerun_of_a_cell_says_what_its_code_says(graph):
    def build():
        with graph.cell("a"):
            return fs.exp(fs.placeholder_with_default(1.0, [], name="x"), name="y")

    y = build()
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 2})) as sess:
        sess.run(y)
        sess.move("y", "/cpu:1")
        assert y.op.device == "/device:CPU:1"
        y = build()
        assert y.op.device == ""
        assert told(sess.placement(y))["y"].device.endswith("CPU:0")


def test_a_session_places_by_cost_where_it_is_asked_to(graph):
    x = fs.placeholder(fs.float32, [None, 256], name="x")
    w = fs.Variable(np.ones((256, 256), np.float32), name="w")
    y = fs.matmul(fs.matmul(x, w, name="first"), w, name="last")
    config = fs.ConfigProto(device_count={"CPU": 2}, placement="simulated")
    with fs.Session(graph=graph, config=config) as sess:
        sess.run(w.initializer)
        got = sess.run(y, {x: np.ones((8, 256), np.float32)})
        assert got[0, 0] == 256 * 256
        found = told(sess.placement(y, [x]))
    assert found["last"].reason == "finishes first there"
    assert found["w"].reason == "stands where it is used"


def test_only_who_asks_has_operations_placed_anew(graph):
    x = fs.placeholder(fs.float32, [128, 128], name="x")
    n = fs.placeholder(fs.int32, [], name="n")
    y = fs.while_loop(lambda i, h: i < n, lambda i, h: (i + 1, fs.tanh(fs.matmul(h, x))), [0, x])[1]
    config = fs.ConfigProto(device_count={"CPU": 2}, placement="simulated")
    with fs.Session(graph=graph, config=config) as sess:
        feed = {x: np.zeros((128, 128), np.float32), n: 40}
        sess.run(y, feed)
        before = sess.placement(y, feed)
        plan = sess.plan(y, [x, n])
        learn_costs(sess, y, feed, 1)
        after = sess.placement(y, feed)
        assert [o.device for o in before] == [o.device for o in after]
        assert sess.plan(y, [x, n]) is plan
        assert after.predicted_s > 2 * before.predicted_s, "the loop was seen to run 40 times"
        sess.placement(y, feed, anew=True)
        assert sess.plan(y, [x, n]) is not plan


def test_branches_are_learned(graph):
    p = fs.placeholder(fs.bool, [], name="p")
    y = fs.cond(p, lambda: fs.exp(fs.constant(1.0) * 2.0), lambda: fs.constant(3.0))
    with fs.Session(graph=graph) as sess:
        for value in (True, True, True, False):
            learn_costs(sess, y, {p: value}, 1)
        (node,) = [n for n in sess.plan(y, [p]).program.nodes if n.blocks]
        assert sess.planner.cost_table.often(node) == pytest.approx(0.75)


def test_an_unknown_way_to_place_is_refused(graph):
    fs.constant(1.0)
    with pytest.raises(fs.errors.InvalidArgumentError, match='"default" or "simulated"'):
        fs.Session(config=fs.ConfigProto(placement="best"))


def test_devices_without_a_profile_are_measured(graph):
    with fs.Session(graph=graph, config=fs.ConfigProto(fake_devices={"GPU": 1})) as sess:
        gpu = sess.list_devices()[1]
        found = measured(gpu)
        assert isinstance(found, DeviceProfile) and isinstance(found.link, Link)
        assert found.link.bytes_per_s > 1e6 and 0 < found.call_s < 1e-2 and found.speed > 0
        assert machine_of(sess.list_devices()).crossing_s(1000, 0, 1) > 0
