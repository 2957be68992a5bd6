"""Gradients of loops and branches, of every order, against plain Python and numeric differences."""

import tracemalloc

import numpy as np
import pytest

import flowscope as fs


def power_loop(w, n, x0=1.0):
    return fs.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * w), [0, x0])[1]


def test_derivatives_of_a_power(sess):
    w, n = fs.placeholder(fs.float64, []), fs.placeholder(fs.int32, [])
    ys = [power_loop(w, n, fs.constant(1.0, fs.float64))]
    for _ in range(3):
        ys.append(fs.gradients(ys[-1], w)[0])
    assert sess.run(ys, {w: 2.0, n: 5}) == [32, 80, 160, 240]
    assert sess.run(ys, {w: 2.0, n: 0}) == [1, 0, 0, 0]
    assert sess.run(ys, {w: 2.0, n: 1}) == [2, 1, 0, 0]


def numeric(sess, y, x, feeds, eps=1e-6):
    at = np.array(feeds[x], np.float64)
    found = np.zeros_like(at)
    for i in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[i] += eps
        down[i] -= eps
        found[i] = (sess.run(y, {**feeds, x: up}) - sess.run(y, {**feeds, x: down})) / (2 * eps)
    return found


def check(sess, loss, xs, feeds, rtol=1e-5):
    """First and second order against differences of the order below."""
    first = fs.gradients(loss, xs)
    directional = fs.add_n([fs.reduce_sum(g * fs.cos(x)) for g, x in zip(first, xs, strict=True)])
    second = fs.gradients(directional, xs)
    for got, x in zip(sess.run(first, feeds), xs, strict=True):
        np.testing.assert_allclose(got, numeric(sess, loss, x, feeds), rtol=rtol, atol=1e-6)
    for got, x in zip(sess.run(second, feeds), xs, strict=True):
        np.testing.assert_allclose(got, numeric(sess, directional, x, feeds), rtol=rtol, atol=1e-5)


def test_a_recurrent_network(sess):
    x, w = fs.placeholder(fs.float64, [None, 3]), fs.placeholder(fs.float64, [3, 3])
    b = fs.placeholder(fs.float64, [3])

    def body(i, h, total):
        h = fs.tanh(fs.matmul(h, w) + b)
        return i + 1, h, total + fs.reduce_sum(h * h)

    zero = fs.constant(0.0, fs.float64)
    loss = fs.while_loop(lambda i, h, t: i < 4, body, [0, x, zero])[2]
    rng = np.random.default_rng(0)
    feeds = {x: rng.normal(size=(2, 3)), w: rng.normal(size=(3, 3)) * 0.5, b: rng.normal(size=3)}
    check(sess, loss, [x, w, b], feeds)


def test_a_variable_from_outside_and_shapes_that_change(sess):
    w = fs.placeholder(fs.float64, [])
    x = fs.placeholder(fs.float64, [None])

    def body(i, y):
        return i + 1, fs.concat([y * w, fs.sin(y[:1])], 0)

    y = fs.while_loop(lambda i, y: i < 3, body, [0, x])[1]
    assert y.shape.as_list() == [None]
    check(sess, fs.reduce_sum(y * y), [w, x], {w: 0.7, x: np.array([0.3, -0.4])})


def test_nested_loops_and_conds(sess):
    w, x = fs.placeholder(fs.float64, []), fs.placeholder(fs.float64, [])

    def outer(i, y):
        def inner(j, z):
            return j + 1, fs.cond(z > 0.0, lambda: fs.sin(z * w) + y, lambda: z * z - w)

        z = fs.while_loop(lambda j, z: j < i, inner, [0, y * x])[1]
        return i + 1, fs.cond(i > 2, lambda: z * 0.5 + w, lambda: z - y * w)

    y = fs.while_loop(lambda i, y: i < 5, outer, [0, x])[1]
    check(sess, y, [w, x], {w: 0.8, x: 0.6}, rtol=1e-4)


