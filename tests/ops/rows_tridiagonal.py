# ruff: noqa: E501
# fmt: off
"""Tridiagonal systems and products; cosine transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft
from row_tools import C, F, In, Table

import flowscope as fs

ROWS = Table()
row, unary = ROWS.row, ROWS.unary


def matrices(d: Any) -> Any:
    """Whole matrices from three diagonals."""
    upper, main, lower = (d[..., i, :] for i in range(3))
    out = main[..., None] * np.eye(d.shape[-1])
    out += np.eye(d.shape[-1], k=1) * upper[..., None]
    return out + np.eye(d.shape[-1], k=-1) * lower[..., None]


def solved(d: Any, b: Any) -> Any:
    return np.linalg.solve(matrices(d.astype(np.result_type(d, "f8"))), b).astype(b.dtype)


_D = np.random.default_rng(6).normal(size=(2, 3, 4))
_B = In((2, 4, 2))
row("tridiagonal_solve", fs.linalg.tridiagonal_solve, solved, In(value=_D), _B, dtypes=(*F, *C), rank=True, rtol=1e-3)
row("tridiagonal_solve_plain", lambda d, b: fs.linalg.tridiagonal_solve(d, b, partial_pivoting=False), solved,
    In(value=_D + np.array([[0], [4], [0]])), _B, rank=True)
row("tridiagonal_solve_vector", fs.linalg.tridiagonal_solve, lambda d, b: solved(d, b[..., None])[..., 0], In(value=_D[0]), In((4,)), rank=True, rtol=1e-4)
row("tridiagonal_solve_rows", lambda d, b: fs.linalg.tridiagonal_solve(d, b, transpose_rhs=True, conjugate_rhs=True),
    lambda d, b: solved(d, b.conj().swapaxes(-1, -2)), In(value=_D), In((2, 2, 4)), dtypes=("complex128",), rank=True)
row("tridiagonal_solve_whole", lambda d, b: fs.linalg.tridiagonal_solve(d, b, "matrix"), lambda m, b: np.linalg.solve(m, b),
    In(value=matrices(_D)), _B, dtypes=("float64",), rank=True)
row("tridiagonal_solve_sequence", lambda u, m, l, b: fs.linalg.tridiagonal_solve([u, m, l], b, "sequence"),
    lambda u, m, l, b: np.linalg.solve(np.diag(m) + np.diag(u, 1) + np.diag(l, -1), b), In((3,)), In((4,), 5, 6), In((3,)), In((4, 2)), dtypes=("float64",), static=True)
row("tridiagonal_solve_one", fs.linalg.tridiagonal_solve, solved, In((3, 1), 1, 2), In((1, 2)), rank=True)
row("tridiagonal_solve_none", fs.linalg.tridiagonal_solve, lambda d, b: b.copy(), In((0, 3, 4)), In((0, 4, 2)), rank=True)
row("tridiagonal_matmul", fs.linalg.tridiagonal_matmul, lambda d, b: (matrices(d) @ b).astype(b.dtype), In(value=_D), _B, dtypes=(*F, *C), rank=True)

for _type in (1, 2, 3):
    row(f"dct_{_type}", lambda x, t=_type: fs.spectral.dct(x, t), lambda x, t=_type: scipy.fft.dct(x.astype("f8"), t).astype(x.dtype),
        In((2, 5)), rank=True)
    row(f"idct_{_type}", lambda x, t=_type: fs.spectral.idct(x, t), lambda x, t=_type: scipy.fft.dct(x, {1: 1, 2: 3, 3: 2}[t]), In((2, 5)), dtypes=("float64",), rank=True)
for _type in (2, 3):
    row(f"dct_{_type}_ortho", lambda x, t=_type: fs.spectral.dct(x, t, norm="ortho"), lambda x, t=_type: scipy.fft.dct(x, t, norm="ortho"), In((2, 4)), rank=True)
row("idct_ortho", lambda x: fs.spectral.idct(fs.spectral.dct(x, norm="ortho"), norm="ortho"), lambda x: x, In((3,)), rank=True)
row("dct_shorter", lambda x: fs.signal.dct(x, n=3), lambda x: scipy.fft.dct(x, n=3), In((2, 5)), static=True)
row("dct_longer", lambda x: fs.signal.dct(x, n=7), lambda x: scipy.fft.dct(x, n=7), In((2, 5)), static=True)
