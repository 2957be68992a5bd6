"""From positions to one SVG."""

from __future__ import annotations

import math

from flowscope.live.text import count_text
from flowscope_widgets.picture import labels
from flowscope_widgets.picture.boxes import closed_box, header, wall
from flowscope_widgets.picture.devices import device_of, legend, legend_width, strips
from flowscope_widgets.picture.geometry import Placement, Point
from flowscope_widgets.picture.measure import LABEL_PX, NAME_PX, TYPE_PX, shorten, text_width
from flowscope_widgets.picture.style import FONT, colour, sheet
from flowscope_widgets.picture.svgtext import digits, escape, words
from flowscope_widgets.picture.visible import Box, Edge, View

#: Around everything.
MARGIN = 6.0
_LINE = 20.0
_TIP = 8.0


def paint(view: View, placement: Placement, title: str) -> str:
    """Returns the picture.

    Args:
        view: What is to be seen.
        placement: Where it is.
        title: What the picture is called, "" for nothing to be written above it.
    """
    note, beside = note_of(view), labels.place(view, placement)
    left = min([0.0, *(label.x for label in beside)])
    right = max([placement.w, *(label.right for label in beside)])
    colours = strips(view)
    after_note = 14 + (text_width(note, TYPE_PX) + 20 if note else 0.0)
    least = max(after_note + legend_width(colours), 160.0)
    w = max(right - left, least) + 2 * MARGIN
    above = _LINE if title else 0.0
    h = placement.h + 2 * MARGIN + above + (_LINE if note or colours else 0.0)
    shift = f"translate({digits((w - right - left) / 2, MARGIN + above)})"
    parts = [
        _start(view, w, h, title),
        f'<rect {colour("ground")} width="{digits(w)}" height="{digits(h)}" rx="8"/>',
        words("name", 14, 20, shorten(title, NAME_PX, w - 28), NAME_PX, 'font-weight="600"')
        if title
        else "",
        f'<g transform="{shift}">',
        *_things(view, placement, colours),
        *(words("label", label.x, label.y, label.text, LABEL_PX) for label in beside),
        "</g>",
        words("type", 14, h - 12, note, TYPE_PX) if note else "",
        *legend(colours, after_note, h - 12),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part)


def _start(view: View, w: float, h: float, title: str) -> str:
    size = f'viewBox="0 0 {digits(w, h)}" width="{digits(w)}" height="{digits(h)}"'
    count = count_text(view.count, "operation")
    name = escape(title or "Dataflow graph")
    inside = [box.name for box in view.root.children or ()]
    told = ", ".join(inside[:12]) + (f" and {len(inside) - 12} more" if len(inside) > 12 else "")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="fs-picture" role="img" {size} '
        f'style="max-width:100%;height:auto" font-family="{escape(FONT)}" aria-label="{name}">'
        f"<title>{name}</title><desc>{escape(f'{count}. At the top level: {told}')}</desc>{sheet()}"
    )


def note_of(view: View) -> str:
    """Returns what is not to be seen, in a few words; "" if all is."""
    if not view.count:
        return "no operations yet"
    parts = []
    if view.closed:
        parts.append(f"{count_text(view.closed, 'operation')} in closed scopes")
    if view.missing:
        parts.append(f"{count_text(view.missing, 'operation')} more not shown")
    if view.unseen:
        parts.append(f"{count_text(view.unseen, 'edge')} not shown")
    return ", ".join(parts)


def _things(view: View, placement: Placement, colours: dict[str, str]) -> list[str]:
    """Walls, then edges, then boxes, then texts: what is later lies above."""
    opened = [box for box in view.opened() if box in placement.rects]
    parts = [wall(box, placement.rects[box], _depth(box)) for box in opened]
    parts += [_line(e, placement.routes[e]) for e in view.edges if e in placement.routes]
    parts += [
        closed_box(box, placement.rects[box], colours.get(device_of(box), "strip"))
        for box in view.leaves()
    ]
    parts += [header(box, placement.rects[box]) for box in opened]
    return parts


def _depth(box: Box) -> int:
    return 0 if box.scope is None else box.scope.depth


def _line(edge: Edge, chain: list[Point]) -> str:
    """Returns an edge and its arrow head."""
    (ax, ay), (x, y) = chain[-2], chain[-1]
    length = math.hypot(x - ax, y - ay) or 1.0
    dx, dy = (x - ax) / length, (y - ay) / length
    base = (x - dx * _TIP, y - dy * _TIP)
    path = "M" + digits(*chain[0])
    ends = [*chain[1:-1], base]
    path += "".join(_piece(chain[k], ends[k : k + 3]) for k in range(0, len(ends), 3))
    kind, tip, dash = ("return", "returntip", "") if edge.is_return else ("edge", "tip", "")
    if edge.is_control:
        kind, tip, dash = "wait", "waittip", ' stroke-dasharray="4 3"'
    width = 1.2 + 0.4 * min(math.log2(edge.count), 4.0)
    side = (-dy * 3.5, dx * 3.5)
    head = digits(x, y, base[0] + side[0], base[1] + side[1], base[0] - side[0], base[1] - side[1])
    return (
        f'<path {colour(kind)} fill="none" stroke-width="{digits(width)}"{dash} d="{path}"/>'
        f'<path {colour(tip)} d="M{head}z"/>'
    )


def _piece(start: Point, rest: list[Point]) -> str:
    """Returns a path command for a Bezier piece, a short one where it is upright."""
    if all(x == start[0] for x, _ in rest):
        return f"V{digits(rest[-1][1])}"
    return "C" + digits(*(c for point in rest for c in point))
