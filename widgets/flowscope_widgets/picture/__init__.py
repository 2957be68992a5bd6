"""The static picture of a graph, for a notebook that is read without a kernel: SVG, and text.

In: the operations as the views see them (`flowscope.live.schema.Node`). Out: one SVG that brings
all it needs. Called by `flowscope_widgets` for every display. The way: `visible` (boxes and bundled
edges), `engines` (positions by Graphviz's `dot` or by `own`), `labels`, `paint`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from flowscope.live.schema import Node
from flowscope.live.text import text
from flowscope_widgets.picture.engines import lay_out, layout_engine
from flowscope_widgets.picture.paint import paint
from flowscope_widgets.picture.visible import view_of

__all__ = ["layout_engine", "svg", "text"]


def svg(nodes: Sequence[Node], *, open_scopes: Collection[str] = (), title: str = "") -> str:
    """Returns a picture of a graph as SVG; the same graph gives the same text.

    Args:
        nodes: The operations, in the order of making.
        open_scopes: Paths of scopes to show open, e.g. "train/gradients". More are opened where the
            top level has few boxes; of more than `opening.MOST` boxes the rest stays closed.
        title: Stands above the picture.
    """
    view = view_of(nodes, open_scopes)
    return paint(view, lay_out(view), title)
