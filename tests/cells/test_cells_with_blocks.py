"""Cells that build loops, branches and functions, run again: what is the same stays the same."""

import gc

import blocks_in_cells as build
import numpy as np
import pytest

import flowscope as fs

OPTIONS = {f.__name__: f for f in build.BUILDERS}


@pytest.fixture(params=OPTIONS)
def builder(request):
    return OPTIONS[request.param]


class Notebook:
    """A cell that builds y, one with its gradients of first and second order, one that takes y."""

    def __init__(self, builder):
        self.graph = fs.get_default_graph()
        self.builder = builder
        self.k = 2.0
        for cell in ("a", "b", "c"):
            self.run(cell)

    def run(self, cell):
        with self.graph.cell(cell) as run:
            getattr(self, cell)()
        return run.report

    def a(self):
        self.y = self.builder(self.k)

    def b(self):
        variables = fs.trainable_variables()
        self.first = _gradients([self.y], variables)
        self.second = _gradients(self.first, variables)

    def c(self):
        self.z = fs.reduce_sum(self.y) * 2.0
        self.init = fs.global_variables_initializer()

    def values(self):
        """The results of a new session: random numbers depend on the number of its steps."""
        with fs.Session(graph=self.graph) as session:
            session.run(self.init)
            return session.run({"z": self.z, "first": self.first, "second": self.second})

    def operations(self):
        return {op.name: op for op in self.graph.get_operations()}


def _gradients(ys, xs):
    found = fs.gradients([fs.reduce_sum(y) for y in ys], xs) if ys else []
    return [g for g in found if g is not None]


def check_blocks(graph):
    """Checks that the blocks of all functions have operations of the graph."""
    operations = set(graph.get_operations())
    for function in graph.functions.values():
        for op in function.block.operations:
            assert graph.get_operation_by_name(op.name) is op
            assert op in operations


@pytest.mark.slow
def test_the_same_code_leaves_everything_as_it_was(graph, builder):
    fs.set_random_seed(7)
    notebook = Notebook(builder)
    expected, operations, functions = notebook.values(), notebook.operations(), {**graph.functions}
    collections = {key: graph.get_collection(key) for key in graph.get_all_collection_keys()}
    inputs = {op: (op.inputs, op.outputs) for op in operations.values()}
    with fs.Session(graph=graph) as session:
        plan = session.plan([notebook.z, notebook.first, notebook.second])
        for cell in "aabbabcabb":
            report = notebook.run(cell)
            assert not report.is_news, str(report)
            assert notebook.operations() == operations
            assert graph.functions == functions
            assert {op: (op.inputs, op.outputs) for op in operations.values()} == inputs
            assert {k: graph.get_collection(k) for k in collections} == collections
            check_blocks(graph)
            fetches = [notebook.z, notebook.first, notebook.second]
            assert session.plan(fetches) is plan
    np.testing.assert_equal(notebook.values(), expected)


@pytest.mark.slow
def test_an_edited_body_is_another_one(graph, builder):
    fs.set_random_seed(7)
    notebook = Notebook(builder)
    for k in (3.0, 2.0, 2.0, 0.5):
        notebook.k = k
        report = notebook.run("a")
        assert report.is_news == (k != graph.extras.get("k", 2.0))
        graph.extras["k"] = k
        for gradient in (*notebook.first, *notebook.second) if report.is_news else ():
            with pytest.raises(fs.errors.StaleError, match="re-run cell"):
                graph.as_graph_element(gradient)
        assert graph.as_graph_element(notebook.z) is notebook.z  # what takes y takes the new one
        for cell in "bc":
            notebook.run(cell)
        check_blocks(graph)
        found = notebook.values()
        with fs.Graph().as_default():
            fs.set_random_seed(7)
            new = Notebook(lambda _, k=k: builder(k))
            np.testing.assert_equal(found, new.values())


def _fail(_):
    raise RecursionError


@pytest.mark.slow
def test_a_run_that_fails_is_taken_back(graph):
    notebook = Notebook(build.nested)
    expected, operations, functions = notebook.values(), notebook.operations(), {**graph.functions}
    for k in (2.0, 3.0):
        with pytest.raises(RecursionError), graph.cell("a"):
            _fail(build.nested(k))
        assert notebook.operations() == operations
        assert graph.functions == functions
        check_blocks(graph)
        np.testing.assert_equal(notebook.values(), expected)
    with pytest.raises(RecursionError), graph.cell("a"):
        build.repeated(lambda x: _fail(fs.exp(x)), build.variable())
    assert notebook.operations() == operations
    assert graph.functions == functions
    for cell in "abc":
        assert not notebook.run(cell).is_news


@pytest.mark.slow
def test_a_gradient_that_is_edited_or_removed_leaves_others_as_they_are(graph):
    notebook = Notebook(build.branch)
    expected = notebook.values()

    def other(factor, *before):
        with graph.cell("other") as run:
            for f in before:
                f(notebook.y)
            found = _gradients([notebook.y * factor], fs.trainable_variables())
        return found, run.report

    other(1.0)
    outputs = len(notebook.y.op.outputs)
    for k, before in ((2.0, [fs.exp]), (2.0, []), (3.0, [fs.exp, fs.tanh])):
        (found,), _ = other(k, *before)
        with fs.Session(graph=graph) as session:
            session.run(notebook.init)
            np.testing.assert_allclose(session.run(found), expected["first"][0] * k)
        assert len(notebook.y.op.outputs) == outputs
        np.testing.assert_equal(notebook.values(), expected)
    with graph.cell("other"):
        pass
    assert not notebook.run("a").is_news
    np.testing.assert_equal(notebook.values(), expected)
    fs.Graph.from_text(graph.text(exact=True))


