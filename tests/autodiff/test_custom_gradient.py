"""custom_gradient and grad_pass_through: values, cotangents, variables, plans, errors."""

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


@fs.custom_gradient
def hundredfold(x):
    """The square, with a gradient that a test can tell from the true one."""
    return x * x, lambda dy: dy * 100.0


def variable(name="v", value=2.0):
    return fs.get_variable(name, [], fs.float64, fs.constant_initializer(value))


def test_the_functions_value_and_the_given_gradient(sess):
    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [])
        y = hundredfold(x)
        (g,) = fs.gradients(y * 2.0, x)
    assert sess.run([y, g], {x: 3.0}) == [9.0, 200.0]


def test_a_stable_derivative(sess):
    @fs.custom_gradient
    def log1pexp(x):
        e = fs.exp(x)
        return fs.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    with sess.graph.as_default():
        x = fs.constant(100.0)
        (g,) = fs.gradients(log1pexp(x), x)
    assert sess.run(g) == 1.0


def test_several_arguments_and_results(sess):
    @fs.custom_gradient
    def both(x, z):
        return [x * x, z + x], lambda a, b: (a * 100.0, b * 10.0)

    with sess.graph.as_default():
        x, z = fs.placeholder(fs.float64, []), fs.placeholder(fs.float64, [])
        a, b = both(x, z)
        every = fs.gradients([a, b], [x, z])
        first = fs.gradients(a, [x, z])
    feed = {x: 3.0, z: 4.0}
    assert sess.run([a, b, *every, *first], feed) == [9.0, 7.0, 100.0, 10.0, 100.0, 0.0]


def test_structures_and_no_gradient(sess):
    @fs.custom_gradient
    def parts(pair):
        return {"a": pair[0] * 2.0, "b": pair[1]}, lambda a, b: [None, b * 5.0]

    with sess.graph.as_default():
        x, z = fs.placeholder(fs.float64, []), fs.placeholder(fs.float64, [])
        out = parts([x, z])
        assert sorted(out) == ["a", "b"]
        gx, gz = fs.gradients([out["a"], out["b"]], [x, z])
    assert gx is None
    assert sess.run([out["a"], gz], {x: 3.0, z: 4.0}) == [6.0, 5.0]


def test_it_decorates_with_and_without_parentheses_and_keeps_the_name():
    @fs.custom_gradient()
    def named(x):
        """Doc."""
        return x, lambda dy: dy

    assert (named.__name__, named.__doc__) == ("named", "Doc.")
    assert named(fs.constant(1.0)).op.type == "WithGradient"


def test_python_values_by_keyword(sess):
    @fs.custom_gradient
    def scaled(x, factor=1.0):
        return x * factor, lambda dy: dy * factor * 10.0

    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [])
        y = scaled(x, factor=3.0)
        (g,) = fs.gradients(y, x)
        with pytest.raises(TypeError, match="pass tensors by position, got factor="):
            scaled(x, factor=x)
    assert sess.run([y, g], {x: 2.0}) == [6.0, 30.0]


def test_variables_get_their_cotangents(sess):
    with sess.graph.as_default():
        v = variable()
        unused = variable("unused")

        @fs.custom_gradient
        def f(x):
            def grad(dy, variables=None):
                assert variables == [v]
                return dy * 100.0, [dy * 7.0]

            return x * v, grad

        x = fs.placeholder(fs.float64, [])
        y = f(x)
        gx, gv = fs.gradients(y, [x, v])
        assert fs.gradients(y, unused) == [None]
        sess.run(fs.global_variables_initializer())
    assert sess.run([y, gx, gv], {x: 3.0}) == [6.0, 100.0, 7.0]


def test_variables_by_any_keyword_and_several(sess):
    with sess.graph.as_default():
        a, b = variable("a"), variable("b")
        read_before = b * 2.0

        @fs.custom_gradient
        def f(x):
            def grad(dy, **kwargs):
                return dy, [dy * float(i + 1) for i, _ in enumerate(kwargs["variables"])]

            return x * a + read_before, grad

        x = fs.placeholder(fs.float64, [])
        found = fs.gradients(f(x), [a, b])
        sess.run(fs.global_variables_initializer())
    assert sorted(sess.run(found, {x: 3.0})) == [1.0, 2.0]


def test_a_variable_as_the_argument(sess):
    with sess.graph.as_default():
        v = variable()
        (g,) = fs.gradients(hundredfold(v), v)
        sess.run(fs.global_variables_initializer())
    assert sess.run(g) == 100.0


def test_variables_inside_a_function(sess):
    with sess.graph.as_default():
        v = variable()

        @fs.custom_gradient
        def f(x):
            return x * v, lambda dy, variables: (dy * 100.0, [dy * 7.0])

        x = fs.placeholder(fs.float64, [])
        found = fs.gradients(fs.function(lambda x: f(x) * x)(x), [x, v])
        sess.run(fs.global_variables_initializer())
    assert sess.run(found, {x: 3.0}) == [306.0, 21.0]


def test_nested(sess):
    @fs.custom_gradient
    def outer(x):
        y = hundredfold(x)
        return y, lambda dy: fs.gradients(y, x, dy)[0] + 1.0

    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [])
        assert sess.run(fs.gradients(outer(x), x), {x: 3.0}) == [101.0]


def test_higher_orders(sess):
    @fs.custom_gradient
    def cubed(x):
        return x * x * x, lambda dy: dy * 3.0 * x * x

    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [])
        y = cubed(x)
        found = []
        for _ in range(4):
            (y,) = fs.gradients(y, x, unconnected_gradients="zero")
            found.append(y)
    assert sess.run(found, {x: 2.0}) == [12.0, 12.0, 6.0, 0.0]


