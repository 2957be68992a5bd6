"""Hand-overs between threads hold under thousands of schedules, and on threads that change always.

`make fuzz` runs a hundred thousand schedules of each.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest
from handovers import PATIENCE_S, HandOver, Mutation, hand_overs

from flowscope.graph.current_step import steps_of_threads

#: So often real threads go through a hand-over.
OFTEN = 100
#: A defect is found in so many times the schedules that are tried without one, and nearly always in
#: these; which bytecodes there are depends on Python's version.
MORE = 4

names = [pytest.param(h, id=h.name) for h in hand_overs]
defects = [pytest.param(h, m, id=f"{h.name}: {m.name}") for h in hand_overs for m in h.mutations]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """All threads end that a test has started, and nothing of the process is held or changed."""
    before, switches = set(threading.enumerate()), sys.getswitchinterval()
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), f"{thread.name} is left"
    assert steps_of_threads == {}
    assert sys.getswitchinterval() == switches
    assert sys.gettrace() is None or "coverage" in sys.modules


@pytest.mark.slow
@pytest.mark.parametrize("over", names)
def test_a_hand_over_holds_under_every_schedule(over: HandOver) -> None:
    over.explore(over.few)


@pytest.mark.slow
@pytest.mark.parametrize(("over", "mutation"), defects)
def test_schedules_find_a_defect(over: HandOver, mutation: Mutation) -> None:
    with pytest.raises(AssertionError, match="seed"):
        over.explore(MORE * over.few, 0, mutation)


@pytest.mark.parametrize("over", [h for h in names if h.values[0].is_real])
def test_a_hand_over_holds_on_threads_that_change_always(over: HandOver) -> None:
    over.stress(OFTEN)
