"""`assign(validate_shape=False)`: a variable takes another shape than its static one."""

import numpy as np
import pytest

import flowscope as fs

MODES = ["compiled", "op", "tokens"]
VALUES = [
    np.array([1.0, 2.0, 3.0], np.float32),
    np.array([[1.0, -2.0], [3.0, 4.0]], np.float32),
    np.float32(5.0),
    np.zeros([0], np.float32),
    np.arange(70_000, dtype=np.float32),
]


def straight(v):
    return fs.exp(-fs.abs(v)) * v + v.read_value() * 2.0


def branched(v):
    return fs.cond(fs.reduce_sum(v) < 100, lambda: v * 2.0, lambda: v + 1.0)


def looped(v):
    once = fs.identity(v)
    return fs.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0 + once + v), [0, v])[1]


def looped_by_hand(v):
    from flowscope import raw_ops as raw

    enter = raw.Enter(data=fs.identity(v), frame_name="f")
    count = raw.Enter(data=fs.constant(0), frame_name="f")
    merge = raw.Merge(inputs=[enter, enter])
    counted = raw.Merge(inputs=[count, count])
    pred = raw.LoopCond(input=fs.less(counted.output, 3))
    switch = raw.Switch(data=merge.output, pred=pred)
    counting = raw.Switch(data=counted.output, pred=pred)
    raw_next = raw.NextIteration(data=switch.output_true * 2.0)
    count_next = raw.NextIteration(data=counting.output_true + 1)
    merge.output.op._update_input(1, raw_next)
    counted.output.op._update_input(1, count_next)
    return raw.Exit(data=switch.output_false)


def called(v):
    @fs.function
    def f(x):
        return x * x + v

    return f(v + 1.0)


def reference(make, v):
    if make is straight:
        return np.exp(-np.abs(v)) * v + v * 2
    if make is branched:
        return v * 2 if v.sum() < 100 else v + 1
    if make is looped:
        x = v
        for _ in range(3):
            x = x * 2 + v + v
        return x
    if make is looped_by_hand:
        return v * 8
    return (v + 1) * (v + 1) + v


