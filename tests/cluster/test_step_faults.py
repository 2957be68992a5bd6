"""Steps on a cluster that fail, are stopped or run out of time: one end for all, and the cause."""

import threading
import time

import numpy as np
import pytest
from cluster_hosts import hosts_apart, hosts_here, on, worker
from late_steps import late
from own_threads import own_threads
from struck import Strike, raises

import flowscope as fs
from flowscope.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    UnavailableError,
)

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]


@pytest.fixture(scope="module")
def ends():
    with hosts_here(2) as found:
        yield found


@pytest.fixture
def cluster(ends):
    return ends[0]


def endless():
    """A loop over both workers that ends when a queue does, and the run that ends it."""

    def body(i, v):
        with on(1):
            v = v + 1.0
        with on(0):
            return i + 1, v

    def goes_on(i, v):
        with on(0):
            return i >= 0

    with on(0):
        start = fs.constant(0)
    with on(1):
        value = fs.constant(0.0)
    return fs.while_loop(goes_on, body, [start, value])


def is_at_rest(hosts):
    return all(not h.steps.running and not h.endpoint.open_steps() for h in hosts)


def wait_until(is_so, seconds=5.0):
    end = time.monotonic() + seconds
    while not is_so() and time.monotonic() < end:
        threading.Event().wait(0.01)
    assert is_so()


@pytest.mark.parametrize("mode", MODES)
def test_an_error_on_a_worker_is_told_as_one_that_happens_here(ends, mode):
    cluster, hosts = ends
    n = fs.placeholder(fs.int32, [], name="n")
    with on(1):
        y = fs.floordiv(fs.constant(1), n, name="share")
    with on(0):
        z = y + 1
    config = fs.ConfigProto(mode=mode)
    with fs.Session(cluster, config=config) as sess:
        with pytest.raises(InvalidArgumentError, match="division by zero") as caught:
            sess.run(z, {n: 0})
        error = caught.value
        assert error.op is y.op and error.device == worker(1) + "/device:CPU:0"
        assert error.origin.startswith("test_step_faults.py") and "share" in error.source
        assert any("n:0" in line for line in error.inputs)
        assert sess.run(z, {n: 1}) == 2
    assert is_at_rest(hosts)


def test_an_error_here_ends_the_step_on_all_workers(ends):
    cluster, hosts = ends
    n = fs.placeholder(fs.int32, [])
    with on(0):
        queue = fs.FIFOQueue(1, fs.int32, [])
        got = queue.dequeue()
    with on(1):
        more = got + 1
    here = more + fs.floordiv(1, n)
    with fs.Session(cluster) as sess:
        with pytest.raises(InvalidArgumentError, match="division by zero"):
            sess.run(here, {n: 0})
        wait_until(lambda: is_at_rest(hosts))
        with on(0):
            put = queue.enqueue(4)
        sess.run(put)
        assert sess.run(here, {n: 1}) == 6  # what the failed step had taken, if any, is back


@pytest.mark.parametrize("mode", MODES)
def test_a_stop_ends_a_loop_on_all_workers(ends, mode):
    cluster, hosts = ends
    loop = endless()
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        caught = []

        def run():
            try:
                sess.run(loop)
            except CancelledError as e:
                caught.append(e)

        thread = threading.Thread(target=run)
        thread.start()
        wait_until(lambda: all(h.steps.running for h in hosts))
        begun = time.monotonic()
        sess.stop()
        thread.join(5)
        assert not thread.is_alive() and time.monotonic() - begun < 2
        assert len(caught) == 1
        wait_until(lambda: is_at_rest(hosts))
        assert sess.run(fs.constant(1.0)) == 1.0


def test_a_deadline_ends_a_step_that_waits_on_a_worker(ends):
    cluster, hosts = ends
    with on(1):
        queue = fs.FIFOQueue(1, fs.float32, [])
        got = queue.dequeue()
    with on(0):
        more = got + 1.0
    with fs.Session(cluster) as sess:
        late(sess, more, match="150 ms", ms=150, within_s=2.0)
        wait_until(lambda: is_at_rest(hosts))


