"""Schedules in sessions: all of one program agree, in all modes, on devices, with variables."""

from __future__ import annotations

import random

import numpy as np
import pytest
from random_schedules import RandomProgram, deep_schedule, differing, schedules, tolerance

import flowscope as fs
from flowscope.errors import InvalidArgumentError

cc = fs.coconet
MODES = ("compiled", "op", "tokens")
N, H = cc.Size("N"), cc.Size("H")


def cpus(count, first=0):
    return [f"/cpu:{i + first}" for i in range(count)]


@pytest.mark.parametrize("seed", range(6))
def test_all_schedules_to_a_small_depth_mean_the_same(seed):
    program = RandomProgram(seed)
    start, *others = schedules(program, 3, 40)
    expected = program.evaluated(start)
    for one in others:
        assert not differing(expected, program.evaluated(one), tolerance(program)), one.python()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", [*range(20, 26)])
def test_sessions_give_what_numpy_says_whatever_the_schedule(seed, mode):
    program = RandomProgram(seed, has_dropout=False)
    chance = random.Random(seed)
    start = cc.schedule(program.pipeline)
    expected = program.evaluated(start)
    devices = {str(g): cpus(program.ranks) for g in program.groups}
    for one in (start, deep_schedule(program, 4, chance), deep_schedule(program, 9, chance)):
        found = program.run(one, mode, devices)
        assert not differing(expected, found, tolerance(program)), one.python()


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_masks_of_dropout_are_the_same_however_tensors_are_cut(ranks):
    g = cc.Tensor("g", fs.float32, [N, H], cc.Local)
    total = cc.all_reduce(g)
    kept = cc.dropout(total, 0.5, seed=3, name="kept")
    pipe = cc.Pipeline("p", [g], [kept])
    start = cc.schedule(pipe)
    some = [
        start,
        start.split(total).reorder("ag_total", kept),
        start.split(total, "slices", 1).reorder("ag_total", kept),
        start.split(total).reorder("ag_total", kept).fuse("rs_total", kept, "ag_kept"),
        start.split(total).reorder("ag_total", kept).overlap("rs_total", kept, "ag_kept"),
        start.overlap(total, kept),
    ]
    arrays = [np.ones((7, 5), np.float32) for _ in range(ranks)]
    results = []
    for one in some:
        with fs.Graph().as_default():
            fs.set_random_seed(1)
            built = one.build({g: [fs.constant(x) for x in arrays]})
            with fs.Session() as sess:
                runs = [sess.run(built["kept"]) for _ in range(2)]
                assert (runs[0][0] != runs[1][0]).any()
                assert len({x.tobytes() for x in runs[0]}) == 1
                results.append(np.array(runs))
    assert {x.tobytes() for x in results} == {results[0].tobytes()}
    assert 0.2 < (results[0] == 0).mean() < 0.8
    assert set(np.unique(results[0])) == {0.0, 2.0 * ranks}


def adam():
    """Adam's update, with float32 moments and gradients of 16 bits."""
    g = cc.Tensor("g", fs.float16, [N], cc.Local)
    p, m, v = [cc.Tensor(x, fs.float32, [N]) for x in "pmv"]
    mean = cc.cast(cc.all_reduce(g, "mean", name="mean"), fs.float32)
    new_m = cc.update(m, m * 0.9 + mean * 0.1)
    new_v = cc.update(v, v * 0.99 + cc.square(mean) * 0.01)
    new_p = cc.update(p, p - 0.1 * new_m / (cc.sqrt(new_v) + 1e-8))
    return cc.Pipeline("adam", [g, p, m, v], [new_p])


def sliced_adam(is_fused):
    schedule = cc.schedule(adam()).split("mean")
    names = [s.name for s in schedule.graph.stages if s.name not in ("rs_mean", "ag_mean")]
    schedule = schedule.reorder("ag_mean", *names)
    for x in "mv":
        schedule = schedule.as_slice(x).dead(f"ag_new_{x}")
    if not is_fused:
        return schedule
    return schedule.fuse(*[s.name for s in schedule.graph.stages])


