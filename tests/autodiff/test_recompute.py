"""recompute_grad: the same results and gradients as without, other operations."""

import tracemalloc

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")

X = np.array([0.5, -1.0, 2.0])


@fs.RegisterGradient("RecomputedSign")
def _sign(op, g):
    return g * op.inputs[0]


def both(sess, f, feed, variables=()):
    """Asserts that results and gradients of two orders are those of the plain function."""
    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [3])
        found = []
        for function in (f, fs.recompute_grad(f)):
            y = function(x)
            first = fs.gradients(y, [x, *variables])
            second = fs.gradients(first, [x, *variables], unconnected_gradients="zero")
            found.append([y, *first, *second])
        if variables:
            sess.run(fs.global_variables_initializer())
    plain, recomputed = sess.run(found, {x: feed})
    np.testing.assert_array_equal(plain[0], recomputed[0])
    for a, b in zip(plain, recomputed, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)  # sums in another order


def test_the_same_numbers(sess):
    both(sess, lambda x: fs.tanh(fs.exp(x) * x), X)


def test_with_variables_read_inside_and_outside(sess):
    with sess.graph.as_default():
        v = fs.Variable(2.0, dtype=fs.float64)
        w = fs.Variable(3.0, dtype=fs.float64)
        outside = w * w
    both(sess, lambda x: fs.sin(x * v) * v + outside * x, X, [v, w])


def test_inside_functions_and_with_calls_inside(sess):
    with sess.graph.as_default():
        v = fs.Variable(2.0, dtype=fs.float64)
        call = fs.function(lambda x: fs.sin(x) * x)
        reads = fs.function(lambda x: fs.cos(x) * v)
    both(sess, lambda x: call(fs.exp(x)) * reads(x), X, [v])
    both(sess, fs.function(fs.recompute_grad(lambda x: fs.sin(x * v) * x)), X, [v])


def test_nested(sess):
    inner = fs.recompute_grad(lambda a: fs.tanh(a) * 2.0)
    both(sess, lambda x: inner(fs.exp(x)) * x, X)


def test_with_a_custom_gradient_inside(sess):
    custom = fs.custom_gradient(lambda a: (a * a, lambda dy: dy * a * 50.0))
    both(sess, lambda x: custom(fs.exp(x)) * x, X)


def test_with_an_overridden_gradient_inside(sess):
    def f(x):
        with fs.get_default_graph().gradient_override_map({"Sign": "RecomputedSign"}):
            return fs.sign(fs.exp(x)) * x

    both(sess, f, X)


def test_random_numbers_are_drawn_again(sess):
    with sess.graph.as_default():
        x = fs.ones([1000])
        y = fs.recompute_grad(lambda x: fs.nn.dropout(x * 3.0, 0.5))(x)
        (g,) = fs.gradients(y, x)
    for _ in range(2):
        value, slope = sess.run([y, g])
        np.testing.assert_array_equal(value, slope)
        assert {0.0, 6.0} == set(value.tolist())


def test_a_write_after_the_function_changes_nothing(sess):
    with sess.graph.as_default():
        v = fs.Variable(2.0, dtype=fs.float64)
        x = fs.constant(X)
        y = fs.recompute_grad(lambda x: fs.exp(x * v))(x)
        write = v.assign(100.0)
        (g,) = fs.gradients(y, x)
        sess.run(fs.global_variables_initializer())
    value, slope, _ = sess.run([y, g, write])
    np.testing.assert_array_equal(slope, value * 2.0)


def test_values_of_the_function_are_not_kept():
    x = fs.placeholder(fs.float64, [3])
    y = fs.recompute_grad(lambda x: fs.tanh(fs.exp(x, name="inner")))(x)
    inner = fs.get_default_graph().get_tensor_by_name("inner:0")
    before = len(fs.get_default_graph())
    (g,) = fs.gradients(y, x)
    made = fs.get_default_graph().operations_since(before)
    assert not any(inner in op.inputs for op in made)
    copies = [op for op in made if op.type == "Exp"]
    assert [op.name for op in copies] == ["gradients/GradientHub_grad/recompute/Exp"]
    assert [op.forward for op in copies] == [inner.op]
    assert copies[0].inputs[0].op.control_inputs or copies[0].control_inputs
    assert g.op in made


def peak(sess, wrap):
    """The most memory that a step holds, in arrays of x's size."""

    def block(a):
        for _ in range(8):
            a = fs.sin(a)
        return a

    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [10_000])
        y = x
        for _ in range(8):
            y = wrap(block)(y)
        (g,) = fs.gradients(y, x)
    value = np.ones(10_000)
    sess.run(g, {x: value})
    tracemalloc.start()
    try:
        sess.run(g, {x: value})
        return tracemalloc.get_traced_memory()[1] / value.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.memory
@pytest.mark.slow
def test_a_step_takes_less_memory(sess):
    """Eight blocks of eight: all inner values, or one block's and the ends of the others."""
    assert peak(sess, lambda f: f) > 60
    assert peak(sess, fs.recompute_grad) < 20


def test_devices_are_kept():
    x = fs.placeholder(fs.float64, [3])

    def f(x):
        with fs.device("/cpu:0"):
            return fs.tanh(fs.exp(x))

    before = len(fs.get_default_graph())
    fs.gradients(fs.recompute_grad(f)(x), x)
    exps = [op for op in fs.get_default_graph().operations_since(before) if op.type == "Exp"]
    assert [op.device for op in exps] == ["/device:CPU:0"] * 2


def test_several_arguments_results_and_keywords(sess):
    @fs.recompute_grad
    def f(a, b, power=1.0):
        return [a * b**power, fs.cast(a, fs.int32), b]

    with sess.graph.as_default():
        a, b = fs.placeholder(fs.float64, []), fs.placeholder(fs.float64, [])
        ys = f(a, b, power=2.0)
        found = fs.gradients(ys, [a, b])
    assert sess.run([*ys, *found], {a: 2.0, b: 3.0}) == [18.0, 2, 3.0, 9.0, 13.0]


def test_slices_stay_slices(sess):
    with sess.graph.as_default():
        v = fs.Variable(np.arange(6.0).reshape(3, 2))
        f = fs.recompute_grad(lambda scale: fs.gather(v, [0, 2]) ** 2.0 * scale)
        (g,) = fs.gradients(f(fs.constant(3.0, "float64")), v)
        sess.run(fs.global_variables_initializer())
    np.testing.assert_array_equal(sess.run(fs.convert_to_tensor(g)), [[0, 6], [0, 0], [24, 30]])


def test_it_wraps_the_function_and_methods(sess):
    def cube(x):
        return x * x * x

    class Layer:
        power = 2.0

        @fs.recompute_grad
        def scaled(self, x):
            return x * x * self.power

    assert fs.recompute_grad(cube).__wrapped__ is cube
    x = fs.constant(3.0)
    assert sess.run(fs.gradients(Layer().scaled(x), x)) == [12]
