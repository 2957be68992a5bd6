"""Idioms of programs written for TensorFlow 1, with what TensorFlow gives for them."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs


@pytest.fixture(autouse=True)
def graph():
    with fs.Graph().as_default() as g:
        yield g


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
    """Returns what two sessions draw of one op."""
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
