"""Schedules over workers: what crosses are the collectives, and all give what one process gives."""

from __future__ import annotations

import random

import numpy as np
import pytest
from cluster_hosts import hosts_here, worker
from random_schedules import RandomProgram, deep_schedule, differing, tolerance

import flowscope as fs

cc = fs.coconet


@pytest.fixture(scope="module")
def cluster():
    with hosts_here(3) as (found, _):
        yield found


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_schedules_over_workers_give_what_numpy_says(cluster, mode):
    for seed in (3, 8, 11):
        program = RandomProgram(seed, ranks=3, has_dropout=False)
        chance = random.Random(seed)
        devices = {str(g): [f"{worker(i)}/device:CPU:0" for i in range(3)] for g in program.groups}
        start = cc.schedule(program.pipeline)
        expected = program.evaluated(start)
        for one in (start, deep_schedule(program, 8, chance)):
            found = program.run(one, mode, devices, target=cluster)
            assert not differing(expected, found, tolerance(program)), one.python()


def test_masks_are_the_same_on_all_workers_and_slices(graph, cluster):
    g = cc.Tensor("g", fs.float32, [16], cc.Local)
    total = cc.all_reduce(g)
    kept = cc.dropout(total, 0.5, seed=3)
    start = cc.schedule(cc.Pipeline("p", [g], [kept]))
    parted = start.split(total).reorder("ag_total", kept).fuse("rs_total", kept, "ag_kept")
    fed = [fs.constant(np.ones(16, np.float32)) for _ in range(3)]
    places = [worker(i) for i in range(3)]
    built = [one.build({g: fed}, places)["kept"] for one in (start, parted)]
    fs.set_random_seed(1)
    with fs.Session(cluster) as sess:
        whole, parts = sess.run(built)
    assert {x.tobytes() for x in whole} | {x.tobytes() for x in parts} == {whole[0].tobytes()}
    assert 0 < (whole[0] == 0).sum() < 16


def test_each_worker_keeps_its_part_of_the_state(graph, cluster):
    g = cc.Tensor("g", fs.float32, [10], cc.Local)
    p, m = cc.Tensor("p", fs.float32, [10]), cc.Tensor("m", fs.float32, [10])
    total = cc.all_reduce(g)
    new_m = cc.update(m, m * 0.5 + total)
    pipe = cc.Pipeline("momentum", [g, p, m], [cc.update(p, p - new_m)])
    schedule = cc.schedule(pipe).split(total)
    schedule = schedule.reorder("ag_total", "multiply_1", "add_1", "new_m", "subtract_1", "new_p")
    schedule = schedule.as_slice(m).dead("ag_new_m")
    schedule = schedule.fuse(*[s.name for s in schedule.graph.stages])
    values = {"g": [], "p": [], "m": []}
    for i in range(3):
        with fs.device(worker(i)):
            values["g"].append(fs.constant(np.full(10, i + 1.0, np.float32)))
            values["p"].append(fs.Variable(fs.zeros([10])))
            values["m"].append(fs.Variable(fs.zeros([10 * (i + 1) // 3 - 10 * i // 3])))
    built = schedule.build(values, [worker(i) for i in range(3)])
    with fs.Session(cluster) as sess:
        sess.run(fs.global_variables_initializer())
        for _ in range(2):
            sess.run(built.update)
        for one in sess.run(values["p"]):
            assert one.tolist() == [-15.0] * 10
        assert np.concatenate(sess.run(values["m"])).tolist() == [9.0] * 10