def trained(schedule, ranks, mode, devices=None, steps=3, **options):
    """What ranks keep after some steps, and per variable how many elements each has."""
    size = 11
    draw = np.random.default_rng(0)
    grads = [draw.normal(size=size).astype(np.float16) for _ in range(ranks)]
    with fs.Graph().as_default():
        variables = {}
        for a in schedule.graph.arguments[1:]:
            parts = []
            for r in range(ranks):
                first, last = size * r // ranks, size * (r + 1) // ranks
                length = last - first if a.type.layout.is_sliced else size
                with fs.device(devices[r] if devices else None):
                    parts.append(fs.Variable(np.zeros(length, np.float32), name=f"{a.name}_{r}"))
            variables[a.name] = parts
        fed = [fs.constant(x) for x in grads]
        built = schedule.build({"g": fed, **variables}, devices)
        config = fs.ConfigProto(mode=mode, device_count={"CPU": 8}, **options)
        with fs.Session(config=config) as sess:
            sess.run(fs.global_variables_initializer())
            for _ in range(steps):
                sess.run(built.update)
            return sess.run(variables)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_variables_are_updated_and_state_is_cut_to_a_part_per_rank(ranks, mode):
    """Mixed precision: gradients of 16 bits, moments and parameters of 32."""
    devices = cpus(ranks)
    whole = trained(cc.schedule(adam()), ranks, mode, devices)
    for is_fused in (False, True):
        found = trained(sliced_adam(is_fused), ranks, mode, devices)
        for x in "mv":
            assert sum(len(part) for part in found[x]) == 11
            np.testing.assert_array_equal(np.concatenate(found[x]), whole[x][0])
        for r in range(ranks):
            np.testing.assert_array_equal(found["p"][r], whole["p"][0])
    assert np.abs(whole["p"][0]).min() > 0.01


