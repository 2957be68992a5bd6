"""Replicas on the workers of a cluster."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from cluster_hosts import hosts_here, worker

import flowscope as fs

rep = fs.replicator
MODES = ["compiled", "op", "tokens"]
X = np.random.default_rng(2).standard_normal((24, 3))


@pytest.fixture(scope="module")
def cluster() -> Any:
    with hosts_here(3) as (found, _):
        yield found


def trained(replicator: Any, mode: str, whole: bool) -> list[Any]:
    """Losses and variables after some steps; each replica of three has a third of a batch."""
    with fs.Graph().as_default():
        optimizer = replicator.wrap_optimizer(fs.train.MomentumOptimizer(0.2, 0.9))

        def input_fn(ctx: Any) -> Any:
            if whole:
                return fs.data.Dataset.from_tensor_slices(X).repeat().batch(12)
            mine = X.reshape(2, 3, 4, 3)[:, ctx.input_pipeline_id]
            return fs.data.Dataset.from_tensor_slices(mine).repeat()

        def train_step(x: Any) -> Any:
            start = fs.constant_initializer(0.3, fs.float64)
            w = fs.get_variable("w", [3], fs.float64, start)
            h = fs.reduce_sum(x * w, 1)
            n = rep.num_replicas_in_sync()
            mean = rep.all_sum(fs.reduce_mean(h) / n)
            loss = fs.reduce_mean(fs.square(h - mean - fs.sin(x[:, 0])))
            return loss, optimizer.minimize(loss)

        losses, train = replicator.run(train_step, input_fn)
        loss = replicator.reduce(losses, "mean")
        with replicator.session(fs.ConfigProto(mode=mode)) as sess:
            found = [sess.run([loss, train])[0] for _ in range(3)]
            replicator.check_copies(sess)
            return [*found, *sess.run(fs.global_variables())]


@pytest.mark.parametrize("mode", MODES)
def test_replicas_on_workers_equal_one_device_and_replicas_of_one_process(
    cluster: Any, mode: str
) -> None:
    one = trained(rep.Replicator(), mode, whole=True)
    workers = [worker(i) for i in range(3)]
    apart = trained(rep.MultiDevice(workers, target=cluster), mode, whole=False)
    per_replica = rep.InputMode.PER_REPLICA
    here = trained(rep.MultiDevice(3, input_mode=per_replica), mode, whole=False)
    for a, b, c in zip(apart, one, here, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(a, c)


def test_clients_of_one_cluster_have_the_bits_of_one_graph(cluster: Any) -> None:
    """Each client has its replica on a worker, and queues between them lie on the workers."""
    wanted = trained(
        rep.MultiDevice(3, input_mode=rep.InputMode.PER_REPLICA), "compiled", whole=False
    )

    def client(index: int) -> list[Any]:
        replicator = rep.MultiWorker(
            3, index, cluster, worker(index), [worker(i) for i in range(3)], "clients"
        )
        return trained(replicator, "compiled", whole=False)

    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(client, range(3)):
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(a, b)
