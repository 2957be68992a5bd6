"""Hand-overs through state that several steps share: variables, queues and locks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from handovers import as_step, hand_over, wrong

from flowscope.errors import CancelledError
from flowscope.runtime.state.resources import VariableState


def _add_one(value: Any) -> None:
    """Adds 1 in place, one element after the other: a reader that shares them sees it."""
    for i in range(len(value)):
        value[i] += 1


@hand_over("runtime.state.resources")
def leases_of_a_variable(run: Any, m: Any) -> None:
    """No update is lost, and what was read never changes: two elements are always equal."""
    state = m.VariableState("v", (2,))
    state.assign(np.zeros(2))
    wrong_reads: list[Any] = []

    def write() -> None:
        for _ in range(2):
            state.update(lambda v: v + 1, _add_one)

    def read() -> None:
        for _ in range(3):
            assert state.is_initialized, "it has a value all the time"
            lease = state.read()
            before = lease.tolist()
            run.point()
            if before[0] != before[1] or lease.tolist() != before:
                wrong_reads.append((before, lease))
            del lease

    run.together(write, write, read)
    assert state.read().tolist() == [4, 4], state.read()
    assert not wrong_reads, wrong_reads


wrong(
    leases_of_a_variable,
    "leases are counted before readers are kept out",
    (
        "            self._turn += 1\n            buffer, self.value = self.value, None\n"
        "            try:\n                if",
        "            self._turn += 1\n            buffer = self.value\n"
        "            is_sole = sys.getrefcount(buffer) <= _SOLE + 1\n"
        "            self.value = None\n"
        "            try:\n                if",
    ),
    (
        "                if sys.getrefcount(buffer) <= _SOLE and _is_array(buffer):\n"
        "                    in_place(buffer)\n",
        "                if is_sole and _is_array(buffer):\n                    in_place(buffer)\n",
    ),
)


@hand_over("runtime.state.resources")
def a_variable_that_is_assigned(run: Any, m: Any) -> None:
    """It has a value from the first assignment on, and reads give one that was assigned."""
    state = m.VariableState("v", (1,))
    state.assign(np.zeros(1))

    def write(value: float) -> None:
        for _ in range(2):
            state.assign(np.full(1, value))

    def read() -> None:
        for _ in range(4):
            assert state.is_initialized, "it has a value all the time"
            assert state.read()[0] in (0, 1, 2)

    run.together(lambda: write(1.0), lambda: write(2.0), read)
    assert state.writes == 5


class _On(np.ndarray):
    """An array that lies on a device."""

    device: Any = None

    def __array_finalize__(self, source: Any) -> None:
        self.device = getattr(source, "device", None)


class _Device:
    """A device whose kernels may touch its own arrays alone."""

    def holds(self, value: Any) -> bool:
        return value.device is self

    def put(self, value: Any) -> Any:
        if self.holds(value):
            return value
        moved = value.copy().view(_On)
        moved.device = self
        return moved

    def add_one(self, *values: Any) -> None:
        for value in values:
            assert self.holds(value), "a kernel got an array of another device"
            value += 1

    def one_more(self, value: Any) -> Any:
        fresh = value.copy()
        self.add_one(fresh)
        return fresh


@hand_over("runtime.state.device_variable", "runtime.state.resources")
def a_variable_that_two_devices_update(run: Any, m: Any) -> None:
    """Updates get arrays of their own device, whoever had the value before, and none is lost."""
    devices = _Device(), _Device()
    a, b = states = [VariableState(name, (1,)) for name in "ab"]
    for state in states:
        state.assign(devices[0].put(np.zeros(1).view(_On)))

    def work(device: _Device) -> None:
        one, other = [m.PlacedVariable(state, device) for state in states]
        one.update(device.one_more, device.add_one)
        assert device.holds(one.read())
        one.change([other], device.add_one)

    run.together(*[lambda d=device: work(d) for device in devices])
    assert a.read()[0] == 4 and b.read()[0] == 2, (a.read(), b.read())


wrong(
    a_variable_that_two_devices_update,
    "an update takes the value over before it takes the lock",
    (
        "        return self.state.update(fresh, in_place, self.device.put)\n",
        "        self.state.relocate(self.device.put)\n"
        "        return self.state.update(fresh, in_place)\n",
    ),
)
wrong(
    a_variable_that_two_devices_update,
    "a change takes the values over before it takes the locks",
    (
        "        return self.state.change([v.state for v in others], in_place, self.device.put)\n",
        "        for variable in (self, *others):\n"
        "            variable.state.relocate(self.device.put)\n"
        "        return self.state.change([v.state for v in others], in_place)\n",
    ),
)


@hand_over("runtime.state.resources")
def variables_that_change_together(run: Any, m: Any) -> None:
    """Changes of several variables do not mix, whatever the order in which these are named."""
    a, b = states = [m.VariableState(name, (1,)) for name in "ab"]
    for state in states:
        state.assign(np.ones(1))

    def double(x: Any, y: Any) -> None:
        x *= 2
        y *= 2

    def add(x: Any, y: Any) -> None:
        x += 1
        y += 1

    run.together(lambda: a.change([b], double), lambda: b.change([a], add))
    assert a.read()[0] == b.read()[0] and a.read()[0] in (3, 4), (a.read(), b.read())


wrong(
    variables_that_change_together,
    "locks are taken in the order of the names",
    ("for s in sorted(states, key=id) if", "for s in states if"),
)


@hand_over("runtime.state.containers", "runtime.state.resources")
def a_container_that_is_dropped(run: Any, m: Any) -> None:
    """Behind a reset no variable has the value that it had before."""
    container = m.Container()
    state = container.variable("v", (1,))
    state.assign(np.zeros(1))
    told: list[str] = []

    def write() -> None:
        try:
            for _ in range(2):
                state.update(lambda v: v + 1, _add_one)
        except Exception as e:
            told.append(type(e).__name__)

    run.together(write, container.clear)
    assert told in ([], ["FailedPreconditionError"])
    assert not state.is_initialized, "the reset was lost"


class _Answers:
    """What waits were answered with: each once."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    def finish(self) -> Any:
        calls: list[Any] = []
        self.got.append(calls)
        return calls.append

    @property
    def values(self) -> list[Any]:
        assert all(len(calls) <= 1 for calls in self.got), "somebody was told twice"
        return [v for calls in self.got for v in calls]


