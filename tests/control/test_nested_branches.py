"""Gradients of branches in branches: their size, and their values to the second order."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.control.lists import SumOfLists

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]


def nest(depth, x):
    """sin(... sin(x * 1.5) * x ...), a branch per level; a level of 0 or less leaves it early."""

    def level(d, v):
        if d == 0:
            return fs.sin(v)
        return fs.cond(v > -2.0, lambda: fs.sin(level(d - 1, v * 0.9)) * v, lambda: v * v)

    return level(depth, x)


def flat(depth, x):
    """The same without branches, where all of them are taken."""
    return fs.sin(x) if depth == 0 else fs.sin(flat(depth - 1, x * 0.9)) * x


def size_of_gradient(depth):
    with fs.Graph().as_default() as graph:
        x = fs.placeholder(fs.float64, [])
        y = nest(depth, x)
        before = len(graph.get_operations())
        fs.gradients(y, x)
        return len(graph.get_operations()) - before


def test_the_gradient_of_nested_branches_grows_with_their_depth():
    """Each branch hands what inner ones keep to its gradient as one list, not one by one."""
    small, middle, large = map(size_of_gradient, (10, 20, 40))
    assert large - middle == 2 * (middle - small)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_to_the_second_order_are_those_without_branches(mode):
    x = fs.placeholder(fs.float64, [])
    found = [nest(4, x), flat(4, x)]
    first = [fs.gradients(y, x)[0] for y in found]
    second = [fs.gradients(g, x)[0] for g in first]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        for value in (0.3, -1.2):
            branched, plain = zip(*sess.run([found, first, second], {x: value}), strict=True)
            np.testing.assert_allclose(branched, plain, rtol=1e-12)
        assert sess.run(first[0], {x: -3.0}) == -6.0, "the outermost branch is not taken"
        assert sess.run(second[0], {x: -3.0}) == 2.0


@pytest.mark.parametrize("mode", MODES)
def test_branches_of_which_only_the_outer_ones_are_taken(mode):
    x = fs.placeholder(fs.float64, [])
    inner = fs.cond(
        x > 0.0,
        lambda: fs.cond(x > 1.0, lambda: fs.exp(x) * fs.sin(x), lambda: fs.tanh(x) * fs.cos(x)),
        lambda: fs.cond(x < -1.0, lambda: fs.sin(x) * x, lambda: x),
    )
    (gradient,) = fs.gradients(inner * x, x)
    cases = {
        2.0: np.exp(2) * (np.sin(2) + 2 * np.sin(2) + 2 * np.cos(2)),
        0.5: (1 - np.tanh(0.5) ** 2) * np.cos(0.5) * 0.5
        + np.tanh(0.5) * (np.cos(0.5) - 0.5 * np.sin(0.5)),
        -0.5: -1.0,
        -2.0: np.cos(-2) * 4 + np.sin(-2) * 2 * -2,
    }
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        for value, want in cases.items():
            np.testing.assert_allclose(sess.run(gradient, {x: value}), want, rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_nested_branches_in_a_loop(mode):
    x = fs.placeholder(fs.float64, [])

    def unrolled(v):
        for _ in range(3):
            v = flat(3, v)
        return v

    looped = fs.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, nest(3, v)), [0, x])[1]
    pair = [fs.gradients(y, x)[0] for y in (looped, unrolled(x))]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        got, want = sess.run(pair, {x: 1.1})
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_a_second_gradient_uses_the_list_of_the_first():
    graph = fs.get_default_graph()
    x = fs.placeholder(fs.float64, [])
    y = nest(3, x)
    fs.gradients(y, x)
    packs = sum(op.type == "PackLists" for op in graph.get_operations())
    fs.gradients(y * 2.0, x)
    assert packs
    assert sum(op.type == "PackLists" for op in graph.get_operations()) == packs


def test_what_nested_branches_keep_is_told():
    x = fs.placeholder(fs.float64, [4])
    y = fs.while_loop(
        lambda i, v: i < 5,
        lambda i, v: (i + 1, fs.cond(v[0] > 0.0, lambda: nest_of(v), lambda: v)),
        [0, x],
    )[1]
    (gradient,) = fs.gradients(y, x)
    with fs.Session() as sess:
        kept = sess.plan(gradient, [x]).kept()
        assert kept.nbytes is not None
        np.testing.assert_array_equal(sess.run(gradient, {x: -np.ones(4)}), np.ones(4))


def nest_of(v):
    return fs.cond(v[1] > 0.0, lambda: fs.sin(v) * fs.exp(v), lambda: v * v)


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
@pytest.mark.parametrize("taken", [0, 1, 2])
def test_second_gradients_of_branches_in_branches(mode, taken):
    """A list that no reader of the inner branch has sent a cotangent for counts as zeros."""
    with fs.Graph().as_default() as graph:
        p, v = fs.placeholder(fs.int32, []), fs.placeholder(fs.float64, [])
        branches = [lambda: v * v * v, lambda: fs.exp(v), lambda: fs.tanh(v) * v * 3.0]
        (first,) = fs.gradients(fs.switch_case(p, branches), v)
        (second,) = fs.gradients(first, v)
        with fs.Session(graph=graph, config=fs.ConfigProto(mode=mode)) as sess:
            found = sess.run([first, second], {p: taken, v: 0.5})
    t, s = np.tanh(0.5), 1 - np.tanh(0.5) ** 2
    want = [(0.75, 3.0), (np.exp(0.5),) * 2, (3 * (t + 0.5 * s), 3 * (2 * s - t * s))][taken]
    np.testing.assert_allclose(found, want, rtol=1e-12)


def test_a_sum_of_lists_says_that_it_may_hand_an_element_on() -> None:
    element, op = np.ones(3), SumOfLists(2)
    for at in range(2):
        inputs = [None, None]
        inputs[at] = (element, None)
        shared = op.kernel(np, *inputs)[0]
        assert shared is element and at in op.views
