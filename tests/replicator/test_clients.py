"""Replicas of several clients, each with a graph of its own: between-graph replication."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import flowscope as fs

rep = fs.replicator
MODES = ["compiled", "op", "tokens"]
X = np.random.default_rng(6).standard_normal((3, 12, 3))
#: Groups of one process have names of their own.
_NUMBERS = itertools.count()


def config(mode: str = "compiled") -> fs.ConfigProto:
    return fs.ConfigProto(mode=mode, operation_timeout_in_ms=60_000)


def clients(count: int, work: Callable[[Any], Any], kind: Any = None, **more: Any) -> list[Any]:
    """The results, or the errors, of clients that run at the same time."""
    name = f"group_{next(_NUMBERS)}"
    make = kind or rep.MultiWorker

    def run(index: int) -> Any:
        replicator = make(count, index, queue_devices=[None] * count, name=name, **more)
        with fs.Graph().as_default():
            try:
                return work(replicator)
            except fs.errors.OpError as e:
                return e

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def trained(replicator: Any, mode: str) -> list[Any]:
    """Losses and variables after some steps."""
    optimizer = replicator.wrap_optimizer(fs.train.MomentumOptimizer(0.1, 0.9))

    def input_fn(ctx: Any) -> Any:
        parts = np.array_split(X, ctx.num_input_pipelines, axis=1)
        return fs.data.Dataset.from_tensor_slices(parts[ctx.input_pipeline_id]).repeat()

    def step(x: Any) -> Any:
        start = fs.glorot_uniform_initializer(5, fs.float64)
        h = fs.layers.dense(x, 4, fs.tanh, kernel_initializer=start)
        table = fs.get_variable("table", [3], fs.float64, fs.zeros_initializer())
        row = fs.gather(table, fs.cast(x[:, 0] > 0, fs.int32))
        n = rep.num_replicas_in_sync()
        mean = rep.all_sum(fs.reduce_mean(h, 0) / n)
        scale = rep.all_max(fs.reduce_max(fs.abs(h)))
        rows = rep.all_gather(fs.reduce_mean(h))
        y = (
            fs.reduce_sum((h - mean) / scale, 1)
            + row
            + fs.reduce_sum(rows * np.arange(1.0, n + 1.0))
        )
        loss = fs.reduce_mean(fs.square(y - rep.broadcast(x[0, 0], n - 1)))
        count = fs.train.get_or_create_global_step()
        return loss, optimizer.minimize(loss, count)

    losses, train = replicator.run(step, input_fn)
    loss = replicator.reduce(losses, "mean")
    with replicator.session(config(mode)) as sess:
        found = [sess.run([loss, train])[0] for _ in range(5)]
        replicator.check_copies(sess)
        return [*found, *sess.run(fs.global_variables())]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_clients_have_the_bits_of_one_graph(count: int, mode: str) -> None:
    with fs.Graph().as_default():
        kind = rep.MultiDevice(count, input_mode=rep.InputMode.PER_REPLICA)
        wanted = trained(kind, mode)
    for found in clients(count, lambda replicator: trained(replicator, mode)):
        assert not isinstance(found, Exception), found
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a, b)


def test_clients_begin_with_the_values_of_the_first(graph: Any) -> None:
    def work(replicator: Any) -> Any:
        numbers = []

        def step() -> Any:
            numbers.append(rep.current_replica_id())
            return fs.Variable(fs.random_normal([4]), name="w").value()

        values = replicator.run(step)
        with replicator.session(config()) as sess:
            first = sess.run(values)[0]
            replicator.check_copies(sess)
            sess.run(fs.global_variables()[0].assign_add(fs.ones([4]) * numbers[0]))
            with pytest.raises(fs.errors.FailedPreconditionError, match=r"w \(replicas \[1, 2\]\)"):
                replicator.check_copies(sess)
            replicator.take_first_values(sess)
            replicator.check_copies(sess)
            return first

    found = clients(3, work)
    assert all(np.array_equal(x, found[0]) for x in found)


def test_clients_that_call_other_primitives_are_told_before_the_first_step() -> None:
    def work(replicator: Any) -> Any:
        def step() -> Any:
            if rep.current_replica_id() == 2:
                return rep.all_max(fs.constant(1.0))
            return rep.all_sum(fs.constant(1.0))

        replicator.run(step)
        with replicator.session(config()):
            raise AssertionError("the session began")

    texts = [str(error) for error in clients(3, work)]
    assert "replica 0 calls all_sum with float32() (" in texts[0]
    assert "where replica 2 calls all_max with float32() (" in texts[0]
    assert "replica 2 calls all_max" in texts[2]
    assert all("in the same order" in text for text in texts)


@pytest.mark.slow
def test_a_client_that_does_not_come_is_named() -> None:
    name = f"group_{next(_NUMBERS)}"
    with fs.Graph().as_default():
        replicator = rep.MultiWorker(2, 0, queue_devices=[None] * 2, name=name)
        replicator.run(lambda: rep.all_sum(1.0))
        soon = fs.ConfigProto(operation_timeout_in_ms=2_000)  # the first plan is made meanwhile
        with (
            pytest.raises(fs.errors.DeadlineExceededError, match="from_replica_1_to_0"),
            replicator.session(soon),
        ):
            pass


def test_what_clients_refuse(graph: Any) -> None:
    wrong = fs.errors.InvalidArgumentError
    for make in (rep.MultiWorker, rep.MultiWorkerAsync):
        with pytest.raises(wrong, match="the number of one of 2 workers, got 2"):
            make(2, 2)
        with pytest.raises(wrong, match="whole numbers of workers"):
            make(2, True)
    with pytest.raises(wrong, match="a queue device for each of 2 workers, got 1"):
        rep.MultiWorker(2, 0, queue_devices=["/cpu:0"])
    with pytest.raises(wrong, match="PER_WORKER or PER_REPLICA as the input mode"):
        rep.MultiWorker(2, 0, input_mode=rep.InputMode.SINGLE)
    with pytest.raises(wrong, match="groups of one size for 4 workers, got 3"):
        rep.MultiWorkerAsync(4, 0, num_sync_groups=3)
    with pytest.raises(fs.errors.UnimplementedError, match="merge_call.*in one graph"):
        rep.MultiWorker(2, 0).run(lambda: rep.merge_call(lambda _, x: x, fs.constant(1.0)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_groups_are_in_sync_inside_and_lose_no_update(groups: int, mode: str) -> None:
    """Each group's gradient is the mean of its clients' numbers; the updates of all add up."""
    steps = 5

    def work(replicator: Any) -> Any:
        optimizer = replicator.wrap_optimizer(fs.train.GradientDescentOptimizer(1.0))

        def step(x: Any) -> Any:
            w = fs.get_variable("w", [], fs.float64, fs.zeros_initializer())
            count = fs.train.get_or_create_global_step()
            return rep.num_replicas_in_sync() * rep.all_sum(x), optimizer.minimize(-w * x, count)

        def input_fn(ctx: Any) -> Any:
            number = float(2**ctx.input_pipeline_id)
            return fs.data.Dataset.from_tensors(np.float64(number)).repeat()

        sums, train = replicator.run(step, input_fn)
        with replicator.session(config(mode)) as sess:
            found = [sess.run([sums, train])[0][0] for _ in range(steps)]
            replicator.wait_for_all(sess)
            return found[-1], *sess.run([fs.trainable_variables()[0], fs.train.get_global_step()])

    size = 4 // groups
    found = clients(4, work, rep.MultiWorkerAsync, variable_device=None, num_sync_groups=groups)
    for index, (total, w, count) in enumerate(found):
        members = range(index // size * size, index // size * size + size)
        assert total == size * sum(2.0**i for i in members)
        assert w == steps * 15.0 / size
        assert count == steps * groups
