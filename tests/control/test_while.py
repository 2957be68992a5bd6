"""Loops: variables, shapes, structures, effects, random draws, stops, errors, memory."""

import threading

import numpy as np
import pytest
from late_steps import late

import flowscope as fs


def test_a_loop(sess):
    n = fs.placeholder(fs.int32, [])
    i, x = fs.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 2.0), [0, 1.0])
    assert sess.run([i, x], {n: 5}) == [5, 32]
    assert sess.run([i, x], {n: 0}) == [0, 1], "no iteration: the values at the start"


def test_one_variable_comes_alone_unless_asked_otherwise(sess):
    assert sess.run(fs.while_loop(lambda i: i < 3, lambda i: i + 1, [0])) == 3
    assert sess.run(fs.while_loop(lambda i: i < 3, lambda i: [i + 1], (0,))) == 3
    same = fs.while_loop(lambda i: i < 3, lambda i: i + 1, [0], return_same_structure=True)
    assert sess.run(same) == [3]


def test_structures(sess):
    def body(i, pair):
        return i + 1, {"a": pair["a"] + pair["b"][0], "b": [pair["b"][0] * 2]}

    i, pair = fs.while_loop(lambda i, p: i < 4, body, [0, {"a": 0, "b": [1]}])
    assert sess.run([i, pair]) == [4, {"a": 15, "b": [16]}]


def test_the_functions_are_called_once(graph):
    calls = []

    def body(i):
        calls.append("body")
        return i + 1

    fs.while_loop(lambda i: calls.append("cond") or i < 3, body, [0])
    assert calls == ["cond", "body"]


def test_maximum_iterations(sess):
    n = fs.placeholder(fs.int32, [])
    i = fs.while_loop(lambda i: i < 10, lambda i: i + 1, [0], maximum_iterations=n)
    assert [sess.run(i, {n: k}) for k in (-1, 0, 4, 20)] == [0, 0, 4, 10]
    j = fs.while_loop(lambda j: fs.logical_and(j < 10, n > 0), lambda j: j + 1, [0],
                      maximum_iterations=3)  # fmt: skip
    assert [sess.run(j, {n: k}) for k in (0, 1)] == [0, 3]


def test_integers_wrap_as_arrays_do(sess):
    n = fs.placeholder(fs.int32, [])
    big = fs.placeholder(fs.int32, [])
    i, a, b, c = fs.while_loop(
        lambda i, a, b, c: i < n,
        lambda i, a, b, c: (i + 1, a + 7, b * 3, -c - 1),
        [0, big, big, big],
    )
    with np.errstate(all="ignore"):
        want = [np.int32(4), *[np.int32(2**31 - 2)] * 3]
        for _ in range(4):
            want[1] = want[1] + np.int32(7)
            want[2] = want[2] * np.int32(3)
            want[3] = -want[3] - np.int32(1)
    found = sess.run([i, a, b, c], {n: 4, big: 2**31 - 2})
    assert found == want
    assert all(type(v) is np.int32 for v in found)


def test_numbers_of_both_modes_are_the_same_to_the_bit(graph):
    x, n = fs.placeholder(fs.float64, []), fs.placeholder(fs.int64, [])

    def body(i, a, b, c):
        d = fs.maximum(a * 1.1 - b, b / 3.0)
        return i + 1, fs.minimum(d, a + b), b * -0.5 + x, fs.where(a > b, c + 1, c - i)

    y = fs.while_loop(lambda i, a, b, c: i < n, body, [fs.constant(0, fs.int64), x, 0.3 * x, n * n])
    found = []
    for mode in ("compiled", "op"):
        with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
            runs = [s.run(y, {x: v, n: 9}) for v in (0.7, -0.0, np.nan, np.inf, 1e308)]
            found.append([[(type(v), v.tobytes()) for v in r] for r in runs])
    assert found[0] == found[1]


def test_shapes_that_change_are_found_out(sess):
    n = fs.placeholder(fs.int32, [])
    _, x = fs.while_loop(
        lambda i, x: i < n, lambda i, x: (i + 1, fs.concat([x, [1.0]], 0)), [0, fs.zeros([2])]
    )
    assert x.shape.as_list() == [None]
    assert sess.run(x, {n: 3}).tolist() == [0, 0, 1, 1, 1]
    names = [op.name for op in sess.graph.get_operations()]
    assert len(names) == len(set(names))
    assert len(sess.graph.functions) == 2, "the first, narrow try is gone"


