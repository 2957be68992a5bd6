"""Iterators feed training: each kind, and epochs that end by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")

Dataset = fs.data.Dataset


def digits() -> tuple[Any, Any]:
    from sklearn.datasets import load_digits

    found = load_digits()
    return (found.data / 16.0).astype(np.float32), found.target.astype(np.int32)


def train(images: Any, labels: Any) -> tuple[Any, Any]:
    """An update of a perceptron, and its loss."""
    with fs.variable_scope("mlp", reuse=fs.AUTO_REUSE):
        hidden = fs.layers.dense(images, 32, fs.nn.relu, name="hidden")
        logits = fs.layers.dense(hidden, 10, name="logits")
    loss = fs.losses.sparse_softmax_cross_entropy(labels, logits)
    return fs.train.AdamOptimizer(0.01).minimize(loss), loss


@pytest.mark.parametrize("kind", ["one_shot", "initializable", "structure", "handle"])
def test_a_perceptron_learns_digits_from_each_kind(kind: str) -> None:
    fs.set_random_seed(2)
    examples = Dataset.from_tensor_slices(digits()).shuffle(2000).repeat().batch(64).prefetch(2)
    feeds: dict[Any, Any] = {}
    begin: Any = fs.no_op()
    if kind == "one_shot":
        iterator = examples.make_one_shot_iterator()
    elif kind == "initializable":
        iterator = examples.make_initializable_iterator()
        begin = iterator.initializer
    else:
        types, shapes = examples.output_types, examples.output_shapes
        iterator = fs.data.Iterator.from_structure(types, shapes)
        begin = iterator.make_initializer(examples)
    if kind == "handle":
        name, source = fs.placeholder(fs.string, []), iterator
        iterator = fs.data.Iterator.from_string_handle(name, types, shapes)
    update, loss = train(*iterator.get_next())
    with fs.Session() as session:
        session.run([fs.global_variables_initializer(), begin])
        if kind == "handle":
            feeds[name] = session.run(source.string_handle())
        losses = [session.run([loss, update], feeds)[0] for _ in range(120)]
    assert np.mean(losses[:5]) > 2.0
    assert np.mean(losses[-10:]) < 0.4


def test_all_of_training_in_one_step() -> None:
    examples = Dataset.from_tensor_slices(digits()).shuffle(2000, seed=1).batch(100)
    images, labels = examples.repeat(4).make_one_shot_iterator().get_next()
    w = fs.get_variable("w", [64, 10], initializer=fs.zeros_initializer(), use_resource=True)
    loss = fs.losses.sparse_softmax_cross_entropy(labels, fs.matmul(images, w))
    update = fs.train.GradientDescentOptimizer(0.5).minimize(loss)
    with fs.Session() as session:
        session.run(fs.global_variables_initializer())
        losses = [session.run([loss, update])[0] for _ in range(72)]
        with pytest.raises(fs.errors.OutOfRangeError):
            session.run(update)
    assert losses[-1] < 0.6 < losses[0]
