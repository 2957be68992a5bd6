"""Eigenvalues and singular values of matrices, and what follows from them.

Vectors are determined but for a factor each (of the sign, or of modulus 1); gradients are those of
functions that do not depend on it. Where values coincide, the share of each in the gradient of the
vectors counts as 0, as in TensorFlow.

Sources of the gradients: Giles 2008; Townsend 2016, "Differentiating the singular value
decomposition"; for complex matrices Wan and Zhang 2019; the pseudo-inverse: Golub and Pereyra 1973.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flowscope.errors import UnsupportedGradientError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import text
from flowscope.graph.values.work import per_cube
from flowscope.ops.array.arrays import zeros_like
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.core.casting import cast, complex, conj, imag, real
from flowscope.ops.core.declare import op_function
from flowscope.ops.linalg.factors import smaller
from flowscope.ops.linalg.matrix_tools import (
    adjoint_of,
    attempt,
    attempt_finite,
    below,
    check_all_finite,
    check_dtype,
    check_matrices,
    check_square,
    columns,
    diagonal,
    identity_like,
    lower,
    matrix_dims,
    product,
    rows,
    square_dims,
)
from flowscope.ops.linalg.solving import matrix_inverse
from flowscope.ops.math.elementwise import (
    add,
    div_no_nan,
    greater,
    multiply,
    realdiv,
    subtract,
)
from flowscope.ops.math.reductions import reduce_max, reduce_sum

__all__ = ["self_adjoint_eig", "self_adjoint_eigvals", "svd"]

_UNSTABLE = "the iteration for the eigenvalues or singular values did not converge"


def _gaps(values: Tensor) -> Tensor:
    """Returns 1 / (values[j] - values[i]) for each pair, 0 where they are equal."""
    return div_no_nan(1.0, subtract(columns(values), rows(values)))


def _or_zeros(g: Tensor | None, like: Tensor) -> Tensor:
    return zeros_like(like) if g is None else g


@frozen
class SelfAdjointEig(Op, grad_reads=("y", "x"), uses_blas=True, work=per_cube(2e-9)):
    """The eigenvalues of Hermitian matrices, ascending, and the eigenvectors in columns.

    Only the lower triangles are read.

    Shapes: [..., n, n] -> [..., n], and [..., n, n] if the vectors are computed
    Raises: InvalidArgumentError if one holds an infinity or NaN.
    """

    compute_v: bool = True

    def infer(self, x: Spec) -> Any:
        dims = square_dims(x)
        values = Spec(x.dtype.real_dtype, None if dims is None else dims[:-1])
        return (values, Spec(x.dtype, dims)) if self.compute_v else values

    def grad(self, g: Any, y: Any, x: Tensor) -> Any:
        if not self.compute_v:
            _, vectors = apply_many(_EIGH, x)
            return (_hermitian(_scaled_pair(vectors, g, vectors)),)
        values, vectors = y
        to_values, to_vectors = g
        whole = None
        if to_values is not None:
            whole = _scaled_pair(vectors, to_values, vectors)
        if to_vectors is not None:
            inner = product(vectors, to_vectors, adjoint_a=True)
            inner = multiply(cast(_gaps(values), x.dtype), inner)
            turned = product(product(vectors, inner), vectors, adjoint_b=True)
            whole = turned if whole is None else add(whole, turned)
        return (None if whole is None else _hermitian(whole),)

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        check_square(x.shape)
        check_all_finite(xp, xp.tril(x))
        if not self.compute_v:
            return attempt(xp.linalg.eigvalsh, _UNSTABLE, x)
        values, vectors = attempt(xp.linalg.eigh, _UNSTABLE, x)
        return values, vectors


_EIGH = SelfAdjointEig()


def _scaled_pair(a: Tensor, scale: Tensor, b: Tensor) -> Tensor:
    """Returns a @ diag(scale) @ adjoint(b)."""
    return product(multiply(a, columns(cast(scale, a.dtype))), b, adjoint_b=True)


def _hermitian(whole: Tensor) -> Tensor:
    """Returns the cotangent of the lower triangle, where the upper one is its mirror image."""
    return add(lower(whole), below(adjoint_of(whole)))


@frozen
class Eig(Op, grad_reads=("y", "x"), devices=("CPU",), uses_blas=True, work=per_cube(10e-9)):
    """The eigenvalues of square matrices, and the eigenvectors in columns, of length 1; complex.

    Shapes: [..., n, n] -> [..., n], and [..., n, n] if the vectors are computed
    Raises: InvalidArgumentError if a matrix holds an infinity or NaN.
    """

    compute_v: bool = True

    def infer(self, x: Spec) -> Any:
        dims, dtype = square_dims(x), _complex_of(x.dtype)
        values = Spec(dtype, None if dims is None else dims[:-1])
        return (values, Spec(dtype, dims)) if self.compute_v else values

    def grad(self, g: Any, y: Any, x: Tensor) -> Any:
        if self.compute_v:
            (values, vectors), (to_values, to_vectors) = y, g
        else:
            (values, vectors), to_values, to_vectors = apply_many(_EIG, x), g, None
        scaled = multiply(identity_like(vectors), columns(_or_zeros(to_values, values)))
        if to_vectors is not None:
            scaled = add(scaled, _turning(values, vectors, to_vectors))
        inverse = matrix_inverse(vectors, adjoint=True)
        whole = product(product(inverse, scaled), vectors, adjoint_b=True)
        return (cast(whole, x.dtype),)

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        check_square(x.shape)
        check_all_finite(xp, x)
        to = xp.result_type(x.dtype, xp.complex64)
        if not self.compute_v:
            return attempt(xp.linalg.eigvals, _UNSTABLE, x).astype(to)
        values, vectors = attempt(xp.linalg.eig, _UNSTABLE, x)
        return values.astype(to), vectors.astype(to)


_EIG = Eig()


def _complex_of(dtype: DType) -> DType:
    return dtypes.complex64 if dtype.real_dtype is dtypes.float32 else dtypes.complex128


def _turning(values: Tensor, vectors: Tensor, to_vectors: Tensor) -> Tensor:
    """Returns the vectors' share in the gradient, in their own basis; they stay of length 1."""
    inner = product(vectors, to_vectors, adjoint_a=True)
    lengths = columns(cast(real(diagonal(inner)), vectors.dtype))
    inner = subtract(inner, multiply(product(vectors, vectors, adjoint_a=True), lengths))
    gaps = conj(subtract(columns(values), rows(values)))
    eye = identity_like(vectors)
    off_diagonal = multiply(inner, subtract(1.0, eye))
    return realdiv(off_diagonal, add(gaps, eye))