@pytest.mark.parametrize("make", [build.loop, build.branch, build.calls])
def test_a_graph_with_stale_gradients_can_be_written(graph, make):
    notebook = Notebook(make)
    notebook.k = 3.0
    assert notebook.run("a").stale == ("b",)
    with fs.Graph.from_text(graph.text(exact=True)).as_default() as read:
        (z,) = (t.op.name for t in [notebook.z])
        with fs.Session(graph=read) as session, fs.Session(graph=graph) as here:
            session.run(notebook.init.name)
            here.run(notebook.init)
            assert session.run(f"{z}:0") == here.run(notebook.z)


def test_lines_put_before_shift_names_and_what_they_stand_for(graph):
    def built(count):
        with graph.cell("a") as run:
            for _ in range(count):
                fs.while_loop(lambda i: i < 2, lambda i: i + 1, [0])
            y = fs.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, x * 2.0), [0, 1.0])[1]
        with fs.Session(graph=graph) as session:
            assert session.run(y) == 8.0
        assert len(graph.functions) == 2 + 2 * count
        check_blocks(graph)
        return run.report

    built(0)
    for count, is_news in ((1, True), (1, False), (2, True), (0, True), (0, False)):
        assert built(count).is_news is is_news


def test_bodies_that_were_dropped_are_let_go(graph):
    with graph.cell("v"):
        v = build.variable()
    counts = []
    for _ in range(4):
        with graph.cell("a"):
            build.repeated(lambda x: fs.tanh(x * v), fs.ones([2], fs.float64))
        gc.collect()
        mine = (type(o) is fs.Operation and o.graph is graph for o in gc.get_objects())
        counts.append(sum(mine))
    assert counts[1] == counts[2] == counts[3]


def test_what_a_body_takes_from_another_cell_may_change(graph):
    def outside(value):
        with graph.cell("outside"):
            return fs.constant(value, fs.float64, name="c")

    c = outside(2.0)
    with graph.cell("a"):
        y = build.repeated(lambda x: x * c, fs.ones([], fs.float64))
    with graph.cell("b"):
        g = fs.gradients(y, c)[0]
    with fs.Session(graph=graph) as session:
        assert session.run([y, g]) == [8.0, 12.0]
        outside(3.0)
        assert session.run(y) == 27.0
        with pytest.raises(fs.errors.StaleError):
            session.run(g)
        with graph.cell("a") as run:
            build.repeated(lambda x: x * c, fs.ones([], fs.float64))
        assert run.report.changed == run.report.new == 0
        with graph.cell("b"):
            g = fs.gradients(y, c)[0]
        assert session.run([y, g]) == [27.0, 27.0]
        outside([1.0, 2.0])
        with pytest.raises(fs.errors.StaleError):
            session.run(y)
        with graph.cell("a"):
            c = graph.get_tensor_by_name("c:0")
            y = build.repeated(lambda x: x * c, fs.ones([2], fs.float64))
        assert session.run(y).tolist() == [1.0, 8.0]


def test_a_traced_function_that_python_holds_goes_on_working(graph):
    def built():
        with graph.cell("a") as run:
            f = fs.function(lambda x: x * 2.0, name="f")
            build.repeated(lambda x: f(x), fs.ones([], fs.float64))
            return f, f(fs.constant(3.0, fs.float64)), run

    built()
    f, y, run = built()
    assert not run.report.is_news
    with graph.cell("b"):
        z = f(y)
    with fs.Session(graph=graph) as session:
        assert session.run(z) == 12.0
    with fs.Graph.from_text(graph.text(exact=True)).as_default() as read, fs.Session() as session:
        assert session.run(read.get_tensor_by_name(z.name)) == 12.0


@pytest.mark.parametrize(
    "make",
    [
        lambda c: fs.while_loop(
            lambda i, x: i < 3, lambda i, x: (i + 1, fs.reshape(x, c)), [0, fs.ones([2, 3])]
        )[1],
        lambda c: fs.cond(
            fs.placeholder_with_default(True, []), lambda: fs.zeros(c), lambda: fs.ones(c)
        ),
        lambda c: fs.function(lambda x: fs.reshape(x, c), name="f")(fs.ones([6])),
    ],
    ids=["loop", "branch", "call"],
)
def test_shapes_in_a_body_that_follow_from_a_constant_outside(graph, make):
    def outside(value):
        with graph.cell("outside"):
            return fs.constant(value, name="c")

    def inside():
        with graph.cell("a"):
            return make(c)

    c = outside([2, 3])
    y = inside()
    outside([3, 2])
    with fs.Session(graph=graph) as session:
        with pytest.raises(fs.errors.StaleError, match=r"float32\[3,2\] with its new inputs"):
            session.run(y)
        y = inside()
        assert session.run(y).shape == (3, 2)
