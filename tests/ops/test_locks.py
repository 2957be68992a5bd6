"""Critical sections: what runs in one of them does not overlap with what runs in another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from late_steps import late

import flowscope as fs
from flowscope.runtime.state.mutex_state import MutexState

pytestmark = pytest.mark.usefixtures("graph")

#: Longest wait for another thread; only a broken program waits that long.
PATIENCE_S = 30


class Counter:
    """A variable that a section reads, then writes: lost updates where two overlap."""

    def __init__(self, section: fs.CriticalSection | None = None) -> None:
        self.section = section or fs.CriticalSection(name="section")
        self.variable = fs.Variable(0, name="count")
        self.add = self.section.execute(self.increment)

    def increment(self) -> Any:
        value = self.variable.read_value()
        with fs.control_dependencies([value]):
            return self.variable.assign(value + 1)


def in_threads(work: Callable[[], None], count: int) -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(PATIENCE_S)
    assert not any(t.is_alive() for t in threads)
    assert errors == []


def lock_of(sess: fs.Session, section: fs.CriticalSection) -> MutexState:
    state: Any = sess.variable_state(section.handle)
    assert isinstance(state, MutexState)
    return state


def test_no_update_is_lost(sess: fs.Session) -> None:
    counter = Counter()
    sess.run(counter.variable.initializer)

    def work() -> None:
        for _ in range(50):
            sess.run(counter.add)

    in_threads(work, 4)
    assert sess.run(counter.variable) == 200
    assert not lock_of(sess, counter.section).is_held


def test_results_have_the_form_that_the_function_returned(sess: fs.Session) -> None:
    section = fs.CriticalSection()
    x = fs.placeholder(fs.float32, [])
    found = section.execute(lambda: {"a": x + 1.0, "b": [x * 2.0, 7]})
    assert sess.run(found, {x: 3.0}) == {"a": 4.0, "b": [6.0, 7]}
    variable = fs.Variable(1.0)
    sess.run(variable.initializer)
    operation = section.execute(lambda: variable.assign_add(1.0).op)
    assert sess.run(operation) is None
    nothing = section.execute(lambda: None)
    sess.run(nothing)
    assert sess.run(variable) == 2.0


def test_effects_run_though_nothing_returns_them(sess: fs.Session) -> None:
    section = fs.CriticalSection()
    variable = fs.Variable(1.0)

    def work() -> Any:
        variable.assign_add(1.0)
        return fs.constant(5)

    result = section.execute(work)
    sess.run(variable.initializer)
    assert sess.run(result) == 5
    assert sess.run(variable) == 2.0


def test_sections_of_one_step_run_in_program_order(sess: fs.Session) -> None:
    section = fs.CriticalSection()
    variable = fs.Variable(1.0)
    added = section.execute(lambda: variable.assign_add(2.0))
    scaled = section.execute(lambda: variable.assign(variable * 10.0))
    sess.run(variable.initializer)
    assert sess.run([scaled, added]) == [30.0, 3.0]


def test_sections_in_loops(sess: fs.Session) -> None:
    counter = Counter()

    def body(i: Any) -> Any:
        with fs.control_dependencies([counter.section.execute(counter.increment)]):
            return i + 1

    loop = fs.while_loop(lambda i: i < 20, body, [0])
    sess.run(counter.variable.initializer)
    assert sess.run(loop) == 20
    assert sess.run(counter.variable) == 20


def test_a_step_that_fails_gives_the_lock_back(sess: fs.Session) -> None:
    section = fs.CriticalSection()
    x = fs.placeholder(fs.float32, [])
    found = section.execute(lambda: fs.check_numerics(x, "no number"))
    with pytest.raises(fs.errors.InvalidArgumentError, match="no number"):
        sess.run(found, {x: np.nan})
    assert not lock_of(sess, section).is_held
    assert sess.run(found, {x: 1.0}) == 1.0


def test_a_timeout_names_the_lock(sess: fs.Session) -> None:
    section = fs.CriticalSection(name="guard")
    found = section.execute(lambda: fs.constant(1) + 1)
    sess.run(found)
    holds: list[Any] = []
    give_up = lock_of(sess, section).acquire(holds.append)
    late(sess, found, match='"guard"')
    give_up()
    assert sess.run(found) == 2


def test_sections_of_a_shared_name_exclude_each_other(sess: fs.Session) -> None:
    one = fs.CriticalSection(shared_name="both")
    two = fs.CriticalSection(shared_name="both")
    assert lock_of(sess, one) is lock_of(sess, two)
    assert lock_of(sess, one) is not lock_of(sess, fs.CriticalSection())


def test_a_section_in_itself_is_refused() -> None:
    section = fs.CriticalSection(name="guard")
    with pytest.raises(fs.errors.InvalidArgumentError, match='"guard" is used inside itself'):
        section.execute(lambda: section.execute(lambda: fs.constant(1)))
    assert section.execute(lambda: fs.constant(1)) is not None


def test_two_sections_of_one_variable_are_refused() -> None:
    variable = fs.Variable(1.0, name="v")
    one, two = fs.CriticalSection(name="one"), fs.CriticalSection(name="two")
    one.execute(lambda: variable.assign_add(1.0))
    with pytest.raises(fs.errors.InvalidArgumentError, match='sections "one" and "two"'):
        two.execute(lambda: variable.assign_add(1.0))
    with pytest.raises(fs.errors.InvalidArgumentError, match="do not exclude each other"):
        two.execute(lambda: variable.assign_add(1.0), exclusive_resource_access=False)
    other = fs.Variable(1.0)
    for section in (one, two):
        section.execute(lambda: other.read_value() + 1.0, exclusive_resource_access=False)


def test_gradients_lead_through(sess: fs.Session) -> None:
    section = fs.CriticalSection()
    x = fs.placeholder(fs.float32, [])
    (g,) = fs.gradients(section.execute(lambda: x * x), x)
    assert sess.run(g, {x: 3.0}) == 6.0
