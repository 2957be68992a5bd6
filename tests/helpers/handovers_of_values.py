"""Hand-overs of values between partitions: mailboxes, their waiters, and the rendezvous."""

from __future__ import annotations

from threading import get_ident
from types import SimpleNamespace
from typing import Any

from handovers import as_step, hand_over, wrong

from flowscope.runtime.step.step import Step


class _Failure(Exception):
    """What a rendezvous is aborted with."""


def new_step(gate: Any) -> Step:
    """Returns a step of the calling thread."""
    call: Any = SimpleNamespace(queues=None, trace=None)
    nobody: Any = None
    return Step(call, None, gate, nobody, get_ident())


def new_gate() -> Any:
    """Returns a gate with the locks of whoever runs the scenario."""
    from flowscope.runtime.waits.gate import Gate

    return Gate()


@hand_over("runtime.waits.rendezvous", "runtime.waits.gate")
def values_in_order(run: Any, m: Any) -> None:
    """All values come, in order; the producer is never far ahead, and nobody waits in vain."""
    gate, box, got = new_gate(), m.Mailbox("a;b;c"), []

    def produce() -> None:
        with as_step(new_step(gate)):
            for i in range(4):
                box.throttle(2, 0, gate)
                box.send(i)
                assert len(box.values) <= 2

    def consume() -> None:
        with as_step(new_step(gate)):
            got.extend([box.receive(gate) for _ in range(4)])

    run.together(produce, consume)
    assert got == [0, 1, 2, 3], got
    assert not box.values


wrong(
    values_in_order,
    "whoever waits is read twice",
    (
        "        reader = self._reader\n        if reader is not None:\n            reader.wake()",
        "        if self._reader is not None:\n            self._reader.wake()",
    ),
)
wrong(
    values_in_order,
    "who waits does not look before it waits",
    ("        if is_done() or (not gate.raised", "        if (not gate.raised"),
)
wrong(
    values_in_order,
    "a value is dropped that comes when its receiver begins to wait",
    (
        "        waiter = self._reader = Waiter()\n",
        "        waiter = self._reader = Waiter()\n        self.values.clear()\n",
    ),
)


@hand_over("runtime.waits.rendezvous", "runtime.waits.gate")
def a_wait_is_told(run: Any, m: Any) -> None:
    """A thread that waits for a value is among the waiters, whatever the producer does."""
    gate, box = new_gate(), m.Mailbox("a;b;c")

    def wait(is_done: Any, here: Any = None, until: float | None = None) -> None:
        for _ in range(2):
            told = any(not p.is_producer for p in box.pending())
            assert told or is_done(), "nobody is told to wait"
            gate.wait(is_done, here, until)

    watched = SimpleNamespace(raised=True, wait=wait, wake=gate.wake)

    def produce() -> None:
        with as_step(new_step(gate)):
            for i in range(3):
                box.throttle(1, 0, gate)
                box.send(i)

    def consume() -> None:
        with as_step(new_step(gate)):
            assert [box.receive(watched) for _ in range(3)] == [0, 1, 2]

    run.together(produce, consume)
    assert not box.pending()


wrong(
    a_wait_is_told,
    "the end of a producer's wait ends that of a receiver",
    ("self._writer, self.since_ahead = None, 0.0", "self._writer = None\n"
     "            self.since = self.since_ahead = 0.0"),
)  # fmt: skip


@hand_over("runtime.waits.rendezvous", "runtime.waits.gate")
def values_in_order_where_no_step_is_held(run: Any, m: Any) -> None:
    """The same where a step may not be held: nothing but the wake ends the wait."""
    gate, box, got = new_gate(), m.Mailbox("a;b;c"), []

    def produce() -> None:
        with as_step(new_step(gate)):
            for i in range(3):
                box.throttle(1, 0, gate, None, False)
                box.send(i)

    def consume() -> None:
        with as_step(new_step(gate)):
            got.extend([box.receive(gate, None, False) for _ in range(3)])

    run.together(produce, consume)
    assert got == [0, 1, 2], got


