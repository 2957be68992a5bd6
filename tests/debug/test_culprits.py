"""Stop at the first NaN: the culprit, its inputs, the way to it, in all modes and places."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture(params=["compiled", "op", "tokens", "two devices", "apart"])
def sess(request):
    mode = request.param if request.param in ("op", "tokens") else "compiled"
    count = 2 if request.param in ("two devices", "apart") else 1
    split = {"split_partitions": "always"} if request.param == "apart" else {}
    config = fs.ConfigProto(mode=mode, device_count={"CPU": count}, **split)
    with fs.Session(config=config) as made:
        yield made


def far(sess):
    """Returns where the second half of a model stands."""
    return fs.device(f"/cpu:{len(sess.devices) - 1}")


def culprits(sess):
    """Returns the list of what is found from now on."""
    found = []
    sess.debug.stop_at_nan()
    sess.debug.on_stop(lambda stop: found.append(stop.culprit()))
    return found


def figures(look):
    s = look.statistics
    return look.name, s.finite, s.nan, s.inf


def test_it_is_named_with_inputs_path_and_line(sess):
    x = fs.placeholder(fs.float32, [3], name="x")
    a = fs.exp(x, name="a")
    with far(sess):
        b = fs.subtract(a, 1.0, name="b")
        c = fs.log(b, name="c")
        y = fs.reduce_sum(fs.nn.relu(c), name="y")
    found = culprits(sess)
    sess.run(y, {x: [1.0, 2.0, 3.0]})
    assert found == []
    sess.run(y, {x: [1.0, 0.0, 3.0]})
    culprit = found[0]
    assert (culprit.op, culprit.what, culprit.step) == (c.op, "inf", 1)
    assert [figures(look) for look in culprit.inputs] == [("b:0", 3, 0, 0)]
    assert [figures(look) for look in culprit.outputs] == [("c:0", 2, 0, 1)]
    assert culprit.path == (c.op,) and culprit.already == () and culprit.why_not == ""
    text = str(culprit)
    assert 'inf made by "c" (Log), step 1' in text and "test_culprits.py" in text
    assert "sess.debug.replay(1) computes it" in text


def test_in_a_loop_it_is_the_iteration_that_made_it(sess):
    x = fs.placeholder(fs.float64, [2], name="x")
    with far(sess):

        def body(i, v):
            return i + 1, fs.multiply(v, v, name="square")

        y = fs.while_loop(lambda i, v: i < 20, body, [0, x], name="loop")[1]
    found = culprits(sess)
    sess.run(y, {x: [1.0, 10.0]})
    culprit = found[0]
    assert culprit.op.name == "loop/body/square" and culprit.iterations == (8,)
    assert all(look.statistics.max == pytest.approx(1e256) for look in culprit.inputs)
    assert "step 0, iteration 8" in str(culprit)


def test_the_path_leads_back_to_what_was_there_before(sess):
    x = fs.placeholder(fs.float32, [2], name="x")
    v = fs.Variable([1.0, 2.0], name="v")
    with far(sess):
        a = fs.nn.relu(fs.transpose(v), name="a")
        y = fs.multiply(a, x, name="y")
    sess.run(fs.global_variables_initializer())
    found = culprits(sess)
    v.load([np.inf, 1.0], sess)
    sess.run(y, {x: [1.0, 1.0]})
    culprit = found[-1]
    assert culprit.path[0] is v.op and culprit.path[-1] is culprit.op
    assert culprit.already == ('"v", a variable',)
    found.clear()
    sess.run(y, {x: [np.nan, 1.0], v: [1.0, 1.0]})
    assert found[0].op is x.op and found[0].already == ('"x:0", which is fed',)
    assert found[0].path == (x.op,) and found[0].inputs == ()


def test_what_is_excepted_is_on_the_path(sess):
    x = fs.placeholder(fs.float32, [2], name="x")
    with fs.name_scope("masked"):
        a = fs.log(x, name="a")
    with far(sess):
        b = fs.nn.relu(a, name="b")
        y = fs.reduce_sum(b, name="y")
    found = []
    sess.debug.stop_at_nan(exceptions=["masked"])
    sess.debug.on_stop(lambda stop: found.append(stop.culprit()))
    sess.run(y, {x: [np.float32(-1.0), 2.0]})
    assert [op.name for op in found[0].path] == ["masked/a", "b", "y"]


def test_training_is_held_before_it_spoils_the_variables(sess):
    x = fs.placeholder(fs.float32, [None, 2], name="x")
    w = fs.Variable([[1.0], [1.0]], name="w")
    with far(sess):
        loss = fs.reduce_mean(fs.square(fs.matmul(x, w, name="product")), name="loss")
    train = fs.train.GradientDescentOptimizer(1e12).minimize(loss)
    sess.run(fs.global_variables_initializer())
    found = []
    sess.debug.stop_at_nan()

    def end(stop):
        found.append(stop.culprit())
        assert all(look.statistics.nan == look.statistics.inf == 0 for look in found[0].inputs)
        with sess.debug.replay(stop.step) as past:
            assert np.isfinite(past.variables["w"]).all()
        stop.stop()

    sess.debug.on_stop(end)

    def fit():
        for _ in range(10):
            sess.run([train, loss], {x: np.ones((4, 2), "f")})

    with pytest.raises(fs.errors.CancelledError):
        fit()
    assert len(found) == 1 and found[0].step > 1
    sess.debug.clear()
    assert np.isfinite(sess.run(w)).all()


def test_the_button_is_one_and_ends_what_it_began(sess):
    first = sess.debug.stop_at_nan()
    second = sess.debug.stop_at_nan()
    assert sess.debug.breakpoints == (second,) and second.stops_at_nan and first is not second
    assert sess.debug.history is not None
    second.remove()
    assert sess.debug.history is None and sess.debug.breakpoints == ()
    kept = sess.debug.record()
    sess.debug.stop_at_nan().remove()
    assert sess.debug.history is kept


def test_other_stops_have_none(sess):
    y = fs.exp(fs.placeholder(fs.float32, [], name="x"), name="y")
    found = []
    sess.debug.break_after(y)
    sess.debug.on_stop(lambda stop: found.append(stop.culprit()))
    sess.run(y, {"x:0": 1.0})
    assert found == [None]


def test_a_step_that_cannot_be_computed_again_says_why(graph):
    x = fs.placeholder(fs.float32, [2], name="x")
    y = fs.reduce_sum(fs.log(fs.py_func(lambda v: v, [x], fs.float32), name="a"), name="y")
    with fs.Session() as sess:
        found = culprits(sess)
        sess.run(y, {x: [0.0, 1.0]})
    assert found[0].op.name == "a" and "Python" in found[0].why_not
    assert "cannot be computed again" in str(found[0])
