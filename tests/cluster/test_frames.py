"""Bytes of values and messages: there and back, and what is broken is told in one error."""

import itertools
import random

import numpy as np
import pytest
from process_channels import RECEIVER, SENDER, by_device

from flowscope.cluster.transport.boxes import InBox
from flowscope.cluster.transport.channel import KeyTable, StepId
from flowscope.cluster.transport.encoding.frames import (
    address,
    large_frame,
    number_frame,
    scalar_head,
    step_bytes,
    value_frame,
)
from flowscope.cluster.transport.encoding.messages import MessageReader, packed
from flowscope.cluster.transport.encoding.values import decoded, empty, encoded
from flowscope.cluster.transport.links import PeerLink
from flowscope.cluster.transport.steps import Steps
from flowscope.errors import DataLossError, InvalidArgumentError, OpError

KEYS = [f"{SENDER}/device:CPU:0;{RECEIVER}/device:CPU:0;x:{i}" for i in range(3)]
STEP = StepId(7, 1)


@pytest.mark.parametrize(
    "dtype", ["?", "b", "B", "h", "H", "i", "I", "q", "Q", "e", "f", "d", "F", "D", ">f4", ">i8"]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3)])
def test_all_numbers_come_back(dtype, shape):
    value = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    value = value if shape else value.dtype.type(3)
    code, sizes, data = encoded(value)
    got = decoded(code, sizes, data)
    np.testing.assert_array_equal(got, value)
    assert got.dtype == value.dtype.newbyteorder("=") and got.shape == shape


def test_the_bits_of_numbers_stay():
    for value in (np.uint32(0x7FA00001).view(np.float32), np.float64(-0.0), np.float16(np.nan)):
        code, shape, data = encoded(value)
        assert decoded(code, shape, data).tobytes() == value.tobytes()


@pytest.mark.parametrize(
    "value", [object(), {"a": 1}, np.array([object()]), np.array([1, b"x"], object)]
)
def test_what_is_no_array_of_numbers_or_strings_is_refused(value):
    with pytest.raises(InvalidArgumentError, match="cannot be sent to another process"):
        encoded(value)


@pytest.mark.parametrize("header", [{"a": object()}, {"a": {1, 2}}, {"a": np.float32(1)}])
def test_headers_are_plain_data(header):
    with pytest.raises(InvalidArgumentError, match="expected plain data in a message"):
        packed(header)


def test_messages_come_in_any_pieces():
    values = [np.arange(5000), np.float32(2), np.array([b"x" * 9000], object), b"y"]
    data = b"".join(map(bytes, packed({"n": 1 << 90}, values))) * 2
    rng, reader, got = random.Random(1), MessageReader(), []
    while data:
        size = rng.randrange(1, 3000)
        reader.feed(data[:size])
        data = data[size:]
        if (message := reader.next()) is not None:
            got.append(message)
    assert [header for header, _ in got] == [{"n": 1 << 90}] * 2
    for _, found in got:
        for one, value in zip(found, values, strict=True):
            np.testing.assert_array_equal(one, value)


def _damaged(rng, data):
    """Returns bytes that are cut, changed or made longer by chance."""
    data = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data) or 1)
        kind = rng.randrange(4)
        if kind == 0:
            del data[at:]
        elif kind == 1 and data:
            data[at] = rng.randrange(256)
        elif kind == 2:
            data[at:at] = rng.randbytes(rng.randrange(20))
        else:
            data[at : at + 8] = rng.choice([b"\0" * 8, b"\xff" * 8, rng.randbytes(8)])
    return bytes(data)


def _damaged_messages(count):
    """Reads damaged messages; returns how many were told as errors."""
    rng = random.Random(count)
    values = [np.arange(600.0), np.float32(1), np.array([b"abc"] * 3, object), np.zeros((2, 3))]
    whole = [b"".join(map(bytes, packed({"kind": "x", "n": 5}, values[:i]))) for i in range(5)]
    errors = 0
    for _ in range(count):
        reader = MessageReader()
        reader.feed(_damaged(rng, rng.choice(whole)))
        try:
            message = reader.next()
            assert message is None or type(message[0]) is dict
        except OpError:
            errors += 1
    return errors


class _Bulk:
    """Asks nobody."""

    def announced(self, offer):
        assert offer.nbytes >= 0

    ask = drop = announced

    def drop_number(self, number):
        assert number >= 0

    def taken(self, nbytes):
        assert nbytes >= 0


class _Unconnected:
    """Takes what is written, and never has anything to read."""

    error = None

    def __init__(self):
        self.written = []

    def write_one(self, data):
        self.written.append(data)

    def limit_reads(self, seconds):
        assert seconds

    def want_read(self):
        return


