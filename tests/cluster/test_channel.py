"""What channels between processes do beyond the contract of all channels."""

import threading

import numpy as np
import pytest
from own_threads import own_threads
from process_channels import (
    RECEIVER,
    SENDER,
    STEP,
    TRANSPORTS,
    FreeGate,
    from_first_to_second,
    two_endpoints,
    until,
)

from flowscope.cluster.transport.channel import KeyTable, StepId
from flowscope.errors import AbortedError, UnavailableError
from flowscope.runtime.waits.rendezvous import DEAD

A, B = (f"{p}/device:CPU:0" for p in (SENDER, RECEIVER))
KEYS = [f"{A};{B};x:{i}" for i in range(3)]
TABLE = from_first_to_second(KEYS)
X, Y, Z = KEYS


@pytest.fixture(params=TRANSPORTS)
def ends(request):
    with two_endpoints(request.param) as found:
        yield found


@pytest.fixture
def channels(ends):
    return [e.open_step(STEP, TABLE) for e in ends]


@pytest.mark.parametrize(
    "value",
    [
        np.float32(np.nan),
        np.bool_(True),
        np.arange(6).reshape(2, 3),
        np.zeros((0, 2), np.complex64),
        np.arange(100_000, dtype=np.float64),
        np.array([b"x" * 70_000, b""], object),
        b"text",
        DEAD,
    ],
    ids=lambda v: type(v).__name__,
)
def test_every_value_arrives_as_it_was(channels, value):
    one, other = channels
    one.mailbox(X).send(value)
    one.tagged(Y).send(value, (1, 2))
    got = [other.mailbox(X).receive(FreeGate())]
    got += other.tagged(Y).receive((1, 2), got.append) or ()
    until(lambda: len(got) == 2)
    for one in got:
        assert type(one) is type(value)
        if value is DEAD:
            assert one is value
        else:
            np.testing.assert_array_equal(one, value)


def test_large_and_small_values_of_a_key_stay_in_order(channels):
    one, other = channels
    sent = [np.full(40_000 if i % 3 == 0 else 1, i) for i in range(30)]
    for value in sent:
        one.mailbox(X).send(value)
    for value in sent:
        np.testing.assert_array_equal(other.mailbox(X).receive(FreeGate()), value)


@pytest.mark.slow
def test_large_values_beyond_the_bound_come_when_they_are_received(ends, channels):
    one, other = channels
    sent = [np.full((1 << 24) + i, i, np.uint8) for i in range(20)]  # 320 MB
    for value in sent:
        one.mailbox(X).send(value)
    for value in sent:
        got = other.mailbox(X).receive(FreeGate())
        assert got.size == value.size and got[-1] == value[-1]
    assert ends[0]._peers[RECEIVER].bulk.offered == ends[1]._peers[SENDER].bulk.asked == 0


def test_what_arrives_belongs_to_whoever_receives_it(channels):
    one, other = channels
    value = np.zeros(3)
    one.mailbox(X).send(value)
    other.mailbox(X).receive(FreeGate())[:] = 5
    assert value.sum() == 0


def test_values_may_come_before_their_step_has_begun(ends):
    one, other = ends
    sender = one.open_step(STEP, TABLE)
    ready = other.open_step(StepId(9, 1), TABLE)
    one_ready = one.open_step(StepId(9, 1), TABLE)
    sent = [np.float32(1), np.arange(20_000.0), np.float32(2)]
    for value in sent:
        sender.mailbox(X).send(value)
    one_ready.mailbox(X).send(np.int32(1))
    ready.mailbox(X).receive(FreeGate())  # reads what is before it
    assert other._steps.kept == 3
    receiver = other.open_step(STEP, TABLE)
    for value in sent:
        np.testing.assert_array_equal(receiver.mailbox(X).receive(FreeGate()), value)
    assert other._steps.kept == 0


def test_what_comes_late_is_thrown_away(ends, channels):
    one, other = ends
    other.close_step(STEP)
    for value in (np.float32(1), np.arange(20_000.0)):
        channels[0].mailbox(X).send(value)
    later = [e.open_step(StepId(9, 1), TABLE) for e in ends]
    later[0].mailbox(X).send(np.float32(7))
    assert later[1].mailbox(X).receive(FreeGate()) == 7
    assert other._steps.kept == 0
    until(lambda: one._peers[RECEIVER].bulk.offered == 0)


