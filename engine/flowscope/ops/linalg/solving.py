"""Linear systems: inverses, determinants, solutions of square, triangular and overdetermined ones.

Source of the gradients: Giles 2008, "Collected matrix derivative results".
"""

from __future__ import annotations

from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected
from flowscope.graph.values.host_values import on_host
from flowscope.graph.values.shapes import Dims, broadcast, text
from flowscope.graph.values.work import per_cube
from flowscope.ops.core import builder
from flowscope.ops.core.build import apply, apply_many, unary
from flowscope.ops.core.casting import cast, complex, conj, imag, real
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_same
from flowscope.ops.kernels.scipy_modules import scipy_of
from flowscope.ops.linalg.matrix_tools import (
    adjoint_of,
    attempt,
    check_finite,
    check_square,
    diagonal,
    each,
    identity_like,
    lower,
    matrix_dims,
    product,
    rows,
    square_dims,
    upper,
)
from flowscope.ops.linalg.products import unbatch
from flowscope.ops.math.elementwise import add, log, multiply, negative
from flowscope.ops.math.reductions import reduce_sum

__all__ = [
    "cholesky_solve",
    "matrix_determinant",
    "matrix_inverse",
    "matrix_solve",
    "matrix_solve_ls",
    "matrix_triangular_solve",
]

_SINGULAR = "expected invertible matrices, got a singular one"
#: Up to this size a batch of triangular systems is solved as general ones, all in one call.
_SMALL = 64


