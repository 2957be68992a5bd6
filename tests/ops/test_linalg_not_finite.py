"""Linear algebra of matrices that hold an infinity or NaN: an answer or an error, never a hang."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowscope as fs

#: What answers with NaN, for the matrix concerned alone.
ANSWERS: dict[str, Any] = {
    "svd": lambda x: fs.svd(x)[1],
    "singular values": lambda x: fs.svd(x, compute_uv=False),
    "pinv": fs.linalg.pinv,
    "expm": fs.linalg.expm,
    "sqrtm": lambda x: fs.linalg.sqrtm(fs.cast(x, fs.complex128)),
    "logm": lambda x: fs.linalg.logm(fs.cast(x, fs.complex128)),
    "lstsq": lambda x: fs.matrix_solve_ls(x, x[..., :1], fast=False),
}
REFUSALS: dict[str, Any] = {
    "self_adjoint_eig": lambda x: fs.self_adjoint_eig(x)[0],
    "self_adjoint_eigvals": fs.self_adjoint_eigvals,
    "eig": lambda x: fs.linalg.eig(x)[0],
}


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with fs.Graph().as_default():
        yield


def _batch(dtype: str, odd: float, place: int, n: int) -> Any:
    x = np.random.default_rng(place).normal(size=(2, n, n)) + 3 * np.eye(n)
    x[1].reshape(-1)[place] = odd
    return x.astype(dtype)


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", ANSWERS)
def test_only_what_is_not_finite_becomes_nan(name: str, dtype: str, odd: float) -> None:
    p = fs.placeholder(dtype, [2, 3, 3])
    y = ANSWERS[name](p)
    with fs.Session() as session:
        for place in (0, 1, 6, 8):
            found = session.run(y, {p: _batch(dtype, odd, place, 3)})
            assert np.isfinite(found[0]).all()
            assert np.isnan(found[1]).all()


@pytest.mark.parametrize("odd", [np.inf, np.nan])
@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_not_finite_has_no_eigenvalues(name: str, odd: float) -> None:
    p = fs.placeholder(fs.float64, [2, 3, 3])
    y = REFUSALS[name](p)
    with fs.Session() as session, pytest.raises(fs.errors.InvalidArgumentError, match="finite"):
        session.run(y, {p: _batch("float64", odd, 6, 3)})


def test_the_upper_triangle_is_not_read() -> None:
    x = np.array([[2.0, np.inf], [1.0, 2.0]])
    with fs.Session() as session:
        np.testing.assert_allclose(session.run(fs.self_adjoint_eigvals(x)), [1, 3])


@pytest.mark.parametrize("odd", [np.inf, np.nan])
def test_the_others_return(odd: float) -> None:
    p = fs.placeholder(fs.float64, [2, 3, 3])
    others = [fs.qr(p)[1], fs.matrix_inverse(p), fs.matrix_determinant(p), fs.matrix_solve(p, p)]
    others += [fs.cholesky(p), fs.matrix_triangular_solve(p, p), fs.linalg.lu(p)[0]]
    with fs.Session() as session:
        for y in others:
            for place in (0, 1, 8):
                try:
                    session.run(y, {p: _batch("float64", odd, place, 3)})
                except fs.errors.InvalidArgumentError:
                    continue
