"""The views as widgets, for any notebook front end, and the docked panel's side."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flowscope_widgets.digraphs import digraph
    from flowscope_widgets.feed_text import FromNotebook
    from flowscope_widgets.graph_view import GraphView, display
    from flowscope_widgets.html_page import page

__all__ = ["FromNotebook", "GraphView", "digraph", "display", "page"]

#: Where names stand that need widgets, or write pages and digraphs.
_MODULES = {
    "FromNotebook": "feed_text", "GraphView": "graph_view", "display": "graph_view",
    "page": "html_page", "digraph": "digraphs",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    # At need: who only opens the panel loads no widgets.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"flowscope_widgets.{_MODULES[name]}"), name)
