"""SyncReplicasOptimizer: means of several clients' gradients, stale ones dropped, tokens."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, FailedPreconditionError, InvalidArgumentError

PATIENCE_S = 30
STEPS = 12
_RNG = np.random.default_rng(3)
X = _RNG.normal(size=(12, 3))
Y = X @ np.array([1.0, -2.0, 3.0]) + 0.5


class Model:
    """A line through points, and rows of a table, trained by some optimizer."""

    def __init__(self, optimizer: Any, wraps: Any = lambda optimizer: optimizer) -> None:
        self.x, self.y = fs.placeholder(fs.float64, [None, 3]), fs.placeholder(fs.float64, [None])
        self.w = fs.get_variable("w", [3], fs.float64, fs.zeros_initializer())
        self.table = fs.get_variable("table", [4, 1], fs.float64, fs.zeros_initializer())
        self.step = fs.train.get_or_create_global_step()
        row = fs.gather(self.table, fs.cast(self.x[:, 0] > 0, fs.int32))[:, 0]
        error = fs.reduce_sum(self.x * self.w, 1) + row - self.y
        self.optimizer = wraps(optimizer)
        self.train = self.optimizer.minimize(fs.reduce_mean(error**2), self.step)

    def feeds(self, rows: slice) -> dict[Any, Any]:
        return {self.x: X[rows], self.y: Y[rows]}


def optimizer_of(kind: str) -> Any:
    if kind == "sgd":
        return fs.train.GradientDescentOptimizer(0.1)
    return fs.train.MomentumOptimizer(0.05, 0.9)


def trained_alone(kind: str, replicas: int) -> list[Any]:
    """The variables after training by one client with the mean of the parts' gradients."""
    with fs.Graph().as_default(), fs.Session() as sess:
        m = Model(optimizer_of(kind))
        parts = len(X) // replicas
        pairs = m.optimizer.compute_gradients(
            fs.reduce_mean((fs.reduce_sum(m.x * m.w, 1) + _row(m) - m.y) ** 2), [m.w, m.table]
        )
        holes = [fs.placeholder(fs.float64, v.shape) for _, v in pairs]
        apply = m.optimizer.apply_gradients(
            [(h, v) for h, (_, v) in zip(holes, pairs, strict=True)], m.step
        )
        dense = [fs.convert_to_tensor(g) for g, _ in pairs]
        sess.run(fs.global_variables_initializer())
        for _ in range(STEPS):
            found = [
                sess.run(dense, m.feeds(slice(k * parts, (k + 1) * parts))) for k in range(replicas)
            ]
            means = [np.mean(g, axis=0) for g in zip(*found, strict=True)]
            # a row is averaged over the replicas that have it
            rows = [np.any(np.array(g[1]) != 0, axis=-1) for g in found]
            counts = np.maximum(np.sum(rows, axis=0), 1)[:, None]
            means[1] = np.sum([g[1] for g in found], axis=0) / counts
            sess.run(apply, dict(zip(holes, means, strict=True)))
        return list(sess.run([m.w, m.table]))


def _row(m: Model) -> Any:
    return fs.gather(m.table, fs.cast(m.x[:, 0] > 0, fs.int32))[:, 0]


@pytest.mark.parametrize("kind", ["sgd", "momentum"])
@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_replicas_train_as_one_with_the_mean_of_their_gradients(
    graph: fs.Graph, kind: str, mode: str
) -> None:
    replicas = 3
    m = Model(
        optimizer_of(kind), lambda one: fs.train.SyncReplicasOptimizer(one, replicas, replicas)
    )
    hooks = [m.optimizer.make_session_run_hook(True, num_tokens=0)]
    parts, failed = len(X) // replicas, []
    # The clients of one graph share the local step, of which workers have one each.
    together = threading.Barrier(replicas, timeout=PATIENCE_S)
    with fs.train.MonitoredTrainingSession(hooks=hooks, config=fs.ConfigProto(mode=mode)) as sess:

        def work(k: int) -> None:
            try:
                for _ in range(STEPS):
                    sess.run(m.train, m.feeds(slice(k * parts, (k + 1) * parts)))
                    together.wait()
            except BaseException as e:
                failed.append(e)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(replicas)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert not failed and not any(t.is_alive() for t in threads)
        step, w, table = sess.run([m.step, m.w, m.table])
        if kind == "momentum":
            assert m.optimizer.get_slot_names() == ["momentum"]
            assert m.optimizer.get_slot(m.w, "momentum") in m.optimizer.variables()
    assert step == STEPS
    for found, expected in zip((w, table), trained_alone(kind, replicas), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_a_backup_is_not_waited_for_and_what_it_sends_late_is_dropped(graph: fs.Graph) -> None:
    """Two of three make an update; the third's gradient is of an old step when it comes."""
    g = fs.placeholder(fs.float64, [])
    w = fs.get_variable("w", [], fs.float64, fs.zeros_initializer())
    step = fs.train.get_or_create_global_step()
    inner = fs.train.GradientDescentOptimizer(1.0)
    optimizer = fs.train.SyncReplicasOptimizer(inner, 2, 3)
    train = optimizer.apply_gradients([(g, w)], step)
    hook = optimizer.make_session_run_hook(True)
    with fs.train.MonitoredTrainingSession(hooks=[hook]) as sess:
        for value in (1.0, 3.0):  # each has a token of the first two
            sess.run(train, {g: value})
        while sess.run(step) < 1:
            pass
        assert sess.run(w) == -2.0
        sess.run(train, {g: 100.0})  # its step is 0: it is dropped, and it gets the new step
        assert sess.run([w, step]) == [-2.0, 1]
        sess.run(train, {g: 2.0})
        sess.run(train, {g: 4.0})
        while sess.run(step) < 2:
            pass
        assert sess.run(w) == -5.0


def test_averages_follow_and_what_is_wrong_is_refused(graph: fs.Graph) -> None:
    w = fs.get_variable("w", [], fs.float64, fs.zeros_initializer())
    step = fs.train.get_or_create_global_step()
    inner = fs.train.GradientDescentOptimizer(1.0)
    with pytest.raises(DTypeError, match="expected an optimizer"):
        fs.train.SyncReplicasOptimizer(3, 1)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="1 or more replicas"):
        fs.train.SyncReplicasOptimizer(inner, 0)
    averages = fs.train.ExponentialMovingAverage(0.5)
    optimizer = fs.train.SyncReplicasOptimizer(
        inner, 2, 1, variable_averages=averages, variables_to_average=[w]
    )
    for early in (optimizer.get_chief_queue_runner, optimizer.get_init_tokens_op):
        with pytest.raises(FailedPreconditionError, match="call apply_gradients"):
            early()
    for pairs, at, said in (
        ([(None, w)], step, "no gradients"),
        ([(1.0, w)], None, "global_step is needed"),
    ):
        with pytest.raises(InvalidArgumentError, match=said):
            optimizer.apply_gradients(pairs, at)
    train = optimizer.apply_gradients([(fs.constant(2.0, fs.float64), w)], step)
    with pytest.raises(FailedPreconditionError, match="called before"):
        optimizer.apply_gradients([(1.0, w)], step)
    with pytest.raises(InvalidArgumentError, match="1 or more tokens"):
        optimizer.get_init_tokens_op(0)
    hook = optimizer.make_session_run_hook(True, num_tokens=1)
    with fs.train.MonitoredTrainingSession(hooks=[hook]) as sess:
        sess.run(train)  # one client, two gradients per update
        sess.run(train)
        average = averages.average(w)
        while sess.run(average) == 0.0:
            pass
        assert sess.run([w, average, step]) == [-2.0, -1.0, 1]