@hand_over("runtime.waits.rendezvous", "runtime.waits.gate", few=600)
def an_abort_ends_all_waits(run: Any, m: Any) -> None:
    """An abort: who waits or comes later gets its error and no other, and no value is kept."""
    gate, channel = new_gate(), m.Rendezvous()
    causes = [_Failure("one"), _Failure("two")]
    told: list[str] = []

    def guarded(function: Any) -> None:
        with as_step(new_step(gate)):
            try:
                while True:
                    function()
            except _Failure as e:
                told.append(str(e))

    def produce() -> None:
        box = channel.mailbox("a;b;c")
        box.throttle(1, 0, gate)
        box.send(1)

    def consume() -> None:
        channel.mailbox("a;b;c").receive(gate)

    run.together(
        lambda: guarded(produce),
        lambda: guarded(consume),
        *[lambda e=e: channel.abort(e) for e in causes],
    )
    assert len(set(told)) == 1 and len(told) == 2, told
    assert told == [str(channel.error)] * 2, (told, channel.error)
    assert not channel.mailbox("a;b;c").values


wrong(
    an_abort_ends_all_waits,
    "two aborts at once both count",
    (
        "        with self._lock:\n            if self.error is not None:\n"
        "                return\n            self.error = error\n        for box",
        "        if self.error is not None:\n            return\n        self.error = error\n"
        "        for box",
    ),
)
wrong(
    an_abort_ends_all_waits,
    "a value is sent into a mailbox that fails",
    ("            self.values.clear()\n            raise", "            raise"),
)
wrong(
    an_abort_ends_all_waits,
    "what is there was looked at, and is gone",
    (
        "            try:\n                value = values.popleft()\n                break\n"
        "            except IndexError:\n"
        "                self._wait_for_value(gate, here, is_safe)\n",
        "            while not values:\n"
        "                self._wait_for_value(gate, here, is_safe)\n"
        "            value = values.popleft()\n            break\n",
    ),
)


@hand_over("runtime.waits.rendezvous")
def values_by_iterations(run: Any, m: Any) -> None:
    """Each iteration's value comes once; a producer that was put off is told of space."""
    box, got, told = m.TaggedMailbox("a;b;c"), [], []

    def produce() -> None:
        for i in range(3):
            if not box.when_below(1, (), lambda i=i: told.append(i)):
                told.append(-1)
            box.send(i, (i,))

    def consume() -> None:
        for i in (1, 0, 2):
            found = box.receive((i,), got.append)
            if found is not None:
                got.append(found[0])

    run.together(produce, consume)
    assert sorted(got) == [0, 1, 2], got
    assert told.count(-1) == len(told) - told.count(-1), "a producer was not told"
    assert not box.unread(()) and not box.pending()


wrong(
    values_by_iterations,
    "a value is lost that comes while its receiver looks",
    (
        "            if waiting is None:\n                self._values[tag] = value\n",
        "        with self._lock:\n            if waiting is None:\n"
        "                self._values[tag] = value\n",
    ),
)


@hand_over("runtime.waits.rendezvous")
def a_failure_comes_to_every_iteration(run: Any, m: Any) -> None:
    """A mailbox by iterations that fails: each receiver gets a value or the error, once."""
    box, got = m.TaggedMailbox("a;b;c"), []

    def quietly(function: Any) -> None:
        try:
            function()
        except _Failure as e:
            got.append(e)

    def receive(i: int) -> None:
        found = box.receive((i,), got.append)
        if found is not None:
            got.append(found[0])

    run.together(
        lambda: quietly(lambda: receive(0)),
        lambda: quietly(lambda: receive(1)),
        lambda: quietly(lambda: box.send("value", (0,))),
        lambda: box.fail(_Failure("failed")),
    )
    errors = [e for e in got if isinstance(e, _Failure)]
    assert 2 <= len(got) <= 3 and errors, got
    assert not box.unread(()) and not box.pending()


