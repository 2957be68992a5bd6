"""`fs.show`: the view of a graph, by whatever display is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from flowscope.errors import DTypeError
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.runtime.session import Session

#: Entry point group in which a display says where it is: a function `(feed) -> bool` that shows the
#: feed's graph and returns whether it could.
DISPLAYS = "flowscope.display"


def show(graph: Graph | Session | None = None, session: Session | None = None) -> None:
    """Shows a graph: as a live view in a notebook, as text elsewhere.

    Args:
        graph: The graph, or a session on it; the default graph if None.
        session: The session whose steps are shown; the graph's latest open one if None.
    """
    from flowscope.live.bus import Feed  # at need: most programs are never looked at
    from flowscope.live.state import node_of
    from flowscope.live.text import text

    if isinstance(graph, Session):
        session = graph
        graph = session.graph
    if graph is None:
        graph = session.graph if session is not None else get_default_graph()
    if not isinstance(graph, Graph):
        raise DTypeError(f"expected a graph or a session to show, got {graph!r}")
    feed = Feed(graph, session)
    if not any(display(feed) for display in _displays()):
        print(text([node_of(op, None) for op in graph.get_operations()]))


def _displays() -> list[Callable[[Any], bool]]:
    if "IPython" not in sys.modules:
        return []
    from importlib.metadata import entry_points  # a tenth of the import time of flowscope

    return [entry.load() for entry in entry_points(group=DISPLAYS)]