@hand_over("runtime.state.queue_state")
def elements_of_a_queue(run: Any, m: Any) -> None:
    """Every element comes out once, in the order of its producer, and nobody waits in vain."""
    queue = m.QueueState("q", 2, (None,), None)
    puts, takes = _Answers(), _Answers()
    sizes = [0]

    def produce(name: str) -> None:
        for i in range(2):
            element = ((name, i),)
            if not queue.put([element]):
                queue.enqueue([element], puts.finish())
            sizes.append(queue.size)

    def consume() -> None:
        for _ in range(2):
            found = queue.take(1)
            if found is None:
                queue.dequeue(1, takes.finish())
            else:
                takes.got.append([found])

    run.together(lambda: produce("a"), lambda: produce("b"), consume, consume)
    assert all(v == () for v in puts.values) and len(puts.values) == len(puts.got)
    found = [value for taken in takes.values for (value,) in taken]
    assert sorted(found) == [("a", 0), ("a", 1), ("b", 0), ("b", 1)], found
    assert queue.size == 0 and queue.waiting == (0, 0)
    assert max(sizes) <= queue.capacity, sizes


wrong(
    elements_of_a_queue,
    "whether there is space is asked without the lock",
    (
        "        with self._lock:\n            if not self.has_room(len(elements)):\n"
        "                return False\n            self._add(elements)\n"
        "            note_put(self, current_step(), elements)\n",
        "        if not self.has_room(len(elements)):\n            return False\n"
        "        with self._lock:\n            self._add(elements)\n"
        "            note_put(self, current_step(), elements)\n",
    ),
)


@hand_over("runtime.state.queue_state")
def waits_that_are_given_up(run: Any, m: Any) -> None:
    """A taker that gives up has an element or gets none: no element is lost, none comes twice."""
    queue = m.QueueState("q", 4, (None,), None)
    given_up, other = _Answers(), _Answers()

    def give_up() -> None:
        leave = queue.dequeue(2, given_up.finish())
        run.point()
        leave()

    def take() -> None:
        queue.dequeue(1, other.finish())

    def put() -> None:
        for i in range(3):
            queue.enqueue([(i,)], lambda result: None)

    run.together(give_up, take, put)
    left = queue.take(queue.size) or []
    found = [v for taken in [*given_up.values, *other.values, left] for (v,) in taken]
    assert sorted(found) == [0, 1, 2], found
    assert len(other.values) == 1


