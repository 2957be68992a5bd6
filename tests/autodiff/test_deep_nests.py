"""Gradients of bodies in bodies in bodies: no recursion, and time that grows as the graph does."""

import sys

import pytest

import flowscope as fs


def functions(n, w):
    def around(inner):
        @fs.function
        def outer(x):
            return inner(x) + x

        return outer

    f, x, y = (lambda x: x * w), fs.constant(1.0), None
    for _ in range(n):
        f = around(f)
        y = f(x)
    return y


def loops(n, w, x=1.0):
    if not n:
        return x * w
    body = lambda i, x: (i + 1, loops(n - 1, w, x) + x)  # noqa: E731
    return fs.while_loop(lambda i, x: i < 1, body, [0, x])[1]


def conds(n, w, x=1.0):
    if not n:
        return x * w
    return fs.cond(w < 9.0, lambda: conds(n - 1, w, x) + x, lambda: x + w)


@pytest.mark.parametrize(
    ("nest", "depth"),
    [(functions, 300), (loops, 20), (conds, 20), pytest.param(conds, 60, marks=pytest.mark.slow)],
)
def test_gradients_of_deep_nests_need_no_stack(graph, nest, depth):
    w = fs.get_variable("w", [], initializer=fs.ones_initializer())
    y = nest(depth, w)
    frame, used = sys._getframe(), 0
    while frame is not None:
        frame, used = frame.f_back, used + 1
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(used + 90)
    try:
        (g,) = fs.gradients(y, w)
    finally:
        sys.setrecursionlimit(limit)
    assert isinstance(g, fs.Tensor)


@pytest.mark.parametrize("nest", [functions, loops, conds])
def test_their_values(graph, nest):
    w = fs.get_variable("w", [], initializer=fs.ones_initializer())
    y = nest(8, w)
    g = fs.gradients(y, w)
    with fs.Session() as sess:
        sess.run(w.initializer)
        assert sess.run([y, *g]) == [9, 1]


def test_an_error_in_a_nested_body_comes_out_and_leaves_the_graph_usable(graph):
    @fs.function
    def f(x):
        return fs.while_loop(lambda x: x < 3.0, lambda x: fs.py_func(abs, [x], fs.float32), [x])

    x = fs.constant(1.0)
    y = fs.cond(x > 0.0, lambda: f(x), lambda: x)
    before = graph.block
    g = fs.gradients(y, x)
    assert graph.block is before and g[0] is not None
    with graph.gradient_override_map({"Square": "Missing"}):
        z = fs.cond(x > 0.0, lambda: fs.square(x), lambda: x)
    with pytest.raises(LookupError, match="Missing"):
        fs.gradients(z, x)
    assert graph.block is before and fs.constant(2.0).name == "Const_1:0"
