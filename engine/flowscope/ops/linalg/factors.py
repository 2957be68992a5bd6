"""Factorisations of matrices into triangular ones: Cholesky, QR, LU.

Sources of the gradients: Cholesky: Murray 2016, "Differentiation of the Cholesky decomposition".
QR: Walter and Lehmann 2012; Roberts and Roberts 2020 for wide and complex matrices. LU: Giles 2008.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flowscope.errors import UnsupportedGradientError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import text
from flowscope.graph.values.work import per_cube
from flowscope.ops.array.arrays import zeros_like
from flowscope.ops.array.joining import concat
from flowscope.ops.array.one_hot import one_hot
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.core.build import apply_many, unary
from flowscope.ops.core.declare import op_function
from flowscope.ops.kernels.scipy_modules import scipy_of
from flowscope.ops.linalg.matrix_tools import (
    adjoint_of,
    attempt,
    below,
    check_finite,
    check_matrices,
    check_square,
    identity_like,
    lower,
    matrix_dims,
    product,
    square_dims,
    upper,
)
from flowscope.ops.linalg.solving import matrix_triangular_solve
from flowscope.ops.math.elementwise import add, multiply, subtract

__all__ = ["cholesky", "qr"]

_INDEFINITE = "expected Hermitian positive definite matrices, got another"


class Cholesky(Op, grad_reads=("y",), uses_blas=True, work=per_cube(0.1e-9)):
    """The lower triangular matrices L with L @ adjoint(L) = x; only x's lower triangle is read.

    Raises: InvalidArgumentError if a matrix is not positive definite.
    """

    def infer(self, x: Spec) -> Spec:
        return Spec(x.dtype, square_dims(x))

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        inner = product(y, g, adjoint_a=True)
        halved = multiply(0.5, add(lower(inner), below(inner)))
        left = matrix_triangular_solve(y, halved, adjoint=True)
        right = matrix_triangular_solve(y, adjoint_of(left), adjoint=True)
        return (multiply(0.5, add(right, adjoint_of(right))),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        check_square(x.shape)
        out = attempt(xp.linalg.cholesky, _INDEFINITE, x)
        return check_finite(xp, out, _INDEFINITE)


@frozen
class Qr(Op, grad_reads=("y", "x"), uses_blas=True, work=per_cube(0.6e-9)):
    """Matrices q with orthonormal columns and upper triangular r with q @ r = x.

    Shapes: [..., m, n] -> q [..., m, p], r [..., p, n], where p is min(m, n), or m if full
    """

    full_matrices: bool = False

    def infer(self, x: Spec) -> Any:
        dims = matrix_dims(x)
        if dims is None:
            return Spec(x.dtype, None), Spec(x.dtype, None)
        *batch, m, n = dims
        p = m if self.full_matrices else smaller(m, n)
        return Spec(x.dtype, (*batch, m, p)), Spec(x.dtype, (*batch, p, n))

    def grad(self, g: Any, y: Any, x: Tensor) -> Any:
        q, r = y
        dims = x.spec.shape
        m, n = (None, None) if dims is None else dims[-2:]
        if self.full_matrices and (m is None or n is None or m > n):
            raise UnsupportedGradientError(
                f"a full QR factorisation of {text(dims)} has no gradient: its last columns of q "
                "are not determined; use full_matrices=False"
            )
        to_q, to_r = [_or_zeros(t, like) for t, like in zip(g, y)]
        if m is not None and n is not None and m >= n:
            return (_tall_grad(q, r, to_q, to_r),)
        return (_wide_grad(x, q, r, to_q, to_r),)

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        check_matrices(x.shape)
        q, r = xp.linalg.qr(x, mode="complete" if self.full_matrices else "reduced")
        return q, r


def smaller(m: int | None, n: int | None) -> int | None:
    """Returns the smaller of two lengths, None if it is not known."""
    if 0 in (m, n):
        return 0
    return None if m is None or n is None else min(m, n)


def _or_zeros(g: Tensor | None, like: Tensor) -> Tensor:
    return zeros_like(like) if g is None else g


def _tall_grad(q: Tensor, r: Tensor, to_q: Tensor, to_r: Tensor) -> Tensor:
    """Returns the cotangent of q @ r where r is square."""
    inner = subtract(product(r, to_r, adjoint_b=True), product(to_q, q, adjoint_a=True))
    mirrored = add(lower(inner), adjoint_of(below(inner)))
    if q.dtype.is_complex:
        mirrored = _with_real_diagonal(inner)
    whole = add(to_q, product(q, mirrored))
    # whole @ inverse(adjoint(r)), by a system with r from the left
    return adjoint_of(matrix_triangular_solve(r, adjoint_of(whole), lower=False))


def _wide_grad(x: Tensor, q: Tensor, r: Tensor, to_q: Tensor, to_r: Tensor) -> Tensor:
    """Returns the cotangent where r may be wider than high: the columns behind are q @ r's."""
    m = shape_of(r)[-2]
    to_q = add(to_q, product(x[..., m:], to_r[..., m:], adjoint_b=True))
    square = _tall_grad(q, r[..., :m], to_q, to_r[..., :m])
    return concat([square, product(q, to_r[..., m:])], -1)


