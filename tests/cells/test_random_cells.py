"""Random notebooks, edited and run again: never silently another result than a new graph gives."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flowscope as fs


def own(factor):
    """Returns a function with a gradient of its own, which holds a tensor of the function."""

    @fs.custom_gradient
    def own_gradient(x):
        e = fs.tanh(x)
        return e * 0.5, lambda dy: dy * e * factor

    return own_gradient


def python(factor, stateful=True):
    """Returns a function that calls one of Python's."""

    def call(x):
        y = fs.py_func(lambda a: a * held[0], [x], fs.float32, stateful)
        y.set_shape(x.shape)
        return y

    held = [np.float32(factor)]
    return call


UNARY = {
    "neg": fs.negative,
    "tanh": fs.tanh,
    "square": fs.square,
    "exp": fs.sigmoid,
    "own2": own(2.0),
    "own3": own(3.0),
    "python2": python(2.0),
    "python3": python(3.0),
    "pure2": python(0.5, stateful=False),
    "pure3": python(1.5, stateful=False),
}
#: Functions that differ in a number that they hold.
SIBLINGS = {
    f"{kind}{a}": f"{kind}{b}" for kind in ("own", "python", "pure") for a, b in ("23", "32")
}
BINARY = {"add": fs.add, "mul": fs.multiply, "sub": fs.subtract}
BLOCKS = ("loop", "branch", "call", "nested")
ROW = np.array([0.5, -1.5], np.float32)


@st.composite
def statements(draw, known, variables):
    """One line of a cell: what it makes, from names that are known by then."""
    kinds = ["const", "unary", "binary", "grad", "sum", "block"]
    kinds += ["assign", "read"] if variables else []
    kind = draw(st.sampled_from(kinds))
    name = st.sampled_from(known)
    if kind == "const":
        value = draw(st.sampled_from([1.5, -0.5, [0.25, 2.0], [3.0, -1.0]]))
        return ("const", value)
    if kind == "unary":
        return ("unary", draw(st.sampled_from(sorted(UNARY))), draw(name))
    if kind == "binary":
        return ("binary", draw(st.sampled_from(sorted(BINARY))), draw(name), draw(name))
    if kind == "grad":
        return ("grad", draw(name), draw(name))
    if kind == "block":
        what, unary = draw(st.sampled_from(BLOCKS)), draw(st.sampled_from(sorted(UNARY)))
        return ("block", what, unary, draw(name), draw(name))
    if kind == "sum":
        return ("sum", draw(name))
    return (kind, draw(st.sampled_from(variables)), draw(name))


@st.composite
def notebooks(draw):
    """Cells, each a list of (name, statement); the first makes a placeholder and variables."""
    cells = [[("x", ("input",)), ("v", ("variable", 1.0)), ("w", ("variable", -2.0))]]
    known, variables = ["x", "v", "w"], ["v", "w"]
    for c in range(draw(st.integers(1, 4))):
        cell = []
        for i in range(draw(st.integers(1, 4))):
            cell.append((f"t{c}{i}", draw(statements(known, variables))))
            known.append(cell[-1][0])
        cells.append(cell)
    return cells


@st.composite
def edits(draw, cells):
    """The same notebook with other statements in one cell, and perhaps one line more before."""
    which = draw(st.integers(1, len(cells) - 1))
    known = [name for cell in cells[:which] for name, _ in cell]
    cell = []
    if draw(st.booleans()):
        cell.append((f"extra{which}", draw(statements(known, ["v", "w"]))))
        known.append(cell[-1][0])
    for name, old in cells[which]:
        now = {
            "same": st.just(old),
            "other": statements(known, ["v", "w"]),
            "near": st.just(tuple(SIBLINGS.get(str(part), part) for part in old)),
        }
        cell.append((name, draw(now[draw(st.sampled_from(sorted(now)))])))
        known.append(name)
    return which, [*cells[:which], cell, *cells[which + 1 :]]


def block(kind, f, start, used):
    """The result of a loop, a branch, ... of two values: of the first one's shape."""
    start = start + 0.0

    def body(x):
        return f(x + fs.reduce_mean(used))

    if kind == "call":
        called = fs.function(body, name="called")
        return called(called(start))
    if kind == "branch":
        return fs.cond(fs.reduce_sum(start) > 0.0, lambda: body(start), lambda: start * 0.5)
    if kind == "nested":
        before = body

        def body(x):
            return fs.cond(fs.reduce_sum(x) > 0.0, lambda: before(x), lambda: x * 0.5)

    return fs.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, body(x)), [0, start])[1]


