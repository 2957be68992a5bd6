"""Nothing overlaps, everything lies in its scope, and edges lead from box to box: both layouts."""

from __future__ import annotations

import itertools
import math
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import picture_graphs as graphs
import pytest

from flowscope.live.schema import Node
from flowscope_widgets.picture import dot, engines, own
from flowscope_widgets.picture.geometry import Placement, Rect
from flowscope_widgets.picture.visible import View, view_of, walk

Layout = Callable[[View], Placement]

CASES: dict[str, tuple[Sequence[Node], tuple[str, ...]]] = {
    "mlp": (graphs.mlp(), ()),
    "mlp open": (graphs.mlp(), ("layer1/w", "train/gradients/layer2")),
    "awkward": (graphs.awkward(), ("s & t", "u")),
    "loop": (graphs.loop(), ()),
    "towers": (graphs.towers(5, 3), ("tower2/layer1",)),
    "random": (graphs.tangle(60, seed=3), ()),
    "star": (graphs.star(40), ()),
}


@pytest.fixture(params=CASES)
def view(request: pytest.FixtureRequest) -> View:
    return view_of(*CASES[request.param])


def test_siblings_do_not_overlap(view: View, layout: Layout) -> None:
    rects = layout(view).rects
    for scope in view.opened():
        for a, b in itertools.combinations(scope.children or (), 2):
            assert not _shrunk(rects[a]).meets(_shrunk(rects[b])), (a.id, b.id)


def test_boxes_lie_in_their_scopes(view: View, layout: Layout) -> None:
    placement = layout(view)
    page = Rect(0.0, 0.0, placement.w, placement.h)
    for box in walk(view.root):
        if box.parent is not None:
            outer = placement.rects.get(box.parent, page)
            assert _holds(outer, placement.rects[box]), box.id


def test_edges_touch_their_boxes(view: View, layout: Layout) -> None:
    placement = layout(view)
    assert set(placement.routes) == set(view.edges)
    for edge, chain in placement.routes.items():
        assert len(chain) % 3 == 1
        assert _distance(placement.rects[edge.source], *chain[0]) < 3
        assert _distance(placement.rects[edge.target], *chain[-1]) < 3


def test_data_runs_downwards(layout: Layout) -> None:
    view = view_of(graphs.mlp(), ())
    placement = layout(view)
    for edge in view.edges:
        upper, lower = placement.rects[edge.source], placement.rects[edge.target]
        assert upper.y + upper.h <= lower.y, (edge.source.id, edge.target.id)


def test_wide_rows_are_wrapped() -> None:
    assert own.lay_out(view_of(graphs.star(60), ())).w < 3000
    assert engines.lay_out(view_of(graphs.star(60), ())).w < 3000


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError("dot"),
        subprocess.TimeoutExpired("dot", dot.TIMEOUT_S),
        subprocess.CalledProcessError(1, "dot"),
    ],
)
def test_our_own_layout_steps_in(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise error

    monkeypatch.setattr(engines, "layout_engine", lambda: "dot")
    monkeypatch.setattr(subprocess, "run", fail)
    pytest.importorskip("graphviz")
    view = view_of(graphs.mlp(), ())
    assert engines.lay_out(view).rects == own.lay_out(view).rects


def test_nonsense_from_dot_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("graphviz")
    monkeypatch.setattr(dot, "_run", lambda source: '{"bb": "0,0,1,1"}')
    with pytest.raises(dot.DotError, match="expected positions"):
        dot.lay_out(view_of(graphs.mlp(), ()))


def test_the_engine_is_told(own_layout: None) -> None:
    assert engines.layout_engine() == "own"


def _shrunk(rect: Rect) -> Rect:
    """Rounding in dot's numbers is no overlap."""
    return Rect(rect.x + 0.5, rect.y + 0.5, rect.w - 1, rect.h - 1)


def _holds(outer: Rect, inner: Rect) -> bool:
    return (
        outer.x - 0.1 <= inner.x
        and outer.y - 0.1 <= inner.y
        and inner.x + inner.w <= outer.x + outer.w + 0.1
        and inner.y + inner.h <= outer.y + outer.h + 0.1
    )


def _distance(rect: Rect, x: float, y: float) -> float:
    dx = max(rect.x - x, x - rect.x - rect.w, 0.0)
    dy = max(rect.y - y, y - rect.y - rect.h, 0.0)
    return math.hypot(dx, dy)