def test_plans_run_the_values_alone(sess):
    with sess.graph.as_default():
        x, z = fs.placeholder(fs.float64, [], "x"), fs.placeholder(fs.float64, [], "z")

        @fs.custom_gradient
        def first(x, z):
            return [fs.exp(x), fs.tanh(x)], lambda a, b: (a, b)

        a, b = first(x, fs.sin(z))
        (g,) = fs.gradients(a, x)
    types = {n.op.type for n in sess.plan(a, [x]).program.nodes}
    assert types <= {"Exp", "Identity", "WithGradient"}
    assert sess.run(a, {x: 0.0}) == 1.0  # without z
    assert sess.run(g) == 1.0  # the gradient reads no value of the function
    with sess.graph.as_default(), fs.control_dependencies([a, b]):
        after = fs.constant(5.0) * 1.0
    assert sess.run(after, {x: 0.0}) == 5.0


def test_a_call_with_a_hub_inside_can_be_waited_for(sess):
    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [])
        y = fs.function(hundredfold)(x)
        with fs.control_dependencies([y]):
            after = fs.constant(5.0) * 1.0
    assert sess.run(after, {x: 1.0}) == 5.0


def test_stopped_results(sess):
    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [])
        y = hundredfold(x)
        assert fs.gradients(y, x, stop_gradients=[y]) == [None]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: (x, lambda dy: (dy, dy)), "gave 2 cotangents for 1 arguments"),
        (lambda x: (x, lambda dy: fs.stack([dy, dy])), r"shape \[2\] for input 0, whose .* \[\]"),
        (lambda x: (x, lambda dy: fs.cast(dy, "float64")), "expected float32, got float64"),
    ],
)
def test_what_grad_fn_returns_must_fit(function, message):
    x = fs.constant(3.0)
    y = fs.custom_gradient(function)(x)
    with pytest.raises(ValueError, match=rf'(?s){message}.*"GradientHub"'):
        fs.gradients(y, x)


def test_what_the_function_returns_must_fit():
    for bad in (lambda x: x, lambda x: (x, x), lambda x: [x, lambda dy: dy]):
        with pytest.raises(TypeError, match="to return its results and a function grad_fn"):
            fs.custom_gradient(bad)(fs.constant(1.0))


def test_variables_must_be_asked_for():
    v = variable()
    forgets = fs.custom_gradient(lambda x: (x * v, lambda dy: dy))
    with pytest.raises(TypeError, match=r"uses variables \(v:0\): .*keyword argument variables"):
        forgets(fs.constant(1.0, "float64"))
    for grad, message in (
        (lambda dy, variables: dy, "must return two things"),
        (lambda dy, variables: (dy, []), "gave 0 cotangents for 1 variables"),
    ):
        x = fs.constant(1.0, "float64")
        y = fs.custom_gradient(lambda x, grad=grad: (x * v, grad))(x)
        with pytest.raises(ValueError, match=message):
            fs.gradients(y, x)


def test_a_variable_in_no_collection_is_named():
    hidden = fs.Variable(1.0, collections=[], trainable=False, name="hidden")
    f = fs.custom_gradient(lambda x: (x * hidden, lambda dy, variables: (dy, [dy])))
    with pytest.raises(ValueError, match="in no collection: hidden"):
        f(fs.constant(1.0))


def test_a_written_graph_holds_no_python_function():
    x = fs.placeholder(fs.float32, [], name="x")
    fs.identity(hundredfold(x), name="y")
    written = fs.get_default_graph().as_graph_def()
    with fs.Graph().as_default() as other, fs.Session() as sess:
        fs.import_graph_def(written, name="")
        x, y = (other.get_tensor_by_name(f"{n}:0") for n in "xy")
        assert sess.run(y, {x: 3.0}) == 9.0
        with pytest.raises(LookupError, match="gradient of hundredfold is a Python function"):
            fs.gradients(y, x)


# -- grad_pass_through ----------------------------------------------------------------------------


def test_pass_through(sess):
    with sess.graph.as_default():
        x = fs.placeholder(fs.float64, [])
        y = fs.grad_pass_through(fs.round)(x)
        (g,) = fs.gradients(y * y, x)
    assert sess.run([y, g], {x: 3.3}) == [3.0, 6.0]


def test_pass_through_keeps_variables_out(sess):
    with sess.graph.as_default():
        v = variable()
        x = fs.placeholder(fs.float64, [])
        y = fs.grad_pass_through(lambda x: x * v)(x)
        gx, gv = fs.gradients(y, [x, v])
        sess.run(fs.global_variables_initializer())
    assert gv is None
    assert sess.run([y, gx], {x: 3.0}) == [6.0, 1.0]


def test_pass_through_several(sess):
    with sess.graph.as_default():
        x, z = fs.placeholder(fs.float64, []), fs.placeholder(fs.float64, [])
        a, b = fs.grad_pass_through(lambda x, z: [fs.floor(x), fs.ceil(z)])(x, z)
        found = fs.gradients([a * 2.0, b * 3.0], [x, z])
        with pytest.raises(ValueError, match="gave 1 cotangents for 2 arguments"):
            fs.gradients(fs.grad_pass_through(lambda x, z: x)(x, z), x)
    np.testing.assert_array_equal(sess.run(found), [2.0, 3.0])


def test_a_method_may_have_a_gradient_of_its_own(sess):
    class Layer:
        factor = 10.0

        @fs.custom_gradient
        def product(self, a, b):
            """Doc."""
            return a * b, lambda dy: (dy * b * self.factor, dy * a)

    a, b = fs.constant(3.0), fs.constant(5.0)
    y = Layer().product(a, b)
    assert sess.run([y, *fs.gradients(y, [a, b])]) == [15, 50, 3]
    assert (Layer.product.__name__, Layer.product.__doc__) == ("product", "Doc.")