def test_a_pause_holds_loops_on_workers(ends):
    cluster, _ = ends
    with on(0):
        v = fs.Variable(0, name="count")

    def body(i):
        with on(0), fs.control_dependencies([v.assign_add(1)]):
            return i + 1

    with on(0):
        loop = fs.while_loop(lambda i: i >= 0, body, [fs.constant(0)])
    with fs.Session(cluster) as sess:
        sess.run(v.initializer)
        ended = []

        def run():
            try:
                sess.run(loop)
            except CancelledError:
                ended.append(True)

        thread = threading.Thread(target=run)
        thread.start()
        state = sess.variable_state(v.handle)
        wait_until(lambda: state.writes > 100)
        sess.pause()
        assert sess.debug.wait(5.0) is not None
        before = state.writes
        assert state.writes == before
        sess.resume()
        wait_until(lambda: state.writes > before)
        sess.stop()
        thread.join(5)
        assert ended == [True]


def test_a_closed_session_ends_its_steps(ends):
    cluster, hosts = ends
    loop = endless()
    sess = fs.Session(cluster)
    ended = []

    def run():
        try:
            sess.run(loop)
        except CancelledError as e:
            ended.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: all(h.steps.running for h in hosts))
    sess.close()
    thread.join(5)
    assert len(ended) == 1
    wait_until(lambda: is_at_rest(hosts))


@pytest.mark.slow
def test_failed_steps_leave_nothing_behind(ends):
    cluster, hosts = ends
    n = fs.placeholder(fs.int32, [])
    with on(0):
        a = fs.floordiv(fs.constant(1), n)
    with on(1):
        b = a + 1
    c = b + 1
    with fs.Session(cluster) as sess:

        def fail():
            with pytest.raises(InvalidArgumentError):
                sess.run(c, {n: 0})

        for _ in range(20):
            fail()
        threads = own_threads()
        for _ in range(300):
            fail()
        assert own_threads() <= threads + 2
        assert not cluster.endpoint.open_steps()
        wait_until(lambda: is_at_rest(hosts))
        assert sess.run(c, {n: 1}) == 3


@pytest.mark.slow
def test_a_worker_that_dies_ends_the_step_and_is_named():
    with hosts_apart(2) as (cluster, processes):
        loop = endless()
        with fs.Session(cluster) as sess:
            caught = []

            def run():
                try:
                    sess.run(loop)
                except UnavailableError as e:
                    caught.append(e)

            thread = threading.Thread(target=run)
            thread.start()
            wait_until(lambda: len(sess._remote.steps) == 1)
            threading.Event().wait(0.3)
            begun = time.monotonic()
            processes[1].kill()
            thread.join(5)
            assert time.monotonic() - begun < 2
            assert len(caught) == 1 and worker(1) in str(caught[0])
            with on(0):
                alive = fs.constant(np.float32(1)) + 1.0
            assert sess.run(alive) == 2.0


def pairs(count=2):
    """Variables on workers that are one group, and a step that writes them in a loop."""
    made = []
    for i in range(count):
        with on(i):
            made.append(fs.Variable(0, name=f"v{i}"))

    def body(i):
        with fs.control_dependencies([fs.group(*[v.assign_add(1) for v in made])]):
            return i + 1

    return made, fs.while_loop(lambda i: i >= 0, body, [fs.constant(0)])


@pytest.mark.parametrize("mode", MODES)
def test_a_step_that_is_stopped_leaves_groups_of_several_workers_whole(ends, mode):
    cluster, hosts = ends
    variables, loop = pairs()
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(fs.global_variables_initializer())
        state = sess.variable_state(variables[0].handle)
        for _ in range(5):
            thread = threading.Thread(target=lambda: stopped(sess, loop))
            before = state.writes
            thread.start()
            wait_until(lambda b=before: state.writes > b + 3)
            sess.stop()
            thread.join(10)
            assert not thread.is_alive()
            first, second = sess.run(variables)
            assert first == second > 0
        wait_until(lambda: is_at_rest(hosts))


def stopped(sess, fetches):
    try:
        sess.run(fetches)
    except CancelledError:
        return


