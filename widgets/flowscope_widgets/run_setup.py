"""What the views of a graph are to fetch and feed, the runs of it, and what came of them.

All views of a graph share one. What a page asks for comes in a thread of its own and is only noted;
the run is done on the main thread, between two cells (`between_cells`).
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterable, Mapping
from typing import Any, Literal
from weakref import WeakKeyDictionary

from flowscope.errors import FailedPreconditionError, InvalidArgumentError, OpError
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.live.answers.fetched import fetched
from flowscope.live.graphs.needs import fed_for, rows_of, unfed_placeholders, would_run
from flowscope.live.graphs.nodes import output_of
from flowscope.live.protocol.run_schema import Need, Outcome, RunSetup
from flowscope.live.watchers.bus import LiveChannel, notebook
from flowscope.live.watchers.wire import plain
from flowscope.runtime.planning.feeds import flatten_feeds
from flowscope.runtime.planning.fetches import Flattened
from flowscope_widgets import between_cells
from flowscope_widgets.fed import Fed, candidates
from flowscope_widgets.feed_text import described
from flowscope_widgets.runs import Run, Runs


class Setup:
    """What is to be fetched and fed, and the runs.

    Args:
        feed: Whose graph is shown, and in whose session it is run.
    """

    def __init__(self, feed: LiveChannel) -> None:
        self._feed = weakref.ref(feed)
        self._lock = threading.RLock()
        self._followers: weakref.WeakSet[Any] = weakref.WeakSet()
        self.state: Literal["ready", "waiting", "running"] = "ready"
        self.fetches: tuple[str, ...] = ()
        self.feeds: dict[str, Fed] = {}
        self.runs = Runs()
        self.told: dict[str, Any] = plain(self._described())
        between_cells.tell_of_cells(self)

    @property
    def _source(self) -> LiveChannel:
        feed = self._feed()
        if feed is None:
            raise InvalidArgumentError("the view was closed: make another with fs.show()")
        return feed

    # -- what is chosen -------------------------------------------------------------------------

    def choose(self, fetches: Any) -> None:
        """Sets what is fetched: tensors, operations, variables or names, in a list or alone.

        Raises:
            InvalidArgumentError: if one is not of the graph, or cannot be fetched.
        """
        given = list(fetches) if isinstance(fetches, list | tuple) else [fetches]
        graph = self._source.graph
        elements = [_element(graph, one) for one in given]
        self.note_fetches([element.name for element in elements])

    def note_fetches(self, names: Iterable[str]) -> None:
        """Sets the names of what is fetched, which the graph may not have, or not yet."""
        with self._lock:
            self.fetches = tuple(dict.fromkeys(names))
            self.tell()

    def give(self, feeds: Mapping[Any, Any]) -> None:
        """Sets what is fed: values by tensor, variable or name.

        A `FromNotebook` as value stands for a variable of the notebook, at the time of the run.

        Raises:
            InvalidArgumentError: if a tensor is not of the graph or is given twice.
        """
        if not isinstance(feeds, Mapping):
            raise InvalidArgumentError(f"expected a dict of values by tensor, got {feeds!r}")
        graph = self._source.graph
        found: dict[str, Fed] = {}
        for key, value in (flatten_feeds(dict(feeds)) or feeds).items():
            element = _element(graph, key)
            tensor = element.outputs[0] if isinstance(element, Operation) else element
            if tensor.name in found:
                raise InvalidArgumentError(f'"{tensor.name}" is given twice')
            found[tensor.name] = Fed.of(value)
        with self._lock:
            self.feeds = found
            self.tell()

    def note_feed(self, name: str, text: str | None) -> None:
        """Sets what was typed for a tensor; None takes it from the feeds."""
        with self._lock:
            self.feeds = {n: f for n, f in self.feeds.items() if n != name}
            if text is not None:
                self.feeds[name] = Fed.typed(text)
            self.tell()

    def note_baseline(self, number: int | None) -> None:
        """Sets the run that the latest is compared with; None for the one before.

        Raises:
            InvalidArgumentError: if there is no such run any more.
        """
        with self._lock:
            self.runs.set_baseline(number)
            self.tell()

    # -- what is told ---------------------------------------------------------------------------

    def follow(self, view: Any) -> None:
        """Tells a view from now on, by its trait `run_setup`."""
        self._followers.add(view)
        view.set_trait("run_setup", self.told)

    def leave(self, view: Any) -> None:
        """Tells a view nothing more."""
        self._followers.discard(view)

    def tell(self) -> None:
        """Tells all views how things stand."""
        with self._lock:
            self.told = plain(self._described())
            for view in list(self._followers):
                view.set_trait("run_setup", self.told)

    def needs(self) -> tuple[Need, ...]:
        """The feeds that the fetches need, and the Specs of their values."""
        return self._described().needs

    def _described(self) -> RunSetup:
        graph = self._source.graph
        problem, needed, wanted = "", set[Operation](), list[Tensor]()
        try:
            flat = Flattened(graph, list(self.fetches))
            fed = [_tensor(graph, name) for name in self.feeds]
            if self.fetches:
                needed = would_run(graph, flat.tensors, flat.targets, fed)
            matter = fed_for(needed, flat.tensors, fed)
            wanted = [*unfed_placeholders(needed, fed), *matter]
        except OpError as e:
            problem = e.message
        needs = tuple(self._need(t) for t in sorted(wanted, key=lambda t: t.op.order))
        return RunSetup(
            fetches=self.fetches,
            needs=needs,
            would_run=rows_of(needed),
            state=self.state,
            problem=problem or self._problem(needs),
            latest=self.runs.kept[-1].outcome if self.runs.kept else None,
            kept=tuple(run.number for run in self.runs.kept),
            compared_with=self.runs.compared_with,
            changes=self.runs.changes(),
        )

    def _need(self, tensor: Tensor) -> Need:
        given = self.feeds.get(tensor.name)
        told = output_of(tensor.spec.variable or tensor.spec)
        text, value, problem = ("", "", "") if given is None else given.told(tensor)
        fitting = candidates(tensor)
        return Need(tensor.name, told.dtype, told.shape, text, value, problem, fitting)

    def _problem(self, needs: Iterable[Need]) -> str:
        if not self.fetches:
            return "choose what to fetch"
        missing = [need.name.removesuffix(":0") for need in needs if not need.value]
        if missing:
            named = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" * (len(missing) > 3))
            return f"give a value for {named}"
        if self._source.session is None:
            return "no session runs this graph: make one in a cell, sess = fs.Session()"
        return ""

    # -- running --------------------------------------------------------------------------------

    def ask(self) -> str:
        """Runs it once no cell is running; returns what is done, for people.

        Raises:
            FailedPreconditionError: if it cannot be run, or a run is asked for already.
        """
        with self._lock:
            if self.state != "ready":
                raise FailedPreconditionError(f"a run is {self.state} already")
            problem = self._described().problem
            if problem:
                raise FailedPreconditionError(problem)
            self.state = "waiting"
            self.tell()
        between_cells.ask(self._run_asked)
        return "runs when the cell has ended" if notebook.cell_running else "running"

    def _run_asked(self) -> None:
        self.state = "running"
        self.tell()
        try:
            self.run()
        except (Exception, KeyboardInterrupt):
            pass  # the outcome tells of it
        finally:
            self.state = "ready"
            session = self._source.session
            if session is not None:
                session.gate.clear_stop()
            self.tell()

    def run(self) -> dict[str, Any]:
        """Runs it on this thread; returns the values by name.

        Raises:
            FailedPreconditionError: if nothing is to be fetched, a value is missing, or no session
                runs the graph.
            OpError: as `Session.run`.
        """
        __tracebackhide__ = True
        names, feeds = self.fetches, dict(self.feeds)
        start_s = time.perf_counter()
        values: dict[str, Any] = {}
        error: BaseException | None = None
        try:
            values = self._values(names, feeds)
        except BaseException as e:
            error = e
            raise
        finally:
            self._keep(values, feeds, time.perf_counter() - start_s, error)
        return values

    def _values(self, names: tuple[str, ...], feeds: Mapping[str, Fed]) -> dict[str, Any]:
        __tracebackhide__ = True
        missing = [n.name for n in self.needs() if n.name not in feeds or feeds[n.name].is_missing]
        if not names:
            raise FailedPreconditionError("expected fetches: view.fetches = [loss], for example")
        if missing:
            raise FailedPreconditionError(
                f"expected a value for {', '.join(missing)}: view.feeds = {{{missing[0]!r}: value}}"
            )
        session = self._source.session
        if session is None:
            raise FailedPreconditionError(
                "no session runs this graph: make one, sess = fs.Session()"
            )
        given = {name: fed.value() for name, fed in feeds.items()}
        return dict(zip(names, session.run(list(names), given), strict=True))

    def _keep(
        self,
        values: Mapping[str, Any],
        feeds: Mapping[str, Fed],
        seconds: float,
        error: BaseException | None,
    ) -> None:
        line = "" if error is None else str(error).strip().partition("\n")[0]
        outcome = Outcome(
            number=self.runs.count + 1,
            seconds=seconds,
            fetched=tuple(fetched(name, value) for name, value in values.items()),
            fed=tuple((name, fed.text or described(fed.given)) for name, fed in feeds.items()),
            error="" if error is None else f"{type(error).__name__}: {line}".rstrip(": "),
            failed_at=(error.op_name or "") if isinstance(error, OpError) else "",
        )
        with self._lock:
            self.runs.add(Run(outcome, values))
            self.tell()

    def after_cell(self) -> None:
        """Takes the end of a cell: variables of the notebook and the graph may be others now."""
        if (self.fetches or self.feeds) and self._feed() is not None:
            self.tell()


def _element(graph: Graph, given: Any) -> Tensor | Operation:
    flat = Flattened(graph, [given])  # refuses what cannot be fetched
    found: list[Tensor | Operation] = [*flat.tensors, *flat.targets]
    if len(found) != 1:
        raise InvalidArgumentError(f"expected a tensor, an operation or a name, got {given!r}")
    return found[0]


def _tensor(graph: Graph, name: str) -> Tensor:
    element = graph.as_graph_element(name)
    return element.outputs[0] if isinstance(element, Operation) else element


_setups: WeakKeyDictionary[LiveChannel, Setup] = WeakKeyDictionary()


def setup_of(feed: LiveChannel) -> Setup:
    """The state that the views of a feed share."""
    found = _setups.get(feed)
    if found is None:
        found = _setups[feed] = Setup(feed)
    return found


__all__ = ["Setup", "setup_of"]
