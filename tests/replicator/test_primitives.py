"""Primitives of replicas: values, gradients, and what is said when replicas do not do the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowscope as fs

rep = fs.replicator
MODES = ["compiled", "op", "tokens"]


def values(step: Callable[[], Any], count: int = 3, mode: str = "compiled") -> Any:
    with fs.Graph().as_default():
        replicator = rep.MultiDevice(count)
        found = replicator.run(step)
        with replicator.session(fs.ConfigProto(mode=mode)) as sess:
            return sess.run(found)


def own(*factors: float) -> Any:
    """A tensor of each replica: the factors, times its number and one."""
    return fs.constant(factors, fs.float64) * (rep.current_replica_id() + 1)


def equal(found: Any, wanted: Any) -> None:
    for one in found:
        np.testing.assert_array_equal(one, wanted)


@pytest.mark.parametrize("mode", MODES)
def test_values(mode: str) -> None:
    def step() -> Any:
        x = own(1.0, -1.0)
        return {
            "sum": rep.all_sum({"a": x, "b": [x[0]]}),
            "min": rep.all_min(x),
            "max": rep.all_max(x),
            "mean": rep.all_reduce(x, rep.ReduceOp.MEAN),
            "prod": rep.all_reduce(x, "prod"),
            "first": rep.all_reduce(x, "only_first"),
            "gather": rep.all_gather(x),
            "broadcast": rep.broadcast(x, source=1),
        }

    found = values(step, mode=mode)
    equal(found["sum"]["a"], [6.0, -6.0])
    equal(found["sum"]["b"][0], 6.0)
    equal(found["min"], [1.0, -3.0])
    equal(found["max"], [3.0, -1.0])
    equal(found["mean"], [2.0, -2.0])
    equal(found["prod"], [6.0, -6.0])
    equal(found["first"], [1.0, -1.0])
    equal(found["gather"], [[1.0, -1.0], [2.0, -2.0], [3.0, -3.0]])
    equal(found["broadcast"], [2.0, -2.0])


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_maps(count: int) -> None:
    def step() -> Any:
        items = [1.0, 2.0, 3.0, 4.0]
        tens = rep.map_gather(items, lambda x: {"x": fs.constant(x) * 10.0})
        reductions = [rep.map_reduce(items, fs.constant, op) for op in rep.ReduceOp]
        return tens, reductions

    tens, reductions = values(step, count)
    for item, found in enumerate(tens):
        equal(found["x"], 10.0 * (item + 1))
    for found, wanted in zip(reductions, [10.0, 2.5, 1.0, 4.0, 1.0], strict=True):
        equal(found, wanted)


def test_a_map_computes_each_item_on_one_replica() -> None:
    called: list[tuple[int, float]] = []

    def function(x: float) -> Any:
        called.append((rep.current_replica_id(), x))
        return fs.constant(x)

    values(lambda: rep.map_gather([0.0, 1.0, 2.0, 3.0, 4.0], function), 2)
    assert called == [(0, 0.0), (0, 2.0), (0, 4.0), (1, 1.0), (1, 3.0)]


def test_merge_call_sees_all_replicas_once() -> None:
    seen = []

    def merge(replicator: Any, x: Any, more: Any) -> Any:
        seen.append((type(x).__name__, len(x), len(more["y"])))
        largest = replicator.reduce(x, "max")
        return rep.PerReplica([v / largest for v in more["y"]])

    def step() -> Any:
        return rep.merge_call(merge, own(1.0), {"y": own(3.0)}, like=own(1.0))

    found = values(step)
    assert [v.tolist() for v in found] == [[1.0], [2.0], [3.0]]
    assert seen == [("PerReplica", 3, 3)]


REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": rep.all_sum,
    "mean": lambda x: rep.all_reduce(x, "mean"),
    "min": rep.all_min,
    "max": rep.all_max,
    "prod": lambda x: rep.all_reduce(x, "prod"),
    "gather": rep.all_gather,
    "broadcast": lambda x: rep.broadcast(x, 1),
    "map": lambda x: rep.map_gather([1.0, 2.0, 3.0], lambda c: c * x * x),
}


@pytest.mark.parametrize("name", list(REDUCTIONS))
def test_gradients_are_those_of_the_sum_of_all_losses(name: str) -> None:
    """Against differences of two runs, for each element of each replica's input."""
    count, size = 3, 2
    start = np.random.default_rng(3).standard_normal((count, size))
    with fs.Graph().as_default():
        replicator = rep.MultiDevice(count)
        fed = fs.placeholder(fs.float64, [count, size])

        def step() -> Any:
            x = fed[rep.current_replica_id()]
            y = REDUCTIONS[name](fs.sin(x))
            weight = rep.current_replica_id() + 0.5
            leaves = [fs.reduce_sum(fs.square(leaf)) for leaf in fs.nest.flatten(y)]
            loss = fs.add_n(leaves) * weight + fs.reduce_sum(x * x)
            return loss, fs.gradients(loss, x)[0]

        losses, grads = replicator.run(step)
        total = replicator.reduce(losses, "sum")
        with replicator.session() as sess:
            found = np.stack(sess.run(grads, {fed: start}))
            for place in np.ndindex(count, size):
                up, down = start.copy(), start.copy()
                up[place] += 1e-5
                down[place] -= 1e-5
                slope = (sess.run(total, {fed: up}) - sess.run(total, {fed: down})) / 2e-5
                np.testing.assert_allclose(found[place], slope, rtol=1e-6, atol=1e-8)


