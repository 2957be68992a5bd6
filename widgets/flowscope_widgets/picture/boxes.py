"""The boxes of a picture, as SVG: each kind has a shape of its own."""

from __future__ import annotations

from flowscope.live.schema import Node
from flowscope.live.text import count_text, size_text, tensor_text
from flowscope_widgets.picture.geometry import Rect
from flowscope_widgets.picture.measure import (
    AFTER,
    BOLD_PX,
    HEADER,
    LABEL_PX,
    NAME_PX,
    TYPE_PX,
    Shape,
    after_line,
    lines_of,
    shape_of,
    shorten,
    text_room,
    text_width,
)
from flowscope_widgets.picture.style import colour
from flowscope_widgets.picture.svgtext import digits, escape, words
from flowscope_widgets.picture.visible import Box

_MIDDLE = 'text-anchor="middle"'
_BOLD = 'font-weight="600"'
_HALO = 'stroke-width="3" paint-order="stroke"'
_SLANT = 12.0
_CAP = 6.0


def wall(box: Box, rect: Rect, depth: int) -> str:
    """Returns the box of an open scope, without its header."""
    plain = "wall2" if depth % 2 else "wall"
    kind = "body" if box.scope and box.scope.body else plain
    place = f' data-scope="{escape(box.scope.path if box.scope else "")}"'
    return _rectangle(kind, rect, 8.0, place) + _frame(box, rect)


def _frame(box: Box, rect: Rect) -> str:
    """The double line around a loop or a branching operation."""
    if box.scope is None or box.scope.frame is None:
        return ""
    inner = Rect(rect.x + 3, rect.y + 3, rect.w - 6, rect.h - 6)
    return _rectangle("frame", rect, 8.0) + _rectangle("frame", inner, 6.0, ' stroke-width="0.75"')


def header(box: Box, rect: Rect) -> str:
    """Returns name and op count of an open scope."""
    count = size_text(box.scope) if box.scope else ""
    room = rect.w - 46.0 - text_width(count, TYPE_PX)
    name = shorten(box.name, BOLD_PX, max(room, 40.0))
    base = rect.y + HEADER / 2 + 5
    return words("head", rect.x + 12, base, name, NAME_PX, f"{_HALO} {_BOLD}") + words(
        "count", rect.x + rect.w - 12, base, count, TYPE_PX, f'{_HALO} text-anchor="end"'
    )


def closed_box(box: Box, rect: Rect, strip: str) -> str:
    """Returns an operation or a closed scope, with a tooltip that says all of it.

    Args:
        box: The box.
        rect: Where it is.
        strip: The kind of colour of an operation's strip.
    """
    parts = []
    if box.is_aside and box.after:
        parts.append(_stub(box, rect))
        rect = Rect(rect.x, rect.y + AFTER, rect.w, rect.h - AFTER)
    shape = shape_of(box)
    parts += [_outline(box, rect, shape, strip), _texts(box, rect, shape)]
    place = f'data-op="{box.node.id}"' if box.node else f'data-scope="{escape(box.id[6:])}"'
    return f"<g {place}><title>{escape(_tip(box))}</title>{''.join(parts)}</g>"


def _outline(box: Box, rect: Rect, shape: Shape, strip: str) -> str:
    match shape:
        case "box":
            return _op("op", rect, strip)
        case "call":
            return _op("call", rect, strip) + _bars(rect)
        case "scope":
            front = Rect(rect.x, rect.y, rect.w - 4, rect.h - 4)
            kind = "body" if box.scope and box.scope.body else "scope"
            return _stack(kind, rect) + _frame(box, front)
    outlines = {"slant": _slanted, "cylinder": _cylinder, "pill": _pill, "choice": _pointed}
    return outlines[shape](rect)


def _texts(box: Box, rect: Rect, shape: Shape) -> str:
    name, kind = lines_of(box)
    px = BOLD_PX if box.scope else NAME_PX
    room = rect.w - text_room(box) + 4
    down = _CAP / 2 if shape == "cylinder" else -2.0 if shape == "scope" else 0.0
    x, y = rect.x + rect.w / 2 - (2.0 if shape == "scope" else 0.0), rect.y + rect.h / 2 + down
    bold = f"{_MIDDLE} {_BOLD}" if box.scope else _MIDDLE
    return words("name", x, y - 2, shorten(name, px, room), NAME_PX, bold) + words(
        "type", x, y + 12, shorten(kind, TYPE_PX, room), TYPE_PX, _MIDDLE
    )


