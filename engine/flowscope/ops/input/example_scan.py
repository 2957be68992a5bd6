"""Where the features of serialized examples lie, and their values: loops over bytes.

A batch of examples is one piece of bytes. `find` goes over the messages once and leaves, for each
example and each name that is asked for, where the feature lies; `values` reads the features of one
name of the whole batch. NumPy's arrays are made of what they leave, so no Python runs per value but
for strings, which have to be made.

Source: the encoding's specification, protobuf.dev/programming-guides/encoding; TensorFlow's
example.proto for the messages.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expected import expected
from flowscope.ops.kernels.native_loops import Bytes, LoopTiers, Words64

__all__ = ["CONTEXT", "FEATURE_LISTS", "Batch", "Places", "Values"]

#: Fields of the outer message: an example's features lie where a sequence's context does.
CONTEXT, FEATURE_LISTS = 1, 2
_MISSING = (1 << 64) - 1
_OTHER_KIND = (1 << 64) - 5
_ALL = (1 << 64) - 1
#: Up to so many bytes are read without counting the values before.
_AT_ONCE = 1 << 17
#: What `state` has: the place, the end of the payload there, whether the bytes are no message, and
#: the name that is tried first.
_AT, _END, _BAD, _NEXT = 0, 1, 2, 3
#: The kinds of a feature by the name of the dtype: the number of the list's field.
_KINDS = {"string": 1, "float32": 2, "int64": 3}
_NAMES = ("string", "float32", "int64")


def varint(data: Bytes, end: int, state: Words64) -> int:
    """Reads an integer in groups of seven bits."""
    at = state[_AT]
    value = 0
    shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            state[_AT] = at
            return value & _ALL  # type: ignore[no-any-return]
        shift += 7
    state[_BAD] = 1
    return 0


def payload(data: Bytes, wire_type: int, end: int, state: Words64) -> int:
    """Reads a field's length where it has one: then `state` says where the payload lies."""
    if wire_type == 0:
        at = state[_AT]
        varint(data, end, state)
        state[_END] = state[_AT]
        state[_AT] = at
        return 0
    size = 0
    if wire_type == 1:
        size = 8
    if wire_type == 5:
        size = 4
    if wire_type == 2:
        size = varint(data, end, state)
    if wire_type == 3 or wire_type == 4 or wire_type > 5:
        state[_BAD] = 1
    if size < 0 or size > end - state[_AT]:
        state[_BAD] = 1
        size = 0
    state[_END] = state[_AT] + size
    return 0


def slot_of(data: Bytes, at: int, end: int, keys: Bytes, ends: Words64, state: Words64) -> int:
    """Returns the number of the name that lies there; how many there are if it is none of them.

    `ends` has the number of names, then the end of each in `keys`. The names are tried from that on
    which followed the last one found: features mostly come in the same order.
    """
    count = ends[0]
    tried = 0
    slot = state[_NEXT]
    while tried < count:
        if slot >= count:
            slot = 0
        first = 0
        if slot > 0:
            first = ends[slot]
        if ends[slot + 1] - first == end - at:
            i = 0
            while i < end - at and data[at + i] == keys[first + i]:
                i += 1
            if i == end - at:
                state[_NEXT] = slot + 1
                return slot  # type: ignore[no-any-return]
        slot += 1
        tried += 1
    return count  # type: ignore[no-any-return]


def entry(
    data: Bytes, end: int, keys: Bytes, ends: Words64, base: int, state: Words64, found: Words64
) -> int:
    """Reads an entry of a map: leaves where its value lies, if its name is asked for."""
    name = state[_AT]
    name_end = name
    value = end
    value_end = end
    while state[_AT] < end and state[_BAD] == 0:
        key = varint(data, end, state)
        payload(data, key & 7, end, state)
        if key == 10:
            name = state[_AT]
            name_end = state[_END]
        if key == 18:
            value = state[_AT]
            value_end = state[_END]
        state[_AT] = state[_END]
    slot = slot_of(data, name, name_end, keys, ends, state)
    if slot < ends[0]:
        found[2 * (base + slot)] = value
        found[2 * (base + slot) + 1] = value_end
    return 0