@frozen
class Svd(Op, grad_reads=("y", "x"), uses_blas=True, work=per_cube(2e-9)):
    """Singular values s, descending, and u, v with orthonormal columns: x = u @ diag(s) @ v^H.

    Shapes: [..., m, n] -> s [..., p], u [..., m, p], v [..., n, p] with p = min(m, n); u and v are
        square if full; s alone if they are not computed
    """

    compute_uv: bool = True
    full_matrices: bool = False

    def infer(self, x: Spec) -> Any:
        dims = matrix_dims(x)
        real_ = x.dtype.real_dtype
        if dims is None:
            whole = Spec(x.dtype, None)
            return (Spec(real_, None), whole, whole) if self.compute_uv else Spec(real_, None)
        *batch, m, n = dims
        p = smaller(m, n)
        s = Spec(real_, (*batch, p))
        if not self.compute_uv:
            return s
        u, v = ((m, m), (n, n)) if self.full_matrices else ((m, p), (n, p))
        return s, Spec(x.dtype, (*batch, *u)), Spec(x.dtype, (*batch, *v))

    def grad(self, g: Any, y: Any, x: Tensor) -> Any:
        if not self.compute_uv:
            _, u, v = apply_many(_SVD, x)
            return (_scaled_pair(u, g, v),)
        s, u, v = y
        dims = x.spec.shape
        if self.full_matrices and (dims is None or dims[-1] != dims[-2] or dims[-1] is None):
            raise UnsupportedGradientError(
                f"a full singular value decomposition of {text(dims)} has no gradient: its last "
                "vectors are not determined; use full_matrices=False"
            )
        to_s, to_u, to_v = g
        return (_svd_grad(s, u, v, to_s, to_u, to_v, dims),)

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        check_matrices(x.shape)
        if not self.compute_uv:
            return attempt_finite(xp, xp.linalg.svd, _UNSTABLE, x, compute_uv=False)
        full = self.full_matrices
        u, s, vh = attempt_finite(xp, xp.linalg.svd, _UNSTABLE, x, full_matrices=full)
        return s, u, xp.conj(vh.swapaxes(-1, -2))