@pytest.mark.parametrize("mode", MODES)
def test_fake_gpus_give_the_same(mode):
    config = {"fake_devices": {"GPU": 2}}
    devices = ["/gpu:0", "/gpu:1"]
    whole = trained(cc.schedule(adam()), 2, mode)
    for is_fused in (False, True):
        found = trained(sliced_adam(is_fused), 2, mode, devices, **config)
        np.testing.assert_allclose(found["p"][1], whole["p"][1], rtol=1e-6)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_a_product_overlaps_with_its_reduction(dim, chunks):
    """Model parallel: a product of slices, whose partial sums the ranks add."""
    x = cc.Tensor("x", fs.float64, [N, H], cc.Sliced(1))
    w = cc.Tensor("w", fs.float64, [H, 5], cc.Sliced(0))
    b, r = cc.Tensor("b", fs.float64, [5]), cc.Tensor("r", fs.float64, [N, 5])
    product = cc.matmul(x, w)
    total = cc.all_reduce(product)
    out = cc.relu(total + b) + r
    start = cc.schedule(cc.Pipeline("layer", [x, w, b, r], [out]))
    names = [s.name for s in start.graph.stages if s.name not in ("product", "total")]
    parted = start.split(total, "slices", dim).reorder("ag_total", *names)
    rest = [s.name for s in parted.graph.stages if s.name != "product"]
    fused = parted.fuse(*rest)
    group = fused.graph.fused[0].name
    draw = np.random.default_rng(1)
    xs, ws = draw.normal(size=(7, 6)), draw.normal(size=(6, 5))
    bias, residual = draw.normal(size=5), draw.normal(size=(7, 5))
    expected = np.maximum(xs @ ws + bias, 0) + residual
    some = [start, start.overlap(product, total), parted, fused, fused.overlap(product, group)]
    for one in some:
        with fs.Graph().as_default():
            cut = [xs[:, 6 * i // 3 : 6 * (i + 1) // 3] for i in range(3)]
            rows = [ws[6 * i // 3 : 6 * (i + 1) // 3] for i in range(3)]
            built = one.build({x: cut, w: rows, b: [bias] * 3, r: [residual] * 3}, cpus(3), chunks)
            with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3})) as sess:
                for found in sess.run(built["out"]):
                    np.testing.assert_allclose(found, expected, rtol=1e-12)


def pipeline_parallel():
    here, there = cc.Group("here"), cc.Group("there")
    x = cc.Tensor("x", fs.float32, [N], cc.Local, here)
    r = cc.Tensor("r", fs.float32, [N], cc.Replicated, here)
    total = cc.all_reduce(x)
    added = cc.dropout(total, 0.3, seed=1) + r
    sent = cc.send(added, there)
    return cc.Pipeline("stage", [x, r], [cc.tanh(sent, name="out")])


def test_what_is_sent_between_groups_is_cut_to_a_part_per_rank():
    start = cc.schedule(pipeline_parallel())
    parted = start.split("total").reorder("ag_total", "dropout_1", "added", "sent")
    fused = parted.fuse("dropout_1", "slice_r", "added", "sent")
    chained = fused.overlap("rs_total", "fused_sent", "ag_sent")
    results, bytes_sent = [], []
    for one in (start, parted, fused, chained):
        with fs.Graph().as_default():
            fs.set_random_seed(2)
            fed = [fs.constant(np.arange(8, dtype=np.float32) + i) for i in range(4)]
            devices = {"here": cpus(4), "there": cpus(4, 4)}
            built = one.build({"x": fed, "r": [np.ones(8, np.float32)] * 4}, devices)
            with fs.Session(config=fs.ConfigProto(device_count={"CPU": 8})) as sess:
                results.append(np.array(sess.run(built["out"])))
            send = one.graph.by_name["sent"].type
            bytes_sent.append(8 // 4 if send.layout.is_sliced else 8)
    for found in results[1:]:
        np.testing.assert_array_equal(found, results[0])
    assert bytes_sent == [8, 2, 2, 2]


def test_schedules_work_in_branches_and_loops():
    g = cc.Tensor("g", fs.float32, [N], cc.Local)
    p = cc.Tensor("p", fs.float32, [N])
    total = cc.all_reduce(g)
    out = cc.tanh(p + total)
    schedule = cc.schedule(cc.Pipeline("p", [g, p], [out])).split(total)
    schedule = schedule.reorder("ag_total", "add_1", out)
    schedule = schedule.fuse("rs_total", "slice_p", "add_1", out, "ag_out")
    xs = [np.arange(5, dtype=np.float32) / 9, np.ones(5, np.float32) / 7]
    for mode in MODES:
        with fs.Graph().as_default():

            def once(p):
                return schedule.build({"g": xs, "p": [p, p]})["out"][0]

            start = fs.zeros([5])
            _, looped = fs.while_loop(lambda i, p: i < 3, lambda i, p: (i + 1, once(p)), (0, start))
            taken = fs.placeholder(fs.bool, ())
            chosen = fs.cond(taken, lambda p=looped: once(p), lambda p=looped: fs.identity(p))
            with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
                expected = np.zeros(5, np.float32)
                for _ in range(3):
                    expected = np.tanh(expected + (xs[0] + xs[1]))
                np.testing.assert_allclose(sess.run(chosen, {taken: False}), expected, rtol=1e-6)
                expected = np.tanh(expected + (xs[0] + xs[1]))
                np.testing.assert_allclose(sess.run(chosen, {taken: True}), expected, rtol=1e-6)


def test_gradients_go_through_schedules():
    x = cc.Tensor("x", fs.float64, [N], cc.Local)
    total = cc.all_reduce(x)
    out = cc.tanh(total * 2.0)
    start = cc.schedule(cc.Pipeline("p", [x], [out]))
    parted = start.split(total).reorder("ag_total", "multiply_1", out)
    found = []
    for one in (start, parted, parted.fuse(*[s.name for s in parted.graph.stages])):
        with fs.Graph().as_default():
            xs = [fs.constant(np.arange(5.0) / 10), fs.constant(np.ones(5) / 5)]
            loss = fs.reduce_sum(fs.square(one.build({x: xs})["out"][1]))
            with fs.Session() as sess:
                found.append(sess.run(fs.gradients(loss, xs)))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("values", "devices", "text"),
    [
        ({"g": [np.zeros(4)] * 2}, ["/cpu:0"] * 3, "expected 3 tensors as g"),
        ({"g": np.zeros(4)}, None, "expected a list with a tensor for each rank as g"),
        ({"g": [np.zeros((4, 1))] * 2}, None, "expected [N] for g, got [4, 1] of rank 0"),
        ({}, None, "expected values of g, got none"),
        ({"g": [np.zeros(4)] * 2, "h": 1}, None, "got one of h"),
        ({"g": [np.zeros(4)] * 2}, "/cpu:0", "expected a device for each rank"),
    ],
)
def test_what_a_schedule_is_given_must_fit(graph, values, devices, text):
    g = cc.Tensor("g", fs.float64, [N], cc.Local)
    schedule = cc.schedule(cc.Pipeline("p", [g], [cc.all_reduce(g)]))
    with pytest.raises(InvalidArgumentError) as caught:
        schedule.build(values, devices)
    assert text in str(caught.value)


def test_a_tensor_of_an_unknown_shape_is_refused(graph):
    g = cc.Tensor("g", fs.float32, [N], cc.Local)
    schedule = cc.schedule(cc.Pipeline("p", [g], [cc.all_reduce(g)]))
    with pytest.raises(InvalidArgumentError, match="expected a tensor of a known shape as g"):
        schedule.build({g: [fs.placeholder(fs.float32, [None])] * 2})
