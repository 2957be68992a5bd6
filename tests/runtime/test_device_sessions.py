"""Sessions with a GPU, a fake one: what runs where, and what crosses."""

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture(params=["compiled", "op"])
def gpu(request, graph):
    config = fs.ConfigProto(fake_devices={"GPU": 1}, mode=request.param)
    with fs.Session(graph=graph, config=config) as session:
        yield session


def place(session, *fetches, feeds=()):
    return session.plan(list(fetches), feeds).program.device[-5:]


def test_a_session_lists_its_devices(gpu):
    assert [d.name[-5:] for d in gpu.list_devices()] == ["CPU:0", "GPU:0"]
    assert [d.device_type for d in gpu.list_devices()] == ["CPU", "GPU"]
    assert all(isinstance(d.memory_limit_bytes, int) for d in gpu.list_devices())


def test_a_count_is_a_limit_and_a_cpu_is_always_there(graph):
    config = fs.ConfigProto(device_count={"CPU": 0, "GPU": 0})
    assert [d.name[-5:] for d in fs.Session(config=config).list_devices()] == ["CPU:0"]


def test_a_program_with_kernels_for_it_runs_on_the_gpu(gpu):
    x = fs.placeholder(fs.float32, [None, 2])
    y = fs.matmul(x, fs.constant([[1.0], [2.0]])) + 1.0
    got = gpu.run(y, {x: [[1, 1], [2, 2]]})
    assert place(gpu, y, feeds=[x]) == "GPU:0"
    assert type(got) is np.ndarray and got.tolist() == [[4], [7]]
    assert type(gpu.run(fs.reduce_sum(y), {x: [[1, 1]]})) is np.float32


def test_variables_live_on_the_device_that_wrote_them(gpu):
    v = fs.Variable(np.zeros(3, np.float32))
    up = v.assign_add(np.ones(3, np.float32))
    gpu.run(v.initializer)
    device = gpu.list_devices()[1]
    state = gpu.variable_state(v.handle)
    assert device.holds(state.value)
    assert gpu.run(up).tolist() == [1, 1, 1]
    assert device.holds(state.value)
    assert gpu.run(v).tolist() == [1, 1, 1]
    assert type(gpu.run(v)) is np.ndarray


def test_a_variable_stays_where_it_is_whoever_reads_it(gpu):
    v = fs.Variable(np.zeros(2, np.float32))
    up = v.assign_add(np.ones(2, np.float32))
    with fs.device("/cpu:0"):
        x = fs.negative(fs.placeholder_with_default([10.0, 20.0], [2]))
        y = v - x
    write = v.assign_sub(x)
    gpu.run(v.initializer)
    gpu.run(up.op)
    for fetch, value in ((y, [11, 21]), (write, [11, 21]), (up, [12, 22])):
        assert gpu.run(fetch).tolist() == value
        assert gpu.list_devices()[1].holds(gpu.variable_state(v.handle).value)


@pytest.mark.parametrize("value", [[b"a", b"b"], fs.constant], ids=["strings", "bfloat16"])
def test_values_that_a_gpu_cannot_hold_stay_on_the_cpu(gpu, value):
    if value is fs.constant:
        x = fs.identity(fs.cast(fs.constant([1.5]), fs.bfloat16))
    else:
        x = fs.identity(fs.constant(value))
    got = gpu.run(x)
    assert place(gpu, x) in ("CPU:0", "")
    assert got.tolist() == ([1.5] if value is fs.constant else value)


def test_what_only_a_gpu_can_do_is_done_there(gpu, monkeypatch):
    from flowscope.ops.math.elementwise import Exp

    monkeypatch.setattr(Exp, "devices", ("GPU",))
    with fs.device("/cpu:0"):
        x = fs.constant([1.0]) * fs.placeholder_with_default([2.0], [1])
    y = fs.exp(x)
    assert gpu.run(y) == pytest.approx([np.exp(2)])
    assert {n.name: n.device[-5:] for n in gpu.plan(y).program.nodes}[y.op.name] == "GPU:0"


