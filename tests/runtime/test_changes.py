"""Several variables changed in one go: `VariableState.change`."""

import threading

import numpy as np
import pytest

import flowscope as fs
from flowscope.runtime.state.resources import VariableState

PATIENCE_S = 30


def states(*values):
    made = [VariableState(f"v{i}") for i in range(len(values))]
    for state, value in zip(made, values, strict=True):
        state.assign(value)
    return made


def add_one(*arrays):
    for a in arrays:
        np.add(a, 1, out=a)


def test_what_nobody_reads_is_changed_in_place_and_the_rest_copied():
    a, b = states(np.zeros(1000), np.zeros(1000))
    addresses = [s.value.ctypes.data for s in (a, b)]
    lease = b.read()[5:10]
    assert a.change([b], add_one) is a.value
    assert a.value.ctypes.data == addresses[0]
    assert b.value.ctypes.data != addresses[1]
    assert (a.read() == 1).all() and (b.read() == 1).all() and (lease == 0).all()
    assert (a.writes, b.writes) == (2, 2)


def test_numbers_stay_numbers():
    (a,) = states(np.float32(3))
    assert a.change([], add_one) == 4 and isinstance(a.read(), np.float32)


def test_a_failure_gives_everything_back():
    a, b = states(np.zeros(3), np.zeros(3))
    lease = b.read()

    def fail(first, second):
        raise fs.errors.InvalidArgumentError("no")

    with pytest.raises(fs.errors.InvalidArgumentError):
        a.change([b], fail)
    assert (a.read() == 0).all() and b.read() is lease
    a.change([b], add_one)
    assert (b.read() == 1).all()


def test_missing_values_are_all_named_and_nothing_is_changed():
    (a,) = states(np.zeros(3))
    b, c = VariableState("b"), VariableState("c")
    with pytest.raises(fs.errors.FailedPreconditionError, match='"b", "c"'):
        a.change([b, c], add_one)
    assert (a.read() == 0).all() and not b.is_initialized


def test_changes_from_threads_neither_mix_nor_wait_for_each_other_forever():
    """The same two variables, named in both orders."""
    a, b = states(np.zeros(50), np.zeros(50))

    def work(first, second):
        for _ in range(300):
            first.change([second], add_one)

    threads = [
        threading.Thread(target=work, args=pair, daemon=True) for pair in ((a, b), (b, a)) * 2
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join(PATIENCE_S)
    assert not any(t.is_alive() for t in threads)
    assert (a.read() == 1200).all() and (b.read() == 1200).all()


def test_a_reader_waits_for_a_change_and_never_sees_half_of_one():
    (a,) = states(np.zeros(4))
    begun, go, seen = threading.Event(), threading.Event(), []

    def slow(array):
        array[:2] = 1
        begun.set()
        assert go.wait(PATIENCE_S)
        array[2:] = 1

    writer = threading.Thread(target=lambda: a.change([], slow), daemon=True)
    reader = threading.Thread(target=lambda: seen.append(a.read().copy()), daemon=True)
    writer.start()
    assert begun.wait(PATIENCE_S)
    assert a.is_initialized
    reader.start()
    go.set()
    writer.join(PATIENCE_S)
    reader.join(PATIENCE_S)
    np.testing.assert_array_equal(seen[0], 1)