@pytest.mark.slow
def test_a_worker_that_dies_leaves_groups_whole_on_those_that_live():
    for _ in range(5):
        with fs.Graph().as_default(), hosts_apart(3) as (cluster, processes):
            variables, loop = pairs(3)
            with fs.Session(cluster) as sess:
                sess.run(fs.global_variables_initializer())
                state = sess.variable_state(variables[0].handle)
                caught = []

                def run(sess=sess, loop=loop, caught=caught):
                    try:
                        sess.run(loop)
                    except UnavailableError as e:
                        caught.append(e)

                thread = threading.Thread(target=run)
                thread.start()
                wait_until(lambda s=state: s.writes > 3)
                processes[2].kill()
                thread.join(5)
                assert len(caught) == 1
                first, second = sess.run(variables[:2])
                assert first == second > 0


def split_over_two():
    with on(0):
        x = fs.random_normal([4])
    with on(1):
        y = x + 1.0
    with on(0):
        return fs.reduce_sum(y - x), x, y


def test_a_worker_that_has_lost_its_client_is_unavailable(ends):
    """It has noticed the end of a connection before the client has."""
    cluster, hosts = ends
    z, *_ = split_over_two()
    with fs.Session(cluster) as sess:
        assert sess.run(z) == pytest.approx(4.0)
        with hosts[0].endpoint._lock:
            peer = hosts[0].endpoint._peers.pop(cluster.endpoint.name)
        cluster.endpoint._peer(worker(0)).idle.clear()  # the next run makes a connection
        try:
            with pytest.raises(UnavailableError, match="which has lost it"):
                sess.run(z)
        finally:
            hosts[0].endpoint._peers[cluster.endpoint.name] = peer
        assert sess.run(z) == pytest.approx(4.0)


def test_a_worker_that_does_not_know_a_plan_any_more_is_unavailable(ends):
    """It has forgotten the sessions of a client that it had given up."""
    cluster, hosts = ends
    z, *_ = split_over_two()
    with fs.Session(cluster) as sess:
        assert sess.run(z) == pytest.approx(4.0)
        hosts[1].steps.client_lost(cluster.endpoint.name)
        with pytest.raises(UnavailableError, match="does not know this plan any more"):
            sess.run(z)
        cluster.lost(worker(1), 1, ConnectionResetError("it had given this client up"))
        assert sess.run(z) == pytest.approx(4.0)


@pytest.mark.parametrize("error", [DeadlineExceededError("late"), KeyboardInterrupt()])
def test_a_step_that_ends_while_it_is_begun_ends_on_the_workers_that_have_begun(
    ends, error, monkeypatch
):
    cluster, hosts = ends
    loop = endless()
    with fs.Session(cluster) as sess:
        with pytest.raises(DeadlineExceededError):  # the plan is there
            sess.run(loop, options=fs.RunOptions(timeout_in_ms=1_000))
        strike = Strike(monkeypatch, cluster.endpoint, "start_packed", raises(error), 1)
        with pytest.raises(type(error), match="late" if str(error) else None):
            sess.run(loop, options=fs.RunOptions(timeout_in_ms=60_000))
        assert strike.struck == 1
        wait_until(lambda: is_at_rest(hosts))


@pytest.mark.parametrize("is_other_lost", [False, True])
def test_a_worker_that_fails_and_does_not_say_why_is_unavailable(ends, is_other_lost, monkeypatch):
    """Its answer does not come in time, be it that the other one is lost meanwhile."""
    cluster, hosts = ends
    n = fs.placeholder(fs.int32, [])
    with on(0):
        y = fs.floordiv(fs.constant(1), n)
    with on(1):
        z = y + 1
    answers = threading.Event()
    monkeypatch.setattr("flowscope.cluster.client.step._ENDS_S", 0.1)
    with fs.Session(cluster) as sess:
        assert sess.run(z, {n: 1}) == 2
        monkeypatch.setattr(
            hosts[0].endpoint, "on_run", held_back(hosts[0].endpoint.on_run, answers)
        )
        if is_other_lost:
            monkeypatch.setattr(hosts[1].endpoint, "on_run", lambda *run: answers.wait(30.0))
        try:
            with pytest.raises(UnavailableError, match="has not said why"):
                sess.run(z, {n: 0})
        finally:
            answers.set()
        wait_until(lambda: is_at_rest(hosts))


def held_back(on_run, answers):
    def run(*arguments):
        found = on_run(*arguments)
        answers.wait(30.0)
        return found

    return run
