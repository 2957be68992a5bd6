"""Linear algebra beyond the table: what fails and how, full factors, what has no gradient."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError

SINGULAR = [[1.0, 2.0], [2.0, 4.0]]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: fs.matrix_inverse(x),
        lambda x: fs.matrix_solve(x, [[1.0], [1.0]]),
        lambda x: fs.matrix_triangular_solve(x * [[1.0, 1.0], [1.0, 0.0]], [[1.0], [1.0]]),
        lambda x: fs.linalg.lu(x).lu,
        lambda x: fs.gradients(fs.matrix_determinant(x), x)[0],
    ],
)
@pytest.mark.parametrize("batch", [False, True])
def test_a_singular_matrix_is_an_error(sess, call, batch):
    x = fs.constant([SINGULAR, SINGULAR] if batch else SINGULAR)
    with pytest.raises(InvalidArgumentError, match="invertible matrices, got a singular one"):
        sess.run(call(x))


def test_an_indefinite_matrix_has_no_cholesky_factor(sess):
    with pytest.raises(InvalidArgumentError, match="positive definite"):
        sess.run(fs.cholesky([[1.0, 0.0], [0.0, -1.0]]))


def test_a_real_matrix_without_a_real_root_says_so(sess):
    with pytest.raises(InvalidArgumentError, match="complex dtype"):
        sess.run(fs.matrix_square_root([[-1.0, 0.0], [0.0, 1.0]]))


@pytest.mark.parametrize(
    ("call", "shape", "says"),
    [
        (fs.matrix_inverse, [2, 3], "square matrices, got [2,3]"),
        (fs.matrix_determinant, [3], "rank 2 at least, got [3]"),
        (fs.cholesky, [2, 3], "square"),
        (fs.svd, [2], "rank 2 at least"),
        (fs.qr, [2], "rank 2 at least"),
        (fs.self_adjoint_eig, [2, 3], "square"),
        (fs.linalg.expm, [2, 3], "square"),
        (fs.trace, [3], "rank 2 at least"),
        (lambda x: fs.matrix_solve(x, fs.zeros([3, 1])), [2, 2], "2 rows"),
        (lambda x: fs.norm(x, 3, [0, 1]), [2, 2], "norm of a matrix"),
        (lambda x: fs.norm(x, "nuclear"), [2, 2], "positive number, got 'nuclear'"),
    ],
)
def test_shapes_are_checked_while_building(graph, call, shape, says):
    with pytest.raises(InvalidArgumentError) as e:
        call(fs.placeholder(fs.float32, shape))
    assert says in str(e.value)


@pytest.mark.parametrize("call", [fs.matrix_inverse, fs.svd, fs.qr, fs.cholesky, fs.linalg.expm])
def test_shapes_are_checked_while_running(sess, call):
    x = fs.placeholder(fs.float32)
    y = call(x)
    with pytest.raises(InvalidArgumentError, match="rank 2 at least"):
        sess.run(y, {x: [1.0]})


def test_dtypes_are_checked(graph):
    with pytest.raises(DTypeError, match="float32, float64, complex64 or complex128, got int32"):
        fs.matrix_inverse([[1]])
    with pytest.raises(DTypeError, match="complex"):
        fs.linalg.logm([[1.0]])
    with pytest.raises(DTypeError, match="one dtype"):
        fs.matrix_solve([[1.0]], fs.constant([[1.0]], fs.float64))
    with pytest.raises(DTypeError, match="int32 or int64"):
        fs.linalg.lu([[1.0]], "float32")


def test_full_factors(sess):
    x = np.random.default_rng(0).normal(size=(2, 4, 3))
    q, r = sess.run(fs.qr(x, full_matrices=True))
    assert q.shape == (2, 4, 4)
    assert r.shape == (2, 4, 3)
    np.testing.assert_allclose(q @ r, x, atol=1e-12)
    s, u, v = sess.run(fs.svd(x, full_matrices=True))
    assert u.shape == (2, 4, 4)
    assert v.shape == (2, 3, 3)
    np.testing.assert_allclose((u[..., :3] * s[:, None]) @ v.swapaxes(1, 2), x, atol=1e-12)


@pytest.mark.parametrize("call", [lambda x: fs.qr(x, True)[0], lambda x: fs.svd(x, True)[1]])
def test_full_factors_of_tall_matrices_have_no_gradient(graph, call):
    x = fs.placeholder(fs.float32, [4, 3])
    with pytest.raises(InvalidArgumentError, match="full_matrices=False"):
        fs.gradients(call(x), x)


def test_equal_eigenvalues_do_not_spoil_gradients(sess):
    x = fs.constant(np.eye(3))
    values, vectors = fs.self_adjoint_eig(x)
    (g,) = fs.gradients(fs.reduce_sum(values) + fs.reduce_sum(vectors), x)
    assert np.isfinite(sess.run(g)).all()


@pytest.mark.parametrize(
    ("equation", "count", "says"),
    [
        ("ij,jk->ik", 1, "expected 2 tensors"),
        ("ij->ijj", 1, "each label of the result once"),
        ("ij->k", 1, "among the operands"),
        ("i1->i", 1, "letters"),
        ("......->", 1, "letters"),
        ("...i->i", 1, "or in neither"),
        ("ijk->i", 1, "rank 3"),
        ("ii->i", 1, "one length"),
        ("ij,ik->jk", 2, ""),
        ("", 0, "got none"),
    ],
)
def test_equations_are_checked(graph, equation, count, says):
    xs = [fs.placeholder(fs.float32, [2, 3]) for _ in range(count)]
    if not says:
        assert fs.einsum(equation, *xs).shape == [3, 3]
        return
    with pytest.raises(InvalidArgumentError, match=says):
        fs.einsum(equation, *xs)


def test_lengths_are_checked_while_running(sess):
    a, b = fs.placeholder(fs.float32), fs.placeholder(fs.float32)
    with pytest.raises(InvalidArgumentError, match='one length for the label "j", got 3 and 2'):
        sess.run(fs.einsum("ij,jk->ik", a, b), {a: np.ones((2, 3)), b: np.ones((2, 3))})


def test_tensordot_of_unknown_ranks(sess):
    a, b = fs.placeholder(fs.float32), fs.placeholder(fs.float32)
    x, y = np.ones((2, 3, 4), "f4"), np.ones((3, 4, 5), "f4")
    got = sess.run(fs.tensordot(a, b, 2), {a: x, b: y})
    np.testing.assert_array_equal(got, np.tensordot(x, y, 2))
    with pytest.raises(InvalidArgumentError, match="known ranks"):
        fs.tensordot(a, b, [[0], [0]])
