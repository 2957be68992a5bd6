"""Gradients that users register, by op type and by name; ops that have none."""

import inspect
from dataclasses import dataclass

import numpy as np
import pytest

import flowscope as fs
from flowscope.graph.op import Op
from flowscope.ops.core.build import apply, apply_many

pytestmark = pytest.mark.usefixtures("graph")


@dataclass(frozen=True)
class RegisteredElsewhere(Op):
    """x + 1; its gradient is registered below."""

    def infer(self, x):
        return x.like()

    def kernel(self, xp, x):
        return x + x.dtype.type(1)


@fs.RegisterGradient("RegisteredElsewhere")
def _registered(op, g):
    return g * op.inputs[0]


@dataclass(frozen=True)
class Opaque2(Op):
    """Has no gradient."""

    def infer(self, x):
        return x.like()

    def kernel(self, xp, x):
        return x


fs.NotDifferentiable("Opaque2")


@dataclass(frozen=True)
class TwoOutputs(Op):
    """x and -x."""

    def infer(self, x):
        return x.like(), x.like()

    def kernel(self, xp, x):
        return x, -x


@fs.RegisterGradient("TwoOutputs")
def _two(op, a, b):
    return a * 2.0 + b * 3.0


@fs.RegisterGradient("Tenfold")
def _tenfold(op, g):
    return g * 10.0


@fs.RegisterGradient("Product")
def _product(op, g):
    a, b = op.inputs
    return [g * b * 100.0, g * a * 100.0]


@fs.RegisterGradient("Attribute")
def _attribute(op, g):
    return g * float(op.get_attr("axis")), None


@fs.RegisterGradient("SumOfAll")
def _sum(op, *gs):
    return fs.stack([g + 1.0 for g in gs])


def overridden(**names):
    return fs.get_default_graph().gradient_override_map(names)


def gradient_at(sess, y, x, value):
    return sess.run(fs.gradients(y, x), {x: value})[0]


def test_an_op_types_gradient_is_registered(sess):
    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [])
        y = apply(RegisteredElsewhere(), x)
        assert gradient_at(sess, y * 2.0, x, 3.0) == 6.0


def test_operations_of_a_scope_get_another_gradient(sess):
    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [])
        with overridden(Sign="Tenfold"):
            inside = fs.sign(x)
        outside = fs.sign(x)
        assert gradient_at(sess, inside, x, 3.0) == 10.0
        assert gradient_at(sess, outside, x, 3.0) == 0.0
    assert inside.op.get_attr("_gradient_op_type") == "Tenfold" == inside.op.gradient
    with pytest.raises(ValueError, match="no attribute '_gradient_op_type'"):
        outside.op.get_attr("_gradient_op_type")


def test_inner_scopes_add_to_outer_ones(sess):
    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [])
        with overridden(Tanh="Tenfold", Sign="Product"):
            with overridden(Sign="Tenfold"):
                y = fs.sign(x) * 0.0 + fs.tanh(x)
            assert fs.sign(x).op.gradient == "Product"
        assert y.op.gradient == fs.sign(x).op.gradient == ""
        assert gradient_at(sess, y, x, 3.0) == 10.0


def test_several_inputs_and_attributes(sess):
    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [])
        with overridden(Mul="Product"):
            y = x * (x + 1.0)
        assert gradient_at(sess, y, x, 2.0) == 100.0 * (3.0 + 2.0)
        t = fs.placeholder(fs.float64, [2, 2])
        with overridden(Gather="Attribute"):
            picked = fs.gather(t, [1, 0], axis=1)
        np.testing.assert_array_equal(
            gradient_at(sess, picked, t, np.ones((2, 2))), np.ones((2, 2))
        )


def test_outputs_without_influence_have_zero_cotangents(sess):
    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [3])
        with overridden(Unpack="SumOfAll"):
            parts = fs.unstack(x)
        np.testing.assert_array_equal(gradient_at(sess, parts[1] * 5.0, x, [1, 2, 3]), [1, 6, 1])


def test_higher_orders_follow_what_the_function_builds(sess):
    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [])
        with overridden(Mul="Product"):
            y = x * (x + 1.0)
        (first,) = fs.gradients(y, x)
        assert gradient_at(sess, first, x, 2.0) == 200.0


