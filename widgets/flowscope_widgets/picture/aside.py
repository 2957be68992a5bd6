"""Boxes that no data reaches: rows of them beside the flow, whatever lays out the flow."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flowscope_widgets.picture.geometry import Rect, grid
from flowscope_widgets.picture.measure import HEADER, PADDING, header_width, size_of
from flowscope_widgets.picture.visible import Box

GAP = 18.0


def aside_children(scope: Box) -> list[Box]:
    """Returns the boxes of an open scope that stand aside."""
    return [box for box in scope.children or () if box.is_aside]


def lay_out_aside(
    boxes: Sequence[Box], height: float
) -> tuple[tuple[float, float], dict[Box, Rect]]:
    """Returns the size of a block of boxes, and where each box is in it, inner ones included.

    Args:
        boxes: Boxes aside, of one scope.
        height: Height in pixels that the block should about have.
    """
    inner = {box: _inside(box) for box in boxes if box.children is not None}
    sizes = [inner[box][0] if box in inner else size_of(box) for box in boxes]
    area = sum((w + GAP) * (h + GAP) for w, h in sizes)
    width = max([area / max(height, 1.0), *(w for w, _ in sizes)], default=0.0)
    rects: dict[Box, Rect] = {}
    for box, (x, y), (w, h) in zip(boxes, grid(sizes, width, GAP), sizes, strict=True):
        rects[box] = Rect(x, y, w, h)
        if box in inner:
            rects.update((b, r.moved(x, y)) for b, r in inner[box][1].items())
    return _extent(rects), rects


def _inside(box: Box) -> tuple[tuple[float, float], dict[Box, Rect]]:
    boxes = box.children or []
    area = sum(w * h for w, h in map(size_of, boxes))
    (w, h), rects = lay_out_aside(boxes, max(math.sqrt(area / 1.5), 60.0))
    size = (max(w + 2 * PADDING, header_width(box)), h + HEADER + 2 * PADDING)
    return size, {b: r.moved(PADDING, HEADER + PADDING) for b, r in rects.items()}


def _extent(rects: dict[Box, Rect]) -> tuple[float, float]:
    right = max((r.x + r.w for r in rects.values()), default=0.0)
    return right, max((r.y + r.h for r in rects.values()), default=0.0)
