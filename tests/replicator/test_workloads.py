"""Programs of the paper, each on several kinds by another replicator alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowscope as fs

rep = fs.replicator

#: A replicator, and how many runs make eight steps.
KINDS: dict[str, Callable[[], tuple[Any, int]]] = {
    "one device": lambda: (rep.Replicator(), 8),
    "devices": lambda: (rep.MultiDevice(2), 8),
    "many steps": lambda: (rep.ManySteps(2, steps_per_run=4), 2),
    "a client": lambda: (rep.MultiWorker(1, 0, queue_devices=[None], name="workload"), 8),
}


def on_all_kinds(program: Callable[[Any, int], Any]) -> list[Any]:
    """What a program computes on each kind, in a graph of its own."""
    found = []
    for make in KINDS.values():
        with fs.Graph().as_default():
            found.append(program(*make()))
    return found


def check_equal(found: list[Any]) -> None:
    for one in found[1:]:
        for a, b in zip(fs.nest.flatten(one), fs.nest.flatten(found[0]), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


def normal(seed: int) -> Any:
    return fs.random_normal_initializer(stddev=0.5, seed=seed, dtype=fs.float64)


def test_a_classifier() -> None:
    draw = np.random.default_rng(0)
    labels = np.arange(64) % 4
    images = draw.standard_normal((64, 6)) + 2.0 * np.eye(6)[labels]

    def program(replicator: Any, runs: int) -> Any:
        optimizer = replicator.wrap_optimizer(fs.train.AdamOptimizer(0.05))

        def input_fn(ctx: Any) -> Any:
            data = fs.data.Dataset.from_tensor_slices((images, labels))
            return data.repeat().batch(ctx.per_replica_batch_size(16))

        def step(batch: Any) -> Any:
            x, y = batch
            h = fs.layers.dense(x, 8, fs.nn.relu, kernel_initializer=normal(1))
            logits = fs.layers.dense(h, 4, kernel_initializer=normal(2))
            losses = fs.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
            loss = fs.reduce_mean(losses)
            return loss, optimizer.minimize(loss)

        losses, train = replicator.run(step, input_fn)
        loss = replicator.reduce(losses, "mean")
        with replicator.session() as sess:
            for _ in range(runs):
                last, _ = sess.run([loss, train])
            replicator.check_copies(sess)
            return last, sess.run(fs.trainable_variables())

    found = on_all_kinds(program)
    check_equal(found)


def test_two_step_functions_of_a_game() -> None:
    """A generator and a discriminator, with spectral normalisation of the latter's weights."""
    real = np.random.default_rng(1).standard_normal((32, 2)) + 3.0

    def program(replicator: Any, runs: int) -> Any:
        optimizer = replicator.wrap_optimizer(fs.train.GradientDescentOptimizer(0.1))
        noise = fs.constant(np.linspace(-1.0, 1.0, 8).reshape(8, 1))

        def generated() -> Any:
            with fs.variable_scope("generator", reuse=fs.AUTO_REUSE):
                return fs.layers.dense(noise, 2, name="out", kernel_initializer=normal(3))

        def judged(x: Any) -> Any:
            with fs.variable_scope("discriminator", reuse=fs.AUTO_REUSE):
                w = fs.get_variable("w", [2, 1], fs.float64, normal(4))
                return fs.matmul(x, w / fs.stop_gradient(fs.norm(w)))

        def trained(scope: str, loss: Any) -> Any:
            variables = fs.get_collection(fs.GraphKeys.TRAINABLE_VARIABLES, scope)
            return loss, optimizer.minimize(loss, var_list=variables)

        def discriminate(x: Any) -> Any:
            fake = judged(generated())
            return trained("discriminator", fs.reduce_mean(fake) - fs.reduce_mean(judged(x)))

        def generate() -> Any:
            return trained("generator", -fs.reduce_mean(judged(generated())))

        def input_fn(ctx: Any) -> Any:
            data = fs.data.Dataset.from_tensor_slices(real).repeat()
            return data.batch(ctx.per_replica_batch_size(8))

        first = replicator.run(discriminate, input_fn)
        second = replicator.run(generate)
        with replicator.session() as sess:
            for _ in range(runs):
                sess.run(first)
            for _ in range(runs):
                sess.run(second)
            replicator.check_copies(sess)
            return sess.run(fs.trainable_variables())

    check_equal(on_all_kinds(program))


def test_evolution_strategies() -> None:
    """The population is spread over the replicas by `map_reduce`."""
    target = np.array([1.0, -2.0, 0.5])

    def program(replicator: Any, runs: int) -> Any:
        def step() -> Any:
            w = fs.get_variable("w", [3], fs.float64, fs.zeros_initializer())
            count = fs.get_variable("count", [], fs.int32, fs.zeros_initializer(), trainable=False)
            value, turn = w.value(), count.value()

            def member(number: int) -> Any:
                noise = fs.random.stateless_normal([3], fs.stack([turn, number]), dtype=fs.float64)
                ahead = fs.reduce_sum(fs.square(value + 0.1 * noise - target))
                behind = fs.reduce_sum(fs.square(value - 0.1 * noise - target))
                return (ahead - behind) / 0.2 * noise

            slope = rep.map_reduce(range(6), member, "mean")
            return fs.group(w.assign_sub(0.05 * slope), count.assign_add(1))

        train = replicator.run(step)
        with replicator.session() as sess:
            for _ in range(runs):
                sess.run(train)
            replicator.check_copies(sess)
            return sess.run(fs.trainable_variables())

    found = on_all_kinds(program)
    check_equal(found)
    assert np.sum(np.square(found[0][0] - target)) < np.sum(np.square(target))


def test_actors_and_a_learner() -> None:
    """Actors put trajectories into a queue; each replica of the learner takes one per step."""

    def program(replicator: Any, runs: int) -> Any:
        queue = fs.FIFOQueue(64, [fs.float64], [[4]], name="trajectories")
        fed = fs.placeholder(fs.float64, [None, 4])
        put = queue.enqueue_many([fed])
        optimizer = replicator.wrap_optimizer(fs.train.GradientDescentOptimizer(0.1))

        def learn() -> Any:
            rewards = queue.dequeue()
            value = fs.get_variable("value", [], fs.float64, fs.zeros_initializer())
            loss = fs.reduce_mean(fs.square(value - rewards))
            return loss, optimizer.minimize(loss)

        losses, train = replicator.run(learn)
        loss = replicator.reduce(losses, "mean")
        with replicator.session() as sess:
            sess.run(put, {fed: np.ones((16, 4)) * 2.0})
            for _ in range(runs):
                last, _ = sess.run([loss, train])
            replicator.check_copies(sess)
            left = sess.run(queue.size())
            return last, sess.run(fs.trainable_variables()), left + 8 * replicator.num_replicas

    check_equal(on_all_kinds(program))


@pytest.mark.parametrize("count", [2, 3])
def test_a_population_that_is_smaller_than_the_replicas(graph: Any, count: int) -> None:
    replicator = rep.MultiDevice(count)
    found = replicator.run(lambda: rep.map_reduce([2.0], fs.constant, "mean"))
    with replicator.session() as sess:
        assert sess.run(found) == (2.0,) * count
