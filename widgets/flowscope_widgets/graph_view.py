"""The graph view: a widget that carries messages between the live bus and the browser.

The browser asks for a snapshot when it opens and gets deltas from then on. What a user has chosen -
a selection, an iteration, open scopes - is the widget's state: all its displays share it, Python
reads and sets it, and it outlives a reload of the page. Every display also carries a picture and a
text, for a notebook that is read without a kernel.
"""

from __future__ import annotations

import hashlib
import pathlib
import warnings
from typing import Any

import anywidget
import traitlets

from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.live.watchers.bus import LiveChannel, shared_feed
from flowscope.runtime.session.session import Session
from flowscope_widgets import panel
from flowscope_widgets.displays import Displays
from flowscope_widgets.saved import MIME, saved_picture
from flowscope_widgets.subshell import listen_while_busy
from flowscope_widgets.view_state import ViewState

_STATIC = pathlib.Path(__file__).parent / "static"
_LOADER = _STATIC / "loader.js"
_SCRIPT = _STATIC / "graph_view.js"
_STYLE = _STATIC / "graph_view.css"
_WIDGET_MIME = "application/vnd.jupyter.widget-view+json"


class GraphView(ViewState, anywidget.AnyWidget):
    """A live view of a graph and of the session that runs it.

    What is chosen in the view can be read and set here at any time, also while a cell runs, and
    observed as with any widget: `view.observe(print, "iteration")`.

    Args:
        graph: The graph; the default graph if None.
        session: The session whose steps are shown; the graph's latest open one if None.
        feed: The messages to show, in place of graph and session.
    """

    #: A small script: what draws it asks for, once in a page.
    _esm = traitlets.Unicode().tag(sync=True)
    #: Which version of what draws this is; pages keep it by this name.
    core = traitlets.Unicode(read_only=True).tag(sync=True)

    def __init__(
        self,
        graph: Graph | None = None,
        session: Session | None = None,
        *,
        feed: LiveChannel | None = None,
    ) -> None:
        shown = get_default_graph() if graph is None else graph
        self._feed = feed or shared_feed(shown, session)
        self._displays = Displays(self)
        super().__init__(_esm=_LOADER.read_text("utf-8"))
        self._follow_runs(self._feed)
        listen_while_busy(self.comm)
        panel.serve()
        self.on_msg(self._on_message)

    @traitlets.default("core")
    def _default_core(self) -> str:
        return hashlib.sha256(_SCRIPT.read_bytes() + _STYLE.read_bytes()).hexdigest()[:16]

    def _on_message(self, _: Any, content: Any, buffers: Any) -> None:
        if content == {"kind": "core"}:
            self._carry({"kind": "core", "script": _SCRIPT.read_text("utf-8"),
                         "style": _STYLE.read_text("utf-8")}, [])  # fmt: skip
        else:
            self.take(content)

    def _carry(self, content: dict[str, Any], buffers: list[bytes]) -> None:
        if self.comm is not None:
            self.send(content, buffers)

    def close(self) -> None:
        """Ends the view."""
        self._feed.leave(self._tell)
        self._setup.leave(self)
        self._displays.close()
        super().close()

    # -- displays -------------------------------------------------------------------------------

    def bundle(self, *, is_drawn: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
        """The contents of a display of the view by mime type, and its metadata.

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


def display(feed: LiveChannel) -> tuple[bool, GraphView | None]:
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
