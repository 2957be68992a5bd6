"""Initializers of matrices, and the names of `fs.initializers`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import InvalidArgumentError


@pytest.mark.parametrize("shape", [[3, 5], [5, 3], [2, 3, 4], [4, 4]])
def test_orthogonal(graph: Any, sess: Any, shape: list[int]) -> None:
    v = fs.get_variable("v", shape, initializer=fs.orthogonal_initializer(gain=2.0, seed=3))
    sess.run(fs.global_variables_initializer())
    m = sess.run(v).reshape(-1, shape[-1])
    gram = m @ m.T if len(m) < shape[-1] else m.T @ m
    np.testing.assert_allclose(gram, 4 * np.eye(min(m.shape)), atol=1e-5)


def test_orthogonal_matrices_are_drawn_from_all(graph: Any, sess: Any) -> None:
    draws = [fs.initializers.orthogonal(seed=i)([2, 2], fs.float64) for i in range(40)]
    found = sess.run(draws)
    assert {np.sign(np.linalg.det(m)) for m in found} == {-1, 1}
    assert len({np.sign(m[0, 0]) for m in found}) == 2


def test_identity(graph: Any, sess: Any) -> None:
    v = fs.get_variable(
        "v", [4, 3], initializer=fs.initializers.identity(2.0), partitioner=lambda **_: [2, 1]
    )
    sess.run(fs.global_variables_initializer())
    np.testing.assert_array_equal(sess.run(fs.convert_to_tensor(v)), 2 * np.eye(4, 3))


@pytest.mark.parametrize(
    ("name", "scale", "is_uniform"),
    [("he_normal", 2, False), ("he_uniform", 2, True), ("lecun_normal", 1, False),
     ("lecun_uniform", 1, True)],
)  # fmt: skip
def test_scales_by_the_number_of_inputs(
    graph: Any, sess: Any, name: str, scale: int, is_uniform: bool
) -> None:
    x = sess.run(getattr(fs.initializers, name)(seed=1)([100, 200]))
    assert x.var() == pytest.approx(scale / 100, rel=0.05)
    limit = np.sqrt(3 * scale / 100)
    assert (abs(x).max() <= limit) == is_uniform


def test_random_numbers_are_of_unit_scale_by_default(graph: Any, sess: Any) -> None:
    fs.set_random_seed(3)
    made = [fs.random_normal_initializer, fs.truncated_normal_initializer]
    normal, truncated, uniform = sess.run(
        [make()([5000]) for make in (*made, fs.random_uniform_initializer)]
    )
    assert normal.std() == pytest.approx(1, rel=0.05)
    assert 0.8 < truncated.std() < 0.95 and abs(truncated).max() <= 2
    assert 0 <= uniform.min() < 0.01 and 0.99 < uniform.max() < 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fs.initializers.orthogonal()([3]), "two axes"),
        (lambda: fs.initializers.identity()([3, 3, 3]), "of a matrix"),
    ],
)
def test_errors(graph: Any, make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()