def test_no_invariant_is_the_shape_at_the_start(graph):
    x = fs.ones([2, 2])

    def loop(body):
        return fs.while_loop(
            lambda i, _: i < 2, lambda i, x: (i + 1, body(x)), [0, x], shape_invariants=[[], None]
        )[1]

    assert loop(lambda x: x * 2.0).shape == [2, 2]
    with pytest.raises(ValueError, match=r"shape invariant \[2,2\]"):
        loop(lambda x: fs.concat([x, x], 0))


def test_a_sparse_tensor_fits_its_invariant(graph):
    x = fs.SparseTensor([[0], [3]], [2.0, 4.0], [10])
    with pytest.raises(ValueError, match=r"shape \[10\] .* shape invariant is \[5\]"):
        fs.while_loop(
            lambda i, _: i < 9, lambda i, x: (i + 1, x), [0, x], [[], fs.TensorShape([5])]
        )


def test_shape_invariants(graph):
    x = fs.zeros([2, 3])
    y = fs.while_loop(
        lambda x: fs.shape(x)[0] < 8,
        lambda x: fs.concat([x, x], 0),
        [x],
        shape_invariants=[fs.TensorShape([None, 3])],
    )
    assert y.shape.as_list() == [None, 3]
    with pytest.raises(ValueError, match=r"its shape invariant is \[2,4\]"):
        fs.while_loop(lambda x: True, lambda x: x, [x], [fs.TensorShape([2, 4])])
    with pytest.raises(ValueError, match=r'variable x \("zeros:0"\) has the shape invariant'):
        fs.while_loop(lambda x: fs.constant(True), lambda x: fs.concat([x, x], 0), [x], [x.shape])
    with pytest.raises(ValueError, match="in the structure of loop_vars"):
        fs.while_loop(lambda x: fs.constant(True), lambda x: x, [x], [x.shape, x.shape])


@pytest.mark.parametrize(
    ("cond", "body", "variables", "error", "match"),
    [
        (lambda i: i < 3, lambda i: i + 1, [], ValueError, "one loop variable at least"),
        (lambda i: i < 3, lambda i: fs.cast(i, fs.float32), [0], TypeError, "its dtype must stay"),
        (lambda i: i < 3, lambda i: (i, i), [0], ValueError, "structure of loop_vars, with 1"),
        (lambda i: i, lambda i: i + 1, [0], TypeError, "cond must return a bool scalar"),
        (3, lambda i: i + 1, [0], TypeError, "expected functions as cond and body"),
        (lambda i: i < 3, lambda i: i + 1, 0, TypeError, "list or tuple of loop_vars"),
        (lambda i: i < 3, lambda i: None, [0], ValueError, "body returned None"),
    ],
)
def test_what_does_not_fit_is_refused(graph, cond, body, variables, error, match):
    with pytest.raises(error, match=match):
        fs.while_loop(cond, body, variables)
    assert graph.functions == {}


@pytest.mark.parametrize("k", [0, -1])
def test_parallel_iterations_below_one_are_refused(graph, k):
    with pytest.raises(TypeError, match="integer of 1 at least as parallel_iterations"):
        fs.while_loop(lambda i: i < 3, lambda i: i + 1, [0], parallel_iterations=k)


def test_tensors_and_variables_from_outside(sess):
    n, v = fs.placeholder(fs.int32, []), fs.Variable(2.0)
    c = fs.placeholder(fs.float32, [])
    _, x = fs.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * v + c), [0, 1.0])
    sess.run(v.initializer)
    assert sess.run(x, {n: 3, c: 1.0}) == 15
    assert sess.run(x, {n: 3, c: 1.0, v: 1.0}) == 4


def test_effects_in_a_body_run_in_program_order_in_each_iteration(sess):
    v = fs.Variable(1.0)

    def body(i):
        v.assign(v * 2.0)
        v.assign_add(1.0)
        return i + 1

    before = v.read_value()
    i = fs.while_loop(lambda i: i < 3, body, [0])
    after = v.read_value()
    sess.run(v.initializer)
    assert sess.run([before, i, after]) == [1, 3, 15]