class _Armed:
    is_armed = True


def _link():
    links = {}
    steps = Steps(RECEIVER, links)
    links[SENDER] = PeerLink(SENDER, _Unconnected(), _Bulk(), steps, _Armed())
    return links[SENDER], steps


def _damaged_frames(count):
    """Hands out damaged frames; returns how many were told as errors."""
    rng = random.Random(count)
    at = [address(step_bytes(*STEP), i) for i in range(4)]
    whole = [
        scalar_head(at[0], 1, 4) + b"1234",
        value_frame(at[1], 2, (2,), bytes(16), None),
        value_frame(at[2], 7, (), encoded(b"text")[2], (1, 2)),
        large_frame(at[0], 1, (1000, 1000), 5, 4_000_000, None),
        large_frame(at[2], 1, (1000, 1000), 6, 4_000_000, (3,)),
        number_frame(at[0], 3, 9, None),
        number_frame(at[0], 4, 9, None),
        number_frame(at[3], 4, 9, None),
    ]
    errors = 0
    for i in range(count):
        if i % 1000 == 0:
            link, steps = _link()
            if i % 3000:
                steps.open(STEP, by_device(KEYS)).mailbox(KEYS[0])
        data = _damaged(rng, rng.choice(whole)) + rng.choice(whole)
        try:
            assert 0 <= link._hand_out(data, len(data)) <= len(data)
        except OpError:
            errors += 1
    return errors


def test_damaged_bytes_are_told_as_errors():
    assert _damaged_messages(1500) > 100
    assert _damaged_frames(1500) > 100


@pytest.mark.slow
def test_a_hundred_thousand_damaged_messages_are_told_as_errors():
    assert _damaged_messages(50_000) > 5_000
    assert _damaged_frames(50_000) > 5_000


def variants(array):
    """Arrays that lie in memory in many ways."""
    yield array
    yield np.asfortranarray(array)
    for axes in itertools.permutations(range(array.ndim)):
        turned = array.transpose(axes)
        yield turned
        yield turned[::-1]
        yield turned[..., ::2]
        yield turned[..., ::-3]
        yield turned[1:, ..., :-1]
        yield turned[:, 1::2][..., 1:]


@pytest.mark.parametrize("shape", [(4, 6), (3, 5, 7), (2, 1, 9), (4, 3, 2, 5)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
def test_arrays_arrive_as_they_lie(shape, dtype):
    for array in variants(np.arange(np.prod(shape)).reshape(shape).astype(dtype)):
        code, told, data = encoded(array)
        made, memory = empty(code, told, len(data))
        memory[:] = data
        for got in (decoded(code, told, bytes(data)), made):
            np.testing.assert_array_equal(got, array)
            if not array.size:
                continue
            order = [np.argsort(np.abs(a.strides), kind="stable")[::-1] for a in (got, array)]
            wide = [[i for i in o if array.shape[i] > 1] for o in order]
            assert wide[0] == wide[1]
            for i in wide[0]:
                assert np.sign(got.strides[i]) == np.sign(array.strides[i])
                is_dense = [abs(a.strides[wide[0][-1]]) == a.itemsize for a in (got, array)]
                assert is_dense[0] == is_dense[1]


def test_what_is_repeated_arrives_once_for_each_place():
    repeated = np.broadcast_to(np.arange(3.0), (4, 3))
    code, shape, data = encoded(repeated)
    got = decoded(code, shape, bytes(data))
    np.testing.assert_array_equal(got, repeated)
    got[0] = 7.0  # it belongs to whoever takes it
    assert got[1].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("layout", [(0, 0), (1, 2), (0, 5000), (0,), (0, 1, 2)])
def test_what_is_no_layout_is_told(layout):
    code, shape, data = encoded(np.ones((2, 3), "f4").T)
    with pytest.raises(DataLossError):
        decoded(code, (*shape[:2], *layout), bytes(data))


@pytest.mark.parametrize(("windows", "count"), [(None, 10), ({KEYS[0]: 4}, 2), ({}, 0)])
def test_who_receives_tells_after_so_many_values_as_the_plan_says(windows, count):
    link, steps = _link()
    table = KeyTable(KEYS, lambda device: device.rpartition("/device:")[0], windows)
    box = steps.open(STEP, table).mailbox(KEYS[0])
    assert isinstance(box, InBox)
    for i in range(10):
        box.arrive(i)
        box.receive(None)
    link.flush()
    told = address(step_bytes(*STEP), 0)
    assert b"".join(link.connection.written).count(told) == count
