"""Sessions on a cluster: the same graph, the same results, wherever its operations are."""

import gc
import os
import threading

import numpy as np
import pytest
from cluster_hosts import hosts_apart, hosts_here, on, worker

import flowscope as fs
from flowscope.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]


@pytest.fixture(scope="module")
def ends():
    with hosts_here(3) as found:
        yield found


@pytest.fixture
def cluster(ends):
    return ends[0]


def counting(trips=10):
    """A loop whose counter and sum are on different workers."""

    def body(i, total):
        with on(1):
            total = total + fs.cast(i, fs.float32)
        with on(0):
            return i + 1, total

    with on(0):
        start, limit = fs.constant(0), fs.constant(trips)

    def goes_on(i, total):
        with on(0):
            return i < limit

    return fs.while_loop(goes_on, body, [start, fs.constant(0.0)])


@pytest.mark.parametrize("mode", MODES)
def test_a_product_a_variable_and_a_loop_run_on_two_workers(cluster, mode):
    with on(0):
        v = fs.Variable(np.ones((3, 2)), name="v")
        product = fs.matmul(fs.constant(np.arange(6.0).reshape(2, 3)), v)
    with on(1):
        w = fs.Variable(np.zeros((2, 2)), name="w")
        added = w.assign_add(product)
    loop = counting()
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(fs.global_variables_initializer())
        first, (count, total) = sess.run([added + 0.0, loop])
        np.testing.assert_array_equal(first, [[3.0, 3.0], [12.0, 12.0]])
        assert (count, total) == (10, 45.0)
        assert sess.run(added)[1, 1] == 24.0
        found = {v.op.name: sess.placements[v.op.id] for v in (product, added)}
    assert found[product.op.name] == worker(0) + "/device:CPU:0"


def test_what_asks_for_no_device_runs_where_the_user_is(cluster):
    x = fs.constant(1.0) + 2.0
    with fs.Session(cluster) as sess:
        assert sess.run(x) == 3.0
        assert sess.placements[x.op.id] == "/job:client/replica:0/task:0/device:CPU:0"
        assert len(sess.list_devices()) == 4
        assert sess.sess_str == cluster.target and sess.cluster is cluster


def test_large_and_small_feeds_and_fetches_cross(cluster):
    x = fs.placeholder(fs.float32, [None])
    s = fs.placeholder(fs.string, [])
    with on(2):
        y, t = x * 2.0, fs.strings.join([s, b"!"])
    with fs.Session(cluster) as sess:
        for size in (0, 1, 1 << 20):
            fed = np.arange(size, dtype="f")
            got, word = sess.run([y, t], {x: fed, s: "hello"})
            np.testing.assert_array_equal(got, fed * 2)
            assert word == b"hello!"
            got[...] = 7  # it is the user's
        assert sess.run(y, {x: np.ones(2, "f")}).tolist() == [2.0, 2.0]


def test_a_variable_that_has_no_value_is_named_before_the_step(cluster):
    with on(1):
        v = fs.Variable(1.0, name="far")
        w = fs.Variable(1.0, name="near")
    with fs.Session(cluster) as sess:
        sess.run(w.initializer)
        with pytest.raises(FailedPreconditionError, match='no value yet: "far"'):
            sess.run(v + w)
        sess.run(v.initializer)
        assert sess.run(v + w) == 2.0


def test_variables_on_workers_are_listed_with_what_these_say(cluster):
    with on(0):
        v = fs.Variable([1.0, 3.0], name="v")
    with on(1):
        large = fs.Variable(fs.zeros([1 << 21]), name="large")
        fs.Variable(1.0, name="later")
    here = fs.Variable(2.0, name="here")
    with fs.Session(cluster) as sess:
        sess.run([v.initializer, large.initializer, here.initializer])
        sess.run(v.assign_add([1.0, 1.0]))
        listed = sess.variables(statistics=True)
    found = {one.name: one for one in listed}
    told = {n: (one.is_initialized, one.written_in, one.nbytes) for n, one in found.items()}
    assert told == {
        "v": (True, 1, 8), "large": (True, 0, 1 << 23), "later": (False, None, 0),
        "here": (True, 0, 4),
    }  # fmt: skip
    assert (found["v"].statistics.min, found["v"].statistics.max) == (2.0, 4.0)
    assert found["large"].statistics is None
    assert "bytes is on /job:worker/replica:0/task:1: fetch what you want" in found["large"].why
    assert found["v"].device.startswith(worker(0))
    assert listed.nbytes == 8 + (1 << 23) + 4


