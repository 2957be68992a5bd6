"""Steps over several workers that are paused while they run, and stepped through from there."""

import os
import random
import signal
import threading
import time

import numpy as np
import pytest
from cluster_hosts import hosts_apart, hosts_here, on, worker
from joint_steps import DEVICES, chain, paused, stood
from own_threads import own_threads
from process_channels import until
from random_programs import Program, outcome, same, shown

import flowscope as fs
from flowscope.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnavailableError,
)
from flowscope.graph.constant import Const
from flowscope.plan.ir.structured import LoopNode

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture(scope="module")
def ends():
    with hosts_here(3) as found:
        yield found


@pytest.fixture
def cluster(ends):
    return ends[0]


def program_order(sess, loop):
    """The names of the loop's operations in the order of the plan."""
    [node] = [n for n in sess.plan(loop).program.walk() if isinstance(n, LoopNode)]
    return [n.name for b in node.blocks for n in b.nodes if not isinstance(n.op, Const)]


@pytest.mark.parametrize("mode", ["compiled", "op"])
def test_a_step_that_runs_is_paused_and_stepped_through_in_the_order_of_the_plan(
    cluster, aside, mode
):
    loop = chain(5_000)
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        plain = sess.run(loop)
        order = program_order(sess, loop)
        for name in "abcdef":
            assert f"while/body/{name}" in order
        running = aside(sess.run, loop)
        paused(sess)
        for _ in range(12):  # by then those that had run ahead have been caught up with
            sess.step_iteration()
            begin = stood(sess)
        assert begin.op is None
        told = []
        while (stop := stood(sess)).iterations == begin.iterations:
            if stop.op is not None and stop._where.node.name in order:
                told.append(stop._where.node.name)
            sess.step_op()
        assert told == [name for name in order if name in told]
        assert {f"while/body/{name}" for name in "abcdef"} <= {*told}
        sess.resume()
        for a, b in zip(running.result(60.0), plain, strict=True):
            np.testing.assert_array_equal(a, b)
    assert not [t for t in threading.enumerate() if t.name == "flowscope-joint"]


def test_values_of_all_workers_are_seen_there_and_replaced(cluster, aside):
    loop = chain(20_000)
    with fs.Session(cluster) as sess:
        running = aside(sess.run, loop)
        paused(sess)
        for name in "abcd":
            step_to(sess, f"while/body/{name}")
        stop = stood(sess)
        a, c = stop.value("while/body/a"), stop.value("while/body/c")
        np.testing.assert_allclose(c, 2.0 * a + 0.5)
        assert stop.values()["while/body/a:0"].mean == pytest.approx(a.mean(), rel=1e-6)
        assert stop.value("while/body/c", np.s_[0, :1]).shape == (1,)
        assert stop.look("while/body/e").state == "not yet"
        assert stop.device.startswith(worker(2))
        stop.replace("while/body/c", np.zeros((2, 2), np.float32))
        step_to(sess, "while/body/e")
        np.testing.assert_array_equal(stood(sess).value("while/body/d"), np.ones((2, 2)))
        with pytest.raises(FailedPreconditionError, match="gone on"):
            stop.value("while/body/a")
        sess.stop()
        with pytest.raises(CancelledError):
            running.result(30.0)
        assert sess.run(chain(3))[0] == 3


def step_to(sess, name):
    """Steps until an operation comes next."""
    for _ in range(60):
        stop = stood(sess)
        if stop.op is not None and stop._where.node.name == name:
            return stop
        sess.step_op()
    raise AssertionError(f"{name} did not come")


def test_a_transfer_names_what_is_sent_and_both_ends(cluster, aside):
    loop = chain(20_000)
    with fs.Session(cluster) as sess:
        running = aside(sess.run, loop)
        paused(sess)
        step_to(sess, "while/body/a")
        sess.step_op()
        stop = stood(sess)
        assert stop.transfer == ("while/body/a", worker(0) + "/device:CPU:0")
        assert stop.device == worker(1) + "/device:CPU:0"
        sess.resume()
        running.result(60.0)


def test_moves_by_iteration_out_of_a_loop_and_to_the_end(cluster, aside):
    _, e, f = chain(500, 200)
    with on(1):
        total = fs.add(e, f, name="total")
    with fs.Session(cluster) as sess:
        plain = sess.run(total)
        running = aside(sess.run, total)
        at = paused(sess).iterations
        sess.step_iteration()
        after = stood(sess)
        if at:
            assert after.iterations[0] in (at[0], at[0] + 1)
        sess.step_iteration()
        assert stood(sess).iterations[0] == after.iterations[0] + 1
        stood(sess).step_out()
        assert not stood(sess).loops
        step_to(sess, "total")
        assert not running.done()
        sess.step_op()
        stop = stood(sess)
        assert stop.op is None
        assert not stop.loops
        assert not running.done()
        sess.resume()
        np.testing.assert_array_equal(running.result(60.0), plain)


