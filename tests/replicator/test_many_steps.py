"""Many steps in one run: the same bits as one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowscope as fs

rep = fs.replicator
X = np.random.default_rng(4).standard_normal((40, 3))


def trained(replicator: Any, runs: int, mode: str) -> list[Any]:
    """What the last step returns, and the variables, after some runs."""
    with fs.Graph().as_default():
        optimizer = replicator.wrap_optimizer(fs.train.AdamOptimizer(0.1))

        def step(x: Any) -> Any:
            start = fs.glorot_uniform_initializer(3, fs.float64)
            y = fs.layers.dense(x, 1, fs.tanh, kernel_initializer=start)
            mean = rep.all_sum(fs.reduce_mean(y) / rep.num_replicas_in_sync())
            loss = fs.reduce_mean(fs.square(y - mean - fs.sin(x)))
            count = fs.train.get_or_create_global_step()
            return {
                "loss": loss,
                "mean": mean,
                "none": None,
                "train": optimizer.minimize(loss, count),
            }

        def input_fn(ctx: Any) -> Any:
            data = fs.data.Dataset.from_tensor_slices(X).repeat()
            return data.batch(ctx.per_replica_batch_size(4))

        found = replicator.run(step, input_fn)
        assert type(found["mean"]) is rep.Mirrored
        with replicator.session(fs.ConfigProto(mode=mode)) as sess:
            for _ in range(runs):
                last = sess.run({k: v for k, v in found.items() if v is not None})
            replicator.check_copies(sess)
            return [*last["loss"], *last["mean"], *sess.run(fs.global_variables())]


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_the_bits_are_those_of_single_steps(mode: str) -> None:
    one_by_one = trained(rep.MultiDevice(2), 6, mode)
    for steps, runs in ((6, 1), (3, 2)):
        found = trained(rep.ManySteps(2, steps), runs, mode)
        for a, b in zip(found, one_by_one, strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_step_is_built_once(graph: Any) -> None:
    built = []

    def step() -> Any:
        built.append(rep.current_replica_id())
        return fs.get_variable("n", [], initializer=fs.zeros_initializer()).assign_add(1.0)

    replicator = rep.ManySteps(2, steps_per_run=5)
    counts = replicator.run(step)
    with replicator.session() as sess:
        assert [sess.run(counts) for _ in range(2)] == [(5.0, 5.0), (10.0, 10.0)]
    assert built == [0, 1]
    for wrong in (0, True, 1.5):
        with pytest.raises(fs.errors.InvalidArgumentError, match="1 or more steps per run"):
            rep.ManySteps(2, wrong)
