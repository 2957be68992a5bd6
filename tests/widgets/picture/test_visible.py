"""Which boxes and edges there are."""

from __future__ import annotations

from dataclasses import replace

import picture_graphs as graphs
import pytest

from flowscope.live.schema import Node
from flowscope_widgets.picture.opening import MOST, SOME
from flowscope_widgets.picture.visible import Box, View, view_of, walk


def _box(view: View, id: str) -> Box:
    return next(box for box in walk(view.root) if box.id == id)


def _edges(view: View, *, control: bool = False) -> dict[tuple[str, str], int]:
    return {(e.source.id, e.target.id): e.count for e in view.edges if e.is_control == control}


def test_names_make_scopes() -> None:
    m = graphs.Maker()
    m.op("a/b/c", "Op")
    m.op("a/b", "Op")
    m.op("d", "Op")
    view = view_of(m.nodes, ())
    assert {box.id: box.parent.id for box in walk(view.root) if box.parent} == {
        "scope:a": "scope:",
        "op:2": "scope:",
        "scope:a/b": "scope:a",
        "op:0": "scope:a/b",
        "op:1": "scope:a/b",
    }


def test_what_stands_in_a_body_lies_there_whatever_its_name() -> None:
    m = graphs.Maker()
    m.op("w/read", "ReadVariableOp", [m.op("w", "VarHandleOp")])
    m.op("w/read_1", "ReadVariableOp", [m.op("f/x", "Parameter", body="f")], body="f")
    view = view_of(m.nodes, ("f",))
    inside = _box(view, "op:3")
    assert (inside.name, inside.parent and inside.parent.id) == ("w/read_1", "scope:f")


def _named(view: View, nodes: list[Node]) -> dict[str, set[str]]:
    names = {f"op:{node.id}": node.name for node in nodes}
    found: dict[str, set[str]] = {}
    for e in view.edges:
        kind = "return" if e.is_return else "control" if e.is_control else "data"
        pair = f"{names.get(e.source.id, e.source.id)} > {names.get(e.target.id, e.target.id)}"
        found.setdefault(kind, set()).add(pair)
    return found


def test_an_open_frame_takes_and_gives_at_its_bodies() -> None:
    nodes = graphs.frames()
    view = view_of(nodes, ())
    assert _box(view, "scope:while/body").parent is _box(view, "scope:while")
    kinds = {box.node.name: box.kind for box in view.leaves() if box.node}
    assert kinds["while/body/v"] == "variable" and kinds["while/cond/n"] == "from outside"
    assert (kinds["while/Loop"], kinds["if/Cond"]) == ("while true", "if true")
    edges = _named(view, nodes)
    assert edges["return"] == {
        "while/body/Square > while/body/v",
        "while/body/Square > while/cond/v",
    }
    assert edges["control"] == {
        "while/Loop > while/body/v",
        "if/Cond > if/then/v",
        "if/Cond > if/else/v",
    }
    data = edges["data"]
    assert {"x > while/body/v", "x > while/cond/v", "n > while/cond/n"} <= data
    assert {"while/cond/Less > while/Loop", "while/body/Square > if/then/v"} <= data
    assert {"Greater > if/Cond", "if/then/Neg > y", "if/else/Exp > y"} <= data


def test_a_closed_frame_is_one_box() -> None:
    nodes = graphs.frames()
    m = graphs.Maker()
    for k in range(SOME):
        m.op(f"z{k}", "Op")
    more = [replace(node, id=100 + node.id) for node in m.nodes]
    edges = _named(view_of([*nodes, *more], ()), nodes)
    assert edges == {
        "data": {
            "x > scope:while",
            "n > scope:while",
            "n > Greater",
            "scope:while > Greater",
            "scope:while > scope:if",
            "Greater > scope:if",
            "scope:if > y",
        }
    }


def test_bundled_edges_are_counted() -> None:
    m = graphs.Maker()
    a, b = m.op("s/a", "Op", shape=(2,)), m.op("s/b", "Op", shape=(3,))
    m.op("t/c", "Op", [a, b])
    for k in range(SOME):
        m.op(f"s/{k}", "Op")
        m.op(f"t/{k}", "Op")
    view = view_of(m.nodes, ())
    assert _edges(view) == {("scope:s", "scope:t"): 2}
    assert view.edges[0].label == ""
    assert (view.closed, view.missing) == (2 * SOME + 3, 0)


def test_big_scopes_open_first_variables_never_by_themselves() -> None:
    view = view_of(graphs.mlp(), ())
    opened = {box.name for box in view.opened()}
    assert {"train", "layer1", "layer2", "loss", "gradients"} <= opened
    assert _box(view, "scope:layer1/w").children is None
    assert len(list(walk(view.root))) <= SOME + 1


def test_scopes_open_when_asked_and_so_do_those_around() -> None:
    view = view_of(graphs.towers(20, 3), ("tower7/layer1/w",))
    assert [b.id[6:] for b in view.opened()] == ["", "tower7", "tower7/layer1", "tower7/layer1/w"]


@pytest.mark.slow
def test_a_cap_keeps_scopes_closed() -> None:
    wide = graphs.towers(20, 60)
    view = view_of(wide, [f"tower{k}" for k in range(20)])
    boxes = len(list(walk(view.root))) - 1
    assert MOST - 70 < boxes <= MOST
    assert view.closed > 0
    assert view.missing == 0


def test_a_cap_cuts_a_flat_graph() -> None:
    view = view_of(graphs.chain(MOST + 7), ())
    assert len(view.leaves()) == MOST
    assert view.missing == 7


def test_ops_without_data_stand_aside() -> None:
    view = view_of(graphs.mlp(), ())
    names = {box.node.name: box for box in walk(view.root) if box.node}
    assert names["init"].is_aside
    assert names["init"].after == ["layer1/w", "layer1/b", "layer2/w", "layer2/b"]
    assert names["train"].is_aside
    assert not any(names["init"] in (e.source, e.target) for e in view.edges)


def test_control_edges_into_the_flow_are_kept() -> None:
    m = graphs.Maker()
    x = m.op("x", "Placeholder")
    m.op("ready", "NoOp", outputs=0)
    m.op("y", "Neg", [x], control=["ready"])
    view = view_of(m.nodes, ())
    assert _edges(view, control=True) == {("op:1", "op:2"): 1}


def test_unknown_producers_are_left_out() -> None:
    nodes = graphs.mlp()[20:]
    view = view_of(nodes, ())
    assert view.count == len(nodes)
