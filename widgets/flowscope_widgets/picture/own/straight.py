"""Long lines made straight, where their neighbours leave room."""

from __future__ import annotations

import math

from flowscope_widgets.picture.own.drawing import Drawing, Vertex
from flowscope_widgets.picture.own.order import apart


def straighten(drawing: Drawing) -> None:
    """Puts runs of dummies at one x each, as long as possible; order and distances stay."""
    place = {v: (layer, k) for layer in drawing.layers for k, v in enumerate(layer)}
    done: set[Vertex] = set()
    for layer in drawing.layers:
        for vertex in layer:
            while vertex.kind == "dummy" and vertex not in done:
                run = _run(vertex, place)
                done.update(run)
                below = [v for v, _ in run[-1].below if v.kind == "dummy"]
                if not below:
                    break
                vertex = below[0]


def _run(first: Vertex, place: dict[Vertex, tuple[list[Vertex], int]]) -> list[Vertex]:
    """Moves the longest run from `first` downwards that fits on one upright line."""
    low, high = -math.inf, math.inf
    run: list[Vertex] = []
    at: Vertex | None = first
    while at is not None:
        left, right = _room(at, place)
        if max(low, left) > min(high, right):
            break
        low, high = max(low, left), min(high, right)
        run.append(at)
        at = next((v for v, _ in at.below if v.kind == "dummy"), None)
    wish = sum(v.x for v in run) / len(run)
    ends = [v.x + d for v, d in run[-1].below if v.kind != "dummy"]
    ends += [v.x + d for v, d in run[0].above if v.kind != "dummy"]
    wish = min(ends, key=lambda x: abs(x - wish), default=wish)
    for vertex in run:
        vertex.x = min(max(wish, low), high)
    return run


def _room(vertex: Vertex, place: dict[Vertex, tuple[list[Vertex], int]]) -> tuple[float, float]:
    layer, k = place[vertex]
    left = layer[k - 1].x + apart(layer[k - 1], vertex) if k else -math.inf
    more = k + 1 < len(layer)
    right = layer[k + 1].x - apart(vertex, layer[k + 1]) if more else math.inf
    return min(left, vertex.x), max(right, vertex.x)
