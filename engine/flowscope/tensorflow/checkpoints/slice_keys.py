"""The keys under which parts of a tensor stand in a checkpoint.

A key sorts as what it stands for: the number 0, the tensor's name, its rank, and per axis the first
position and the length, -1 for all.

Source: the encoding is that of TensorFlow's checkpoints (OrderedCode).
"""

from __future__ import annotations

from collections.abc import Sequence

#: First position and length per axis; a length of -1 is the whole axis.
Extents = Sequence[tuple[int, int]]


def slice_key(name: str, extents: Extents) -> bytes:
    """Returns the key of the part of a tensor."""
    text = name.encode().replace(b"\x00", b"\x00\xff")
    out = [_unsigned(0), text, b"\x00\x01", _unsigned(len(extents))]
    out += [_signed(number) for extent in extents for number in extent]
    return b"".join(out)


def _unsigned(value: int) -> bytes:
    length = (value.bit_length() + 7) // 8
    return bytes([length]) + value.to_bytes(length, "big")


def _signed(value: int) -> bytes:
    """Returns a number with its length in its first bits: shorter forms are nearer to 0."""
    magnitude = ~value if value < 0 else value
    length = magnitude.bit_length() // 7 + 1
    mark = ((1 << length) - 1) << (80 - length)
    code = (value & ((1 << 80) - 1)).to_bytes(10, "big")[10 - length :]
    head = mark.to_bytes(10, "big")[:length]
    return bytes(a ^ b for a, b in zip(code, head, strict=True))


__all__ = ["slice_key"]