def test_a_loop_in_a_cond(sess):
    p = fs.placeholder(fs.bool, [])
    w = fs.placeholder(fs.float64, [])
    y = fs.cond(p, lambda: power_loop(w, 3, fs.constant(1.0, fs.float64)), lambda: fs.exp(w))
    g = fs.gradients(y, w)[0]
    h = fs.gradients(g, w)[0]
    assert sess.run([y, g, h], {p: True, w: 2.0}) == [8, 12, 12]
    np.testing.assert_allclose(sess.run([y, g, h], {p: False, w: 2.0}), [np.exp(2)] * 3)


def test_a_loop_in_a_function_and_a_function_in_a_loop(sess):
    square = fs.function(lambda x: x * x, name="square")

    @fs.function
    def f(w):
        return fs.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, square(x) * w), [0, w])[1]

    w = fs.placeholder(fs.float64, [])
    y = f(w) + f(w * 1.0)
    g = fs.gradients(y, w)[0]
    h = fs.gradients(g, w)[0]
    np.testing.assert_allclose(sess.run([y, g, h], {w: 1.5}), [
        2 * 1.5**7, 14 * 1.5**6, 84 * 1.5**5
    ])  # fmt: skip


def test_gradients_inside_a_body(sess):
    w = fs.Variable(3.0)
    scale = w * 2.0

    def body(i, x):
        loss = fs.square(x - w) + scale * x
        gx, gw = fs.gradients(loss, [x, w])
        return i + 1, x - 0.1 * gx + 0.0 * gw, gw

    def wrapped(i, x, _):
        return body(i, x)

    _, x, gw = fs.while_loop(lambda i, x, g: i < 3, wrapped, [0, 1.0, 0.0])
    sess.run(w.initializer)
    at, g = 1.0, 0.0
    for _ in range(3):
        g = -2 * (at - 3) + 2 * at
        at -= 0.1 * (2 * (at - 3) + 6)
    np.testing.assert_allclose(sess.run([x, gw]), [at, g], rtol=1e-5)


def test_variables_and_slices_of_them(sess):
    table = fs.Variable(np.arange(6.0).reshape(3, 2))
    n = fs.placeholder(fs.int32, [])

    def body(i, total):
        return i + 1, total + fs.reduce_sum(fs.square(fs.gather(table, i % 3)))

    y = fs.while_loop(lambda i, t: i < n, body, [0, fs.constant(0.0, fs.float64)])[1]
    (g,) = fs.gradients(y, table)
    assert isinstance(g, fs.IndexedSlices)
    sess.run(table.initializer)
    g = fs.convert_to_tensor(g)
    np.testing.assert_allclose(sess.run(g, {n: 4}), [[0, 4], [4, 6], [8, 10]])


def test_variables_that_do_not_matter_have_no_gradient(sess):
    x, y = fs.placeholder(fs.float32, []), fs.placeholder(fs.float32, [])
    a, b = fs.while_loop(lambda a, b: a < 10.0, lambda a, b: (a * 2.0, b + y), [x, y])
    assert fs.gradients(a, [x, y])[1] is None
    assert sess.run(fs.gradients(b, y)[0], {x: 1.0, y: 1.0}) == 5


def test_a_variable_that_another_one_depends_on_has_a_gradient_of_zeros(sess):
    """As in TensorFlow, where the path leads through what has no derivative."""
    x, y, w = (fs.constant(v) for v in (3.0, 2.0, 1.0))
    r, _ = fs.while_loop(
        lambda x, y: x < 100.0, lambda x, y: (x * x + fs.stop_gradient(y), y + w), [x, y]
    )
    assert sess.run(fs.gradients(r, [y, w])) == [0, 0]
    s = fs.while_loop(lambda x: x < 100.0, lambda x: x * x + fs.stop_gradient(y), [x])
    assert fs.gradients(s, y) == [None]


def test_back_prop_false_stops_gradients(graph):
    w = fs.placeholder(fs.float32, [])
    y = fs.while_loop(lambda x: x < 10.0, lambda x: x * w, [w], back_prop=False)
    assert fs.gradients(y, w) == [None]


