"""The scheduler of threads itself: it finds what it is for, and a seed tells all that it does."""

import threading
import time
import types

import pytest
from schedules import explore

SOURCE = """
import threading, time

class Counter:
    def __init__(self):
        self.count = 0
        self.lock = threading.Lock()
        self.changed = threading.Condition(threading.RLock())

    def add(self):
        self.count += 1

    def add_with_lock(self):
        with self.lock:
            self.count += 1

    def wait(self, seconds):
        while not self.count:
            with self.changed:
                self.changed.wait(seconds)
"""


@pytest.fixture
def module():
    found = types.ModuleType("counters")
    exec(compile(SOURCE, "<counters>", "exec"), found.__dict__)
    return found


def both_add(run, m):
    counter = m.Counter()
    run.together(counter.add, counter.add)
    count = counter.count
    assert count == 2


def both_add_with_lock(run, m):
    counter = m.Counter()
    run.together(counter.add_with_lock, counter.add_with_lock)
    assert counter.count == 2


def locks_in_two_orders(run, m):
    a, b = m.threading.Lock(), m.threading.Lock()

    def take(first, second):
        with first, second:
            pass

    run.together(lambda: take(a, b), lambda: take(b, a))


def a_wake_that_is_missing(run, m):
    counter = m.Counter()
    run.together(counter.add, lambda: counter.wait(5.0))


def failure(scenario, module, count=400, first=0):
    with pytest.raises(AssertionError) as caught:
        explore(scenario, module, count, first)
    return str(caught.value)


def test_an_addition_is_not_one_step(module):
    assert "both_add, seed" in failure(both_add, module)
    explore(both_add_with_lock, module, 400)


def test_a_seed_is_replayed(module):
    text = failure(both_add, module)
    seed = int(text.split("seed ")[1].split(":")[0])
    assert failure(both_add, module, 1, seed) == text == failure(both_add, module, 1, seed)


def test_deadlocks_are_found(module):
    assert "Deadlock: nobody can go on" in failure(locks_in_two_orders, module)


def test_a_wait_that_only_its_timeout_ends_is_found(module):
    start = time.monotonic()
    assert "nothing but a timeout has ended the wait" in failure(a_wake_that_is_missing, module)
    assert time.monotonic() - start < 60, "the clock is the schedule's"


def test_nothing_stays_replaced(module):
    explore(both_add_with_lock, module, 1)
    assert module.threading is threading
    assert module.time is time
