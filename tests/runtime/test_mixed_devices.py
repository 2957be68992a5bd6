"""Programs on a CPU and fake GPUs at once: what lies where, and equal results."""

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]


def session(mode, gpus=1):
    return fs.Session(config=fs.ConfigProto(fake_devices={"GPU": gpus}, mode=mode))


def one_cpu():
    return fs.Session(config=fs.ConfigProto(allow_soft_placement=True))


def crossing(program):
    """Returns the transfers of a program: from where, to where, whether into the host's memory."""
    return [
        (n.op.send_device[-5:], n.op.recv_device[-5:], n.op.to_host)
        for n in program.walk()
        if n.op.type == "Transfer"
    ]


def straight():
    x = fs.placeholder(fs.float32, [None], name="x")
    with fs.device("/cpu:0"):
        y = fs.exp(x)
    with fs.device("/gpu:0"):
        z = y * 2.0 + x
        w = fs.reduce_sum(z)
    with fs.device("/cpu:0"):
        last = w + y
    return [y, z, w, last], {x: np.array([1.0, 2.0], "f")}


def loop():
    x = fs.placeholder(fs.float32, [3])

    def body(i, v, total):
        with fs.device("/gpu:0"):
            v = fs.tanh(v) * x
        with fs.device("/cpu:0"):
            return i + 1, v, total + fs.reduce_sum(v)

    with fs.device("/cpu:0"):
        n = fs.reduce_sum(fs.cast(x, fs.int32))
    _, v, total = fs.while_loop(lambda i, *_: i < n, body, [0, x, 0.0])
    return [v, total, *fs.gradients(total, [x])], {x: np.array([1.0, 2.0, 1.0], "f")}


def branches():
    x = fs.placeholder(fs.float32, [2])
    with fs.device("/gpu:0"):
        p = fs.reduce_sum(x) > 1.0

    def then():
        with fs.device("/gpu:0"):
            return fs.exp(x)

    def orelse():
        with fs.device("/cpu:0"):
            return fs.sin(x) - 1.0

    y = fs.cond(p, then, orelse)
    return [y, *fs.gradients(y, [x])], {x: np.array([0.25, 0.5], "f")}


def nested():
    x = fs.placeholder(fs.float32, [2])

    def body(i, v):
        with fs.device("/gpu:0"):
            big = fs.reduce_max(v) > 1.0
        return i + 1, fs.cond(big, lambda: v * 0.5, lambda: inner(v))

    def inner(v):
        def step(j, u):
            with fs.device("/cpu:0"):
                return j + 1, u * 1.5 + x

        return fs.while_loop(lambda j, u: j < 2, step, [0, v])[1]

    y = fs.while_loop(lambda i, v: i < 4, body, [0, x])[1]
    return [y, *fs.gradients(y, [x])], {x: np.array([0.25, 0.5], "f")}


PROGRAMS = {f.__name__: f for f in (straight, loop, branches, nested)}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_on_two_devices_gives_what_the_cpu_gives(name, mode):
    fetches, feeds = PROGRAMS[name]()
    with one_cpu() as cpu:
        there = cpu.run(fetches, feeds)
    with session(mode) as both:
        program = both.plan(fetches, list(feeds)).program
        assert {n.device[-5:] for n in program.walk()} == {"CPU:0", "GPU:0"}
        assert crossing(program)
        for _ in range(2):
            for a, b in zip(both.run(fetches, feeds), there, strict=True):
                assert type(a) is type(b) and a.dtype == b.dtype
                np.testing.assert_array_equal(a, b)


def test_a_value_crosses_once_to_each_device():
    fetches, feeds = straight()
    with session("compiled") as sess:
        program = sess.plan(fetches, list(feeds)).program
    assert sorted(crossing(program)) == [
        ("CPU:0", "GPU:0", False),  # y, for the product
        ("GPU:0", "CPU:0", False),  # w
        ("GPU:0", "GPU:0", False),  # x, which is fed: from the host to the device
    ]


