"""All open scopes together: from the inside outwards, then positions from the outside inwards."""

from __future__ import annotations

from collections import defaultdict

from flowscope_widgets.picture.geometry import Placement, Point, Rect
from flowscope_widgets.picture.own.scope import Hints, ScopeLayout, Segment, lay_out_scope
from flowscope_widgets.picture.visible import Box, Edge, View

#: A scope is laid out before what lies around it is known; the next pass knows it.
PASSES = 2


def lay_out(view: View) -> Placement:
    """Returns positions for everything that is to be seen."""
    paths = {edge: _segments(edge) for edge in view.edges}
    by_scope: dict[Box, dict[Segment, bool]] = defaultdict(dict)
    for edge, path in paths.items():
        turn = _common(edge)
        for scope, segment in path:
            by_scope[scope][segment] = edge.is_return and scope is turn
    placement = Placement(0.0, 0.0, {}, {})
    for _ in range(PASSES):
        hints = _hints(view, placement)
        done: dict[Box, ScopeLayout] = {}
        for scope in reversed(view.opened()):
            if scope is view.root or not scope.is_aside:
                done[scope] = lay_out_scope(scope, by_scope[scope], done, hints)
        placement = _assemble(view, done, paths)
        if len(done) == 1:
            break
    return placement


def _hints(view: View, placement: Placement) -> Hints:
    """Where the ends of edges were in the pass before."""
    middles = {box: rect.x + rect.w / 2 for box, rect in placement.rects.items()}
    users: dict[Box, list[float]] = defaultdict(list)
    for edge in view.edges:
        users[edge.source].append(middles.get(edge.target, 0.0))
    hints = {("in", box): x for box, x in middles.items()}
    hints.update({("out", box): sum(xs) / len(xs) for box, xs in users.items()})
    return hints


def _segments(edge: Edge) -> list[tuple[Box, Segment]]:
    """The scopes that an edge passes, from its source to its target, and its way through each."""
    up, down = _around(edge.source), _around(edge.target)
    common = set(up) & set(down)
    out = [box for box in up if box not in common]
    into = [box for box in down if box not in common]
    leaf = edge.source
    path: list[tuple[Box, Segment]] = []
    for inner, scope in zip([edge.source, *out], out, strict=False):
        path.append((scope, (inner, None, leaf)))
    first, last = [edge.source, *out][-1], [edge.target, *into][-1]
    path.append((_common(edge), (first, last, leaf)))
    for scope, inner in reversed(list(zip(into, [edge.target, *into], strict=False))):
        path.append((scope, (None, inner, leaf)))
    return path


def _common(edge: Edge) -> Box:
    """The innermost scope that both ends lie in."""
    down = set(_around(edge.target))
    return next(box for box in _around(edge.source) if box in down)


def _around(box: Box) -> list[Box]:
    found = []
    while box.parent is not None:
        box = box.parent
        found.append(box)
    return found


def _assemble(
    view: View, done: dict[Box, ScopeLayout], paths: dict[Edge, list[tuple[Box, Segment]]]
) -> Placement:
    rects: dict[Box, Rect] = {}
    corners: dict[Box, Point] = {view.root: (0.0, 0.0)}
    for scope in view.opened():
        if scope not in done:
            continue
        x, y = corners[scope]
        for box, rect in done[scope].rects.items():
            rects[box] = rect.moved(x, y)
            corners[box] = (rect.x + x, rect.y + y)
    routes = {edge: _joined(path, done, corners) for edge, path in paths.items()}
    root = done[view.root]
    return Placement(root.w, root.h, rects, routes)


def _joined(
    path: list[tuple[Box, Segment]], done: dict[Box, ScopeLayout], corners: dict[Box, Point]
) -> list[Point]:
    chain: list[Point] = []
    for scope, segment in path:
        dx, dy = corners[scope]
        piece = [(x + dx, y + dy) for x, y in done[scope].lines[segment]]
        if chain and chain[-1] != piece[0]:
            (ax, ay), (bx, by) = chain[-1], piece[0]
            chain += [
                ((2 * ax + bx) / 3, (2 * ay + by) / 3),
                ((ax + 2 * bx) / 3, (ay + 2 * by) / 3),
            ]
            chain.append((bx, by))
        chain += piece[1:] if chain else piece
    return chain
