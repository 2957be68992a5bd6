"""Matrices that have numbers on the main diagonal and beside it only."""

from __future__ import annotations

from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected
from flowscope.graph.values.host_values import on_host
from flowscope.ops.array.joining import concat, stack
from flowscope.ops.array.padding import pad
from flowscope.ops.array.shaping import expand_dims, squeeze
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import conj
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind, check_same
from flowscope.ops.linalg.matrices import matrix_diag_part
from flowscope.ops.linalg.products import matrix_transpose
from flowscope.ops.math.elementwise import add, multiply, negative
from flowscope.ops.math.reductions import reduce_sum

__all__ = ["tridiagonal_matmul", "tridiagonal_solve"]


@frozen
class TridiagonalSolve(Op, grad_reads=("diagonals", "y")):
    """The solutions of tridiagonal systems, by elimination with partial pivoting or without.

    The diagonals stand one below the other, the upper one first: element i of each is in row i, so
    the upper one's last and the lower one's first number do not count.

    Shapes: diagonals [..., 3, m], right sides [..., m, k] -> [..., m, k]
    Raises: InvalidArgumentError if a matrix is singular.
    """

    partial_pivoting: bool = True

    def infer(self, diagonals: Spec, rhs: Spec) -> Spec:
        check_kind(diagonals.dtype, "fc")
        check_same(diagonals, rhs)
        _check(diagonals.shape, rhs.shape)
        return rhs.like()

    def grad(self, g: Tensor, y: Tensor, diagonals: Tensor, rhs: Tensor) -> Any:
        turned = apply(self, conj(transposed(diagonals)), g)
        products = [
            reduce_sum(multiply(turned, conj(moved)), -1)
            for moved in (shifted(y, -1), y, shifted(y, 1))
        ]
        return negative(stack(products, -2)), turned

    def kernel(self, xp: ArrayModule, diagonals: Array, rhs: Array) -> Array:
        _check(diagonals.shape, rhs.shape)
        m = rhs.shape[-2]
        upper, main, lower = (xp.moveaxis(diagonals[..., i, :], -1, 0).copy() for i in range(3))
        x = xp.moveaxis(rhs, -2, 0).copy()
        # Where rows are exchanged a third diagonal arises, two above the main one.
        far = xp.zeros_like(upper)
        for i in range(m - 1):
            if self.partial_pivoting:
                _exchange(xp, i, upper, main, lower, far, x)
            factor = lower[i + 1] / main[i]
            main[i + 1] -= factor * upper[i]
            upper[i + 1] -= factor * far[i]
            x[i + 1] -= factor[..., None] * x[i]
        if not on_host(xp.all(main != 0)):
            raise expected("invertible matrices", "a singular one")
        for i in range(m - 1, -1, -1):
            if i + 1 < m:
                x[i] -= upper[i][..., None] * x[i + 1]
            if i + 2 < m:
                x[i] -= far[i][..., None] * x[i + 2]
            x[i] /= main[i][..., None]
        return xp.ascontiguousarray(xp.moveaxis(x, 0, -2))


def _exchange(
    xp: ArrayModule, i: int, upper: Array, main: Array, lower: Array, far: Array, x: Array
) -> None:
    """Exchanges rows i and i + 1 where the lower one begins with the larger number."""
    swap = abs(lower[i + 1]) > abs(main[i])
    last = i + 2 >= len(main)
    below = xp.zeros_like(far[i]) if last else upper[i + 1].copy()
    pairs = ((main[i].copy(), lower[i + 1].copy()), (upper[i].copy(), main[i + 1].copy()))
    main[i] = xp.where(swap, pairs[0][1], pairs[0][0])
    lower[i + 1] = xp.where(swap, pairs[0][0], pairs[0][1])
    upper[i] = xp.where(swap, pairs[1][1], pairs[1][0])
    main[i + 1] = xp.where(swap, pairs[1][0], pairs[1][1])
    far[i] = xp.where(swap, below, far[i])
    if not last:
        upper[i + 1] = xp.where(swap, 0, below)
    rows = x[i].copy()
    x[i] = xp.where(swap[..., None], x[i + 1], rows)
    x[i + 1] = xp.where(swap[..., None], rows, x[i + 1])


def _check(diagonals: Any, rhs: Any) -> None:
    if diagonals is None or rhs is None:
        return
    fits = len(diagonals) >= 2 and len(rhs) == len(diagonals) and diagonals[-2] in (None, 3)
    pairs = [*zip(diagonals[:-2], rhs[:-2]), (diagonals[-1], rhs[-2])] if fits else []
    if not fits or any(a != b and None not in (a, b) for a, b in pairs):
        raise expected(
            "diagonals [..., 3, m] and right sides [..., m, k]", tuple(diagonals), tuple(rhs)
        )


