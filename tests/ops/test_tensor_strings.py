"""Tensors as strings: the bytes are TensorFlow's, and what is none is a clear error."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError, ResourceExhaustedError
from flowscope.graph.messages.protobuf import varint

MODES = ("compiled", "op", "tokens")
NUMBERS = """
    float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool
    complex64 complex128
""".split()  # noqa: SIM905


def random_array(r: random.Random, dtype: Any) -> Any:
    shape = [r.randrange(4) for _ in range(r.randrange(4))]
    if dtype is fs.string:
        found = np.empty(shape, object)
        found[...] = b""
        for place in np.ndindex(*shape):
            found[place] = r.randbytes(r.choice([0, 1, 200]))
        return found if shape else found[()]
    bits = np.frombuffer(r.randbytes(16 * 27), np.uint8)[: 16 * int(np.prod(shape))]
    numbers = bits.astype(np.int64) - (0 if dtype.name.startswith("uint") else 99)
    return numbers[: int(np.prod(shape))].astype(dtype.np_dtype).reshape(shape)


@pytest.mark.parametrize("mode", MODES)
def test_tensors_come_back(graph: fs.Graph, mode: str) -> None:
    """Random arrays of all dtypes: by their bytes, by lists of elements, in a loop, in a branch."""
    r = random.Random(mode)
    kinds = [fs.as_dtype(name) for name in [*NUMBERS, "string"]]
    arrays = [random_array(r, dtype) for dtype in kinds]
    given = [fs.placeholder(d) for d in kinds]
    back = [fs.parse_tensor(fs.serialize_tensor(t), d) for t, d in zip(given, kinds, strict=True)]
    chosen = fs.cond(
        fs.constant(True),
        lambda: fs.parse_tensor(fs.serialize_tensor(given[2]), fs.float32),
        lambda: given[2],
    )
    _, looped = fs.while_loop(
        lambda i, _: i < 3,
        lambda i, t: (i + 1, fs.parse_tensor(fs.serialize_tensor(t), fs.int64)),
        [fs.constant(0), given[7]],
        shape_invariants=[fs.TensorShape([]), fs.TensorShape(None)],
    )
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        feeds = dict(zip(given, arrays, strict=True))
        found = sess.run([*back, chosen, looped], feeds)
    for value, wanted in zip(found, [*arrays, arrays[2], arrays[7]], strict=True):
        assert np.asarray(value).dtype == np.asarray(wanted).dtype
        assert np.shape(value) == np.shape(wanted)
        assert np.asarray(value).tolist() == np.asarray(wanted).tolist()


def test_the_bytes_are_tensorflows(graph: fs.Graph, sess: fs.Session) -> None:
    values = [fs.constant([[1.0, 2.0]]), fs.constant(True), fs.constant([b"a", b""])]
    assert sess.run([fs.io.serialize_tensor(v) for v in values]) == [
        b'\x08\x01\x12\x08\x12\x02\x08\x01\x12\x02\x08\x02"\x08\x00\x00\x80?\x00\x00\x00@',
        b'\x08\n\x12\x00"\x01\x01',
        b"\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x00",
    ]


@pytest.mark.parametrize(
    ("data", "dtype", "wanted"),
    [
        (b"\x08\x01\x12\x04\x12\x02\x08\x03\x2a\x04\x00\x00\x80?", fs.float32, [1.0, 1.0, 1.0]),
        (b"\x08\x01\x12\x00\x2d\x00\x00\x80?", fs.float32, 1.0),  # not packed
        (b"\x08\x03\x12\x04\x12\x02\x08\x02\x3a\x02\x05\x07", fs.int32, [5, 7]),
        (b"\x08\x17\x12\x00\x8a\x01\x0a" + b"\xff" * 9 + b"\x01", fs.uint64, 2**64 - 1),
        (b"\x08\x13\x12\x00\x6a\x03\x80\xf8\x00", fs.float16, 1.0),
        (b"\x08\x08\x12\x00\x4a\x08\x00\x00\x80?\x00\x00\x00@", fs.complex64, 1 + 2j),
        (b"\x08\x0a\x12\x04\x12\x02\x08\x02\x5a\x02\x01\x00", fs.bool, [True, False]),
    ],
)
def test_lists_of_elements(
    graph: fs.Graph, sess: fs.Session, data: bytes, dtype: Any, wanted: Any
) -> None:
    """Other programs write small tensors so."""
    found = sess.run(fs.parse_tensor(data, dtype))
    assert (np.asarray(found).dtype, found.tolist()) == (dtype.np_dtype, wanted)


_SIZE = b"\x08" + varint(1 << 46)
_SHAPE = b"\x12" + bytes([len(_SIZE)]) + _SIZE
HUGE = b"\x08\x01\x12" + bytes([len(_SHAPE)]) + _SHAPE + b"\x2a\x04\x00\x00\x80?"
HOSTILE = {
    "no message": (b"\xff\xff", "2 bytes: expected a serialized message"),
    "a part of one": (b"\x08\x01\x12\x08\x12\x02", "expected a serialized message"),
    "a length of 2^60": (b'\x08\x01\x12\x00"' + varint(1 << 60), "expected a serialized message"),
    "another dtype": (b"\x08\x03\x12\x00\x3a\x01\x05", "expected dtype float32, got int32"),
    "no dtype": (b"\x08\x63\x12\x00", "expected the number of a dtype, got 99"),
    "too few bytes": (b'\x08\x01\x12\x00"\x01\x00', "expected 4 bytes for 1 elements"),
    "too many": (b"\x08\x01\x12\x00\x2a\x08" + b"\x00" * 8, "expected 1 elements of float32"),
    "no rank": (b"\x08\x01\x12\x02\x18\x01", "expected the full shape"),
    "very large": (HUGE, "would be very large"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_no_tensor(graph: fs.Graph, sess: fs.Session, case: str) -> None:
    data, message = HOSTILE[case]
    with pytest.raises((InvalidArgumentError, ResourceExhaustedError), match=message) as caught:
        sess.run(fs.parse_tensor(data, fs.float32))
    assert "test_tensor_strings.py, line" in str(caught.value)


def test_damaged_bytes_are_an_error_or_a_tensor(graph: fs.Graph, sess: fs.Session) -> None:
    r = random.Random(3)
    given = fs.placeholder(fs.string, [])
    parse = sess.make_callable(fs.parse_tensor(given, fs.int64), [given])
    whole = sess.run(fs.serialize_tensor(np.arange(6).reshape(2, 3)))
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(r.randrange(1, 4)):
            data[r.randrange(len(data))] = r.randrange(256)
        end = r.choice([len(data), r.randrange(len(data))])
        with contextlib.suppress(InvalidArgumentError, ResourceExhaustedError):
            assert parse(bytes(data[:end])).dtype == "i8"


def test_sparse_tensors(graph: fs.Graph, sess: fs.Session) -> None:
    """Slices come back in one tensor, with the largest sizes of all."""
    first = fs.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [4, 3])
    many = fs.io.serialize_many_sparse(first)
    one = fs.io.serialize_sparse(fs.SparseTensor([[6]], [7.0], [9]))
    back = fs.io.deserialize_many_sparse(fs.concat([many, [one]], 0), fs.float32, rank=2)
    assert (back.rank, back.dtype) == (2, fs.float32)
    found = sess.run(back)
    assert found.indices.tolist() == [[0, 1], [2, 0], [4, 6]]
    assert (found.values.tolist(), found.dense_shape.tolist()) == ([1.0, 2.0, 7.0], [5, 9])
    none = fs.deserialize_many_sparse(np.empty((0, 3), object), fs.float32, rank=2)
    assert sess.run(none.dense_shape).tolist() == [0, 0]


def test_what_is_no_sparse_tensor(graph: fs.Graph, sess: fs.Session) -> None:
    sparse = fs.SparseTensor([[1, 1], [0, 0]], [1, 2], [2, 2])
    with pytest.raises(InvalidArgumentError, match="indices of slices 0 to 1, in that order"):
        sess.run(fs.serialize_many_sparse(sparse))
    flat = fs.serialize_sparse(fs.SparseTensor([[0]], [1], [2]))
    with pytest.raises(InvalidArgumentError, match="the values of row 0: expected dtype float32"):
        sess.run(fs.deserialize_many_sparse([flat], fs.float32))
    with pytest.raises(InvalidArgumentError, match="sparse tensors of rank 2, got 1 in row 0"):
        sess.run(fs.deserialize_many_sparse([flat], fs.int32, rank=3))
    two = fs.serialize_sparse(sparse)
    with pytest.raises(InvalidArgumentError, match="sparse tensors of rank 1, got 2 in row 1"):
        sess.run(fs.deserialize_many_sparse([flat, two], fs.int32))
    with pytest.raises(InvalidArgumentError, match="expected indices"):
        sess.run(fs.deserialize_many_sparse([[flat[0], flat[1], flat[0]]], fs.int32))
    with pytest.raises(DTypeError, match=r"fs\.SparseTensor"):
        fs.serialize_sparse([1])
    with pytest.raises(InvalidArgumentError, match="rank 2 or more"):
        fs.serialize_many_sparse(fs.SparseTensor([[0]], [1], [2]))
    with pytest.raises(DTypeError, match="numbers, bools or strings"):
        fs.serialize_tensor(fs.FIFOQueue(1, fs.int32).queue_ref)
    with pytest.raises(DTypeError, match="string as out_type"):
        fs.serialize_sparse(sparse, out_type=fs.variant)
