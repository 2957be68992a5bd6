"""Lookups in loops, branches and functions: their gradients are slices, and train as such."""

import json
import time

import embedding_programs as programs
import numpy as np
import pytest

import flowscope as fs

TABLES = json.loads(programs.FILE.read_text())
MODES = ["compiled", "op", "tokens"]


@pytest.fixture(params=MODES)
def config(request):
    return fs.ConfigProto(mode=request.param)


@pytest.mark.parametrize("key", TABLES)
def test_tables_are_trained_as_by_tensorflow(key):
    program, optimizer = key.split("/")
    got, kind = programs.trained(fs, program, optimizer)
    assert kind == "IndexedSlices"
    np.testing.assert_allclose(got, TABLES[key], rtol=2e-5, atol=2e-6)
    if optimizer in ("Momentum", "RMSProp", "Ftrl"):
        np.testing.assert_allclose(got[[2, 4]], np.array(programs.START)[[2, 4]], rtol=1e-6)


@pytest.mark.parametrize("program", ["loop", "branch", "nest"])
def test_they_train_alike_in_all_modes(config, program):
    got, _ = programs.trained(fs, program, "Momentum", config=config)
    np.testing.assert_allclose(got, TABLES[program + "/Momentum"], rtol=2e-5)


# -- which gradients are slices -------------------------------------------------------------------


def table(rows=4):
    return fs.Variable(np.arange(2.0 * rows).reshape(rows, 2), dtype=fs.float32)


def squares(v, ids):
    return fs.reduce_sum(fs.square(fs.gather(v, ids)))


def dense(g, sess, feed=None):
    """The values of slices, dense; what is asked for is in the graph already."""
    assert isinstance(g, fs.IndexedSlices)
    return sess.run(fs.convert_to_tensor(g), feed)


def test_a_function_returns_slices_of_what_it_captures_and_takes(graph, config):
    v, ids = table(), fs.constant([1, 1])

    @fs.function
    def captured(i):
        return squares(v, i)

    @fs.function
    def taken(x, i):
        return squares(x, i)

    x = fs.placeholder(fs.float32, [None, 2])
    gs = [fs.gradients(captured(ids), v)[0], fs.gradients(taken(x, ids), x)[0]]
    with fs.Session(config=config) as sess:
        sess.run(v.initializer)
        rows = np.arange(6.0).reshape(3, 2)
        for g, n in zip(gs, (4, 3), strict=True):
            want = np.zeros((n, 2))
            want[1] = [8, 12]
            np.testing.assert_array_equal(dense(g, sess, {x: rows}), want)


def test_a_branch_without_lookups_gives_no_slices(graph, config):
    v, p = table(), fs.placeholder(fs.bool, [])
    y = fs.cond(p, lambda: squares(v, [1, 3]), lambda: fs.constant(0.0))
    (g,) = fs.gradients(y, v)
    with fs.Session(config=config) as sess:
        sess.run(v.initializer)
        assert sess.run(g, {p: True}).indices.tolist() == [1, 3]
        none = sess.run(g, {p: False})
        assert none.values.shape == (0, 2) and none.indices.shape == (0,)


def test_a_branch_of_unknown_width_gives_no_slices_of_that_width(graph, config):
    x, p = fs.placeholder(fs.float32, [None, None]), fs.placeholder(fs.bool, [])
    (g,) = fs.gradients(fs.cond(p, lambda: squares(x, [1]), lambda: fs.constant(0.0)), x)
    with fs.Session(config=config) as sess:
        feed = {x: np.ones((2, 3)), p: False}
        assert sess.run(g, feed).values.shape == (0, 3)
        assert sess.run(fs.convert_to_tensor(g), feed).tolist() == [[0] * 3] * 2


def test_branches_with_indices_of_two_dtypes_agree_on_int64(graph, config):
    v, p = table(), fs.placeholder(fs.bool, [])
    wide = fs.constant([2], fs.int64)
    (g,) = fs.gradients(fs.cond(p, lambda: squares(v, [1]), lambda: squares(v, wide)), v)
    assert g.indices.dtype == fs.int64
    with fs.Session(config=config) as sess:
        sess.run(v.initializer)
        assert [sess.run(g.indices, {p: b}).tolist() for b in (True, False)] == [[1], [2]]


