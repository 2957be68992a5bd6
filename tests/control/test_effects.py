"""Effects in bodies: program order across iterations, Python's functions, whole training runs."""

import threading

import numpy as np
import pytest

import flowscope as fs


@pytest.fixture(params=["compiled", "op", "tokens"])
def any_sess(request, graph):
    """A session on `graph`, once for each of all ways to run."""
    with fs.Session(graph=graph, config=fs.ConfigProto(mode=request.param)) as s:
        yield s


def test_writes_of_nested_branches_and_loops_keep_program_order(any_sess):
    v = fs.Variable(1.0)

    def body(i):
        v.assign(v * 2.0)
        fs.cond(fs.equal(i % 2, 0), lambda: v.assign_add(1.0), lambda: v.read_value())
        v.assign_add(10.0)

        def inner(j):
            v.assign_sub(0.5)
            return j + 1

        fs.while_loop(lambda j: j < i, inner, [0])
        return i + 1

    i = fs.while_loop(lambda i: i < 4, body, [0])
    after = v.read_value()
    want = 1.0
    for k in range(4):
        want = want * 2.0 + (k % 2 == 0) + 10.0 - 0.5 * k
    any_sess.run(v.initializer)
    assert any_sess.run([i, after]) == [4, want]


def test_pythons_functions_are_called_in_each_iteration(any_sess):
    seen = []

    def see(i, what):
        seen.append((what.decode(), int(i)))
        return np.float32(2 * i)

    def body(i, total):
        fs.py_func(see, [i, "unused"], fs.float32)
        return i + 1, total + fs.py_func(see, [i, "used"], fs.float32)

    y = fs.while_loop(lambda i, _: i < 3, body, [0, 0.0])
    assert any_sess.run(y) == (3, 6)
    assert seen == [(what, i) for i in range(3) for what in ("unused", "used")]


def test_prints_in_each_iteration(any_sess, capfd):
    def body(i):
        return fs.Print(i, [i], "i = ") + 1

    i = fs.while_loop(lambda i: i < 3, body, [0])
    assert any_sess.run(i) == 3
    assert capfd.readouterr().err.split("\n")[:3] == ["i = [0]", "i = [1]", "i = [2]"]


def test_an_assertion_in_a_body(any_sess):
    def body(i):
        fs.Assert(i < 2, ["too large:", i])
        return i + 1

    i = fs.while_loop(lambda i: i < 9, body, [0])
    with pytest.raises(fs.errors.InvalidArgumentError, match=r"\[too large:\] \[2\]"):
        any_sess.run(i)


OPTIMIZERS = {
    "sgd": lambda: fs.train.GradientDescentOptimizer(0.01),
    "momentum": lambda: fs.train.MomentumOptimizer(0.01, 0.9),
    "adam": lambda: fs.train.AdamOptimizer(0.1),
}
X = np.arange(8, dtype=np.float32).reshape(4, 2) / 4
Y = np.array([1.0, 2.0, 3.0, 4.0], np.float32)


def model(make):
    """A linear regression: its variables, and what makes an update."""
    w, b = fs.Variable([1.0, 2.0]), fs.Variable(0.5)
    optimizer = make()

    def minimize(global_step=None):
        errors = fs.reduce_sum(fs.constant(X) * w, 1) + b - Y
        return optimizer.minimize(fs.reduce_mean(errors * errors), global_step)

    return [w, b], minimize


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_a_training_run_in_one_step_is_bit_equal_to_pythons_loop(any_sess, name):
    outside, minimize = model(OPTIMIZERS[name])
    update = minimize()
    inside, minimize_inside = model(OPTIMIZERS[name])

    def body(i):
        minimize_inside()
        return i + 1

    loop = fs.while_loop(lambda i: i < 30, body, [0])
    any_sess.run(fs.global_variables_initializer())
    before = any_sess.run(outside)
    for _ in range(30):
        any_sess.run(update)
    assert any_sess.run(loop) == 30
    a, b = any_sess.run([outside, inside])
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)
    assert not np.array_equal(a[0], before[0])


def test_a_training_run_is_paused_looked_at_and_stopped(sess):
    variables, minimize = model(OPTIMIZERS["adam"])
    done = fs.Variable(0, trainable=False)
    n = fs.placeholder(fs.int64, [])

    def body(i):
        minimize(done)
        return i + 1

    loop = fs.while_loop(lambda i: i < n, body, [fs.constant(0, fs.int64)])
    sess.run(fs.global_variables_initializer())
    sess.run(loop, {n: 3})
    assert sess.run(done) == 3
    ended = []

    def run():
        try:
            sess.run(loop, {n: 10**12})
        except fs.errors.CancelledError as e:
            ended.append(e)

    thread = threading.Thread(target=run)
    sess.pause()
    thread.start()
    assert sess.gate.wait_until_held(10)
    for _ in range(3):
        sess.resume()
        sess.pause()
        assert sess.gate.wait_until_held(10)
    sess.stop()
    thread.join(10)
    assert len(ended) == 1
    sess.resume()
    # What the stopped step has done is whole updates: as many steps of a new run lead there too.
    count, *got = sess.run([done, *variables])
    sess.run(fs.global_variables_initializer())
    sess.run(loop, {n: int(count)})
    for x, y in zip(got, sess.run(variables), strict=True):
        np.testing.assert_array_equal(x, y)
