"""Cells that are interrupted at any line of any code: as if they had not run."""

import asyncio
import contextlib
import gc
import random
import signal
import sys
from types import FrameType

import pytest

import flowscope as fs
from flowscope import cells

#: An interrupt that comes in a destructor is printed and goes no further.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

#: The code of context managers that are generators.
CONTEXTS = contextlib.contextmanager.__code__.co_filename

BUILD = """
with fs.name_scope("m"), fs.control_dependencies([fs.constant(1.0)]), fs.device("/cpu:0"):
    x = fs.placeholder(fs.float32, [None, 2], name="x")
    with fs.variable_scope("vs"):
        w = fs.get_variable("w", [2, 2])
    turn = lambda i, a: (i + 1, fs.cond(a[0, 0] > 0.0, lambda: fs.matmul(a, w), lambda: fs.exp(a)))
    y = fs.while_loop(lambda i, a: i < 3, turn, [0, x])[1]
    fs.add_to_collection("kept", y)
    loss = fs.reduce_mean(y)
    train = fs.train.MomentumOptimizer(0.1, 0.9).minimize(loss, var_list=[w])
"""
RUN = """
with fs.Session() as sess:
    sess.run(fs.global_variables_initializer())
    sess.run([train, loss], {x: np.ones((1, 2))})
"""
PROBE = """
probe = fs.constant(1.0, name="probe").op
state = (probe.name, probe.device, len(probe.control_inputs), fs.get_variable_scope().name,
         fs.get_default_session() is None)
"""


class Interrupter:
    """Sends SIGINT when the n-th line of a cell's run is reached, in whatever code that is."""

    def __init__(self, at: int) -> None:
        self.count = 0
        self._at = at

    def __call__(self, frame: FrameType, event: str, arg: object):
        del arg
        self.count += 1
        if self.count == self._at:
            signal.raise_signal(signal.SIGINT)
        return self


def interrupted(notebook, cell, source, at):
    """Runs a cell and interrupts it; returns how many lines were passed."""
    interrupter, before = Interrupter(at), sys.gettrace()
    sys.settrace(interrupter)
    try:
        notebook.run(cell, source)
    except KeyboardInterrupt:
        pass  # it came while IPython was at its end with the cell
    finally:
        sys.settrace(before)
    return interrupter.count


def described():
    """The default graph as data, without the numbers of operations."""
    graph = fs.get_default_graph()
    operations = graph.get_operations()
    assert all(graph._by_name[op.name] is op for op in operations)
    assert set(graph._by_name) == {op.name for op in operations}
    lines = [(op.name, op.type, [t.name for t in op.inputs]) for op in operations]
    collections = {k: [getattr(e, "name", "") for e in v] for k, v in graph._collections.items()}
    return lines, collections, dict(graph._names), sorted(graph.functions)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("edit", ["exp", "tanh"], ids=["same", "edited"])
def test_an_interrupted_cell_is_as_if_it_had_not_run(notebook, seed, edit):
    draw = random.Random(seed)
    notebook.ok("b", BUILD)
    notebook.ok("r", RUN)
    notebook.ok("p", PROBE)
    count = interrupted(notebook, "b", BUILD, -1)
    notebook.ok("r", RUN)
    notebook.ok("p", PROBE)
    known = described()
    for _ in range(10):
        interrupted(notebook, "b", BUILD.replace("exp", edit), draw.randrange(count))
        notebook.ok("p", PROBE)
        assert notebook["state"] == ("probe", "", 0, "", True)
        notebook.ok("b", BUILD)
        notebook.ok("r", RUN)
        assert described() == known


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_first_run_that_is_interrupted_leaves_nothing(notebook, seed):
    draw = random.Random(seed)
    notebook.ok("b", BUILD)
    count = interrupted(notebook, "b", BUILD, -1)
    notebook.ok("r", RUN)
    known = described()
    for k in range(6):
        notebook.ok("reset", "fs.reset_default_graph()")
        interrupted(notebook, f"b{seed}.{k}", BUILD, draw.randrange(count))
        notebook.ok(f"b{seed}.{k}", BUILD)
        notebook.ok(f"r{seed}.{k}", RUN)
        assert described() == known


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_cell_that_is_interrupted_after_a_step_keeps_a_whole_graph(notebook, seed):
    draw = random.Random(seed)
    more = """
z = fs.placeholder(fs.float32, [], name="z")
s = fs.Session()
s.run(z * 2.0, {z: 1.0})
s.close()
"""
    both = more + BUILD
    notebook.ok("b", both)
    count = interrupted(notebook, "b", both, -1)
    for _ in range(8):
        interrupted(notebook, "b", both.replace("exp", "tanh"), draw.randrange(count))
        described()
        notebook.ok("p", PROBE)
        assert notebook["state"] == ("probe", "", 0, "", True)
        notebook.ok("b", both)
        notebook.ok("r", RUN)
        described()


