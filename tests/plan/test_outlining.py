"""Deep nests: blocks that stand too deep in others for one Python function have their own."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.plan.codegen import outlining

MODES = ["compiled", "op", "tokens"]


def loops(n, x):
    if n == 0:
        return x + 1.0
    body = lambda i, y: (i + 1, loops(n - 1, y))  # noqa: E731
    return fs.while_loop(lambda i, y: i < 1, body, [0, x])[1]


def conds(n, x):
    if n == 0:
        return x * 2.0
    return fs.cond(x > 0, lambda: conds(n - 1, x + 1.0), lambda: x)


def functions(n, x):
    f = fs.function(lambda x: x + 1.0)
    for _ in range(n):
        f(x)  # traced here, so that this does not nest as well
        f = fs.function(lambda x, f=f: f(x) + 1.0)
    return f(x)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("make", "n", "want"), [(loops, 25, 2.0), (conds, 100, 202.0), (functions, 1000, 1002.0)]
)
@pytest.mark.slow
def test_deep_nests_run(graph, mode, make, n, want):
    x = fs.placeholder(fs.float32, [])
    y = make(n, x)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        assert s.run(y, {x: 1.0}) == want


def nest(x, w):
    def inner(j, y):
        y = fs.cond(y < 0.5, lambda: y + 0.3 * w, lambda: fs.sin(y) * w)
        return j + 1, y + fs.random_uniform([], seed=3, dtype=fs.float64) * 0.1

    def outer(i, y):
        y = fs.while_loop(lambda j, y: j < i, inner, [0, y])[1]
        return i + 1, y * 0.9

    return fs.while_loop(lambda i, y: i < 5, outer, [0, x])[1]


@pytest.mark.parametrize("most", [(1, 60), (15, 1), (15, 2)])
def test_functions_of_their_own_give_the_same_bits(graph, monkeypatch, most):
    x, w = fs.placeholder(fs.float64, []), fs.placeholder(fs.float64, [])
    y = nest(x, w)
    fetches = [y, *fs.gradients(y, [x, w])]
    found = []
    for limits in ((15, 60), most):
        monkeypatch.setattr(outlining, "MOST_LOOPS", limits[0])
        monkeypatch.setattr(outlining, "MOST_LEVELS", limits[1])
        with fs.Session() as s:
            fs.set_random_seed(4)
            found.append(s.run(fetches, {x: 0.2, w: 0.7}))
            text = s.plan(fetches, [x, w]).text("code")
            assert (text.count("def region(") > 1) == (limits == most)
    np.testing.assert_array_equal(found[1], found[0])


def test_an_error_names_the_iterations_of_all_loops(graph, monkeypatch):
    x = fs.placeholder(fs.int32, [])

    def inner(j, y):
        return j + 1, y // (x - j)

    def outer(i, y):
        return i + 1, fs.while_loop(lambda j, y: j < 3, inner, [0, y])[1]

    y = fs.while_loop(lambda i, y: i < 2, outer, [0, 7], name="outer")[1]
    words = []
    for most in (15, 1):
        monkeypatch.setattr(outlining, "MOST_LOOPS", most)
        with fs.Session() as s, pytest.raises(fs.errors.InvalidArgumentError) as info:
            s.run(y, {x: 1})
        words.append(str(info.value))
    assert words[0] == words[1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.slow
def test_what_nests_too_deep_is_refused_in_words(graph, mode):
    x = fs.placeholder(fs.float32, [])
    y = loops(129, x)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        with pytest.raises(fs.errors.InvalidArgumentError, match="at most 128 branches and loops"):
            s.run(y, {x: 1.0})
