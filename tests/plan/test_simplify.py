"""Simplifying: what is merged, folded and passed on, what is left alone, and what is remembered."""

import re

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def simplified(fetches, feeds=()):
    with fs.Session() as sess:
        return sess.plan(fetches, feeds).text("simplify")


def ops(text):
    return re.findall(r" = (\w+)", text)


def test_equal_operations_become_one():
    x = fs.placeholder(fs.float32, [2], name="x")
    y = fs.exp(x, name="a") + fs.exp(x, name="b")
    assert simplified(y, [x]) == (
        "feed0 = feed   float32[2]\n"
        "a = Exp(feed0)   float32[2]\n"
        "add = Add(a, a)   float32[2]\n"
        "fetch add"
    )


def test_a_merged_node_remembers_all_its_operations():
    x = fs.placeholder(fs.float32, [2])
    a, b = fs.exp(x, name="a"), fs.exp(x, name="b")
    with fs.Session() as sess:
        program = sess.plan([a, b], [x]).program
    (node,) = program.nodes
    assert [o.id for o in node.origins] == [a.op.id, b.op.id]


def test_two_fetches_of_one_node_are_two_arrays():
    x = fs.placeholder(fs.float32, [2])
    with fs.Session() as sess:
        a, b = sess.run([fs.exp(x), fs.exp(x)], {x: [0.0, 1.0]})
    a += 1
    assert b[0] == 1.0


def test_constants_are_folded_by_their_own_kernel():
    x = fs.placeholder(fs.float32, [2])
    y = x + fs.exp(fs.constant([0.0, 1.0])) * 2.0
    assert ops(simplified(y, [x])) == ["feed", "Const", "Add"]
    with fs.Session() as sess:
        got = sess.run(y, {x: [0.0, 0.0]})
    assert got.tobytes() == (np.exp(np.array([0, 1], np.float32)) * np.float32(2)).tobytes()


def test_a_folded_constant_remembers_what_it_was_made_of():
    two = fs.constant(2.0, name="two")
    y = fs.exp(two, name="y")
    with fs.Session() as sess:
        (node,) = sess.plan(y).program.nodes
    assert {o.name for o in node.origins} == {"two", "y"}


def test_large_constants_are_not_folded():
    y = fs.zeros([1000, 1000]) + 1.0
    with fs.Session() as sess:
        nodes = sess.plan(y).program.nodes
    assert all(v.spec.nbytes < 1 << 17 for n in nodes for v in n.outputs if n.op.type == "Const")


def test_what_fails_is_left_to_fail_when_it_runs():
    y = fs.floordiv(fs.constant([1]), fs.constant([0]), name="y")
    with fs.Session() as sess, pytest.raises(fs.errors.InvalidArgumentError, match='node "y"'):
        sess.run(y)


@pytest.mark.parametrize(
    "call",
    [
        fs.identity,
        fs.stop_gradient,
        lambda x: fs.cast(x, fs.float32),
        lambda x: x * 1.0,
        lambda x: 1.0 * x,
        lambda x: x / 1.0,
        lambda x: x - 0.0,
        lambda x: fs.reshape(x, [3, 2]),
        lambda x: fs.transpose(x, [0, 1]),
        lambda x: fs.add_n([x]),
        lambda x: fs.broadcast_to(x, [3, 2]),
    ],
)
def test_what_equals_its_input_is_its_input(call):
    x = fs.placeholder(fs.float32, [3, 2])
    y = call(fs.exp(x))
    assert set(ops(simplified(y, [x]))) == {"feed", "Exp"}


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + 0.0,  # -0 + 0 is 0
        lambda x: x * [[1.0], [1.0]] if x.shape.rank == 1 else x * 2.0,
        lambda x: fs.reshape(x, [2, 3]),
        lambda x: fs.transpose(x),
        lambda x: x - (-0.0),
    ],
)
def test_what_may_differ_stays(call):
    x = fs.placeholder(fs.float32, [3, 2])
    assert len(ops(simplified(call(fs.exp(x)), [x]))) > 2


def test_a_number_times_a_larger_one_stays():
    x = fs.placeholder(fs.float32, [])
    y = x * fs.ones([3])
    with fs.Session() as sess:
        assert sess.run(y, {x: 2.0}).tolist() == [2, 2, 2]


def test_random_and_stateful_operations_are_left_alone():
    a, b = fs.random_uniform([3], seed=1), fs.random_uniform([3], seed=1)
    v = fs.Variable(1.0)
    writes = [v.assign_add(1.0), v.assign_add(1.0)]
    text = simplified([a, b, *writes])
    assert ops(text).count("RandomUniform") == 2
    assert ops(text).count("AssignAddVariableOp") == 2