def test_second_derivatives() -> None:
    def step() -> Any:
        x = own(1.0, 2.0)
        weight = rep.current_replica_id() + 1.0
        y = rep.all_sum(x * x)
        (g,) = fs.gradients(fs.reduce_sum(y) * weight, x)
        return g, fs.gradients(g[0] * weight, x)[0]

    first, second = values(step, 2)
    assert [g.tolist() for g in first] == [[6.0, 12.0], [12.0, 24.0]]
    assert [g.tolist() for g in second] == [[6.0, 0.0], [12.0, 0.0]]


def test_gradients_after_the_step_is_built(graph: Any) -> None:
    replicator = rep.MultiDevice(2)
    x = fs.placeholder(fs.float64, [2])
    found = replicator.run(lambda: rep.all_sum(x[rep.current_replica_id()] ** 2.0))
    (g,) = fs.gradients(replicator.reduce(found, "sum"), x)
    with replicator.session() as sess:
        assert sess.run(g, {x: [1.0, 3.0]}).tolist() == [4.0, 12.0]


def by_replica(*steps: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: steps[rep.current_replica_id()]()


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "other primitive": (
        by_replica(lambda: rep.all_sum(1.0), lambda: rep.all_max(1.0)),
        r"replica 1 calls all_max \(.*line \d+\) where replica 0 calls all_sum \(.*line \d+\)",
    ),
    "other order": (
        by_replica(
            lambda: [rep.all_sum(1.0), rep.all_gather(1.0)],
            lambda: [rep.all_gather(1.0), rep.all_sum(1.0)],
        ),
        "replica 1 calls all_gather .* where replica 0 calls all_sum",
    ),
    "other source": (
        by_replica(lambda: rep.broadcast(1.0, 0), lambda: rep.broadcast(1.0, 1)),
        "with the same arguments",
    ),
    "other shape": (lambda: rep.all_sum(fs.zeros([2 + rep.current_replica_id()])), r"\(3,\)"),
    "other dtype": (by_replica(lambda: rep.all_sum(1), lambda: rep.all_sum(1.0)), "float32"),
    "other structure": (
        by_replica(lambda: rep.all_sum([1.0]), lambda: rep.all_sum({"a": 1.0})),
        "another structure",
    ),
    "too few": (
        by_replica(lambda: rep.all_sum(1.0), lambda: fs.constant(1.0)),
        r"replica 0 calls all_sum \(.*\) where replica 1 calls nothing more",
    ),
    "too many": (
        by_replica(lambda: fs.constant(1.0), lambda: rep.all_sum(1.0)),
        r"replica 1 calls all_sum \(.*\), but replica 0 calls 0 primitives only",
    ),
    "other results": (
        by_replica(lambda: fs.constant(1.0), lambda: [fs.constant(1.0)]),
        "replica 1 returns another structure than replica 0",
    ),
    "in a branch": (
        lambda: fs.cond(fs.constant(True), lambda: rep.all_sum(1.0), lambda: fs.constant(1.0)),
        "all_sum is called in the body of a branch",
    ),
    "no source": (lambda: rep.broadcast(1.0, 2), "one of 2 replicas as the source, got 2"),
    "no items": (lambda: rep.map_gather([], fs.constant), "expected items to map"),
    "items differ": (
        lambda: rep.map_gather([1, 2, 3], lambda n: fs.zeros([n])),
        "results of one dtype and shape for all items",
    ),
    "no reduction": (lambda: rep.all_reduce(1.0, "median"), "expected one of SUM, MEAN"),
    "variables differ": (
        by_replica(lambda: fs.constant(1.0), lambda: fs.Variable(1.0, name="w")),
        "replica 1 makes a variable 'w' that replica 0 does not make",
    ),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_what_differs_among_replicas_is_one_error(graph: Any, name: str) -> None:
    step, message = WRONG[name]
    with pytest.raises((fs.errors.InvalidArgumentError, fs.errors.GraphError), match=message):
        rep.MultiDevice(2).run(step)


def test_an_exception_names_the_replica(graph: Any) -> None:
    def step() -> Any:
        return fs.constant(1 / (1 - rep.current_replica_id()))

    with pytest.raises(ZeroDivisionError) as error:
        rep.MultiDevice(2).run(step)
    assert error.value.__notes__ == ["while replica 1 of 2 was built"]


def test_outside_of_step_functions_there_is_no_replica(graph: Any) -> None:
    for call in (rep.current_replica_id, rep.num_replicas_in_sync, lambda: rep.all_sum(1.0)):
        with pytest.raises(fs.errors.FailedPreconditionError, match="for step functions"):
            call()
    with pytest.raises(fs.errors.FailedPreconditionError, match="while a replica is built"):
        rep.Replicator().run(lambda: rep.Replicator().run(lambda: fs.constant(1.0)))


def test_results_say_whether_they_are_equal(graph: Any) -> None:
    replicator = rep.MultiDevice(2)

    def step() -> Any:
        return rep.all_sum(1.0), fs.constant(float(rep.current_replica_id())), None, fs.no_op()

    total, number, nothing, op = replicator.run(step)
    assert type(total) is rep.Mirrored
    assert type(number) is rep.PerReplica
    assert nothing is None
    assert isinstance(op, fs.Operation)
    with replicator.session() as sess:
        assert sess.run(replicator.reduce([number], "mean")) == [0.5]
        again = replicator.broadcast({"x": 3.0})
        assert type(again["x"]) is rep.Mirrored
        assert sess.run(again) == {"x": (3.0, 3.0)}
    with pytest.raises(fs.errors.InvalidArgumentError, match="PerReplica values to reduce"):
        replicator.reduce(fs.constant(1.0), "sum")


def test_explicit_seeds_follow_the_replica() -> None:
    def step() -> Any:
        return fs.nn.dropout(fs.ones([64]), rate=0.5, seed=3), fs.random_normal([4])

    first, again, more = values(step, 2), values(step, 2), values(step, 3)
    assert not np.array_equal(first[0][0], first[0][1])
    assert not np.array_equal(first[1][0], first[1][1])
    for i in range(2):
        np.testing.assert_array_equal(first[0][i], again[0][i])
        np.testing.assert_array_equal(first[0][i], more[0][i])