def _tip(box: Box) -> str:
    node: Node | None = box.node
    if node is None:
        return f"{box.id[6:]}: {count_text(box.scope.size if box.scope else 0, 'operation')}"
    made = ", ".join(map(tensor_text, node.outputs[:4]))
    lines = [node.name, f"{node.type}  {made}".strip(), node.summary]
    lines.append(f"calls {node.calls}" if node.calls else "")
    lines.append(f"runs {', '.join(node.runs)}" if node.runs else "")
    lines.append(f"device {node.placed or node.device}" if node.placed or node.device else "")
    if node.origin is not None:
        place = node.origin.file or f"cell {node.origin.cell}"
        lines.append(f"{place}, line {node.origin.line}: {node.origin.text}")
    return "\n".join(line for line in lines if line)


def _stub(box: Box, rect: Rect) -> str:
    """A dashed line into a box aside, and what comes along it."""
    x, y = rect.x + 14, rect.y + AFTER
    line = f"M{digits(x, y - 16)}L{digits(x, y - 6)}"
    said = shorten(after_line(box), LABEL_PX, rect.w - 22)
    return (
        f'<path {colour("wait")} fill="none" stroke-dasharray="4 3" d="{line}"/>'
        f'<path {colour("waittip")} d="M{digits(x, y)}l-3.5 -7h7z"/>'
        + words("label", x + 8, y - 7, said, LABEL_PX)
    )


def _rectangle(kind: str, rect: Rect, radius: float, more: str = "") -> str:
    at = f'x="{digits(rect.x)}" y="{digits(rect.y)}"'
    size = f'width="{digits(rect.w)}" height="{digits(rect.h)}" rx="{digits(radius)}"'
    return f"<rect {colour(kind)} {at} {size}{more}/>"


def _op(kind: str, rect: Rect, strip: str) -> str:
    """A rounded box with a strip at its left edge."""
    x, y, h = rect.x, rect.y, rect.h
    line = f"M{digits(x + 5, y)}a5 5 0 0 0 -5 5v{digits(h - 10)}a5 5 0 0 0 5 5z"
    return _rectangle(kind, rect, 5.0) + f'<path {colour(strip)} d="{line}"/>'


def _bars(rect: Rect) -> str:
    """An upright line at each side: flow charts draw what stands elsewhere so."""
    down = f"{digits(rect.y)}v{digits(rect.h)}"
    line = f"M{digits(rect.x + 9)} {down}M{digits(rect.x + rect.w - 9)} {down}"
    return f'<path {colour("call")} d="{line}"/>'


def _slanted(rect: Rect) -> str:
    x, y, w, h = rect.x, rect.y, rect.w, rect.h
    line = (
        f"M{digits(x + _SLANT, y)}h{digits(w - _SLANT)}l{digits(-_SLANT, h)}h{digits(_SLANT - w)}z"
    )
    return f'<path {colour("feed")} stroke-linejoin="round" d="{line}"/>'


def _pointed(rect: Rect) -> str:
    """Pointed at both sides: flow charts draw what decides so."""
    x, y, w, h = rect.x, rect.y, rect.w, rect.h
    half, tip = digits(_SLANT, -h / 2), digits(_SLANT, h / 2)
    back = digits(-_SLANT, h / 2)
    line = f"M{digits(x, y + h / 2)}l{half}h{digits(w - 2 * _SLANT)}l{tip}l{back}"
    line += f"h{digits(2 * _SLANT - w)}z"
    return f'<path {colour("call")} stroke-linejoin="round" d="{line}"/>'


def _cylinder(rect: Rect) -> str:
    r, w, h = rect.w / 2, rect.w, rect.h - 2 * _CAP
    top = f"M{digits(rect.x, rect.y + _CAP)}"
    arc = f"a{digits(r, _CAP)} 0 0 "
    body = f"{top}{arc}1 {digits(w, 0)}v{digits(h)}{arc}1 {digits(-w, 0)}z"
    return f'<path {colour("var")} d="{body}{top}{arc}0 {digits(w, 0)}"/>'


def _pill(rect: Rect) -> str:
    return _rectangle("const", rect, rect.h / 2)


def _stack(kind: str, rect: Rect) -> str:
    """A closed scope: a box with another behind it."""
    behind = Rect(rect.x + 4, rect.y + 4, rect.w - 4, rect.h - 4)
    front = Rect(rect.x, rect.y, rect.w - 4, rect.h - 4)
    return _rectangle("wall2", behind, 7.0) + _rectangle(kind, front, 7.0)
