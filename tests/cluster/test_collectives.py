"""Collectives over workers: the same bits as in one process, however the bytes go."""

import numpy as np
import pytest
from cluster_hosts import hosts_apart, hosts_here, worker
from random_collectives import Collectives, differing, folded

import flowscope as fs

fc = fs.collectives
MODES = ["compiled", "op", "tokens"]


@pytest.fixture(scope="module")
def cluster():
    with hosts_here(3) as (found, _):
        yield found


@pytest.fixture(scope="module")
def processes():
    with hosts_apart(3) as (found, _):
        yield found


@pytest.mark.parametrize("mode", MODES)
def test_random_programs_over_workers_give_the_bits_of_the_ranks_in_order(cluster, mode):
    config = fs.ConfigProto(mode=mode)
    for seed, count in enumerate([1, 2, 3, 5, 8, 3, 5]):
        devices = [f"{worker(i % 3)}/device:CPU:0" for i in range(count)]
        program = Collectives(seed, count, devices)
        with program.graph.as_default(), fs.Session(cluster, config=config) as sess:
            for _ in range(2):
                found = sess.run(program.tensors, program.feeds)
                assert not differing(program, found), seed


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_slices_over_processes_give_the_same_bits(graph, processes, dtype):
    draw = np.random.default_rng(3)
    arrays = [draw.standard_normal(100_003).astype(fs.as_dtype(dtype).np_dtype) for _ in range(3)]
    tensors = []
    fed = [fs.placeholder(dtype, [100_003]) for _ in arrays]
    for i, x in enumerate(fed):
        with fs.device(worker(i)):
            tensors.append(fs.identity(x))
    results = fc.all_reduce(tensors, "mean")
    feeds = dict(zip(fed, arrays, strict=True))
    with fs.Session(processes) as sess:
        assert "CollectiveJoin" in sess.plan(results, fed).text("collectives")
        for _ in range(3):
            for one in sess.run(results, feeds):
                assert one.tobytes() == folded("mean", arrays).tobytes()


def test_shapes_that_differ_among_processes_are_an_error_and_no_wait(graph, processes):
    fed = fs.placeholder(fs.float64)
    with fs.device(worker(1)):
        other = fs.identity(fed)
    sums = fc.all_reduce([fs.zeros([2], fs.float64), other])
    with fs.Session(processes) as sess:
        with pytest.raises(fs.errors.InvalidArgumentError, match=r"got \[3\] of rank 1"):
            sess.run(sums, {fed: [1.0, 2.0, 3.0]})
        assert sess.run(sums, {fed: [1.0, 2.0]})[1].tolist() == [1.0, 2.0]
