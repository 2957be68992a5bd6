"""The devices of operations: colours of the strips at their left edges, and the legend."""

from __future__ import annotations

from flowscope_widgets.picture.measure import TYPE_PX, text_width
from flowscope_widgets.picture.style import DEVICES, colour
from flowscope_widgets.picture.svgtext import digits, words
from flowscope_widgets.picture.visible import Box, View

_SQUARE = 9.0
_GAP = 16.0


def device_of(box: Box) -> str:
    """Returns where an operation runs, or else where the user wants it; "" where nobody knows."""
    return (box.node.placed or box.node.device) if box.node else ""


def strips(view: View) -> dict[str, str]:
    """Returns the colour of each device's strips; none where all operations run on one device.

    Devices beyond the number of colours share the grey of the unknown one.
    """
    found = sorted({device_of(box) for box in view.leaves()} - {""})
    if len(found) < 2:
        return {}
    kinds = [f"device{k}" for k in range(DEVICES)]
    return dict(zip(found, [*kinds, *["strip"] * len(found)], strict=False))


def legend_width(colours: dict[str, str]) -> float:
    """Returns the legend's width in pixels."""
    return sum(_SQUARE + 5 + text_width(name, TYPE_PX) + _GAP for name in colours)


def legend(colours: dict[str, str], x: float, y: float) -> list[str]:
    """Returns squares with names beside them.

    Args:
        colours: What `strips` returned.
        x: The left end.
        y: The base line.
    """
    parts = []
    for name, kind in colours.items():
        at = f'x="{digits(x)}" y="{digits(y - _SQUARE + 1)}"'
        size = f'width="{digits(_SQUARE)}" height="{digits(_SQUARE)}"'
        parts.append(f"<rect {colour(kind)} {at} {size}/>")
        parts.append(words("type", x + _SQUARE + 5, y, name, TYPE_PX))
        x += _SQUARE + 5 + text_width(name, TYPE_PX) + _GAP
    return parts
