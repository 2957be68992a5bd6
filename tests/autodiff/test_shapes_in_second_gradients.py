"""Second gradients of nests that ask for shapes: a shape is taken from where it can be read."""

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def branches(a, w):
    product = lambda: fs.sin(a) * (a + fs.reduce_sum(fs.gather(w, [0]), 0))  # noqa: E731
    inner = lambda: fs.cond(fs.reduce_sum(a) < 40.0, product, lambda: a)  # noqa: E731
    return fs.cond(fs.reduce_sum(a) < 50.0, inner, lambda: -a)


def nest(kind, x, w):
    if kind == "branches":
        return branches(x, w)
    return fs.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, branches(a, w)), [0, x])[1]


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
@pytest.mark.parametrize("kind", ["branches", "loop"])
def test_branches_in_branches_have_second_gradients_where_rows_are_not_known(kind, mode):
    values = np.full((2, 4), 0.1, "f")
    found = []
    for rows in (2, None):
        x = fs.placeholder(fs.float32, [rows, 4])
        w = fs.constant(np.full((1, 4), 0.3, "f"))
        y = nest(kind, x, w)
        (g,) = fs.gradients(fs.reduce_sum(y * y), x)
        (h,) = fs.gradients(fs.reduce_sum(g * g), x)
        with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
            found.append(sess.run(h, {x: values}))
    np.testing.assert_array_equal(*found)
    assert np.all(found[0] > 0)
