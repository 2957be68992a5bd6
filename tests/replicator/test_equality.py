"""Replicas on parts of a batch compute what one device computes on the whole of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowscope as fs

rep = fs.replicator
MODES = ["compiled", "op", "tokens"]
COUNTS = [1, 2, 4]
X = np.random.default_rng(5).standard_normal((48, 3))
Y = np.sin(X.sum(1))


def cpus(count: int) -> list[str]:
    return [f"/device:CPU:{i}" for i in range(count)]


def batches(ctx: Any) -> Any:
    data = fs.data.Dataset.from_tensor_slices((X, Y)).repeat()
    return data.batch(ctx.per_replica_batch_size(16))


def dense(x: Any, size: int, name: str) -> Any:
    start = fs.random_normal_initializer(stddev=0.5, seed=7, dtype=fs.float64)
    return fs.layers.dense(x, size, fs.tanh, kernel_initializer=start, name=name)


def plain(x: Any) -> Any:
    return dense(dense(x, 5, "a"), 1, "b")[:, 0]


def looped(x: Any) -> Any:
    w = fs.get_variable("w", [3, 3], fs.float64, fs.constant_initializer(0.2, fs.float64))
    _, y = fs.while_loop(
        lambda i, _: i < 3, lambda i, y: (i + 1, fs.tanh(fs.matmul(y, w)) + x), (0, x)
    )
    return fs.reduce_sum(y, 1)


def branched(x: Any) -> Any:
    """The branch depends on the parameters, which are the same on all replicas."""
    w = fs.get_variable("w", [3], fs.float64, fs.zeros_initializer())
    z = fs.reduce_sum(x * w, 1)
    return fs.cond(w[0] > 0.01, lambda: fs.tanh(z), lambda: 2.0 * z)


def normed(x: Any) -> Any:
    """Batch normalisation over the examples of all replicas."""
    h = dense(x, 4, "a")
    n = rep.num_replicas_in_sync()
    mean = fs.reduce_mean(h, 0)
    mean, square = rep.all_sum([mean / n, fs.reduce_mean(h * h, 0) / n])
    h = (h - mean) / fs.sqrt(square - mean * mean + 1e-3)
    return dense(h, 1, "b")[:, 0]


def trained(
    replicator: Any, model: Callable[[Any], Any], optimizer: Any, mode: str, steps: int = 6
) -> list[np.ndarray[Any, Any]]:
    """The losses of some steps, and the variables after them."""
    with fs.Graph().as_default():
        wrapped = replicator.wrap_optimizer(optimizer)

        def train_step(batch: Any) -> Any:
            x, y = batch
            loss = fs.reduce_mean(fs.square(model(x) - y))
            step = fs.train.get_or_create_global_step()
            return {"loss": loss, "train": wrapped.minimize(loss, step)}

        out = replicator.run(train_step, batches)
        loss = replicator.reduce(out["loss"], "mean")
        config = fs.ConfigProto(mode=mode, device_count={"CPU": 4})
        with replicator.session(config) as sess:
            losses = [sess.run([loss, out["train"]])[0] for _ in range(steps)]
            replicator.check_copies(sess)
            assert sess.run(fs.train.get_global_step()) == steps
            names = [v.name for v in fs.global_variables()]
            values = sess.run(fs.global_variables())
        return [np.array(losses), *[v for _, v in sorted(zip(names, values, strict=True))]]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("model", [plain, looped, branched, normed])
def test_replicas_equal_one_device_on_the_joined_batch(model: Any, mode: str) -> None:
    expected = trained(rep.Replicator(), model, fs.train.MomentumOptimizer(0.1, 0.9), mode)
    assert expected[0][-1] < expected[0][0]
    for count in (2, 4):
        made = fs.train.MomentumOptimizer(0.1, 0.9)
        found = trained(rep.MultiDevice(cpus(count)), model, made, mode)
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "make", [lambda: fs.train.AdamOptimizer(0.01), lambda: fs.train.AdagradOptimizer(0.1)]
)
def test_slots_follow_their_variables(make: Callable[[], Any]) -> None:
    expected = trained(rep.Replicator(), plain, make(), "compiled")
    found = trained(rep.MultiDevice(2), plain, make(), "compiled")
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)


def test_two_step_functions_share_variables(graph: Any) -> None:
    """A game of two: one raises what the other one lowers."""
    replicator = rep.MultiDevice(2)
    optimizer = replicator.wrap_optimizer(fs.train.GradientDescentOptimizer(0.5))

    def own(name: str) -> Any:
        with fs.variable_scope("net", reuse=fs.AUTO_REUSE):
            return fs.get_variable(name, [], initializer=fs.ones_initializer())

    def up() -> Any:
        return optimizer.minimize(-own("a") * own("b"), var_list=[own("a")])

    def down() -> Any:
        return optimizer.minimize(own("a") * own("b"), var_list=[own("b")])

    first, second = replicator.run(up), replicator.run(down)
    with replicator.session() as sess:
        sess.run(first)
        assert sess.run(fs.global_variables()) == [1.5, 1.0]
        sess.run(second)
        assert sess.run(fs.global_variables()) == [1.5, 0.25]
        replicator.check_copies(sess)


def test_sparse_gradients_are_joined(graph: Any) -> None:
    replicator = rep.MultiDevice(2)
    optimizer = replicator.wrap_optimizer(fs.train.GradientDescentOptimizer(1.0))

    def step() -> Any:
        table = fs.get_variable("table", [4], initializer=fs.zeros_initializer())
        rows = fs.constant([0, 1]) if rep.current_replica_id() == 0 else fs.constant([1, 1, 3])
        return optimizer.minimize(fs.reduce_sum(fs.gather(table, rows)))

    train = replicator.run(step)
    with replicator.session() as sess:
        sess.run(train)
        replicator.check_copies(sess)
        assert sess.run(fs.global_variables()[0]).tolist() == [-0.5, -1.5, 0.0, -0.5]


def test_a_replicas_losses_are_its_own(graph: Any) -> None:
    """Collections show a replica what it has added, and losses of variables' regularizers."""
    replicator = rep.MultiDevice(3)

    def step() -> Any:
        w = fs.get_variable(
            "w", [2], initializer=fs.ones_initializer(), regularizer=lambda v: fs.reduce_sum(v * v)
        )
        fs.losses.add_loss(fs.constant(float(rep.current_replica_id())))
        total = fs.losses.get_total_loss()
        return total, fs.gradients(total, w)[0]

    totals, grads = replicator.run(step)
    with replicator.session() as sess:
        assert sess.run(totals) == (2.0, 3.0, 4.0)
        assert [g.tolist() for g in sess.run(grads)] == [[2.0, 2.0]] * 3
    assert len(fs.losses.get_losses()) == 1