def test_reads_are_merged_only_where_no_write_lies_between():
    v = fs.Variable(1.0, name="v")
    first, second = v.read_value(), v.read_value()
    added = v.assign_add(1.0)
    third = v.read_value()
    text = simplified([first, second, added, third])
    assert ops(text).count("ReadVariableOp") == 2
    assert "ReadVariableOp(v@1)" in text
    with fs.Session() as sess:
        sess.run(v.initializer)
        assert sess.run([first, second, added, third]) == [1, 1, 2, 2]


def test_different_devices_and_control_inputs_keep_operations_apart():
    x = fs.placeholder(fs.float32, [2])
    a = fs.exp(x)
    with fs.device("/cpu:0"):
        b = fs.exp(x)
    with fs.control_dependencies([fs.no_op()]):
        c = fs.exp(x)
    assert ops(simplified([a, b, c], [x])).count("Exp") == 3


def test_an_operation_with_control_inputs_is_not_passed_over():
    v = fs.Variable(1.0)
    x = fs.placeholder(fs.float32, [])
    with fs.control_dependencies([v.assign_add(1.0)]):
        y = fs.identity(x)
    with fs.Session() as sess:
        sess.run(v.initializer)
        sess.run(y, {x: 3.0})
        assert sess.run(v) == 2.0


def test_what_waited_for_a_merged_operation_waits_for_the_other():
    x = fs.placeholder(fs.float32, [2])
    fs.exp(x, name="a")
    b = fs.exp(x, name="b")
    with fs.control_dependencies([b]):
        c = fs.negative(x, name="c")
    text = simplified([c, "a:0"], [x])
    assert "after a" in text


def test_a_known_value_that_is_fed_anew_is_not_trusted():
    shape = fs.constant([2, 3])
    doubled = shape * 2
    y = fs.zeros(doubled)
    with fs.Session() as sess:
        assert sess.run(doubled, {shape: [5, 5]}).tolist() == [10, 10]
        assert sess.run(y, {shape: [1, 2]}).shape == (2, 4)


def test_a_placeholder_whose_value_is_not_needed_must_still_be_fed(sess):
    x = fs.placeholder(fs.float32, [2, 3], name="x")
    shape = fs.get_default_graph().create_op("Shape", [x]).outputs[0]
    with pytest.raises(fs.errors.InvalidArgumentError, match='node "x"'):
        sess.run(shape + 1)


def test_op_mode_simplifies_nothing():
    x = fs.placeholder(fs.float32, [2])
    y = fs.exp(x) + fs.exp(x)
    with fs.Session(config=fs.ConfigProto(mode="op")) as sess:
        plan = sess.plan(y, [x])
    assert ops(plan.text()).count("Exp") == 2
    assert "nothing is simplified" in plan.text("simplify")


def test_every_stage_has_a_text():
    x = fs.placeholder(fs.float32, [2], name="x")
    y = fs.exp(x, name="a") + fs.exp(x, name="b")
    with fs.Session() as sess:
        plan = sess.plan(y, [x])
    assert ops(plan.text("prune")).count("Exp") == 2
    assert ops(plan.text("order")).count("Exp") == 2
    assert ops(plan.text("simplify")).count("Exp") == 1
    assert " on " not in plan.text("simplify")
    assert plan.text("place") == plan.text()
    assert "def region" in plan.text("code")
    with pytest.raises(ValueError, match="expected a stage among prune, inline"):
        plan.text("nothing")


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_a_reshape_that_may_fail_is_not_passed_over(mode):
    """The gradient's shape follows from the fed value, its static shape from the forward one."""
    a = fs.placeholder(fs.float32, [None])
    g = fs.gradients(fs.reduce_sum(fs.reshape(a * 2.0, [2])), a)[0]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        np.testing.assert_array_equal(sess.run(g, {a: [1.0, 2.0]}), [2.0, 2.0])
        with pytest.raises(fs.errors.InvalidArgumentError, match=r"2 elements, got \[3\]"):
            sess.run(g, {a: [1.0, 2.0, 3.0]})


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_a_known_size_does_not_hide_an_error(mode):
    a = fs.placeholder(fs.float32, None)
    size = fs.shape(fs.ensure_shape(a, [None, 4]))[1]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        assert sess.run(size, {a: np.ones((2, 4))}) == 4
        with pytest.raises(fs.errors.InvalidArgumentError, match=r"expected shape \[\?,4\]"):
            sess.run(size, {a: np.ones((2, 3))})