wrong(
    waits_that_are_given_up,
    "what a wait has taken is lost when it is given up",
    (
        "            if isinstance(wait, _Dequeue):\n"
        "                self._restore(wait.taken)\n"
        "            done = self._pump()\n        call_all(done)\n\n    def _closed",
        "            done = self._pump()\n        call_all(done)\n\n    def _closed",
    ),
)


@hand_over("runtime.state.queue_state")
def a_queue_that_is_closed(run: Any, m: Any) -> None:
    """Each wait on a queue that closes is answered, though producers fail meanwhile."""
    queue = m.QueueState("q", 1, (None,), None)
    puts, takes = _Answers(), _Answers()

    def produce(i: int) -> None:
        queue.enqueue([(i,)], puts.finish())
        queue.producer_failed(ValueError("it failed"))

    def consume() -> None:
        for _ in range(3):
            queue.dequeue(1, takes.finish())

    run.together(lambda: produce(0), lambda: produce(1), consume, queue.close)
    assert len(puts.values) == 2 and len(takes.values) == 3, "somebody waits"
    taken = [v for v in takes.values if isinstance(v, list)]
    refused = [v for v in puts.values if isinstance(v, CancelledError)]
    assert len(taken) + len(refused) == 2, (puts.values, takes.values)
    assert queue.waiting == (0, 0) and queue.size == 0


@hand_over("runtime.state.queue_state", "runtime.state.queue_transactions")
def elements_of_a_step_that_is_stopped(run: Any, m: Any) -> None:
    """A step that is stopped while it waits gives back what it was given, in the old order."""
    from flowscope.runtime.state.queue_transactions import QueueTransaction, QueueUse

    queue = m.QueueState("q", 9, (None,), None)
    use: Any = QueueUse([queue], [], False)

    def step() -> None:
        stopped: Any = SimpleNamespace(queues=QueueTransaction(use))
        with as_step(stopped):
            leave = queue.dequeue(2, lambda result: None)
            run.point()
            leave()
            stopped.queues.abort(CancelledError("stopped"))

    def put() -> None:
        for i in range(3):
            queue.enqueue([(i,)], lambda result: None)

    run.together(step, put)
    assert queue.take(3) == [(0,), (1,), (2,)]


wrong(
    elements_of_a_step_that_is_stopped,
    "what a waiting step was given is noted without the lock, later",
    (
        "                done.append((wait.finish, wait.taken))\n"
        "                note_taken(self, wait.noted, wait.taken)\n",
        "                done.append((wait.finish, wait.taken))\n"
        "                noted = lambda taken, step=wait.noted: note_taken(self, step, taken)\n"
        "                done.append((noted, wait.taken))\n",
    ),
)


@hand_over("runtime.state.mutex_state")
def a_lock_that_is_handed_on(run: Any, m: Any) -> None:
    """One holds it at a time, and everybody gets it who does not give up."""
    lock = m.MutexState("lock")
    holds: list[Any] = []

    def use() -> None:
        lock.acquire(holds.append)
        run.point()
        if holds:
            hold = holds.pop()
            assert not holds, "two hold it"
            lock.release(hold)

    def give_up() -> None:
        lock.acquire(lambda hold: None)()

    run.together(use, use, give_up)
    while holds:
        (hold,) = holds
        holds.clear()
        lock.release(hold)
    assert not lock.is_held and not lock.waiting


wrong(
    a_lock_that_is_handed_on,
    "who waits is entered when the lock has been looked at",
    (
        "        with self._guard:\n            if self._holder is None:\n"
        "                self._holder = hold\n            else:\n"
        "                self._waiting[hold] = None\n            is_mine = self._holder is hold\n",
        "        is_free = self._holder is None\n        with self._guard:\n"
        "            if is_free:\n                self._holder = hold\n            else:\n"
        "                self._waiting[hold] = None\n            is_mine = self._holder is hold\n",
    ),
)
