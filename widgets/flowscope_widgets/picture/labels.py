"""What stands beside edges: dtype[shape] or a count, where there is room."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from flowscope_widgets.picture.geometry import Placement, Point, Rect, samples
from flowscope_widgets.picture.measure import HEADER, LABEL_PX, text_width
from flowscope_widgets.picture.visible import Box, Edge, View

#: Edges beyond which there is no room, and looking for some takes long.
TOO_MANY = 900

_HEIGHT = LABEL_PX + 2
_BESIDE = 5.0
_CELL = 24.0
#: Where along an edge a label is tried.
_TRIES = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82)


@dataclass(frozen=True)
class Label:
    """A text beside an edge; its left end and its base line."""

    text: str
    x: float
    y: float

    @property
    def right(self) -> float:
        """The right end."""
        return self.x + text_width(self.text, LABEL_PX)


class _Taken:
    """What a label must not cover: a grid of rectangles and points."""

    def __init__(self) -> None:
        self._rects: dict[tuple[int, int], list[Rect]] = defaultdict(list)

    def add(self, rect: Rect) -> None:
        for cell in self._cells(rect):
            self._rects[cell].append(rect)

    def is_free(self, rect: Rect) -> bool:
        return not any(
            r.meets(rect) for cell in self._cells(rect) for r in self._rects.get(cell, ())
        )

    def _cells(self, rect: Rect) -> Iterator[tuple[int, int]]:
        for i in range(int(rect.x // _CELL), int((rect.x + rect.w) // _CELL) + 1):
            for j in range(int(rect.y // _CELL), int((rect.y + rect.h) // _CELL) + 1):
                yield i, j


def label_text(edge: Edge) -> str:
    """Returns what there is to say about an edge: dtype[shape], and the count of a bundle."""
    count = f"×{edge.count}" if edge.count > 1 else ""
    return " ".join(part for part in (edge.label, count) if part)


def place(view: View, placement: Placement) -> list[Label]:
    """Returns the labels with room; one for all edges that carry the same from one box."""
    if len(placement.routes) > TOO_MANY:
        return []
    lines = {edge: list(samples(chain)) for edge, chain in placement.routes.items()}
    taken = _taken(placement, lines)
    told: set[tuple[Box, str]] = set()
    labels: list[Label] = []
    for edge in view.edges:
        text = label_text(edge)
        if not text or edge not in lines or (edge.source, text) in told:
            continue
        rect = _free_spot(text, lines[edge], taken)
        if rect is not None:
            told.add((edge.source, text))
            taken.add(rect)
            labels.append(Label(text, rect.x, rect.y + LABEL_PX))
    return labels


def _taken(placement: Placement, lines: dict[Edge, list[Point]]) -> _Taken:
    taken = _Taken()
    for box, rect in placement.rects.items():
        if box.children is None:
            taken.add(rect)
            continue
        taken.add(Rect(rect.x, rect.y, rect.w, HEADER))
        for wall in (rect.x, rect.x + rect.w):
            taken.add(Rect(wall - 1, rect.y, 2, rect.h))
        taken.add(Rect(rect.x, rect.y + rect.h - 1, rect.w, 2))
    for line in lines.values():
        for (ax, ay), (bx, by) in pairwise(line):
            x, y = min(ax, bx), min(ay, by)
            taken.add(Rect(x - 1, y - 1, abs(ax - bx) + 2, abs(ay - by) + 2))
    return taken


def _free_spot(text: str, line: list[Point], taken: _Taken) -> Rect | None:
    width = text_width(text, LABEL_PX)
    for part in _TRIES:
        x, y = line[round(part * (len(line) - 1))]
        for left in (x + _BESIDE, x - _BESIDE - width):
            rect = Rect(left, y - _HEIGHT / 2, width, _HEIGHT)
            if taken.is_free(rect):
                return rect
    return None
