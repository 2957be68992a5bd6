"""The hand-overs between threads that schedules and real threads go through, with their defects.

Each is a scenario: what some threads do with the classes of a module, and what must hold then. A
mutation is a text of the module that is replaced by another one; schedules must find that it is
wrong, so they are known to be able to fail.
"""

from __future__ import annotations

import importlib
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from schedules import Scenario, explore

#: For so long a real thread is waited for; only a broken program waits that long.
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Mutation:
    """A defect: texts of a module, by those that replace them."""

    name: str
    changes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class HandOver:
    """A scenario with its module.

    Attributes:
        scenario: Is given what runs it, a `Schedule` or `RealThreads`, and the module.
        module: The module's name in `flowscope.runtime`.
        others: Modules in whose code threads may change too, and whose locks are replaced.
        mutations: Defects that schedules must find.
        few: So many schedules are tried in the tests.
        is_real: Whether real threads can go through it as well.
    """

    scenario: Scenario
    module: str
    others: tuple[str, ...] = ()
    mutations: list[Mutation] = field(default_factory=list)
    few: int = 300
    is_real: bool = True

    @property
    def name(self) -> str:
        """What it is called."""
        return self.scenario.__name__

    def explore(self, count: int, first: int = 0, mutation: Mutation | None = None) -> None:
        """Goes through it under so many schedules; raises AssertionError about the first defect."""
        module = _module(self.module)
        if mutation is not None:
            module = mutated(module, mutation)
        explore(self.scenario, module, count, first, [_module(name) for name in self.others])

    def stress(self, count: int) -> None:
        """Goes through it so often on real threads that change all the time."""
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            for _ in range(count):
                self.scenario(RealThreads(), _module(self.module))
        finally:
            sys.setswitchinterval(before)


#: All of them.
hand_overs: list[HandOver] = []


def hand_over(module: str, *others: str, **options: Any) -> Callable[[Scenario], Scenario]:
    """Enters a scenario."""

    def enter(scenario: Scenario) -> Scenario:
        hand_overs.append(HandOver(scenario, module, others, [], **options))
        return scenario

    return enter


def wrong(scenario: Scenario, name: str, *changes: tuple[str, str]) -> None:
    """Enters a defect that schedules of a scenario must find."""
    found = next(h for h in hand_overs if h.scenario is scenario)
    found.mutations.append(Mutation(name, changes))


def _module(name: str) -> types.ModuleType:
    return importlib.import_module(f"flowscope.{name}")


def mutated(module: types.ModuleType, mutation: Mutation) -> types.ModuleType:
    """Returns a module with a defect, beside the one that there is."""
    assert module.__file__ is not None
    with open(module.__file__, encoding="utf-8") as file:  # noqa: PTH123
        source = file.read()
    for old, new in mutation.changes:
        assert source.count(old) == 1, f"{mutation.name}: the module has changed: {old!r}"
        source = source.replace(old, new)
    found = types.ModuleType(module.__name__)
    found.__file__ = module.__file__
    exec(compile(source, f"<{mutation.name}>", "exec"), found.__dict__)
    return found


class RealThreads:
    """Runs a scenario on threads of the system's: see `schedules.Schedule`."""

    may_stall = False

    def together(self, *functions: Callable[[], Any]) -> None:
        """Runs functions on a thread each; returns when all have ended."""
        errors: list[BaseException] = []
        begin = threading.Barrier(len(functions))

        def work(function: Callable[[], Any]) -> None:
            begin.wait(PATIENCE_S)
            try:
                function()
            except BaseException as e:
                errors.append(e)

        threads = [threading.Thread(target=work, args=(f,), daemon=True) for f in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a thread waits for ever"
        if errors:
            raise errors[0]

    def point(self) -> None:
        """Does nothing: threads change by themselves."""


@contextmanager
def as_step(step: Any) -> Iterator[Any]:
    """Has the thread work for a step, for the time of the block."""
    from flowscope.graph.current_step import working_for

    with working_for(step):
        yield step


import handovers_of_gates  # noqa: E402, F401 (they enter themselves)
import handovers_of_kernels  # noqa: E402, F401
import handovers_of_sessions  # noqa: E402, F401
import handovers_of_state  # noqa: E402, F401
import handovers_of_values  # noqa: E402, F401
