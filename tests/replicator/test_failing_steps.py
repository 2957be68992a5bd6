"""Steps that fail or are stopped leave all copies as they were, or all updated."""

from __future__ import annotations

from typing import Any

import pytest
from late_steps import late

import flowscope as fs

rep = fs.replicator


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_replica_that_fails_behind_its_update_changes_no_copy(
    graph: Any, mode: str, bad: int
) -> None:
    fails = fs.placeholder(fs.bool, [])
    replicator = rep.MultiDevice(3)
    optimizer = replicator.wrap_optimizer(fs.train.MomentumOptimizer(0.5, 0.9))

    def step() -> Any:
        w = fs.get_variable("w", [], initializer=fs.ones_initializer())
        train = optimizer.minimize(w * (rep.current_replica_id() + 1.0))
        if rep.current_replica_id() != bad:
            return train
        with fs.control_dependencies([train]):
            return fs.group(fs.Assert(fs.logical_not(fs.identity(fails)), ["late failure"]))

    train = replicator.run(step)
    with replicator.session(fs.ConfigProto(mode=mode)) as sess:
        sess.run(train, {fails: False})
        before = sess.run(fs.global_variables())
        with pytest.raises(fs.errors.InvalidArgumentError, match="late failure"):
            sess.run(train, {fails: True})
        replicator.check_copies(sess)
        sess.run(train, {fails: False})
        replicator.check_copies(sess)
        assert sess.run(fs.global_variables()) != before


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_a_step_that_runs_out_of_time_changes_no_copy(graph: Any, mode: str) -> None:
    """Replica 1 waits for an element that does not come."""
    queue = fs.FIFOQueue(8, [fs.float32], [[]])
    replicator = rep.MultiDevice(2)
    optimizer = replicator.wrap_optimizer(fs.train.GradientDescentOptimizer(1.0))

    def step() -> Any:
        w = fs.get_variable("w", [], initializer=fs.zeros_initializer())
        return optimizer.minimize(w * queue.dequeue())

    train = replicator.run(step)
    one = queue.enqueue(1.0)
    with replicator.session(fs.ConfigProto(mode=mode)) as sess:
        sess.run(one)
        late(sess, train, ms=100)
        replicator.check_copies(sess)
        assert sess.run(fs.global_variables()) == [0.0]
        sess.run(one)
        sess.run(train)
        replicator.check_copies(sess)
        assert sess.run(fs.global_variables()) == [-1.0]