def test_a_condition_may_read_what_the_body_writes(sess):
    v = fs.Variable(0)
    i = fs.while_loop(lambda i: v.read_value() < 5, lambda i: i + v.assign_add(1), [0])
    sess.run(v.initializer)
    assert sess.run([i, v]) == [15, 0]
    assert sess.run(v) == 5


def test_nested_loops(sess):
    n = fs.placeholder(fs.int32, [])

    def outer(i, s):
        _, s = fs.while_loop(lambda j, s: j < i, lambda j, s: (j + 1, s + i * j), [0, s])
        return i + 1, s

    s = fs.while_loop(lambda i, s: i < n, outer, [0, 0])[1]
    assert sess.run(s, {n: 6}) == sum(i * j for i in range(6) for j in range(i))


def test_variables_that_nothing_reads_are_not_computed(sess):
    n = fs.placeholder(fs.int32, [])
    out = fs.while_loop(
        lambda i, x, y: i < n, lambda i, x, y: (i + 1, fs.exp(y), fs.sin(x)), [0, 1.0, 1.0]
    )
    text = sess.plan(out[0], [n]).text()
    assert "Exp(" not in text and "Sin(" not in text
    assert sess.run(out[0], {n: 3}) == 3


def test_each_iteration_draws_anew_and_both_modes_draw_alike(graph):
    fs.set_random_seed(3)

    def outer(i, x):
        noise = fs.while_loop(
            lambda j, y: j < 2,
            lambda j, y: (j + 1, fs.concat([y, fs.random_uniform([1])], 0)),
            [0, fs.zeros([0])],
        )[1]
        return i + 1, fs.concat([x, noise], 0)

    x = fs.while_loop(lambda i, x: i < 3, outer, [0, fs.zeros([0])])[1]
    drawn = []
    for mode in ("compiled", "op"):
        with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
            drawn.append(s.run(x))
    assert drawn[0].tobytes() == drawn[1].tobytes()
    assert len(set(drawn[0].tolist())) == 6


def test_a_tensor_of_a_body_stays_there(sess):
    kept = []
    fs.while_loop(lambda i: i < 3, lambda i: kept.append(i * 2) or i + 1, [0])
    with pytest.raises(fs.errors.GraphError, match="stands inside the body of a while_loop"):
        fs.exp(fs.cast(kept[0], fs.float32))
    with pytest.raises(ValueError, match="cannot be fetched"):
        sess.run(kept[0])
    with pytest.raises(ValueError, match="cannot be fed"):
        sess.run(fs.constant(1), {kept[0]: 1})


def test_an_error_in_a_body_names_the_operation_and_the_line(sess):
    x = fs.while_loop(
        lambda x: fs.size(x) < 9, lambda x: fs.reshape(fs.concat([x, x], 0), [2]), [fs.zeros([1])]
    )
    with pytest.raises(fs.errors.InvalidArgumentError) as e:
        sess.run(x)
    assert "while/body/Reshape" in str(e.value)
    assert "lambda x: fs.reshape" in str(e.value)


def test_a_long_loop_is_stopped_and_paused(sess):
    n = fs.placeholder(fs.int64, [])
    i = fs.while_loop(lambda i: i < n, lambda i: i + 1, [fs.constant(0, fs.int64)])
    sess.run(i, {n: 1})
    failures = []

    def run():
        try:
            sess.run(i, {n: 10**15})
        except fs.errors.CancelledError as e:
            failures.append(e)

    thread = threading.Thread(target=run)
    sess.pause()
    thread.start()
    assert sess.gate.wait_until_held(10)
    sess.resume()
    sess.pause()
    assert sess.gate.wait_until_held(10)
    sess.stop()
    thread.join(10)
    assert len(failures) == 1


def test_a_loop_has_a_deadline(sess):
    i = fs.while_loop(lambda i: i >= 0, lambda i: fs.minimum(i + 1, 7), [0])
    late(sess, i)


def test_an_update_in_a_body_is_done_or_not(graph):
    w = fs.Variable(1.0)
    b = fs.Variable(2.0)
    train = fs.train.MomentumOptimizer(0.1, 0.9)

    def body(i):
        with fs.control_dependencies([train.minimize(fs.square(w * b - 1.0))]):
            return i + 1

    i = fs.while_loop(lambda i: i < 20, body, [0])
    with fs.Session() as s:
        s.run(fs.global_variables_initializer())
        assert s.run(i) == 20
        assert abs(s.run(w * b) - 1.0) < 0.3
        text = s.plan(i).text("code")
    assert text.count("gate.raised") == 1, "only between iterations"


