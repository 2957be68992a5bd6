"""Graphs as `graphviz.Digraph`s: what the picture shows, for the tools that read DOT.

The front end's own code folds the graph and writes the body, as it does for the saved picture.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from flowscope.errors import DTypeError, FailedPreconditionError, NotFoundError
from flowscope.graph.graph import Graph
from flowscope.live.graphs.lowered import lowered_nodes
from flowscope.live.graphs.partitioned import partition_nodes
from flowscope.live.watchers.bus import LiveChannel
from flowscope.plan.plan import Plan
from flowscope.runtime.session.session import Session
from flowscope_widgets import picture
from flowscope_widgets.view_state import ViewState

NO_DOT = (
    "Graphviz's program `dot` is not installed on this machine: here is the source in place of "
    "the picture. `apt install graphviz`, `brew install graphviz` or `conda install graphviz` "
    "brings it."
)
#: Longest name of a file that `render` and `save` propose.
FILE_CHARS = 80


def digraph(shown: Any, open_scopes: Collection[str] | None = None, title: str = "") -> Any:
    """Returns a `graphviz.Digraph`; see `fs.to_graphviz`.

    Args:
        shown: A graph, a session, a plan, a view, or the feed of a recording.
        open_scopes: Paths of scopes to show open, "*" for all; None for those that are open in the
            view, or that a first look opens.
        title: The graph's name; one that says what it is if it is "".

    Raises:
        DTypeError: if `shown` is none of these.
        NotFoundError: if there is no such scope.
        FailedPreconditionError: if the package graphviz or the front end is missing.
    """
    try:
        import graphviz
    except ImportError:
        raise FailedPreconditionError(
            "the package graphviz is not installed: `pip install graphviz`, or flowscope[lab], "
            "which has it"
        ) from None
    drawn = _drawn(shown, open_scopes, title)

    class Digraph(graphviz.Digraph):  # type: ignore[misc]
        """The package's own, shown as source where there is no `dot`."""

        def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> Any:
            try:
                return super()._repr_mimebundle_(*args, **kwargs)
            except graphviz.ExecutableNotFound:
                return {"text/plain": f"{NO_DOT}\n\n{self.source}"}

    return Digraph(
        graphviz.escape(drawn["name"]),
        filename=re.sub(r"[^\w.-]+", "_", drawn["name"])[:FILE_CHARS] + ".gv",
        graph_attr=drawn["graph"],
        node_attr=drawn["node"],
        edge_attr=drawn["edge"],
        body=drawn["body"],
    )


def dot_text(view: ViewState) -> str:
    """Returns the source of a view's `Digraph`.

    Raises:
        FailedPreconditionError: if the front end is missing.
    """
    return str(_drawn(view, None, "")["text"])


def _drawn(shown: Any, open_scopes: Collection[str] | None, title: str) -> dict[str, Any]:
    """Returns the parts of a digraph, and its text."""
    if not picture.can_draw():
        raise FailedPreconditionError(
            "this flowscope was built without its front end, or this process is a fork of one that "
            "has drawn: no picture can be made here"
        )
    opened = [open_scopes] if isinstance(open_scopes, str) else open_scopes
    if isinstance(shown, Plan):
        is_cut = len(shown.partitions) > 1
        nodes = partition_nodes(shown) if is_cut else lowered_nodes(shown)
        devices = [device.to_string() for device in shown.request.devices]
        text = picture.dot(
            nodes, open_scopes=opened, title=title or "plan", devices=devices, is_cut=is_cut
        )
    else:
        feed, chosen, isolated = _feed(shown)
        now = feed.describe()
        text = picture.dot(
            now.graph.added,
            open_scopes=opened,
            title=title or now.graph_name,
            chosen=chosen if open_scopes is None else {},
            isolated=isolated,
            devices=now.session.devices if now.session else (),
        )
    drawn: dict[str, Any] = json.loads(text)
    if drawn["unknown"]:
        raise NotFoundError(
            f'expected paths of scopes as the view shows them, or "*" for all; there is no scope '
            f"{', '.join(map(repr, drawn['unknown']))}"
        )
    return drawn


def _feed(shown: Any) -> tuple[LiveChannel, dict[str, bool], str]:
    """Returns whose graph is shown, which scopes were opened or closed, and what is shown alone."""
    if isinstance(shown, ViewState):
        return shown._feed, shown.open_scopes, shown.isolated
    if isinstance(shown, LiveChannel):
        return shown, {}, ""
    if isinstance(shown, Session):
        return LiveChannel(shown.graph, shown), {}, ""
    if isinstance(shown, Graph):
        return LiveChannel(shown), {}, ""
    raise DTypeError(
        f"expected a graph, a session, a plan, a view or a recording to draw, got {shown!r}"
    )


__all__ = ["NO_DOT", "digraph", "dot_text"]
