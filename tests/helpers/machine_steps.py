"""A machine driven by hand: what runs and when it is done is the test's choice."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import flowscope as fs
from flowscope.executor.event_log import Story
from flowscope.executor.machine import Machine
from flowscope.executor.static import ExecutorGraph


def executor_graph(fetches: Any, feeds: Any = ()) -> ExecutorGraph:
    """Returns the units of the fetches, one per operation."""
    with fs.Session(config=fs.ConfigProto(mode="tokens")) as session:
        execution = session.plan(list(fetches), list(feeds)).executable.execution
    lowered = execution.lowered
    return ExecutorGraph(lowered.program, execution.bodies, execution.constants, lowered.loops)


class Steps:
    """One step, event by event; all invariants are checked after each.

    Operations that run are named by their name and tag: "while/body/add in while/Loop/frame:3".

    Attributes:
        machine: The machine.
        running: Invocations that were handed out and are not done.
    """

    def __init__(self, fetches: Any, feeds: Any = None) -> None:
        feeds = feeds or {}
        self.graph = executor_graph(fetches, feeds)
        self.machine = Machine(self.graph, Story(None))
        self.running: dict[str, Any] = {}
        values = tuple(np.asarray(v, t.dtype.as_numpy_dtype)[()] for t, v in feeds.items())
        self.machine.start(values)
        self._take()

    def _take(self) -> None:
        self.machine.validate()
        while (invocation := self.machine.next()) is not None:
            unit, it, _ = invocation
            self.running[f"{unit.name} in {it.name}" if it.name else unit.name] = invocation
            self.machine.validate()

    def done(self, *names: str) -> None:
        """Lets operations that run finish, in this order."""
        for name in names:
            unit, it, inputs = self.running.pop(name)
            found = unit.body.invoker.kernel(np, *inputs)
            outputs = (found,) if len(unit.body.outputs) == 1 else (found or ())
            self.machine.done(unit, it, outputs)
            self._take()

    def finish(self, seed: int = 0) -> list[Any]:
        """Runs the rest in an order that follows from the seed; returns the fetched values."""
        rng = random.Random(seed)
        while self.running:
            self.done(rng.choice(list(self.running)))
        assert self.machine.is_finished
        return self.machine.results

    @property
    def frames(self) -> list[str]:
        """The loops that are running, by their tags."""
        from flowscope.executor.validate import frames_of

        return [f.name for f in frames_of(self.machine) if f.name]