def test_state_has_one_place_whatever_is_fetched_with_it(cluster):
    v = fs.Variable(1.0, name="anywhere")
    with on(1):
        doubled = v.assign(fs.constant(2.0))
    config = fs.ConfigProto(allow_soft_placement=True)
    with fs.Session(cluster, config=config) as sess:
        sess.run(v.initializer)
        assert sess.run(doubled) == 2.0
        assert sess.run(v) == 2.0


def test_queues_are_on_workers_and_wait_there(cluster):
    with on(1):
        queue = fs.FIFOQueue(10, fs.float32, [])
        put, got = queue.enqueue(2.5), queue.dequeue()
    with on(2):
        more = got + 1.0
    with fs.Session(cluster) as sess:
        found = []
        waits = threading.Thread(target=lambda: found.append(sess.run(more)))
        waits.start()
        sess.run(put)
        waits.join()
        assert found == [3.5]


@pytest.mark.parametrize("mode", MODES)
def test_random_numbers_are_those_of_one_process(cluster, mode):
    fs.set_random_seed(3)
    with on(0):
        a = fs.random_uniform([4])
    with on(1):
        b = fs.random_normal([4]) + a
    config = fs.ConfigProto(mode=mode, allow_soft_placement=True)
    with fs.Session(config=config) as here, fs.Session(cluster, config=config) as there:
        for _ in range(2):
            for x, y in zip(here.run([a, b]), there.run([a, b]), strict=True):
                np.testing.assert_array_equal(x, y)


def test_a_python_function_runs_where_the_user_is_unless_it_is_sent(cluster):
    found = []

    def note(x):
        found.append(float(x))
        return x

    with on(0):
        x = fs.constant(1.0)
    with fs.device("/job:client/task:0"):
        stays = fs.py_func(note, [x], fs.float32)
    offset = 4.0
    with on(1):
        goes = fs.py_func(lambda x: np.float32(x + offset), [x], fs.float32)
    with fs.Session(cluster) as sess:
        assert sess.run([stays, goes]) == [1.0, 5.0]
    assert found == [1.0]


def test_steps_of_several_threads_are_under_way_at_a_time(cluster):
    with on(0):
        queue = fs.FIFOQueue(10, fs.float32, [])
        put, got = queue.enqueue(1.0), queue.dequeue()
    with on(1):
        result = got * 2.0
    with fs.Session(cluster) as sess:
        found = []
        threads = [
            threading.Thread(target=lambda: found.append(sess.run(result))) for _ in range(8)
        ]
        for each in threads:
            each.start()
        for _ in threads:
            sess.run(put)
        for each in threads:
            each.join()
    assert found == [2.0] * 8


def test_partial_runs_and_callables_reach_workers(cluster):
    x, y = fs.placeholder(fs.float32, []), fs.placeholder(fs.float32, [])
    with on(0):
        a = x + 1.0
    with on(1):
        b = a * y
    with fs.Session(cluster) as sess:
        function = sess.make_callable(b, [x, y])
        assert function(1.0, 3.0) == 6.0
        handle = sess.partial_run_setup([a, b], [x, y])
        assert sess.partial_run(handle, a, {x: 2.0}) == 3.0
        assert sess.partial_run(handle, b, {y: 4.0}) == 12.0


