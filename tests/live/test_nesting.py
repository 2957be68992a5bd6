"""Frames of loops and branches: which scope shows one, and what lies in it."""

from __future__ import annotations

import pytest

import flowscope as fs
from flowscope.live.graphs.nesting import around, frame_path, givers, returns, takers
from flowscope.live.graphs.nodes import node_of
from flowscope.live.graphs.text import scope_tree, text


@pytest.fixture
def nodes(graph):
    x = fs.placeholder(fs.float32, [], name="x")
    y = fs.while_loop(lambda v: v < 9.0, lambda v: v * x, [x], name="loop")
    fs.gradients(y, x, name="gradients")
    return {op.name: node_of(op, None) for op in graph.get_operations()}


def test_a_loop_is_shown_by_the_scope_that_was_made_for_it(nodes):
    loop = nodes["loop/Loop"]
    assert frame_path(loop) == "loop"
    (backward,) = [n for n in nodes.values() if n.type == "Loop" and n is not loop]
    assert frame_path(backward) == backward.name
    outside = around(nodes.values())
    assert outside["loop/body"] == outside["loop/cond"] == "loop"
    assert outside[backward.runs[0]] == backward.name


def test_bodies_lie_in_the_frame_of_what_runs_them(nodes):
    root, homes = scope_tree(nodes.values())
    scope = homes[nodes["loop/Loop"].id]
    assert scope.path == "loop" and scope.frame is nodes["loop/Loop"]
    inside = {child.path: child.name for child in scope.children if hasattr(child, "path")}
    assert inside == {"loop/body": "body", "loop/cond": "cond"}
    (gradient,) = [n for n in nodes.values() if n.type == "Loop" and n.name != "loop/Loop"]
    body = homes[gradient.carried[0].parameter]
    assert (body.name, body.parent) == ("body", homes[gradient.id])
    assert root.size == len(nodes)
    assert "  cond/  " in text(list(nodes.values()))


def test_what_enters_and_leaves_a_loop(nodes):
    loop = nodes["loop/Loop"]
    names = {node.id: name for name, node in nodes.items()}
    entered = [[names[i] for i in takers(loop, k)] for k in range(len(loop.inputs))]
    assert entered[0] == ["loop/cond/v", "loop/body/v"]
    assert names[givers(loop, 0)[0][0]] == "loop/body/mul"
    assert givers(loop, 1) == [(loop.id, 1)], "the number of iterations is the loop's own"
    assert [(names[end[0]], names[parameter]) for end, parameter in returns(loop)] == [
        ("loop/body/mul", "loop/cond/v"),
        ("loop/body/mul", "loop/body/v"),
    ]
