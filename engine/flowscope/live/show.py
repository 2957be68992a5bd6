"""`fs.show`: the view of a graph or a recording, by whatever display is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from flowscope.errors import DTypeError, FailedPreconditionError
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.serialization.files import write_file
from flowscope.runtime.session import Session
from flowscope.tracing.profile import profile
from flowscope.tracing.recording import Recording

#: Entry point group in which a display says where it is: a function `(feed)` that shows the feed's
#: graph, and returns whether it could and the view, if there is one. Beside it, in the module that
#: the entry names, stands `page`: a function `(feed, title)` that returns a page of HTML.
DISPLAYS = "flowscope.display"


def show(
    graph: Graph | Session | Recording | profile | None = None, session: Session | None = None
) -> Any:
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

    A recording is shown with its graph and its steps, in which nothing runs any more:

        fs.show(fs.tracing.load("run.recording"))

    Args:
        graph: The graph, a session on it, or what was recorded of steps (`fs.profile`, or what
            `fs.tracing.load` returns); the default graph if None.
        session: The session whose steps are shown; the graph's latest open one if None.

    Returns:
        The view, in which can be read and set what is chosen; None where there is none.
    """
    from flowscope.live.bus import shared_feed  # at need: most programs are never looked at
    from flowscope.live.text import text

    if isinstance(graph, profile | Recording):
        if session is not None:
            raise DTypeError(f"expected no session beside a recording, got {session!r}")
        return _shown(_recorded_feed(graph), text)
    if isinstance(graph, Session):
        session = graph
        graph = session.graph
    if graph is None:
        graph = session.graph if session is not None else get_default_graph()
    if not isinstance(graph, Graph):
        raise DTypeError(f"expected a graph or a session to show, got {graph!r}")
    return _shown(shared_feed(graph, session), text)


def _shown(feed: Any, text: Callable[[Any], str]) -> Any:
    from flowscope.live.nodes import Described

    for entry in _displays() if "IPython" in sys.modules else ():
        is_shown, view = entry.load()(feed)
        if is_shown:
            return view
    added = feed.describe().graph.added
    print(text(added.outlines() if isinstance(added, Described) else added))
    return None


def save_html(recording: Recording | profile, path: Any, title: str = "") -> None:
    """Writes a recording to one HTML page, which needs neither kernel nor network.

    The page has what views have - graph, timeline, costs, inspector - and asks nothing of anybody.

        with fs.profile() as recorded:
            sess.run(train)
        fs.save_html(recorded, "step.html")

    Args:
        recording: What was recorded. The graph is in what `fs.profile` has, and in files; without
            one the nodes that ran are shown. Of a step with more than 100 000 spans, neighbours
            that are too narrow to be seen are one. Of the values of tensors it has the newest 2000.
        path: The file's path.
        title: The page's title; what was recorded, and when, if it is "".

    Raises:
        DTypeError: if it is no recording.
        FailedPreconditionError: if there is no front end that makes pages.
    """
    if not isinstance(recording, profile | Recording):
        raise DTypeError(f"expected a recording, as `fs.profile` has it, got {recording!r}")
    page = next((found for e in _displays() if (found := _page(e)) is not None), None)
    if page is None:
        raise FailedPreconditionError(
            "no front end that makes pages is installed: install flowscope's wheel, which has one"
        )
    write_file(path, page(_recorded_feed(recording), title))


def _page(entry: Any) -> Any:
    return getattr(import_module(entry.module), "page", None)


def _recorded_feed(recording: Recording | profile) -> Any:
    from flowscope.live.recorded import RecordedFeed

    return RecordedFeed(recording.with_graph() if isinstance(recording, profile) else recording)


def _displays() -> Iterator[Any]:
    """Returns the entry points of the displays that are installed."""
    from importlib.metadata import entry_points  # a tenth of the import time of flowscope

    return iter(entry_points(group=DISPLAYS))
