"""The graph view: a widget that carries messages between the live bus and the browser.

The browser asks for a snapshot when it opens and gets deltas from then on. What a user has chosen -
a selection, an iteration, open scopes - is the widget's state: all its displays share it, Python
reads and sets it, and it outlives a reload of the page. Every display also carries a picture and a
text, for a notebook that is read without a kernel.
"""

from __future__ import annotations

import pathlib
import threading
import warnings
from typing import Any

import anywidget
import traitlets

from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.live.bus import Feed, feeds
from flowscope.live.schema import Choose, FromKernel
from flowscope.live.wire import message_from, to_wire
from flowscope.runtime.session import Session
from flowscope_widgets.chosen import ChosenIteration, graph_key, iteration_from, selection_from
from flowscope_widgets.displays import Displays
from flowscope_widgets.saved import MIME, saved_picture
from flowscope_widgets.subshell import listen_while_busy

_STATIC = pathlib.Path(__file__).parent / "static"
_SCRIPT = _STATIC / "graph_view.js"
_STYLE = _STATIC / "graph_view.css"
_WIDGET_MIME = "application/vnd.jupyter.widget-view+json"


class GraphView(anywidget.AnyWidget):
    """A live view of a graph and of the session that runs it.

    What is chosen in the view can be read and set here at any time, also while a cell runs, and
    observed as with any widget: `view.observe(print, "iteration")`.

    Args:
        graph: The graph; the default graph if None.
        session: The session whose steps are shown; the graph's latest open one if None.
        feed: The messages to show, in place of graph and session.
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    #: Names the graph in the page: views of one graph share there what is chosen.
    graph_key = traitlets.Unicode(read_only=True).tag(sync=True)
    #: What is selected: the name of an operation, or the path of a scope with a "/" behind it; None
    #: for nothing. An operation or a tensor can be given too.
    selection = traitlets.Any(None, allow_none=True).tag(sync=True)
    #: The chosen iteration of a running loop, as (path of its frame, number): values of others are
    #: faint in the view. None for none. Frames are those of `session.frames()`; what is chosen
    #: before a loop runs waits for it, and the choice ends with the step.
    iteration = traitlets.Any(None, allow_none=True).tag(sync=True)
    #: The scopes that were opened or closed by hand, by path: whether they are open.
    open_scopes = traitlets.Dict(key_trait=traitlets.Unicode(), value_trait=traitlets.Bool()).tag(
        sync=True
    )

    def __init__(
        self,
        graph: Graph | None = None,
        session: Session | None = None,
        *,
        feed: Feed | None = None,
    ) -> None:
        shown = get_default_graph() if graph is None else graph
        self._feed = feed or feeds.feed(shown, session)
        #: The thread that takes what the browser has chosen, if one does.
        self._hearing: int | None = None
        self._displays = Displays(self)
        super().__init__(_esm=_SCRIPT.read_text("utf-8"), _css=_STYLE.read_text("utf-8"))
        listen_while_busy(self.comm)
        self.on_msg(self._on_message)

    @property
    def open_views(self) -> int:
        """How many views of this widget are open in browsers, as far as is known."""
        return self._feed.views(self._tell)

    @property
    def graph(self) -> Graph:
        """The graph that is shown."""
        return self._feed.graph

    @traitlets.default("graph_key")
    def _default_graph_key(self) -> str:
        return graph_key(self.graph)

    # -- what is chosen -------------------------------------------------------------------------

    def _choose(self, message: Choose) -> None:
        """Takes what was chosen in the browser, where more can be selected than the graph has."""
        self._hearing = threading.get_ident()
        try:
            setattr(self, message.what, message.value)
        finally:
            self._hearing = None

    @traitlets.validate("selection")
    def _validate_selection(self, proposal: Any) -> str | None:
        value: Any = proposal["value"]
        if self._hearing == threading.get_ident():
            return value if isinstance(value, str) else None
        return selection_from(value, self.graph)

    @traitlets.validate("iteration")
    def _validate_iteration(self, proposal: Any) -> ChosenIteration | None:
        return iteration_from(proposal["value"])

    # -- messages -------------------------------------------------------------------------------

    def _on_message(self, _: Any, content: Any, buffers: Any) -> None:
        try:
            message = message_from(content)
        except ValueError as e:
            warnings.warn(str(e), stacklevel=2)
            return
        if isinstance(message, Choose):
            self._choose(message)
        else:
            self._feed.hear(message, self._tell)

    def _tell(self, message: FromKernel) -> None:
        if self.comm is not None:
            self.send(*to_wire(message))

    def close(self) -> None:
        """Ends the view."""
        self._feed.leave(self._tell)
        self._displays.close()
        super().close()

    # -- displays -------------------------------------------------------------------------------

    def bundle(self, *, is_drawn: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns what a display of the view holds, by mime type, and its metadata.

        Args:
            is_drawn: Whether it holds the saved picture; without it there is only a text.
        """
        bundle = super()._repr_mimebundle_()
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        if not data:
            return {}, {}
        saved = saved_picture(self._feed.describe(), is_drawn=is_drawn)
        saved[MIME]["model_id"] = data[_WIDGET_MIME]["model_id"]
        return {**data, **saved}, metadata

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        return self.bundle()

    def _ipython_display_(self, **kwargs: Any) -> None:
        self._displays.show()


def display(feed: Feed) -> tuple[bool, GraphView | None]:
    """Shows a feed's graph in the notebook.

    Where the wheel was built without the front end, a text is shown and a warning says so.

    Returns:
        Whether it could be shown, which is in a notebook only, and the view.
    """
    from IPython import get_ipython
    from IPython.display import display as ipython_display

    show: Any = ipython_display
    shell = get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return False, None
    if _SCRIPT.exists():
        view = GraphView(feed=feed)
        view._displays.show(is_result=False)
        return True, view
    warnings.warn(
        "this flowscope was built without its front end: here is the graph as text",
        stacklevel=3,
    )
    saved = saved_picture(feed.describe(), is_drawn=False)
    show({"text/plain": saved["text/plain"]}, raw=True)
    return True, None


__all__ = ["GraphView", "display"]
