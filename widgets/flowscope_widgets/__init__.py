"""The views as widgets, for any notebook front end that shows ipywidgets."""

from flowscope_widgets.graph_view import GraphView, display

__all__ = ["GraphView", "display"]
