"""Compiled functions that keep readings of a clock: in order, in their array, never beyond it."""

import sys
import threading

import numpy as np
import pytest

from flowscope.plan.codegen.stamps import HEAD
from flowscope.runtime.trace.native_stamps import stamper
from flowscope.runtime.trace.stamp_buffers import NativeBuffer, clock


@pytest.fixture(scope="module")
def native():
    found = stamper()
    if found is None:
        pytest.skip("needs llvmlite, and a clock that compiled code can read")
    return found


def words_of(room, flush):
    words = np.full(HEAD + room, -7, np.int64)
    words[:HEAD] = HEAD, len(words), HEAD + flush
    return words


def test_readings_grow_and_those_of_a_turn_are_negative(native):
    words = words_of(6, 4)
    stamp, turn = native.functions(words)
    assert stamp() is None
    assert turn() is False
    stamp()
    readings = words[HEAD : words[0]]
    assert len(readings) == 3
    assert (np.sign(readings) == [1, -1, 1]).all()
    assert (np.diff(np.abs(readings)) >= 0).all()


def test_a_turn_says_when_the_array_is_to_be_flushed_and_nothing_is_written_beyond_it(native):
    whole = words_of(8, 2)
    words = whole[:-4]
    words[1] = len(words)
    stamp, turn = native.functions(words)
    assert [turn() for _ in range(4)] == [False, False, True, True]
    for _ in range(10):
        stamp()
        turn()
    assert words[0] == len(words)
    assert (whole[-4:] == -7).all()


def test_the_functions_give_out_references_of_their_own(native):
    stamp, turn = native.functions(words_of(4, 1))
    before = [sys.getrefcount(value) for value in (None, True, False)]
    for _ in range(10_000):
        stamp()
        turn()
    after = [sys.getrefcount(value) for value in (None, True, False)]
    assert all(b - a > -5000 for a, b in zip(before, after, strict=True))


def test_the_array_lives_as_long_as_its_functions(native):
    stamp, _ = native.functions(words_of(4, 4))
    for _ in range(100):
        np.empty(HEAD + 4, np.int64).fill(0)
        stamp()


def test_readings_lie_between_the_moments_around_them_in_nanoseconds(native):
    buffer = NativeBuffer(native, 100, loops=False)
    begin = clock()
    buffer.moment()
    for k in range(50):
        (buffer.turn if k % 2 else buffer.stamp)()
    assert len(buffer) == 50
    buffer.moment()
    end = clock()
    times = buffer.take().readings()
    assert (np.sign(times) == np.resize([1, -1], 50)).all()
    assert (np.diff(np.abs(times)) >= 0).all()
    assert begin <= np.abs(times).min()
    assert np.abs(times).max() <= end
    assert len(buffer) == 0


def test_buffers_of_two_threads_keep_their_own_readings(native):
    buffers = [NativeBuffer(native, 2000, loops=False) for _ in range(2)]

    def fills(buffer, function):
        for _ in range(1000):
            function()

    threads = [
        threading.Thread(target=fills, args=(b, f))
        for b, f in zip(buffers, (buffers[0].stamp, buffers[1].turn), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    raw = [b.take().raw for b in buffers]
    assert [len(r) for r in raw] == [1000, 1000]
    assert (raw[0] > 0).all()
    assert (raw[1] < 0).all()
