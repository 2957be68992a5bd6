"""Sessions whose devices have threads of their own: when they do, and what holds then."""

import threading
import time

import numpy as np
import pytest
from random_programs import Program as RandomProgram

import flowscope as fs
from flowscope.runtime.planning import planner as planner_module
from flowscope.runtime.step.split import SplitFunction

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]


def config(split="always", mode="compiled", count=2, **more):
    return fs.ConfigProto(device_count={"CPU": count}, split_partitions=split, mode=mode, **more)


def is_split(sess, fetches, feeds=()):
    return isinstance(sess._call(fetches, feeds, sess.config.mode).function, SplitFunction)


def until_waiting(sess):
    """Waits until a step is on its way, on two threads."""
    end = time.monotonic() + 30
    while len(sess.gate.inside) < 2:
        assert time.monotonic() < end


def towers(count=3):
    """A model whose layers are on several devices, with its update."""
    x = fs.placeholder(fs.float32, [None, 8], name="x")
    h = x
    for i in range(count):
        with fs.device(f"/cpu:{i % 2}"):
            w = fs.get_variable(
                f"w{i}", [8, 8], initializer=fs.random_uniform_initializer(-1, 1, 7)
            )
            h = fs.tanh(h @ w)
    loss = fs.reduce_mean(fs.square(h))
    train = fs.train.MomentumOptimizer(0.5, 0.9).minimize(loss)
    return x, loss, train


@pytest.mark.parametrize("mode", MODES)
def test_a_model_on_two_devices_trains_to_the_same_bits(mode):
    x, loss, train = towers()
    given = {x: np.linspace(-1, 1, 32, dtype="f").reshape(4, 8)}
    found = []
    for split in ("never", "always"):
        with fs.Session(config=config(split, mode)) as sess:
            sess.run(fs.global_variables_initializer())
            assert is_split(sess, [loss, train], [x]) is (split == "always")
            losses = [sess.run([loss, train], given)[0] for _ in range(5)]
            found.append([*losses, *sess.run(fs.global_variables())])
    for a, b in zip(*found, strict=True):
        assert np.array_equal(a, b)


def test_one_device_is_never_split():
    x = fs.placeholder(fs.float32, [2])
    with fs.Session(config=config()) as sess:
        assert not is_split(sess, x + 1.0, [x])
        assert sess.run(x + 1.0, {x: [1, 2]}).tolist() == [2, 3]


def test_a_wrong_wish_is_refused():
    with pytest.raises(fs.errors.InvalidArgumentError, match='"auto", "always" or "never"'):
        fs.Session(config=fs.ConfigProto(split_partitions="sometimes"))


def loops(size, trips=50):
    """Two loops' worth of independent work in one loop, on two devices."""
    x = fs.placeholder(fs.float32, [size, size])

    def body(i, a, b):
        with fs.device("/cpu:0"):
            a = fs.tanh(a @ a)
        with fs.device("/cpu:1"):
            b = fs.tanh(b @ b)
        return i + 1, a, b

    return x, fs.while_loop(lambda i, *_: i < trips, body, [0, x, x])[1:]


@pytest.mark.parametrize(
    ("size", "cores", "split"), [(8, 2, False), (512, 1, False), (512, 2, True)]
)
def test_loops_are_split_where_that_is_predicted_to_pay(monkeypatch, size, cores, split):
    monkeypatch.setattr(planner_module, "available_cores", lambda: cores)
    x, found = loops(size)
    with fs.Session(config=config("auto")) as sess:
        assert is_split(sess, list(found), [x]) is split


def test_one_thread_is_kept_where_that_was_asked_for(monkeypatch):
    monkeypatch.setattr(planner_module, "available_cores", lambda: 2)
    x, found = loops(512)
    with fs.Session(config=config("auto", inter_op_parallelism_threads=1)) as sess:
        assert not is_split(sess, list(found), [x])


def test_with_breakpoints_and_traces_one_thread_runs_the_step():
    x, loss, _ = towers()
    given = {x: np.ones((2, 8), "f")}
    with fs.Session(config=config()) as sess:
        sess.run(fs.global_variables_initializer())
        there = sess.run(loss, given)
        options = fs.RunOptions(trace_level=fs.RunOptions.FULL_TRACE)
        metadata = fs.RunMetadata()
        assert sess.run(loss, given, options=options, run_metadata=metadata) == there
        assert metadata.step_stats.dev_stats
        assert sess.run(loss, given) == there


