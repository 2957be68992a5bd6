"""Edits of programs: what is made anew, what is shared, and what stays as it was."""

import gc

import pytest
from verified_plans import fingerprint

import flowscope as fs
from flowscope.plan.ir.collector import paused_collector
from flowscope.plan.ir.program import Node
from flowscope.plan.ir.rewriting import ProgramEdits, changed, made_like, replaced
from flowscope.plan.ir.structured import CondNode, LoopNode

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def program():
    """a, b, a loop over both whose body uses b, a branch in it, and c that uses the loop."""
    x = fs.placeholder(fs.float32, [], name="x")
    a, b = fs.sin(x, name="a"), fs.cos(x, name="b")

    def body(i, v):
        return i + 1, fs.cond(v > 0.0, lambda: v * b, lambda: fs.negative(v), name="choice")

    y = fs.while_loop(lambda i, v: i < 3, body, [0, a], name="loop")[1]
    c = fs.exp(y, name="c")
    with fs.Session(config=fs.ConfigProto(mode="op")) as sess:
        return sess.plan([c, a], [x]).program


def named(program, name):
    return next(n for n in program.walk() if n.name == name)


def test_no_edit_makes_no_program(program):
    assert ProgramEdits().applied(program) is program
    assert changed(program, {}) is program
    assert replaced(program, {}) is program


def test_what_does_not_change_is_shared_and_the_program_before_stays(program):
    before = fingerprint(program)
    found = changed(program, {named(program, "b"): {"name": "other"}})
    assert fingerprint(program) == before
    kept = {n.name for n in found.nodes if n in program.nodes}
    assert "a" in kept
    assert kept.isdisjoint({"other", "loop/Loop", "c"}), "these take what has changed"
    branch = next(n for n in found.walk() if isinstance(n, CondNode))
    assert named(found, "other").outputs[0] in branch.captured
    assert "other" in found.text()
    assert "other" not in program.text()


def test_a_node_of_a_block_changes_the_nodes_around_it(program):
    before = fingerprint(program)
    inner = next(n for n in program.walk() if isinstance(n, CondNode)).orelse.nodes[0]
    found = changed(program, {inner: {"group": "g"}})
    assert fingerprint(program) == before
    assert named(found, inner.name).group == "g"
    assert [n.name for n in found.nodes if n not in program.nodes] == ["loop/Loop", "c"]


def test_nodes_are_inserted_dropped_and_replaced(program):
    a, b, edits = named(program, "a"), named(program, "b"), ProgramEdits()
    made = made_like(b.op, a, a.inputs)
    edits.insert([made], a)
    edits.drop(a, [made])
    edits.same[a.outputs[0]] = made.outputs[0]
    found = edits.applied(program)
    assert found.fetches[1] is made.outputs[0]
    assert made in found.nodes
    assert a not in found.nodes
    (loop,) = [n for n in found.nodes if isinstance(n, LoopNode)]
    assert made.outputs[0] in loop.starts


def test_what_waited_for_a_dropped_node_waits_for_what_is_there_instead():
    x = fs.placeholder(fs.float32, [], name="x")
    a, b = fs.sin(x, name="a"), fs.cos(x, name="b")
    with fs.control_dependencies([a]):
        c = fs.exp(x, name="c")
    with fs.Session(config=fs.ConfigProto(mode="op")) as sess:
        program = sess.plan([c, b], [x]).program
    edits = ProgramEdits()
    edits.drop(named(program, "a"), [named(program, "b")])
    found = edits.applied(program)
    assert named(found, "c").control == (named(found, "b"),)
    assert [n.name for n in found.nodes] == ["b", "c"]


def test_a_copy_has_outputs_of_its_own(program):
    node = named(program, "loop/Loop")
    made = node.copy()
    fields = [name for name in Node.__slots__ if name != "outputs"]
    assert type(made) is LoopNode
    assert all(getattr(made, name) is getattr(node, name) for name in fields)
    assert [(v.node, v.index) for v in made.outputs] == [(made, 0), (made, 1), (made, 2)][
        : len(node.outputs)
    ]


@pytest.mark.parametrize("is_on", [True, False])
def test_the_collector_is_paused_and_goes_on_as_before(is_on):
    was_on = gc.isenabled()
    try:
        (gc.enable if is_on else gc.disable)()
        with paused_collector():
            assert not gc.isenabled()
        assert gc.isenabled() == is_on
    finally:
        (gc.enable if was_on else gc.disable)()
