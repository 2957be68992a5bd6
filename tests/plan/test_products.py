"""Products of matrices in loops: sums of them, transposes, and what is the same in iterations."""

import tracemalloc

import numpy as np
import pytest

import flowscope as fs

RNG = np.random.default_rng(0)


def network(rows=4, width=96, units=64, dtype=fs.float32):
    """Returns x [steps, rows, width], w and a loss of a recurrent network."""
    x = fs.placeholder(dtype, [None, rows, width])
    w = fs.placeholder(dtype, [width + units, units])

    def body(t, h):
        return t + 1, fs.tanh(fs.matmul(fs.concat([x[t], h], 1), w))

    zero = fs.zeros([rows, units], dtype)
    invariants = [fs.TensorShape([]), fs.TensorShape([rows, units])]
    steps = fs.shape(x)[0]
    h = fs.while_loop(lambda t, h: t < steps, body, [0, zero], invariants)[1]
    return x, w, fs.reduce_sum(h * h)


def unrolled(x, w, steps):
    h = fs.zeros([x.shape[1], w.shape[1]], x.dtype)
    for t in range(steps):
        h = fs.tanh(fs.matmul(fs.concat([x[t], h], 1), w))
    return fs.reduce_sum(h * h)


def values(x, w, steps, rows=4):
    dims = [steps, rows, x.shape.as_list()[2]]
    dtype = x.dtype.as_numpy_dtype
    return {x: RNG.normal(size=dims).astype(dtype),
            w: (RNG.normal(size=w.shape.as_list()) * 0.1).astype(dtype)}  # fmt: skip


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_a_weight_gradient_is_one_product_behind_the_loop(graph, mode):
    x, w, loss = network(dtype=fs.float64)
    g = fs.gradients(loss, w)[0]
    want = fs.gradients(unrolled(x, w, 9), w)[0]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        text = s.plan(g, [x, w]).text()
        assert "= SumOfProducts(" in text.splitlines()[-2]
        assert text.count("= MatMul(") == 2, "forward, and for the state"
        feeds = values(x, w, 9)
        np.testing.assert_allclose(s.run(g, feeds), s.run(want, feeds), rtol=1e-12)


def test_modes_give_equal_bits(graph):
    x, w, loss = network()
    g = fs.gradients(loss, w)[0]
    feeds = values(x, w, 70)
    found = []
    for mode in ("compiled", "op", "tokens"):
        with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
            found.append(s.run(g, feeds))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_long_loops_sum_in_parts(graph):
    x, w, loss = network(64, 512, 16, fs.float64)
    g = fs.gradients(loss, w)[0]
    want = fs.gradients(unrolled(x, w, 11), w)[0]
    with fs.Session() as s:
        feeds = values(x, w, 11, 64)
        np.testing.assert_allclose(s.run(g, feeds), s.run(want, feeds), rtol=1e-9, atol=1e-12)


def test_loops_without_iterations_have_zero_gradients(sess):
    x, w, loss = network()
    g = fs.gradients(loss, w)[0]
    assert not sess.run(g, values(x, w, 0)).any()


def test_second_gradients_follow(sess):
    x, w, loss = network(2, 3, 2, fs.float64)
    g = fs.gradients(loss, w)[0]
    h = fs.gradients(fs.reduce_sum(fs.sin(g)), w)[0]
    want = fs.gradients(fs.reduce_sum(fs.sin(fs.gradients(unrolled(x, w, 5), w)[0])), w)[0]
    feeds = values(x, w, 5, 2)
    np.testing.assert_allclose(sess.run(h, feeds), sess.run(want, feeds), rtol=1e-9, atol=1e-12)


def test_what_would_need_more_memory_is_summed_in_the_loop(graph):
    """y is not kept for anything else: the loop takes x alone, and x and y would be more."""
    x = fs.placeholder(fs.float32, [8, 256])
    w = fs.placeholder(fs.float32, [256, 1024])

    def body(i, x, total):
        return i + 1, x * 0.5, total + fs.reduce_sum(fs.matmul(x, w))

    loss = fs.while_loop(lambda i, x, t: i < 5, body, [0, x, 0.0])[2]
    g = fs.gradients(loss, w)[0]
    with fs.Session() as s:
        assert "SumOf" not in s.plan(g, [x, w]).text()
        got = s.run(g, {x: np.ones((8, 256)), w: np.ones((256, 1024))})
        np.testing.assert_allclose(got, 8 * (2 - 2**-4) * np.ones((256, 1024)))


@pytest.mark.memory
@pytest.mark.slow
def test_the_peak_of_memory_is_what_the_loop_keeps(graph):
    x, w, loss = network(32, 128, 64)
    g = fs.gradients(loss, w)[0]
    assert w.shape == [192, 64]
    kept = 32 * (192 + 64) * 4  # what is multiplied by w, and the hyperbolic tangents
    with fs.Session() as s:
        assert "SumOfProducts" in s.plan(g, [x, w]).text()
        peaks = []
        for steps in (100, 500):
            feeds = values(x, w, steps, 32)
            s.run(g, feeds)
            tracemalloc.start()
            s.run(g, feeds)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert abs(peaks[1] - peaks[0] - 400 * kept) < 0.1 * 400 * kept


