"""The debugger on several devices: the stops and the values are those of one CPU."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cluster_hosts import hosts_here
from random_stops import LAYOUTS, Breaks, noted, same, session

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]
FEED = np.array([0.5, 1.0], "f")


@pytest.fixture(scope="module")
def cluster():
    with hosts_here(2) as (found, _):
        yield found


def straight(x, on):
    with fs.device(on[0]):
        a = fs.multiply(x, 2.0, name="dbl")
    with fs.device(on[1]):
        b = fs.add(a, 1.0, name="inc")
    with fs.device(on[0]):
        return fs.reduce_sum(fs.multiply(b, a, name="mix"), name="y")


def loop(x, on):
    def body(i, a):
        with fs.device(on[0]):
            a = fs.multiply(a, 2.0, name="dbl")
        with fs.device(on[1]):
            a = fs.add(a, 1.0, name="inc")
        with fs.device(on[0]):
            return i + 1, fs.multiply(a, 0.75, name="mix")

    return fs.while_loop(lambda i, a: i < 3, body, [0, x])[1]


def branches(x, on):
    def inc(a):
        with fs.device(on[1]):
            return fs.add(a, 1.0, name="inc")

    def mix(a):
        with fs.device(on[0]):
            return fs.multiply(a, 0.75, name="mix")

    def body(i, a):
        with fs.device(on[0]):
            a = fs.multiply(a, 2.0, name="dbl")
        with fs.device(on[1]):
            return i + 1, fs.cond(fs.equal(i % 2, 0), lambda: inc(a), lambda: mix(a))

    return fs.while_loop(lambda i, a: i < 4, body, [0, x])[1]


KINDS = [
    ("break_before", {}),
    ("break_after", {}),
    ("break_before", {"hits": 2}),
    ("break_after", {"iteration": 1}),
    ("break_before", {"when": "max > 3"}),
    ("break_after", {"when": "max > 3 or iteration == 0"}),
    ("break_after", {"when": lambda v: float(np.sum(v)) > 3}),
    ("watch", {"when": "max > 3", "raises": False}),
]


def stops(layout, mode, build, target=""):
    """The stops of each kind of breakpoint at each of three operations."""
    with fs.Graph().as_default():
        x = fs.placeholder(fs.float32, [2], name="x")
        y = build(x, LAYOUTS[layout][1])
        names = [op.name for op in y.graph.get_operations()]
        meant = [n for n in names if n.rpartition("/")[2] in ("dbl", "inc", "mix")]
        assert len(meant) >= 3
        found = []
        with session(layout, mode, y.graph, target) as sess:
            sess.debug.on_stop(lambda stop: found.append(noted(stop)))
            for kind, wanted in KINDS:
                for name in meant:
                    point = getattr(sess.debug, kind)(name, **wanted)
                    found.append((kind, name, wanted, sess.run(y, {x: FEED}).tolist()))
                    point.remove()
        return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("build", [straight, loop, branches])
def test_the_stops_are_those_of_one_cpu(cluster, build, mode):
    plain = stops("one CPU", mode, build)
    for layout in ("two GPUs", "GPU and CPU", "split"):
        assert stops(layout, mode, build) == plain, layout
    if mode == "tokens":  # a step over workers that has breakpoints has an order in every mode
        plain = stops("one CPU", "op", build)
    if build is loop or mode == "compiled":
        assert stops("hosts", mode, build, cluster) == plain


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", [1, 2, 4, 6])
@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
def test_random_breakpoints_stop_as_on_one_cpu(cluster, seed, mode):
    breaks = Breaks(seed)
    plain = breaks.stops("one CPU", mode)
    assert same(mode, breaks.stops("two GPUs", mode), plain)
    assert same(mode, breaks.stops("split", mode), plain)
    if mode == "compiled":
        assert breaks.stops("hosts", mode, cluster) == plain


@pytest.fixture(params=MODES)
def gpus(request):
    with session("two GPUs", request.param) as made:
        yield made


def loop_on_gpus():
    x = fs.placeholder(fs.float32, [2], name="x")
    return x, loop(x, ("/gpu:0", "/gpu:1"))


def test_values_of_an_accelerator_can_be_seen(gpus):
    x, y = loop_on_gpus()
    gpus.debug.break_after("while/body/dbl", iteration=1)
    seen = []

    def look(stop):
        seen.append(stop.value("while/body/dbl").tolist())
        seen.append(stop.value("while/body/dbl", 1))
        seen.append(stop.look("while/body/dbl").statistics.max)
        seen.append(stop.values()["while/body/dbl:0"].shape)
        seen.append(stop.picture("while/body/dbl").width)

    gpus.debug.on_stop(look)
    gpus.run(y, {x: FEED})
    assert seen == [[3.0, 4.5], 4.5, 4.5, (2,), 2]


def test_a_value_of_an_accelerator_can_be_replaced(gpus):
    x, y = loop_on_gpus()
    gpus.debug.break_after("while/body/dbl", iteration=1)
    gpus.debug.on_stop(lambda stop: stop.replace("while/body/dbl", np.array([1, -1], "f")))
    assert gpus.run(y, {x: FEED}).tolist() == [(1 + 1) * 0.75 * 1.5 + 0.75, 0.75]


def test_a_watchpoint_sees_what_is_not_finite_on_an_accelerator(gpus):
    x, y = loop_on_gpus()
    watch = gpus.debug.watch()
    assert np.isfinite(gpus.run(y, {x: FEED})).all()
    with pytest.raises(fs.errors.InvalidArgumentError, match="inf in the output of .*dbl"):
        gpus.run(y, {x: FEED * 3e38})
    assert watch.found.iterations == (0,) and watch.found.op.name == "while/body/dbl"


def test_steps_on_accelerators_are_recorded_and_computed_again(gpus):
    x, y = loop_on_gpus()
    history = gpus.debug.record(["while/body/inc"])
    plain = gpus.run(y, {x: FEED})
    kept = [one.value.tolist() for one in history.values("while/body/inc")]
    assert kept[0] == [2.0, 3.0] and len(kept) == 3
    with gpus.debug.replay() as past:
        assert [past.value("while/body/inc", i).tolist() for i in range(3)] == kept
        assert past.value(y).tolist() == plain.tolist()
        stop = past.before("while/body/inc", 1)
        assert (stop.op.name, stop.iterations) == ("while/body/inc", (1,))
        back = stop.step_back()
        assert (back.op.name, back.iterations) == ("while/body/dbl", (1,))
        back.step_op()
        there = past.debug.wait(30.0)
        assert there.transfer == ("while/body/dbl", "/job:localhost/replica:0/task:0/device:GPU:0")
        assert there.step_back().op is back.op


@pytest.fixture
def aside():
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit


def moved(sess, y, feed, aside):
    """Where a step stands after each of some moves from a breakpoint on."""
    sess.debug.break_after("while/body/dbl", iteration=1)
    running = aside(sess.run, y, feed)
    told = []
    for _ in range(2):
        stop = sess.debug.wait(30.0)
        told.append((None if stop.op is None else stop.op.name, stop.iterations))
        stop.step_op()
    sess.debug.wait(30.0)
    sess.debug.clear()
    sess.resume()
    running.result(30.0)
    return told


@pytest.mark.parametrize("mode", ["compiled", "op"])
def test_a_move_from_a_breakpoint_runs_the_operation_that_was_told(mode, aside):
    with session("one CPU", mode) as sess:
        x, y = loop_on_gpus()
        plain = moved(sess, y, {x: FEED}, aside)
    with session("two GPUs", mode) as sess:
        assert moved(sess, y, {x: FEED}, aside)[0] == plain[0]
