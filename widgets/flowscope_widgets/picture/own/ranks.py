"""Ranks: which boxes stand in which row; and dummies where a link passes rows."""

from __future__ import annotations

from collections import defaultdict

from flowscope_widgets.picture.own.drawing import Drawing, Link, Vertex
from flowscope_widgets.picture.visible import Edge, View

#: Dummies beyond which long links no longer keep a place of their own.
MOST_DUMMIES = 4000
#: Boxes beyond which a row is broken into several.
MOST_IN_ROW = 10


def assign(drawing: Drawing) -> None:
    """Finds cycles' back links, ranks every vertex, and fills the layers."""
    order = _break_cycles(drawing)
    _longest_path(drawing, order)
    _tighten(drawing, order)
    _ports_to_walls(drawing)
    _break_rows(drawing)
    _dummies(drawing)


def back_edges(view: View) -> set[Edge]:
    """Returns edges without which there are no cycles."""
    vertices = {box: Vertex("box", 0.0, 0.0, box) for box in view.leaves()}
    links = {
        e: Link(vertices[e.source], vertices[e.target], e.source, e.is_return) for e in view.edges
    }
    _break_cycles(Drawing(list(vertices.values()), list(links.values())))
    return {edge for edge, link in links.items() if link.is_back}


def _break_cycles(drawing: Drawing) -> list[Vertex]:
    """Marks links that close a cycle, besides those of loops that are marked already.

    Returns:
        The vertices in an order in which all other links lead forward.
    """
    out: dict[Vertex, list[Link]] = defaultdict(list)
    for each in drawing.links:
        if not each.is_back:
            out[each.source].append(each)
    state: dict[Vertex, int] = {}
    done: list[Vertex] = []
    link: Link | None
    for start in drawing.vertices:
        stack = [(start, iter(out[start]))] if start not in state else []
        state.setdefault(start, 1)
        while stack:
            vertex, links = stack[-1]
            link = next(links, None)
            if link is None:
                state[vertex] = 2
                done.append(vertex)
                stack.pop()
            elif state.get(link.target) == 1:
                link.is_back = True
            elif link.target not in state:
                state[link.target] = 1
                stack.append((link.target, iter(out[link.target])))
    return done[::-1]


def _forward(drawing: Drawing) -> tuple[dict[Vertex, list[Vertex]], dict[Vertex, list[Vertex]]]:
    ins: dict[Vertex, list[Vertex]] = defaultdict(list)
    outs: dict[Vertex, list[Vertex]] = defaultdict(list)
    for link in drawing.links:
        if not link.is_back:
            ins[link.target].append(link.source)
            outs[link.source].append(link.target)
    return ins, outs


def _longest_path(drawing: Drawing, order: list[Vertex]) -> None:
    ins, _ = _forward(drawing)
    for vertex in order:
        vertex.rank = max((v.rank + 1 for v in ins[vertex]), default=0)


def _tighten(drawing: Drawing, order: list[Vertex]) -> None:
    """Lets vertices sink towards their users where that makes links shorter."""
    ins, outs = _forward(drawing)
    for _ in range(2):
        for vertex in reversed(order):
            users = outs[vertex]
            if vertex.kind == "box" and len(users) > len(
                [v for v in ins[vertex] if v.kind != "in"]
            ):
                vertex.rank = max(vertex.rank, min(v.rank for v in users) - 1)


def _ports_to_walls(drawing: Drawing) -> None:
    boxes = [v.rank for v in drawing.vertices if v.kind == "box"]
    top, bottom = min(boxes, default=0) - 1, max(boxes, default=0) + 1
    for vertex in drawing.vertices:
        if vertex.kind != "box":
            vertex.rank = top if vertex.kind == "in" else bottom


def _break_rows(drawing: Drawing) -> None:
    """Numbers the used ranks from 0, and breaks rows of too many boxes into several."""
    rows: dict[int, list[Vertex]] = defaultdict(list)
    for vertex in drawing.vertices:
        rows[vertex.rank].append(vertex)
    rank = -1
    for _, row in sorted(rows.items()):
        rank += 1
        for k, vertex in enumerate(row):
            if k and vertex.kind == "box" and k % MOST_IN_ROW == 0:
                rank += 1
            vertex.rank = rank
    drawing.layers = [[] for _ in range(rank + 1)]
    for vertex in drawing.vertices:
        drawing.layers[vertex.rank].append(vertex)


def _dummies(drawing: Drawing) -> None:
    """Gives long links a vertex in each rank that they pass; links from one port share them."""
    shared: dict[tuple[Vertex, object, int], Vertex] = {}
    for link in drawing.links:
        if link.is_back:
            continue
        above = link.source
        for rank in range(link.source.rank + 1, link.target.rank):
            key = (link.source, link.leaf, rank)
            dummy = shared.get(key)
            if dummy is None:
                if len(shared) >= MOST_DUMMIES:
                    link.via = []
                    break
                dummy = shared[key] = Vertex("dummy", 8.0, 0.0, rank=rank)
                drawing.layers[rank].append(dummy)
                _join(above, dummy, link.from_offset if above is link.source else 0.0, 0.0)
            link.via.append(dummy)
            above = dummy
        _join(above, link.target, 0.0 if link.via else link.from_offset, link.to_offset)


def _join(above: Vertex, below: Vertex, from_offset: float, to_offset: float) -> None:
    """Makes the two draw each other to where the line between them is upright."""
    above.below.append((below, to_offset - from_offset))
    below.above.append((above, from_offset - to_offset))
