"""The state of a view, whatever brings it to the browser: a widget or the docked panel.

What a user has chosen is data: all displays of a view share it, Python reads and sets it, and it
outlives a reload of the page.
"""

from __future__ import annotations

import threading
import warnings
from typing import Any

import traitlets

from flowscope.errors import DTypeError, FailedPreconditionError, OpError
from flowscope.graph.graph import Graph
from flowscope.live.protocol.schema import AskExport, Choose, Command, FromKernel, Reply
from flowscope.live.watchers.bus import LiveChannel
from flowscope.live.watchers.wire import message_from, to_wire
from flowscope_widgets.chosen import ChosenIteration, graph_key, iteration_from, selection_from
from flowscope_widgets.difference import difference
from flowscope_widgets.run_control import RunControl

#: The traits that a browser has too.
SHARED = (
    "graph_key", "selection", "iteration", "open_scopes", "find", "isolated", "difference",
    "run_setup", "step", "heat",
)  # fmt: skip


class ViewState(RunControl):
    """What is chosen in a view of a graph, and the view's messages.

    A subclass carries messages: it calls `take` with what comes and defines `_carry`.
    """

    #: Names the graph in the page: views of one graph share there what is chosen.
    graph_key = traitlets.Unicode(read_only=True).tag(sync=True)
    #: What is selected: the name of an operation, or the path of a scope with a "/" behind it; None
    #: for nothing. An operation or a tensor can be given too.
    selection = traitlets.Any(None, allow_none=True).tag(sync=True)
    #: The chosen iteration of a running loop, as (path of its frame, number): values of others are
    #: faint in the view. None for none. Frames are those of `session.frames()`; what is chosen
    #: before a loop runs waits for it, and the choice ends with the step.
    iteration = traitlets.Any(None, allow_none=True).tag(sync=True)
    #: The number of the recorded step that is chosen: timeline and table are about it. None for
    #: all that was recorded.
    step = traitlets.Int(None, allow_none=True).tag(sync=True)
    #: What each box of the graph tells by a bar: "off" for nothing, its share of a step's "time",
    #: or of the "memory" that a step takes, or the "device"s that its operations stand on.
    heat = traitlets.Enum(("off", "time", "memory", "device", "weights", "flops"), "off").tag(
        sync=True
    )
    #: The scopes that were opened or closed by hand, by path: whether they are open.
    open_scopes = traitlets.Dict(key_trait=traitlets.Unicode(), value_trait=traitlets.Bool()).tag(
        sync=True
    )

    #: What is sought: what is not found is faint. Texts and regular expressions, alone or of a
    #: field ("type:MatMul", "name:/conv_?[0-9]/", "device:GPU", "dtype:int64", "line:12"), what
    #: is so ("is:changed", "is:stale", "is:fed", "is:fetched", "is:variable"), and what lies on the
    #: ways between operations or scopes ("from:x to:loss"); all terms hold. "" for nothing.
    find = traitlets.Unicode("").tag(sync=True)
    #: The name of the operation, or the path of the scope, that is shown alone with its neighbours;
    #: "" for the whole graph. An operation or a tensor can be given too.
    isolated = traitlets.Any("").tag(sync=True)

    #: What is another than in the graph that `compare` was called with: "added", "altered" or
    #: "removed", by name. "is:different" finds it, as "is:added" and "is:altered" do.
    difference: Any = traitlets.Dict(read_only=True).tag(sync=True)

    _feed: LiveChannel
    #: The thread that takes what the browser has chosen, if one does.
    _hearing: int | None = None

    @property
    def graph(self) -> Graph:
        """The graph that is shown."""
        return self._feed.graph

    @property
    def open_views(self) -> int:
        """How many views are open in browsers, as far as is known."""
        return self._feed.views(self._tell)

    def compare(self, other: Graph | None) -> dict[str, str]:
        """Shows what is another than in another graph: the rest is faint.

        Args:
            other: The graph to compare with; None ends it.

        Returns:
            "added", "altered" or "removed", by name of the operation.

        Raises:
            DTypeError: if it is no graph.
        """
        if other is not None and not isinstance(other, Graph):
            raise DTypeError(f"expected a graph to compare with, or None, got {other!r}")
        self.set_trait("difference", {} if other is None else difference(self.graph, other))
        self.find = "" if other is None else "is:different"
        found: dict[str, str] = self.difference
        return found

    def to_dot(self) -> str:
        """The picture in Graphviz's language: the source of `fs.to_graphviz`.

        Raises:
            FailedPreconditionError: if this flowscope was built without its front end.
        """
        from flowscope_widgets.digraphs import dot_text

        return dot_text(self)

    @traitlets.default("graph_key")
    def _default_graph_key(self) -> str:
        return graph_key(self.graph)

    # -- what is chosen -------------------------------------------------------------------------

    def _choose(self, message: Choose) -> None:
        """Takes what was chosen in the browser, where more can be selected than the graph has."""
        what, value = message.what, message.value
        self._hearing = threading.get_ident()
        try:
            if what == "fetches" and isinstance(value, tuple):
                self._setup.note_fetches([str(name) for name in value])
            elif what == "feed" and isinstance(value, tuple):
                self._setup.note_feed(*value)
            else:
                setattr(self, what, value)
        except OpError as e:
            self._tell(Reply(0, False, e.message))
        finally:
            self._hearing = None

    @traitlets.validate("selection")
    def _validate_selection(self, proposal: Any) -> str | None:
        value: Any = proposal["value"]
        if self._hearing == threading.get_ident():
            return value if isinstance(value, str) else None
        return selection_from(value, self.graph)

    @traitlets.validate("isolated")
    def _validate_isolated(self, proposal: Any) -> str:
        value: Any = proposal["value"]
        if self._hearing == threading.get_ident() or value == "":
            return value if isinstance(value, str) else ""
        return selection_from(value, self.graph) or ""

    @traitlets.validate("iteration")
    def _validate_iteration(self, proposal: Any) -> ChosenIteration | None:
        return iteration_from(proposal["value"])

    # -- messages -------------------------------------------------------------------------------

    def take(self, content: Any) -> None:
        """Takes a message of the browser; warns of one that is none."""
        try:
            message = message_from(content)
        except ValueError as e:
            warnings.warn(str(e), stacklevel=2)
            return
        if isinstance(message, Choose):
            self._choose(message)
        elif isinstance(message, Command) and message.name == "run":
            self._tell(self._ask_for_run(message))
        elif isinstance(message, AskExport):
            from flowscope_widgets.exporting import export  # few views save anything

            export(self._feed, message, self._tell)
        else:
            self._feed.hear(message, self._tell)

    def _ask_for_run(self, command: Command) -> Reply:
        try:
            return Reply(command.command_id, True, self._setup.ask(), command.view)
        except FailedPreconditionError as e:
            return Reply(command.command_id, False, e.message, command.view)

    def _tell(self, message: FromKernel) -> None:
        self._carry(*to_wire(message))

    def _carry(self, content: dict[str, Any], buffers: list[bytes]) -> None:
        raise NotImplementedError


__all__ = ["SHARED", "ViewState"]
