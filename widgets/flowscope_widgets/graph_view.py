"""The graph view: a widget that carries messages between the live bus and the browser.

The widget has no state of its own: the browser asks for a snapshot when it opens and gets deltas
    from
then on. Every display also carries a picture and a text, for a notebook that is read without a
kernel.
"""

from __future__ import annotations

import json
import pathlib
import warnings
from typing import Any

import anywidget
import traitlets

from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.live.bus import Feed
from flowscope.live.schema import Command, Connect, Disconnect, FromKernel, Snapshot
from flowscope.live.wire import message_from, to_json
from flowscope.runtime.session import Session
from flowscope_widgets import picture
from flowscope_widgets.subshell import listen_while_busy

_STATIC = pathlib.Path(__file__).parent / "static"
_SCRIPT = _STATIC / "graph_view.js"
_STYLE = _STATIC / "graph_view.css"

#: The mime type that the JupyterLab extension shows: the live view, or the picture without a
#: kernel.
MIME = "application/vnd.flowscope.view+json"
_WIDGET_MIME = "application/vnd.jupyter.widget-view+json"
#: Largest snapshot, in characters of JSON, that is kept in the notebook.
KEPT_CHARS = 300_000


class GraphView(anywidget.AnyWidget):
    """A live view of a graph and of the session that runs it.

    Args:
        graph: The graph; the default graph if None.
        session: The session whose steps are shown; the graph's latest open one if None.
        feed: The messages to show, in place of graph and session.
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        graph: Graph | None = None,
        session: Session | None = None,
        *,
        feed: Feed | None = None,
    ) -> None:
        self._feed = feed or Feed(graph or get_default_graph(), session)
        self._end: Any = None
        #: The views that are open in browsers: without any nothing is looked at or sent.
        self._views: set[int] = set()
        super().__init__(_esm=_SCRIPT.read_text("utf-8"), _css=_STYLE.read_text("utf-8"))
        listen_while_busy(self.comm)
        self.on_msg(self._on_message)

    def _on_message(self, _: Any, content: Any, buffers: Any) -> None:
        try:
            message = message_from(content)
        except ValueError as e:
            warnings.warn(str(e), stacklevel=2)
            return
        match message:
            case Disconnect(view):
                self._views.discard(view)
                if not self._views:
                    self._unsubscribe()
            case Connect(view):
                self._views.add(view)
                if self._end is None:
                    self._end = self._feed.subscribe(self._tell)
                self._feed.receive(message)
            case Command():
                self._feed.receive(message)

    def _tell(self, message: FromKernel) -> None:
        if self.comm is None:
            return
        self.send(to_json(message))

    def close(self) -> None:
        """Ends the view."""
        self._unsubscribe()
        super().close()

    def _unsubscribe(self) -> None:
        if self._end is not None:
            self._end()
            self._end = None

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        if not data:
            return bundle
        saved = saved_picture(self._feed.describe())
        saved[MIME]["model_id"] = data[_WIDGET_MIME]["model_id"]
        return {**data, **saved}, metadata


def saved_picture(snapshot: Snapshot) -> dict[str, Any]:
    """Returns what a saved notebook shows: a picture, a text, and the snapshot if small."""
    nodes = snapshot.graph.added
    svg, text = picture.svg(nodes), picture.text(nodes)
    plain = to_json(snapshot)
    kept = plain if len(json.dumps(plain)) <= KEPT_CHARS else None
    view = {"version": 0, "model_id": "", "svg": svg, "text": text, "snapshot": kept}
    return {MIME: view, "image/svg+xml": svg, "text/plain": text}


def display(feed: Feed) -> bool:
    """Shows a feed's graph in the notebook; returns False outside of one.

    Where the wheel was built without the front end, the picture is shown and a warning says so.
    """
    from IPython import get_ipython
    from IPython.display import display as ipython_display

    show: Any = ipython_display
    shell = get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return False
    if _SCRIPT.exists():
        show(GraphView(feed=feed))
        return True
    warnings.warn(
        "this flowscope was built without its front end: here is a picture of the graph",
        stacklevel=3,
    )
    saved = saved_picture(feed.describe())
    show({k: saved[k] for k in ("image/svg+xml", "text/plain")}, raw=True)
    return True


__all__ = ["GraphView", "display", "saved_picture"]
