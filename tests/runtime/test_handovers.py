"""Hand-overs between threads hold under thousands of schedules, and on threads that change always.

`make fuzz` runs a hundred thousand schedules of each.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
from handovers import HandOver, Mutation, hand_overs
from own_threads import own_threads

#: So often real threads go through a hand-over.
OFTEN = 100

names = [pytest.param(h, id=h.name) for h in hand_overs]
defects = [pytest.param(h, m, id=f"{h.name}: {m.name}") for h in hand_overs for m in h.mutations]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Any:
    before = own_threads(), threading.active_count()
    yield
    assert own_threads() <= before[0]
    assert threading.active_count() <= before[1]


@pytest.mark.parametrize("over", names)
def test_a_hand_over_holds_under_every_schedule(over: HandOver) -> None:
    over.explore(over.few)


@pytest.mark.parametrize(("over", "mutation"), defects)
def test_schedules_find_a_defect(over: HandOver, mutation: Mutation) -> None:
    with pytest.raises(AssertionError, match="seed"):
        over.explore(over.few, 0, mutation)


@pytest.mark.parametrize("over", [h for h in names if h.values[0].is_real])
def test_a_hand_over_holds_on_threads_that_change_always(over: HandOver) -> None:
    over.stress(OFTEN)
