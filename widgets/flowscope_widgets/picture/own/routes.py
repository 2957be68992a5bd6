"""Heights of the rows, and the lines between boxes: they bend between rows, so cross no box."""

from __future__ import annotations

import math
from collections import defaultdict

from flowscope_widgets.picture.geometry import Point, bend
from flowscope_widgets.picture.measure import RANK
from flowscope_widgets.picture.own.drawing import Drawing, Link, Vertex

#: Between the lines of two back edges.
LANE = 14.0
#: Most that a gap between rows grows for links that run far sideways.
GROWTH = 60.0
#: How far from a row the line of a back edge runs, and how round its corners are.
_BULGE, _ROUND = 18.0, 8.0


def spread_ends(drawing: Drawing) -> None:
    """Lets lines enter a closed box side by side, in the order in which they come."""
    coming: dict[Vertex, dict[object, Link]] = defaultdict(dict)
    for link in drawing.links:
        if ("in", link.leaf) not in link.target.ports:
            coming[link.target].setdefault(link.leaf, link)
    for target, links in coming.items():
        if target.kind != "box":
            continue
        ordered = sorted(links.values(), key=_comes_from)
        step = min(16.0, (target.w - 24.0) / len(ordered))
        for k, link in enumerate(ordered):
            target.ports["in", link.leaf] = (k - (len(ordered) - 1) / 2) * step


def _comes_from(link: Link) -> float:
    if link.is_back:
        return math.inf
    return link.via[-1].x if link.via else link.source.x + link.from_offset


def place_y(drawing: Drawing) -> list[tuple[float, float]]:
    """Gives every vertex its upper edge; returns upper and lower edge of each row."""
    rows: list[tuple[float, float]] = []
    top = 0.0
    for layer in drawing.layers:
        height = max((v.h for v in layer), default=0.0)
        rows.append((top, top + height))
        for vertex in layer:
            vertex.y = top + (height - vertex.h) / 2
        far = max((abs(b.x - v.x - d) for v in layer for b, d in v.below), default=0.0)
        is_wall = all(v.kind != "box" for v in layer)
        top += height + (RANK * 0.6 if is_wall else RANK) + min(far / 12, GROWTH)
    return rows


def routes(
    drawing: Drawing, rows: list[tuple[float, float]]
) -> tuple[dict[Link, list[Point]], float]:
    """Returns a Bezier chain for each link, and the right edge of all of them."""
    right = max((v.x + v.w / 2 for layer in drawing.layers for v in layer), default=0.0)
    found: dict[Link, list[Point]] = {}
    for link in drawing.links:
        if link.is_back:
            right += LANE
            found[link] = _around(link, right, rows)
        else:
            found[link] = _down(link, rows)
    return found, right


def _down(link: Link, rows: list[tuple[float, float]]) -> list[Point]:
    source, target = link.source, link.target
    x = source.x + link.from_offset
    knots = [(x, source.y + source.h), (x, rows[source.rank][1])]
    for dummy in link.via:
        knots += [(dummy.x, edge) for edge in rows[dummy.rank]]
    x = target.x + link.to_offset
    knots += [(x, rows[target.rank][0]), (x, target.y)]
    return bend(_corners(knots))


def _corners(knots: list[Point]) -> list[Point]:
    """Leaves out what lies within an upright line, or twice at one place."""
    kept: list[Point] = []
    for knot in knots:
        if kept and kept[-1] == knot:
            continue
        if len(kept) > 1 and kept[-2][0] == kept[-1][0] == knot[0]:
            kept.pop()
        kept.append(knot)
    return kept


def _around(link: Link, lane: float, rows: list[tuple[float, float]]) -> list[Point]:
    """Back edges leave downwards, return outside of everything, and come in from above."""
    source, target = link.source, link.target
    ax, ay = source.x + link.from_offset, source.y + source.h
    bx, by = target.x + link.to_offset, target.y
    low, high = rows[source.rank][1] + _BULGE, rows[target.rank][0] - _BULGE
    r = min(_ROUND, abs(lane - ax) / 2, abs(lane - bx) / 2)
    chain = [(ax, ay)]
    for corner, after in (
        ((ax, low), (ax + r, low)),
        ((lane, low), (lane, low - r)),
        ((lane, high), (lane - r, high)),
        ((bx, high), (bx, high + r)),
    ):
        _turn(chain, corner, after, r)
    _straight(chain, (bx, by))
    return chain


def _turn(chain: list[Point], corner: Point, after: Point, r: float) -> None:
    """Goes straight on until `r` before the corner, and round it."""
    (x, y), (cx, cy) = chain[-1], corner
    length = math.hypot(cx - x, cy - y) or 1.0
    _straight(chain, (cx - (cx - x) * r / length, cy - (cy - y) * r / length))
    chain += [corner, corner, after]


def _straight(chain: list[Point], end: Point) -> None:
    (ax, ay), (bx, by) = chain[-1], end
    chain += [((2 * ax + bx) / 3, (2 * ay + by) / 3), ((ax + 2 * bx) / 3, (ay + 2 * by) / 3), end]
