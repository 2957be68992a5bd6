"""`fs.show`: the view of a graph, by whatever display is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from flowscope.errors import DTypeError
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.runtime.session import Session

#: Entry point group in which a display says where it is: a function `(feed)` that shows the feed's
#: graph, and returns whether it could and the view, if there is one.
DISPLAYS = "flowscope.display"


def show(graph: Graph | Session | None = None, session: Session | None = None) -> Any:
    """Shows a graph: as a live view in a notebook, as text elsewhere.

        view = fs.show()
        view.selection = loss          # seen at once
        view.iteration                 # what is chosen in the view
        view.find = "type:MatMul"      # what is sought; the rest is faint
        view.isolated = "encoder/"     # one scope alone
        view.compare(before)           # what is another than in a graph
        view.fetches = [loss]          # what would run lights up,
        view.needs                     # and what must be fed for it is listed
        view.feeds = {x: images}
        view.run()                     # the values, and in the picture beside their operations
        view.changes()                 # how they differ from those of the run before

    Args:
        graph: The graph, or a session on it; the default graph if None.
        session: The session whose steps are shown; the graph's latest open one if None.

    Returns:
        The view, in which can be read and set what is chosen; None where there is none.
    """
    from flowscope.live.bus import shared_feed  # at need: most programs are never looked at
    from flowscope.live.nodes import node_of
    from flowscope.live.text import text

    if isinstance(graph, Session):
        session = graph
        graph = session.graph
    if graph is None:
        graph = session.graph if session is not None else get_default_graph()
    if not isinstance(graph, Graph):
        raise DTypeError(f"expected a graph or a session to show, got {graph!r}")
    feed = shared_feed(graph, session)
    for display in _displays():
        is_shown, view = display(feed)
        if is_shown:
            return view
    print(text([node_of(op, None) for op in graph.get_operations()]))
    return None


def _displays() -> list[Callable[[Any], tuple[bool, Any]]]:
    if "IPython" not in sys.modules:
        return []
    from importlib.metadata import entry_points  # a tenth of the import time of flowscope

    return [entry.load() for entry in entry_points(group=DISPLAYS)]