def test_plans_go_when_the_session_drops_them(ends):
    cluster, hosts = ends
    with on(0):
        x = fs.constant(1.0)
    sess = fs.Session(cluster, config=fs.ConfigProto(plan_cache_size=2))
    with on(0):
        for i in range(6):
            assert sess.run(x + float(i)) == 1.0 + i
    (hosted,) = [s for (client, _), s in hosts[0].steps._sessions.items()
                 if client == cluster.endpoint.name and s.plans][-1:]  # fmt: skip
    gc.collect()
    cluster.endpoint.call(worker(0), {"kind": "variables", "session": 0, "names": []}, 5)
    assert len(hosted.plans) <= 3
    number = len(hosts[0].steps._sessions)
    sess.close()
    cluster.endpoint.call(worker(0), {"kind": "variables", "session": 0, "names": []}, 5)
    assert len(hosts[0].steps._sessions) < number


def test_a_target_is_a_cluster_or_what_one_is_called():
    with pytest.raises(NotFoundError, match="connected cluster"):
        fs.Session("dask://nowhere")
    with pytest.raises(DTypeError, match="connected cluster"):
        fs.Session(3)


def test_a_device_that_no_task_has_is_refused_with_those_that_there_are(cluster):
    with fs.device("/job:worker/task:7"):
        x = fs.constant(1.0) + 1.0
    with fs.Session(cluster) as sess, pytest.raises(InvalidArgumentError, match="task:7"):
        sess.run(x)


def test_savers_write_where_the_user_is_and_restore_on_any_worker(cluster, tmp_path):
    with on(0):
        v = fs.Variable(np.arange(3.0), name="v")
    with on(1):
        w = fs.Variable(np.ones((2, 2), "f"), name="w")
    saver = fs.train.Saver()
    with fs.Session(cluster) as sess:
        sess.run(fs.global_variables_initializer())
        sess.run(v.assign_add(np.ones(3)))
        path = saver.save(sess, str(tmp_path / "model"))
    with fs.Session(cluster) as sess:
        with pytest.raises(FailedPreconditionError):
            sess.run(v)
        saver.restore(sess, path)
        np.testing.assert_array_equal(sess.run(v), np.arange(3.0) + 1)
        np.testing.assert_array_equal(sess.run(w), np.ones((2, 2)))


def test_named_containers_outlive_sessions_and_are_shared(cluster):
    with on(1), fs.container("shared"):
        v = fs.Variable(3.0, name="kept")
    with on(1):
        own = fs.Variable(3.0, name="own")
    with fs.Session(cluster) as sess:
        sess.run(fs.global_variables_initializer())
    with fs.Session(cluster) as sess:
        assert sess.run(v) == 3.0
        with pytest.raises(FailedPreconditionError, match="own"):
            sess.run(own)


@pytest.mark.parametrize("mode", MODES)
def test_an_optimizer_trains_variables_on_several_workers(cluster, mode):
    x = fs.placeholder(fs.float32, [None, 2])
    with on(0):
        w = fs.Variable(np.zeros((2, 3), "f"), name="w")
        h = fs.tanh(x @ w + 0.5)
    with on(1):
        u = fs.Variable(np.ones((3, 1), "f"), name="u")
        loss = fs.reduce_mean(fs.square(h @ u - 1.0))
    train = fs.train.AdamOptimizer(0.1).minimize(loss)
    feed = {x: np.array([[0.5, -1.0], [2.0, 0.1]], "f")}
    config = fs.ConfigProto(mode=mode, allow_soft_placement=True)
    with fs.Session(config=config) as here, fs.Session(cluster, config=config) as there:
        for sess in (here, there):
            sess.run(fs.global_variables_initializer())
        for _ in range(5):
            assert here.run([loss, train], feed)[0] == there.run([loss, train], feed)[0]
        for a, b in zip(here.run([w, u]), there.run([w, u]), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_python_function_reaches_the_process_that_it_asks_for(mode):
    offset, here = 4.0, os.getpid()
    with hosts_apart(1) as (apart, _):
        with on(0):
            pid = fs.py_func(lambda: np.int64(os.getpid()), [], fs.int64)
            moved = fs.py_func(lambda v: np.float32(v + offset), [fs.constant(1.0)], fs.float32)
        stays = fs.py_func(lambda: np.int64(os.getpid()), [], fs.int64)
        with fs.Session(apart, config=fs.ConfigProto(mode=mode)) as sess:
            there, value, own = sess.run([pid, moved, stays])
    assert (value, own) == (5.0, here) and there != here
