"""The order within rows, by barycentre sweeps; and x, by isotonic regression."""

from __future__ import annotations

from bisect import bisect_left, insort

from flowscope_widgets.picture.measure import SIBLING
from flowscope_widgets.picture.own.drawing import Drawing, Vertex

SWEEPS = 12
#: Between two lines that pass side by side.
LINE = 10.0


def order(drawing: Drawing) -> None:
    """Orders every layer so that few links cross; keeps the best order that was seen."""
    layers = drawing.layers
    place = {v: float(k) for layer in layers for k, v in enumerate(layer)}
    best, fewest = [list(layer) for layer in layers], _crossings(layers, place)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            _sort(layer, place, down)
        count = _crossings(layers, place)
        if count < fewest:
            best, fewest = [list(layer) for layer in layers], count
        if not fewest:
            break
    drawing.layers = best


def _sort(layer: list[Vertex], place: dict[Vertex, float], down: bool) -> None:
    def wish(vertex: Vertex) -> float:
        near = vertex.above if down else vertex.below
        return sum(place[v] for v, _ in near) / len(near) if near else place[vertex]

    layer.sort(key=wish)
    for k, vertex in enumerate(layer):
        place[vertex] = float(k)


def _crossings(layers: list[list[Vertex]], place: dict[Vertex, float]) -> int:
    total = 0
    for layer in layers:
        seen: list[float] = []
        for vertex in layer:
            ends = sorted(place[v] for v, _ in vertex.below)
            total += sum(len(seen) - bisect_left(seen, end + 0.5) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def place_x(drawing: Drawing) -> None:
    """Gives every vertex its x: near its neighbours, in order, without overlaps."""
    for layer in drawing.layers:
        at = 0.0
        for k, vertex in enumerate(layer):
            at += apart(layer[k - 1], vertex) if k else 0.0
            vertex.x = at
    for sweep in range(2 * SWEEPS):
        down = sweep % 2 == 0
        for layer in drawing.layers if down else reversed(drawing.layers):
            _settle(layer, down, both=sweep >= 2 * SWEEPS - 4)


def _settle(layer: list[Vertex], down: bool, *, both: bool) -> None:
    wishes, weights = [], []
    for vertex in layer:
        near = vertex.above if down else vertex.below
        if both:
            near = vertex.above + vertex.below
        pulls = [
            (v.x + offset, 8.0 if v.kind == vertex.kind == "dummy" else 1.0) for v, offset in near
        ]
        weight = sum(w for _, w in pulls)
        wishes.append(sum(x * w for x, w in pulls) / weight if pulls else vertex.x)
        weights.append(weight or 0.05)
    for vertex, x in zip(layer, _isotonic(layer, wishes, weights), strict=True):
        vertex.x = x


def apart(left: Vertex, right: Vertex) -> float:
    """Returns the least distance in pixels between the middles of two neighbours of a row."""
    gap = SIBLING if left.kind == right.kind == "box" else 14.0
    if left.kind != "box" and right.kind != "box":
        gap = LINE
    return (left.w + right.w) / 2 + gap


def _isotonic(layer: list[Vertex], wishes: list[float], weights: list[float]) -> list[float]:
    """Returns the places nearest to the wishes (least squares) that keep order and distance.

    Source: pool adjacent violators, Ayer et al. 1955, after taking the distances off the wishes.
    """
    shift = 0.0
    shifts: list[float] = []
    pools: list[tuple[float, float, int]] = []
    for k, vertex in enumerate(layer):
        shift += apart(layer[k - 1], vertex) if k else 0.0
        shifts.append(shift)
        value, weight, size = wishes[k] - shift, weights[k], 1
        while pools and pools[-1][0] > value:
            v, w, n = pools.pop()
            value = (value * weight + v * w) / (weight + w)
            weight, size = weight + w, size + n
        pools.append((value, weight, size))
    flat = [value for value, _, size in pools for _ in range(size)]
    return [value + s for value, s in zip(flat, shifts, strict=True)]
