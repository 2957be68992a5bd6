"""Sizes of boxes from their texts, in pixels. There is no font here: widths are estimates."""

from __future__ import annotations

import unicodedata
from typing import Literal

from flowscope.live.schema import Node
from flowscope.live.text import size_text
from flowscope_widgets.picture.opening import VARIABLES, is_variable
from flowscope_widgets.picture.visible import Box

NAME_PX, TYPE_PX, LABEL_PX = 12.0, 10.5, 9.5
#: A bold name takes the width of this size.
BOLD_PX = 13.2
#: Height of an open scope's header.
HEADER = 28.0
#: Space inside an open scope's wall.
PADDING = 18.0
#: Space between neighbours, and between ranks.
SIBLING, RANK = 24.0, 46.0

Shape = Literal["box", "slant", "cylinder", "pill", "call", "choice", "scope"]

_LEAST, _MOST = 76.0, 190.0
_ROOM: dict[Shape, float] = {
    "box": 24.0, "slant": 40.0, "cylinder": 24.0, "pill": 26.0, "call": 36.0, "choice": 36.0,
    "scope": 30.0,
}  # fmt: skip
_HIGH: dict[Shape, float] = {"cylinder": 48.0, "pill": 36.0, "scope": 44.0}
_NARROW = frozenset("ijlt.,:;'|!fr()[]/ I1")
_WIDE = frozenset("mwMW@%")


def text_width(text: str, px: float) -> float:
    """Returns about how wide a text is in a system font of `px` pixels, rather more than less."""
    units = 0.0
    for c in text:
        if unicodedata.east_asian_width(c) in "WF":
            units += 1.05
        elif c in _NARROW:
            units += 0.36
        elif c in _WIDE:
            units += 0.92
        else:
            units += 0.68 if c.isupper() else 0.58
    return units * px


def shorten(text: str, px: float, width: float) -> str:
    """Returns the text, or as much of its beginning and end as fits into `width` pixels."""
    if text_width(text, px) <= width:
        return text
    keep = len(text)
    while keep > 2 and text_width(text[:keep] + "\u2026", px) > width:
        keep -= 1
    tail = keep // 3
    return text[: keep - tail] + "\u2026" + text[len(text) - tail :]


def shape_of(box: Box) -> Shape:
    """Returns how a box is drawn: what it is shows in its shape, not in its colour alone."""
    if box.scope is not None:
        return "cylinder" if is_variable(box.scope) else "scope"
    if box.node and box.node.runs:
        return "choice"
    if box.node and box.node.calls:
        return "call"
    kind = box.node.type if box.node else ""
    if kind == "Parameter" or kind.startswith("Placeholder"):
        return "slant"
    if kind in VARIABLES:
        return "cylinder"
    return "pill" if kind in ("Const", "Constant") else "box"


def lines_of(box: Box) -> tuple[str, str]:
    """Returns the two lines of text in a closed box: the name, and the type or the op count."""
    if box.node is not None:
        value = box.node.attributes.get("value", "") if box.node.type == "Const" else ""
        short = value if len(value) <= 10 and "\n" not in value else ""
        result = "\u2192 result" if box.node.is_result else ""
        return box.name, " ".join(part for part in (box.kind, short, result) if part)
    count = size_text(box.scope) if box.scope else ""
    own: Node | None = box.scope.own if box.scope and is_variable(box.scope) else None
    return box.name, f"{own.type}, {count}" if own else count


def text_room(box: Box) -> float:
    """Returns how many pixels of a closed box's width its shape takes from the text."""
    return _ROOM[shape_of(box)]


def size_of(box: Box) -> tuple[float, float]:
    """Returns width and height of a closed box."""
    name, kind = lines_of(box)
    shape = shape_of(box)
    name_px = BOLD_PX if box.scope else NAME_PX
    text = max(text_width(name, name_px), text_width(kind, TYPE_PX))
    if box.is_aside and box.after:
        text = max(text, text_width(after_line(box), LABEL_PX))
    least = 60.0 if shape == "pill" else _LEAST
    w = min(max(text + text_room(box), least), _MOST)
    h = _HIGH.get(shape, 40.0)
    return 2.0 * round(w / 2 + 0.49), h + (AFTER if box.is_aside and box.after else 0.0)


#: Height of the stub above a box aside that says what it waits for.
AFTER = 26.0


def after_line(box: Box) -> str:
    """Returns what a box aside waits for, in a few words."""
    rest = len(box.after) - 2
    return "after " + ", ".join(box.after[:2]) + (f", {rest} more" if rest > 0 else "")


def header_width(box: Box) -> float:
    """Returns the width that an open scope's header needs."""
    count = size_text(box.scope) if box.scope else ""
    text = text_width(box.name, BOLD_PX) + text_width(count, TYPE_PX)
    return min(text, 260.0) + 46.0
