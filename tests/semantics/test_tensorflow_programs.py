"""Idioms of programs written for TensorFlow 1, with what TensorFlow gives for them."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


# -- variable scopes ------------------------------------------------------------------------------


def test_an_array_or_a_tensor_is_an_initializer():
    start = np.arange(6, dtype=np.float32).reshape(2, 3)
    v = fs.get_variable("v", initializer=start)
    w = fs.get_variable("w", initializer=fs.constant([1.0, 2.0]))
    with fs.variable_scope("s", initializer=fs.constant_initializer(3.0)):
        zero = fs.get_variable("zero", initializer=0.0)
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        np.testing.assert_array_equal(sess.run(v), start)
        np.testing.assert_array_equal(sess.run(w), [1.0, 2.0])
        assert sess.run(zero) == 0.0
    with pytest.raises(ValueError, match="pass no shape"):
        fs.get_variable("u", [2], initializer=start)


def test_custom_getters_are_called_from_the_inside_out():
    calls = []

    def getter(label):
        def get(getter, name, *args, **kwargs):
            calls.append((label, name, kwargs["dtype"], kwargs["trainable"]))
            return getter(name, *args, **kwargs)

        return get

    with fs.variable_scope("a", custom_getter=getter("outer")):
        with fs.variable_scope("b", custom_getter=getter("inner")):
            v = fs.get_variable("v", [2], fs.float64, trainable=False)
        fs.get_variable("w", [])
    assert v.name == "a/b/v:0"
    assert not v.trainable
    assert calls == [
        ("inner", "a/b/v", fs.float64, False),
        ("outer", "a/b/v", fs.float64, False),
        ("outer", "a/w", None, None),
    ]


def test_a_custom_getter_may_return_a_tensor():
    def doubled(getter, name, *args, **kwargs):
        return getter(name, *args, **kwargs) * 2.0

    with fs.variable_scope("s", custom_getter=doubled):
        x = fs.get_variable("x", initializer=4.0)
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        assert sess.run(x) == 8.0


def test_a_scope_opened_again_keeps_its_reuse_and_constraint():
    def positive(x):
        return fs.maximum(x, 0.0)

    with fs.variable_scope("s", constraint=positive) as scope:
        v = fs.get_variable("v", [])
    assert v.constraint is positive
    with fs.variable_scope("t", reuse=fs.AUTO_REUSE), fs.variable_scope(scope, reuse=True) as again:
        assert again.reuse is True
        assert fs.get_variable("v") is v


# -- sessions -------------------------------------------------------------------------------------


def test_names_that_cannot_be_fetched_or_fed():
    x = fs.placeholder(fs.float32, [], name="x")
    with fs.Graph().as_default():
        other = fs.constant(1.0, name="other")
    with fs.Session() as sess:
        for name in ("nope:0", "nope", "x:1", "x:y"):
            with pytest.raises(ValueError, match="nope|x:"):
                sess.run(name)
        for key in ("nope:0", "x", other, 3):
            with pytest.raises(TypeError, match="cannot feed"):
                sess.run(x, {key: 1.0})
    with pytest.raises(KeyError):
        fs.get_default_graph().get_tensor_by_name("nope:0")


def test_an_empty_graph_does_not_run():
    with pytest.raises(RuntimeError, match="graph is empty"):
        fs.Session(graph=fs.Graph()).run("x:0")


@pytest.mark.parametrize("bad", [{"target": 3}, {"graph": 3}, {"config": 3}])
def test_arguments_of_a_session(bad):
    with pytest.raises(TypeError, match="got 3"):
        fs.Session(**bad)


def test_as_default_leaves_the_default_graph():
    other = fs.Graph()
    sess = fs.Session(graph=other)
    with sess.as_default():
        assert fs.get_default_session() is sess
        assert fs.get_default_graph() is not other
    with sess:
        assert fs.get_default_graph() is other
    assert fs.get_default_graph() is not other


# -- seeds ----------------------------------------------------------------------------------------


def draws(graph_seed, op_seed):
    """The draws of one op in two sessions."""
    with fs.Graph().as_default():
        if graph_seed is not None:
            fs.set_random_seed(graph_seed)
        x = fs.random_uniform([4], seed=op_seed)
        return [fs.Session().run(x).tolist() for _ in range(2)]


@pytest.mark.parametrize("seeds", [(None, 7), (5, None), (5, 7)])
def test_a_seed_fixes_the_draws_of_every_session_and_program(seeds):
    first, second = draws(*seeds)
    assert first == second
    assert draws(*seeds) == [first, second]


def test_without_a_seed_sessions_differ():
    first, second = draws(None, None)
    assert first != second


def test_the_seed_of_an_op_counts_under_a_default_one_of_the_graph():
    assert fs.get_seed(None) == (None, None)
    assert fs.get_seed(3) == (87654321, 3)


# -- structures -----------------------------------------------------------------------------------


def test_structures_of_other_types_are_a_type_error():
    with pytest.raises(TypeError, match="list and tuple"):
        fs.nest.assert_same_structure([1], (1,))
    fs.nest.assert_same_structure([1], (1,), check_types=False)


def test_a_graph_has_one_global_step():
    fs.train.create_global_step()
    with pytest.raises(ValueError, match="a global step already"):
        fs.train.create_global_step()


# -- variables ------------------------------------------------------------------------------------


def test_a_count_ends_at_its_limit(sess):
    v = fs.Variable(3, name="count")
    step = v.count_up_to(5)
    sess.run(v.initializer)
    assert [sess.run(step), sess.run(fs.count_up_to(v, 5)), sess.run(v)] == [3, 4, 5]
    with pytest.raises(fs.errors.OutOfRangeError, match="limit 5"):
        sess.run(step)
    assert sess.run(v) == 5
    with pytest.raises(TypeError, match="integer scalar"):
        fs.Variable(1.0).count_up_to(3)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (fs.scatter_update, [9.0, 2.0, 6.0]),
        (fs.scatter_add, [13.0, 2.0, 9.0]),
        (fs.scatter_sub, [-11.0, 2.0, -3.0]),
        (fs.scatter_mul, [27.0, 2.0, 18.0]),
        (fs.scatter_div, [1 / 27, 2.0, 0.5]),
        (fs.scatter_min, [1.0, 2.0, 3.0]),
        (fs.scatter_max, [9.0, 2.0, 6.0]),
    ],
)
def test_scatters(sess, how, expected):
    v = fs.Variable([1.0, 2.0, 3.0])
    changed = how(v, [0, 0, 2], [3.0, 9.0, 6.0])
    sess.run(v.initializer)
    held = sess.run(v)
    np.testing.assert_allclose(sess.run(changed), expected)
    np.testing.assert_allclose(sess.run(v), expected)
    np.testing.assert_array_equal(held, [1.0, 2.0, 3.0])
    assert changed.shape == v.shape


def test_scatters_of_slices_scalars_and_positions(sess):
    v = fs.Variable(np.zeros((3, 2), np.int32))
    sess.run(v.initializer)
    assert sess.run(fs.scatter_add(v, [[1], [2]], [[[1, 2]], [[3, 4]]])).tolist()[1:] == [
        [1, 2],
        [3, 4],
    ]
    assert sess.run(fs.scatter_update(v, [0, 1], 7)).tolist() == [[7, 7], [7, 7], [3, 4]]
    assert sess.run(fs.scatter_div(v, 0, [2, 3])).tolist()[0] == [3, 2]
    assert sess.run(v.scatter_nd_add([[2, 1], [2, 1]], [1, 1])).tolist()[2] == [3, 6]
    assert sess.run(v.scatter_nd_update([[0]], [[5, 5]])).tolist()[0] == [5, 5]
    assert sess.run(v.scatter_nd_sub([[0, 0]], [1])).tolist()[0] == [4, 5]
    assert sess.run([v.sparse_read([2]), v.gather_nd([[0, 0]])][1]).tolist() == [4]
    bad = fs.scatter_add(v, [3], [[1, 1]])
    with pytest.raises(fs.errors.InvalidArgumentError, match=r"indices in \[0, 3\), got 3"):
        sess.run(bad)
    for indices, updates in (([0], [1, 1]), ([0], [[1.0, 1.0]]), ([0.5], [[1, 1]])):
        with pytest.raises(ValueError, match="expected"):
            fs.scatter_add(v, indices, updates)


# -- what users hold ------------------------------------------------------------------------------


def test_errors_take_tensorflows_arguments():
    e = fs.errors.OutOfRangeError(None, None, "the end")
    assert (e.message, e.op, e.node_def, e.error_code) == ("the end", None, None, 11)
    assert fs.errors.InvalidArgumentError(None, fs.no_op(name="n"), "bad").op_name == "n"
    assert fs.errors.OpError(None, None, "m", fs.errors.UNKNOWN).message == "m"
    with pytest.raises(TypeError, match="got 2 arguments"):
        fs.errors.OpError(None, None)


def test_numbers_of_dtypes():
    for dtype in (fs.float32, fs.int64, fs.bool, fs.string, fs.bfloat16):
        assert fs.as_dtype(dtype.as_datatype_enum) is dtype
    assert not fs.float32.is_quantized
    assert fs.string.is_numpy_compatible
    with pytest.raises(TypeError, match="got None"):
        fs.as_dtype(None)


def test_ranks_at_most():
    assert fs.TensorShape([None, 3]).with_rank_at_most(2) == [None, 3]
    with pytest.raises(ValueError, match="rank 1 at most"):
        fs.TensorShape([None, 3]).with_rank_at_most(1)


def test_a_mask_as_an_index(sess):
    x = fs.constant([1.0, 5.0, 3.0])
    assert sess.run(x[x > 2.0]).tolist() == [5.0, 3.0]
    assert sess.run(x[np.array([True, False, False])]).tolist() == [1.0]


def test_top_k_has_named_parts(sess):
    top = fs.nn.top_k([1.0, 5.0, 3.0], 2)
    assert sess.run(top.values).tolist() == [5.0, 3.0]
    assert sess.run(top).indices.tolist() == [1, 2]


def test_dimensions_and_shapes_are_numbers(sess):
    x = fs.placeholder(fs.float32, [None, 7])
    assert sess.run(fs.cast(x.shape[1], fs.float32)) == 7.0
    assert sess.run(fs.constant(3) * x.shape[1]) == 21
    assert sess.run(fs.constant([x.shape[1], 2])).tolist() == [7, 2]
    assert sess.run(fs.convert_to_tensor(x.shape[1:])).tolist() == [7]
    assert fs.convert_to_tensor(fs.TensorShape([2, 3])).dtype == fs.int32
    with pytest.raises(TypeError, match="fs.shape"):
        fs.cast(x.shape[0], fs.float32)
    with pytest.raises(ValueError, match="3 and 4"):
        fs.Dimension(3).assert_is_compatible_with(4)
    for bad in ("a", 1.5):
        with pytest.raises(TypeError, match="expected a"):
            fs.TensorShape([bad])


def test_what_a_placeholder_takes(sess):
    i, f = fs.placeholder(fs.int32), fs.placeholder(fs.float32, [2])
    x, y = i * 1, f * 1.0
    for given in ([1.0, 2.0], (1, 2), np.array([1.0, 2.0]), np.array([1, 2], np.uint8)):
        assert sess.run(x, {i: given}).tolist() == [1, 2]
        assert sess.run(y, {f: given}).tolist() == [1.0, 2.0]
    for given in ([True, False], np.array([True, False])):
        assert sess.run(x, {i: given}).tolist() == [1, 0]
        assert sess.run(y, {f: given}).tolist() == [1.0, 0.0]
    assert sess.run(x, {i: True}) == 1
    assert sess.run(x, {i: [1.5, -2.5]}).tolist() == [1, -2]
    for bad in (1e10, [1.0, float("nan")], "1", None, [[1], [2, 3]]):
        with pytest.raises(ValueError, match="cannot feed"):
            sess.run(x, {i: bad})


def test_random_tensors_are_named_like_their_function():
    assert fs.random_normal([2], name="a").name == "a:0"
    assert fs.random_normal([2], 1.0, 2.0).name == "random_normal:0"
    assert fs.random_uniform([2], 1.0, 4.0).name == "random_uniform:0"
    assert fs.truncated_normal([2], stddev=0.1, name="w").name == "w:0"
