"""The verifier sees what is wrong with a program, and nothing in those that planning makes."""

import dataclasses
from types import SimpleNamespace

import pytest
from verified_plans import verify_all_plans

import flowscope as fs
from flowscope.graph.op import Spec
from flowscope.plan import pipeline
from flowscope.plan.ir.program import Value
from flowscope.plan.ir.structured import CondNode, LoopNode
from flowscope.plan.pipeline import Pass
from flowscope.plan.verify import verify

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def program():
    """A program with a variable, a loop that keeps lists for its gradient, and a branch."""
    w = fs.Variable(2.0, name="w")
    x = fs.placeholder(fs.float32, [], name="x")
    n = fs.placeholder(fs.int32, [], name="n")
    _, y = fs.while_loop(
        lambda i, v: i < n, lambda i, v: (i + 1, fs.sin(v * w)), [0, x], name="loop"
    )
    z = fs.cond(y > 0.0, lambda: y * 3.0, lambda: fs.negative(y), name="choice")
    (gradient,) = fs.gradients(z, [w])
    with fs.control_dependencies([gradient]):
        done = w.assign_add(gradient)
    with fs.Session(config=fs.ConfigProto(mode="op")) as sess:
        yield sess.plan([z, gradient, done], [x, n]).program


def only(program, kind):
    return next(n for n in program.nodes if isinstance(n, kind))


def test_a_sound_program_passes(program):
    verify(program)


def test_nothing_is_used_before_it_is_made(program):
    last, *rest = reversed(program.nodes)
    with pytest.raises(fs.errors.InternalError, match="comes not before it"):
        verify(dataclasses.replace(program, nodes=(last, *reversed(rest))))
    verify(dataclasses.replace(program, nodes=program.nodes), is_ordered=False)


def test_a_fetch_and_a_control_input_must_be_there(program):
    stranger = Value(None, 7, Spec(fs.float32, ()))
    with pytest.raises(fs.errors.InternalError, match="feed7 is missing"):
        verify(dataclasses.replace(program, fetches=(stranger,)))
    first, *rest = program.nodes
    rest[-1].control = (first,)
    with pytest.raises(fs.errors.InternalError, match="comes not before it"):
        verify(dataclasses.replace(program, nodes=tuple(rest)))


def test_specs_are_those_that_ops_infer(program):
    loop = only(program, LoopNode)
    sine = next(n for n in loop.body.nodes if n.op.type == "Sin")
    sine.outputs[0].spec = Spec(fs.float32, (3,))
    with pytest.raises(fs.errors.InternalError, match=r"float32\[3\], and its op infers"):
        verify(program)


def test_loops_and_branches_agree_with_their_blocks(program):
    loop = only(program, LoopNode)
    loop.op = dataclasses.replace(loop.op, variables=loop.variables - 1)
    with pytest.raises(fs.errors.InternalError, match="parameters and elements, not"):
        verify(program)
    loop.op = dataclasses.replace(loop.op, variables=loop.variables + 1)
    branch = only(program, CondNode)
    then, orelse = branch.blocks
    branch.blocks = (dataclasses.replace(then, fetches=()), orelse)
    with pytest.raises(fs.errors.InternalError, match="results of then, not"):
        verify(program)


def test_every_node_has_an_origin(program):
    program.nodes[0].origins = ()
    with pytest.raises(fs.errors.InternalError, match="it has no origin"):
        verify(program)


def test_the_verifier_is_behind_every_pass_of_the_tests():
    """Without it a fault of a pass would show as a wrong number somewhere, if at all."""
    from flowscope.plan import pipeline

    assert all(hasattr(one.run, "__wrapped__") for one in pipeline.PASSES)
    assert hasattr(pipeline.prune, "__wrapped__")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda p: setattr(p.nodes[0], "reason", "moved"), "has changed its program"),
        (lambda p: dataclasses.replace(p), "has copied a program"),
        (lambda p: dataclasses.replace(p, nodes=p.nodes[::-1]), "comes not before it"),
    ],
)
def test_a_pass_that_errs_is_found_behind_passes_that_change_nothing(
    program, monkeypatch, spoil, message
):
    def erring(given, request):
        return spoil(given) or given

    idle = [Pass(f"idle{i}", lambda given, request: given, "", "") for i in range(2)]
    monkeypatch.setattr(pipeline, "PASSES", (*idle, Pass("erring", erring, "", ""), *idle))
    verify_all_plans(monkeypatch)
    with pytest.raises((AssertionError, fs.errors.InternalError), match=message):
        [*pipeline.stages(program, SimpleNamespace(mode="op"))]