def _part(x: Tensor, axis: int, begin: int | None, end: int | None) -> Tensor:
    """Returns x[..., begin:end, ...] along an axis that is counted from the end."""
    key: Any = [..., slice(begin, end), *[slice(None)] * (-1 - axis)]
    return x[tuple(key)]  # type: ignore[no-any-return]


def shifted(x: Tensor, by: int, axis: int = -2) -> Tensor:
    """Returns x moved along an axis by 1 or -1, with zeros where nothing comes from."""
    zeros = multiply(_part(x, axis, 0, 1), 0)
    parts = [zeros, _part(x, axis, None, -1)] if by > 0 else [_part(x, axis, 1, None), zeros]
    return concat(parts, axis)


def transposed(diagonals: Tensor) -> Tensor:
    """Returns the diagonals of the transposed matrices."""
    upper, main, lower = (diagonals[..., i, :] for i in range(3))
    return stack([shifted(lower, -1, -1), main, shifted(upper, 1, -1)], -2)


def _compact(diagonals: Any, form: str, rhs: Tensor) -> Tensor:
    """Returns diagonals, as they may be given, one below the other."""
    if form == "compact":
        return convert_to_tensor(diagonals, None if isinstance(diagonals, Tensor) else rhs.dtype)
    if form == "matrix":
        found = convert_to_tensor(diagonals, None if isinstance(diagonals, Tensor) else rhs.dtype)
        return matrix_diag_part(found, k=(-1, 1), align="LEFT_RIGHT")
    if form != "sequence" or len(diagonals) != 3:
        raise expected(
            'diagonals_format "compact", "matrix" or "sequence" (of three)',
            repr(form),
            repr(diagonals),
        )
    upper, main, lower = (convert_to_tensor(d, rhs.dtype) for d in diagonals)
    if None in [t.spec.shape or None for t in (upper, main, lower)]:
        raise InvalidArgumentError("expected diagonals of known rank, 1 at least")
    m = main.shape.as_list()[-1]
    if m is None or upper.shape.as_list()[-1] not in (m, m - 1):
        raise InvalidArgumentError("expected diagonals of known length m, m - 1 or m beside it")
    if upper.shape.as_list()[-1] == m - 1:
        before = [[0, 0]] * (len(upper.shape) - 1)
        upper, lower = pad(upper, [*before, [0, 1]]), pad(lower, [*before, [1, 0]])
    return stack([upper, main, lower], -2)


def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
) -> Tensor:
    """Returns the solutions of tridiagonal systems.

    Args:
        diagonals: [..., 3, m]: the upper, the main and the lower diagonal, each number in its row.
        rhs: Right sides, [..., m] or [..., m, k].
        diagonals_format: "compact"; "sequence": three tensors [..., m], those beside the main one
            may be [..., m - 1]; "matrix": whole matrices [..., m, m].
        transpose_rhs: Whether right sides are given as rows.
        conjugate_rhs: Whether their conjugates are meant.
        name: Name scope of the operations.
        partial_pivoting: Whether rows are exchanged where that is more exact.

    Raises:
        InvalidArgumentError: if the shapes do not fit, or a matrix is singular.
    """
    b = convert_to_tensor(rhs)
    with b.graph.name_scope(name or "tridiagonal_solve"):
        bands = _compact(diagonals, diagonals_format, b)
        is_vector = len(b.shape) == len(bands.shape) - 1
        if conjugate_rhs:
            b = conj(b)
        if is_vector:
            b = expand_dims(b, -1)
        elif transpose_rhs:
            b = matrix_transpose(b)
        y = apply(TridiagonalSolve(bool(partial_pivoting)), bands, b)
        return squeeze(y, [-1]) if is_vector else y


@op_function("rhs", scope="tridiagonal_matmul")
def tridiagonal_matmul(
    diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """Returns products of tridiagonal matrices and others, [..., m, k].

    The arguments are those of `tridiagonal_solve`.
    """
    bands = _compact(diagonals, diagonals_format, rhs)
    upper, main, lower = (expand_dims(bands[..., i, :], -1) for i in range(3))
    beside = add(multiply(upper, shifted(rhs, -1)), multiply(lower, shifted(rhs, 1)))
    return add(multiply(main, rhs), beside)
