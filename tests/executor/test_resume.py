"""A step leaves its code wherever something would have to wait, and the machine goes on from there.

Each program is left at each of the places where it can be: whatever was done before, the results,
the effects and their order are those of a step that was never left.
"""

from __future__ import annotations

import threading
from typing import Any

import nests
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from waiting_circles import end_now, settle

import flowscope as fs
from flowscope.runtime.state.queue_state import QueueState
from flowscope.runtime.step.driver import Driver
from flowscope.runtime.waits.gate import Gate

pytestmark = pytest.mark.usefixtures("graph")


class Refusing:
    """Lets one attempt at a queue fail, though nothing stands in its way.

    Attributes:
        at: Which one, from 0; None for none.
        count: How many there have been.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.at: int | None = None
        self.count = 0
        put, take = QueueState.put, QueueState.take
        patch.setattr(QueueState, "put", lambda q, e: not self._refuses() and put(q, e))
        patch.setattr(QueueState, "take", lambda q, n: None if self._refuses() else take(q, n))

    def _refuses(self) -> bool:
        self.count += 1
        return self.count - 1 == self.at


class Leaving(Gate):
    """Asks a step to go on one operation at a time, once, at one of its safepoints."""

    __slots__ = ("asked", "at")

    def __init__(self, at: int) -> None:
        super().__init__()
        self.raised = True
        self.at = at
        self.asked = 0

    def hold(self, point: int, here: Any = None) -> bool:
        if point < 0:
            return False
        self.asked += 1
        return self.asked > self.at


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Refusing:
    return Refusing(monkeypatch)


def bits(values: Any) -> list[Any]:
    return [(np.asarray(v).dtype, np.asarray(v).tobytes()) for v in values]


def is_optimistic(session: fs.Session, fetches: Any, feeds: Any) -> bool:
    function = session.plan(fetches, list(feeds)).executable.function
    return isinstance(function, Driver) and function.execution.code is not None


def check(refusing: Refusing, fetches: list[Any], feeds: Any = None, after: Any = ()) -> int:
    """Leaves the step at each attempt and at each safepoint; returns how often it could be left."""
    feeds = feeds or {}
    start = fs.global_variables_initializer()

    def run(mode: Any, gate: Gate | None = None) -> list[Any]:
        with fs.Session(config=fs.ConfigProto(mode=mode)) as session:
            session.run(start)
            if mode == "compiled":
                assert is_optimistic(session, fetches, feeds)
            refusing.count = 0
            if gate is not None:
                session.gate = gate
            found = session.run(fetches, feeds)
            if gate is not None:
                session.gate = Gate()
            return bits([*found, *session.run(list(after))])

    refusing.at = None
    expected = run("tokens")
    assert run("compiled") == expected
    count = refusing.count
    assert count
    for at in range(count):
        refusing.at = at
        assert run("compiled") == expected, f"refused attempt {at}"
    refusing.at = None
    gate = Leaving(0)
    while run("compiled", gate) == expected and gate.asked > gate.at:
        gate = Leaving(gate.at + 1)
    assert gate.asked <= gate.at, f"other values if left at safepoint {gate.at}"
    return count + gate.at


def hand(queue: fs.FIFOQueue, value: Any) -> Any:
    """Puts a value into a queue and takes it out."""
    with fs.control_dependencies([queue.enqueue(value)]):
        return queue.dequeue()


def numbers(dtype: Any = fs.float64) -> fs.FIFOQueue:
    return fs.FIFOQueue(9, [dtype], shapes=[[]])


def test_without_branches_and_loops(refusing: Refusing) -> None:
    x = fs.placeholder(fs.float64, [])
    queue = numbers()
    y = hand(queue, x * 2.0) + 1.0
    check(refusing, [hand(queue, y * x), x, y], {x: 3.0})


@pytest.mark.slow
def test_in_a_loop(refusing: Refusing) -> None:
    queue, n = numbers(fs.int32), fs.placeholder(fs.int32, [])
    loop = fs.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t * 2 + hand(queue, i)), [0, 0])
    assert check(refusing, loop, {n: 4}) >= 16


@pytest.mark.slow
def test_in_the_condition(refusing: Refusing) -> None:
    queue = numbers(fs.int32)
    loop = fs.while_loop(
        lambda i, t: (hand(queue, i) < 4) & (t < 100), lambda i, t: (i + 1, t + i * i), [0, 0]
    )
    check(refusing, loop)


@pytest.mark.slow
def test_in_a_condition_that_is_a_variable(refusing: Refusing) -> None:
    queue = numbers(fs.int32)
    loop = fs.while_loop(
        lambda goes_on, i: goes_on,
        lambda goes_on, i: (i < 3, hand(queue, i) + 1),
        [fs.constant(True), fs.constant(0)],
    )
    check(refusing, loop)


@pytest.mark.slow
def test_in_branches_of_loops(refusing: Refusing) -> None:
    first, second = numbers(), numbers()
    scale = fs.placeholder(fs.float64, [])

    def body(i: Any, x: Any) -> Any:
        even = fs.equal(i % 2, 0)
        y = fs.cond(even, lambda: hand(first, x * scale) + 1.0, lambda: x - scale)
        z = fs.cond(even, lambda: y * 2.0, lambda: hand(second, y) * fs.cast(i, fs.float64))
        return i + 1, z + scale

    start = [0, fs.constant(1.0, fs.float64)]
    check(refusing, fs.while_loop(lambda i, x: i < 4, body, start), {scale: 0.5})


@pytest.mark.slow
def test_in_loops_of_loops(refusing: Refusing) -> None:
    queue = numbers(fs.int32)
    far = fs.placeholder(fs.int32, [])

    def body(i: Any, t: Any) -> Any:
        before = fs.while_loop(lambda j: j < i, lambda j: hand(queue, j) + 1, [0], name="before")
        plain = fs.while_loop(lambda j: j < far, lambda j: j + 1, [before], name="plain")
        inner = fs.while_loop(
            lambda j, u: j < 2, lambda j, u: (j + 1, hand(queue, u + plain * j) + far), [0, t]
        )
        return i + 1, inner[1] - before

    loop = fs.while_loop(lambda i, t: i < 3, body, [0, 0], parallel_iterations=1)
    after = hand(queue, loop[1] * 3)
    check(refusing, [*loop, after, fs.identity(after)], {far: 5})


@pytest.mark.slow
def test_loops_of_a_count(refusing: Refusing) -> None:
    queue = numbers(fs.int32)
    n = fs.placeholder(fs.int32, [])

    def loop(most: Any) -> Any:
        return fs.while_loop(
            lambda i, t: t < 50,
            lambda i, t: (i + 1, t + hand(queue, i)),
            [0, 0],
            maximum_iterations=most,
        )

    check(refusing, [*loop(n), *loop(100)], {n: 3})


@pytest.mark.slow
def test_effects_and_their_order(refusing: Refusing) -> None:
    queue = numbers()
    v, w = fs.Variable(1.0, dtype=fs.float64), fs.Variable(0.0, dtype=fs.float64)

    def body(i: Any) -> Any:
        with fs.control_dependencies([v.assign(v * 2.0)]):
            x = hand(queue, v + 1.0)
        w.assign(w * 10.0 + x)
        fs.cond(i < 1, lambda: v.assign_add(hand(queue, w)), lambda: v.assign_sub(1.0))
        return i + 1

    v.assign_add(0.5)
    before = hand(queue, v.read_value())
    loop = fs.while_loop(lambda i: i < 3, body, [0])
    w.assign_add(before)
    last = v.assign(v + w)
    check(refusing, [loop, before, last], after=[v, w])


@pytest.mark.slow
def test_updates_stay_whole(refusing: Refusing) -> None:
    queue = numbers()
    w, b = fs.Variable(1.0, dtype=fs.float64), fs.Variable(2.0, dtype=fs.float64)
    train = fs.train.MomentumOptimizer(0.01, 0.9)

    def body(i: Any) -> Any:
        x = hand(queue, fs.cast(i, fs.float64))
        with fs.control_dependencies([train.minimize(fs.square(w * x + b))]):
            return i + 1

    check(refusing, [fs.while_loop(lambda i: i < 3, body, [0])], after=[w, b])


@pytest.mark.slow
def test_random_numbers(refusing: Refusing) -> None:
    fs.set_random_seed(3)
    queue = numbers(fs.float32)

    def body(i: Any, x: Any) -> Any:
        y = hand(queue, x + fs.random_normal([]))
        return i + 1, fs.cond(i > 0, lambda: y * fs.random_uniform([]), lambda: -y)

    check(refusing, fs.while_loop(lambda i, x: i < 3, body, [0, fs.random_normal([])]))


@pytest.mark.slow
def test_what_lies_in_memory_of_its_own(refusing: Refusing) -> None:
    queue = fs.FIFOQueue(9, [fs.float64], shapes=[[3]])
    x = fs.placeholder(fs.float64, [3])

    def body(i: Any, y: Any) -> Any:
        z = fs.sin(y * 2.0 + x) * 3.0
        return i + 1, hand(queue, z) - y + z

    loop = fs.while_loop(lambda i, y: i < 3, body, [0, x + 1.0])
    check(refusing, [*loop, x], {x: [1.0, 2.0, 3.0]})


@pytest.mark.slow
@settings(max_examples=10)
@given(nests.programs, st.floats(-2, 2), st.floats(-1, 1))
def test_random_nests(program: Any, at: float, weight: float) -> None:
    with pytest.MonkeyPatch.context() as patch, fs.Graph().as_default():
        queue, start = numbers(), fs.placeholder(fs.float64, [])
        plain = nests.FLOATS[0]
        patch.setattr(
            nests,
            "FLOATS",
            [lambda m, x, k, w: hand(queue, plain(m, x, k, w)), *nests.FLOATS[1:]],
        )
        w = fs.placeholder(fs.float64, [])
        with np.errstate(all="ignore"):
            x, k = nests.as_graph(program, hand(queue, start), fs.constant(3), w)
            check(Refusing(patch), [fs.identity(x), fs.identity(k)], {start: at, w: weight})


# -- what is not tried, and errors ----------------------------------------------------------------


def test_loops_that_keep_values_and_sections_are_left_to_the_machine() -> None:
    queue, x = numbers(), fs.placeholder(fs.float64, [])
    loop = fs.while_loop(
        lambda i, y: i < 2, lambda i, y: (i + 1, fs.sin(y) + queue.dequeue()), [0, x]
    )
    section = fs.CriticalSection().execute(lambda: fs.identity(x))
    with fs.Session() as session:
        assert not is_optimistic(session, fs.gradients(loop[1], x), [x])
        assert not is_optimistic(session, section, [x])
        assert is_optimistic(session, loop[1], [x])


@pytest.mark.parametrize("at", [None, 0, 1, 2, 3])
def test_an_error_names_operation_line_and_iteration(refusing: Refusing, at: int | None) -> None:
    queue, x = numbers(fs.int32), fs.constant([1.0, 2.0])

    def body(i: Any, y: Any) -> Any:
        return i + 1, y + fs.gather(x, hand(queue, i))

    loop = fs.while_loop(lambda i, y: i < 5, body, [0, 0.0], name="outer")
    with fs.Session() as session:
        session.run(queue.size())
        refusing.at, refusing.count = at, 0
        with pytest.raises(fs.errors.InvalidArgumentError, match="fs.gather") as e:
            session.run(loop)
    assert e.value.iterations == (("outer", 2),)
    assert "test_resume.py" in e.value.origin


def test_a_step_that_waits_shows_its_iterations(refusing: Refusing) -> None:
    queue = numbers(fs.int32)
    loop = fs.while_loop(
        lambda i, t: i < 9,
        lambda i, t: (i + 1, t + queue.dequeue()),
        [0, 0],
        parallel_iterations=3,
        name="loop",
    )
    told: list[str] = []

    def run() -> None:
        try:
            session.run(loop)
        except fs.errors.DeadlineExceededError as error:
            told.append(str(error))

    with fs.Session() as session:
        session.run(queue.enqueue_many([[1, 2, 3, 4]]))
        thread = threading.Thread(target=run)
        thread.start()
        settle([session])
        (step,) = session.gate.inside
        end_now(step)
        thread.join()
    (error,) = told
    for number in (4, 5, 6):
        assert f"in loop/Loop/frame:{number}," in error
    assert "frame:7" not in error
