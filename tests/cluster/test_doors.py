"""Whoever connects and has not shown who it is: bounded in time and number, and on one thread."""

import contextlib
import random
import socket
import threading
import time
from collections import deque

import pytest
from carried_words import carry
from local_clusters import wait_until
from own_threads import own_threads

from flowscope.cluster.transport.doors import DoorLimits, Doors
from flowscope.cluster.transport.endpoint import Endpoint
from flowscope.cluster.transport.handshake import Hello, introduce, meet
from flowscope.errors import DataLossError, UnauthenticatedError, UnavailableError

A, B = (f"/job:worker/replica:0/task:{i}" for i in range(2))
SECRET = b"the secret of this cluster"
HELLO = Hello("control", 1, A, 1, B, 2, True)


class Clock:
    """A time that stands still."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def hall():
    """Doors without a thread: the test says when it looks, and what time it is."""
    clock, entered, listener = Clock(), [], socket.create_server(("127.0.0.1", 0), backlog=128)
    doors = Doors(
        "doors",
        listener,
        lambda sock: meet(SECRET),
        lambda sock, met: entered.append((sock, met)),
        DoorLimits(total_s=5.0, at_once=4, patience_s=0.5),
        clock,
    )
    doors.address, doors.clock, doors.entered = listener.getsockname(), clock, entered
    with contextlib.ExitStack() as stack:
        doors.connect = lambda: stack.enter_context(socket.create_connection(doors.address, 5))
        yield doors
        for sock, _ in entered:
            sock.close()
        doors.close()


def steps_until(doors, is_so):
    for _ in range(1000):
        if is_so():
            return
        doors.step(0.01)
    raise AssertionError("it did not happen")


def is_closed(sock):
    sock.settimeout(5)
    with contextlib.suppress(ConnectionResetError):
        return sock.recv(1) == b""
    return True


def test_a_handshake_that_goes_on_for_ever_ends_after_its_total_time(hall):
    sock = hall.connect()
    steps_until(hall, lambda: hall.count == 1)
    for byte in b"\xff\0\0\0flows":  # one each half second: none of them comes late
        sock.send(bytes([byte]))
        hall.clock.now += 0.5
        hall.step(0.01)
        assert hall.count == 1
    sock.send(b"c")
    hall.clock.now += 0.5
    hall.step(0)
    assert hall.count == 0 and is_closed(sock)


def test_newcomers_wait_and_after_a_moment_the_oldest_makes_room(hall):
    silent = [hall.connect() for _ in range(10)]
    steps_until(hall, lambda: hall.count == 4)
    for _ in range(20):
        hall.step(0.001)
        assert hall.count == 4  # nobody is closed out who has had no time to speak
    for _ in range(6):
        hall.clock.now += 0.5
        for _ in range(20):
            hall.step(0.001)
        assert hall.count == 4
    peer = threading.Thread(target=lambda: carry(introduce(HELLO, SECRET), hall.connect(), 5))
    peer.start()
    hall.clock.now += 0.5
    steps_until(hall, lambda: hall.entered)
    hall.entered[0][0].sendall(b"".join(hall.entered[0][1].seal.seal(b"\0\0\0\0")))
    peer.join(5)
    assert hall.entered[0][1].hello == HELLO and is_closed(silent[0])


def test_who_goes_half_way_or_says_anything_else_is_closed_out(hall):
    rng = random.Random(3)
    for i in range(30):
        sock = hall.connect()
        if i % 3 == 0:
            sock.shutdown(socket.SHUT_WR)
        elif i % 3 == 1:
            sock.send((11 + i).to_bytes(4, "little") + b"flowscope/2" + rng.randbytes(i))
        else:
            sock.send(rng.randbytes(8) + b"\xff")
            sock.shutdown(socket.SHUT_WR)
        steps_until(hall, lambda: hall.count == 1)
        steps_until(hall, lambda: hall.count == 0)
        assert is_closed(sock)
    assert hall.entered == []


def test_a_socket_that_is_given_while_the_doors_close_is_closed(hall):
    class Given(deque):
        def append(self, sock):
            hall.close()
            super().append(sock)

    ours, theirs = socket.socketpair()
    with ours, theirs:
        hall._given = Given()
        hall._thread.start()
        hall.take(theirs)
        assert theirs.fileno() == -1 and is_closed(ours)


def test_who_cannot_be_let_in_is_closed_out_and_the_others_are_heard(hall):
    def refuse(sock, met):
        raise RuntimeError("can't start new thread")

    hall._enter = refuse
    ours, errors = hall.connect(), []

    def speak():
        try:
            carry(introduce(HELLO, SECRET), ours, 5)
        except OSError as e:
            errors.append(e)

    peer = threading.Thread(target=speak)
    peer.start()
    steps_until(hall, lambda: hall.count == 1)
    steps_until(hall, lambda: hall.count == 0)
    peer.join(5)
    assert len(errors) == 1
    hall.connect()
    steps_until(hall, lambda: hall.count == 1)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_stop_while_one_peer_is_dialled_leaves_no_socket_open(at):
    one = Endpoint(A, 1, SECRET)
    pairs = []

    def dial(address, timeout_s):
        if len(pairs) == at:
            raise KeyboardInterrupt
        pairs.append(socket.socketpair())
        return pairs[-1][1]

    one.dial = dial
    try:
        with pytest.raises(KeyboardInterrupt):
            one.connect(B, "by a name", 2)
        assert len(pairs) == at
        for ours, theirs in pairs:
            assert theirs.fileno() == -1
            ours.close()
    finally:
        one.close()


def test_a_hundred_that_say_nothing_keep_no_peer_out():
    limits = DoorLimits(total_s=5.0, at_once=32, patience_s=0.05)
    one, other = Endpoint(A, 1, SECRET), Endpoint(B, 2, SECRET, limits=limits)
    before = own_threads()
    silent = [socket.create_connection(other.address, 5) for _ in range(100)]
    try:
        wait_until(lambda: other._doors.count == 32)
        assert own_threads() <= before  # none of them has a thread
        other.on_call = lambda peer, message: message
        one.connect(B, other.address, 2)
        assert one.call(B, {"n": 1}, 5) == {"n": 1}
        assert other._doors.count <= 32
    finally:
        for sock in silent:
            sock.close()
        one.close()
        other.close()


def test_all_handshakes_of_an_endpoint_are_bounded_in_time():
    limits = DoorLimits(total_s=0.1)
    one = Endpoint(A, 1, SECRET, limits=limits)
    try:
        with socket.create_connection(one.address, 5) as sock:
            began = time.monotonic()
            assert is_closed(sock) and time.monotonic() - began >= 0.09
    finally:
        one.close()


def test_who_connects_waits_for_the_whole_handshake_no_longer_than_it_said():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip():
            sock, _ = listener.accept()
            with sock, contextlib.suppress(OSError):
                for byte in b"\xff\0\0\0" + bytes(100):  # never silent for long
                    sock.send(bytes([byte]))
                    threading.Event().wait(0.01)

        thread = threading.Thread(target=drip)
        thread.start()
        one, began = Endpoint(A, 1, SECRET), time.monotonic()
        with pytest.raises(UnavailableError, match="longer than 0.2 s|timed out"):
            one.connect(B, listener.getsockname(), 1, 0.2)
        assert time.monotonic() - began < 1.0
        one.close()
        thread.join()


def shaken(initiator, acceptor):
    """The findings of both ends, whose words go to each other in pieces."""
    found, unsent = {}, {initiator: next(initiator), acceptor: next(acceptor)}
    pair = {initiator: acceptor, acceptor: initiator}
    while any(unsent.values()):
        for source, target in pair.items():
            data, unsent[source] = unsent[source], b""
            for i in range(0, len(data), 7):
                try:
                    unsent[target] += target.send(data[i : i + 7])
                except StopIteration as e:
                    found[target] = e.value
    return found


@pytest.mark.parametrize("has_poly1305", [False, True])
def test_both_ends_have_the_same_keys_and_a_session_has_its_own(has_poly1305):
    hello = Hello("small", 1, A, 1, B, 2, has_poly1305)
    keys = []
    for _ in range(2):
        initiator, acceptor = introduce(hello, SECRET), meet(SECRET)
        met = shaken(initiator, acceptor)[acceptor]
        taken = b"".join(met.seal.seal(b"\0\0\0\0"))
        with pytest.raises(StopIteration) as end:
            initiator.send(taken)
        ours, theirs = end.value.value, met.seal
        for size in (1, 100, 5000, 600_000):
            data = random.Random(size).randbytes(size)
            for source, target in ((ours, theirs), (theirs, ours)):
                target.feed(b"".join(map(bytes, source.seal(data))))
                assert target.read() == data
        keys.append(taken[4:20])
    assert keys[0] != keys[1]


def test_a_last_word_that_was_changed_is_no_consent():
    initiator, acceptor = introduce(HELLO, SECRET), meet(SECRET)
    met = shaken(initiator, acceptor)[acceptor]
    taken = bytearray(b"".join(met.seal.seal(b"\0\0\0\0")))
    taken[-1] ^= 1
    with pytest.raises(DataLossError, match="not those that were sent"):
        initiator.send(bytes(taken))


def test_an_answer_without_the_secret_is_refused():
    initiator, acceptor = introduce(HELLO, SECRET), meet(b"another")
    answer = acceptor.send(next(initiator)) if next(acceptor) == b"" else None
    with pytest.raises(UnauthenticatedError, match="does not know this cluster's secret"):
        initiator.send(answer)
