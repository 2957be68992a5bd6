"""Where things are: what a layout gives to the drawing. Pixels, x to the right, y downwards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from flowscope_widgets.picture.visible import Box, Edge

Point = tuple[float, float]


@dataclass(frozen=True)
class Rect:
    """A rectangle: its upper left corner and its size."""

    x: float
    y: float
    w: float
    h: float

    def moved(self, dx: float, dy: float) -> Rect:
        """Returns the rectangle elsewhere."""
        return Rect(self.x + dx, self.y + dy, self.w, self.h)

    def meets(self, other: Rect) -> bool:
        """Whether the two share an area."""
        return (
            self.x < other.x + other.w
            and other.x < self.x + self.w
            and self.y < other.y + other.h
            and other.y < self.y + self.h
        )


@dataclass
class Placement:
    """A picture laid out."""

    w: float
    h: float
    #: Every box but the root.
    rects: dict[Box, Rect]
    #: Cubic Bezier chains: a start, then three points per piece; the arrow is at the end.
    routes: dict[Edge, list[Point]]


def bend(points: list[Point]) -> list[Point]:
    """Returns a Bezier chain through points, upright at each of them."""
    chain = points[:1]
    for (ax, ay), (bx, by) in pairwise(points):
        middle = (ay + by) / 2
        chain += [(ax, middle), (bx, middle), (bx, by)]
    return chain


def samples(chain: list[Point], per_piece: int = 12) -> Iterable[Point]:
    """Yields points along a Bezier chain, from its start to its end."""
    yield chain[0]
    for k in range(0, len(chain) - 3, 3):
        a, b, c, d = chain[k : k + 4]
        for step in range(1, per_piece + 1):
            t = step / per_piece
            u = 1 - t
            p, q, r, s = u**3, 3 * u * u * t, 3 * u * t * t, t**3
            yield (
                p * a[0] + q * b[0] + r * c[0] + s * d[0],
                p * a[1] + q * b[1] + r * c[1] + s * d[1],
            )


def grid(sizes: list[tuple[float, float]], width: float, gap: float) -> list[Point]:
    """Returns upper left corners of boxes in rows that are at most `width` wide."""
    corners: list[Point] = []
    x = y = row = 0.0
    for w, h in sizes:
        if x > 0 and x + w > width:
            x, y, row = 0.0, y + row + gap, 0.0
        corners.append((x, y))
        x, row = x + w + gap, max(row, h)
    return corners
