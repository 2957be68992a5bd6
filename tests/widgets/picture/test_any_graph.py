"""Whatever the graph: the picture is well formed, boxes lie apart and in their scopes."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import flowscope as fs
from flowscope.live.nodes import node_of
from flowscope.live.schema import Node, Output
from flowscope_widgets import picture
from flowscope_widgets.picture import engines, own
from flowscope_widgets.picture.geometry import Placement, Rect
from flowscope_widgets.picture.visible import View, view_of, walk

Layout = Callable[[View], Placement]
SCOPES = ["", "a/", "a/b/", "a/b/c/", "d/", "<&>/"]


@st.composite
def graphs(draw: Any) -> tuple[list[Node], list[str]]:
    """Operations in nested scopes with edges to earlier ones, and scopes to open."""
    count = draw(st.integers(1, 14))
    nodes = []
    for i in range(count):
        earlier = st.lists(st.integers(0, i - 1), max_size=3) if i else st.just([])
        nodes.append(
            Node(
                id=i,
                name=f"{draw(st.sampled_from(SCOPES))}op{i}",
                type=draw(st.sampled_from(["Add", "Const", "VarHandleOp", "Placeholder", "NoOp"])),
                inputs=tuple((j, draw(st.integers(0, 1))) for j in draw(earlier)),
                control=tuple(draw(earlier)),
                outputs=(Output("float32", draw(st.sampled_from([None, (), (2, None)]))),),
                attributes={},
                device=draw(st.sampled_from(["", "/device:GPU:0"])),
                placed=None,
                summary="",
                origin=None,
            )
        )
    return nodes, draw(st.lists(st.sampled_from(["a", "a/b", "a/b/c", "d"]), max_size=3))


@pytest.fixture(params=["own", "as installed"])
def layout(request: pytest.FixtureRequest) -> Layout:
    """Our own layout, and dot's where there is one."""
    return own.lay_out if request.param == "own" else engines.lay_out


def check(nodes: list[Node], opened: list[str], layout: Layout) -> None:
    view = view_of(nodes, opened)
    placement = layout(view)
    page = Rect(0.0, 0.0, placement.w, placement.h)
    for box in walk(view.root):
        if box.parent is not None:
            mine, outer = placement.rects[box], placement.rects.get(box.parent, page)
            assert outer.x - 1 <= mine.x
            assert mine.x + mine.w <= outer.x + outer.w + 1
            assert outer.y - 1 <= mine.y
            assert mine.y + mine.h <= outer.y + outer.h + 1
    for scope in view.opened():
        for a, b in itertools.combinations(scope.children or (), 2):
            assert not _inner(placement.rects[a]).meets(_inner(placement.rects[b]))
    ET.fromstring(picture.svg(nodes, open_scopes=opened))


def _inner(r: Rect) -> Rect:
    return Rect(r.x + 1, r.y + 1, r.w - 2, r.h - 2)


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graphs())
def test_random_nested_graphs(layout: Layout, made: tuple[list[Node], list[str]]) -> None:
    check(*made, layout)


def test_functions_and_gradients(layout: Layout, graph: fs.Graph) -> None:
    layer = fs.function(lambda x: fs.tanh(fs.matmul(x, x)), name="layer")
    with fs.name_scope("model"):
        y = layer(layer(fs.ones([2, 2])))
    fs.gradients(y, graph.get_tensor_by_name("model/ones:0"))
    nodes = [node_of(op, None) for op in graph.get_operations()]
    check(nodes, ["model", "layer", "layer_grad"], layout)
    shown = picture.svg(nodes, open_scopes=["layer"])
    assert "MatMul" in shown


@pytest.mark.parametrize("name", ["own", "as installed"])
def test_a_graph_without_operations(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "own":
        monkeypatch.setenv("PATH", "")
    ET.fromstring(picture.svg([]))
