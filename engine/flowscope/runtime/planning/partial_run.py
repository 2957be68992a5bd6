"""Partial runs: one step whose feeds come, and whose fetches go, in several calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from flowscope.errors import AbortedError, InvalidArgumentError
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.host_values import on_host
from flowscope.plan.ir.kernels import own
from flowscope.plan.ir.program import Node, Value
from flowscope.plan.partial_run import Feeds, Stage
from flowscope.runtime.planning.calls import PreparedCall, check_initialized
from flowscope.runtime.planning.fetches import Flattened
from flowscope.runtime.planning.planner import Planner, targets_of

#: Runs a call with feeds, as part of the run with this number.
Step = Callable[[PreparedCall, tuple[Any, ...], int], tuple[Any, ...]]


class Pattern:
    """What partial runs with the same fetches and feeds share: the program, and its stages."""

    def __init__(
        self, graph: Graph, planner: Planner, fetches: Any, feeds: tuple[Any, ...], mode: Any
    ) -> None:
        self.graph = graph
        self.planner = planner
        self.edits = graph.edits
        flat = Flattened(graph, fetches)
        if not flat.tensors and not flat.targets:
            raise InvalidArgumentError("expected something to fetch, got nothing")
        self.program = planner.staged(fetches, feeds, mode)
        program = self.program.program
        self.feeds = {t: i for i, t in enumerate(self.program.request.feeds)}
        self.converters = [planner.converter(t) for t in self.feeds]
        self.fetches: dict[Tensor, Value] = dict(zip(flat.tensors, program.fetches, strict=True))
        self.targets = {op: targets_of(self.program, op) for op in flat.targets}
        self._required = [planner.state_at(h.op, h.device) for h in self.program.required]
        self._stages: dict[
            tuple[Feeds | None, Feeds], tuple[PreparedCall, Stage, frozenset[Value]]
        ] = {}

    def count_nodes(self) -> int:
        """Returns how many nodes its program has, those of blocks too."""
        return sum(1 for _ in self.program.program.walk())

    def check_initialized(self) -> None:
        """Raises FailedPreconditionError if any stage reads a variable without a value first."""
        check_initialized(self._required, self.program.required)

    def is_current(self, graph: Graph) -> bool:
        """Whether no operation of it was edited since it was planned."""
        if self.edits != graph.edits:
            edited = graph.edited_since(self.edits)
            if any(op.id in self.program.made.operations for op in edited):
                return False
            self.edits = graph.edits
        return True

    def stage(
        self, before: Feeds | None, now: Feeds
    ) -> tuple[PreparedCall, Stage, frozenset[Value]]:
        """The part to run once the feeds `now` are there, and the values that later stages need."""
        found = self._stages.get((before, now))
        if found is None:
            made = self.planner.stage(self.program, before, now)
            found = *made, self.program.still_needed(now)
            self._stages[before, now] = found
        return found


class PartialRun:
    """The handle of one partial run."""

    def __init__(self, pattern: Pattern, number: int) -> None:
        self.pattern = pattern
        self._number = number
        self._lock = threading.Lock()
        self._given: Feeds = frozenset()
        self._ran: Feeds | None = None
        self._values: dict[Value, Any] = {}
        self._fetched: set[Tensor | Operation] = set()
        self._failure: str | None = None

    def go_on(self, fetches: Any, feed_dict: Any, step: Step) -> Any:
        """Takes feeds, runs what can run, and returns the fetches; see `Session.partial_run`."""
        __tracebackhide__ = True
        with self._lock:
            if self._failure is not None:
                raise AbortedError(f"this partial run has ended: {self._failure}")
            flat = Flattened(self.pattern.graph, fetches)
            now = self._with_feeds(feed_dict)
            self._check(flat, now)
            converters = self.pattern.converters
            indices = [self.pattern.feeds[self.pattern.planner.fed(k)] for k in feed_dict]
            arrays = [converters[i](v) for i, v in zip(indices, feed_dict.values(), strict=True)]
            self._take(dict(zip(indices, arrays, strict=True)))
            self._given = now
            later = self._run(now, step)
            self._fetched.update(flat.tensors, flat.targets)
            values = tuple([self._handed_out(self.pattern.fetches[t]) for t in flat.tensors])
            self._release(later)
            return flat.rebuild(values)

    def _with_feeds(self, feed_dict: Any) -> Feeds:
        new = set()
        for key in feed_dict:
            tensor = self.pattern.planner.fed(key)
            index = self.pattern.feeds.get(tensor)
            if index is None:
                raise InvalidArgumentError(
                    f'"{tensor.name}" was not named as a feed in partial_run_setup'
                )
            if index in self._given or index in new:
                raise InvalidArgumentError(f'"{tensor.name}" was fed already in this partial run')
            new.add(index)
        return self._given | new

    def _check(self, flat: Flattened, now: Feeds) -> None:
        wanted: list[tuple[Tensor | Operation, list[Value | Node]]] = []
        for t in flat.tensors:
            if t not in self.pattern.fetches:
                raise InvalidArgumentError(
                    f'"{t.name}" was not named as a fetch in partial_run_setup'
                )
            wanted.append((t, [self.pattern.fetches[t]]))
        for op in flat.targets:
            if op not in self.pattern.targets:
                raise InvalidArgumentError(
                    f'"{op.name}" was not named as a fetch in partial_run_setup'
                )
            wanted.append((op, [*self.pattern.targets[op]]))
        for thing, needed in wanted:
            if thing in self._fetched:
                raise InvalidArgumentError(
                    f'"{thing.name}" was fetched already in this partial run'
                )
            for part in needed:
                self._check_feeds(thing.name, part, now)

    def _check_feeds(self, name: str, part: Value | Node, now: Feeds) -> None:
        program = self.pattern.program
        needs = program.needs[part] if isinstance(part, Node) else program.waits_for(part)
        if needs <= now:
            return
        node = part if isinstance(part, Node) else part.node
        late = program.blockers(node, now) if node is not None else []
        if not late:
            raise InvalidArgumentError(
                f'"{name}" needs feeds that were not given yet: {self._names(needs - now)}'
            )
        others = ", ".join(f'"{n.name}" (which needs {self._names(f)})' for n, f in late)
        raise InvalidArgumentError(
            f'"{name}" cannot be computed yet: before it, on the same variable or in the same '
            f"update, come {others}: give those feeds first, or fetch it in a later call"
        )

    def _names(self, feeds: Feeds) -> str:
        tensors = list(self.pattern.feeds)
        return ", ".join(f'"{tensors[i].name}"' for i in sorted(feeds))

    def _take(self, arrays: dict[int, Any]) -> None:
        values = self.pattern.program.program.feeds
        self._values.update((values[i], a) for i, a in arrays.items())

    def _run(self, now: Feeds, step: Step) -> frozenset[Value]:
        """Runs what the feeds `now` allow; returns the values that later stages need."""
        __tracebackhide__ = True
        if self._ran is None:
            self.pattern.check_initialized()
        call, stage, later = self.pattern.stage(self._ran, now)
        if call.plan.program.nodes and now != self._ran:
            feeds = tuple([self._values[v] for v in stage.takes])
            try:
                results = step(call, feeds, self._number)
            except BaseException as e:
                self._failure = f"{type(e).__name__}: {getattr(e, 'message', e)}"
                self._values.clear()
                raise
            self._values.update(zip(stage.gives, results, strict=True))
        self._ran = now
        return later

    def _release(self, later: frozenset[Value]) -> None:
        fetched = self._fetched
        wanted = later.union(v for t, v in self.pattern.fetches.items() if t not in fetched)
        for value in [v for v in self._values if v not in wanted]:
            del self._values[value]

    def _handed_out(self, value: Value) -> Any:
        """Returns a value that is the user's own."""
        found = self._values[value]
        host = on_host(found)
        return own(host) if host is found else host

    def __repr__(self) -> str:
        state = self._failure or f"fed: {self._names(self._given) or 'nothing yet'}"
        return f"<fs partial run {self._number}, {state}>"
