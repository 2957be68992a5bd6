"""`fs.show`: the view of a graph or a recording, by whatever display is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from importlib import import_module
from typing import Any

from flowscope.errors import DTypeError, FailedPreconditionError
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.serialization.files import write_file
from flowscope.runtime.session.session import Session
from flowscope.tracing.profile import profile
from flowscope.tracing.recorder import Recorder
from flowscope.tracing.recording import Recording

#: Entry point group in which a display says where it is: a function `(feed)` that shows the feed's
#: graph, and returns whether it could and the view, if there is one. Beside it, in the module that
#: the entry names, stand `page`, a function `(feed, title)` that returns a page of HTML, and
#: `digraph`, a function `(shown, open_scopes, title)` that returns a `graphviz.Digraph`.
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
    from flowscope.live.graphs.text import text
    from flowscope.live.watchers.bus import (
        shared_feed,  # at need: most programs are never looked at
    )

    if isinstance(graph, profile | Recording):
        if session is not None:
            raise DTypeError(f"expected no session beside a recording, got {session!r}")
        return _shown(_recorded_feed(graph), text)
    if isinstance(graph, Session):
        session = graph
    found = graph_of(session if graph is None else graph, "a graph or a session to show")
    return _shown(shared_feed(found, session), text)


def _shown(feed: Any, text: Callable[[Any], str]) -> Any:
    from flowscope.live.graphs.nodes import Described

    for entry in _displays() if "IPython" in sys.modules else ():
        is_shown, view = entry.load()(feed)
        if is_shown:
            return view
    added = feed.describe().graph.added
    print(text(added.outlines() if isinstance(added, Described) else added))
    return None


def save_html(
    shown: Graph | Session | Recording | profile | None, path: Any, title: str = ""
) -> None:
    """Writes a graph, or a recording, to one HTML page, which needs neither kernel nor network.

    The page has what views have - graph, timeline, costs, inspector - and asks nothing of anybody.

        with fs.profile() as recorded:
            sess.run(train)
        fs.save_html(recorded, "step.html")
        fs.save_html(graph, "graph.html")

    Args:
        shown: A graph, a session for its graph, or what was recorded of steps; the default graph
            if None. The graph of a recording is in what `fs.profile` has, and in files; without one
            the nodes that ran are shown. Where no step was recorded, the page has the whole graph
            of the profiled session, else the default graph. Of a step with more than 100 000 spans,
            neighbours that are too narrow to be seen are one. Of the values of tensors it has the
            newest 2000.
        path: The file's path.
        title: The page's title; if it is "", what was recorded, and when, or the graph's size.

    Raises:
        DTypeError: if it is neither graph nor recording.
        FailedPreconditionError: if there is no front end that makes pages.
    """
    page = _from_display("page")
    if isinstance(shown, profile | Recording):
        feed = _recorded_feed(shown)
    else:
        feed = graph_feed(graph_of(shown, "a graph or a recording, as `fs.profile` has it"))
    if page is None:
        raise FailedPreconditionError(
            "no front end that makes pages is installed: install flowscope's wheel, which has one"
        )
    write_file(path, page(feed, title))


def graph_of(shown: Graph | Session | None, expected: str) -> Graph:
    """The graph of a session, the graph itself, or the default graph for None.

    Args:
        shown: A graph, a session or None.
        expected: What the error says was expected.

    Raises:
        DTypeError: if it is something else.
    """
    if isinstance(shown, Session):
        return shown.graph
    if shown is None:
        return get_default_graph()
    if not isinstance(shown, Graph):
        raise DTypeError(f"expected {expected}, got {shown!r}")
    return shown


def to_graphviz(
    shown: Any = None, *, open_scopes: Collection[str] | None = None, title: str = ""
) -> Any:
    """Returns a picture as a `graphviz.Digraph`, to print, compare and work on.

        fs.to_graphviz(graph)                                 # shown as SVG in a notebook
        fs.to_graphviz(view).render("model", format="pdf")    # as it is folded in the view
        fs.to_graphviz(session.plan(loss), open_scopes="*")   # what a step runs, by devices
        picture = fs.to_graphviz(graph, open_scopes=["encoder", "encoder/layer1"])
        picture.graph_attr["rankdir"] = "LR"

    Scopes, frames of loops and branches, and the parts of devices are clusters; where there are two
    devices or more, colours tell them. Nodes have the names of operations ("layer/w"), and of
    closed scopes ("layer/"). The same graph gives the same source.

    Args:
        shown: A graph, a session, a plan, a view, or what was recorded of steps; the default graph
            if None.
        open_scopes: Paths of scopes to show open, with those around them; "*" for all. None for
            those that are open in the view, or that a first look opens.
        title: The graph's name.

    Raises:
        DTypeError: if `shown` is none of these.
        NotFoundError: if there is no such scope.
        FailedPreconditionError: if the package graphviz, which the extra "lab" brings, or the front
            end is missing.
    """
    digraph = _from_display("digraph")
    if digraph is None:
        raise FailedPreconditionError(
            "no front end that draws graphs is installed: install flowscope's wheel, which has one"
        )
    if shown is None:
        shown = get_default_graph()
    elif isinstance(shown, profile | Recording):
        shown = _recorded_feed(shown)
    return digraph(shown, open_scopes, title)


def _from_display(name: str) -> Any:
    """The attribute of that name of the first display that has it; None if none does."""
    modules = (import_module(entry.module) for entry in _displays())
    return next((found for m in modules if (found := getattr(m, name, None)) is not None), None)


def _recorded_feed(recording: Recording | profile) -> Any:
    from flowscope.live.watchers.recorded import RecordedFeed

    if isinstance(recording, Recording):
        return RecordedFeed(recording)
    found = recording.with_graph()
    return RecordedFeed(found, None if found.traced_steps else graph_of(recording.session, ""))


def graph_feed(graph: Graph) -> Any:
    """The messages about a graph in which nothing ran."""
    from flowscope.live.watchers.recorded import RecordedFeed

    return RecordedFeed(Recorder(0, 0).recording(), graph)


def _displays() -> Iterator[Any]:
    """Returns the entry points of the displays that are installed."""
    from importlib.metadata import entry_points  # a tenth of the import time of flowscope

    return iter(entry_points(group=DISPLAYS))
