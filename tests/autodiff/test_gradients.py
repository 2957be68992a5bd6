"""gradients(): paths, sums, cotangents, unconnected and stopped tensors, names, errors."""

import inspect

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def run(fetches, feed=None):
    with fs.Session() as sess:
        if fs.global_variables():
            sess.run(fs.global_variables_initializer())
        return sess.run(fetches, feed)


def test_partials_of_several_consumers_are_summed():
    x = fs.placeholder(fs.float64, [])
    y = x * x + 3.0 * x + fs.exp(x)
    assert run(fs.gradients(y, x), {x: 2.0})[0] == pytest.approx(4.0 + 3.0 + np.exp(2.0))


def test_several_ys_and_xs_and_given_cotangents():
    a, b = fs.placeholder(fs.float64, [2]), fs.placeholder(fs.float64, [2])
    ys = [a * b, a + b]
    ga, gb = fs.gradients(ys, [a, b], grad_ys=[[1.0, 10.0], None])
    got = run([ga, gb], {a: [2.0, 3.0], b: [5.0, 7.0]})
    np.testing.assert_allclose(got[0], [6.0, 71.0])
    np.testing.assert_allclose(got[1], [3.0, 31.0])


def test_x_that_is_y_and_x_on_the_way():
    x = fs.placeholder(fs.float64, [])
    m = x * 2.0
    y = m * m
    gx, gm, gy = fs.gradients(y, [x, m, y])
    assert run([gx, gm, gy], {x: 3.0}) == [24.0, 12.0, 1.0]


def test_no_influence_is_none_or_zeros():
    x, z = fs.placeholder(fs.float32, [2]), fs.placeholder(fs.float32, [3])
    v = fs.Variable([1.0])
    y = fs.reduce_sum(x)
    assert fs.gradients(y, [z, v]) == [None, None]
    zeros = fs.gradients(y, [z, v], unconnected_gradients=fs.UnconnectedGradients.ZERO)
    a, b = run(zeros, {z: [1, 2, 3]})
    np.testing.assert_array_equal(a, [0, 0, 0])
    np.testing.assert_array_equal(b, [0])


def test_integers_cut_the_path():
    x = fs.placeholder(fs.float32, [])
    y = fs.cast(fs.cast(x, fs.int32), fs.float32) * 2.0
    assert fs.gradients(y, x) == [None]


def test_stop_gradients():
    x = fs.placeholder(fs.float64, [])
    m = x * 3.0
    y = m * x
    assert run(fs.gradients(y, x, stop_gradients=[m]), {x: 2.0}) == [6.0]
    assert run(fs.gradients(fs.stop_gradient(m) * x, x), {x: 2.0}) == [6.0]


def test_a_variables_gradient_is_the_sum_over_all_its_reads():
    v = fs.Variable(3.0, dtype=fs.float64)
    first = v * v
    write = v.assign_add(1.0)
    with fs.control_dependencies([write]):
        second = v.read_value() * 10.0
    (g,) = fs.gradients(first + second, [v])
    assert run(g) == 16.0


def test_second_and_third_order():
    x = fs.placeholder(fs.float64, [])
    y = x * x * x * x
    for expected in (32.0, 48.0, 48.0, 24.0, 0.0):
        (y,) = fs.gradients(y, x, unconnected_gradients=fs.UnconnectedGradients.ZERO)
        assert run(y, {x: 2.0}) == pytest.approx(expected)


def test_names_lie_under_the_scope():
    x = fs.placeholder(fs.float32, [], name="x")
    with fs.name_scope("layer"):
        y = fs.tanh(x, name="y")
    (g,) = fs.gradients(y, x)
    assert g.op.name.startswith("gradients/layer/y_grad/")
    (g2,) = fs.gradients(y, x, name="again")
    assert g2.op.name.startswith("again/")


def test_an_op_without_a_gradient_says_so_at_the_users_line():
    x = fs.placeholder(fs.float32, [3, 3])
    from dataclasses import dataclass

    from flowscope.graph.op import Op
    from flowscope.ops.core.build import apply

    @dataclass(frozen=True)
    class Opaque(Op):
        """Has no gradient."""

        def infer(self, x):
            return x.like()

    y = apply(Opaque(), x, name="y")
    line = inspect.currentframe().f_lineno - 1
    with pytest.raises(
        LookupError, match=f"(?s)op Opaque has no gradient.*test_gradients.py, line {line}"
    ):
        fs.gradients(y, x)


def test_bad_arguments():
    x = fs.placeholder(fs.float32, [2])
    with pytest.raises(ValueError, match='"none" or "zero", got \'one\''):
        fs.gradients(x, x, unconnected_gradients="one")
    with pytest.raises(ValueError, match="an aggregation_method of fs.AggregationMethod, got 7"):
        fs.gradients(x, x, aggregation_method=7)
    with pytest.raises(TypeError, match="expected float32, got int32"):
        fs.gradients(x, x, grad_ys=fs.constant([1, 2]))
    with fs.Graph().as_default(), pytest.raises(ValueError, match="belongs to another graph"):
        fs.gradients(fs.constant(1.0), x)
    with pytest.raises(ValueError, match="expected 1 grad_ys, one per y, got 2"):
        fs.gradients(x, x, grad_ys=[x, x])
    with pytest.raises(ValueError, match=r"its y's shape \[2\], got \[3\]"):
        fs.gradients(x, x, grad_ys=[[1.0, 2.0, 3.0]])