def find(
    data: Bytes, starts: Words64, count: int, field: int, keys: Bytes, ends: Words64,
    state: Words64, found: Words64
) -> int:  # fmt: skip
    """Leaves where each named value of each message lies: 0, 0 where it has none.

    Returns the number of the first message that is none, plus 1; 0 if all are.
    """
    i = 0
    while i < count:
        state[_AT] = starts[i]
        end = starts[i + 1]
        while state[_AT] < end:
            key = varint(data, end, state)
            payload(data, key & 7, end, state)
            stop = state[_END]
            while state[_BAD] == 0 and key == field * 8 + 2 and state[_AT] < stop:
                inner = varint(data, stop, state)
                payload(data, inner & 7, stop, state)
                last = state[_END]
                if state[_BAD] == 0 and inner == 10:
                    entry(data, last, keys, ends, i * ends[0], state, found)
                state[_AT] = last
            if state[_BAD]:
                return i + 1
            state[_AT] = stop
        i += 1
    return 0


def steps(
    data: Bytes, found: Words64, count: int, width: int, slot: int, is_filling: int,
    state: Words64, lengths: Words64, out: Words64
) -> int:  # fmt: skip
    """Leaves how many features each list has, and where they lie if `is_filling`.

    Returns how many there are in all, or -1 minus the number of the message that is none.
    """
    n = 0
    i = 0
    while i < count:
        state[_AT] = found[2 * (i * width + slot)]
        end = found[2 * (i * width + slot) + 1]
        before = n
        while state[_AT] < end:
            key = varint(data, end, state)
            payload(data, key & 7, end, state)
            if state[_BAD]:
                return -1 - i
            if key == 10:
                if is_filling:
                    out[2 * n] = state[_AT]
                    out[2 * n + 1] = state[_END]
                n += 1
            state[_AT] = state[_END]
        lengths[i] = n - before
        if end == 0:
            lengths[i] = _MISSING
        i += 1
    return n


def chunk(data: Bytes, key: int, n: int, is_filling: int, state: Words64, out: Words64) -> int:
    """Reads one field of a list of floats or integers, packed or not; returns the new count."""
    stop = state[_END]
    while state[_AT] < stop and state[_BAD] == 0:
        if key & 7 == 5:
            at = state[_AT]
            if stop - at < 4:
                state[_BAD] = 1
                return n
            if is_filling:
                out[n] = data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24
            state[_AT] = at + 4
        else:
            value = varint(data, stop, state)
            if is_filling:
                out[n] = value
        n += 1
    return n


def values(
    data: Bytes, found: Words64, count: int, width: int, slot: int, kind: int, is_filling: int,
    state: Words64, lengths: Words64, out: Words64
) -> int:  # fmt: skip
    """Leaves how many values each feature has, and these if `is_filling`.

    Of floats it leaves the bits, of strings where each begins and ends. Returns how many there are
    in all, or -1 minus the number of the message that is none.
    """
    n = 0
    i = 0
    while i < count:
        state[_AT] = found[2 * (i * width + slot)]
        end = found[2 * (i * width + slot) + 1]
        seen = 0
        first = 0
        last = 0
        while state[_AT] < end:
            key = varint(data, end, state)
            payload(data, key & 7, end, state)
            if state[_BAD]:
                return -1 - i
            if key == 10 or key == 18 or key == 26:
                seen = key >> 3
                first = state[_AT]
                last = state[_END]
            state[_AT] = state[_END]
        lengths[i] = _MISSING
        if seen > 0 and seen != kind:
            lengths[i] = _OTHER_KIND + seen
        if seen == kind:
            before = n
            state[_AT] = first
            while state[_AT] < last:
                key = varint(data, last, state)
                payload(data, key & 7, last, state)
                stop = state[_END]
                if state[_BAD] == 0 and kind == 1 and key == 10:
                    if is_filling:
                        out[2 * n] = state[_AT]
                        out[2 * n + 1] = stop
                    n += 1
                if state[_BAD] == 0 and kind == 2 and (key == 10 or key == 13):
                    n = chunk(data, 5, n, is_filling, state, out)
                if state[_BAD] == 0 and kind == 3 and (key == 10 or key == 8):
                    n = chunk(data, 0, n, is_filling, state, out)
                if state[_BAD]:
                    return -1 - i
                state[_AT] = stop
            lengths[i] = n - before
        i += 1
    return n


class Places(NamedTuple):
    """Where messages of some names lie.

    Attributes:
        places: Begin and end by message, uint64 [messages, names, 2].
        owners: The number of the example that each message is of, int64 [messages].
    """

    places: Any
    owners: Any


class Values(NamedTuple):
    """The values of one name.

    Attributes:
        lengths: How many each message has, int64 [messages]; -1 where it has none of that name.
        flat: The values, one message after the other.
    """

    lengths: Any
    flat: Any


