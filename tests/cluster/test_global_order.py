"""A distributed step under the debugger: one operation of the whole step at a time."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cluster_hosts import hosts_here, on, worker

import flowscope as fs
from flowscope.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    UnavailableError,
    UnimplementedError,
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


def power(trips=4):
    """A loop: one worker multiplies, the other one counts."""
    with on(0):
        matrix = fs.constant(np.array([[1.0, 1.0], [0.0, 1.0]], np.float32), name="matrix")
        start = fs.ones((2, 2), name="start")

    def body(i, x):
        with on(0):
            x = fs.matmul(x, matrix, name="product")
        with on(1):
            return fs.add(i, 1, name="next"), x

    with on(1):
        zero, limit = fs.constant(0), fs.constant(trips)

    def goes_on(i, x):
        with on(1):
            return i < limit

    return fs.while_loop(goes_on, body, [zero, start])


@pytest.mark.parametrize("mode", MODES)
def test_a_breakpoint_on_a_worker_holds_the_step_with_values_of_all(cluster, mode):
    loop = power()
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        plain = sess.run(loop)
        point = sess.debug.break_after("while/body/product", iteration=2)
        found = []

        def look(stop):
            found.append((stop.op, stop.iterations, stop.value("while/body/product")))
            found.append(stop.values()["while/body/product:0"].max)
            found.append(stop.value("while/body/product", np.s_[0, 1:]).tolist())
            found.append(repr(stop))

        sess.debug.on_stop(look)
        again = sess.run(loop)
        np.testing.assert_array_equal(found[0][2], [[1.0, 4.0], [1.0, 4.0]])
        assert found[0][1] == (2,)
        assert found[1:3] == [4.0, [4.0]]
        assert worker(1) in found[3]
        assert point.hits == 1
    assert plain[0] == again[0]
    assert plain[1].tobytes() == again[1].tobytes()


def held(sess):
    return sess.debug.wait(30.0)


def test_one_move_is_one_operation_of_the_whole_step(cluster, aside):
    loop = power(3)
    with fs.Session(cluster) as sess:
        plain = sess.run(loop)
        sess.debug.break_before("while/body/product", iteration=0)
        running = aside(sess.run, loop)
        seen = []
        stop = held(sess)
        sess.debug.clear()
        while stop.op is None or stop.iterations[0] < 2:
            if stop.op is not None and stop.op.type != "Const":
                seen.append((stop.op.name.rpartition("/")[2], stop.device, stop.iterations[0]))
            stop.step_op()
            stop = held(sess)
        stop.step_iteration()
        assert held(sess).op is None
        sess.resume()
        count, value = running.result(30.0)
    assert count == plain[0]
    assert value.tobytes() == plain[1].tobytes()
    first, other = worker(0) + "/device:CPU:0", worker(1) + "/device:CPU:0"
    told = [one for one in seen if one[0] in ("product", "next")]
    assert told == [
        ("product", first, 0), ("next", other, 0), ("product", first, 1), ("next", other, 1)
    ]  # fmt: skip


def test_a_value_of_a_worker_is_replaced_as_if_it_were_fed(cluster):
    with on(0):
        a = fs.constant([1.0, 2.0]) + fs.ones([2])
    with on(1):
        b = a * 3.0
    with fs.Session(cluster, config=fs.ConfigProto(mode="op")) as sess:
        expected = sess.run(b, {a: np.array([7.0, 9.0], np.float32)})
        sess.debug.break_after(a)
        sess.debug.on_stop(lambda stop: stop.replace(a, np.array([7.0, 9.0], np.float32)))
        assert sess.run(b).tobytes() == expected.tobytes()


def test_what_is_not_finite_is_named_with_its_worker_iteration_and_step(cluster):
    with on(0):
        start = fs.constant([4.0, 2.0])

    def body(i, x):
        with on(1):
            y = fs.subtract(x, 1.0, name="less")
        with on(0):
            return i + 1, fs.log(y, name="root")

    with on(0):
        loop = fs.while_loop(lambda i, x: i < 5, body, [fs.constant(0), start])
    with fs.Session(cluster) as sess:
        sess.run(loop)
        watch = sess.debug.watch()
        with pytest.raises(InvalidArgumentError, match="while/body/root.*iteration 1, step 1") as e:
            sess.run(loop)
        assert worker(0) in str(e.value)
        assert watch.found.op.name == "while/body/root"


def test_slow_motion_moves_by_operations_of_all_workers(cluster):
    loop = power(2)
    with fs.Session(cluster) as sess:
        plain = sess.run(loop)
        sess.gate.set_pace(0.001)
        count = sess.gate.moves.count
        value = sess.run(loop)[1]
        names = [m.node.name.rpartition("/")[2] for m in sess.gate.moves.since(count)]
    assert [n for n in names if n in ("product", "next")] == ["product", "next"] * 2
    assert value.tobytes() == plain[1].tobytes()


def test_conditions_are_asked_where_the_value_is(cluster):
    loop = power(6)
    with fs.Session(cluster) as sess:
        at = []
        sess.debug.break_after("while/body/product", when="max > 3 and iteration < 5", hits=2)
        sess.debug.on_stop(lambda stop: at.append(stop.iterations))
        sess.run(loop)
    assert at == [(3,), (4,)]


def updated():
    """Variables on two workers, updated together; the last update fails if x is not finite."""
    with on(0):
        v = fs.Variable(np.ones(2, np.float32), name="v")
    with on(1):
        w = fs.Variable(np.ones(2, np.float32), name="w")
    loss = fs.reduce_sum(fs.square(v)) + fs.reduce_sum(fs.square(w))
    return v, w, fs.train.GradientDescentOptimizer(0.1).minimize(loss)


def test_an_update_of_two_workers_is_done_by_single_operations(cluster):
    v, w, train = updated()
    with fs.Session(cluster) as sess:
        sess.run(fs.global_variables_initializer())
        sess.run(train)
        plain = [x.tobytes() for x in sess.run([v, w])]
        sess.run(fs.global_variables_initializer())
        sess.debug.break_before(op_type="Square", when=lambda x: False)
        sess.run(train)
        assert [x.tobytes() for x in sess.run([v, w])] == plain


def test_nothing_stays_on_workers_when_steps_have_ended(ends):
    cluster, hosts = ends
    loop = power()
    with fs.Session(cluster) as sess:
        sess.debug.break_before("while/body/product", when=lambda x: False)
        for _ in range(3):
            sess.run(loop)
        for host in hosts:
            session = host.steps.session(cluster.endpoint.name, sess._remote.number)
            cluster.endpoint.call(host.name, {"kind": "variables", "session": 0, "names": []}, 5.0)
            assert not session.held.values


def test_a_stop_and_a_deadline_end_a_held_step_and_the_next_one_runs(cluster, aside):
    loop = power()
    with fs.Session(cluster) as sess:
        plain = sess.run(loop)
        sess.debug.break_before("while/body/product")
        running = aside(sess.run, loop)
        held(sess)
        sess.stop()
        with pytest.raises(CancelledError):
            running.result(30.0)
        with pytest.raises(DeadlineExceededError):
            sess.run(loop, options=fs.RunOptions(timeout_in_ms=300))
        sess.debug.clear()
        sess.resume()
        assert sess.run(loop)[1].tobytes() == plain[1].tobytes()


def test_a_worker_that_is_lost_while_the_step_is_held_ends_it(cluster, aside):
    loop = power()
    with fs.Session(cluster) as sess:
        sess.debug.break_before("while/body/product")
        running = aside(sess.run, loop)
        held(sess)
        sess._remote.lost(worker(1), ConnectionResetError("killed"))
        with pytest.raises(UnavailableError, match="is lost"):
            running.result(30.0)


def test_what_a_client_has_held_goes_with_it(ends, aside):
    cluster, hosts = ends
    loop = power()
    with fs.Session(cluster) as sess:
        sess.debug.break_before("while/body/product")
        running = aside(sess.run, loop)
        held(sess)
        session = hosts[0].steps.session(cluster.endpoint.name, sess._remote.number)
        assert session.held.values
        hosts[0].steps.client_lost(cluster.endpoint.name)
        assert hosts[0].steps.session(cluster.endpoint.name, sess._remote.number) is not session
        sess.debug.clear()
        sess.resume()
        with pytest.raises(UnavailableError, match="does not know this plan"):
            running.result(30.0)


def test_a_program_with_a_queue_on_a_worker_says_that_it_is_not_stepped(cluster):
    with on(0):
        queue = fs.FIFOQueue(2, [fs.float32], [[]])
        put = queue.enqueue(1.0)
        got = queue.dequeue() + 1.0
    with fs.Session(cluster) as sess:
        sess.run(put)
        assert sess.run(got) == 2.0
        sess.debug.break_before(got)
        with pytest.raises(InvalidArgumentError, match="queues, locks or primitives"):
            sess.run(got)


def test_recording_is_refused(cluster):
    with on(0):
        v = fs.Variable(1.0)
    with fs.Session(cluster) as sess:
        sess.run(v.initializer)
        with pytest.raises(UnimplementedError, match="session of this process"):
            sess.debug.record(v)
        assert sess.run(v.assign_add(1.0)) == 2.0, "nothing was begun"


def test_steps_of_threads_that_are_slowed_do_not_mix_their_values(cluster):
    """Each takes numbers for its values while the other one does."""
    rows = fs.placeholder(fs.float32, [4, 2])
    with on(0):
        parts = fs.split(rows, 4, name="parts")
    with on(1):
        both = fs.add_n(fs.unstack(fs.concat(parts, 0)))
    with fs.Session(cluster) as sess, ThreadPoolExecutor(4) as threads:
        sess.debug.break_after(both.op, step=1 << 40)
        feeds = [np.full((4, 2), i, np.float32) for i in range(40)]
        found = list(threads.map(lambda feed: sess.run(both, {rows: feed}), feeds))
    assert [f.tolist() for f in found] == [[4.0 * i] * 2 for i in range(40)]
