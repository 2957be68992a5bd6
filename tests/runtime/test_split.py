"""Steps whose partitions run on threads of their own: the same bits, and one end for all."""

import re

import numpy as np
import pytest
from random_programs import Program as RandomProgram
from several_devices import device
from split_runs import Shuffled, parts, run, split

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]


def bits(values):
    return [(np.asarray(v).dtype, np.asarray(v).shape, np.asarray(v).tobytes()) for v in values]


def straight():
    x = fs.placeholder(fs.float32, [3, 3])
    y = fs.tanh(x) @ x + 1.0
    z = fs.random_uniform([3], seed=4) * fs.reduce_sum(y, 0)
    w = fs.Variable(np.ones((3, 3), "f"), name="w")
    return [y, z, w.assign_add(y), y - z], {x: np.linspace(-1, 1, 9, dtype="f").reshape(3, 3)}


def nested(window=10, n=4, inner_window=10):
    x = fs.placeholder(fs.float32, [3])
    trips = fs.placeholder(fs.int32, [])

    def body(i, v, total):
        w = fs.cond(fs.reduce_sum(v) > 2.0, lambda: fs.tanh(v) - 1.0, lambda: v * 2.0 + x)
        _, inner = fs.while_loop(
            lambda j, _: j < i,
            lambda j, u: (j + 1, u * w),
            [0, v],
            parallel_iterations=inner_window,
        )
        drawn = fs.random_uniform([3], seed=2)
        return i + 1, w + drawn, total + fs.reduce_sum(inner)

    _, v, total = fs.while_loop(
        lambda i, *_: i < trips, body, [0, x, 0.0], parallel_iterations=window
    )
    gradients = fs.gradients(total, [x])
    return [v, total, *gradients, fs.reduce_max(v)], {x: np.array([0.1, -0.2, 0.3], "f"), trips: n}


def equal_on_threads(make, mode, seed, channel=None):
    """Runs a program as one function and on two threads."""
    fetches, feeds = make()
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(fs.global_variables_initializer())
        plan, made = parts(sess, fetches, feeds, mode, seed)
        there = bits(run(sess, plan, plan.executable.function, feeds))
        sess.run(fs.global_variables_initializer())
        given = {} if channel is None else {"channel": channel}
        assert bits(run(sess, plan, split(sess, made, **given), feeds)) == there


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [straight, nested])
def test_partitions_on_threads_give_the_same_bits(make, mode, seed):
    equal_on_threads(make, mode, seed)


@pytest.mark.parametrize("mode", MODES)
def test_a_loop_of_no_iterations_gives_the_same_bits(mode):
    equal_on_threads(lambda: nested(n=0), mode, 1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("window", [1, 2])
@pytest.mark.parametrize("mode", MODES)
def test_values_may_be_delivered_late_and_in_any_order(mode, window, seed):
    make = lambda: nested(window, inner_window=3 - window)  # noqa: E731
    equal_on_threads(make, mode, seed, lambda: Shuffled(seed))


def test_code_takes_its_mailboxes_and_waits_in_place():
    fetches, feeds = nested(window=2)
    with fs.Session() as sess:
        _, made = parts(sess, fetches, feeds, seed=1)
    text = made[0].executable.text
    assert {p.device for p in made} == {device(0), device(1)}
    assert text.count("def region") == 1
    assert "= mailboxes()" in text and ".is_ahead(2, 0): wait_for_credit(" in text
    assert re.search(r"(x\d+)\.receive\(gate\) if \1\.values else receive\(\1, p", text)


@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", [pytest.param(i, marks=pytest.mark.slow) for i in range(20)])
def test_random_programs_give_the_same_bits_on_threads(seed, mode):
    program = RandomProgram(seed)
    config = fs.ConfigProto(mode=mode)
    found = []
    with program.graph.as_default(), fs.Session(graph=program.graph, config=config) as sess:
        plan, made = parts(sess, program.fetches, [t for t, _ in program.feeds], mode, seed)
        late = split(sess, made, lambda: Shuffled(seed))
        for function in (plan.executable.function, split(sess, made), late):
            sess.run(program.initializer)
            results = []
            for arrays in program.fed:
                feeds = {t: a.copy() for (t, _), a in zip(program.feeds, arrays, strict=True)}
                try:
                    results.append(bits(run(sess, plan, function, feeds)))
                except Exception as e:
                    failed = plan.failed(e)
                    results.append(failed and failed.node.name)
            results.append(bits(sess.run(program.variables)))
            found.append(results)
    assert found[1] == found[0]
    assert found[2] == found[0]
