"""What is written to a connection comes in order, however much of it the kernel takes at once."""

import socket

from flowscope.cluster.transport.connections import Connection
from flowscope.cluster.transport.encoding.macs import Macs
from flowscope.cluster.transport.poller import Poller
from flowscope.cluster.transport.sender import Sender

KEYS = (b"a session key of 32 bytes, for us", b"a session key of 32 bytes, of them")


def _read(sock, count):
    data, seal = bytearray(), Macs(*KEYS[::-1], is_fast=False)
    while len(data) < count:
        assert seal.take(sock)
        data += seal.read()
    return bytes(data)


def test_single_and_several_parts_come_in_the_order_in_which_they_were_written():
    ours, theirs = socket.socketpair()
    poller, sender = Poller("reader"), Sender("sender")
    connection = Connection(ours, Macs(*KEYS, is_fast=False), poller, sender)
    large = bytes(range(256)) * 8192  # more than the kernel takes at once
    try:
        connection.write(b"first")
        connection.write(large)
        connection.write(b"third")
        connection.write(b"four", b"th")
        assert connection.unwritten_bytes
        expected = b"first" + large + b"third" + b"fourth"
        assert _read(theirs, len(expected)) == expected
    finally:
        connection.close()
        theirs.close()
        sender.close()
        poller.close()