_SVD = Svd()


def _svd_grad(s: Tensor, u: Tensor, v: Tensor, to_s: Any, to_u: Any, to_v: Any, dims: Any) -> Any:
    """Returns the cotangent of u @ diag(s) @ v^H from those of its parts, None for none."""
    if to_u is None and to_v is None:
        return None if to_s is None else _scaled_pair(u, to_s, v)
    gaps = cast(_gaps(multiply(s, s)), u.dtype)
    left, right = (product(a, b, adjoint_a=True) for a, b in _both(u, to_u, v, to_v))
    wide = cast(s, u.dtype)
    inner = add(
        multiply(multiply(gaps, subtract(left, adjoint_of(left))), columns(wide)),
        multiply(rows(wide), multiply(gaps, subtract(right, adjoint_of(right)))),
    )
    inner = add(inner, multiply(identity_like(inner), columns(_diagonal_grad(s, left, to_s))))
    whole = product(product(u, inner), v, adjoint_b=True)
    inverse = cast(div_no_nan(1.0, s), u.dtype)
    m, n = (None, None) if dims is None else dims[-2:]
    if to_u is not None and (m is None or n is None or m > n):
        rest = subtract(to_u, product(u, left))
        whole = add(whole, product(multiply(rest, columns(inverse)), v, adjoint_b=True))
    if to_v is not None and (m is None or n is None or n > m):
        rest = subtract(to_v, product(v, right))
        whole = add(whole, product(multiply(u, columns(inverse)), rest, adjoint_b=True))
    return whole


def _both(u: Tensor, to_u: Any, v: Tensor, to_v: Any) -> Any:
    return (u, _or_zeros(to_u, u)), (v, _or_zeros(to_v, v))


def _diagonal_grad(s: Tensor, left: Tensor, to_s: Tensor | None) -> Tensor:
    """Returns the singular values' cotangents; of complex matrices, with the turning of u's."""
    values = _or_zeros(to_s, s)
    if not left.dtype.is_complex:
        return values
    return complex(values, div_no_nan(imag(diagonal(left)), s))


class PseudoInverse(Op, grad_reads=("y", "x"), uses_blas=True, work=per_cube(3e-9)):
    """The Moore-Penrose inverse; singular values up to rcond times the largest count as 0.

    Shapes: x [..., m, n], rcond a scalar or [...] -> [..., n, m]
    Source: gradient: Golub and Pereyra 1973, "The differentiation of pseudo-inverses".
    """

    def infer(self, x: Spec, rcond: Spec) -> Spec:
        dims = matrix_dims(x)
        if rcond.dtype is not x.dtype.real_dtype:
            raise expected(f"an rcond of {x.dtype.real_dtype}", rcond)
        return Spec(x.dtype, None if dims is None else (*dims[:-2], dims[-1], dims[-2]))

    def grad(self, g: Tensor, y: Tensor, x: Tensor, rcond: Tensor) -> Any:
        inner = product(product(y, g, adjoint_a=True), y, adjoint_b=True)
        back = adjoint_of(g)
        on_rows = product(back, product(y, y, adjoint_b=True))
        on_columns = product(product(y, y, adjoint_a=True), back)
        on_rows = subtract(on_rows, product(x, product(y, on_rows)))
        on_columns = subtract(on_columns, product(product(on_columns, y), x))
        return subtract(add(on_rows, on_columns), inner), None

    def kernel(self, xp: ArrayModule, x: Array, rcond: Array) -> Array:
        check_matrices(x.shape)
        u, s, vh = attempt_finite(xp, xp.linalg.svd, _UNSTABLE, x, full_matrices=False)
        if not s.size:
            return xp.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
        limit = xp.asarray(rcond)[..., None] * s.max(axis=-1, keepdims=True)
        keeps = ~(s <= limit)  # NaN, too
        inverse = xp.where(keeps, 1 / xp.where(keeps, s, 1), 0)
        v = xp.conj(vh.swapaxes(-1, -2)) * inverse[..., None, :]
        return xp.matmul(v, xp.conj(u.swapaxes(-1, -2)))