def grouped():
    """Variables on two devices, which one group keeps equal; and what fails in between or not."""
    step = fs.placeholder(fs.float32, [], name="step")
    bad = fs.placeholder(fs.int32, [], name="bad")
    with fs.device("/cpu:0"):
        a = fs.Variable(np.zeros(4, "f"), name="a")
    with fs.device("/cpu:1"):
        b = fs.Variable(np.zeros(4, "f"), name="b")
        late = fs.fill([bad], step)
    both = fs.group(a.assign_add(fs.fill([4], step)), b.assign_add(late))
    return step, bad, a, b, both


@pytest.mark.parametrize("mode", MODES)
def test_a_group_on_two_devices_is_done_as_a_whole_or_not(mode):
    step, bad, a, b, both = grouped()
    with fs.Session(config=config(mode=mode)) as sess:
        sess.run(fs.global_variables_initializer())
        sess.run(both, {step: 1.0, bad: 4})
        for _ in range(20):
            with pytest.raises(fs.errors.InvalidArgumentError):
                sess.run(both, {step: 1.0, bad: 3})
            assert [v.tolist() for v in sess.run([a, b])] == [[1.0] * 4, [1.0] * 4]


@pytest.mark.parametrize("mode", MODES)
def test_a_stop_splits_no_group_on_two_devices(mode):
    with fs.device("/cpu:0"):
        a = fs.Variable(0, name="a")
    with fs.device("/cpu:1"):
        b = fs.Variable(0, name="b")

    def body(i):
        with fs.control_dependencies([fs.group(a.assign_add(1), b.assign_add(1))]):
            return i + 1

    forever = fs.while_loop(lambda i: i >= 0, body, [0])
    with fs.Session(config=config(mode=mode)) as sess:
        for _ in range(5):
            sess.run(fs.global_variables_initializer())
            call = sess._call(forever, (), mode)
            assert isinstance(call.function, SplitFunction)

            def stop(sess=sess):
                until_waiting(sess)
                sess.gate.request("stop")

            thread = threading.Thread(target=stop)
            thread.start()
            with pytest.raises(fs.errors.CancelledError):
                sess.run(forever)
            thread.join()
            x, y = sess.run([a, b])
            assert x == y


@pytest.mark.parametrize("mode", MODES)
def test_queues_beside_devices_delay_nobody(mode):
    with fs.device("/cpu:0"):
        queue = fs.FIFOQueue(10, fs.float32, shapes=[[]])
        put = queue.enqueue(2.0)
        taken = queue.dequeue()
    with fs.device("/cpu:1"):
        twice = taken * 2.0
        other = fs.tanh(fs.constant(0.0)) + 1.0
    with fs.Session(config=config(mode=mode)) as sess:
        sess.run(put)
        assert sess.run([twice, other]) == [4.0, 1.0]
        filler = threading.Thread(target=lambda: (until_waiting(sess), sess.run(put)))
        filler.start()
        assert sess.run([twice, other]) == [4.0, 1.0]
        filler.join()


@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", [pytest.param(i, marks=pytest.mark.slow) for i in range(20)])
def test_random_programs_on_many_threads_do_what_one_thread_does(seed, mode):
    found = []
    for split in ("never", "always"):
        program = RandomProgram(seed)
        for i, op in enumerate(program.graph.get_operations()):
            if op.type in ("Tanh", "Mul", "Add", "AddV2", "MatMul", "Sum"):
                op.device = f"/cpu:{i % 3}"
        with fs.Session(graph=program.graph, config=config(split, mode, 3)) as sess:
            sess.run(program.initializer)
            for arrays in program.fed:
                feeds = {t: a for (t, _), a in zip(program.feeds, arrays, strict=True)}
                try:
                    values = sess.run(program.fetches, feeds)
                    found.append([np.asarray(v).tobytes() for v in values])
                except fs.errors.OpError as e:
                    found.append(type(e))
            found.append([np.asarray(v).tobytes() for v in sess.run(program.variables)])
    half = len(found) // 2
    assert found[:half] == found[half:]
