"""What loops, branches and their bodies say about mistakes: where, which variable, what to do."""

import pickle
import warnings

import pytest

import flowscope as fs
from flowscope.control.cond import always_run


@pytest.fixture
def bodies(graph):
    """Tensors of a loop's body and of a branch, by name."""
    found = {}
    x = fs.placeholder(fs.float32, [], name="x")

    def body(i, a):
        found.update(i=i, double=fs.multiply(a, 2.0, name="double"), op=fs.no_op())
        found["x"] = fs.multiply(a, x).op.inputs[1]
        return i + 1, found["double"]

    found["loop"] = fs.while_loop(lambda i, a: i < 3, body, [0, 1.0])

    def then():
        found["half"] = fs.multiply(x, 0.5, name="half")
        return found["half"]

    found["cond"] = fs.cond(x > 0.0, then, lambda: x)
    return found


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("double", r'"while/body/double:0" stands inside the body of a while_loop "while" and can'),
        ("double", r"loop variable, write it into a fs.TensorArray .* or collect its values by fs"),
        ("i", "it is a loop variable: outside, use what while_loop returned for it"),
        ("x", 'it stands there for "x:0": use that'),
        ("half", r'"cond/then/half:0" stands inside a branch of a cond "cond".*from both branches'),
    ],
)
def test_a_tensor_of_a_body_used_outside(bodies, name, message):
    with pytest.raises(fs.errors.GraphError, match=message) as e:
        fs.negative(bodies[name])  # the line
    assert "# the line" in str(e.value)
    with pytest.raises(fs.errors.GraphError, match=message), fs.control_dependencies(None):
        fs.while_loop(lambda i: i < 3, lambda i: i + fs.cast(bodies[name], fs.int32), [0])
    for run in (lambda s: s.run(bodies[name]), lambda s: s.run(bodies["loop"], {bodies[name]: 1})):
        with fs.Session() as s, pytest.raises(fs.errors.GraphError, match=message[-20:]):
            run(s)


def test_waiting_for_an_operation_of_a_body(bodies):
    message = r'"while/body/double" stands inside .* and cannot be waited for from there'
    with pytest.raises(fs.errors.GraphError, match=message) as e:
        with fs.control_dependencies([bodies["double"]]):  # the line
            pass
    assert "# the line" in str(e.value)
    with pytest.raises(fs.errors.GraphError, match="cannot be waited for"):
        fs.while_loop(lambda i: i < 3, lambda i: waits(bodies["op"], i), [0])
    with fs.Session() as s, pytest.raises(fs.errors.GraphError, match="runs with its body"):
        s.run(bodies["op"])


def waits(op, i):
    with fs.control_dependencies([op]):
        return i + 1


def test_waiting_in_a_body_for_an_operation_outside(sess):
    v = fs.Variable(1)
    add = v.assign_add(1)

    def body(i):
        return fs.while_loop(lambda j: j < 2, lambda j: waits(add.op, j), [0]) + i

    y = fs.while_loop(lambda i: i < 6, body, [0])
    sess.run(v.initializer)
    assert [sess.run(y), sess.run(v)] == [6, 2], "it runs once, before the loops"


def test_what_one_iteration_made_of_a_variable(graph):
    total = fs.placeholder(fs.float32, [2], name="total")

    def body(i, total):
        return i + 1, fs.cast(total, fs.float64, name="wide")  # the line

    message = (
        r'variable total \("total:0"\) is float32\[2\] at the start and float64\[2\] after one '
        r'iteration \("while/body/wide:0", made in test_errors.py, line \d+\)'
    )
    with pytest.raises(TypeError, match=message):
        fs.while_loop(lambda i, t: i < 3, body, [0, total])
    with pytest.raises(ValueError, match=r'\("total:0"\) has the shape invariant \[2\], and is f'):
        fs.while_loop(
            lambda t: fs.constant(True), lambda t: fs.concat([t, t], 0), [total], [total.shape]
        )
    with pytest.raises(TypeError, match='body returned the operation "while.*NoOp"'):
        fs.while_loop(lambda i: i < 3, lambda i: fs.no_op(), [0])
    sparse = fs.SparseTensor([[0, 1]], [2.0], [2, 2])
    with pytest.raises(TypeError, match="kind of variable 0: expected a tensor, got fs.SparseT"):
        fs.while_loop(lambda t: fs.constant(True), lambda t: sparse, [total])
    with pytest.raises(TypeError, match=r"a tensor and fs\.SparseTensor as result 0"):
        fs.cond(fs.constant(True), lambda: total, lambda: sparse)


def test_a_result_made_outside_is_warned_of_once_at_the_users_line(graph):
    p, x = fs.placeholder(fs.bool, []), fs.placeholder(fs.float32, [])

    def wasteful():
        a = fs.exp(x) + 1.0
        return fs.cond(p, lambda: a, lambda: x)

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        y = [wasteful() for _ in range(3)]
    assert len(found) == 1
    assert found[0].category is fs.ControlFlowWarning
    assert found[0].filename == __file__
    message = str(found[0].message)
    assert "is computed whichever branch is taken" in message
    assert "call what makes it inside true_fn" in message
    names = [op.type for op in always_run(y[0].op)]
    assert names == ["Exp", "Add"]
    inside = fs.cond(p, lambda: fs.exp(x) + 1.0, lambda: x)
    assert always_run(inside.op) == []