def make(statement, values):
    kind, *rest = statement
    if kind == "input":
        return fs.placeholder(fs.float32, [2], name="x")
    if kind == "variable":
        return fs.Variable([rest[0], rest[0]], name="v")
    if kind == "const":
        return fs.constant(rest[0], fs.float32)
    if kind == "unary":
        return UNARY[rest[0]](values[rest[1]])
    if kind == "binary":
        return BINARY[rest[0]](values[rest[1]], values[rest[2]])
    if kind == "sum":
        return fs.reduce_sum(values[rest[0]])
    if kind == "grad":
        y, x = values[rest[0]], values[rest[1]]
        return fs.gradients(y, x, unconnected_gradients=fs.UnconnectedGradients.ZERO)[0]
    if kind == "block":
        return block(rest[0], UNARY[rest[1]], values[rest[2]], values[rest[3]])
    variable, value = values[rest[0]], values[rest[1]]
    if kind == "assign":
        return variable.assign(fs.clip_by_value(0.0 * variable + value, -3.0, 3.0))
    return variable + value


def run_cell(graph, cells, i, values):
    with graph.cell(i, names=lambda: values) as run:
        for name, statement in cells[i]:
            values[name] = make(statement, values)
    return run.report


def initialized(session, values):
    session.run([v.initializer for v in values.values() if isinstance(v, fs.Variable)])


def fetched(session, values, name):
    """Returns one value, or the error's type."""
    initialized(session, values)
    try:
        return session.run(values[name], {values["x"]: ROW})
    except fs.errors.StaleError:
        return None


def from_scratch(cells):
    with fs.Graph().as_default() as graph, fs.Session(graph=graph) as session:
        values = {}
        for i in range(len(cells)):
            run_cell(graph, cells, i, values)
        found = {name: fetched(session, values, name) for name in values}
        initialized(session, values)
        return found, session.run(values, {values["x"]: ROW})


@pytest.mark.slow
@settings(max_examples=150)
@given(st.data())
def test_an_edited_notebook_gives_what_a_new_graph_gives_or_says_stale(data):
    cells = data.draw(notebooks())
    with fs.Graph().as_default() as graph, fs.Session(graph=graph) as session:
        values = {}
        for i in range(len(cells)):
            run_cell(graph, cells, i, values)
        for name in values:
            fetched(session, values, name)
        for _ in range(data.draw(st.integers(1, 3))):
            which, cells = data.draw(edits(cells))
            try:
                expected, together = from_scratch(cells)
            except (ValueError, LookupError):
                return  # the edit makes no notebook that runs
            run_cell(graph, cells, which, values)
            for name in values:
                got = fetched(session, values, name)
                if got is not None and name in expected:
                    np.testing.assert_allclose(got, expected[name], rtol=1e-5, err_msg=name)
            for i in range(which + 1, len(cells)):
                if any(values[name].op.stale is not None for name, _ in cells[i]):
                    run_cell(graph, cells, i, values)
            initialized(session, values)
            now = {name: value for name, value in values.items() if name in expected}
            results = session.run(now, {values["x"]: ROW})
            for name, value in results.items():
                np.testing.assert_allclose(value, together[name], rtol=1e-5, err_msg=name)
            values = now


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, as the test presses it."""


def state(graph):
    """Returns all that can be seen of a graph."""
    facts = ("id", "name", "definition", "inputs", "control_inputs", "order", "stale", "device")
    operations = [
        ([getattr(op, fact) for fact in facts], [str(t.spec) for t in op.outputs])
        for op in graph.get_operations()
    ]
    collections = {key: list(graph.get_collection(key)) for key in graph.get_all_collection_keys()}
    return operations, collections, dict(graph._names), dict(graph.functions)


@pytest.mark.slow
@settings(max_examples=100)
@given(st.data())
def test_a_cell_that_is_broken_off_at_any_operation_changes_nothing(data):
    cells = data.draw(notebooks())
    with fs.Graph().as_default() as graph, fs.Session(graph=graph) as session:
        values = {}
        for i in range(len(cells)):
            run_cell(graph, cells, i, values)
        before = {name: fetched(session, values, name) for name in values}
        was = state(graph)
        which, edited = data.draw(edits(cells))
        limit = data.draw(st.sampled_from([0, 1, 2, 3, 5, 8, 13, 21]))
        count = 0

        def interrupt(op):
            nonlocal count
            count += 1
            if count > limit:
                raise Interrupted

        checks = graph.checks
        graph.checks = (*checks, interrupt)
        try:
            run_cell(graph, edited, which, dict(values))
            return  # it was shorter than that
        except (Interrupted, ValueError, LookupError):
            pass
        finally:
            graph.checks = checks
        assert state(graph) == was
        for name, value in before.items():
            np.testing.assert_array_equal(fetched(session, values, name), value, err_msg=name)
        assert not run_cell(graph, cells, which, values).is_news
        for name, value in before.items():
            np.testing.assert_array_equal(fetched(session, values, name), value, err_msg=name)
