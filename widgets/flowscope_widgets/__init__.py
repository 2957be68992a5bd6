"""The views as widgets, for any notebook front end, and the docked panel's side."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flowscope_widgets.feed_text import FromNotebook
    from flowscope_widgets.graph_view import GraphView, display

__all__ = ["FromNotebook", "GraphView", "display"]


def __getattr__(name: str) -> Any:
    # At need: who only opens the panel loads no widgets.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from flowscope_widgets import feed_text, graph_view

    return getattr(feed_text if name == "FromNotebook" else graph_view, name)