def _with_real_diagonal(inner: Tensor) -> Tensor:
    part = below(inner)
    middle = multiply(0.5, add(inner, adjoint_of(inner)))
    return add(add(part, adjoint_of(part)), multiply(identity_like(inner), middle))


@frozen
class Lu(Op, grad_reads=("y",), devices=("CPU",), uses_blas=True, work=per_cube(0.2e-9)):
    """Triangular matrices in one, and a permutation: rows of x in that order are lower @ upper.

    Shapes: [..., n, n] -> lu [..., n, n], permutation [..., n]
    Raises: InvalidArgumentError if a matrix is singular.
    """

    index_dtype: DType

    def infer(self, x: Spec) -> Any:
        dims = square_dims(x)
        return Spec(x.dtype, dims), Spec(self.index_dtype, None if dims is None else dims[:-1])

    def grad(self, g: Any, y: Any, x: Tensor) -> Any:
        lu, order = y
        left, right = triangles(lu)
        to_lu = g[0]
        inner = add(
            below(product(left, below(to_lu), adjoint_a=True)),
            upper(product(upper(to_lu), right, adjoint_b=True)),
        )
        part = matrix_triangular_solve(left, inner, adjoint=True)
        solved = matrix_triangular_solve(right, adjoint_of(part), lower=False)
        return (product(permutation(order, lu), adjoint_of(solved), adjoint_a=True),)

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        check_square(x.shape)
        index = self.index_dtype.np_dtype
        if not x.size:
            return xp.zeros(x.shape, x.dtype), xp.zeros(x.shape[:-1], index)
        places, left, right = scipy_of(xp, "linalg").lu(x, p_indices=True, check_finite=False)
        if not xp.diagonal(right, 0, -2, -1).all():
            raise expected("invertible matrices", "a singular one")
        return xp.tril(left, -1) + right, xp.argsort(places, -1).astype(index)


def triangles(lu: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the lower matrix, with ones on its diagonal, and the upper one."""
    return add(below(lu), identity_like(lu)), upper(lu)


def permutation(order: Tensor, like: Tensor) -> Tensor:
    """Returns the matrices that put rows in an order."""
    return one_hot(order, shape_of(order)[-1], dtype=like.dtype)


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """Returns the lower triangular L with L @ adjoint(L) = input.

    Args:
        input: Hermitian positive definite matrices; only their lower triangles are read.
        name: Name of the operation.
    """
    return unary(Cholesky(), input, name)


class QrFactors(NamedTuple):
    """What `qr` returns."""

    q: Tensor
    r: Tensor


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> QrFactors:
    """Returns matrices q with orthonormal columns and upper triangular r with q @ r = input.

    Args:
        input: Matrices [..., m, n].
        full_matrices: Whether q is square.
        name: Name of the operation.
    """
    op = Qr(bool(full_matrices))
    return QrFactors(*apply_many(op, convert_to_tensor(input), name=name))


class LuFactors(NamedTuple):
    """What `lu` returns."""

    lu: Tensor
    p: Tensor


def lu(input: Any, output_idx_type: Any = dtypes.int32, name: str | None = None) -> LuFactors:
    """Returns the LU factors of square matrices in one matrix, and the order of the rows.

    Args:
        input: Square matrices.
        output_idx_type: dtype of the order, int32 or int64.
        name: Name of the operation.
    """
    index = as_dtype(output_idx_type)
    if index not in (dtypes.int32, dtypes.int64):
        raise expected_dtype("int32 or int64 for output_idx_type", index)
    return LuFactors(*apply_many(Lu(index), convert_to_tensor(input), name=name))


@op_function("lower_upper perm", scope="lu_reconstruct")
def lu_reconstruct(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Returns the matrices whose LU factors these are; sizes are always checked."""
    del validate_args
    left, right = triangles(lower_upper)
    return product(permutation(perm, lower_upper), product(left, right), adjoint_a=True)


@op_function("lower_upper perm rhs=lower_upper", scope="lu_solve")
def lu_solve(
    lower_upper: Any, perm: Any, rhs: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Returns the solutions x of A @ x = rhs from A's LU factors; sizes are always checked."""
    del validate_args
    left, _ = triangles(lower_upper)
    part = matrix_triangular_solve(left, product(permutation(perm, lower_upper), rhs))
    return matrix_triangular_solve(lower_upper, part, lower=False)


@op_function("lower_upper", scope="lu_matrix_inverse")
def lu_matrix_inverse(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Returns the inverse of matrices from their LU factors."""
    return lu_solve(lower_upper, perm, identity_like(lower_upper), validate_args)
