"""Optimizers against the same updates written by hand in NumPy."""

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


@pytest.mark.parametrize("dtype", [fs.float32, fs.float64])
def test_gradient_descent(sess, dtype):
    w = fs.Variable(np.array([1.0, 2.0], dtype.as_numpy_dtype), name="w")
    rate = fs.placeholder(fs.float32, [])
    train = fs.train.GradientDescentOptimizer(rate).minimize(fs.reduce_sum(w * w))
    sess.run(fs.global_variables_initializer())
    sess.run(train, {rate: 0.25})
    np.testing.assert_allclose(sess.run(w), [0.5, 1.0])
    assert train.type == "NoOp" and train.name == "GradientDescent"


def test_adam_is_the_papers_algorithm(sess):
    start = np.array([[1.0, -2.0], [3.0, 0.5]], np.float32)
    w = fs.Variable(start, name="w")
    optimizer = fs.train.AdamOptimizer(0.1, beta1=0.8, beta2=0.9, epsilon=1e-4)
    train = optimizer.minimize(fs.reduce_sum(fs.square(w) * w))
    sess.run(fs.global_variables_initializer())
    x, m, v = start.astype(np.float64), 0.0, 0.0
    for t in range(1, 6):
        sess.run(train)
        g = 3 * x**2
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
        rate = 0.1 * np.sqrt(1 - 0.9**t) / (1 - 0.8**t)
        x = x - rate * m / (np.sqrt(v) + 1e-4)
        np.testing.assert_allclose(sess.run(w), x, rtol=1e-5)
    assert optimizer.get_slot_names() == ["m", "v"]
    assert optimizer.get_slot(w, "m").op.name == "w/Adam"
    assert optimizer.get_slot(w, "v").op.name == "w/Adam_1"
    assert [x.op.name for x in optimizer.variables()] == [
        "beta1_power",
        "beta2_power",
        "w/Adam",
        "w/Adam_1",
    ]
    assert fs.trainable_variables() == [w]


def test_global_step_counts_updates(sess):
    w = fs.Variable(1.0)
    step = fs.train.get_or_create_global_step()
    assert fs.train.get_or_create_global_step() is step
    train = fs.train.AdamOptimizer().minimize(w * w, global_step=step)
    sess.run(fs.global_variables_initializer())
    for _ in range(3):
        sess.run(train)
    assert sess.run(step) == 3 and fs.train.global_step(sess, step) == 3


def test_compute_and_apply_gradients_with_changed_gradients(sess):
    a, b = fs.Variable(2.0, name="a"), fs.Variable(3.0, name="b")
    optimizer = fs.train.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(a * 5.0)
    assert pairs[1] == (None, b)
    train = optimizer.apply_gradients([(g if g is None else g * 0.1, v) for g, v in pairs])
    sess.run(fs.global_variables_initializer())
    sess.run(train)
    np.testing.assert_allclose(sess.run([a, b]), [1.5, 3.0])


def test_a_constraint_is_applied_after_the_update(sess):
    w = fs.Variable(1.0, constraint=lambda x: fs.maximum(x, 0.5))
    train = fs.train.GradientDescentOptimizer(10.0).minimize(w * w)
    sess.run(w.initializer)
    sess.run(train)
    assert sess.run(w) == 0.5


def test_clear_errors():
    loss = fs.constant(1.0)
    optimizer = fs.train.GradientDescentOptimizer(0.1)
    with pytest.raises(ValueError, match="no variables to train"):
        optimizer.minimize(loss)
    w = fs.Variable(1.0, name="w")
    with pytest.raises(ValueError, match="no variable has influence.*w:0"):
        optimizer.minimize(loss)
    with pytest.raises(ValueError, match="no gradients were given.*w:0"):
        optimizer.apply_gradients([(None, w)])


def test_training_a_small_network_lowers_its_loss(sess):
    rng = np.random.default_rng(0)
    xs = rng.normal(size=(64, 4)).astype(np.float32)
    ys = (xs @ rng.normal(size=(4, 3))).argmax(1).astype(np.int32)
    x, y = fs.placeholder(fs.float32, [None, 4]), fs.placeholder(fs.int32, [None])
    w = fs.Variable(fs.zeros([4, 3]))
    b = fs.Variable(fs.zeros([3]))
    logits = fs.matmul(x, w) + b
    loss = fs.reduce_mean(fs.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    train = fs.train.AdamOptimizer(0.1).minimize(loss)
    sess.run(fs.global_variables_initializer())
    first = sess.run(loss, {x: xs, y: ys})
    for _ in range(100):
        sess.run(train, {x: xs, y: ys})
    assert first == pytest.approx(np.log(3), rel=1e-5)
    assert sess.run(loss, {x: xs, y: ys}) < 0.2
