"""Adam that leaves alone what a sparse gradient does not have."""

import numpy as np
import pytest
from op_oracle import same_bits

import flowscope as fs

MODES = ["compiled", "op", "tokens"]
#: Numbers of optimizers are float32 tensors, whatever the dtype of the variable.
RATE, BETA1, BETA2, EPSILON = (float(np.float32(x)) for x in (0.1, 0.9, 0.999, 1e-8))


def by_numpy(table, steps):
    """What rows are after steps of (rows, gradient per row); and their moments."""
    m, v = np.zeros_like(table), np.zeros_like(table)
    powers = np.float32([0.9, 0.999])  # float32 variables, as in TensorFlow 1
    for rows, grads in steps:
        total = np.zeros_like(table)
        np.add.at(total, rows, grads)
        at = np.unique(rows)
        m[at] = BETA1 * m[at] + (1 - BETA1) * total[at]
        v[at] = BETA2 * v[at] + (1 - BETA2) * total[at] ** 2
        power1, power2 = powers.astype(np.float64)
        rate = RATE * np.sqrt(1 - power2) / (1 - power1)
        powers *= np.float32([0.9, 0.999])
        table[at] -= rate * m[at] / (np.sqrt(v[at]) + EPSILON)
    return table, m, v


@pytest.mark.parametrize("mode", MODES)
def test_rows_that_a_step_uses_alone_move(graph, mode):
    rng = np.random.default_rng(1)
    first = rng.standard_normal((6, 3))
    rows = fs.placeholder(fs.int32, [None])
    weights = fs.placeholder(fs.float64, [None, 3])
    table = fs.Variable(first, name="table")
    loss = fs.reduce_sum(fs.gather(table, rows) * weights)
    optimizer = fs.contrib.opt.LazyAdamOptimizer(RATE)
    train = optimizer.minimize(loss)
    slots = [optimizer.get_slot(table, name) for name in optimizer.get_slot_names()]
    steps = [([4], rng.standard_normal((1, 3)))]
    steps += [(list(rng.integers(0, 5, 4)), rng.standard_normal((4, 3))) for _ in range(6)]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(fs.global_variables_initializer())
        for at, given in steps:
            sess.run(train, {rows: at, weights: given})
        found, m, v = sess.run([table, *slots])
    for got, want in zip((found, m, v), by_numpy(first.copy(), steps), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    assert same_bits(found[5], first[5]), "a row that no step has used"


@pytest.mark.parametrize("mode", MODES)
def test_dense_gradients_are_those_of_adam(graph, mode):
    found = []
    for kind in (fs.train.AdamOptimizer, fs.contrib.opt.LazyAdamOptimizer):
        with fs.Graph().as_default():
            w = fs.Variable([1.0, -2.0], name="w")
            train = kind(0.1).minimize(fs.reduce_sum(fs.square(w - 3.0)))
            with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
                sess.run(fs.global_variables_initializer())
                for _ in range(5):
                    sess.run(train)
                found.append(sess.run(w))
    assert same_bits(*found)


def test_checkpoints_are_those_of_adam(graph, tmp_path):
    def built(kind):
        table = fs.Variable(np.ones((4, 2), "f"), name="table")
        train = kind(0.1).minimize(fs.reduce_sum(fs.square(fs.gather(table, [1, 2]))))
        return table, train, fs.train.Saver()

    table, train, saver = built(fs.train.AdamOptimizer)
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        sess.run(train)
        path = saver.save(sess, str(tmp_path / "model"))
        before = sess.run(table)
    with fs.Graph().as_default():
        table, train, saver = built(fs.contrib.opt.LazyAdamOptimizer)
        with fs.Session() as sess:
            saver.restore(sess, path)
            sess.run(train)
            after = sess.run(table)
    assert (after[[1, 2]] < before[[1, 2]]).all() and same_bits(after[[0, 3]], before[[0, 3]])
