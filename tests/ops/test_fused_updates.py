"""Update rules as one loop of machine code: the bits of NumPy's passes, and when there is one."""

import numpy as np
import pytest

from flowscope.graph.current_step import current_thread, steps_of_threads
from flowscope.ops.kernels import fused_updates
from flowscope.ops.state import training_ops as ops
from flowscope.runtime.threads.thread_pool import ThreadPool

pytest.importorskip("llvmlite")

#: Rules that are one loop, with the numbers that they get.
RULES = {
    "momentum": (ops.ApplyMomentum(), (0.1, 0.9)),
    "nesterov": (ops.ApplyMomentum(use_nesterov=True), (0.1, 0.9)),
    "adagrad": (ops.ApplyAdagrad(), (0.1,)),
    "adadelta": (ops.ApplyAdadelta(), (0.5, 0.95, 1e-6)),
    "rmsprop": (ops.ApplyRMSProp(), (0.01, 0.9, 0.5, 1e-8)),
    "adam": (ops.ApplyAdam(), (0.9, 0.999, 0.01, 0.9, 0.999, 1e-8)),
}
SIZES = [(4096,), (4099,), (67, 129)]
UPDATES = 6


class Variable:
    """What an update needs of a variable."""

    def __init__(self, array):
        self.array = array

    def change(self, slots, in_place):
        in_place(self.array, *[s.array for s in slots])
        return self.array


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(fused_updates, "_loops", {})


def values(rng, shape, dtype):
    """Returns numbers of many magnitudes, with zeros, numbers that are not normal, and infinity."""
    found = (rng.standard_normal(shape) * 10.0 ** rng.integers(-30, 15, shape)).astype(dtype)
    flat = found.reshape(-1)
    special = [0.0, -0.0, np.finfo(dtype).tiny / 8, np.inf, -np.inf, np.nan]
    flat[: len(special)] = special
    return found


def run(name, shape, dtype, usual, monkeypatch, updates=UPDATES):
    """Returns all arrays after some updates."""
    monkeypatch.setattr(fused_updates, "_USUAL", usual)
    op, numbers = RULES[name]
    rng = np.random.default_rng(3)
    states = [Variable(values(rng, shape, dtype)) for _ in range(1 + len(op.slots))]
    for one in states[1:]:
        one.array[...] = np.abs(one.array)
    with np.errstate(all="ignore"):
        for _ in range(updates):
            grad = values(rng, shape, dtype)
            op.kernel(np, *states, *[dtype(n) for n in numbers], grad)
    return [s.array for s in states]


def is_compiled():
    return [type(found) for found in fused_updates._loops.values()] == [fused_updates._Code]


@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", RULES)
def test_one_loop_gives_the_bits_of_all_passes(name, dtype, shape, monkeypatch):
    passes = run(name, shape, dtype, 1000, monkeypatch)
    assert not is_compiled()
    fused_updates._loops.clear()
    loop = run(name, shape, dtype, 1, monkeypatch)
    assert is_compiled()
    for a, b in zip(passes, loop, strict=True):
        assert np.array_equal(np.isnan(a), np.isnan(b))
        assert a[~np.isnan(a)].tobytes() == b[~np.isnan(b)].tobytes()


def test_a_rule_is_compiled_once_it_is_usual(monkeypatch):
    run("adam", (5000,), np.float32, fused_updates._USUAL, monkeypatch, fused_updates._USUAL)
    assert not is_compiled()
    run("adam", (5000,), np.float32, fused_updates._USUAL, monkeypatch, 1)
    assert is_compiled()


def test_small_arrays_are_left_to_numpy(monkeypatch):
    run("adam", (4095,), np.float32, 1, monkeypatch)
    assert not fused_updates._loops


def test_a_rule_that_does_something_else_has_no_loop(monkeypatch):
    monkeypatch.setattr(fused_updates, "_USUAL", 1)
    states = [Variable(np.ones(5000, np.float32)) for _ in range(3)]
    numbers = [np.float32(n) for n in (0.1, 0.0, 0.0, 0.0, -0.5)]
    for _ in range(4):
        ops.ApplyFtrl().kernel(np, *states, *numbers, np.ones(5000, np.float32))
    assert list(fused_updates._loops.values()) in ([None], [])


def test_whoever_wants_floating_point_flags_gets_those_of_the_passes(monkeypatch):
    monkeypatch.setattr(fused_updates, "_USUAL", 1)
    state = Variable(np.ones(5000, np.float32)), Variable(np.zeros(5000, np.float32))
    told = []
    with np.errstate(invalid="call", divide="call", call=lambda *flag: told.append(flag)):
        for _ in range(3):
            ops.ApplyAdagrad().kernel(np, *state, np.float32(1), np.zeros(5000, np.float32))
    assert told


def test_a_gradient_that_lies_otherwise_is_read_by_its_elements(monkeypatch):
    found = []
    for usual in (1000, 1):
        monkeypatch.setattr(fused_updates, "_USUAL", usual)
        fused_updates._loops.clear()
        rng = np.random.default_rng(0)
        state = [Variable(rng.random((80, 90), np.float32)) for _ in range(2)]
        grad = rng.random((90, 80), np.float32).T
        with np.errstate(all="ignore"):
            for _ in range(3):
                ops.ApplyMomentum().kernel(np, *state, np.float32(0.1), np.float32(0.9), grad)
        found.append([s.array for s in state])
    assert is_compiled()
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


class _Step:
    """A step that has threads."""

    call = None

    def __init__(self, pool):
        self.pool = pool


def test_threads_share_a_large_update_and_lose_no_part(monkeypatch):
    shape = ((1 << 19) + 4 * 7 + 3,)
    passes = run("adam", shape, np.float32, 1000, monkeypatch)
    fused_updates._loops.clear()
    pool, taken = ThreadPool(2), []
    own = pool.parallel_for
    monkeypatch.setattr(pool, "parallel_for", lambda n, f: (taken.append(n), own(n, f)))
    step = _Step(pool)
    monkeypatch.setitem(steps_of_threads, current_thread(), step)
    step.call = type("Call", (), {"trace": None})
    try:
        loop = run("adam", shape, np.float32, 1, monkeypatch)
    finally:
        pool.stop()
    assert taken == [5] * (UPDATES - 1)  # the first one is NumPy's
    for a, b in zip(passes, loop, strict=True):
        assert a[~np.isnan(a)].tobytes() == b[~np.isnan(b)].tobytes()