def test_zero_iterations(sess):
    x, w = fs.placeholder(fs.float32, [2]), fs.placeholder(fs.float32, [2])
    y = fs.while_loop(lambda i, x: i < 0, lambda i, x: (i + 1, x * w), [0, x])[1]
    gx, gw = fs.gradients(y, [x, w])
    assert [v.tolist() for v in sess.run([gx, gw], {x: [1, 2], w: [3, 4]})] == [[1, 1], [0, 0]]


def test_maximum_iterations_bound_the_gradient(sess):
    w = fs.placeholder(fs.float32, [])
    y = fs.while_loop(lambda x: fs.constant(True), lambda x: x * w, [1.0], maximum_iterations=4)
    assert sess.run(fs.gradients(y, w)[0], {w: 2.0}) == 32


def test_recomputed_draws_are_the_same(sess):
    x = fs.placeholder(fs.float64, [8])

    def body(i, y):
        mask = fs.cast(fs.random_uniform([8]) < 0.5, fs.float64)
        return i + 1, y * (1.0 + mask)

    y = fs.while_loop(lambda i, y: i < 3, body, [0, x])[1]
    value, g = sess.run([y, fs.gradients(y, x)[0]], {x: np.ones(8)})
    np.testing.assert_array_equal(value, g)


def test_only_shapes_are_kept_where_only_shapes_matter(graph):
    x = fs.placeholder(fs.float32, [None, 1000])
    b = fs.placeholder(fs.float32, [None, 1])
    y = fs.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + b), [0, x])[1]
    g = fs.gradients(y, b)[0]
    with fs.Session() as s:
        lines = s.plan(g, [x, b]).text().splitlines()
        kept = next(line for line in lines if line.startswith("  body")).partition("->")[2]
        assert kept.count(",") == 2, "the variables, and one shape"
        assert "Shape)" in kept
        assert s.run(g, {x: np.ones((2, 1000)), b: np.ones((2, 1))}).tolist() == [[3000], [3000]]


def test_plans_without_gradients_keep_nothing(graph):
    w, n = fs.placeholder(fs.float32, []), fs.placeholder(fs.int32, [])
    y = power_loop(w, n)
    with fs.Session() as s:
        before = s.plan(y, [w, n]).text("code")
        fs.gradients(fs.gradients(y, w)[0], w)
        s.run(y, {w: 1.0, n: 1})
        assert s.plan([y], [w, n]).text("code").count("\n") == before.count("\n")


@pytest.mark.memory
@pytest.mark.parametrize("mode", ["compiled", "op"])
def test_the_memory_of_a_gradient_is_what_it_keeps(graph, mode):
    w = fs.placeholder(fs.float64, [10_000])
    n = fs.placeholder(fs.int32, [])
    g = fs.gradients(power_loop(w, n, fs.ones([10_000], fs.float64)), w)[0]
    value = np.ones(10_000)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        peaks = []
        s.run(g, {w: value, n: 3})
        for count in (50, 250):
            tracemalloc.start()
            s.run(g, {w: value, n: count})
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    kept = 200 * value.nbytes
    assert abs(peaks[1] - peaks[0] - kept) < 0.1 * kept


def test_written_forms_keep_branches_loops_and_gradients(graph):
    w, n = fs.placeholder(fs.float64, [], name="w"), fs.placeholder(fs.int32, [], name="n")

    def body(i, x):
        return i + 1, fs.cond(i > 1, lambda: fs.sin(x * w), lambda: x + w)

    y = fs.while_loop(lambda i, x: i < n, body, [0, w], maximum_iterations=7)[1]
    g = fs.gradients(y, w)[0]
    h = fs.gradients(g, w)[0]
    names = [t.name for t in (y, g, h)]
    with fs.Session() as s:
        want = s.run([y, g, h], {w: 0.7, n: 5})
    definition = graph.as_graph_def()
    for read in (
        fs.GraphDef.from_json(definition.to_json()),
        fs.GraphDef.from_text(definition.text()),
    ):
        with fs.Graph().as_default(), fs.Session() as s:
            found = fs.import_graph_def(read, return_elements=[*names, "w:0"], name="")
            assert s.run(found[:3], {"w:0": 0.7, "n:0": 5}) == want
            again = fs.gradients(found[1], found[3])[0]
            assert s.run(again, {"w:0": 0.7, "n:0": 5}) == want[2]
