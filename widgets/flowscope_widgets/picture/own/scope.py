"""One open scope, laid out by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from flowscope_widgets.picture.aside import GAP, aside_children, lay_out_aside
from flowscope_widgets.picture.geometry import Point, Rect
from flowscope_widgets.picture.measure import HEADER, PADDING, header_width, size_of
from flowscope_widgets.picture.own import order, ranks, routes
from flowscope_widgets.picture.own.drawing import Drawing, Link, Vertex
from flowscope_widgets.picture.own.straight import straighten
from flowscope_widgets.picture.visible import Box

#: From a child or the upper wall (None), to a child or the lower wall (None), and the leaf whose
#: edges these are.
Segment = tuple[Box | None, Box | None, Box]

#: x of the far ends of the edges of a leaf, beyond the upper ("in") or the lower wall ("out").
Hints = Mapping[tuple[str, Box], float]


@dataclass
class ScopeLayout:
    """An open scope's inside; all relative to its upper left corner."""

    w: float = 0.0
    h: float = 0.0
    rects: dict[Box, Rect] = field(default_factory=dict)
    lines: dict[Segment, list[Point]] = field(default_factory=dict)
    #: x of the ports in the upper ("in") and the lower wall ("out").
    ports: dict[tuple[str, Box], float] = field(default_factory=dict)


def lay_out_scope(
    scope: Box, segments: Mapping[Segment, bool], inner: dict[Box, ScopeLayout], hints: Hints
) -> ScopeLayout:
    """Lays out an open scope whose open children are laid out already (`inner`).

    Args:
        scope: The scope.
        segments: The ways through it that edges take, and whether they run back to the start of
            a loop.
        inner: What is known of its open children.
        hints: Where the far ends of edges are; ports stand in that order where all else is equal.
    """
    drawing, vertices = _drawing(scope, segments, inner, hints)
    ranks.assign(drawing)
    order.order(drawing)
    order.place_x(drawing)
    straighten(drawing)
    routes.spread_ends(drawing)
    rows = routes.place_y(drawing)
    lines, right = routes.routes(drawing, rows)
    left = min((v.x - v.w / 2 for layer in drawing.layers for v in layer), default=0.0)
    result = ScopeLayout()
    for vertex in drawing.vertices:
        if vertex.box is not None:
            corner = (vertex.x - vertex.w / 2, vertex.y)
            result.rects[vertex.box] = Rect(*corner, vertex.w, vertex.h)
    named = {link: segment for segment, link in vertices.items()}
    result.lines = {named[link]: points for link, points in lines.items()}
    result.ports = {
        (v.kind, segment[2]): v.x
        for segment, link in vertices.items()
        for v in (link.source, link.target)
        if v.kind in ("in", "out")
    }
    ys = [y for points in result.lines.values() for _, y in points]
    top, bottom = min([0.0, *ys]), max([rows[-1][1] if rows else 0.0, *ys])
    return _finish(scope, result, Rect(left, top, right - left, bottom - top))


def _drawing(
    scope: Box, segments: Mapping[Segment, bool], inner: dict[Box, ScopeLayout], hints: Hints
) -> tuple[Drawing, dict[Segment, Link]]:
    drawing = Drawing()
    by_box: dict[Box, Vertex] = {}
    for box in scope.children or ():
        if box.is_aside:
            continue
        inside = inner.get(box)
        w, h = (inside.w, inside.h) if inside else size_of(box)
        by_box[box] = Vertex("box", w, h, box)
        if inside:
            by_box[box].ports = {key: x - w / 2 for key, x in inside.ports.items()}
    walls: dict[tuple[str, Box], Vertex] = {}
    links: dict[Segment, Link] = {}
    for segment, is_return in segments.items():
        source, target, leaf = segment
        upper = by_box[source] if source else walls.setdefault(("in", leaf), Vertex("in", 0, 0))
        lower = by_box[target] if target else walls.setdefault(("out", leaf), Vertex("out", 0, 0))
        links[segment] = Link(upper, lower, leaf, is_return)
    ports = sorted(walls.items(), key=lambda port: hints.get(port[0], 0.0))
    drawing.vertices = [*by_box.values(), *(vertex for _, vertex in ports)]
    drawing.links = list(links.values())
    return drawing, links


def _finish(scope: Box, result: ScopeLayout, flow: Rect) -> ScopeLayout:
    """Adds the boxes aside, the walls and the header, and moves all to positive coordinates."""
    w, h = flow.w, flow.h
    beside = aside_children(scope)
    if beside:
        (aw, ah), rects = lay_out_aside(beside, max(h, 150.0) if w else _square(beside))
        dx = flow.x + w + (2 * GAP if w else 0.0)
        result.rects.update((box, rect.moved(dx, flow.y)) for box, rect in rects.items())
        w, h = w + aw + (2 * GAP if w else 0.0), max(h, ah)
    is_root = scope.parent is None
    result.w = 2 * math.ceil(max(w + 2 * PADDING, 0.0 if is_root else header_width(scope)) / 2)
    has_in = any(side == "in" for side, _ in result.ports)
    has_out = any(side == "out" for side, _ in result.ports)
    above = (0.0 if is_root else HEADER) + (0.0 if has_in else PADDING)
    result.h = h + above + (0.0 if has_out and h == flow.h else PADDING)
    dx, dy = (result.w - w) / 2 - flow.x, above - flow.y
    result.rects = {box: rect.moved(dx, dy) for box, rect in result.rects.items()}
    result.ports = {key: x + dx for key, x in result.ports.items()}
    result.lines = {
        key: [(x + dx, y + dy) for x, y in points] for key, points in result.lines.items()
    }
    return _to_walls(result)


def _to_walls(result: ScopeLayout) -> ScopeLayout:
    """Lets lines reach the walls: through the header above, through the padding below."""
    for (source, target, _), points in result.lines.items():
        if source is None and points[0][1] > 0:
            (x, y) = points[0]
            points[:0] = [(x, 0.0), (x, y / 3), (x, 2 * y / 3)]
        if target is None and points[-1][1] < result.h:
            (x, y), h = points[-1], result.h
            points += [(x, (2 * y + h) / 3), (x, (y + 2 * h) / 3), (x, h)]
    return result


def _square(boxes: list[Box]) -> float:
    return math.sqrt(sum(w * h for w, h in map(size_of, boxes)) / 1.5)
