"""Moving averages of variables and tensors."""

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def test_averages_of_variables_start_from_their_initial_values(sess):
    v, w = fs.Variable(10.0, name="v"), fs.Variable([1.0, 2.0], name="w")
    ema = fs.train.ExponentialMovingAverage(0.9)
    assert ema.average(v) is None and ema.average_name(v) == "v/ExponentialMovingAverage"
    move = ema.apply()
    assert ema.average_name(v) == ema.average(v).op.name == "v/ExponentialMovingAverage"
    assert move.type == "NoOp" and move.name == "ExponentialMovingAverage"
    assert fs.moving_average_variables() == [v, w]
    assert ema.average(v) not in fs.trainable_variables()
    sess.run(fs.global_variables_initializer())
    slow_v, slow_w = 10.0, np.array([1.0, 2.0])
    for i in range(3):
        v.load(20.0 + i, sess)
        w.load([5.0, 6.0 * i], sess)
        sess.run(move)
        slow_v = 0.9 * slow_v + 0.1 * (20 + i)
        slow_w = 0.9 * slow_w + 0.1 * np.array([5.0, 6.0 * i])
        assert sess.run(ema.average(v)) == pytest.approx(slow_v)
        np.testing.assert_allclose(sess.run(ema.average(w)), slow_w, rtol=1e-6)


def test_the_count_of_updates_quickens_early_averages(sess):
    v, n = fs.Variable(1.0), fs.Variable(3)
    ema = fs.train.ExponentialMovingAverage(0.9, num_updates=n)
    move = ema.apply([v])
    sess.run(fs.global_variables_initializer())
    v.load(2.0, sess)
    sess.run(move)
    assert sess.run(ema.average(v)) == pytest.approx(1 + 1 - 4 / 13)
    n.load(1000, sess)
    sess.run(move)
    assert sess.run(ema.average(v)) == pytest.approx(0.9 * (2 - 4 / 13) + 0.1 * 2)


@pytest.mark.parametrize("zero_debias", [False, True])
def test_averages_of_tensors_start_from_zero(sess, zero_debias):
    x = fs.placeholder(fs.float32, [2], name="x")
    loss = fs.identity(x, name="loss")
    ema = fs.train.ExponentialMovingAverage(0.9, zero_debias=zero_debias)
    move = ema.apply([loss])
    again = ema.apply([loss])
    names = ["loss/ExponentialMovingAverage"]
    if zero_debias:
        names += [names[0] + "/biased", names[0] + "/local_step"]
    assert [v.op.name for v in fs.global_variables()] == names
    assert fs.moving_average_variables() == []
    sess.run(fs.global_variables_initializer())
    slow = np.zeros(2)
    for i in range(1, 4):
        sess.run(again if i == 2 else move, {x: [1.0 + i, 2.0]})
        slow = 0.9 * slow + 0.1 * np.array([1.0 + i, 2.0])
        want = slow / (1 - 0.9**i) if zero_debias else slow
        np.testing.assert_allclose(sess.run(ema.average(loss)), want, rtol=1e-5)


def test_a_saver_finds_averages_in_place_of_variables(sess):
    v, w = fs.Variable(1.0, name="v"), fs.Variable(1.0, name="w")
    fixed = fs.Variable(1.0, trainable=False, name="fixed")
    ema = fs.train.ExponentialMovingAverage(0.9, name="slow")
    assert ema.variables_to_restore() == {"v/slow": v, "w/slow": w, "fixed": fixed}
    assert ema.variables_to_restore([v]) == {"v/slow": v, "w": w, "fixed": fixed}
    ema.apply([v])
    assert ema.variables_to_restore([v]) == {"v/slow": v, "w": w, "fixed": fixed}


def test_averages_follow_an_update_in_one_step(sess):
    w = fs.Variable(1.0)
    train = fs.train.GradientDescentOptimizer(1.0).minimize(fs.identity(w))
    ema = fs.train.ExponentialMovingAverage(0.5)
    with fs.control_dependencies([train]):
        step = ema.apply([w])
    sess.run(fs.global_variables_initializer())
    sess.run(step)
    assert sess.run([w, ema.average(w)]) == [0.0, 0.5]


def test_clear_errors():
    ema = fs.train.ExponentialMovingAverage(0.9)
    with pytest.raises(TypeError, match='expected floats to average, got int32 from "n:0"'):
        ema.apply([fs.Variable(1, name="n")])
    with pytest.raises(TypeError, match=r"expected variables and tensors to average, got 1\.0"):
        ema.apply([1.0])


def test_averages_and_slots_lie_in_the_variable_scope_that_is_open():
    v = fs.Variable(1.0, name="v")
    t = v * 2.0
    average = fs.train.ExponentialMovingAverage(0.9, name="avg")
    with fs.variable_scope("s"):
        assert average.average_name(v) == "s/v/avg"
        average.apply([v, t])
        fs.train.AdamOptimizer().minimize(v)
    assert average.average_name(v) == average.average(v).op.name == "s/v/avg"
    assert average.average(t).op.name == "s/mul/avg"
    names = [x.op.name for x in fs.global_variables()]
    assert names[3:] == ["s/beta1_power", "s/beta2_power", "s/v/Adam", "s/v/Adam_1"]
    with fs.name_scope("n"):
        fs.train.AdamOptimizer().minimize(v)
    assert "n/beta1_power" in [x.op.name for x in fs.global_variables()]