def test_a_branch_that_uses_the_whole_table_makes_the_gradient_dense(graph, config):
    v, p = table(), fs.placeholder(fs.bool, [])
    y = fs.cond(p, lambda: squares(v, [1]), lambda: fs.reduce_sum(v))
    (g,) = fs.gradients(y, v)
    assert isinstance(g, fs.Tensor)
    with fs.Session(config=config) as sess:
        sess.run(v.initializer)
        assert sess.run(g, {p: True}).tolist() == [[0, 0], [4, 6], [0, 0], [0, 0]]
        assert sess.run(g, {p: False}).tolist() == [[1, 1]] * 4


def test_a_loop_that_looks_up_and_uses_the_whole_table_has_a_dense_gradient(graph, config):
    v = table()

    def body(i, s):
        return i + 1, s + squares(v, [i]) + fs.reduce_sum(v)

    (g,) = fs.gradients(fs.while_loop(lambda i, s: i < 2, body, [0, 0.0])[1], v)
    assert isinstance(g, fs.Tensor)
    with fs.Session(config=config) as sess:
        sess.run(v.initializer)
        assert sess.run(g).tolist() == [[2, 4], [6, 8], [2, 2], [2, 2]]


def test_a_loop_of_no_iterations_gives_no_slices(graph, config):
    v, n = table(), fs.placeholder(fs.int32, [])
    y = fs.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + squares(v, [i])), [0, 0.0])[1]
    (g,) = fs.gradients(y, v)
    with fs.Session(config=config) as sess:
        sess.run(v.initializer)
        assert sess.run(g, {n: 0}).values.shape == (0, 2)
        assert sorted(sess.run(g, {n: 3}).indices.tolist()) == [0, 1, 2]


def test_several_tables_and_dense_captures_in_one_loop(graph, config):
    a, b, w = table(), table(3), fs.Variable([2.0, 3.0])

    def body(i, s):
        rows = fs.gather(a, [i, i]) * w + fs.gather(b, [0, 2])
        return i + 1, s * 0.5 + fs.reduce_sum(rows)

    y = fs.while_loop(lambda i, s: i < 2, body, [0, 1.0])[1]
    ga, gb, gw = fs.gradients(y, [a, b, w])
    assert isinstance(gw, fs.Tensor)
    with fs.Session(config=config) as sess:
        sess.run(fs.global_variables_initializer())
        assert dense(ga, sess).tolist() == [[2, 3], [4, 6], [0, 0], [0, 0]]
        assert dense(gb, sess).tolist() == [[1.5, 1.5], [0, 0], [1.5, 1.5]]
        assert sess.run(gw).tolist() == [4, 7]


def test_slices_of_slices_add_up_in_nested_loops(graph, config):
    v = table()

    def inner(k):
        return fs.while_loop(
            lambda i, s: i < k, lambda i, s: (i + 1, s + squares(v, [i])), [0, 0.0]
        )[1]

    y = fs.while_loop(lambda k, s: k < 3, lambda k, s: (k + 1, s + inner(k)), [0, 0.0])[1]
    (g,) = fs.gradients(y, v)
    with fs.Session(config=config) as sess:
        sess.run(v.initializer)
        assert dense(g, sess).tolist() == [[0, 4], [4, 6], [0, 0], [0, 0]]