def test_an_unknown_name_says_so_at_the_users_line():
    x = fs.constant(1.0)
    with overridden(Sign="NobodyKnows"):
        y = fs.sign(x)
        line = inspect.currentframe().f_lineno - 1
    with pytest.raises(
        LookupError, match=rf'(?s)RegisterGradient\("NobodyKnows"\).*"Sign".*line {line}'
    ):
        fs.gradients(y, x)


@pytest.mark.parametrize("bad", [{"Sign": 3}, {3: "Tenfold"}, "Sign", None])
def test_the_map_holds_strings(bad):
    with pytest.raises(TypeError, match="expected names of gradients by op type"):
        with fs.get_default_graph().gradient_override_map(bad):
            pass


@pytest.mark.parametrize("name", ["Tenfold", "MatMul", "Sign", "Shape"])
def test_there_is_one_gradient_per_name(name):
    with pytest.raises(KeyError, match=f"a gradient named '{name}' already.*override_map"):
        fs.RegisterGradient(name)(lambda op, g: g)
    with pytest.raises(fs.errors.AlreadyExistsError):
        fs.NotDifferentiable(name)


def test_names_are_strings():
    for register in (fs.RegisterGradient, fs.NotDifferentiable, fs.NoGradient, fs.no_gradient):
        with pytest.raises(TypeError, match="expected the name of an op type, got 3"):
            register(3)


def test_not_differentiable(sess):
    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [])
        y = apply(Opaque2(), x)
        assert fs.gradients(y, x) == [None]
        assert gradient_at(sess, y * x, x, 3.0) == 3.0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda op, g: (g, g), "gave 2 cotangents, it has 1 inputs"),
        (lambda op, g: [], "gave 0 cotangents, it has 1 inputs"),
        (lambda op, g: fs.stack([g, g]), r"of shape \[2,3\] for input 0, whose shape is \[3\]"),
        (lambda op, g: fs.cast(g, "float64"), "expected float32, got float64"),
    ],
)
def test_what_a_function_returns_must_fit(function, message):
    name = f"Wrong{message}"
    fs.RegisterGradient(name)(function)
    x = fs.constant([1.0, 2.0, 3.0])
    with overridden(Sign=name):
        y = fs.sign(x)
        line = inspect.currentframe().f_lineno - 1
    try:
        with pytest.raises(ValueError, match=rf"(?s){message}.*line {line}"):
            fs.gradients(y, x)
    finally:
        from flowscope.autodiff import registry

        del registry._registered[name]


def test_an_ops_own_gradient_must_fit_too():
    @dataclass(frozen=True)
    class WrongShape(Op):
        """Its gradient has another shape."""

        def infer(self, x):
            return x.like()

        def grad(self, g, y, x):
            return (fs.reduce_sum(g),)

    x = fs.constant([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"a cotangent of shape \[\] for input 0, .* \[3\]"):
        fs.gradients(apply(WrongShape(), x), x)


def test_several_outputs_of_a_registered_op(sess):
    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [])
        a, b = apply_many(TwoOutputs(), x)
        assert gradient_at(sess, a + b, x, 1.0) == 5.0
        assert gradient_at(sess, b, x, 1.0) == 3.0


def test_ops_of_which_nothing_is_registered_have_no_gradient_to_ask_for(graph):
    x = fs.constant([1.0, 2.0])
    for y in (fs.is_nan(x), fs.where(x > 1.0), fs.where(fs.is_nan(x)), fs.unique(x)[0]):
        if y.op.inputs[0].dtype == fs.bool:
            assert fs.gradients(y, x) == [None]
            continue
        with pytest.raises(LookupError, match=f"no gradient is defined for {y.op.type}: "):
            fs.gradients(y, x)
    assert fs.gradients(fs.is_nan(x), fs.constant(1.0)) == [None]
    assert fs.gradients(fs.is_nan(fs.stop_gradient(x)), x) == [None]
    assert fs.gradients(fs.cast(fs.is_nan(x), fs.float32) * x, x)[0] is not None
    assert fs.gradients([fs.argmax(x), fs.shape(x), x > 1.0], x) == [None]