def test_feeds_that_lie_on_the_device_stay_there(gpu):
    x = fs.placeholder(fs.float32, [None])
    device = gpu.list_devices()[1]
    value = device.put(np.ones(3, np.float32))
    meta = fs.RunMetadata()
    got = gpu.run(x * 2.0, {x: value}, run_metadata=meta)
    assert got.tolist() == [2, 2, 2]
    assert meta.step_stats.feeds[0].copied == ""
    with pytest.raises(ValueError, match=r"expected float32, got float64, on a device"):
        gpu.run(x * 2.0, {x: device.put(np.ones(3))})
    with pytest.raises(ValueError, match=r"expected shape \[\?\], got \[1,1\]"):
        gpu.run(x * 2.0, {x: device.put(np.ones((1, 1), np.float32))})


def test_random_numbers_are_those_of_the_cpu(graph):
    fs.set_random_seed(5)
    xs = [
        fs.random_normal([3]),
        fs.random_uniform([2], 1, 9, fs.int32),
        fs.truncated_normal([4]),
        fs.random_shuffle(fs.range(5)),
        fs.multinomial([[0.0, 1.0]], 4),
    ]
    with fs.Session() as cpu, fs.Session(config=fs.ConfigProto(fake_devices={"GPU": 1})) as gpu:
        for a, b in zip(cpu.run(xs), gpu.run(xs), strict=True):
            np.testing.assert_array_equal(a, b)
        assert place(gpu, *xs) == "GPU:0"


OPTIMIZERS = {
    "sgd": lambda: fs.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: fs.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: fs.train.AdamOptimizer(0.1),
    "adagrad": lambda: fs.train.AdagradOptimizer(0.1),
    "adadelta": lambda: fs.train.AdadeltaOptimizer(0.1),
    "rmsprop": lambda: fs.train.RMSPropOptimizer(0.1, centered=True),
    "ftrl": lambda: fs.train.FtrlOptimizer(0.1),
}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_training_on_the_fake_gpu_gives_what_the_cpu_gives(graph, make, is_sparse):
    w = fs.Variable(np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2))
    part = fs.gather(w, [1, 3, 1]) if is_sparse else w
    train = make().minimize(fs.reduce_sum(fs.square(part - 1.0)))
    with fs.Session() as cpu, fs.Session(config=fs.ConfigProto(fake_devices={"GPU": 1})) as gpu:
        for sess in (cpu, gpu):
            sess.run(fs.global_variables_initializer())
            for _ in range(3):
                sess.run(train)
        assert place(gpu, train) == "GPU:0"
        np.testing.assert_allclose(gpu.run(w), cpu.run(w), rtol=1e-6)


@pytest.mark.parametrize("how", ["add", "sub", "update", "mul", "div", "min", "max"])
def test_scatters_on_the_fake_gpu(gpu, how):
    v = fs.Variable(np.arange(4, dtype=np.float32))
    op = getattr(v, f"scatter_{how}")(fs.IndexedSlices([2.0, 3.0], [1, 3]))
    gpu.run(v.initializer)
    got = gpu.run(op)
    assert place(gpu, op) == "GPU:0"
    with fs.Session() as cpu:
        cpu.run(v.initializer)
        np.testing.assert_array_equal(got, cpu.run(op))


def test_a_partial_run_keeps_its_values_on_the_device(gpu):
    a, b = fs.placeholder(fs.float32, [2]), fs.placeholder(fs.float32, [2])
    x = fs.exp(a)
    y = x * b
    handle = gpu.partial_run_setup([x, y], [a, b])
    first = gpu.partial_run(handle, x, {a: [0, 0]})
    assert type(first) is np.ndarray
    assert all(gpu.list_devices()[1].holds(v) for v in handle._values.values())
    assert gpu.partial_run(handle, y, {b: [1, 2]}).tolist() == [1, 2]


def test_an_error_on_the_device_names_operation_and_inputs(gpu):
    x = fs.placeholder(fs.int32, [None], name="x")
    y = fs.gather([1.0, 2.0], x, name="y")
    with pytest.raises(ValueError, match=r'(?s)input 1: int32\[1\].*node "y", on .*GPU:0'):
        gpu.run(y, {x: [7]})
