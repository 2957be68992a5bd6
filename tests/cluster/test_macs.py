"""Bytes that were changed, repeated, reordered or left out on the way are found."""

import random
import socket
import threading
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from process_channels import RECEIVER, SENDER, FreeGate, by_device, soon

from flowscope.cluster.transport.channel import StepId
from flowscope.cluster.transport.encoding import poly1305
from flowscope.cluster.transport.encoding.macs import RECORD_BYTES, Macs
from flowscope.cluster.transport.endpoint import Endpoint
from flowscope.errors import DataLossError, UnavailableError

KEYS = (b"a session key of 32 bytes, for us", b"a session key of 32 bytes, of them")
SIZES = [1, 34, 4095, 4096, 9000, RECORD_BYTES - 1, RECORD_BYTES, RECORD_BYTES + 1, 1_500_000]
HEAD = 20
FAST = [False, pytest.param(True, marks=pytest.mark.skipif(not poly1305.is_available(), reason=""))]


def ends(is_fast):
    return Macs(*KEYS, is_fast), Macs(*KEYS[::-1], is_fast)


def records(seal, data):
    """Returns the sealed records of bytes, each in one piece."""
    parts = [bytes(p) for p in seal.seal(data)]
    if len(parts) == 1:
        return parts
    return [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]


def test_poly1305_is_the_standards():
    """RFC 8439, section 2.5.2."""
    if not poly1305.is_available():
        pytest.skip("this Python hides the functions of its OpenSSL")
    key = "85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b"
    text = b"Cryptographic Forum Research Group"
    tag = poly1305.Poly1305().tag(bytes.fromhex(key), text)
    assert tag.hex() == "a8061dc1305136c6c22b8baf0c0127a9"


@pytest.mark.parametrize("is_fast", FAST)
def test_bytes_of_any_size_come_in_any_pieces_by_any_way_to_read(is_fast):
    rng = random.Random(1)
    one, other = ends(is_fast)
    near, far = socket.socketpair()
    data = [rng.randbytes(rng.choice(SIZES)) for _ in range(25)]
    sealed, expected = b"".join(r for d in data for r in records(one, d)), b"".join(data)
    far.settimeout(0.001)

    def send():
        start = 0
        while start < len(sealed):
            size = rng.choice([3, 20, 1000, 70_000, 700_000])
            near.sendall(sealed[start : start + size])
            start += size

    thread, got = threading.Thread(target=send), bytearray()
    thread.start()
    ways = random.Random(2)
    while len(got) < len(expected):
        if other.has_more:
            if ways.random() < 0.5:
                got += other.read(ways.choice([None, 10, 100_000]))
            else:
                room = memoryview(bytearray(ways.choice([10, 50_000, 600_000])))
                got += room[: other.read_into(room)]
            continue
        room = ways.choice([None, memoryview(bytearray(600_000)), memoryview(bytearray(9000))])
        with suppress(TimeoutError, BlockingIOError):
            assert other.take(far, 0, room)
        if room is not None and other.has_more:
            got += room[: other.read_into(room)]
    thread.join()
    assert bytes(got) == expected
    near.close()
    far.close()


class Counted(socket.socket):
    """A socket that counts bytes: those received to be copied, and those to their place."""

    def __init__(self, sock):
        super().__init__(fileno=sock.detach())
        self.copied = self.placed = 0

    def recv(self, size, flags=0):
        found = super().recv(size, flags)
        self.copied += len(found)
        return found

    def recv_into(self, *arguments):
        count = super().recv_into(*arguments)
        self.copied += count
        return count

    def recvmsg_into(self, *arguments):
        found = super().recvmsg_into(*arguments)
        self.placed += found[0]
        return found


@pytest.mark.parametrize("is_fast", FAST)
def test_an_array_comes_to_its_place_also_where_the_reader_is_as_fast_as_the_writer(is_fast):
    """Its records come one by one: each head tells where the payload goes, which is not copied."""
    one, other = ends(is_fast)
    near, far = socket.socketpair()
    far = Counted(far)
    array = np.random.default_rng(0).integers(0, 256, 4 * RECORD_BYTES, np.uint8)
    got = np.zeros_like(array)
    view, count = got.data, 0
    for start in range(0, array.size, RECORD_BYTES):
        sealed = b"".join(records(one, array.data[start : start + RECORD_BYTES]))
        thread = threading.Thread(target=near.sendall, args=(sealed,))
        thread.start()
        while count < start + RECORD_BYTES:
            if other.has_more:
                count += other.read_into(view[count:])
            else:
                assert other.take(far, 0, view[count:])
        thread.join()
    assert np.array_equal(got, array)
    assert far.copied <= 4 * HEAD and far.placed >= array.size
    near.close()
    far.close()


