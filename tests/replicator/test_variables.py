"""Mirrored variables: a copy per replica, one name, one value to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowscope as fs

rep = fs.replicator
COUNTS = [1, 2, 4]


@pytest.mark.parametrize("count", COUNTS)
def test_all_copies_begin_with_replica_0s_value(graph: Any, count: int) -> None:
    """Also of initial values that are drawn, and of variables made in several ways."""
    replicator = rep.MultiDevice(count)
    layer = fs.layers.Dense(3, name="outside")

    def step() -> Any:
        a = fs.get_variable("a", [4], initializer=fs.random_uniform_initializer())
        b = fs.Variable(fs.random_normal([2]), name="b")
        c = fs.Variable(lambda: fs.random_normal([2]), name="b")
        d = layer(fs.ones([1, 2]))
        with fs.variable_scope(None, "unnamed"):
            e = fs.get_local_variable("e", [], initializer=fs.random_uniform_initializer())
        return [fs.identity(x) for x in (a, b, c, d, e)]

    found = replicator.run(step)
    with replicator.session() as sess:
        replicator.check_copies(sess)
        for values in sess.run(found):
            assert len(values) == count
            for value in values:
                np.testing.assert_array_equal(value, values[0])
    names = [v.op.name for v in fs.global_variables()]
    step_scope = "step/replica_0"
    assert names == ["a", f"{step_scope}/b", f"{step_scope}/b_1", "outside/kernel", "outside/bias"]


def test_variables_made_in_the_scope_belong_to_each_replica(graph: Any) -> None:
    replicator = rep.MultiDevice(2)
    with replicator.scope():
        w = fs.Variable([1.0, 2.0], name="w")
        with replicator.context():
            assert type(w) is rep.MirroredVariable
    assert type(fs.Variable(1.0)) is fs.Variable

    def step() -> Any:
        return w.assign_add([float(rep.current_replica_id()), 0.0])

    found = replicator.run(step)
    with replicator.session() as sess:
        replicator.check_copies(sess)
        assert [x.tolist() for x in sess.run(found)] == [[1.0, 2.0], [2.0, 2.0]]
        assert sess.run(w).tolist() == [1.0, 2.0]
        with pytest.raises(
            fs.errors.FailedPreconditionError, match=r"replica 0: w \(replicas \[1\]"
        ):
            replicator.check_copies(sess)
        assert sess.run(w.assign([5.0, 5.0])).tolist() == [5.0, 5.0]
        replicator.check_copies(sess)
        w.load([7.0, 8.0], sess)
        replicator.check_copies(sess)
        assert sess.run([w, w.is_initialized()])[0].tolist() == [7.0, 8.0]


def test_writes_of_a_step_are_brought_together_as_the_variable_says(graph: Any) -> None:
    replicator = rep.MultiDevice(2)

    def step() -> Any:
        mean = fs.get_variable(
            "mean", [], initializer=fs.zeros_initializer(), trainable=False,
            aggregation=fs.VariableAggregation.MEAN,
        )  # fmt: skip
        return mean.assign(2.0 * rep.current_replica_id() + 1.0)

    found = replicator.run(step)
    with replicator.session() as sess:
        assert sess.run(found) == (2.0, 2.0)
        replicator.check_copies(sess)


@pytest.mark.parametrize("before", COUNTS)
@pytest.mark.parametrize("after", COUNTS)
def test_checkpoints_do_not_depend_on_the_kind(before: int, after: int, tmp_path: Path) -> None:
    def built(replicator: Any) -> Any:
        optimizer = replicator.wrap_optimizer(fs.train.MomentumOptimizer(0.5, 0.9))

        def step() -> Any:
            w = fs.get_variable("w", [2], initializer=fs.ones_initializer())
            return optimizer.minimize(fs.reduce_sum(w * w))

        return replicator.run(step)

    path = str(tmp_path / "model")
    with fs.Graph().as_default():
        first = rep.MultiDevice(before)
        train, saver = built(first), fs.train.Saver()
        with first.session() as sess:
            sess.run(train)
            saver.save(sess, path)
            sess.run(train)
            wanted = sess.run(fs.global_variables())
    with fs.Graph().as_default():
        second = rep.MultiDevice(after)
        train, saver = built(second), fs.train.Saver()
        with second.session() as sess:
            saver.restore(sess, path)
            second.check_copies(sess)
            sess.run(train)
            second.check_copies(sess)
            for a, b in zip(sess.run(fs.global_variables()), wanted, strict=True):
                np.testing.assert_array_equal(a, b)


def test_logical_devices(graph: Any) -> None:
    """Two replicas of two devices each: which operations and variables stand where."""
    cpus = [f"/device:CPU:{i}" for i in range(4)]
    replicator = rep.MultiDevice(cpus, num_logical_devices=2)
    places = []

    def step() -> Any:
        x = fs.constant(1.0)
        with replicator.logical_device_for_variables(1):
            w = fs.get_variable("w", [], initializer=fs.ones_initializer())
        v = fs.get_variable("v", [], initializer=fs.ones_initializer())
        with replicator.logical_device(1):
            y = x + 1.0
        places.append([t.device for t in (x, w.handle, v.handle, y)])
        return y + w + v

    found = replicator.run(step)
    assert places == [
        ["/device:CPU:0", "/device:CPU:1", "/device:CPU:0", "/device:CPU:1"],
        ["/device:CPU:2", "/device:CPU:3", "/device:CPU:2", "/device:CPU:3"],
    ]
    with replicator.session(fs.ConfigProto(device_count={"CPU": 4})) as sess:
        assert sess.run(found) == (4.0, 4.0)
    with pytest.raises(fs.errors.InvalidArgumentError, match="one of 2 logical devices, got 2"):
        replicator.run(lambda: replicator.logical_device(2).__enter__())


def test_what_a_replicator_refuses(graph: Any) -> None:
    wrong = fs.errors.InvalidArgumentError
    for devices, logical in (([], 1), (["/cpu:0"], 2), (0, 1), ("/cpu:0", 1), (True, 1), (2, 0)):
        with pytest.raises(wrong, match="expected"):
            rep.MultiDevice(devices, logical)
    with pytest.raises(fs.errors.DTypeError, match="expected an optimizer"):
        rep.Replicator().wrap_optimizer(3)
    with pytest.raises(wrong, match="expected MEAN or SUM"):
        rep.Replicator().wrap_optimizer(fs.train.GradientDescentOptimizer(1.0), "max")
    with (
        rep.Replicator().scope(),
        pytest.raises(fs.errors.FailedPreconditionError, match="another replicator is open"),
        rep.Replicator().scope(),
    ):
        pass
