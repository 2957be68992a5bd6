"""Lists of tensors: arrays whose values are replaced and dropped."""

from __future__ import annotations

import random

import numpy as np
import pytest

import flowscope as fs
from flowscope.control.arrays.list_ops import DropItem, SetItem
from flowscope.control.tensor_array_value import Form, Items
from flowscope.ops.core.build import apply


def test_versions_of_a_list_stay_what_they_are() -> None:
    rng = random.Random(3)
    for _ in range(40):
        array = Items.empty(4, Form("list", np.dtype(np.float32), can_grow=True, is_uniform=False))
        versions: list[tuple[Items, dict[int, int]]] = [(array, {})]
        for step in range(30):
            array, values = rng.choice(versions)
            at, values = rng.randrange(4), dict(values)
            if rng.random() < 0.4:
                array = array.drop(at)
                values.pop(at, None)
            else:
                array = array.put(at, step)
                values[at] = step
            versions.append((array, values))
            old, expected = rng.choice(versions)
            assert {i: old.get(i) for i in old.indices()} == expected
    for old, expected in versions:
        assert {i: old.get(i) for i in old.indices()} == expected


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_a_replaced_value_gets_no_gradient(mode: str) -> None:
    with fs.Graph().as_default():
        a, b, c = (fs.placeholder(fs.float32, [2]) for _ in range(3))
        items = fs.TensorArray(fs.float32, 2, True, False, element_shape=[2]).flow
        items = apply(SetItem(), items, fs.constant(0), a)
        first = fs.TensorArray(fs.float32, flow=items, clear_after_read=False).read(0)
        items = apply(SetItem(), items, fs.constant(0), b)
        items = apply(SetItem(True), items, fs.constant(4), c)
        dropped = apply(DropItem(), items, fs.constant(4))
        read = fs.TensorArray(fs.float32, flow=items, clear_after_read=False).read
        rest = fs.TensorArray(fs.float32, flow=dropped, clear_after_read=False).read
        total = fs.reduce_sum(first * first + 5.0 * read(0) * read(4) + 7.0 * rest(0) + rest(4))
        gradients = fs.gradients(total, [a, b, c])
        with fs.Session(config=fs.ConfigProto(mode=mode)) as session:
            found = session.run([total, *gradients], {a: [1.0, 2.0], b: [3.0, 4.0], c: [5.0, 6.0]})
    total_expected = 1 + 4 + 5 * (15 + 24) + 7 * 7
    np.testing.assert_allclose(found[0], total_expected)
    np.testing.assert_allclose(found[1:], [[2, 4], [5 * 5 + 7, 5 * 6 + 7], [15, 20]])


@pytest.mark.parametrize(
    ("index", "value", "what"),
    [(2, [1.0, 2.0], "an index from 0"), (-1, [1.0, 2.0], "an index from 0"), (0, [1.0], "shape")],
)
def test_what_does_not_fit_a_list_is_an_error(index: int, value: list[float], what: str) -> None:
    with fs.Graph().as_default():
        items = fs.TensorArray(fs.float32, 2, element_shape=[2]).flow
        given = fs.placeholder(fs.float32)
        changed = apply(SetItem(), items, fs.constant(index), given)
        read = fs.TensorArray(fs.float32, flow=changed).read(0)
        with fs.Session() as session, pytest.raises(fs.errors.InvalidArgumentError, match=what):
            session.run(read, {given: value})