@pytest.mark.parametrize("kind", ["loop", "branch", "function", "recomputed"])
def test_second_derivatives_lead_through_slices(graph, config, kind):
    v = fs.Variable([[1.0], [2.0], [3.0]])

    def cubes(ids):
        return fs.reduce_sum(fs.gather(v, ids) ** 3)

    if kind == "branch":
        y = fs.cond(fs.constant(True), lambda: cubes([1, 1, 0]), lambda: fs.constant(0.0))
    elif kind == "function":
        y = fs.function(cubes)(fs.constant([1, 1, 0]))
    else:
        ids = fs.constant([1, 1, 0])
        y = fs.while_loop(
            lambda i, s: i < 3,
            lambda i, s: (i + 1, s + cubes(ids[i])),
            [0, 0.0],
            recompute=kind == "recomputed",
        )[1]
    (g,) = fs.gradients(y, v)
    (h,) = fs.gradients(fs.reduce_sum(fs.square(fs.convert_to_tensor(g))), v)
    (t,) = fs.gradients(fs.reduce_sum(fs.convert_to_tensor(h)), v)
    with fs.Session(config=config) as sess:
        sess.run(v.initializer)
        # dy/dv = 3 n v^2; z = 9 n^2 v^4; dz = 36 n^2 v^3; ddz = 108 n^2 v^2
        got = [fs.convert_to_tensor(x) for x in (g, h, t)]
        n, x = np.array([[1], [2], [0]]), np.array([[1.0], [2], [3]])
        want = [3 * n * x**2, 36 * n**2 * x**3, 108 * n**2 * x**2]
        for a, b in zip(sess.run(got), want, strict=True):
            np.testing.assert_allclose(a, b)


def test_gather_nd_of_rows_gives_slices(graph, config):
    v = table()
    (rows,) = fs.gradients(fs.reduce_sum(fs.gather_nd(v, [[0], [3], [0]])), v)
    (elements,) = fs.gradients(fs.reduce_sum(fs.gather_nd(v, [[0, 1]])), v)
    (many,) = fs.gradients(fs.reduce_sum(fs.gather_nd(v, [[[0]], [[3]]])), v)
    assert isinstance(elements, fs.Tensor) and isinstance(many, fs.Tensor)
    with fs.Session(config=config) as sess:
        sess.run(v.initializer)
        assert dense(rows, sess).tolist() == [[2, 2], [0, 0], [0, 0], [1, 1]]
        assert sess.run(many).tolist() == [[1, 1], [0, 0], [0, 0], [1, 1]]


def test_hand_made_loops_give_slices_too(graph, config):
    v, raw = table(), fs.raw_ops
    n = raw.Enter(data=fs.constant(3), frame_name="f", is_constant=True)
    handle = raw.Enter(data=v.value(), frame_name="f", is_constant=True)
    i0 = raw.Enter(data=fs.constant(0), frame_name="f")
    s0 = raw.Enter(data=fs.constant(0.0), frame_name="f")
    i, _ = raw.Merge(inputs=[i0, i0])
    s, _ = raw.Merge(inputs=[s0, s0])
    go = raw.LoopCond(input=fs.less(i, n))
    i_out, i_in = raw.Switch(data=i, pred=go)
    s_out, s_in = raw.Switch(data=s, pred=go)
    i.op._update_input(1, raw.NextIteration(data=i_in + 1))
    s.op._update_input(1, raw.NextIteration(data=s_in + squares(handle, [0])))
    raw.Exit(data=i_out)
    (g,) = fs.gradients(raw.Exit(data=s_out), v)
    with fs.Session(config=config) as sess:
        sess.run(v.initializer)
        assert dense(g, sess).tolist() == [[0, 6], [0, 0], [0, 0], [0, 0]]


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["Momentum", "RMSProp", "Ftrl"])
def test_a_step_costs_what_is_looked_up_however_large_the_table_is(optimizer):
    def seconds(rows):
        with fs.Graph().as_default():
            v = fs.get_variable("v", [rows, 8], initializer=fs.zeros_initializer())
            ids = fs.placeholder(fs.int32, [16, 32])
            y = fs.while_loop(
                lambda i, s: i < 16, lambda i, s: (i + 1, s + squares(v, ids[i])), [0, 0.0]
            )[1]
            step = programs.optimizers(fs)[optimizer].minimize(y)
            with fs.Session() as sess:
                sess.run(fs.global_variables_initializer())
                feed = {ids: np.random.default_rng(0).integers(0, rows, (16, 32))}
                times = []
                for _ in range(60):
                    start = time.thread_time()
                    sess.run(step, feed)
                    times.append(time.thread_time() - start)
        return min(times)

    # A dense gradient takes some 100 times as long.
    assert seconds(1_000_000) < 3 * seconds(10_000)
