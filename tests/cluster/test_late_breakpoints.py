"""Breakpoints that are set while a step over workers is on its way: they hold in this step."""

import threading

import numpy as np
import pytest
from cluster_hosts import hosts_here, on
from joint_steps import chain, paused, stood
from process_channels import until
from random_stops import Breaks

import flowscope as fs
from flowscope.errors import CancelledError, DeadlineExceededError, InvalidArgumentError

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture(scope="module")
def ends():
    with hosts_here(3) as found:
        yield found


@pytest.fixture
def cluster(ends):
    return ends[0]


def begun(sess, running):
    """Waits until a step of the session is on its way on all workers."""
    steps = sess._remote.steps
    until(lambda: running.done() or any(s.pausing._is_under_way for s in [*steps.values()]))
    assert not running.done()


def next_stops(sess, count):
    found = []
    for _ in range(count):
        stop = stood(sess)
        found.append((stop.op.name, stop.iterations[0], stop.breakpoint.hits))
        stop.resume()
    return found


def ends_as(running, plain):
    for a, b in zip(running.result(60.0), plain, strict=True):
        np.testing.assert_array_equal(a, b)
    until(lambda: not [t for t in threading.enumerate() if t.name == "flowscope-joint"])


KINDS = [
    ("break_before", "b", "b", {}),
    ("break_after", "d", "e", {}),
    ("break_before", "b", "b", {"hits": 3}),
    ("break_after", "d", "e", {"when": "max > 0.5"}),
    ("break_before", "f", "f", {"when": lambda v: v.max() > 0.5}),
    ("watch", "c", "d", {"when": "max > 0.1", "raises": False}),
]


@pytest.mark.parametrize("mode", ["compiled", "op"])
@pytest.mark.parametrize(("kind", "op", "told", "wanted"), KINDS)
def test_it_holds_in_each_iteration_from_then_on(cluster, aside, mode, kind, op, told, wanted):
    loop = chain(1_000_000_000)
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        running = aside(sess.run, loop)
        begun(sess, running)
        point = getattr(sess.debug, kind)(f"while/body/{op}", **wanted)
        found = next_stops(sess, 4)
        first = found[0]
        assert first[0] == f"while/body/{told}" and point.hits >= 4
        assert found == [(first[0], first[1] + i, first[2] + i) for i in range(4)]
        assert first[2] == wanted.get("hits", 1)
        sess.stop()
        with pytest.raises(CancelledError):
            running.result(30.0)


def test_it_holds_in_a_step_that_is_paused(cluster, aside):
    loop = chain(3_000)
    with fs.Session(cluster) as sess:
        plain = sess.run(loop)
        running = aside(sess.run, loop)
        paused(sess)
        sess.step_iteration()
        here = stood(sess)
        sess.debug.break_before("while/body/d")
        here.resume()
        stop = stood(sess)
        assert stop.breakpoint is not None and stop.op.name == "while/body/d"
        assert stop.value("while/body/c").shape == (2, 2)
        stop.step_op()
        after = stood(sess)
        assert after.breakpoint is None and after.iterations == stop.iterations
        after.step_run()  # on its way to the end it comes to the breakpoint again
        again = stood(sess)
        assert again.breakpoint is stop.breakpoint
        assert again.iterations == (stop.iterations[0] + 1,)
        sess.debug.clear()
        again.resume()
        ends_as(running, plain)


@pytest.mark.parametrize("mode", ["compiled", "op"])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
def test_a_random_step_that_has_just_begun_stops_as_on_one_cpu(ends, seed, mode):
    cluster, hosts = ends

    def told(stops):  # what comes next may have run already on another worker
        return [s[1:] if isinstance(s, tuple) else s for s in stops]

    plain = Breaks(seed, 1).stops("one CPU", mode, runs=1)
    assert told(Breaks(seed, 1).late_stops("hosts", mode, cluster, hosts)) == told(plain)


def two_loops(trips):
    """A loop without anything to stop at, and an operation behind it."""
    loop = chain(trips)
    with on(0):
        return fs.add(loop[1], 1.0, name="behind")


def test_loops_without_breakpoints_run_as_code(cluster, aside):
    y = two_loops(2_000)
    with fs.Session(cluster) as sess:
        plain = sess.run(y)
        running = aside(sess.run, y)
        begun(sess, running)
        sess.debug.break_before("behind")
        stop = stood(sess)
        assert stop.op.name == "behind" and stop.iterations == ()
        assert sess.gate.moves.count < 500  # by turns there would be thousands
        stop.resume()
        np.testing.assert_array_equal(running.result(30.0), plain)


def test_a_loop_that_runs_as_code_can_be_paused_and_get_a_breakpoint(cluster, aside):
    y = two_loops(1_000_000_000)
    with fs.Session(cluster) as sess:
        running = aside(sess.run, y)
        begun(sess, running)
        sess.debug.break_before("behind")
        sess.pause()
        first = stood(sess)
        first.resume()
        sess.debug.break_before("while/body/c")
        stop = stood(sess)
        assert stop.op.name == "while/body/c" and stop.iterations >= first.iterations
        stop.stop()
        with pytest.raises(CancelledError):
            running.result(30.0)


def test_a_watchpoint_ends_the_step_with_its_error(cluster, aside):
    loop = chain(1_000_000_000)
    with fs.Session(cluster) as sess:
        running = aside(sess.run, loop)
        begun(sess, running)
        sess.debug.watch("while/body/c", when="max > -100")
        with pytest.raises(InvalidArgumentError, match='output of "while/body/c"'):
            running.result(30.0)


def test_a_deadline_ends_a_step_that_goes_by_turns(cluster, aside):
    loop = chain(1_000_000_000)
    with fs.Session(cluster, config=fs.ConfigProto(operation_timeout_in_ms=1_500)) as sess:
        sess.plan(loop)
        running = aside(sess.run, loop)
        begun(sess, running)
        sess.debug.break_before("while/body/c", when="max > 100")
        with pytest.raises(DeadlineExceededError):
            running.result(30.0)


def test_who_passes_breakpoints_is_told_at_the_call(cluster, aside):
    with on(0):
        q = fs.FIFOQueue(4, [fs.float32], [[]])
        put, got = q.enqueue(fs.constant(2.0)), fs.square(q.dequeue(), name="got")
    with fs.Session(cluster) as sess:
        running = aside(sess.run, got)
        begun(sess, running)
        with pytest.warns(RuntimeWarning, match="runs past breakpoints.*queues") as told:
            sess.debug.break_before("got")
        assert told[0].filename == __file__
        sess.debug.clear()
        sess.run(put)
        assert running.result(30.0) == 4.0
