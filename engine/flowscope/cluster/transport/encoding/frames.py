"""The small stream: the values of steps, what is acknowledged, and what is announced.

    size (u32), step (16 bytes), key (u32), kind (u8), dtype code (u8), then by kind:
    SCALAR    bytes
    ARRAY     rank (u8), dimensions (u64), bytes
    LARGE     number of the offer (u64), its bytes (u64), rank, dimensions
    READ      how many values of the key have been read (u64); of one frame, how many more

With the bit TAGGED the numbers of the iterations around stand before that: count (u8), each (i64);
in READ those around the frame.
Step and key together are the *address* of a mailbox.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from flowscope.cluster.transport.encoding.values import DEAD_CODE, Shape, decoded, numpy_dtype
from flowscope.errors import DataLossError
from flowscope.runtime.waits.rendezvous import Tag

SCALAR, ARRAY, LARGE, READ = range(4)
TAGGED = 0x80

HEAD = struct.Struct("<I16sIBB")
NUMBER = struct.Struct("<Q")
ADDRESS = slice(4, 24)
ADDRESS_BYTES = 20
#: Larger values are announced, and sent when they are asked for.
SMALL_BYTES = 1 << 16
#: No frame is longer: a small value with the most dimensions and iterations.
MOST_BYTES = SMALL_BYTES + 4096

_STEP = struct.Struct("<QQ")
_KEY = struct.Struct("<I")


def step_bytes(client: int, number: int) -> bytes:
    """Returns how a step is called in addresses."""
    return _STEP.pack(client, number)


def address(step: bytes, key: int) -> bytes:
    """Returns the address of the mailbox of a key."""
    return step + _KEY.pack(key)


def key_number(address: bytes) -> int:
    """Returns the key's number of an address."""
    return int(_KEY.unpack_from(address, 16)[0])


def scalar_head(address: bytes, code: int, itemsize: int) -> bytes:
    """Returns all of a frame with a number but its bytes."""
    step, key = address[:16], key_number(address)
    return HEAD.pack(HEAD.size + itemsize, step, key, SCALAR, code)


def value_frame(address: bytes, code: int, shape: Shape, data: Any, tag: Tag | None) -> bytes:
    """Returns the frame of a small value; of an iteration where `tag` is no None."""
    body = struct.pack(f"<B{len(shape)}Q", len(shape), *shape) + bytes(data)
    return _frame(address, ARRAY, code, body, tag)


def large_frame(
    address: bytes, code: int, shape: Shape, offer: int, nbytes: int, tag: Tag | None
) -> bytes:
    """Returns the frame that announces a large value."""
    body = struct.pack(f"<QQB{len(shape)}Q", offer, nbytes, len(shape), *shape)
    return _frame(address, LARGE, code, body, tag)


def number_frame(address: bytes, kind: int, number: int, frame: Tag | None) -> bytes:
    """Returns a frame of kind READ; of one run of a loop where `frame` is no None."""
    return _frame(address, kind, 0, NUMBER.pack(number), frame)


def _frame(address: bytes, kind: int, code: int, body: bytes, tag: Tag | None) -> bytes:
    if tag is not None:
        kind |= TAGGED
        body = struct.pack(f"<B{len(tag)}q", len(tag), *tag) + body
    head = HEAD.pack(HEAD.size + len(body), address[:16], key_number(address), kind, code)
    return head + body


def read_scalar(code: int, data: bytes, start: int, end: int) -> Any:
    """Returns the number of a frame of kind SCALAR.

    Raises:
        DataLossError: if the bytes are no number of this dtype.
    """
    dtype = numpy_dtype(code)
    if dtype.itemsize != end - start or dtype.hasobject:
        raise DataLossError(f"expected a number of {dtype}, got {end - start} bytes")
    return np.frombuffer(data, dtype, 1, start)[0]


def read_tag(body: bytes) -> tuple[Tag, bytes]:
    """Returns the numbers of the iterations around, and what follows them."""
    try:
        count = body[0]
        return struct.unpack_from(f"<{count}q", body, 1), body[1 + 8 * count :]
    except (struct.error, IndexError):
        raise DataLossError("expected the numbers of iterations, got a frame cut off") from None


def read_array(code: int, body: bytes) -> Any:
    """Returns the value of a frame of kind ARRAY."""
    shape, data = _read_shape(body)
    if code == DEAD_CODE and (shape or data):
        raise DataLossError("expected nothing with a dead value")
    return decoded(code, shape, data)


def read_large(body: bytes) -> tuple[int, int, Shape]:
    """Returns number, bytes and shape of an announced value."""
    if len(body) < 2 * NUMBER.size:
        raise DataLossError("expected an announced value, got a frame cut off")
    offer, nbytes = struct.unpack_from("<QQ", body)
    shape, rest = _read_shape(body[16:])
    if rest:
        raise DataLossError(f"expected no bytes after a shape, got {len(rest)}")
    return offer, nbytes, shape


def read_number(body: bytes) -> int:
    """Returns the number of a frame of kind READ."""
    if len(body) != NUMBER.size:
        raise DataLossError(f"expected a number of 8 bytes, got {len(body)}")
    return int(NUMBER.unpack(body)[0])


def _read_shape(body: bytes) -> tuple[Shape, bytes]:
    try:
        rank = body[0]
        return struct.unpack_from(f"<{rank}Q", body, 1), body[1 + 8 * rank :]
    except (struct.error, IndexError):
        raise DataLossError("expected a shape, got a frame cut off") from None


__all__ = [
    "ADDRESS",
    "ARRAY",
    "HEAD",
    "LARGE",
    "MOST_BYTES",
    "READ",
    "SCALAR",
    "SMALL_BYTES",
    "TAGGED",
    "address",
    "key_number",
    "large_frame",
    "number_frame",
    "read_array",
    "read_large",
    "read_number",
    "read_scalar",
    "read_tag",
    "scalar_head",
    "step_bytes",
    "value_frame",
]
