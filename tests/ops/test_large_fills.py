"""One value everywhere is kept once: graphs, files and plans stay small, memory is one copy."""

import gc
import json
import tracemalloc

import numpy as np
import pytest

import flowscope as fs
from flowscope.graph.constant import Const

N = 1 << 18
MAKERS = {
    "zeros_initializer": (lambda: fs.get_variable("w", [N], initializer=fs.zeros_initializer()), 0),
    "ones_initializer": (lambda: fs.get_variable("w", [N], initializer=fs.ones_initializer()), 1),
    "constant_initializer": (
        lambda: fs.get_variable("w", [N // 8, 8], initializer=fs.constant_initializer(0.1)),
        0.1,
    ),
    "constant": (lambda: fs.Variable(fs.constant(-0.0, shape=[N])), -0.0),
    "constant_of_one_in_a_list": (lambda: fs.Variable(fs.constant([2.5], shape=[N])), 2.5),
    "zeros": (lambda: fs.Variable(fs.zeros([N])), 0),
    "ones": (lambda: fs.Variable(fs.ones([N])), 1),
    "fill": (lambda: fs.Variable(fs.fill([N], np.float32(np.nan))), np.nan),
    "fill_of_a_dynamic_shape": (
        lambda: fs.Variable(
            fs.zeros(fs.stack([fs.random.stateless_uniform([], [1, 2], N, N + 1, fs.int32)])),
            validate_shape=False,
        ),
        0,
    ),
    "zeros_like": (lambda: fs.Variable(fs.zeros_like(fs.ones([N]))), 0),
}
MODES = [("compiled", {}), ("op", {}), ("tokens", {}), ("compiled", {"GPU": 1})]


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize(("mode", "devices"), MODES, ids=str)
def test_an_initial_value_is_filled_when_it_runs(graph, maker, mode, devices):
    make, number = MAKERS[maker]
    w = make()
    assert len(json.dumps(graph.to_json())) < 3000
    config = fs.ConfigProto(mode=mode, fake_devices=devices)
    with fs.Session(config=config) as s:
        runs = []
        for _ in range(2):
            s.run(w.initializer)
            runs.append(s.run(w))
        plan = s.plan(w.initializer)
    expected = np.full(runs[0].shape, number, np.float32)
    assert runs[0].size == N
    assert [r.tobytes() for r in runs] == [expected.tobytes()] * 2
    kept = [n for n in plan.program.walk() if isinstance(n.op, Const)]
    assert all(n.outputs[0].spec.nbytes <= 8 for n in kept)


def peak_bytes(maker):
    """Returns the most bytes that are held from making a variable to its initialisation."""
    with fs.Graph().as_default(), fs.Session() as s:
        gc.collect()
        tracemalloc.start()
        s.run(MAKERS[maker][0]().initializer)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


@pytest.mark.memory
@pytest.mark.parametrize("maker", MAKERS)
def test_an_initializer_takes_the_memory_of_the_variable(maker):
    peak_bytes(maker)  # what is loaded at first use
    assert peak_bytes(maker) < 1.25 * 4 * N


def test_a_slot_of_zeros_is_filled_when_it_runs(graph):
    w = fs.get_variable("w", [N], initializer=fs.zeros_initializer())
    fs.train.AdamOptimizer(0.1).minimize(fs.reduce_sum(w))
    assert len(json.dumps(graph.to_json())) < 20_000


@pytest.mark.parametrize("dtype", [fs.float16, fs.int64, fs.bool, fs.string, fs.complex64])
def test_large_fills_of_other_dtypes(graph, dtype):
    value = {"string": b"s", "bool": True}.get(dtype.name, 1)
    c = fs.constant(value, dtype, [70_000])
    assert c.dtype is dtype
    with fs.Session() as s:
        got = s.run(c)
    assert got.tolist() == np.full(70_000, value, dtype.np_dtype).tolist()


def test_the_value_of_a_fill_is_known_from_the_start(graph):
    for tensor in (fs.constant(2.0, shape=[300, 300]), fs.fill([300, 300], 2.0)):
        found = fs.get_static_value(tensor)
        assert (found.shape, found.dtype) == ((300, 300), np.float32)
        assert (found == 2).all()
    assert fs.get_static_value(fs.fill([3], fs.random_uniform([]))) is None
    dims = fs.placeholder(fs.int32, [1])
    assert fs.get_static_value(fs.fill(dims, 2.0)) is None


def test_names_are_those_of_tensorflow(graph):
    fs.get_variable("w", [2], initializer=fs.zeros_initializer())
    fs.get_variable("v", [2000], initializer=fs.ones_initializer())
    fs.constant(0.0, shape=[100_000])
    names = {op.name: op.type for op in graph.get_operations()}
    assert names["w/Initializer/zeros"] == "Const"
    assert names["v/Initializer/ones"] == "Fill"
    assert names["Const"] == "Fill"


def test_a_small_constant_stays_one(graph):
    assert fs.constant(0.0, shape=[100, 100]).op.type == "Const"
    with pytest.raises(TypeError, match="does not fit shape"):
        fs.constant(0.0, shape=[300, 300], verify_shape=True)
