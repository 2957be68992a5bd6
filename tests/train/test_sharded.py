"""Optimizers whose state is cut into parts: the bits of whole ones, 1/n of the slots per rank."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError

MODES = ("compiled", "op", "tokens")
DRAW = np.random.default_rng(2)
START = {"w": DRAW.normal(size=(5, 3)).astype("f4"), "b": DRAW.normal(size=7).astype("f4")}
MAKERS = {
    "sgd": lambda: fs.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: fs.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: fs.train.AdamOptimizer(0.1),
    "adagrad": lambda: fs.train.AdagradOptimizer(0.1),
    "rmsprop": lambda: fs.train.RMSPropOptimizer(0.1),
}


def cpus(count):
    return [f"/cpu:{i}" for i in range(count)]


def loss_of(w, b):
    return fs.reduce_sum(fs.square(w)) + fs.reduce_sum(fs.tanh(b) * 2.0)


def trained(make, ranks, mode, steps=3):
    """Values of variables after some steps, and how many elements the slots have per rank."""
    with fs.Graph().as_default():
        variables = [fs.Variable(x, name=name) for name, x in START.items()]
        inner = make()
        optimizer = fs.train.sharded(inner, cpus(ranks)) if ranks else inner
        step = fs.train.get_or_create_global_step()
        train = optimizer.minimize(loss_of(*variables), step)
        config = fs.ConfigProto(mode=mode, device_count={"CPU": max(1, ranks)})
        with fs.Session(config=config) as sess:
            sess.run(fs.global_variables_initializer())
            for _ in range(steps):
                sess.run(train)
            assert sess.run(step) == steps
            sizes = [0] * max(1, ranks)
            for _, v, slot in inner.tracked_slots():
                rank = int(v.op.name.rpartition("_")[2]) if ranks else 0
                sizes[rank] += slot.shape.num_elements()
            return sess.run(variables), sizes


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", MAKERS)
def test_parts_are_updated_to_the_bits_of_the_whole(name, mode):
    expected, (slots,) = trained(MAKERS[name], 0, mode)
    for ranks in (1, 2, 3, 4):
        found, sizes = trained(MAKERS[name], ranks, mode)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
        assert sum(sizes) == slots
        per_element = slots // 22
        parts = [sum(n * (r + 1) // ranks - n * r // ranks for n in (15, 7)) for r in range(ranks)]
        assert sizes == [per_element * n for n in parts]


@pytest.mark.parametrize("mode", MODES)
def test_the_mean_of_the_ranks_gradients_is_applied_to_all_copies(mode):
    gs = [np.arange(6, dtype="f4") * (r + 1) for r in range(3)]
    with fs.Graph().as_default():
        copies = []
        for r in range(3):
            with fs.device(f"/cpu:{r}"):
                copies.append(fs.Variable(np.ones(6, "f4"), name=f"w_{r}"))
        optimizer = fs.train.sharded(fs.train.MomentumOptimizer(1.0, 0.5), cpus(3))
        train = optimizer.apply_gradients([([fs.constant(g) for g in gs], copies)])
        with fs.Session(config=fs.ConfigProto(mode=mode, device_count={"CPU": 3})) as sess:
            sess.run(fs.global_variables_initializer())
            for _ in range(2):
                sess.run(train)
            for one in sess.run(copies):
                np.testing.assert_array_equal(one, 1 - 2.5 * np.arange(6, dtype="f4") * 2)
        assert [s.shape.as_list() for s in optimizer.shards(copies[0])] == [[2], [2], [2]]


def test_a_variable_that_was_loaded_is_what_is_updated(graph):
    v = fs.Variable(np.zeros(4, "f4"))
    train = fs.train.sharded(fs.train.GradientDescentOptimizer(1.0), cpus(2)).apply_gradients(
        [(fs.ones([4]), v)]
    )
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 2})) as sess:
        sess.run(fs.global_variables_initializer())
        v.load(np.full(4, 8.0, "f4"), sess)
        sess.run(train)
        assert sess.run(v).tolist() == [7.0] * 4


def test_all_writes_of_an_update_are_one_group(graph):
    v = fs.Variable(np.zeros(4, "f4"))
    before = len(graph)
    fs.train.sharded(fs.train.AdamOptimizer(), cpus(2)).apply_gradients([(fs.ones([4]), v)])
    writes = [
        op.definition.group
        for op in graph.operations_since(before)
        if op.definition.writes_state and op.type.startswith(("Apply", "Assign"))
    ]
    assert {"sharded_Adam"} <= set(writes)
    assert not [g for g in writes if g and g != "sharded_Adam"]


def test_sparse_gradients_are_made_dense(graph):
    v = fs.Variable(np.ones((4, 2), "f4"))
    loss = fs.reduce_sum(fs.gather(v, [1, 1]))
    train = fs.train.sharded(fs.train.GradientDescentOptimizer(0.5), cpus(3)).minimize(loss)
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3})) as sess:
        sess.run(fs.global_variables_initializer())
        sess.run(train)
        assert sess.run(v).tolist() == [[1, 1], [0, 0], [1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: fs.train.sharded("adam", ["/cpu:0"]), DTypeError, "expected an optimizer"),
        (lambda: fs.train.sharded(MAKERS["sgd"](), []), InvalidArgumentError, "for each rank"),
        (lambda: fs.train.sharded(MAKERS["sgd"](), "/cpu:0"), InvalidArgumentError, "each rank"),
        (
            lambda: fs.train.sharded(MAKERS["sgd"](), cpus(3)).apply_gradients(
                [([fs.ones([2])] * 2, fs.Variable([1.0, 2.0], name="v"))]
            ),
            InvalidArgumentError,
            "expected 3 gradients of v:0, or one, got 2",
        ),
        (
            lambda: fs.train.sharded(MAKERS["sgd"](), cpus(2)).apply_gradients([(1.0, "v")]),
            DTypeError,
            "expected a variable",
        ),
        (
            lambda: fs.train.sharded(MAKERS["sgd"](), cpus(2)).apply_gradients([(None, "v")]),
            InvalidArgumentError,
            "no gradients were given",
        ),
    ],
)
def test_what_does_not_fit_is_refused(graph, make, error, text):
    with pytest.raises(error) as caught:
        make()
    assert text in str(caught.value)