def _disturbed(rng, sent):
    """Returns records as somebody on the network may hand them on."""
    found, i = list(sent), rng.randrange(len(sent))
    match rng.choice(["flip", "leave out", "repeat", "swap", "cut", "add", "lengthen"]):
        case "flip":
            record = bytearray(found[i])
            record[rng.randrange(len(record))] ^= 1 << rng.randrange(8)
            found[i] = bytes(record)
        case "leave out":
            del found[i]
        case "repeat":
            found.insert(rng.randrange(len(found)), found[i])
        case "swap":
            j = rng.randrange(len(found))
            found[i], found[j] = found[j], found[i]
        case "cut":
            found[i] = found[i][: rng.randrange(len(found[i]))]
        case "add":
            found.insert(i, rng.randbytes(rng.randrange(1, 100)))
        case "lengthen":
            found[i] += rng.randbytes(1)
    return found


@pytest.mark.parametrize("is_fast", FAST)
def test_what_was_disturbed_gives_the_beginning_at_most(is_fast):
    rng = random.Random(7)
    for _ in range(400):
        one, other = ends(is_fast)
        data = [rng.randbytes(rng.choice([1, 30, 300, 5000])) for _ in range(5)]
        sent = [r for d in data for r in records(one, d)]
        found = _disturbed(rng, sent)
        got, is_found = b"", False
        try:
            for record in [*found, bytes(2 * RECORD_BYTES)]:  # a record may be awaited that long
                other.feed(record)
                got += other.read()
        except DataLossError:
            is_found = True
        assert is_found and b"".join(data).startswith(got)


def test_a_record_of_the_other_direction_is_none():
    one, _ = ends(False)
    with pytest.raises(DataLossError, match="changed, repeated or left out"):
        one.feed(records(one, b"sent back")[0])


@contextmanager
def changing_link(target, change):
    """An address that leads to another one; `change` sees all bytes that go there and back."""
    listener, socks, threads = socket.create_server(("127.0.0.1", 0)), [], []

    def forward(source, sink, way):
        with suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(change(way, data))
        for sock in (source, sink):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def accept():
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(target)
                number = len(socks) // 2
                socks.extend((near, far))
                for source, sink, is_there in ((near, far, True), (far, near, False)):
                    way = number, is_there
                    threads.append(threading.Thread(target=forward, args=(source, sink, way)))
                    threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield listener.getsockname()
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join(5)
        for thread in threads:
            thread.join(5)
        for sock in socks:
            sock.close()


#: The connections in the order in which they are made, and what is sent there.
PURPOSES = {"control": 0, "small": 1, "bulk": 2, "run": 3}


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_changed_byte_on_any_connection_ends_the_step_like_a_cut(purpose, is_there):
    is_on = False

    def change(way, data):
        if is_on and way == (PURPOSES[purpose], is_there):
            return data[:-1] + bytes([data[-1] ^ 1])
        return data

    key = f"{SENDER}/device:CPU:0;{RECEIVER}/device:CPU:0;x:0"
    back = f"{RECEIVER}/device:CPU:0;{SENDER}/device:CPU:0;y:0"
    table, big = by_device([key, back]), np.arange(300_000.0)
    one, other = Endpoint(SENDER, 1, b"secret"), Endpoint(RECEIVER, 1, b"secret")
    got = []

    def run(peer, header, values):
        channel = other.open_step(StepId(1, 1), table)
        box, answer = channel.mailbox(key), channel.mailbox(back)
        try:
            for _ in range(2):
                got.append(box.receive(FreeGate()))
                answer.send(got[-1])
                channel.flush()
        finally:
            other.close_step(StepId(1, 1))
        return {}, values

    other.on_run, other.on_call = run, lambda peer, message: message
    try:
        with changing_link(other.address, change) as address:
            one.connect(RECEIVER, address, 1)
            assert one.call(RECEIVER, {"n": 1}, 5) == {"n": 1}
            channel = one.open_step(StepId(1, 1), table)
            there, answers = channel.mailbox(key), channel.mailbox(back)
            pending = one.start_run(RECEIVER, {}, [np.float32(1)])
            there.send(big)
            channel.flush()
            np.testing.assert_array_equal(answers.receive(FreeGate()), big)
            is_on = True

            def go_on():
                if purpose == "control":
                    for _ in range(2):
                        one.call(RECEIVER, {"n": 2}, 5)
                there.send(big + 1 if purpose == "bulk" else np.float32(2))
                channel.flush()
                pending.wait(until=soon())
                if purpose == "run" and is_there:  # its request had come before
                    one.start_run(RECEIVER, {}, []).wait(until=soon())
                answers.receive(FreeGate())

            with pytest.raises(UnavailableError, match="is lost|is not connected"):
                go_on()
            one.close_step(StepId(1, 1))
            one.close()
            other.close()
    finally:
        one.close()
        other.close()
    assert all(np.all(v == big) for v in got[:1])
    assert len(got) == 1 or np.all(got[1] == (big + 1 if purpose == "bulk" else 2))
