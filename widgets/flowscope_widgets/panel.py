"""The docked panel's side in the kernel: a comm of its own, which the page opens.

JupyterLab's panel shows one graph of the kernel of the notebook that is worked with. The page opens
a comm in a subshell; so the panel is heard and answered while a cell is busy. It follows what runs,
unless a graph was chosen.
"""

from __future__ import annotations

from typing import Any

import comm as comms

from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.live.watchers.bus import shared_feed
from flowscope.runtime.session import engine
from flowscope_widgets.chosen import graph_key
from flowscope_widgets.subshell import listen_while_busy
from flowscope_widgets.view_state import SHARED, ViewState

#: The target of the panel's comm. The page opens it to show a panel; the kernel, to say that there
#: is something to be shown, or to ask for the panel.
TARGET = "flowscope.panel"

#: The panels that are open in pages of this kernel, by comm.
_open: dict[str, PanelView] = {}


class PanelView(ViewState):
    """A docked panel.

    Args:
        comm: What carries its messages.
        wanted: The key of the graph that was chosen; None to follow what runs.
    """

    def __init__(self, comm: Any, wanted: str | None = None) -> None:
        super().__init__()
        self._comm = comm
        self._wanted = wanted
        self._feed = shared_feed(self._graph_to_show())
        self._follow_runs(self._feed)
        self.observe(self._on_state, list(SHARED))
        self._tell_state()

    def take(self, content: Any) -> None:
        """Takes a message of the page: of a view, or which graph the panel is to show."""
        match content:
            case {"kind": "look"}:
                self.look()
            case {"kind": "graph", "key": None | str() as key}:
                self._wanted = key
                self.look()
            case _:
                super().take(content)

    def look(self) -> None:
        """Goes over to another graph, if that is the one to be shown now."""
        graph = self._graph_to_show()
        if graph is not self.graph:
            self._feed.leave(self._tell)
            with self.hold_trait_notifications():
                self._feed = shared_feed(graph)
                self._follow_runs(self._feed)
                self.selection, self.iteration, self.step, self.open_scopes = None, None, None, {}
                self.find = self.isolated = ""
                self.set_trait("difference", {})
                self.set_trait("graph_key", graph_key(graph))
        self._tell_state()

    def close(self) -> None:
        """Ends what the panel is told."""
        self._feed.leave(self._tell)
        self._setup.leave(self)

    def _graph_to_show(self) -> Graph:
        """Returns the graph that was chosen, or else runs; else the one shown so far."""
        known = _graphs()
        chosen = [g for g in known if graph_key(g) == self._wanted]
        if chosen:
            return chosen[0]
        running = [s.graph for s in engine.current().sessions if s.running]
        shown = self._feed.graph if hasattr(self, "_feed") else None
        if running:
            return shown if shown in running else running[-1]
        return shown if shown is not None and len(shown) else known[-1]

    def _tell_state(self) -> None:
        graphs = [{"key": graph_key(g), "title": _title(g)} for g in _graphs()]
        state = {name: getattr(self, name) for name in SHARED}
        state["graphs"], state["is_followed"] = graphs, self._wanted is None
        self._comm.send({"method": "update", "state": state})

    def _on_state(self, change: Any) -> None:
        self._comm.send({"method": "update", "state": {change["name"]: change["new"]}})

    def _carry(self, content: dict[str, Any], buffers: list[bytes]) -> None:
        self._comm.send({"method": "custom", "content": content}, buffers=buffers)


def _graphs() -> list[Graph]:
    """Returns the graphs that can be shown: of open sessions, the oldest first, and the default."""
    sessions = sorted(engine.current().sessions, key=lambda s: s.number)
    default = get_default_graph()
    found = dict.fromkeys(s.graph for s in sessions if not s.is_closed and s.graph is not default)
    return [g for g in (*found, default) if len(g)] or [default]


def _title(graph: Graph) -> str:
    name = "default graph" if graph is get_default_graph() else "graph"
    return f"{name}, {len(graph)} operations"


def panels() -> list[PanelView]:
    """Returns the docked panels that are open on this kernel, for Python to read and set."""
    return list(_open.values())


def serve() -> None:
    """Lets pages open panels on this kernel, and tells those that are there."""
    manager = comms.get_comm_manager()
    if TARGET not in manager.targets:
        manager.register_target(TARGET, _opened)
        tell_pages(is_wanted=False)


def tell_pages(is_wanted: bool) -> None:
    """Tells the pages of this kernel that there is something to be shown.

    Args:
        is_wanted: Whether they are to open the panel.
    """
    comms.create_comm(target_name=TARGET, data={"is_wanted": is_wanted}).close()


def _opened(comm: Any, message: Any) -> None:
    listen_while_busy(comm)
    wanted = message["content"]["data"].get("graph")
    view = PanelView(comm, wanted if isinstance(wanted, str) else None)
    _open[comm.comm_id] = view

    def heard(told: Any) -> None:
        view.take(told["content"]["data"].get("content"))

    def closed(told: Any) -> None:
        del told
        view.close()
        _open.pop(comm.comm_id, None)

    comm.on_msg(heard)
    comm.on_close(closed)


__all__ = ["TARGET", "PanelView", "panels", "serve", "tell_pages"]