@frozen
class MatrixInverse(Op, grad_reads=("y",), uses_blas=True, work=per_cube(0.4e-9)):
    """The inverse of square matrices, of their adjoints if asked for.

    Raises: InvalidArgumentError if a matrix is singular.
    """

    adjoint: bool = False

    def infer(self, x: Spec) -> Spec:
        return Spec(x.dtype, square_dims(x))

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        inner = product(product(y, g, adjoint_a=True), y, adjoint_b=True)
        return (negative(adjoint_of(inner) if self.adjoint else inner),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        check_square(x.shape)
        out = check_finite(xp, attempt(xp.linalg.inv, _SINGULAR, x), _SINGULAR)
        return xp.conj(out.swapaxes(-1, -2)) if self.adjoint else out


class MatrixDeterminant(Op, grad_reads=("x", "y"), uses_blas=True, work=per_cube(0.2e-9)):
    """The determinants of square matrices.

    Shapes: [..., n, n] -> [...]
    """

    def infer(self, x: Spec) -> Spec:
        dims = square_dims(x)
        return Spec(x.dtype, None if dims is None else dims[:-2])

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (multiply(rows(rows(multiply(g, conj(y)))), matrix_inverse(x, adjoint=True)),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        check_square(x.shape)
        return xp.linalg.det(x)


class LogMatrixDeterminant(Op, grad_reads=("x",), uses_blas=True, work=per_cube(0.2e-9)):
    """The signs of determinants of square matrices, and the logarithms of their absolute values.

    Shapes: [..., n, n] -> [...], [...]
    """

    def infer(self, x: Spec) -> Any:
        dims = square_dims(x)
        return (Spec(x.dtype, None if dims is None else dims[:-2]),) * 2

    def grad(self, g: Any, y: Any, x: Tensor) -> Any:
        """A complex sign turns as the imaginary part of the logarithm does."""
        to_sign, to_log = g
        scale = to_log
        if to_sign is not None and x.dtype.is_complex:
            sign, _ = apply_many(_LOG_DETERMINANT, x)
            turn = imag(multiply(conj(to_sign), sign))
            turned = complex(multiply(turn, 0.0), negative(turn))
            scale = turned if scale is None else add(scale, turned)
        if scale is None:
            return (None,)
        return (multiply(rows(rows(scale)), matrix_inverse(x, adjoint=True)),)

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        check_square(x.shape)
        sign, size = xp.linalg.slogdet(x)
        return sign, size.astype(x.dtype)


_LOG_DETERMINANT = LogMatrixDeterminant()


def _solution_dims(matrix: Spec, rhs: Spec) -> Dims:
    check_same(matrix, rhs)
    a, b = square_dims(matrix), matrix_dims(rhs)
    if a is None or b is None:
        return None
    _check_systems(a, b)
    batch = broadcast(a[:-2], b[:-2])
    return None if batch is None else (*batch, b[-2] if a[-1] is None else a[-1], b[-1])


def _check_systems(a: Any, b: Any) -> None:
    check_square(a)
    if len(b) < 2 or (None not in (a[-1], b[-2]) and a[-1] != b[-2]):
        raise expected(f"right-hand sides of {a[-1]} rows for matrices {text(a)}", b)


def _matrix_grad(to_rhs: Tensor, y: Tensor, is_adjoint: bool) -> Tensor:
    """Returns the cotangent of the matrix from that of the right-hand side and the solution."""
    left, right = (y, to_rhs) if is_adjoint else (to_rhs, y)
    return negative(product(left, right, adjoint_b=True))


@frozen
class MatrixSolve(Op, grad_reads=("y", "matrix"), uses_blas=True, work=per_cube(0.2e-9)):
    """The solutions x of matrix @ x = rhs, or of adjoint(matrix) @ x = rhs.

    Shapes: matrix [..., n, n], rhs [..., n, k] -> [..., n, k]; leading axes are broadcast
    Raises: InvalidArgumentError if a matrix is singular.
    """

    adjoint: bool = False

    def infer(self, matrix: Spec, rhs: Spec) -> Spec:
        return Spec(matrix.dtype, _solution_dims(matrix, rhs))

    def grad(self, g: Tensor, y: Tensor, matrix: Tensor, rhs: Tensor) -> Any:
        to_rhs = matrix_solve(matrix, g, adjoint=not self.adjoint)
        to_matrix = _matrix_grad(to_rhs, y, self.adjoint)
        return unbatch(to_matrix, matrix, rhs), unbatch(to_rhs, rhs, matrix)

    def kernel(self, xp: ArrayModule, matrix: Array, rhs: Array) -> Array:
        _check_systems(matrix.shape, rhs.shape)
        a = xp.conj(matrix.swapaxes(-1, -2)) if self.adjoint else matrix
        return check_finite(xp, attempt(xp.linalg.solve, _SINGULAR, a, rhs), _SINGULAR)


@frozen
class MatrixTriangularSolve(Op, grad_reads=("y", "matrix"), uses_blas=True, work=per_cube(0.1e-9)):
    """The solutions x of matrix @ x = rhs, of which only the lower (or upper) triangle is read.

    Shapes: matrix [..., n, n], rhs [..., n, k] -> [..., n, k]; leading axes are broadcast
    Raises: InvalidArgumentError if the diagonal holds a zero.
    """

    lower: bool = True
    adjoint: bool = False

    def infer(self, matrix: Spec, rhs: Spec) -> Spec:
        return Spec(matrix.dtype, _solution_dims(matrix, rhs))

    def grad(self, g: Tensor, y: Tensor, matrix: Tensor, rhs: Tensor) -> Any:
        to_rhs = matrix_triangular_solve(matrix, g, self.lower, not self.adjoint)
        whole = _matrix_grad(to_rhs, y, self.adjoint)
        to_matrix = lower(whole) if self.lower else upper(whole)
        return unbatch(to_matrix, matrix, rhs), unbatch(to_rhs, rhs, matrix)

    def kernel(self, xp: ArrayModule, matrix: Array, rhs: Array) -> Array:
        _check_systems(matrix.shape, rhs.shape)
        if matrix.ndim == rhs.ndim == 2:
            return self._one(xp, matrix, rhs)
        if matrix.shape[-1] <= _SMALL:
            if not on_host(xp.diagonal(matrix, axis1=-2, axis2=-1).all()):
                raise InvalidArgumentError(_SINGULAR)
            return self._substituted(xp, matrix, rhs)
        batch = broadcast(matrix.shape[:-2], rhs.shape[:-2])
        a = xp.broadcast_to(matrix, (*batch, *matrix.shape[-2:]))  # type: ignore[misc]
        b = xp.broadcast_to(rhs, (*batch, *rhs.shape[-2:]))  # type: ignore[misc]
        return each(xp, lambda r, m: self._one(xp, m, r), b, a)

    def _substituted(self, xp: ArrayModule, matrix: Array, rhs: Array) -> Array:
        """Returns the solutions of many small systems, row by row for all of them at once."""
        batch: Any = broadcast(matrix.shape[:-2], rhs.shape[:-2])
        whole = [m.reshape((1,) * (len(batch) + 2 - m.ndim) + m.shape) for m in (matrix, rhs)]
        a, b = (xp.ascontiguousarray(xp.moveaxis(m, (-2, -1), (0, 1))) for m in whole)
        if self.adjoint:
            a = xp.conj(a.swapaxes(0, 1))
        n = len(a)
        x = xp.empty((*b.shape[:2], *batch), rhs.dtype)
        is_downward = self.lower != self.adjoint
        for i in range(n) if is_downward else reversed(range(n)):
            known = slice(0, i) if is_downward else slice(i + 1, n)
            x[i] = (b[i] - (a[i, known, None] * x[known]).sum(0)) / a[i, i]
        return xp.ascontiguousarray(xp.moveaxis(x, (0, 1), (-2, -1)))

    def _one(self, xp: ArrayModule, matrix: Array, rhs: Array) -> Array:
        if not rhs.size:
            return xp.zeros(rhs.shape, rhs.dtype)
        out = attempt(
            scipy_of(xp, "linalg").solve_triangular,
            _SINGULAR,
            matrix,
            rhs,
            trans=2 if self.adjoint else 0,
            lower=self.lower,
            check_finite=False,
        )
        return check_finite(xp, out, _SINGULAR)


def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Returns the inverse of square matrices, or that of their adjoints.

    Args:
        input: Square matrices in the last two axes.
        adjoint: Whether rows and columns are exchanged, and conjugated, first.
        name: Name of the operation.
    """
    return unary(MatrixInverse(bool(adjoint)), input, name)


def matrix_determinant(input: Any, name: str | None = None) -> Tensor:
    """Returns the determinants of the square matrices in the last two axes."""
    return unary(MatrixDeterminant(), input, name)


@op_function("input")
def slogdet(input: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Returns the signs of determinants, and the logarithms of their absolute values."""
    sign, size = apply_many(_LOG_DETERMINANT, input, name=name or "LogMatrixDeterminant")
    return sign, size


@op_function("matrix", scope="logdet")
def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """Returns the logarithms of the determinants of Hermitian positive definite matrices."""
    logs = log(real(diagonal(builder.cholesky(matrix))))
    return cast(multiply(2.0, reduce_sum(logs, [-1])), matrix.dtype.real_dtype)


@op_function("matrix rhs~matrix")
def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Returns the solutions x of matrix @ x = rhs.

    Args:
        matrix: Square matrices [..., n, n].
        rhs: Right-hand sides [..., n, k] of the same dtype.
        adjoint: Whether the adjoint takes the matrix' place.
    """
    return apply(MatrixSolve(bool(adjoint)), matrix, rhs, name=name)


@op_function("matrix rhs~matrix")
def matrix_triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Returns the solutions x of matrix @ x = rhs for triangular matrices.

    Args:
        matrix: Matrices [..., n, n], of which one triangle is read.
        rhs: Right-hand sides [..., n, k] of the same dtype.
        lower: Whether it is the lower triangle.
        adjoint: Whether the adjoint takes the matrix' place.
    """
    op = MatrixTriangularSolve(bool(lower), bool(adjoint))
    return apply(op, matrix, rhs, name=name)


@op_function("chol rhs~chol", scope="cholesky_solve")
def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """Returns the solutions x of A @ x = rhs, where chol @ adjoint(chol) = A."""
    return matrix_triangular_solve(chol, matrix_triangular_solve(chol, rhs), adjoint=True)


@op_function("matrix rhs~matrix", scope="matrix_solve_ls")
def matrix_solve_ls(
    matrix: Any,
    rhs: Any,
    l2_regularizer: float = 0.0,
    fast: bool = True,
    name: str | None = None,
) -> Tensor:
    """Returns x with the least |matrix @ x - rhs|^2 + l2_regularizer * |x|^2.

    Of several such x the shortest is taken.

    Args:
        matrix: Matrices [..., m, n].
        rhs: Right-hand sides [..., m, k] of the same dtype.
        l2_regularizer: A number, 0 or higher.
        fast: Whether the normal equations are solved, which squares the condition number; else, and
            where the shapes are unknown, the pseudo-inverse is used, which needs no full rank.
    """
    dims = matrix_dims(matrix.spec)
    is_known = dims is not None and None not in dims[-2:]
    if not l2_regularizer and (not fast or not is_known):
        return product(builder.pinv(matrix), rhs)
    is_wide = is_known and dims[-2] < dims[-1]  # type: ignore[index, operator]
    if is_wide:
        gram = _regular(product(matrix, matrix, adjoint_b=True), l2_regularizer)
        return product(matrix, _symmetric_solve(gram, rhs), adjoint_a=True)
    gram = _regular(product(matrix, matrix, adjoint_a=True), l2_regularizer)
    return _symmetric_solve(gram, product(matrix, rhs, adjoint_a=True))


def _regular(gram: Tensor, weight: float) -> Tensor:
    if not weight:
        return gram
    return add(gram, multiply(convert_to_tensor(weight, gram.dtype), identity_like(gram)))


def _symmetric_solve(gram: Tensor, rhs: Tensor) -> Tensor:
    return cholesky_solve(builder.cholesky(gram), rhs)
