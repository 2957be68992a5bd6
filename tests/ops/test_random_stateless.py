"""Random ops whose numbers follow from a seed that they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_oracle import evaluate

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.op import all_ops

N = 10_000
FLOATS = ["float16", "float32", "float64"]
r = fs.random

MAKERS: dict[str, Any] = {
    "uniform": lambda s: r.stateless_uniform([N], s, -1, 3),
    "uniform_int": lambda s: r.stateless_uniform([N], s, -2, 3, "int64"),
    "full_int": lambda s: r.stateless_uniform([N], s, None, None, "int32"),
    "normal": lambda s: r.stateless_normal([N], s, 2.0, 3.0),
    "truncated": lambda s: r.stateless_truncated_normal([N], s, 1.0, 0.5),
    "gamma": lambda s: r.stateless_gamma([N], s, 3.0, 2.0),
    "poisson": lambda s: r.stateless_poisson([N], s, 4.0),
    "binomial": lambda s: r.stateless_binomial([N], s, 10.0, 0.3),
    "categorical": lambda s: r.stateless_categorical(np.log([[0.2, 0.8]]), N, s),
    "multinomial": lambda s: r.stateless_multinomial([[0.0, 0.0]], N, s, "int32"),
}
#: (mean, standard deviation, least, most) of what the makers draw.
FACTS = {
    "uniform": (1, 4 / np.sqrt(12), -1, 3),
    "uniform_int": (0, np.sqrt(2), -2, 2),
    "full_int": (0, 2**32 / np.sqrt(12), -(2**31), 2**31),
    "normal": (2, 3, -np.inf, np.inf),
    "truncated": (1, 0.5 * 0.8796, 0, 2),
    "gamma": (1.5, np.sqrt(3) / 2, 0, np.inf),
    "poisson": (4, 2, 0, np.inf),
    "binomial": (3, np.sqrt(2.1), 0, 10),
    "categorical": (0.8, 0.4, 0, 1),
    "multinomial": (0.5, 0.5, 0, 1),
}


def run(make: Any, seed: Any) -> Any:
    with fs.Graph().as_default() as g:
        t = make(fs.placeholder_with_default(np.array(seed), [2]))
        oracle = evaluate([t], {})[0]
        with fs.Session(graph=g) as session:
            value, again = session.run(t), session.run(t)
    np.testing.assert_array_equal(value, again)
    np.testing.assert_array_equal(value, oracle)
    return value


@pytest.mark.parametrize("kind", MAKERS)
def test_numbers_follow_from_the_seed(kind: str) -> None:
    make = MAKERS[kind]
    first = run(make, [1, 2])
    assert (first != run(make, [1, 3])).any()
    assert (first != run(make, [2, 1])).any()
    np.testing.assert_array_equal(first, run(make, np.array([1, 2], "i4")))
    run(make, [-1, 2**62])


@pytest.mark.parametrize("kind", MAKERS)
def test_distributions(kind: str) -> None:
    x = run(MAKERS[kind], [5, 6]).astype("f8")
    mean, deviation, least, most = FACTS[kind]
    assert abs(x.mean() - mean) < 4 * deviation / np.sqrt(N)
    assert abs(x.std() / deviation - 1) < 0.05
    assert least <= x.min() <= x.max() <= most


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["uniform", "normal", "truncated_normal"])
def test_dtypes(dtype: str, kind: str) -> None:
    x = run(lambda s: getattr(r, f"stateless_{kind}")([3, 2], s, dtype=dtype), [1, 2])
    assert x.shape == (3, 2)
    assert x.dtype == dtype
    assert isinstance(run(lambda s: getattr(r, f"stateless_{kind}")([], s), [1, 2]), np.float32)


def test_limits_may_be_tensors(sess) -> None:
    high = fs.placeholder(fs.float32, [])
    x = sess.run(r.stateless_uniform([100], [1, 2], 1.0, high), {high: 2.0})
    assert 1 <= x.min() < x.max() < 2


def test_gamma_gradient(sess) -> None:
    a = fs.constant([1.0, 4.0], "float64")
    y = r.stateless_gamma([3, 2], [1, 2], a, dtype="float64")
    (g,) = sess.run(fs.gradients(y, a))
    assert g.shape == (2,)
    assert (g > 0).all()


def test_errors(sess) -> None:
    with pytest.raises(DTypeError, match="seed of two int32 or int64, got float32"):
        r.stateless_normal([2], [1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match=r"two integers, got \[3\]"):
        r.stateless_normal([2], [1, 2, 3])
    with pytest.raises(InvalidArgumentError, match="expected a maxval for integers"):
        r.stateless_uniform([2], [1, 2], dtype="int32")
    with pytest.raises(InvalidArgumentError, match="cannot be broadcast together"):
        r.stateless_poisson([2], [1, 2], [1.0, 2.0, 3.0])
    with pytest.raises(InvalidArgumentError, match="parameters that fit shape"):
        r.stateless_poisson([], [1, 2], [1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match="above minval, got 1 and 2"):
        sess.run(r.stateless_uniform([2], [1, 2], 2, 1, "int32"))
    with pytest.raises(InvalidArgumentError, match="logits of rank 2"):
        r.stateless_categorical([1.0], 2, [1, 2])
    with pytest.raises(InvalidArgumentError, match="number of samples known"):
        r.stateless_categorical([[1.0]], fs.placeholder(fs.int32, []), [1, 2])


def test_every_stateless_op_is_here(graph) -> None:
    module = "flowscope.ops.random.stateless"
    ours = {n for n, c in all_ops().items() if c.__module__ == module}
    made = {MAKERS[kind]([1, 2]).graph for kind in MAKERS}
    assert ours <= {op.type for g in made for op in g.get_operations()}
