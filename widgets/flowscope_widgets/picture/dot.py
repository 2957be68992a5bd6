"""A layout by Graphviz's `dot`: open scopes are clusters. Only positions come from it."""

from __future__ import annotations

import json
import math
import subprocess
from typing import Any

from flowscope_widgets.picture.aside import GAP, aside_children, lay_out_aside
from flowscope_widgets.picture.geometry import Placement, Point, Rect
from flowscope_widgets.picture.measure import (
    HEADER,
    PADDING,
    RANK,
    SIBLING,
    header_width,
    size_of,
)
from flowscope_widgets.picture.own import back_edges
from flowscope_widgets.picture.visible import Box, View

TIMEOUT_S = 10.0
#: Height that a block of boxes aside has beside the flow.
_BLOCK = 220.0
#: What an empty label of a cluster takes beyond its size.
_LABEL_EXTRA = 8.0


class DotError(Exception):
    """dot failed, took too long, or said something else than positions."""


def lay_out(view: View) -> Placement:
    """Returns positions for everything that is to be seen.

    Raises:
        DotError: dot failed, or took longer than `TIMEOUT_S`.
    """
    names = {box: f"b{k}" for k, box in enumerate(_boxes(view))}
    try:
        return _read(view, names, json.loads(_run(_source(view, names))))
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise DotError(f"expected positions from dot, got something else: {error}") from error


def _boxes(view: View) -> list[Box]:
    return [box for box in [*view.opened(), *view.leaves()] if box is view.root or not box.is_aside]


def _run(source: str) -> str:
    try:
        done = subprocess.run(
            ["dot", "-Tjson"],
            input=source,
            capture_output=True,
            encoding="utf-8",
            timeout=TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise DotError(f"dot did not lay out the graph: {error}") from error
    return done.stdout


def _source(view: View, names: dict[Box, str]) -> str:
    """The graph in dot's language; names and sizes only, no text of the user's."""
    from graphviz import Digraph

    graph = Digraph()
    graph.attr("graph", rankdir="TB", nodesep=_inches(SIBLING), ranksep=_inches(RANK), pad="0")
    graph.attr("node", shape="box", fixedsize="true", label="", margin="0")
    graph.attr("edge", arrowhead="none")
    _fill(graph, view.root, names)
    back = back_edges(view)
    for k, edge in enumerate(view.edges):
        weight = "0" if edge.is_control else str(min(edge.count, 4))
        constraint = "false" if edge in back else "true"
        ends = names[edge.source], names[edge.target]
        graph.edge(*ends, id=f"e{k}", weight=weight, constraint=constraint)
    return str(graph.source)


def _fill(graph: Any, scope: Box, names: dict[Box, str]) -> None:
    for box in scope.children or ():
        if box.is_aside:
            continue
        if box.children is None:
            w, h = size_of(box)
            graph.node(names[box], width=_inches(w), height=_inches(h))
            continue
        with graph.subgraph(name=f"cluster_{names[box]}") as inner:
            inner.attr(margin=str(int(PADDING)), label=_room(header_width(box)))
            _fill(inner, box, names)
    beside = aside_children(scope)
    if beside and scope.parent is not None:
        (w, h), _ = lay_out_aside(beside, _BLOCK)
        graph.node(f"aside_{names[scope]}", width=_inches(w), height=_inches(h))


def _room(width: float) -> str:
    """A label that draws nothing and takes the header's room."""
    size = f'WIDTH="{width:.0f}" HEIGHT="{HEADER - PADDING + _LABEL_EXTRA:.0f}"'
    return f'<<TABLE BORDER="0" CELLBORDER="0" FIXEDSIZE="TRUE" {size}><TR><TD></TD></TR></TABLE>>'


def _inches(pixels: float) -> str:
    return f"{pixels / 72:.4f}"


def _read(view: View, names: dict[Box, str], said: dict[str, Any]) -> Placement:
    height = _numbers(said["bb"])[3]
    objects = {thing["name"]: thing for thing in said.get("objects", ())}
    rects: dict[Box, Rect] = {}
    for box, name in names.items():
        if box is view.root:
            continue
        if box.children is None:
            rects[box] = _node(objects[name], *size_of(box), height)
        else:
            x, y, right, top = _numbers(objects[f"cluster_{name}"]["bb"])
            rects[box] = Rect(x, height - top, right - x, top - y)
        beside = aside_children(box)
        if beside:
            (w, h), inside = lay_out_aside(beside, _BLOCK)
            block = _node(objects[f"aside_{name}"], w, h, height)
            rects.update((b, r.moved(block.x, block.y)) for b, r in inside.items())
    chains = {thing["id"]: _chain(thing["pos"], height) for thing in said.get("edges", ())}
    routes = {edge: chains[f"e{k}"] for k, edge in enumerate(view.edges)}
    return _finish(view, Placement(0.0, 0.0, rects, routes))


def _numbers(text: str) -> list[float]:
    return [float(number) for number in text.split(",")]


def _node(thing: dict[str, Any], w: float, h: float, height: float) -> Rect:
    x, y = _numbers(thing["pos"])
    return Rect(x - w / 2, height - y - h / 2, w, h)


def _chain(text: str, height: float) -> list[Point]:
    """dot's spline; "s,x,y" and "e,x,y" would be ends of arrows, which we draw ourselves."""
    pairs = [part for part in text.split() if part[0] not in "se"]
    chain = [(x, height - y) for x, y in map(_numbers, pairs)]
    if len(chain) < 4 or len(chain) % 3 != 1:
        raise ValueError(text)
    return chain


def _finish(view: View, flow: Placement) -> Placement:
    """Puts the root's boxes aside to the right, and everything inside of a margin."""
    xs = [x for chain in flow.routes.values() for x, _ in chain]
    ys = [y for chain in flow.routes.values() for _, y in chain]
    left = min([r.x for r in flow.rects.values()] + xs)
    top = min([r.y for r in flow.rects.values()] + ys)
    right = max([r.x + r.w for r in flow.rects.values()] + xs)
    bottom = max([r.y + r.h for r in flow.rects.values()] + ys)
    beside = aside_children(view.root)
    if beside:
        (w, h), rects = lay_out_aside(beside, max(bottom - top, 150.0))
        flow.rects.update((b, r.moved(right + 2 * GAP, top)) for b, r in rects.items())
        right, bottom = right + 2 * GAP + w, max(bottom, top + h)
    dx, dy = PADDING - left, PADDING - top
    return Placement(
        2 * math.ceil((right - left) / 2 + PADDING),
        bottom - top + 2 * PADDING,
        {box: rect.moved(dx, dy) for box, rect in flow.rects.items()},
        {e: [(x + dx, y + dy) for x, y in chain] for e, chain in flow.routes.items()},
    )