# -- functions ------------------------------------------------------------------------------------


class EighValues(NamedTuple):
    """What `self_adjoint_eig` returns."""

    e: Tensor
    v: Tensor


def self_adjoint_eig(tensor: Any, name: str | None = None) -> EighValues:
    """Returns the eigenvalues of Hermitian matrices, ascending, and the eigenvectors in columns.

    Args:
        tensor: Matrices [..., n, n], of which the lower triangles are read.
        name: Name of the operation.
    """
    values = apply_many(_EIGH, convert_to_tensor(tensor), name=name or "SelfAdjointEigV2")
    return EighValues(*values)


def self_adjoint_eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """Returns the eigenvalues of Hermitian matrices, ascending."""
    op = SelfAdjointEig(compute_v=False)
    return apply(op, convert_to_tensor(tensor), name=name or "SelfAdjointEigV2")


def eig(tensor: Any, name: str | None = None) -> EighValues:
    """Returns the eigenvalues of square matrices and the eigenvectors in columns, all complex."""
    return EighValues(*apply_many(_EIG, convert_to_tensor(tensor), name=name))


def eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """Returns the eigenvalues of square matrices, complex, in no particular order."""
    return apply(Eig(compute_v=False), convert_to_tensor(tensor), name=name)


def svd(
    tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None
) -> Any:
    """Returns the singular values of matrices, descending, and the vectors.

    Args:
        tensor: Matrices [..., m, n].
        full_matrices: Whether u and v are square.
        compute_uv: Whether u and v are returned.
        name: Name of the operation.

    Returns:
        (s, u, v) with u @ diag(s) @ adjoint(v) = tensor, or s alone.
    """
    op = Svd(bool(compute_uv), bool(full_matrices))
    found = apply_many(op, convert_to_tensor(tensor), name=name)
    return found if compute_uv else found[0]


@op_function("a")
def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Returns the Moore-Penrose inverse of matrices.

    Args:
        a: Matrices [..., m, n].
        rcond: Singular values up to this part of the largest count as 0; by default ten times the
            longer side times the smallest number that added to 1 gives more than 1.
        validate_args: True or False: arguments are always checked.
    """
    del validate_args
    if rcond is None:
        rcond = _default_rcond(a)
    return apply(PseudoInverse(), a, convert_to_tensor(rcond, a.dtype.real_dtype), name=name)


def _default_rcond(a: Tensor, factor: float = 10.0) -> Any:
    check_dtype(a.spec)
    check_matrices(a.spec.shape)
    real_ = a.dtype.real_dtype
    step = factor * float(np.finfo(real_.np_dtype).eps)
    dims = a.spec.shape
    if dims is not None and None not in dims[-2:]:
        return step * max(dims[-2:])  # type: ignore[type-var, operator]
    return multiply(cast(reduce_max(shape_of(a)[-2:]), real_), step)


@op_function("a", scope="matrix_rank")
def matrix_rank(
    a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Returns how many singular values of matrices are above `tol`, int32.

    Args:
        a: Matrices [..., m, n].
        tol: A number; by default the largest singular value times the longer side times the
            smallest number that added to 1 gives more than 1.
        validate_args: True or False: arguments are always checked.
    """
    del validate_args
    s = svd(a, compute_uv=False)
    if tol is None:
        tol = multiply(reduce_max(s, -1, keepdims=True), _default_rcond(a, 1.0))
    return reduce_sum(cast(greater(s, tol), dtypes.int32), -1)