def test_a_step_that_ends_well_leaves_peers_what_they_have_not_read(ends, channels):
    value = np.arange(100_000.0)
    channels[0].mailbox(X).send(value)
    ends[0].close_step(STEP)
    np.testing.assert_array_equal(channels[1].mailbox(X).receive(FreeGate()), value)


def test_devices_of_one_process_send_each_other_as_ever(ends):
    table = KeyTable(KEYS, lambda device: SENDER)
    channel = ends[0].open_step(STEP, table)
    value = object()
    channel.mailbox(X).send(value)
    assert channel.mailbox(X).receive(FreeGate()) is value


def test_a_lost_peer_fails_the_steps_that_it_has_a_part_in(ends, channels):
    one, _ = ends
    found = []

    def work():
        try:
            channels[1].mailbox(X).receive(FreeGate())
        except UnavailableError as e:
            found.append(e)

    thread = threading.Thread(target=work)
    thread.start()
    until(lambda: channels[1].pending())
    one._peers[RECEIVER].close()
    thread.join(10)
    assert "task:0 is lost" in str(found[0])
    until(lambda: not one.is_connected(RECEIVER))
    with pytest.raises(UnavailableError, match="task:1 is not connected"):
        one.open_step(StepId(1, 2), TABLE).mailbox(X)


def test_steps_do_not_meet_each_other(ends):
    first, second = ([e.open_step(StepId(1, n), TABLE) for e in ends] for n in range(2))
    for i in range(20):
        first[0].mailbox(X).send(np.int64(i))
        second[0].mailbox(X).send(np.int64(-i))
    assert [second[1].mailbox(X).receive(FreeGate()) for _ in range(20)] == [-i for i in range(20)]
    assert [first[1].mailbox(X).receive(FreeGate()) for _ in range(20)] == [*range(20)]


def test_threads_that_wait_for_one_peer_all_get_their_values(channels):
    one, other = channels
    got = {}

    def work(key):
        got[key] = [int(other.mailbox(key).receive(FreeGate())) for _ in range(200)]

    threads = [threading.Thread(target=work, args=(key,)) for key in KEYS]
    for thread in threads:
        thread.start()
    for i in range(200):
        for key in KEYS:
            one.mailbox(key).send(np.int64(i))
    one.flush()
    for thread in threads:
        thread.join(20)
    assert got == {key: [*range(200)] for key in KEYS}


def test_iterations_go_by_tags_between_processes(channels):
    one, other = channels
    got = []
    for i in range(50):
        other.tagged(X).receive((i,), got.append)
    for i in reversed(range(50)):
        one.tagged(X).send(np.int64(i), (i,))
    until(lambda: len(got) == 50)
    assert got == [*reversed(range(50))]


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_aborted_steps_leave_nothing(ends, count):
    one, other = ends
    before = own_threads()
    for n in range(count):
        step = StepId(3, n)
        sender = one.open_step(step, TABLE)
        sender.mailbox(X).send(np.float32(1))
        sender.mailbox(Y).send(np.arange(20_000.0))
        sender.flush()
        if n % 3:
            receiver = other.open_step(step, TABLE)
            if n % 2:
                receiver.mailbox(X).receive(FreeGate())
            receiver.abort(AbortedError("the end"))
        sender.abort(AbortedError("the end"))
        one.close_step(step)
        other.close_step(step)
    a, b = one._peers[RECEIVER].bulk, other._peers[SENDER].bulk
    last = [e.open_step(StepId(4, 1), TABLE) for e in ends]
    last[0].mailbox(X).send(np.float32(7))
    assert last[1].mailbox(X).receive(FreeGate()) == 7
    until(lambda: not (a.offered or b.asked or b._dropped))
    assert not one._steps.boxes and len(other._steps.boxes) == 1
    assert one._steps.kept == other._steps.kept == 0 and b._unread_bytes == 0
    assert len(one.open_steps()) == len(other.open_steps()) == 1
    assert own_threads() <= before + 6  # pollers and flushers, begun when needed
