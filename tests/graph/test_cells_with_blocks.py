"""Cells that build loops, branches and functions, run again: what is the same stays the same."""

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
        """Returns what a new session finds: random numbers depend on the number of its steps."""
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
    for function in graph.functions.values():
        for op in function.block.operations:
            assert graph.get_operation_by_name(op.name) is op
            assert op in graph.get_operations()


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