def test_integers_are_constants():
    x, i = fs.placeholder(fs.float32, [2]), fs.placeholder(fs.int32, [2])
    assert fs.gradients(x * fs.cast(i, "float32"), i) == [None]
    assert fs.gradients(fs.cast(x, "int32"), x) == [None]
    (zeros,) = fs.gradients(x, i, unconnected_gradients="zero")
    assert zeros.dtype == fs.int32


def test_a_constant_has_a_gradient_where_it_is_asked_for():
    x, y = fs.constant([1.0, 2.0]), fs.constant([3.0, 2.0])
    dx, dy = fs.gradients(x ** fs.identity(y), [x, y])
    np.testing.assert_allclose(run(dx, {}), [3.0, 4.0])
    np.testing.assert_allclose(run(dy, {}), [0.0, 4 * np.log(2)], rtol=1e-6)


def test_a_stopped_x_has_the_gradient_of_what_uses_it():
    x = fs.constant([1.0, 2.0])
    a = x * 2.0
    (g,) = fs.gradients(a * x, x, stop_gradients=[x])
    np.testing.assert_allclose(run(g, {}), [4.0, 8.0])
    ga, gx = fs.gradients(a * x, [a, x], stop_gradients=[a])
    np.testing.assert_allclose(run(ga, {}), [1.0, 2.0])
    np.testing.assert_allclose(run(gx, {}), [2.0, 4.0])


def made_under(scope):
    return [o for o in fs.get_default_graph().get_operations() if o.name.startswith(scope)]


def test_gradients_share_the_devices_of_their_operations():
    x = fs.placeholder(fs.float32, [])
    with fs.device("/cpu:0"):
        y = fs.exp(x) * x
    (g,) = fs.gradients(y, x, colocate_gradients_with_ops=True)
    assert run(g, {x: 1.0}) == pytest.approx(2 * np.e)
    for scope in ("mul", "Exp"):
        made = made_under(f"gradients/{scope}_grad")
        assert made
        assert all(op.device == "/device:CPU:0" for op in made)
        assert all(op.colocation_groups() == [f"loc:@{scope}".encode()] for op in made)
    (ones,) = made_under("gradients/grad_ys_0")
    assert ones.colocation_groups() == [b"loc:@mul"]
    assert fs.gradients(y, x, name="plain") != [None]
    assert all(not op.device and not op.colocation for op in made_under("plain"))


def test_gated_gradients_wait_for_each_other():
    x, z = fs.placeholder(fs.float32, []), fs.placeholder(fs.float32, [])
    y = x * z
    gx, gz = fs.gradients(fs.exp(y), [x, z], gate_gradients=True)
    (gate,) = gx.op.control_inputs
    assert gz.op.control_inputs == [gate]
    assert {op.name for op in gate.control_inputs} == {
        "gradients/mul_grad/Mul",
        "gradients/mul_grad/Mul_1",
    }
    assert gx.op.name == "gradients/mul_grad/tuple/control_dependency"
    assert not made_under("gradients/Exp_grad/tuple")  # one cotangent waits for nothing
    assert run([gx, gz], {x: 2.0, z: 0.0}) == [0.0, 2.0]


def test_complex_ys_need_cotangents():
    x = fs.constant([1 + 2j], "complex64")
    with pytest.raises(TypeError, match='grad_ys for "mul:0", which is complex'):
        fs.gradients(x * x, x)
    (g,) = fs.gradients(x * x, x, grad_ys=[[1 + 1j]])
    np.testing.assert_allclose(run(g), [(1 + 1j) * np.conj(2 + 4j)])


def test_no_ys_or_no_xs():
    x = fs.constant([1.0])
    assert fs.gradients([], [x, x]) == [None, None]
    assert fs.gradients(x, []) == []
    (zeros,) = fs.gradients([], [x], unconnected_gradients="zero")
    np.testing.assert_array_equal(run(zeros), [0])


def test_an_x_that_is_named_twice():
    x = fs.placeholder(fs.float64, [])
    assert run(fs.gradients(x * x, [x, x]), {x: 3.0}) == [6.0, 6.0]


def test_prevented_gradients_say_where():
    x = fs.constant([1.0])
    y = fs.prevent_gradient(x, "not here", name="stop")
    with pytest.raises(LookupError, match=r'(?s)allowed here: not here.*node "stop", made in test'):
        fs.gradients(y, x)


@pytest.mark.slow
def test_a_long_chain_needs_no_recursion():
    x = fs.placeholder(fs.float64, [])
    y = x
    for _ in range(5000):
        y = y * 1.0
    assert run(fs.gradients(y, x), {x: 1.0}) == [1.0]


def test_an_integer_depends_on_itself_alone(sess):
    i = fs.constant(3)
    assert sess.run(fs.gradients(i, [i], grad_ys=[fs.constant(5)])) == [5]
    assert sess.run(fs.gradients(i, i)) == [1]
    assert fs.gradients(i * 2, i) == [None]


def test_the_number_next_to_another_has_a_gradient_of_zero_for_the_direction(sess):
    x, y = fs.constant(1.0), fs.constant([2.0, 3.0])
    gx, gy = sess.run(fs.gradients(fs.math.nextafter(x, y), [x, y]))
    assert gx == 2 and gy.tolist() == [0, 0]