def test_a_sum_of_products_outside_loops_is_one(graph):
    x = fs.placeholder(fs.float64, [6, 4, 96])
    w = fs.placeholder(fs.float64, [160, 64])
    g = fs.gradients(unrolled(x, w, 6), w)[0]
    feeds = values(x, w, 6)
    with fs.Session() as s, fs.Session(config=fs.ConfigProto(mode="op")) as b:
        text = s.plan(g, [x, w]).text()
        assert text.count("= SumOfMatMuls(") == 1
        assert text.count("= TransposedCopy(") == 1
        assert text.count("= MatMul(") == 6 + 5
        got = s.run(g, feeds)
        np.testing.assert_array_equal(got, b.run(g, feeds))
    with fs.Session() as s:
        x2, w2, loss = network(dtype=fs.float64)
        want = s.run(fs.gradients(loss, w2)[0], {x2: feeds[x], w2: feeds[w]})
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_a_matrix_is_transposed_before_the_loops(graph):
    w = fs.placeholder(fs.float32, [96, 96])
    x = fs.placeholder(fs.float32, [2, 96])

    def inner(j, y):
        return j + 1, fs.tanh(fs.matmul(y, w, transpose_b=True))

    def outer(i, y):
        return i + 1, fs.while_loop(lambda j, y: j < 2, inner, [0, y])[1]

    y = fs.while_loop(lambda i, y: i < 2, outer, [0, x])[1]
    with fs.Session() as s:
        lines = s.plan(y, [x, w]).text().splitlines()
        (made,) = (line for line in lines if "= TransposedCopy(" in line)
        assert not made.startswith(" ")
        feeds = {w: RNG.normal(size=(96, 96)) * 0.1, x: RNG.normal(size=(2, 96))}
        want = feeds[x]
        for _ in range(4):
            want = np.tanh(want @ feeds[w].T)
        np.testing.assert_allclose(s.run(y, feeds), want, rtol=1e-4)


def test_a_variable_is_read_once_and_not_kept(graph):
    v = fs.get_variable("v", initializer=3.0, use_resource=True)
    y = fs.while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, x * v), [0, 1.0])[1]
    g = fs.gradients(y, v)[0]
    with fs.Session() as s:
        s.run(v.initializer)
        reads = [line for line in s.plan(g).text().splitlines() if "= ReadVariableOp(" in line]
        assert reads
        assert not any(line.startswith(" ") for line in reads)
        assert s.run(g) == 4 * 27


def test_reads_stay_where_values_may_change(graph):
    v = fs.get_variable("v", initializer=1.0, use_resource=True)

    def body(i, x):
        with fs.control_dependencies([v.assign_add(1.0)]):
            return i + 1, x + v.read_value()

    y = fs.while_loop(lambda i, x: i < 3, body, [0, 0.0])[1]
    waiting = fs.while_loop(lambda i: v.read_value() > fs.cast(i, fs.float32), lambda i: i + 1, [0])
    with fs.Session() as s:
        s.run(v.initializer)
        assert s.run(y) == 2 + 3 + 4
        text = s.plan(waiting).text()
        assert all(
            line.startswith(" ") for line in text.splitlines() if "= ReadVariableOp(" in line
        )
        assert s.run(waiting) == 4


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
@pytest.mark.parametrize("is_loop", [True, False])
def test_columns_that_nobody_uses_are_not_computed(graph, mode, is_loop):
    """The gradient multiplies by those rows of w that the state meets."""
    x, w, loss = network(dtype=fs.float64)
    feeds = values(x, w, 6)
    if not is_loop:
        x = fs.placeholder(fs.float64, [6, 4, 96])
        w = fs.placeholder(fs.float64, [160, 64])
        loss = unrolled(x, w, 6)
    feeds = dict(zip((x, w), feeds.values(), strict=True))
    both = fs.gradients(loss, [w, x])
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        lines = s.plan(both[0], [x, w]).text().splitlines()
        (part,) = (line for line in lines if "= Part(" in line)
        assert not part.startswith(" ")
        assert "float64[64,64]" in part
        assert "Split(" not in "".join(lines)
        got = s.run(both[0], feeds)
        lines = s.plan(both, [x, w]).text().splitlines()
        assert not any("= Part(" in line and "float64[64,64]" in line for line in lines)
        np.testing.assert_allclose(got, s.run(both, feeds)[0], rtol=1e-12)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("used", [0, 1, 2])
def test_any_part_of_a_product_may_be_used(sess, transposed, used):
    a, b = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 9))
    x = fs.placeholder(fs.float64, [3, 4])
    product = fs.matmul(x, b.T.copy() if transposed else b, transpose_b=transposed)
    y = fs.split(product, [2, 3, 4], axis=1)[used]
    assert "float64[3,9]" not in sess.plan(y, [x]).text()
    start = (0, 2, 5)[used]
    np.testing.assert_allclose(sess.run(y, {x: a}), (a @ b)[:, start : start + 2 + used])


def test_a_product_that_is_used_as_a_whole_stays(sess):
    a = fs.placeholder(fs.float64, [3, 4])
    product = fs.matmul(a, np.ones((4, 6)))
    left = fs.split(product, 2, axis=1)[0]
    for fetch in ([left, product], [left, fs.split(product, 3, axis=1)[1]]):
        assert "= Part(" not in sess.plan(fetch, [a]).text()
    with fs.control_dependencies([left.op]):
        after = fs.identity(a)
    assert "= Part(" not in sess.plan([after, left], [a]).text()
    assert "= Part(" not in sess.plan(fs.split(product, 3, axis=0)[0], [a]).text()


def test_a_product_beside_the_split_of_a_vector_stays(sess):
    v, m = fs.placeholder(fs.float32, [6]), fs.placeholder(fs.float32, [2, 2])
    first = fs.split(v * 2.0, 2)[0]
    got = sess.run([first, fs.matmul(m, m)], {v: np.arange(6), m: np.eye(2)})
    np.testing.assert_array_equal(got[0], [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(got[1], np.eye(2))
