"""Small parts of SVG: numbers, escaped texts."""

from __future__ import annotations

import re

from flowscope_widgets.picture.style import colour

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}


def escape(text: str) -> str:
    """Returns a text that is safe between tags and in attributes, without what XML forbids."""
    return "".join(_MARKUP.get(c, c) for c in _NO_XML.sub("\ufffd", text))


def digits(*numbers: float) -> str:
    """Returns numbers with at most one digit after the point, separated by spaces."""
    return " ".join(f"{round(x, 1) + 0.0:g}" if abs(x) < 1e5 else f"{x:.0f}" for x in numbers)


def words(kind: str, x: float, y: float, text: str, px: float, more: str = "") -> str:
    """Returns a text element.

    Args:
        kind: A name from `style.COLOURS`.
        x: The left end, or what `more` anchors there.
        y: The base line.
        text: The text, not escaped.
        px: Size of the font.
        more: Further attributes.
    """
    at = f'x="{digits(x)}" y="{digits(y)}" font-size="{digits(px)}"'
    return f"<text {colour(kind)} {at}{more and ' ' + more}>{escape(text)}</text>"
