"""Programs of the library: their known schedules agree, and optimizers are those of `fs.train`."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import InvalidArgumentError

cc = fs.coconet
RANKS, SIZE = 3, 13
DRAW = np.random.default_rng(0)
GRADS = [DRAW.normal(size=SIZE).astype("f4") for _ in range(RANKS)]
START = DRAW.normal(size=SIZE).astype("f4")
PLACES = [f"/cpu:{r}" for r in range(RANKS)]


def trained(schedule, steps=4, mode="compiled", ranks=RANKS):
    """Parameters of each rank after some steps, and how long each rank's first moment is."""
    with fs.Graph().as_default():
        values = {}
        for a in schedule.graph.arguments:
            if a.type.group is None:
                values[a.name] = fs.constant(0.1, a.type.dtype)
                continue
            values[a.name] = []
            for r in range(ranks):
                part = np.zeros(SIZE if a.type.rank else (), a.type.dtype.np_dtype)
                part = {"g": GRADS[r].astype(part.dtype), "p": START}.get(a.name, part)
                if a.type.layout.is_sliced:
                    part = part[SIZE * r // ranks : SIZE * (r + 1) // ranks]
                with fs.device(PLACES[r]):
                    values[a.name].append(fs.Variable(part, name=f"{a.name}_{r}"))
        update = schedule.build(values, PLACES).update
        config = fs.ConfigProto(mode=mode, device_count={"CPU": ranks})
        with fs.Session(config=config) as sess:
            sess.run(fs.global_variables_initializer())
            for _ in range(steps):
                sess.run(update)
            return sess.run(values["p"]), [v.shape.as_list() for v in values.get("m", [])]


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
@pytest.mark.parametrize("grad_dtype", [None, fs.float16])
@pytest.mark.parametrize("name", ["sgd", "adam", "lamb"])
def test_known_schedules_of_optimizers_agree(name, grad_dtype, mode):
    known = cc.library.known_schedules(getattr(cc.library, name)(grad_dtype=grad_dtype))
    assert list(known) == ["AR-C", "RS-C-AG", "fuse(RS-C-AG)"]
    (expected, *_), _ = trained(known["AR-C"], mode=mode)
    for key in ("RS-C-AG", "fuse(RS-C-AG)"):
        found, moments = trained(known[key], mode=mode)
        for one in found:
            if name == "lamb":  # norms of slices are added in another order
                np.testing.assert_allclose(one, expected, rtol=1e-6)
            else:
                np.testing.assert_array_equal(one, expected)
        assert [n for (n,) in moments] == ([] if name == "sgd" else [4, 4, 5])


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [("sgd", fs.train.GradientDescentOptimizer(0.1)), ("adam", fs.train.AdamOptimizer(0.1))],
)
def test_optimizers_do_what_those_of_train_do_with_the_mean(name, optimizer):
    with fs.Graph().as_default():
        p = fs.Variable(START)
        update = optimizer.apply_gradients([(fs.constant(sum(GRADS) / np.float32(3)), p)])
        with fs.Session() as sess:
            sess.run(fs.global_variables_initializer())
            for _ in range(4):
                sess.run(update)
            expected = sess.run(p)
    found, _ = trained(cc.library.known_schedules(getattr(cc.library, name)())["fuse(RS-C-AG)"])
    np.testing.assert_allclose(found[2], expected, rtol=2e-5, atol=1e-6)


def test_lamb_scales_its_step_to_the_parameters():
    """One step, by hand."""
    found, _ = trained(cc.library.known_schedules(cc.library.lamb())["AR-C"], steps=1)
    mean = sum(GRADS) / 3
    step = mean / (np.abs(mean) + 1e-6) + 0.01 * START
    ratio = np.linalg.norm(START) / np.linalg.norm(step)
    np.testing.assert_allclose(found[0], START - 0.1 * ratio * step, rtol=1e-4, atol=1e-5)


def test_known_schedules_of_a_model_parallel_layer_agree():
    known = cc.library.known_schedules(cc.library.projection(0.25, seed=2))
    assert list(known) == [
        "MM-AR-C", "MM-RS-C-AG", "MM-fuse(RS-C-AG)", "ol(MM,fuse(RS-C-AG))",
    ]  # fmt: skip
    xs = [DRAW.normal(size=(8, 2)).astype("f4") for _ in range(RANKS)]
    ws = [DRAW.normal(size=(2, 5)).astype("f4") for _ in range(RANKS)]
    b, r = DRAW.normal(size=5).astype("f4"), DRAW.normal(size=(8, 5)).astype("f4")
    found = []
    for one in known.values():
        with fs.Graph().as_default():
            fs.set_random_seed(1)
            built = one.build({"x": xs, "w": ws, "b": [b] * 3, "r": [r] * 3}, PLACES)
            with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3})) as sess:
                found.append(sess.run(built["out"]))
    for out in found:
        np.testing.assert_allclose(out, found[0], rtol=1e-5, atol=1e-5)
    whole = sum(x @ w for x, w in zip(xs, ws, strict=True)) + b
    kept = found[0][0] - r
    is_kept = np.abs(kept) > 1e-5
    assert 0.5 < is_kept.mean() < 0.95
    np.testing.assert_allclose(kept[is_kept], (whole / 0.75)[is_kept], rtol=1e-4, atol=1e-4)


def test_known_schedules_of_a_pipeline_send_a_part_from_each_rank():
    here, there = cc.Group("here"), cc.Group("there")
    known = cc.library.known_schedules(cc.library.pipeline_stage(here, there, 0.0))
    xs = [DRAW.normal(size=(6, 2)).astype("f4") for _ in range(RANKS)]
    r = DRAW.normal(size=(6, 2)).astype("f4")
    for name, one in known.items():
        sent = one.graph.by_name["out"]
        assert sent.type.layout.is_sliced == (name != "AR-C-P2P")
        with fs.Graph().as_default():
            places = {"here": PLACES, "there": [f"/cpu:{3 + i}" for i in range(RANKS)]}
            out = one.build({"x": xs, "r": [r] * 3}, places)["out"]
            with fs.Session(config=fs.ConfigProto(device_count={"CPU": 6})) as sess:
                for found in sess.run(out):
                    np.testing.assert_array_equal(found, xs[0] + xs[1] + xs[2] + r)


def test_a_program_without_one_all_reduce_has_no_known_schedules():
    x = cc.Tensor("x", fs.float32, [4])
    with pytest.raises(InvalidArgumentError, match="with one all_reduce, got 0"):
        cc.library.known_schedules(cc.Pipeline("p", [x], [cc.tanh(x)]))