def test_a_replicated_step_is_the_code_that_is_written_by_hand() -> None:
    """References and copies leave nothing behind in plans."""

    def loss_of(w: Any, v: Any) -> Any:
        x = fs.constant(np.ones((4, 3), np.float32))
        return fs.reduce_mean(fs.square(fs.matmul(fs.tanh(fs.matmul(x, w)), v)))

    def variables() -> list[Any]:
        return [fs.Variable(np.ones(shape, np.float32)) for shape in ((3, 3), (3, 1))]

    def lines(fetches: Any) -> list[str]:
        with fs.Session() as sess:
            code = sess.plan(fetches).text("lower")
        return sorted(line.split(" = ")[-1].split("(")[0] for line in code.splitlines())

    with fs.Graph().as_default():
        copies = [variables() for _ in range(2)]
        losses = [loss_of(*pair) for pair in copies]
        grads = [fs.gradients(loss, pair) for loss, pair in zip(losses, copies, strict=True)]
        means = [fs.collectives.all_reduce(list(g), "mean") for g in zip(*grads, strict=True)]
        updates = []
        for i, pair in enumerate(copies):
            own = [(mean[i], v) for mean, v in zip(means, pair, strict=True)]
            updates.append(fs.train.GradientDescentOptimizer(0.1).apply_gradients(own))
        by_hand = lines([losses, fs.group(*updates)])
    with fs.Graph().as_default():
        replicator = rep.MultiDevice(2)
        optimizer = replicator.wrap_optimizer(fs.train.GradientDescentOptimizer(0.1))

        def step() -> Any:
            loss = loss_of(*variables())
            return loss, optimizer.minimize(loss)

        assert lines(list(replicator.run(step))) == by_hand