class _Run:
    """A run on a worker, whose answer comes."""

    def __init__(self) -> None:
        self.on_done: Any = None
        self.is_done = False

    def come(self) -> None:
        """The answer comes: whoever reads it says so."""
        self.is_done = True
        if self.on_done is not None:
            self.on_done(self)

    def read_all(self) -> None:
        """Nothing more has come."""


@hand_over("cluster.transport.runs")
def answers_of_workers(run: Any, m: Any) -> None:
    """Until each answer is taken there is one to wait for, and each is taken once."""
    runs = [_Run(), _Run()]
    answers = m.Answers(runs)
    taken: list[Any] = []

    def take() -> None:
        for _ in range(4):
            assert answers._watched(), "nothing is waited for, and not all was taken"
            if answers._done:
                taken.append(answers.next(owned_by=None))
                if len(taken) == len(runs):
                    return

    run.together(take, runs[0].come, runs[1].come)
    while len(taken) < len(runs):
        taken.append(answers.next(owned_by=None))
    assert set(taken) == set(runs) and not answers._watched(), taken


wrong(
    answers_of_workers,
    "what was claimed and not handed over yet is not waited for",
    ("        return self._left > 0\n", "        return bool(self._open or self._done)\n"),
)


class _Offer:
    """A large value that is announced."""

    nbytes = 8

    def __init__(self, tag: tuple[int, ...], value: int) -> None:
        self.tag, self.value, self.dropped = tag, value, 0


class _Bulk:
    """The large values of a link: which were asked for, which let go of."""

    def __init__(self) -> None:
        self.open: list[Any] = []
        self.unread = 0

    def announced(self, offer: Any) -> None:
        self.open.append(offer)

    def drop(self, offer: Any) -> None:
        offer.dropped += 1

    def taken(self, nbytes: int) -> None:
        self.unread -= nbytes


@hand_over("cluster.transport.boxes", "runtime.waits.rendezvous", few=900)
def what_comes_for_a_step_that_fails_is_let_go_of(run: Any, m: Any) -> None:
    """What comes for a step that is ending is dropped; the connection goes on."""
    bulk = _Bulk()
    box = m.TaggedInBox("a;b;c", bytes(20), SimpleNamespace(bulk=bulk), None)
    offers = [_Offer((i,), i) for i in (10, 11)]

    def come() -> None:
        box.arrive(0.5, (0,))
        for offer in offers:
            box.announced(offer)
        bulk.unread += offers[0].nbytes
        box.arrived(offers[0])
        box.arrive(0.5, (1,))

    run.together(come, lambda: box.fail(_Failure("it fails")))
    assert not box._values and not box._offers
    assert offers[1].dropped == 1, "a large value stays announced for ever"
    assert bulk.unread == 0 or offers[0].dropped == 1, "its bytes count as unread for ever"


wrong(
    what_comes_for_a_step_that_fails_is_let_go_of,
    "whoever brings a value is told the error of its step",
    ("        self._put(value, tag)\n", "        if self._error is None:\n"
     "            super().send(value, tag)\n"),
)  # fmt: skip
wrong(
    what_comes_for_a_step_that_fails_is_let_go_of,
    "what is announced while the mailbox fails is kept",
    (
        "        super().fail(error)  # nothing is taken from now on\n",
        "",
    ),
    (
        "            read, self._large = sum(self._large.values()), {}\n"
        "        self._counting.link.bulk.taken(read)\n        for offer in offers:\n"
        "            self._counting.link.bulk.drop(offer)\n\n    def is_on_way(self, tag",
        "            read, self._large = sum(self._large.values()), {}\n"
        "        super().fail(error)\n"
        "        self._counting.link.bulk.taken(read)\n        for offer in offers:\n"
        "            self._counting.link.bulk.drop(offer)\n\n    def is_on_way(self, tag",
    ),
)
