"""Connections that are sealed, messages that are none, and peers that stop: of whole endpoints."""

import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from process_channels import RECEIVER, SENDER, FreeGate, by_device, soon, until
from tls_files import CERT, KEY

from flowscope.cluster.transport import connector
from flowscope.cluster.transport.channel import StepId
from flowscope.cluster.transport.encoding.tls import TLSContexts
from flowscope.cluster.transport.endpoint import Endpoint
from flowscope.errors import AbortedError, UnavailableError

A, B = (f"{p}/device:CPU:0" for p in (SENDER, RECEIVER))
X, Y, Z = f"{A};{B};x:0", f"{A};{B};y:0", f"{B};{A};z:0"
TABLE, BACK = by_device([X, Y]), by_device([Z])


@pytest.fixture(scope="module")
def contexts():
    """Contexts of TLS in which each end shows a certificate that the other one checks."""
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=CERT)
    client = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=CERT)
    client.check_hostname = False
    for one in (server, client):
        one.verify_mode = ssl.CERT_REQUIRED
        one.load_cert_chain(CERT, KEY)
    return TLSContexts(server, client)


@pytest.fixture
def sealed(contexts):
    one, other = (Endpoint(n, 1, b"", tls=contexts) for n in (SENDER, RECEIVER))
    assert one.is_sealed
    one.connect(RECEIVER, other.address, 1)
    yield one, other
    one.close()
    other.close()


@pytest.mark.slow
def test_sealed_connections_carry_all_that_plain_ones_do(sealed):
    one, other = sealed
    other.on_call = lambda peer, message: message
    assert one.call(RECEIVER, {"n": 1}, 5) == {"n": 1}
    other.on_run = lambda peer, header, values: (header, values)
    big = np.arange(3_000_000)
    for _ in range(3):
        header, values = one.start_run(RECEIVER, {"n": 2}, [big, np.float32(1)]).wait(until=soon())
        assert header == {"n": 2} and values[1] == 1
        np.testing.assert_array_equal(values[0], big)
    sender, receiver = (e.open_step(StepId(1, 1), TABLE) for e in sealed)
    for i in range(500):
        sender.mailbox(X).send(np.float32(i) if i % 100 else big)
    for i in range(500):
        value = receiver.mailbox(X).receive(FreeGate())
        np.testing.assert_array_equal(value, np.float32(i) if i % 100 else big)


def test_whoever_has_no_certificate_is_not_heard(sealed):
    stranger = Endpoint("/job:worker/replica:0/task:9", 1, b"")
    try:
        with pytest.raises(UnavailableError, match="cannot be reached"):
            stranger.connect(RECEIVER, sealed[1].address, 1, timeout_s=1)
    finally:
        stranger.close()


def _throw(address, data):
    with socket.create_connection(address, 5) as sock:
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(4096):
                pass
        except OSError:
            return  # it was closed out meanwhile


def test_strangers_who_send_anything_change_nothing():
    done = []
    one = Endpoint(SENDER, 1, b"secret")
    one.on_call = one.on_run = lambda *call: done.append(call)
    rng = random.Random(5)
    try:
        for i in range(100):
            start = b"" if i % 2 else (11 + i).to_bytes(4, "little") + b"flowscope/2"
            _throw(one.address, start + rng.randbytes(rng.randrange(200)))
        other = Endpoint(RECEIVER, 1, b"secret")
        other.on_call = lambda peer, message: message
        one.connect(RECEIVER, other.address, 1)
        assert one.call(RECEIVER, {"n": 1}, 5) == {"n": 1}
        other.close()
    finally:
        one.close()
    assert done == []


def test_a_connection_that_is_made_while_its_peer_is_lost_ends_with_it(monkeypatch):
    made = []
    one, other = Endpoint(SENDER, 1, b"secret"), Endpoint(RECEIVER, 1, b"secret")
    try:
        one.connect(RECEIVER, other.address, 1)
        take, finish = Endpoint._made, connector.finish
        monkeypatch.setattr(Endpoint, "_made", lambda *a: made.append(take(*a)) or made[-1])

        def finish_and_lose(*args):
            finish(*args)
            one.disconnect(RECEIVER)

        monkeypatch.setattr(connector, "finish", finish_and_lose)
        with pytest.raises(UnavailableError, match="was given up"):
            one.start_run(RECEIVER, {}, []).wait(until=soon())
        until(lambda: all(c.error is not None and c.fileno() == -1 for c in made))
        assert len(made) == 2  # at both ends
    finally:
        one.close()
        other.close()