def test_an_interrupt_where_a_cell_begins_and_ends_comes_in_between(notebook):
    notebook.ok("b", 'x = fs.constant(1.0, name="x")')
    before = sys.gettrace()
    for where in ("_before_cell", "_begin", "_end", "_after_cell", "undo", "restore"):
        met = []

        def trace(frame, event, arg, where=where, met=met):
            if event == "call" and frame.f_code.co_name == where and not met:
                met.append(where)
                signal.raise_signal(signal.SIGINT)

        sys.settrace(trace)
        try:
            notebook.run("b", 'x = fs.constant(2.0, name="x")\n1 / 0')
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        assert met
        notebook.ok("b", 'x = fs.constant(1.0, name="x")')
        assert [op.name for op in fs.get_default_graph().get_operations()] == ["x"]


def test_a_cancelled_cell_is_taken_back(notebook):
    notebook.ok("a", "import asyncio\nx = fs.constant(1.0, name='x')\nawait asyncio.sleep(0)")
    later = "x = fs.constant(2.0, name='x')\nawait asyncio.sleep(0)\nraise asyncio.CancelledError"
    with contextlib.suppress(asyncio.CancelledError):  # IPython hands it on or shows it
        notebook.run("a", later)
    notebook.ok("s", "with fs.Session() as sess:\n    value = sess.run('x:0')")
    assert notebook["value"] == 1.0


def test_code_that_a_cell_runs_as_a_cell_belongs_to_that_cell(notebook):
    inner = "get_ipython().run_cell(\"y = fs.constant(2.0, name='y')\", cell_id='inner')\n"
    source = "x = fs.constant(1.0, name='x')\n" + inner + "z = x + y"
    for _ in range(2):
        notebook.ok("a", source)
    graph = fs.get_default_graph()
    assert [op.name for op in graph.get_operations()] == ["x", "y", "add"]
    assert len({graph.observer.of(op) for op in graph.get_operations()}) == 1


def test_scopes_that_an_interrupt_has_left_open_are_closed(notebook):
    graph = fs.get_default_graph()
    with contextlib.suppress(KeyboardInterrupt), graph.cell("a"):
        scope = graph.name_scope("left")
        scope.__enter__()
        graph.control_dependencies([fs.constant(1.0)]).__enter__()
        raise KeyboardInterrupt
    del scope
    assert (graph.get_name_scope(), graph.building_context()[1], len(graph)) == ("", (), 0)


def test_the_default_graph_and_session_are_those_of_before(notebook):
    graph = fs.get_default_graph()
    notebook.run(
        "a",
        "fs.reset_default_graph()\nfs.Graph().as_default().__enter__()\n"
        "fs.InteractiveSession()\nraise KeyboardInterrupt",
    )
    assert fs.get_default_graph() is graph
    assert fs.get_default_session() is None
    assert cells.notebook._running is None


def test_a_scope_that_an_earlier_error_holds_open_is_closed_with_the_cell(notebook):
    """An interrupt can come between a scope's beginning and its body, and then another one."""
    graph = fs.get_default_graph()
    met = []

    def trace(frame, event, arg):
        is_enter = (frame.f_code.co_filename, frame.f_code.co_name) == (CONTEXTS, "__enter__")
        if event == "return" and is_enter and not met:
            met.append(event)
            del frame  # the error holds this call, and is to hold no other through it
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    raised = []
    try:
        with graph.cell("a"):
            try:
                sys.settrace(trace)
                with graph.name_scope("left"):
                    pass
            except KeyboardInterrupt:
                sys.settrace(before)
                raise KeyboardInterrupt from None
    except KeyboardInterrupt as e:
        raised.append(e)  # as IPython keeps the latest error
    assert met and raised[0].__context__ is not None
    assert graph.get_name_scope() == ""
    with graph.name_scope("other"):
        raised.clear()
        gc.collect()
        assert graph.get_name_scope() == "other"