def test_step_run_lets_all_workers_run_and_holds_the_step_at_its_end(cluster, aside):
    loop = chain(2_000)
    with fs.Session(cluster) as sess:
        plain = sess.run(loop)
        running = aside(sess.run, loop)
        paused(sess)
        sess.step_run()
        stop = stood(sess)
        assert stop.op is None
        assert not stop.loops
        sess.resume()
        for a, b in zip(running.result(60.0), plain, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_move_pauses_a_step_that_runs(cluster, aside):
    loop = chain(20_000)
    with fs.Session(cluster) as sess:
        running = aside(sess.run, loop)
        until(lambda: sess._remote.steps)
        sess.step_op()
        assert stood(sess).op is not None
        sess.resume()
        sess.pause()
        stood(sess)
        sess.resume()
        running.result(60.0)


def test_a_function_is_called_where_it_is_paused_and_steps_it(cluster, aside):
    loop = chain(5_000)
    seen = []
    with fs.Session(cluster) as sess:
        plain = sess.run(loop)

        def look(stop):
            seen.append(stop.op)
            if len(seen) < 5:
                stop.step_op()

        sess.debug.on_stop(look)
        running = aside(sess.run, loop)
        until(lambda: sess._remote.steps)
        sess.pause()
        for a, b in zip(running.result(60.0), plain, strict=True):
            np.testing.assert_array_equal(a, b)
        assert len(seen) == 5


def test_what_that_function_raises_ends_the_step(cluster, aside):
    def look(stop):
        raise ValueError("enough")

    with fs.Session(cluster) as sess:
        sess.debug.on_stop(look)
        running = aside(sess.run, chain(1 << 30))
        until(lambda: sess._remote.steps)
        sess.pause()
        with pytest.raises(ValueError, match="enough"):
            running.result(30.0)
        sess.debug.on_stop(None)
        sess.resume()
        assert sess.run(chain(3))[0] == 3


@pytest.mark.parametrize("how", ["stop", "deadline", "lost", "close"])
def test_a_step_ends_while_it_is_held(cluster, aside, how):
    loop = chain(1 << 30)
    options = fs.RunOptions(timeout_in_ms=1500) if how == "deadline" else None
    sess = fs.Session(cluster)
    running = aside(sess.run, loop, options=options)
    paused(sess)
    for _ in range(3):
        sess.step_op()
        stood(sess)
    if how == "stop":
        sess.stop()
    elif how == "lost":
        sess._remote.lost(worker(1), ConnectionResetError("killed"))
    elif how == "close":
        sess.close()
    wanted = {"deadline": DeadlineExceededError, "lost": UnavailableError}
    with pytest.raises(wanted.get(how, CancelledError)):
        running.result(30.0)
    sess.close()
    assert not [t for t in threading.enumerate() if t.name == "flowscope-joint"]
    with fs.Session(cluster) as other:
        assert other.run(chain(3))[0] == 3


def test_an_error_in_a_turn_is_the_steps_error(cluster, aside):
    def body(i):
        with on(1):
            j = fs.add(i, 1, name="j")
        with on(2), fs.control_dependencies([fs.Assert(j < 1 << 29, ["too many", j])]):
            return fs.identity(j, name="kept")

    loop = fs.while_loop(lambda i: i < (1 << 28), body, [fs.constant(0)])
    with fs.Session(cluster) as sess:
        running = aside(sess.run, loop)
        paused(sess)
        step_to(sess, "while/body/j")
        sess.step_op()
        stood(sess).replace("while/body/j", np.int32(1 << 30))
        while not running.done():
            sess.step_op()
            until(lambda: running.done() or sess.debug.wait(0.01) is not None)
        with pytest.raises(InvalidArgumentError, match="too many") as raised:
            running.result(30.0)
        assert raised.value.device.startswith(worker(2))


def test_update_groups_of_several_workers_stay_whole(cluster, aside):
    with on(0):
        v = fs.Variable(0.0, name="v")
    with on(1):
        w = fs.Variable(0.0, name="w")

    def body(i):
        with on(0):
            g = fs.cast(i, fs.float32) * 0.0 + 1.0
        with on(1):
            h = g * 2.0
        step = fs.train.GradientDescentOptimizer(1.0).apply_gradients([(-g, v), (-h, w)])
        with fs.control_dependencies([step]), on(0):
            return fs.add(i, 1)

    loop = fs.while_loop(lambda i: i < 1 << 30, body, [fs.constant(0)])
    with fs.Session(cluster) as sess:
        sess.run([v.initializer, w.initializer])
        running = aside(sess.run, loop)
        paused(sess)
        for _ in range(40):
            sess.step_op()
            stood(sess)
        sess.stop()
        with pytest.raises(CancelledError):
            running.result(30.0)
        a, b = sess.run([v, w])
        assert a > 0
        assert b == 2 * a


def test_a_program_with_queues_is_paused_and_says_that_it_is_not_stepped(cluster, aside):
    with on(0):
        queue = fs.FIFOQueue(2, [fs.int32], [[]])

    def body(i):
        with fs.control_dependencies([queue.enqueue(i)]), on(1):
            j = queue.dequeue() + 1
        return j

    loop = fs.while_loop(lambda i: i < 1 << 30, body, [0])
    with fs.Session(cluster) as sess:
        running = aside(sess.run, loop)
        until(lambda: sess._remote.steps)
        sess.pause()
        with pytest.raises(FailedPreconditionError, match="not be stepped"):
            sess.step_op()
        sess.stop()
        with pytest.raises(CancelledError):
            running.result(30.0)


def chase(sess, chance, is_over):
    """Pauses, steps and lets go a session's steps at random until it is over; returns how often."""
    count = 0
    while not is_over():
        if not sess._remote.steps:
            continue
        for _ in range(chance.randrange(300)):
            pass
        sess.pause()
        for _ in range(chance.randrange(12)):
            stop = sess.debug.wait(0.02)
            if stop is None or is_over():
                break
            count += stop._step.is_joint
            chance.choice([stop.step_op, stop.step_op, stop.step_op, stop.step_iteration])()
        sess.resume()
    return count


@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
@pytest.mark.parametrize("seed", [1, 2, pytest.param(range(3, 20), marks=pytest.mark.slow)])
def test_random_programs_that_are_stepped_at_random_give_the_same_bits(cluster, aside, seed):
    total = 0
    for each in [seed] if isinstance(seed, int) else seed:
        program, chance = Program(each), random.Random(each)
        want = outcome(program, "compiled")
        for op in program.graph.get_operations():
            op.device = chance.choice(DEVICES)
        sessions = []
        made = aside(outcome, program, "compiled", cluster, seen=sessions.append)
        while not made.done():
            if sessions:
                total += chase(sessions[-1], chance, made.done)
        for run, (a, b) in enumerate(zip(want, made.result(60.0), strict=True)):
            if isinstance(a, tuple) and isinstance(b, tuple):
                break  # where several operations fail, another may be the first
            assert same(a, b), f"seed {each}, {run}: here {shown(a)}, on the cluster {shown(b)}"
    assert isinstance(seed, int) or total > 10  # of one program no step may be met in its midst


def test_it_is_so_in_processes_of_their_own(aside):
    before = own_threads()
    with hosts_apart(3) as (cluster, _):
        loop = chain(20_000)
        with fs.Session(cluster) as sess:
            plain = sess.run(loop)
            running = aside(sess.run, loop)
            paused(sess)
            step_to(sess, "while/body/c")
            stop = stood(sess)
            np.testing.assert_allclose(stop.value("while/body/b"), 2.0 * stop.value("while/body/a"))
            sess.resume()
            for a, b in zip(running.result(60.0), plain, strict=True):
                np.testing.assert_array_equal(a, b)
    assert own_threads() <= before


def test_a_worker_that_hangs_while_it_is_asked_does_not_hold_up_the_end(aside):
    with hosts_apart(3) as (cluster, _), fs.Session(cluster) as sess:
        running = aside(sess.run, chain(1 << 30))
        paused(sess)
        task = cluster.task(worker(1))
        os.kill(task.pid, signal.SIGSTOP)
        try:
            for _ in range(20):  # another one may be behind it
                sess.step_op()
                if sess.debug.wait(0.2) is None:
                    break  # it is asked, and does not answer
            else:
                pytest.fail("the worker that hangs was never asked")
            begin = time.monotonic()
            sess._remote.lost(task.name, TimeoutError("it hangs"))
            with pytest.raises(UnavailableError, match="is lost"):
                running.result(30.0)
            assert time.monotonic() - begin < 5.0
        finally:
            os.kill(task.pid, signal.SIGCONT)