def test_what_is_used_elsewhere_too_is_not_warned_of(graph):
    p, x = fs.placeholder(fs.bool, []), fs.placeholder(fs.float32, [])
    a = fs.exp(x)
    b = fs.sin(a)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = fs.cond(p, lambda: a, lambda: x)
    assert b.op not in always_run(y.op)
    assert always_run(y.op) == []


def test_gradients_that_are_none_though_there_is_a_loop(graph):
    x, k = fs.constant(2.0), fs.constant(2)
    a = fs.while_loop(lambda a: a < 10.0, lambda a: a * x, [1.0], back_prop=False)
    b = fs.while_loop(lambda i: i < 10, lambda i: i * k, [1])
    c = fs.while_loop(lambda a: a < 10.0, lambda a: fs.stop_gradient(a * x), [1.0])
    for y, v in ((a, x), (fs.cast(b, fs.float32), k)):
        assert fs.gradients(y, v) == [None]
    (g,) = fs.gradients(c, x)
    with fs.Session() as s:
        assert g is None or s.run(g) == 0


def test_errors_of_bodies_survive_pickling(bodies):
    with pytest.raises(fs.errors.GraphError) as e:
        fs.negative(bodies["double"])
    again = pickle.loads(pickle.dumps(e.value))
    assert str(again) == str(e.value)


@pytest.fixture(params=["compiled", "op", "tokens"])
def any_sess(request, graph):
    """A session on `graph`, once for each of all ways to run."""
    with fs.Session(graph=graph, config=fs.ConfigProto(mode=request.param)) as s:
        yield s


def test_a_failing_step_names_the_iterations_of_the_loops_around(any_sess):
    x = fs.placeholder(fs.int32, [])

    def row(i):
        def cell(j):
            return j + 0 * fs.floordiv(9, x + 7 - i - j) + 1  # the line

        return i + 1 + 0 * fs.while_loop(lambda j: j < 5, cell, [0], name="cells")

    y = fs.while_loop(lambda i: i < 9, row, [0], name="rows")
    with pytest.raises(fs.errors.InvalidArgumentError) as e:
        any_sess.run(y, {x: 0})
    assert e.value.iterations == (("rows", 3), ("rows/body/cells", 4))
    text = str(e.value)
    assert 'in iteration 3 of "rows", iteration 4 of "rows/body/cells"' in text
    assert "# the line" in text
    assert "input 1: int32[]" in text
    again = pickle.loads(pickle.dumps(e.value))
    assert (str(again), again.iterations) == (text, e.value.iterations)
    assert any_sess.run(y, {x: 100}) == 9


def test_a_failing_step_of_a_gradient_names_the_forward_line_too(any_sess):
    x = fs.placeholder(fs.float32, [])

    def body(i, a):
        @fs.custom_gradient
        def picky(v):
            return v * x, lambda g: (fs.check_numerics(g * x, "g"),)

        return i + 1, picky(a)  # the line

    _, y = fs.while_loop(lambda i, _: i < 4, body, [0, x])
    (g,) = fs.gradients(y, x)
    with pytest.raises(fs.errors.InvalidArgumentError, match="g : the tensor has Inf") as e:
        any_sess.run(g, {x: 1e15})
    ((name, number),) = e.value.iterations
    assert "while" in name
    assert number == 2
    assert "# the line" in str(e.value)
    assert f'in iteration 2 of "{name}"' in str(e.value)


def test_a_failing_step_in_a_branch_of_a_loop(any_sess):
    x = fs.placeholder(fs.float32, [None])

    def body(i, a):
        return i + 1, fs.cond(i < 2, lambda: a, lambda: fs.reshape(a, [3]))

    _, y = fs.while_loop(lambda i, _: i < 4, body, [0, x], [fs.TensorShape([]), x.shape])
    with pytest.raises(fs.errors.InvalidArgumentError, match='in iteration 2 of "while"$') as e:
        any_sess.run(y, {x: [1, 2]})
    assert e.value.op_name == "while/body/cond/else/Reshape"


def test_a_failing_array_names_itself_and_the_iteration(any_sess):
    n = fs.placeholder(fs.int32, [])
    a = fs.TensorArray(fs.int32, 3, name="outputs")
    _, a = fs.while_loop(lambda i, _: i < n, lambda i, a: (i + 1, a.write(i, i)), [0, a])
    message = r'(?s)array "outputs" of size 3: .* got 3; dynamic_size=True.* in iteration 3 of "wh'
    with pytest.raises(fs.errors.InvalidArgumentError, match=message.replace(" in", "in")):
        any_sess.run(a.stack(), {n: 9})