class Batch:
    """Serialized examples.

    Args:
        serialized: Their bytes.
        names: What errors call them; where there is none, their numbers.
    """

    def __init__(self, serialized: Sequence[bytes], names: Sequence[bytes] = ()) -> None:
        self._data = b"".join(serialized)
        self._count = len(serialized)
        self._starts = np.array([0, *itertools.accumulate(map(len, serialized))], np.uint64)
        self._state = np.zeros(4, np.uint64)
        self._names = names

    def __len__(self) -> int:
        return self._count

    def label(self, index: int) -> str:
        """What errors call an example."""
        name = f" {self._names[index].decode(errors='replace')!r}" if self._names else ""
        return f"example {index}{name}"

    def find(self, keys: Sequence[str], field: int = CONTEXT) -> Places:
        """Where the messages with these names lie in each example.

        Raises:
            InvalidArgumentError: if one of them is no example.
        """
        names = [key.encode() for key in keys]
        ends = np.array([len(names), *itertools.accumulate(map(len, names))], np.uint64)
        found = np.zeros((self._count, len(names), 2), np.uint64)
        functions, given = tiers().get(_PER_NAME * self._count * (1 + len(names)))
        bad = functions[_FIND](
            self._data, given(self._starts), self._count, field, b"".join(names), given(ends),
            given(self._state), given(found.reshape(-1)),
        )  # fmt: skip
        if bad:
            raise self._malformed(bad - 1)
        return Places(found, np.arange(self._count))

    def steps(self, where: Places, slot: int) -> tuple[Any, Places]:
        """The lengths of each example's list of features, -1 where there is none, and the features.

        Raises:
            InvalidArgumentError: if a list is no message.
        """
        lengths, out = self._read(_STEPS, where, (slot,), 2)
        found = out.reshape(-1, 1, 2)
        return lengths, Places(found, np.repeat(where.owners, np.maximum(lengths, 0)))

    def values(self, where: Places, slot: int, key: str, dtype: DType) -> Values:
        """The values of features.

        Args:
            where: The features.
            slot: Number of the name there.
            key: The name.
            dtype: string, float32 or int64.

        Raises:
            InvalidArgumentError: if a feature is no message, or its values are of another dtype.
        """
        kind = _KINDS[dtype.name]
        lengths, out = self._read(_VALUES, where, (slot, kind), 2 if kind == 1 else 1)
        if len(lengths) and lengths.min() < -1:
            index = int(np.argmax(lengths < -1))
            got = _NAMES[int(lengths[index]) + 4]
            who = self.label(int(where.owners[index]))
            raise expected(f"values of {dtype} in feature {key!r} of {who}", got)
        if kind == 1:
            data, pairs = self._data, out.tolist()
            flat = np.empty(len(pairs) // 2, object)
            flat[:] = [data[a:b] for a, b in zip(pairs[::2], pairs[1::2])]
            return Values(lengths, flat)
        if kind == 2:
            return Values(lengths, out.astype(np.uint32).view(np.float32))
        return Values(lengths, out.view(np.int64))

    def _read(self, which: int, where: Places, what: tuple[int, ...], size: int) -> tuple[Any, Any]:
        """Reads where the room needed is small whatever the bytes hold; else counts before."""
        flat = where.places.reshape(-1)
        count, width = where.places.shape[:2]
        own = where.places[:, what[0]]
        # Numbers are read byte by byte, other values are passed over.
        is_bytewise = which == _VALUES and what[1] > 1
        bytes_ = int((own[:, 1] - own[:, 0]).sum()) if is_bytewise else 0
        functions, given = tiers().get(_PER_NAME * count + bytes_)
        scan = functions[which]
        lengths = np.empty(count, np.uint64)
        first, last = given(flat), given(lengths)

        def scanned(is_filling: int, out: Any) -> int:
            total: int = scan(
                self._data, first, count, width, *what, is_filling, given(self._state), last,
                given(out),
            )  # fmt: skip
            if total < 0:
                raise self._malformed(int(where.owners[-1 - total]))
            return size * total

        if len(self._data) <= _AT_ONCE:
            # A value has a byte at least, a string's two numbers have two.
            out = np.empty(len(self._data), np.uint64)
            out = out[: scanned(1, out)].copy()
        else:
            out = np.empty(scanned(0, lengths), np.uint64)
            scanned(1, out)
        return lengths.view(np.int64), out

    def _malformed(self, index: int) -> Exception:
        return expected("a serialized example", f"other bytes in {self.label(index)}")


#: The loops that are called, by their places; iterations of Python per name that is looked for.
_FUNCTIONS = (varint, payload, slot_of, entry, find, steps, chunk, values)
_FIND, _STEPS, _VALUES = 4, 5, 7
_PER_NAME = 16


@functools.cache
def tiers() -> LoopTiers:
    """The process's loops."""
    return LoopTiers(_FUNCTIONS, {})
