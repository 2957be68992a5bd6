"""Input pipelines of replicas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowscope as fs

rep = fs.replicator
CPUS = [f"/device:CPU:{i}" for i in range(4)]


def elements(mode: Any, steps: int = 2, count: int = 4) -> tuple[list[Any], list[Any]]:
    """What each replica gets in some steps, and what the pipelines are told."""
    told = []

    def input_fn(ctx: Any) -> Any:
        told.append((ctx.num_input_pipelines, ctx.input_pipeline_id, ctx.num_replicas_in_sync))
        start = 100 * ctx.input_pipeline_id
        return fs.data.Dataset.range(start, start + 100)

    with fs.Graph().as_default():
        replicator = rep.MultiDevice(CPUS[:count], input_mode=mode)
        found = replicator.run(lambda x: x, input_fn)
        config = fs.ConfigProto(device_count={"CPU": 4})
        with replicator.session(config) as sess:
            return [list(sess.run(found)) for _ in range(steps)], told


@pytest.mark.parametrize("mode", [rep.InputMode.SINGLE, rep.InputMode.PER_WORKER])
def test_replicas_of_a_process_take_turns_at_one_pipeline(mode: Any) -> None:
    found, told = elements(mode)
    assert found == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert told == [(1, 0, 4)]


def test_a_pipeline_for_each_replica() -> None:
    found, told = elements(rep.InputMode.PER_REPLICA)
    assert found == [[0, 100, 200, 300], [1, 101, 201, 301]]
    assert told == [(4, i, 4) for i in range(4)]


def test_generators_and_nested_elements(graph: Any) -> None:
    def input_fn(ctx: Any) -> Iterator[Any]:
        return ({"x": np.full(2, float(i)), "n": np.int64(i)} for i in range(4))

    replicator = rep.MultiDevice(2)
    found = replicator.run(lambda x: fs.reduce_sum(x["x"]) + fs.cast(x["n"], fs.float64), input_fn)
    with replicator.session() as sess:
        assert [sess.run(found) for _ in range(2)] == [(0.0, 3.0), (6.0, 9.0)]
        with pytest.raises(fs.errors.OutOfRangeError):
            sess.run(found)


def test_a_batch_that_is_missing_for_one_replica_updates_none(graph: Any) -> None:
    replicator = rep.MultiDevice(2)
    optimizer = replicator.wrap_optimizer(fs.train.GradientDescentOptimizer(1.0))

    def step(x: Any) -> Any:
        w = fs.get_variable("w", [], initializer=fs.zeros_initializer())
        return optimizer.minimize(w * x)

    values = np.array([1.0, 2.0, 4.0], np.float32)
    train = replicator.run(step, lambda _: fs.data.Dataset.from_tensor_slices(values))
    with replicator.session() as sess:
        sess.run(train)
        with pytest.raises(fs.errors.OutOfRangeError):
            sess.run(train)
        replicator.check_copies(sess)
        assert sess.run(fs.trainable_variables()) == [-1.5]


def test_batch_sizes(graph: Any) -> None:
    ctx = rep.InputContext(1, 0, 3)
    assert ctx.per_replica_batch_size(12) == 4
    with pytest.raises(fs.errors.InvalidArgumentError, match="a multiple of 3 replicas, got 10"):
        ctx.per_replica_batch_size(10)


def test_what_an_input_fn_may_not_return(graph: Any) -> None:
    with pytest.raises(fs.errors.DTypeError, match="a dataset or a generator from input_fn, got"):
        rep.Replicator().run(lambda x: x, lambda _: [1, 2])
    with pytest.raises(fs.errors.InvalidArgumentError, match="has no elements"):
        rep.Replicator().run(lambda x: x, lambda _: iter([]))
    with pytest.raises(fs.errors.InvalidArgumentError, match="expected an InputMode"):
        rep.Replicator(input_mode="single")


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_elements_wait_on_the_replicas_accelerators(graph: Any, mode: str) -> None:
    """Simulated GPUs; what a replica computes stands on its own one."""
    replicator = rep.MultiDevice(["/gpu:0", "/gpu:1"], input_mode=rep.InputMode.PER_REPLICA)
    optimizer = replicator.wrap_optimizer(fs.train.GradientDescentOptimizer(1.0))

    def input_fn(ctx: Any) -> Any:
        rows = np.arange(6, dtype=np.float32).reshape(3, 2) + 10.0 * ctx.input_pipeline_id
        return fs.data.Dataset.from_tensor_slices(rows)

    def step(x: Any) -> Any:
        assert x.device.endswith(f"GPU:{rep.current_replica_id()}")
        w = fs.get_variable("w", [2], initializer=fs.zeros_initializer())
        assert w.device.endswith(f"GPU:{rep.current_replica_id()}")
        return rep.all_sum(x), optimizer.minimize(fs.reduce_sum(x * w))

    sums, train = replicator.run(step, input_fn)
    config = fs.ConfigProto(fake_devices={"GPU": 2}, mode=mode)
    with replicator.session(config) as sess:
        found, _ = sess.run([sums, train])
        assert [x.tolist() for x in found] == [[10.0, 12.0]] * 2
        replicator.check_copies(sess)
        assert sess.run(fs.trainable_variables()[0]).tolist() == [-5.0, -6.0]