PROGRAMS = [straight, branched, looped, looped_by_hand, called]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("devices", [{}, {"GPU": 1}], ids=str)
def test_steps_compute_with_the_shape_that_it_has(graph, mode, make, devices):
    """Also those whose plan was made before the assignment was built."""
    v = fs.get_variable("v", initializer=[1.0, 2.0])
    y = make(v)
    config = fs.ConfigProto(mode=mode, fake_devices=devices, allow_soft_placement=True)
    with fs.Session(config=config) as s:
        s.run(v.initializer)
        first = np.array([1.0, 2.0], np.float32)
        np.testing.assert_allclose(s.run(y), reference(make, first), 1e-6)
        p = fs.placeholder(fs.float32)
        new = fs.assign(v, p, validate_shape=False)
        assert new.shape.rank is None and v.shape == [2] and y.shape in ([2], None)
        for value in VALUES:
            assert s.run(new, {p: value}).tobytes() == value.tobytes()
            np.testing.assert_allclose(s.run(y), reference(make, value), 1e-6)
            assert s.run(v).shape == value.shape
            assert s.run(fs.is_variable_initialized(v))
        s.run(v.initializer)
        np.testing.assert_allclose(s.run(y), reference(make, first), 1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_writes_after_it_fit_the_shape_that_it_has(graph, mode):
    v = fs.get_variable("v", initializer=[1.0, 2.0])
    p = fs.placeholder(fs.float32)
    new = fs.assign(v, [1.0, 2.0, 3.0], validate_shape=False)
    more = fs.assign_add(v, p)
    part = fs.scatter_add(v, [2], [10.0])
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        s.run(v.initializer)
        with pytest.raises(fs.errors.InvalidArgumentError, match="expected indices"):
            s.run(part)
        s.run(new)
        assert s.run(more, {p: np.ones(3, np.float32)}).tolist() == [2, 3, 4]
        assert s.run(part).tolist() == [2, 3, 14]
        with pytest.raises(fs.errors.InvalidArgumentError, match=r"shape \[3\], the variable's"):
            s.run(more, {p: [1.0, 1.0]})
    with pytest.raises(ValueError, match=r"expected a value of shape \[2\]"):
        fs.assign(v, [1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="float32"):
        fs.assign(v, fs.constant([1]), validate_shape=False)


def test_a_step_reads_both_shapes(graph):
    v = fs.get_variable("v", initializer=[1.0, 2.0])
    before = fs.reduce_sum(fs.exp(v))
    new = fs.assign(v, [1.0, 2.0, 3.0], validate_shape=False)
    after = fs.reduce_sum(v.read_value())
    with fs.Session() as s:
        s.run(v.initializer)
        got = s.run([before, new.op, after])
    np.testing.assert_allclose([got[0], got[2]], [np.exp([1, 2]).sum(), 6.0], 1e-6)


def test_other_variables_and_plans_are_left_alone(graph):
    v, w = [fs.get_variable(n, initializer=[1.0, 2.0]) for n in "vw"]
    y, z = v * 2.0, w * 2.0
    with fs.Session() as s:
        s.run(fs.global_variables_initializer())
        s.run([y])
        s.run([z])
        misses = s.plan_cache.misses
        fs.assign(v, [1.0], validate_shape=False)
        s.run([z])
        assert s.plan_cache.misses == misses
        s.run([y])
        assert s.plan_cache.misses == misses + 1
        assert "float32[2]" in s.plan(z).text() and "float32[2]" not in s.plan(y).text()


def test_it_is_saved_and_restored(graph, tmp_path):
    v = fs.get_variable("v", initializer=[1.0, 2.0])
    u = fs.Variable(np.ones([2, 2], np.float32), validate_shape=False, name="u")
    fs.assign(v, fs.placeholder(fs.float32, name="p"), validate_shape=False, name="new")
    v.assign([7.0, 8.0])
    saver = fs.train.Saver()
    fs.train.export_meta_graph(str(tmp_path / "g.meta"))
    with fs.Session() as s:
        s.run(fs.global_variables_initializer())
        s.run("new:0", {"p:0": [1.0, 2.0, 3.0]})
        s.run(u.assign([5.0]))
        path = saver.save(s, str(tmp_path / "model"))
        s.run(fs.global_variables_initializer())
        saver.restore(s, path)
        assert [s.run(x).tolist() for x in (v, u)] == [[1, 2, 3], [5]]
    with fs.Graph().as_default() as other:
        saver = fs.train.import_meta_graph(path + ".meta")
        with fs.Session() as s:
            saver.restore(s, path)
            assert [s.run(n).tolist() for n in ("v/read:0", "u/read:0")] == [[1, 2, 3], [5]]
        assert other.is_reshaped(other.get_operation_by_name("v"))


def test_a_variable_without_a_static_rank(graph):
    p = fs.placeholder(fs.float32)
    v = fs.Variable(p, validate_shape=False)
    assert v.shape.rank is None and v.assign(p).shape.rank is None
    reads = [fs.shape(v), fs.size(v), fs.rank(v), fs.reduce_sum(v), v + 1.0]
    is_there = fs.is_variable_initialized(v)
    new = [v.assign(p), fs.assign(v, p), fs.assign(v, p, validate_shape=False)]
    with fs.Session() as s:
        assert not s.run(is_there)
        s.run(v.initializer, {p: [[1.0, 2.0]]})
        assert [np.asarray(r).tolist() for r in s.run(reads)] == [[1, 2], 2, 2, 3, [[2, 3]]]
        for assign, value in zip(new, ([1.0], 2.0, [[[3.0]]]), strict=True):
            assert s.run(assign, {p: value}).tolist() == value
            assert s.run(v).tolist() == value
        assert s.run(is_there)
        assert s.run(v.assign_add(p), {p: [[[1.0]]]}).tolist() == [[[4.0]]]


def test_raw_assign_takes_any_shape(graph):
    from flowscope import raw_ops as raw

    v = raw.VariableV2(shape=[2], dtype=fs.float32)
    y = v * 2.0
    new = raw.Assign(ref=v, value=[1.0, 2.0, 3.0], validate_shape=False)
    with fs.Session() as s:
        s.run(new)
        assert s.run(y).tolist() == [2, 4, 6]


def test_on_another_task(graph):
    servers = [fs.train.Server.create_local_server() for _ in range(2)]
    config = fs.ConfigProto()
    for number, server in enumerate(servers):
        jobs = config.cluster_def.job
        job = jobs[0] if jobs else jobs.add(name="worker")
        job.tasks[number] = server.target.partition("://")[2]
    with fs.device("/job:worker/task:1"):
        v = fs.get_variable("v", initializer=[1.0, 2.0])
    with fs.device("/job:worker/task:0"):
        y = fs.exp(v) * v
    new = fs.assign(v, [1.0, 2.0, 3.0], validate_shape=False)
    try:
        with fs.Session(servers[0].target, config=config) as s:
            s.run(v.initializer)
            np.testing.assert_allclose(s.run(y), np.exp([1, 2]) * [1, 2], 1e-6)
            s.run(new)
            np.testing.assert_allclose(s.run(y), np.exp([1, 2, 3]) * [1, 2, 3], 1e-6)
            assert s.run(v).tolist() == [1, 2, 3]
    finally:
        for server in servers:
            server.stop()