@pytest.mark.parametrize("mode", MODES)
def test_several_gpus_work_on_one_program(mode):
    x = fs.placeholder(fs.float32, [2])
    with fs.device("/gpu:0"):
        y = fs.exp(x) + fs.zeros([2])
    with fs.device("/gpu:1"):
        z = fs.sin(y) * fs.ones([2])
    with session(mode, gpus=2) as sess:
        program = sess.plan([y, z], [x]).program
        assert ("GPU:0", "GPU:1", False) in crossing(program)
        a, b = sess.run([y, z], {x: [0.5, 1.0]})
    np.testing.assert_array_equal(b, np.sin(a))


@pytest.mark.parametrize("mode", MODES)
def test_variables_on_both_devices_are_written_where_they_lie(mode):
    with fs.device("/cpu:0"):
        a = fs.Variable([1.0, 2.0], name="a")
    with fs.device("/gpu:0"):
        b = fs.Variable([3.0, 4.0], name="b")
    loss = fs.reduce_sum(fs.square(a * b))
    train = fs.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
    found = []
    for made in (lambda: session(mode), one_cpu):
        with made() as sess:
            if sess.devices[1:]:
                states = [sess.variable_state(v.handle) for v in (a, b)]
            sess.run(fs.global_variables_initializer())
            for _ in range(3):
                sess.run(train)
            found.append(sess.run([a, b, loss]))
            if sess.devices[1:]:
                assert [sess.devices[1].holds(s.value) for s in states] == [False, True]
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_an_array_on_a_gpu_is_fed_to_both_devices():
    x = fs.placeholder(fs.float32, [2])
    with fs.device("/gpu:0"):
        y = fs.exp(x)
    with fs.device("/cpu:0"):
        z = x + 1.0
    with session("compiled") as sess:
        value = sess.devices[1].put(np.array([0.5, 1.0], "f"))
        got = sess.run([y, z, x], {x: value})
    assert [type(v) for v in got] == [np.ndarray] * 3
    assert got[1].tolist() == [1.5, 2.0]


def test_a_partial_run_leaves_values_on_both_devices():
    a, b = fs.placeholder(fs.float32, [2]), fs.placeholder(fs.float32, [2])
    with fs.device("/gpu:0"):
        x = fs.exp(a)
    with fs.device("/cpu:0"):
        y = x * b
    with session("compiled") as sess:
        handle = sess.partial_run_setup([x, y], [a, b])
        assert sess.partial_run(handle, x, {a: [0, 0]}).tolist() == [1, 1]
        assert sess.partial_run(handle, y, {b: [1, 2]}).tolist() == [1, 2]


def test_a_step_can_be_stepped_through_on_both_devices():
    fetches, feeds = loop()
    with session("compiled") as sess:
        plan = sess.plan(fetches, list(feeds))
        there = sess.run(fetches, feeds)
        by_op = sess._planner.call(object(), fetches, list(feeds), "op")
        assert by_op.plan.program.nodes and plan.executable.by_op is not plan.executable.function
        for a, b in zip(there, sess.run(fetches, feeds), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("mode", MODES)
def test_an_error_names_the_device(mode):
    x = fs.placeholder(fs.int32, [None], name="x")
    with fs.device("/gpu:0"):
        y = fs.gather([1.0, 2.0], x, name="y")
    with fs.device("/cpu:0"):
        z = y + 1.0
    with session(mode) as sess, pytest.raises(ValueError, match=r'(?s)node "y", on .*GPU:0'):
        sess.run(z, {x: [7]})


def test_values_come_late_so_that_few_are_on_the_device_at_once():
    count, size = 24, 1 << 16
    xs = [fs.placeholder(fs.float32, [size]) for _ in range(count)]
    with fs.device("/gpu:0"):
        total = fs.reduce_sum(fs.exp(xs[0]))
        for x in xs[1:]:
            total += fs.reduce_sum(fs.exp(x))
    with session("compiled") as sess:
        sess.run(total, {x: np.zeros(size, "f") for x in xs})
        peak = sess.devices[1].usage().peak_bytes
    assert size * 4 < peak < 6 * size * 4
