"""L-BFGS against the two-loop recursion in NumPy, and on functions with known minima."""

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def by_hand(x, gradient, steps, rate, history, epsilon=1e-10):
    """The same updates with lists and branches."""
    pairs, before = [], None
    for _ in range(steps):
        g = gradient(x)
        if before is not None:
            s, y = x - before[0], g - before[1]
            if s @ y > epsilon * (y @ y):
                pairs = [*pairs, (s, y)][-history:]
        q, shares = g.copy(), []
        for s, y in reversed(pairs):
            shares.append(s @ q / (s @ y))
            q -= shares[-1] * y
        q *= pairs[-1][0] @ pairs[-1][1] / (pairs[-1][1] @ pairs[-1][1]) if pairs else min(
            1, 1 / np.abs(g).sum()
        )  # fmt: skip
        for (s, y), share in zip(pairs, reversed(shares)):
            q += (share - y @ q / (s @ y)) * s
        before = (x, g)
        x = x - rate * (q if q @ g > 0 else g)
    return x


A = np.diag([1.0, 5.0, 20.0, 0.5, 8.0]) + 0.3


def quadratic():
    """Two variables, of which the first holds four numbers; the minimum is at 1."""
    a = fs.Variable(np.array([[3.0, -2.0], [0.5, 4.0]]), name="a")
    b = fs.Variable(np.float64(-1.0), name="b")
    x = fs.concat([fs.reshape(a, [-1]), fs.reshape(b, [1])], 0) - 1.0
    loss = 0.5 * fs.reduce_sum(x * fs.reshape(fs.matmul(A, fs.reshape(x, [5, 1])), [-1]))
    return a, b, loss


@pytest.mark.parametrize(("history", "rate"), [(2, 1.0), (3, 0.7), (10, 1.0)])
def test_it_is_the_two_loop_recursion(sess, history, rate):
    a, b, loss = quadratic()
    train = fs.train.LBFGSOptimizer(rate, history).minimize(loss)
    sess.run(fs.global_variables_initializer())
    start = np.array([3.0, -2.0, 0.5, 4.0, -1.0])
    for steps in range(1, 13):
        sess.run(train)
        got = np.append(sess.run(a).ravel(), sess.run(b))
        want = by_hand(start, lambda x: A @ (x - 1), steps, rate, history)
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)
    assert abs(got - 1).max() < 0.2


def test_it_needs_far_fewer_steps_than_gradient_descent(sess):
    _, _, loss = quadratic()
    step = fs.train.get_or_create_global_step()
    train = fs.train.LBFGSOptimizer().minimize(loss, global_step=step)
    sess.run(fs.global_variables_initializer())
    while sess.run(loss) > 1e-12 and sess.run(step) < 100:
        sess.run(train)
    assert sess.run(step) < 30


def test_pairs_without_curvature_are_left_out(sess):
    """Along -x^2 the gradient falls where the step goes: every pair has s . y < 0."""
    w = fs.Variable([1.0, 2.0])
    train = fs.train.LBFGSOptimizer(0.1, 3).minimize(-fs.reduce_sum(w * w))
    sess.run(fs.global_variables_initializer())
    for _ in range(5):
        sess.run(train)
    want = by_hand(np.array([1.0, 2.0]), lambda x: -2 * x, 5, 0.1, 3)
    np.testing.assert_allclose(sess.run(w), want, rtol=1e-5)


def test_slices_constraints_and_names(sess):
    table = fs.Variable(fs.ones([4, 2]), name="table", constraint=lambda t: fs.maximum(t, 0.5))
    rows = fs.gather(table, [1, 3])
    optimizer = fs.train.LBFGSOptimizer(4.0, 2)
    train = optimizer.minimize(fs.reduce_sum(rows))
    sess.run(fs.global_variables_initializer())
    sess.run(train)
    np.testing.assert_array_equal(sess.run(table), [[1, 1], [0.5, 0.5], [1, 1], [0.5, 0.5]])
    assert optimizer.get_slot_names() == ["previous", "previous_gradient"]
    assert [v.op.name for v in optimizer.variables()] == [
        "LBFGS/changes", "LBFGS/count", "LBFGS/steps", "LBFGS/weights", "table/LBFGS",
        "table/LBFGS_1",
    ]  # fmt: skip


def test_clear_errors():
    with pytest.raises(ValueError, match="history of 2 pairs at least, got 1"):
        fs.train.LBFGSOptimizer(history=1)
    a, b = fs.Variable(1.0, name="a"), fs.Variable(np.float64(1.0), name="b")
    with pytest.raises(TypeError, match='one floating dtype, got float64 from "b:0"'):
        fs.train.LBFGSOptimizer().apply_gradients([(1.0, a), (np.float64(1.0), b)])
