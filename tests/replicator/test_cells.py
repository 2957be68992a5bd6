"""Cells that build replicas are run again: the same stays, and what changed takes its place."""

from __future__ import annotations

from typing import Any

import pytest

import flowscope as fs

rep = fs.replicator


def build(replicator: Any, factor: float) -> Any:
    optimizer = replicator.wrap_optimizer(fs.train.MomentumOptimizer(0.5, 0.9))

    def step() -> Any:
        w = fs.Variable(1.0, name="w")
        v = fs.get_variable("v", [], initializer=fs.ones_initializer())
        loss = w * v * factor * (rep.current_replica_id() + 1.0)
        return rep.all_sum(loss), optimizer.minimize(loss)

    return replicator.run(step)


def test_the_same_cell_again_changes_nothing(graph: Any) -> None:
    replicator = rep.MultiDevice(2)
    with graph.cell("a"):
        loss, train = build(replicator, 1.0)
    names = [op.name for op in graph.get_operations()]
    with replicator.session() as sess:
        sess.run(train)
        wanted = sess.run([loss, *fs.global_variables()])
        with graph.cell("a"):
            again, train = build(replicator, 1.0)
        assert sorted(op.name for op in graph.get_operations() if op.name in names) == sorted(names)
        assert sess.run([again, *fs.global_variables()]) == wanted
        assert sess.run([loss, *fs.global_variables()]) == wanted
        sess.run(train)
        replicator.check_copies(sess)


def test_an_edited_cell_takes_the_earlier_ones_place(graph: Any) -> None:
    replicator = rep.MultiDevice(2)
    with graph.cell("a"):
        loss, _ = build(replicator, 1.0)
    with graph.cell("b"):
        doubled = replicator.reduce(loss, "mean") * 2.0
    with replicator.session() as sess:
        assert sess.run(doubled) == 6.0
        with graph.cell("a"):
            _, train = build(replicator, 10.0)
        assert sess.run(doubled) == 60.0
        sess.run(train)
        replicator.check_copies(sess)
        assert sess.run(fs.trainable_variables()) == [-6.5, -6.5]


def test_a_cell_that_fails_is_taken_back(graph: Any) -> None:
    replicator = rep.MultiDevice(2)
    with graph.cell("a"):
        loss, train = build(replicator, 1.0)

    def step() -> Any:
        if rep.current_replica_id():
            raise KeyError("replica 1")
        return rep.all_sum(1.0)

    with pytest.raises(KeyError), graph.cell("a"):
        replicator.run(step)
    with replicator.session() as sess:
        assert sess.run(loss) == (3.0, 3.0)
        sess.run(train)
        replicator.check_copies(sess)


def test_losses_of_an_earlier_run_do_not_count_again(graph: Any) -> None:
    replicator = rep.MultiDevice(2)

    def step() -> Any:
        fs.losses.add_loss(fs.constant(1.0) + rep.current_replica_id())
        return fs.losses.get_total_loss()

    def total(cell: str) -> Any:
        with graph.cell(cell):
            return replicator.run(step, name=cell)

    with fs.Session() as sess:
        assert sess.run(total("a")) == (1.0, 2.0)
        assert sess.run(total("a")) == (1.0, 2.0)
        assert sess.run(total("b")) == (2.0, 4.0)  # the losses of both steps, as on one device
        assert sess.run(total("b")) == (2.0, 4.0)
        assert sess.run(total("a")) == (2.0, 4.0)