@pytest.mark.slow
@pytest.mark.parametrize("purpose", ["control", "small", "bulk"])
def test_a_peer_that_sends_broken_messages_is_lost_with_an_error(purpose):
    rng = random.Random(purpose)
    for i in range(30):
        lost, done, result = [], [], []
        one, other = Endpoint(SENDER, 1, b"secret"), Endpoint(RECEIVER, 1, b"secret")
        one.on_call = one.on_run = lambda *call, done=done: done.append(call)
        one.on_lost = lambda peer, incarnation, e, lost=lost: lost.append(e)
        try:
            one.connect(RECEIVER, other.address, 1)
            channel = one.open_step(StepId(1, 1), BACK)
            thread = threading.Thread(target=_receive, args=(channel, result))
            thread.start()  # whoever waits reads what is broken
            peer = other._peers[SENDER]
            noise = bytearray(rng.randbytes(rng.randrange(60, 300)))
            if i % 2:
                noise[3] = 255  # longer than anything
            peer.connections[purpose].write(bytes(noise))
            peer.close()
            until(lambda lost=lost: lost)
            thread.join(10)
            assert isinstance(result[0], UnavailableError)
            assert len(lost) == 1 and done == []
        finally:
            one.close()
            other.close()


def _receive(channel, result):
    try:
        result.append(channel.mailbox(Z).receive(FreeGate()))
    except Exception as e:
        result.append(e)


CHILD = """
import sys, time, threading
import numpy as np
from flowscope.cluster.transport.endpoint import Endpoint
from flowscope.cluster.transport.channel import StepId
from process_channels import RECEIVER, FreeGate, by_device
one = Endpoint(RECEIVER, 1, b"secret")
def run(peer, header, values):
    channel = one.open_step(StepId(1, header["n"]), by_device(header["keys"]))
    try:
        count = 0
        while channel.mailbox(header["keys"][0]).receive(FreeGate()) >= 0:
            count += 1
        return {"count": count}, []
    finally:
        one.close_step(StepId(1, header["n"]))
one.on_run = run
print(one.address[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def child():
    path = os.pathsep.join(sys.path)
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    one = Endpoint(SENDER, 1, b"secret")
    one.connect(RECEIVER, ("127.0.0.1", int(process.stdout.readline())), 1)
    yield one, process
    one.close()
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_a_stopped_process_holds_nobody_up_and_goes_on_when_it_wakes(child):
    one, process = child
    run = one.start_run(RECEIVER, {"n": 1, "keys": [X, Y]}, [])
    box = one.open_step(StepId(1, 1), TABLE).mailbox(X)
    os.kill(process.pid, signal.SIGSTOP)
    began = time.monotonic()
    for i in range(100_000):
        box.send(np.int64(i))
    assert time.monotonic() - began < 5
    assert not run.is_done
    os.kill(process.pid, signal.SIGCONT)
    box.send(np.int64(-1))
    one.close_step(StepId(1, 1))
    assert run.wait(until=soon())[0] == {"count": 100_000}


@pytest.mark.slow
def test_a_killed_process_fails_at_once_whoever_waits_for_it(child):
    one, process = child
    lost = threading.Event()
    one.on_lost = lambda *told: lost.set()
    run = one.start_run(RECEIVER, {"n": 1, "keys": [X, Y]}, [])
    channel = one.open_step(StepId(1, 1), TABLE)
    channel.mailbox(X).send(np.int64(1))
    process.kill()
    began = time.monotonic()
    with pytest.raises(UnavailableError, match="task:1 is lost"):
        run.wait(until=soon())
    assert lost.wait(5) and time.monotonic() - began < 1
    until(lambda: channel.error is not None)
    with pytest.raises(UnavailableError, match="task:1 is lost"):
        channel.mailbox(X).send(np.int64(1))


@pytest.mark.slow
def test_an_abort_ends_a_wait_within_milliseconds(child):
    one, _ = child
    took = []
    for n in range(20):
        channel, found = one.open_step(StepId(2, n), BACK), []
        thread = threading.Thread(target=_receive, args=(channel, found))
        thread.start()
        until(lambda c=channel: c.pending())
        began = time.monotonic()
        channel.abort(AbortedError("the end"))
        thread.join(10)
        took.append(time.monotonic() - began)
        assert isinstance(found[0], AbortedError)
        one.close_step(StepId(2, n))
    assert sorted(took)[10] < 0.05
