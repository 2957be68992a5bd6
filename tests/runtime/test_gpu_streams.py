"""Streams of GPUs, on simulated ones whose work runs late and in random legal orders."""

import numpy as np
import pytest
from gpu_traffic import MUTANTS, check, is_found
from placed_programs import MODES, PlacedProgram
from simulated_cupy import CUDARuntimeError, simulated_gpus

import flowscope as fs
from flowscope.errors import UnavailableError

DEVICES = ["/cpu:0", "/gpu:0", "/gpu:1"]


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_traffic_gives_in_any_order_what_numpy_gives(first):
    for seed in range(first, first + 25):
        check(seed)


@pytest.mark.parametrize("name", MUTANTS)
def test_faults_are_found(name):
    assert is_found(name, orders=200)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 8, 18, 29, 35, 38])
def test_programs_give_in_any_order_what_a_cpu_gives(seed, mode):
    want = PlacedProgram(seed).run()
    program = PlacedProgram(seed, DEVICES)
    config = fs.ConfigProto(device_count={"GPU": 2}, mode=mode)
    with simulated_gpus(seed) as schedule, fs.Session(graph=program.graph, config=config) as sess:
        for order in range(12):
            schedule.follow(order)
            sess.run(program.initializer)
            fed = program.fed.copy()
            got = [sess.run(program.fetches, {program.x: fed})]
            fed[...] = np.nan  # after the step it is the user's
            got.append(sess.run(program.fetches, {program.x: program.fed}))
            for g, w in zip([*got[0], *got[1]], want, strict=True):
                np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)
        assert schedule.launches
        assert not schedule.wrong


@pytest.mark.parametrize("mode", MODES)
def test_branches_in_branches_keep_values_of_both_memories_for_gradients(mode):
    """Of a loop in each branch a gradient needs indices, in the host's memory, and numbers."""

    def rows_twice(x):
        def body(i, a):
            return i + 1, a + fs.gather(fs.exp(a), [i, 1 - i]) * fs.cast(i + 1, fs.float32)

        return fs.while_loop(lambda i, _: i < 2, body, [0, x])[1]

    def branches(x):
        y = fs.cond(x[0, 0] > 0, lambda: fs.sin(rows_twice(x)), lambda: rows_twice(x) * x)
        return fs.cond(x[0, 1] > 0, lambda: rows_twice(y) + y, lambda: fs.cos(y))

    def build(device):
        with fs.Graph().as_default() as graph:
            x = fs.placeholder(fs.float32, [2, 2])
            with fs.device(device):
                y = fs.cond(x[1, 1] > 0, lambda: branches(fs.tanh(x)), lambda: fs.square(x))
                return graph, x, [y, *fs.gradients(fs.reduce_sum(fs.square(y)), [x])]

    config = fs.ConfigProto(device_count={"GPU": 1}, mode=mode)
    for signs in ([1, 1, 1, 1], [1, -1, 1, 1], [-1, 1, 1, 1], [-1, -1, 1, 1], [1, 1, 1, -1]):
        fed = np.asarray(signs, "f").reshape(2, 2) * np.asarray([[0.3, 0.2], [0.1, 0.4]], "f")
        graph, x, fetches = build("/cpu:0")
        with fs.Session(graph=graph) as sess:
            want = sess.run(fetches, {x: fed})
        graph, x, fetches = build("/gpu:0")
        with simulated_gpus(5), fs.Session(graph=graph, config=config) as sess:
            for got, expected in zip(sess.run(fetches, {x: fed}), want, strict=True):
                np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_a_driver_that_fails_is_told_as_such_and_the_cpu_goes_on(mode, graph):
    x = fs.placeholder(fs.float32, [2])
    with fs.device("/gpu:0"):
        y = fs.exp(x)
        total = fs.reduce_sum(y)
    with fs.device("/cpu:0"):
        v = fs.Variable([1.0, 2.0])
        step, minus = v.assign_add(x), fs.negative(x)
    fed = {x: np.zeros(2, "f")}
    config = fs.ConfigProto(device_count={"GPU": 1}, mode=mode)
    with simulated_gpus(4) as schedule, fs.Session(config=config) as sess:
        sess.run(v.initializer)
        assert sess.run(total, fed) == 2.0
        schedule.failure = CUDARuntimeError("cudaErrorIllegalAddress: an illegal access")
        for fetches in (total, y, [y, step]):  # the others are planned only now
            with pytest.raises(UnavailableError, match="driver of the GPU.*cudaErrorIllegalAdd"):
                sess.run(fetches, fed)
        assert sess.run([minus, v], {x: [1.0, 2.0]})[0].tolist() == [-1.0, -2.0]
        assert sess.run(step, {x: [1.0, 1.0]}).tolist() == [2.0, 3.0]
        schedule.failure = None
        assert sess.run(total, fed) == 2.0


def test_training_without_fetches_waits_for_nothing():
    with simulated_gpus(3) as schedule, fs.Graph().as_default():
        x = fs.placeholder(fs.float32, [8, 4])
        with fs.device("/gpu:0"):
            w = fs.Variable(np.ones((4, 2), "f"))
            step = fs.train.AdamOptimizer(0.1).minimize(fs.reduce_mean(fs.square(x @ w)))
        config = fs.ConfigProto(device_count={"GPU": 1}, allow_soft_placement=True)
        with fs.Session(config=config) as sess:
            sess.run(fs.global_variables_initializer())
            fed = np.ones((8, 4), "f")
            sess.run(step, {x: fed})
            before = schedule.waits
            sess.run(step, {x: fed})
            assert schedule.waits == before
            sess.run(w)
            assert schedule.waits == before + 1
