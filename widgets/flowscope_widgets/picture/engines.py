"""Which layout is used: Graphviz's where it is installed, our own elsewhere."""

from __future__ import annotations

import importlib.util
import shutil
from typing import Literal

from flowscope_widgets.picture import dot, own
from flowscope_widgets.picture.geometry import Placement
from flowscope_widgets.picture.visible import View

#: Widest picture in pixels that is taken from Graphviz.
WIDEST = 2400.0
#: Edges beyond which Graphviz takes too long.
TOO_MANY = 700


def layout_engine() -> Literal["dot", "own"]:
    """Returns which layout is used: "dot" if the program and the package `graphviz` are there."""
    has_package = importlib.util.find_spec("graphviz") is not None
    return "dot" if has_package and shutil.which("dot") else "own"


def lay_out(view: View) -> Placement:
    """Returns positions for a view.

    They are our own where Graphviz is missing, fails or would take too long, and where it, which
    cannot wrap rows, would draw a wider picture than `WIDEST` and than ours.
    """
    if layout_engine() == "dot" and 0 < len(view.edges) <= TOO_MANY:
        try:
            placement = dot.lay_out(view)
        except dot.DotError:
            return own.lay_out(view)
        if placement.w <= WIDEST:
            return placement
        return min(own.lay_out(view), placement, key=lambda p: p.w)
    return own.lay_out(view)
