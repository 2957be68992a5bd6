"""What each channel does between the partitions of a step, whatever carries the values."""

import threading
import time

import numpy as np
import pytest
from process_channels import TRANSPORTS, FreeGate, arrived, joined_channel, unread
from split_runs import Shuffled

from flowscope.errors import AbortedError, CancelledError
from flowscope.runtime.waits.gate import Gate
from flowscope.runtime.waits.rendezvous import Rendezvous, full_key

A, B = (f"/job:localhost/replica:0/task:0/device:CPU:{i}" for i in range(2))
KEY = f"{A};{B};tanh:0"


@pytest.fixture(params=["memory", "shuffled", *TRANSPORTS])
def channel(request):
    if request.param in TRANSPORTS:
        with joined_channel([KEY, KEY + "x", "a;b;c"], request.param) as channel:
            yield channel
    else:
        yield Rendezvous() if request.param == "memory" else Shuffled(3)


@pytest.fixture
def gate():
    return FreeGate()


def background(function):
    """Runs a function on another thread; returns what waits for its result."""
    found = []

    def work():
        try:
            found.append(function())
        except BaseException as e:
            found.append(e)

    thread = threading.Thread(target=work)
    thread.start()

    def result():
        thread.join(10)
        assert not thread.is_alive()
        return found[0]

    return result


def until(is_true):
    end = time.monotonic() + 10
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0)


def test_a_value_may_come_before_the_receiver(channel, gate):
    value = np.arange(3)
    channel.mailbox(KEY).send(value)
    np.testing.assert_array_equal(channel.mailbox(KEY).receive(gate), value)


def test_a_receiver_may_come_before_the_value(channel, gate):
    box = channel.mailbox(KEY)
    result = background(lambda: box.receive(gate))
    until(lambda: channel.pending())
    assert channel.pending()[0].key == KEY and not channel.pending()[0].is_producer
    box.send(5)
    assert result() == 5
    assert not channel.pending()


def test_a_long_wait_ends_too(channel, gate):
    box = channel.mailbox(KEY)
    result = background(lambda: box.receive(gate))
    until(lambda: channel.pending() and channel.pending()[0].seconds > 0.02)
    box.send(5)
    assert result() == 5


def test_values_of_one_key_come_in_order_whatever_comes_between(channel, gate):
    other = channel.mailbox(KEY + "x")
    for i in range(50):
        channel.mailbox(KEY).send(i)
        other.send(-i)
    assert [channel.mailbox(KEY).receive(gate) for _ in range(50)] == [*range(50)]
    assert [other.receive(gate) for _ in range(50)] == [-i for i in range(50)]


def test_sending_never_waits(channel):
    box = channel.mailbox(KEY)
    for i in range(10_000):
        box.send(i)


@pytest.mark.parametrize("window", [1, 2, 64])
def test_a_producer_waits_until_others_have_read(channel, gate, window):
    box = channel.mailbox(KEY)
    most = []

    def produce():
        for i in range(300):
            box.send(i)
            most.append(unread(box))
            box.throttle(window, 0, gate)

    result = background(produce)
    assert [box.receive(gate) for _ in range(300)] == [*range(300)]
    assert result() is None
    assert max(most) <= window
    box.throttle(window, 0, gate)  # what is told of reading may come late
    assert not box.is_ahead(window)


def test_a_producer_counts_bytes_where_no_number_was_asked_for(gate):
    box = Rendezvous().mailbox(KEY)
    for _ in range(10):
        box.send(np.zeros(10))
    assert box.is_ahead(10) and not box.is_ahead(10, 801) and box.is_ahead(10, 800)
    assert not box.is_ahead(11, 800)


def test_one_message_may_always_be_unread(gate):
    box = Rendezvous().mailbox(KEY)
    box.send(np.zeros(1 << 20))
    assert box.is_ahead(1, 1 << 16) and not box.is_ahead(2, 1 << 16)


def test_an_abort_fails_what_waits_and_what_comes_later(channel, gate):
    reading, writing = channel.mailbox(KEY), channel.mailbox(KEY + "x")
    writing.send(1)
    results = [
        background(lambda: reading.receive(gate)),
        background(lambda: writing.throttle(1, 0, gate)),
    ]
    until(lambda: len(channel.pending()) == 2)
    channel.abort(AbortedError("the worker is gone"))
    channel.abort(CancelledError("a later one"))
    for result in results:
        error = result()
        assert isinstance(error, AbortedError) and "the worker is gone" in str(error)
    for later in (
        lambda: reading.receive(gate),
        lambda: channel.mailbox("a;b;c").receive(gate),
        lambda: channel.tagged("a;b;c").send(1, (0,)),
    ):
        with pytest.raises(AbortedError, match="the worker is gone"):
            later()


def test_an_abort_lets_go_of_what_was_not_read(channel):
    box = channel.mailbox(KEY)
    box.send(np.zeros(3))
    channel.abort(AbortedError("gone"))
    assert not unread(box)


def test_a_stop_ends_a_wait_unless_the_step_may_not_be_held():
    gate, channel = Gate(), Rendezvous()
    box = channel.mailbox(KEY)
    result = background(lambda: box.receive(gate, None, False))
    until(lambda: channel.pending())
    gate.request("stop")
    box.send(3)
    assert result() == 3


def test_tags_tell_iterations_apart(channel):
    box, told = channel.tagged(KEY), []
    box.send(b"b", (1,))
    box.send(b"a", (0,))
    until(lambda: arrived(box) == 2)
    assert box.receive((0,), told.append) == (b"a",)
    assert box.receive((0, 2), told.append) is None
    assert box.receive((1,), told.append) == (b"b",)
    box.send(b"c", (0, 2))
    until(lambda: told)
    assert told == [b"c"] and not arrived(box)
    box.receive((5,), told.append)
    assert [p.key for p in box.pending()] == [KEY]
    box.forget((5,))
    assert not box.pending()


def test_a_producer_of_tagged_values_is_told_when_others_have_read(channel):
    box, told = channel.tagged(KEY), []
    for i in range(3):
        box.send(i, (i,))
    assert box.when_below(4, (), lambda: told.append(4))
    assert not box.when_below(2, (), lambda: told.append(2))
    assert box.pending()[0].is_producer
    until(lambda: arrived(box) == 3)
    box.receive((2,), told.append)
    assert told == []
    box.receive((0,), told.append)
    until(lambda: arrived(box) <= 1 and told)  # the receiver hears later that somebody waits
    assert told == [2] and not box.pending()


def test_a_key_names_devices_incarnation_tensor_and_iterations():
    assert full_key(KEY) == f"{A};0;{B};tanh:0;:0"
    assert full_key(KEY, 0xAB, (3, 1), ("outer", "inner")) == (f"{A};ab;{B};tanh:0;outer:3/inner:1")
