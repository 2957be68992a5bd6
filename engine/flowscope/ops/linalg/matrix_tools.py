"""What the ops of linear algebra share: checks of matrices, triangles, products with adjoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.host_values import on_host
from flowscope.graph.values.shapes import Dims
from flowscope.ops.array.one_hot import eye
from flowscope.ops.array.shaping import expand_axes, shape_of
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import conj
from flowscope.ops.core.shape_rules import check_kind
from flowscope.ops.linalg.einsum import Einsum
from flowscope.ops.linalg.products import matmul

#: What linear algebra is defined for.
DTYPES = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)


def check_dtype(x: Spec) -> None:
    """Raises DTypeError unless x has a dtype that linear algebra takes."""
    if x.dtype not in DTYPES:
        raise expected_dtype("float32, float64, complex64 or complex128", x.dtype)


def matrix_dims(x: Spec) -> Dims:
    """Returns the shape of a tensor of matrices, None for an unknown rank."""
    check_dtype(x)
    check_matrices(x.shape)
    return x.shape


def square_dims(x: Spec) -> Dims:
    """Returns the shape of a tensor of square matrices, as far as it is known."""
    dims = matrix_dims(x)
    if dims is None:
        return None
    check_square(dims)
    n = dims[-1] if dims[-2] is None else dims[-2]
    return (*dims[:-2], n, n)


def check_matrices(dims: Dims) -> None:
    """Raises InvalidArgumentError unless the rank is 2 at least."""
    if dims is not None and len(dims) < 2:
        raise expected("matrices, of rank 2 at least", dims)


def check_square(dims: Any) -> None:
    """Raises InvalidArgumentError unless the last two axes can be of one length."""
    check_matrices(dims)
    if None not in dims[-2:] and dims[-2] != dims[-1]:
        raise expected("square matrices", dims)


def attempt(compute: Callable[..., Any], message: str, *arrays: Array, **options: Any) -> Any:
    """The result of a routine of LAPACK; raises InvalidArgumentError where it fails."""
    try:
        return compute(*arrays, **options)
    except np.linalg.LinAlgError:
        raise InvalidArgumentError(message) from None


def attempt_finite(
    xp: ArrayModule, compute: Callable[..., Any], message: str, x: Array, **options: Any
) -> Any:
    """The result of a routine of LAPACK for finite matrices, and NaN for others.

    LAPACK's iterations may never end for a matrix that holds an infinity.
    """
    good = xp.isfinite(x).all(axis=(-1, -2))
    if xp is np and good.all():
        return attempt(compute, message, x, **options)
    found = attempt(compute, message, xp.where(good[..., None, None], x, 0), **options)

    def kept(y: Array) -> Array:
        return xp.where(good.reshape(good.shape + (1,) * (y.ndim - good.ndim)), y, np.nan)

    return tuple([kept(y) for y in found]) if isinstance(found, tuple) else kept(found)


def check_all_finite(xp: ArrayModule, x: Array) -> None:
    """Raises InvalidArgumentError if matrices hold an infinity or NaN."""
    if not on_host(xp.isfinite(x).all()):
        raise expected("finite matrices", "one with an infinity or NaN")


def check_finite(xp: ArrayModule, found: Array, message: str) -> Array:
    """Returns `found`; raises InvalidArgumentError if it is not finite, where only that says that
    a routine has failed: on GPUs.
    """
    if xp is not np and not on_host(xp.isfinite(found).all()):
        raise InvalidArgumentError(message)
    return found


def each(xp: ArrayModule, compute: Callable[..., Array], *arrays: Array) -> Array:
    """Returns the results of `compute` for one matrix of a batch after the other, put together.

    Args:
        xp: The array module.
        compute: Function of one matrix per array; its result is like the first.
        arrays: Arrays of the same leading axes.
    """
    first = arrays[0]
    if first.ndim == 2:
        return compute(*arrays)
    out = xp.empty(first.shape, first.dtype)
    for index in np.ndindex(first.shape[:-2]):
        out[index] = compute(*[a[index] for a in arrays])
    return out


@frozen
class TriangularPart(Op):
    """The lower (or upper) triangle of matrices, from diagonal `k` on; zeros elsewhere."""

    lower: bool = True
    k: int = 0

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "fiucb")
        check_matrices(x.shape)
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(self, g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return (xp.tril if self.lower else xp.triu)(x, self.k)


_LOWER, _BELOW = TriangularPart(), TriangularPart(True, -1)
_UPPER = TriangularPart(False, 0)
_DIAGONAL, _TURNED = Einsum("...ii->...i"), Einsum("...ij->...ji")


def lower(x: Tensor) -> Tensor:
    """Returns the lower triangle with the diagonal."""
    return apply(_LOWER, x)


def below(x: Tensor) -> Tensor:
    """Returns the lower triangle without the diagonal."""
    return apply(_BELOW, x)


def upper(x: Tensor) -> Tensor:
    """Returns the upper triangle with the diagonal."""
    return apply(_UPPER, x)


def diagonal(x: Tensor) -> Tensor:
    """Returns the diagonals of square matrices."""
    return apply(_DIAGONAL, x)


def adjoint_of(x: Tensor) -> Tensor:
    """Returns the conjugate of the matrices with rows and columns exchanged, whatever the rank."""
    return conj(apply(_TURNED, x))


def product(a: Tensor, b: Tensor, adjoint_a: bool = False, adjoint_b: bool = False) -> Tensor:
    """Returns a @ b, of the adjoints if asked for."""
    return matmul(a, b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)


def columns(x: Tensor) -> Tensor:
    """Returns vectors as rows [..., 1, n]: factors of a matrix's columns."""
    return expand_axes(x, (-2,))


def rows(x: Tensor) -> Tensor:
    """Returns vectors as columns [..., n, 1]: factors of a matrix's rows."""
    return expand_axes(x, (-1,))


def identity_like(x: Tensor) -> Tensor:
    """Returns an identity matrix with as many rows as x's matrices."""
    dims = x.spec.shape
    known = dims is not None and dims[-2] is not None
    return eye(dims[-2] if known else shape_of(x)[-2], dtype=x.dtype)  # type: ignore[index]
