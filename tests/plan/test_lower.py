"""Lowering as text: branches and loops in, primitives out."""

from __future__ import annotations

import re

import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def lowered(fetches, feeds=()):
    """Returns the lowered program's lines: name = op(inputs), and what they wait for."""
    with fs.Session(config=fs.ConfigProto(mode="tokens")) as s:
        text = s.plan(fetches, list(feeds)).text("lower")
    text = re.sub(r" on /job\S*", "", text)
    return [re.sub(r"   .*?(?= after |$)", "", line) for line in text.splitlines()]


def of(lines, op):
    """Returns the lines of one op."""
    return [line for line in lines if f"= {op}(" in line]


def test_a_branch_has_a_switch_per_value_and_a_merge_per_output():
    p = fs.placeholder(fs.bool, [], name="p")
    x, y = fs.placeholder(fs.float32, [], name="x"), fs.placeholder(fs.float32, [], name="y")
    a, b = fs.cond(p, lambda: (x + y, -x), lambda: (y, fs.exp(y)), name="c")
    assert lowered([a, b], [p, x, y]) == [
        "feed0 = feed",
        "feed1 = feed",
        "feed2 = feed",
        "c/Cond/Switch_then = Switch(feed1, feed0)",
        "c/Cond/Switch_then_1 = Switch(feed2, feed0)",
        "c/then/add = Add(c/Cond/Switch_then:1, c/Cond/Switch_then_1:1)",
        "c/then/Neg = Neg(c/Cond/Switch_then:1)",
        "c/Cond/Switch_else = Switch(feed2, feed0)",
        "c/else/Exp = Exp(c/Cond/Switch_else:0)",
        "c/Cond/Merge = Merge(c/Cond/Switch_else:0, c/then/add)",
        "c/Cond/Merge_1 = Merge(c/else/Exp, c/then/Neg)",
        "fetch c/Cond/Merge:0, c/Cond/Merge_1:0",
    ]


def test_what_takes_nothing_waits_for_the_branchs_pivot():
    p = fs.placeholder(fs.bool, [], name="p")
    y = fs.cond(p, lambda: fs.random_uniform([], seed=1), lambda: 0.0, name="c")
    lines = lowered(y, [p])
    (drawn,) = [line for line in lines if "RandomUniform(" in line]
    assert drawn.endswith("after c/Cond/pivot")
    assert "c/Cond/pivot = Identity(c/Cond/Switch_then:1)" in lines


def test_a_loop_has_five_primitives_per_variable_and_one_frame():
    n = fs.placeholder(fs.int32, [], name="n")
    i = fs.while_loop(lambda i: i < n, lambda i: i + 1, [0], name="w", parallel_iterations=3)
    lines = lowered(i, [n])
    assert lines == [
        "feed0 = feed",
        "w/Const = Const()",
        "w/Loop/Enter = Enter(w/Const)",
        "w/Loop/Merge = Merge(w/Loop/Enter, w/Loop/NextIteration)",
        "w/Loop/Enter_1 = Enter(feed0)",
        "w/cond/Less = Less(w/Loop/Merge:0, w/Loop/Enter_1)",
        "w/Loop/LoopCond = LoopCond(w/cond/Less)",
        "w/Loop/Switch = Switch(w/Loop/Merge:0, w/Loop/LoopCond)",
        "w/body/add/y = Const()",
        "w/body/add = Add(w/Loop/Switch:1, w/body/add/y)",
        "w/Loop/NextIteration = NextIteration(w/body/add)",
        "w/Loop/Exit = Exit(w/Loop/Switch:0)",
        "fetch w/Loop/Exit",
    ]
    with fs.Session(config=fs.ConfigProto(mode="tokens")) as s:
        nodes = s.plan(i, [n]).executable.execution.lowered.program.nodes
    enters = {node.name: node.op for node in nodes if node.op.type == "Enter"}
    assert [e.is_constant for e in enters.values()] == [False, True]
    assert {e.parallel_iterations for e in enters.values()} == {3}
    assert len({e.frame_name for e in enters.values()}) == 1


def test_what_an_inner_loop_captures_comes_through_every_frame():
    x = fs.placeholder(fs.float32, [], name="x")

    def outer(i, y):
        _, y = fs.while_loop(lambda j, y: j < 2, lambda j, y: (j + 1, y * x), [0, y], name="inner")
        return i + 1, y

    _, y = fs.while_loop(lambda i, y: i < 2, outer, [0, 1.0], name="outer")
    lines = lowered(y, [x])
    first = next(line for line in of(lines, "Enter") if "(feed0)" in line).partition(" =")[0]
    assert first.startswith("outer/Loop/")
    (second,) = [line for line in of(lines, "Enter") if f"({first})" in line]
    assert "inner" in second
    assert "after" in second, "it must not start the inner loop once the outer one has ended"


def test_each_loop_has_a_frame_of_its_own_also_where_a_function_is_called_twice():
    @fs.function
    def triple(x):
        return fs.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + x), [0, x])[1]

    y = triple(fs.constant(1.0)) + triple(fs.constant(2.0))
    with fs.Session(config=fs.ConfigProto(mode="tokens")) as s:
        nodes = s.plan(y).executable.execution.lowered.program.nodes
        names = {n.op.frame_name for n in nodes if n.op.type == "Enter"}
        assert len(names) == 2
        assert s.run(y) == 24.0


def test_lists_are_variables_and_only_those_that_somebody_reads():
    x = fs.placeholder(fs.float32, [], name="x")
    _, y = fs.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, fs.exp(y) * x), [0, x], name="w")
    assert not of(lowered(y, [x]), "ListPush")
    lines = lowered(fs.gradients(y, x), [x])
    assert of(lines, "ListPush")
    assert len(of(lines, "ListPop")) == len(of(lines, "ListPush"))


def test_accesses_in_branches_and_loops_are_ordered_by_tokens():
    v = fs.Variable(1.0, name="v")
    p = fs.placeholder(fs.bool, [], name="p")
    first = v.assign(2.0, name="first")
    branch = fs.cond(p, lambda: v.assign(3.0, name="inside"), lambda: 0.0, name="c")
    last = v.assign(4.0, name="last")
    lines = lowered([first, branch, last], [p])
    assert "c/Cond/order = Const() after first" in lines
    assert next(x for x in lines if x.startswith("last = ")).endswith("after c/Cond/Merge_1")
    assert re.search(r"c/then/inside = .* after c/Cond/order_\d", "\n".join(lines))


def test_every_node_knows_the_operation_that_it_came_from():
    n = fs.placeholder(fs.int32, [], name="n")
    i = fs.while_loop(lambda i: i < n, lambda i: i + 1, [0], name="w")
    with fs.Session(config=fs.ConfigProto(mode="tokens")) as s:
        nodes = s.plan(i, [n]).executable.execution.lowered.program.nodes
    assert all(node.origins for node in nodes)
    (switch,) = [node for node in nodes if node.op.type == "Switch"]
    assert switch.origins[0].type == "Loop"
