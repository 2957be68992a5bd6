# ruff: noqa: E501  (a table: one line per row)
# fmt: off
"""Rows of the ops' table: linear algebra. References come from NumPy, and from SciPy for functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from row_tools import C, F, In, Table

import flowscope as fs
from flowscope.ops.linalg import matrix_tools

ROWS = Table()
row = ROWS.row

_ALL = (*F, *C)
_LOOSE = {"rtol": 3e-4}
#: Well-conditioned matrices: random numbers and four times the identity matrix.
_N = In((3, 3), -1, 1)
_NS = In((2, 3, 3), -1, 1)


def well(x: Any) -> Any:
    return x + 4 * fs.eye(x.shape[-1].value or fs.shape(x)[-1], dtype=x.dtype)


def well_(x: Any) -> Any:
    return x + 4 * np.eye(x.shape[-1], dtype=x.dtype)


def sym(x: Any) -> Any:
    return fs.matmul(x, x, adjoint_b=True) + fs.eye(x.shape[-2].value, dtype=x.dtype)


def sym_(x: Any) -> Any:
    return x @ np.conj(x.swapaxes(-1, -2)) + np.eye(x.shape[-2], dtype=x.dtype)


def H(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


# -- products -------------------------------------------------------------------------------------

row("matvec", fs.linalg.matvec, lambda a, b: a @ b, In((2, 3)), In((3,)), dtypes=_ALL)
row("matvec_adjoint", lambda a, b: fs.linalg.matvec(a, b, adjoint_a=True), lambda a, b: (H(a) @ b[..., None])[..., 0], In((2, 3, 2)), In((2, 3)), dtypes=_ALL)
row("adjoint", fs.linalg.adjoint, H, In((2, 2, 3)), dtypes=_ALL, rank=True)
row("sparse_matmul", fs.sparse_matmul, np.matmul, In((2, 3)), In((3, 2)), dtypes=("float32",), order=0)
row("trace_wide", fs.trace, lambda x: np.trace(x, axis1=-2, axis2=-1), In((2, 2, 3)), dtypes=(*F, "int32"))
row("tensordot_outer", lambda a, b: fs.tensordot(a, b, 0), lambda a, b: np.tensordot(a, b, 0), In((2,)), In((3,)))
row("tensordot_two", lambda a, b: fs.tensordot(a, b, 2), lambda a, b: np.tensordot(a, b, 2), In((2, 3, 2)), In((3, 2)))
row("triangular_part", matrix_tools.lower, np.tril, In((2, 2, 3)), dtypes=(*_ALL, "int32"))
row("triangular_part_above", matrix_tools.upper, np.triu, In((3, 2)))

# -- norms ----------------------------------------------------------------------------------------

row("norm_complex", fs.norm, lambda x: np.sqrt((np.abs(x) ** 2).sum()), In(low=0.5), dtypes=C, order=1)
for _ord in ("fro", 1, 2, np.inf):
    row(f"norm_matrix_{_ord}", lambda x, o=_ord: fs.norm(x, o, [-2, -1]), lambda x, o=_ord: np.linalg.norm(x, o, (-2, -1)), In((2, 2, 3)), order=1, rank=True)
row("norm_matrix_keep", lambda x: fs.norm(x, 2, [0, 2], keepdims=True), lambda x: np.linalg.norm(x, 2, (0, 2), keepdims=True), In((2, 2, 3)), order=1, rank=True)
row("normalize", lambda x: fs.linalg.normalize(x, axis=-1), lambda x: [x / np.linalg.norm(x, axis=-1, keepdims=True), np.linalg.norm(x, axis=-1, keepdims=True)], In(low=0.5))

# -- systems --------------------------------------------------------------------------------------

row("inverse", lambda x: fs.matrix_inverse(well(x)), lambda x: np.linalg.inv(well_(x)), _N, dtypes=_ALL)
row("inverse_adjoint", lambda x: fs.linalg.inv(well(x), adjoint=True), lambda x: H(np.linalg.inv(well_(x))), _NS, dtypes=_ALL)
row("inverse_empty", fs.matrix_inverse, lambda x: x, In((2, 0, 0)), dtypes=F)
row("determinant", fs.matrix_determinant, np.linalg.det, _N, dtypes=_ALL)
row("determinant_batch", fs.linalg.det, np.linalg.det, _NS, dtypes=_ALL)
row("determinant_empty", fs.linalg.det, lambda x: np.ones(2, x.dtype), In((2, 0, 0)), order=0)
row("slogdet", fs.linalg.slogdet, lambda x: [v.astype(x.dtype) for v in np.linalg.slogdet(x)], _NS, dtypes=_ALL)
row("logdet", lambda x: fs.linalg.logdet(sym(x)), lambda x: np.linalg.slogdet(sym_(x))[1], _NS, dtypes=_ALL, static=True)
row("solve", lambda a, b: fs.matrix_solve(well(a), b), lambda a, b: np.linalg.solve(well_(a), b), _NS, In((2, 3, 2)), dtypes=_ALL)
row("solve_adjoint", lambda a, b: fs.matrix_solve(well(a), b, adjoint=True), lambda a, b: np.linalg.solve(H(well_(a)), b), _N, In((3, 2)), dtypes=_ALL)
row("solve_broadcast", lambda a, b: fs.matrix_solve(well(a), b), lambda a, b: np.linalg.solve(well_(a), b), _N, In((2, 3, 2)), order=1)
for _lower in (True, False):
    for _adjoint in (True, False):
        _tri = np.tril if _lower else np.triu
        row(f"triangular_solve_{_lower:d}{_adjoint:d}", lambda a, b, o=(_lower, _adjoint): fs.matrix_triangular_solve(well(a), b, *o),
            lambda a, b, t=_tri, j=_adjoint: np.linalg.solve(H(t(well_(a))) if j else t(well_(a)), b), _N, In((3, 2)), dtypes=_ALL)
row("triangular_solve_batch", lambda a, b: fs.linalg.triangular_solve(well(a), b), lambda a, b: np.linalg.solve(np.tril(well_(a)), b), _NS, In((2, 3, 2)), dtypes=_ALL)
row("triangular_solve_adjoints", lambda a, b: fs.linalg.triangular_solve(well(a), b, adjoint=True), lambda a, b: np.linalg.solve(H(np.tril(well_(a))), b), _NS, In((3, 2)), order=1)
row("triangular_solve_large", lambda a, b: fs.linalg.triangular_solve(a + 9 * fs.eye(70, dtype=a.dtype), b),
    lambda a, b: np.linalg.solve(np.tril(a + 9 * np.eye(70, dtype=a.dtype)), b), In((2, 70, 70), -0.1, 0.1), In((2, 70, 1)), dtypes=_ALL, order=0, static=True)
row("triangular_solve_empty", fs.linalg.triangular_solve, lambda a, b: b, In((0, 0)), In((0, 2)), order=0)
row("cholesky", lambda x: fs.cholesky(sym(x)), lambda x: np.linalg.cholesky(sym_(x)), _N, dtypes=_ALL, static=True)
row("cholesky_batch", lambda x: fs.linalg.cholesky(sym(x)), lambda x: np.linalg.cholesky(sym_(x)), _NS, dtypes=_ALL, static=True)
row("cholesky_solve", lambda x, b: fs.cholesky_solve(fs.cholesky(sym(x)), b), lambda x, b: np.linalg.solve(sym_(x), b), _NS, In((2, 3, 2)), dtypes=_ALL, static=True, rtol=1e-4)
for _name, _shape in (("tall", (2, 4, 3)), ("wide", (2, 3, 4)), ("square", (3, 3))):
    _b = In((*_shape[:-1], 2))
    row(f"lstsq_{_name}", lambda a, b: fs.matrix_solve_ls(a, b), lambda a, b: np.linalg.pinv(a) @ b, In(_shape), _b, dtypes=_ALL, rtol=1e-2, static=True)
    row(f"lstsq_slow_{_name}", lambda a, b: fs.linalg.lstsq(a, b, fast=False), lambda a, b: np.linalg.pinv(a) @ b, In(_shape), _b, dtypes=F, rtol=2e-3)
    row(f"lstsq_l2_{_name}", lambda a, b: fs.linalg.lstsq(a, b, 0.5), lambda a, b: np.linalg.solve(H(a) @ a + 0.5 * np.eye(a.shape[-1], dtype=a.dtype), H(a) @ b), In(_shape), _b, dtypes=_ALL, static=True, rtol=1e-4)

# -- factors --------------------------------------------------------------------------------------

for _name, _shape in (("tall", (2, 4, 3)), ("square", (3, 3)), ("wide", (2, 4))):
    row(f"qr_{_name}", fs.qr, lambda x: list(np.linalg.qr(x)), In(_shape), dtypes=_ALL, **_LOOSE)


def _lu(x: Any) -> Any:
    lu, piv = scipy.linalg.lu_factor(x)
    order = np.arange(len(piv), dtype="i4")
    for i, j in enumerate(piv):
        order[[i, j]] = order[[j, i]]
    return [lu, order]


row("lu", fs.linalg.lu, _lu, _N, dtypes=_ALL)
row("lu_long", lambda x: fs.linalg.lu(x, "int64"), lambda x: [np.stack([_lu(m)[0] for m in x]), np.stack([_lu(m)[1] for m in x]).astype("i8")], _NS)
row("lu_empty", fs.linalg.lu, lambda x: [x, np.zeros((2, 0), "i4")], In((2, 0, 0)), order=0)
row("lu_reconstruct", lambda x: fs.linalg.lu_reconstruct(*fs.linalg.lu(x)), lambda x: x, _NS, dtypes=_ALL)
row("lu_solve", lambda x, b: fs.linalg.lu_solve(*fs.linalg.lu(well(x)), b), lambda x, b: np.linalg.solve(well_(x), b), _NS, In((2, 3, 1)), dtypes=_ALL)
row("lu_matrix_inverse", lambda x: fs.linalg.lu_matrix_inverse(*fs.linalg.lu(well(x))), lambda x: np.linalg.inv(well_(x)), _NS, dtypes=_ALL)

# -- spectra: what does not depend on the vectors' signs ------------------------------------------


def _eigh(x: Any) -> Any:
    values, vectors = fs.self_adjoint_eig(sym(x))
    return [values, fs.square(fs.abs(vectors))]


row("eigh", _eigh, lambda x: [np.linalg.eigh(sym_(x))[0], np.abs(np.linalg.eigh(sym_(x))[1]) ** 2], _NS, dtypes=_ALL, static=True, **_LOOSE)
row("eigh_vectors", lambda x: fs.abs(fs.linalg.eigh(sym(x)).v), lambda x: np.abs(np.linalg.eigh(sym_(x))[1]), _N, dtypes=_ALL, static=True, order=1, **_LOOSE)
row("eigh_lower", lambda x: fs.abs(fs.linalg.eigh(x)[1]), lambda x: np.abs(np.linalg.eigh(x)[1]), _N, order=1, **_LOOSE)
row("eigvalsh", lambda x: fs.self_adjoint_eigvals(x), np.linalg.eigvalsh, _NS, dtypes=F)
row("eigvalsh_complex", lambda x: fs.linalg.eigvalsh(sym(x)), lambda x: np.linalg.eigvalsh(sym_(x)), _N, dtypes=C, static=True, order=1)


def _spread(x: Any, eye: Any, const: Any) -> Any:
    """Matrices with distinct real eigenvalues in an order that stays."""
    return x / 8 + eye * const([1.0, 3.0, 6.0])


def _sum_of_eig(x: Any) -> Any:
    values, vectors = fs.linalg.eig(_spread(x, fs.eye(3, dtype=x.dtype), lambda v: fs.constant(v, x.dtype)))
    return [fs.square(fs.abs(vectors)), fs.real(values)]


def _sum_of_eig_(x: Any) -> Any:
    values, vectors = np.linalg.eig(_spread(x, np.eye(3, dtype=x.dtype), lambda v: np.array(v, x.dtype)))
    return [np.abs(vectors) ** 2, values.real]


row("eig", _sum_of_eig, _sum_of_eig_, _NS, dtypes=_ALL, **_LOOSE)
row("eigvals", lambda x: fs.square(fs.linalg.eigvals(x)), lambda x: np.linalg.eigvals(x).astype(np.result_type(x, "c8")) ** 2, _N, dtypes=_ALL, order=1, **_LOOSE)

_SHAPES = {"tall": (2, 4, 3), "square": (3, 3), "wide": (2, 4)}
for _name, _shape in _SHAPES.items():
    row(f"svd_values_{_name}", lambda x: fs.svd(x, compute_uv=False), lambda x: np.linalg.svd(x, compute_uv=False), In(_shape), dtypes=_ALL)
    row(f"svd_{_name}", lambda x: [t if t.dtype.is_floating and i == 0 else fs.square(fs.abs(t)) for i, t in enumerate(fs.linalg.svd(x))],
        lambda x: [np.linalg.svd(x)[1], np.abs(np.linalg.svd(x, False)[0]) ** 2, np.abs(H(np.linalg.svd(x, False)[2])) ** 2], In(_shape), dtypes=_ALL, **_LOOSE)
    row(f"svd_product_{_name}", lambda x: (lambda s, u, v: fs.matmul(u * fs.expand_dims(fs.cast(s * s, x.dtype), -2), v, adjoint_b=True))(*fs.svd(x)),
        lambda x: (lambda u, s, vh: (u * (s * s)[..., None, :]) @ vh)(*np.linalg.svd(x, False)), In(_shape), dtypes=_ALL, **_LOOSE)
    row(f"pinv_{_name}", fs.linalg.pinv, np.linalg.pinv, In(_shape), dtypes=_ALL, rtol=2e-4)
    row(f"matrix_rank_{_name}", fs.linalg.matrix_rank, lambda x: np.linalg.matrix_rank(x).astype("i4"), In(_shape), dtypes=_ALL, order=0)
row("pinv_deficient", fs.linalg.pinv, np.linalg.pinv, In(value=[[1, 2], [2, 4], [3, 6]]), order=0)
row("pinv_rcond", lambda x: fs.linalg.pinv(x, 0.5), lambda x: np.linalg.pinv(x, 0.5), In(value=[[4, 0], [0, 1]]), order=0)
row("pinv_empty", fs.linalg.pinv, lambda x: x.T, In((0, 2)), order=0)
row("matrix_rank_one", fs.linalg.matrix_rank, lambda x: np.int32(1), In(value=[[1, 2], [2, 4]]), order=0)
row("matrix_rank_tol", lambda x: fs.linalg.matrix_rank(x, 1.5), lambda x: np.int32(1), In(value=[[2, 0], [0, 1]]), order=0)

# -- functions ------------------------------------------------------------------------------------

row("expm", fs.linalg.expm, scipy.linalg.expm, _NS, dtypes=_ALL)
row("expm_empty", fs.linalg.expm, lambda x: x, In((2, 0, 0)), order=0)
row("sqrtm", lambda x: fs.matrix_square_root(well(x)), lambda x: np.stack([scipy.linalg.sqrtm(m) for m in well_(x)]).astype(x.dtype), _NS, dtypes=_ALL)
row("logm", lambda x: fs.linalg.logm(well(x)), lambda x: scipy.linalg.logm(well_(x).astype("c16")).astype(x.dtype), _N, dtypes=C, **_LOOSE)