def test_the_plan_shows_blocks(graph):
    n = fs.placeholder(fs.int32, [], name="n")
    i = fs.while_loop(lambda i: i < n, lambda i: i + 1, [0], name="loop")
    with fs.Session() as s:
        lines = s.plan(i, [n]).text().splitlines()
        code = s.plan(i, [n]).text("code")
    assert "  cond(i) -> (loop/cond/Less):" in lines
    assert "  body(i) -> (loop/body/add):" in lines
    assert "    while s0 < s1:\n        s0 = s0 + 1\n" in code


def test_sums_are_added_up_in_place(graph):
    n, x = fs.placeholder(fs.int32, []), fs.placeholder(fs.float32, [64, 64])

    def body(i, total, last):
        return i + 1, total + fs.matmul(x, x), total

    start = fs.zeros([64, 64])
    _, total, _ = fs.while_loop(lambda i, *_: i < n, body, [0, start, start])
    _, both, last = fs.while_loop(lambda i, *_: i < n, body, [0, start, start])
    value = np.random.default_rng(0).normal(size=(64, 64)).astype("f")
    found = []
    for mode in ("compiled", "op"):
        with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
            for _ in range(2):
                got = s.run([total, both, last, start], {n: 5, x: value})
                found.append([v.tobytes() for v in got])
            if mode == "compiled":
                assert "out=" in s.plan(total, [n, x]).text("code")
                assert "out=" not in s.plan([both, last], [n, x]).text("code")
    assert all(f == found[0] for f in found)


@pytest.mark.memory
def test_a_loop_runs_in_constant_memory(graph):
    import tracemalloc

    n = fs.placeholder(fs.int32, [])
    y = fs.while_loop(
        lambda i, x: i < n, lambda i, x: (i + 1, x * 0.5 + 1.0), [0, fs.zeros([1000])]
    )
    with fs.Session() as s:
        s.run(y, {n: 10})
        tracemalloc.start()
        s.run(y, {n: 2000})
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 40_000


def test_a_counter_counts_the_iterations_too(graph):
    """A loop whose variable is the number of its iterations needs no other, where nobody asks."""
    n = fs.placeholder(fs.int32, [], name="n")
    cond = lambda i, x: i < n  # noqa: E731
    plain = fs.while_loop(cond, lambda i, x: (i + 1, x + 2), [0, 0])[1]
    others = {
        "starts elsewhere": fs.while_loop(cond, lambda i, x: (i + 1, x + 2), [1, 0])[1],
        "other steps": fs.while_loop(cond, lambda i, x: (i + 2, x + 2), [0, 0])[1],
        "may fail": fs.while_loop(cond, lambda i, x: (i + 1, x + 7 // (i - 3)), [0, 0])[1],
        "random": fs.while_loop(
            cond, lambda i, x: (i + 1, x + fs.random_uniform([], 0, 2, fs.int32)), [0, 0]
        )[1],
    }
    with fs.Session() as s:
        assert s.plan(plain, [n]).text("code").count("+= 1") == 0
        for what, loop in others.items():
            assert s.plan(loop, [n]).text("code").count("+= 1") == 1, what
        assert s.run([plain, others["other steps"]], {n: 5}) == [10, 6]
        with pytest.raises(fs.errors.InvalidArgumentError, match="iteration 3 of "):
            s.run(others["may fail"], {n: 5})


def test_a_sparse_variable_keeps_the_shape_that_all_iterations_have(sess):
    x = fs.SparseTensor([[0], [3]], [2.0, 4.0], [10])
    start = [fs.constant(0), x]
    seen = []

    def same(i, x):
        seen.append(x.shape.as_list())
        return i + 1, x

    y = fs.while_loop(lambda i, x: i < 2, same, start)[1]
    assert (seen, y.shape.as_list()) == ([[10]], [10])

    def doubled(i, x):
        seen.append(x.shape.as_list())
        return i + 1, fs.SparseTensor(x.indices, x.values, x.dense_shape * 2)

    del seen[:]
    y = fs.while_loop(lambda i, x: i < 2, doubled, start)[1]
    assert (seen, y.shape.as_list()) == ([[10], [None]], [None])
    assert sess.run(y.dense_shape).tolist() == [40]
