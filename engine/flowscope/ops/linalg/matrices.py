"""Matrices and their diagonals and bands; all leading axes are a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor, get_static_value
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, compatible, text
from flowscope.ops.array.arrays import fill, size, zeros_like
from flowscope.ops.array.joining import concat
from flowscope.ops.array.shaping import reshape, shape_of
from flowscope.ops.core.build import apply
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind, check_same
from flowscope.ops.math.elementwise import maximum

__all__ = [
    "diag",
    "diag_part",
    "matrix_band_part",
    "matrix_diag",
    "matrix_diag_part",
    "matrix_set_diag",
]

_ALIGNS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")
_NUMBERS = "fiucb"


class MatrixDiag(Op):
    """Matrices with the given diagonals and zeros elsewhere.

    Shapes: [..., n] -> [..., n, n]
    """

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, _NUMBERS)
        if x.shape is None:
            return Spec(x.dtype, None)
        if not x.shape:
            raise expected("rank 1 at least", "[]")
        return Spec(x.dtype, (*x.shape, x.shape[-1]))

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(MatrixDiagPart(), g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        out = xp.zeros((*x.shape, x.shape[-1]), x.dtype)
        places = xp.arange(x.shape[-1])
        out[..., places, places] = x
        return out


class _Band(Op, abstract=True):
    """Base of ops on the diagonals `low` to `high` (0 is the main one, those above are positive).

    Several diagonals stand in rows, the highest first, as long as the longest; `align` says at
    which end those above and those below the main one stand.
    """

    low: int
    high: int
    align: str

    def _check(self, dims: Dims) -> None:
        if self.align not in _ALIGNS:
            raise InvalidArgumentError(f"expected an align of {', '.join(_ALIGNS)}, got {self!r}")
        if self.low > self.high:
            raise expected("k in rising order", str((self.low, self.high)))
        if dims is None:
            return
        if len(dims) < 2:
            raise expected("matrices", dims)
        rows, columns = dims[-2:]
        if rows is not None and columns is not None:
            below, above = max(rows - 1, 0), max(columns - 1, 0)
            if not (-below <= self.low and self.high <= above):
                raise expected(
                    f"diagonals in [{-below}, {above}] of {text(dims)}",
                    f"{self.low} to {self.high}",
                )

    def _band(self, dims: Dims) -> Dims:
        """Returns the shape of the diagonals of matrices of a shape."""
        if dims is None:
            return None
        rows, columns = dims[-2:]
        length = None
        if rows is not None and columns is not None:
            length = min(rows + min(self.high, 0), columns - max(self.low, 0))
        several = () if self.low == self.high else (self.high - self.low + 1,)
        return (*dims[:-2], *several, length)

    def _lines(self, rows: int, columns: int) -> Any:
        """Yields (k, length, start in its row) of each diagonal, the highest first."""
        longest = min(rows + min(self.high, 0), columns - max(self.low, 0))
        above, below = self.align.split("_")
        for k in range(self.high, self.low - 1, -1):
            length = max(0, min(rows + min(k, 0), columns - max(k, 0)))
            at_end = (above if k >= 0 else below) == "RIGHT"
            yield k, length, longest - length if at_end else 0


@frozen
class MatrixDiagPart(_Band):
    """Diagonals of matrices; several are filled up with `padding` to equal length.

    Shapes: [..., m, n] -> [..., length], or [..., high - low + 1, length of the longest]
    """

    low: int = 0
    high: int = 0
    align: str = "RIGHT_LEFT"
    padding: float = 0

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, _NUMBERS)
        self._check(x.shape)
        return Spec(x.dtype, self._band(x.shape))

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(MatrixSetDiag(self.low, self.high, self.align), zeros_like(x), g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        self._check(x.shape)
        if self.low == self.high:
            return xp.diagonal(x, self.low, -2, -1).copy()
        out = xp.full(self._band(x.shape), self.padding, x.dtype)
        for i, (k, n, start) in enumerate(self._lines(*x.shape[-2:])):
            out[..., i, start : start + n] = xp.diagonal(x, k, -2, -1)
        return out


@frozen
class MatrixSetDiag(_Band):
    """Matrices with diagonals replaced.

    Shapes: x [..., m, n], diagonals as `MatrixDiagPart` gives them -> x
    """

    low: int = 0
    high: int = 0
    align: str = "RIGHT_LEFT"

    def infer(self, x: Spec, diagonals: Spec) -> Spec:
        check_kind(x.dtype, _NUMBERS)
        check_same(x, diagonals)
        self._check(x.shape)
        wanted = self._band(x.shape)
        if not compatible(wanted, diagonals.shape):
            raise expected(
                f"diagonals of shape {text(wanted)} for {text(x.shape)}", diagonals.shape
            )
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor, diagonals: Tensor) -> Any:
        part = MatrixDiagPart(self.low, self.high, self.align)
        return apply(self, g, zeros_like(diagonals)), apply(part, g)

    def kernel(self, xp: ArrayModule, x: Array, diagonals: Array) -> Array:
        self._check(x.shape)
        if diagonals.shape != self._band(x.shape):
            raise expected(
                f"diagonals of shape {text(self._band(x.shape))} for {text(x.shape)}",
                diagonals.shape,
            )
        out = x.copy()
        for i, (k, n, start) in enumerate(self._lines(*x.shape[-2:])):
            line = diagonals if self.low == self.high else diagonals[..., i, start : start + n]
            places = xp.arange(n)
            out[..., places + max(-k, 0), places + max(k, 0)] = line
        return out


class MatrixBandPart(Op, grad_reads=("lower", "upper"), host_inputs=(1, 2)):
    """Matrices with zeros outside a band around the main diagonal.

    Shapes: x [..., m, n], lower [], upper [] -> x
    """

    def infer(self, x: Spec, lower: Spec, upper: Spec) -> Spec:
        check_kind(x.dtype, _NUMBERS)
        if x.rank is not None and x.rank < 2:
            raise expected("matrices", x.shape)
        for s in (lower, upper):
            if s.dtype.kind != "i" or s.shape not in (None, ()):
                raise expected_dtype("integer scalars for the band", s)
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor, lower: Tensor, upper: Tensor) -> Any:
        return apply(self, g, lower, upper), None, None

    def kernel(self, xp: ArrayModule, x: Array, lower: Array, upper: Array) -> Array:
        m, n = x.shape[-2:]
        low = int(lower) if lower >= 0 else m
        high = int(upper) if upper >= 0 else n
        # Rows and columns behind these are empty.
        rows, columns = min(m, n + low), min(n, m + high)
        down, across = xp.arange(rows)[:, None], xp.arange(columns)
        inside = (down - low <= across) & (down + high >= across)
        out = xp.zeros(x.shape, x.dtype)
        block = (..., slice(rows), slice(columns))
        out[block] = xp.where(inside, x[block], xp.zeros((), x.dtype))
        return out


_DIAG, _DIAG_PART = MatrixDiag(), MatrixDiagPart()


def _diagonals(k: Any) -> tuple[int, int]:
    """Returns k as the lowest and the highest diagonal."""
    known = get_static_value(k)
    if known is None:
        raise expected("k known while the graph is built", repr(k))
    numbers = np.asarray(known).reshape(-1).tolist()
    if len(numbers) not in (1, 2) or not all(isinstance(n, int) for n in numbers):
        raise expected("k as an integer or a pair of them", repr(k))
    return numbers[0], numbers[-1]


def matrix_diag(
    diagonal: Any,
    name: str = "diag",
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Returns matrices with the given diagonals.

    Args:
        diagonal: Diagonals, [..., n]; for several [..., number of them, n], the highest first.
        name: Name of the operation.
        k: Which diagonal: 0 is the main one, those above it are positive; or (lowest, highest).
        num_rows: Number of rows; -1 for as few as fit.
        num_cols: Number of columns; -1 for as few as fit. Without both the matrices are square.
        padding_value: What stands elsewhere.
        align: Where shorter diagonals stand in their rows, above and below the main one:
            "RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT" or "RIGHT_RIGHT".
    """
    x, (low, high) = convert_to_tensor(diagonal), _diagonals(k)
    is_plain = low == high == 0 and all(_is_number(n, -1) for n in (num_rows, num_cols))
    if is_plain and _is_number(padding_value, 0):
        return apply(_DIAG, x, name=name or "diag")
    with x.graph.name_scope(name or "diag"):
        sizes = shape_of(x)
        rows, columns = sizes[-1] - min(high, 0), sizes[-1] + max(low, 0)
        if _is_number(num_rows, -1) and _is_number(num_cols, -1):
            rows = columns = maximum(rows, columns)
        rows = rows if _is_number(num_rows, -1) else num_rows
        columns = columns if _is_number(num_cols, -1) else num_cols
        batch = sizes[: -1 if low == high else -2]
        whole = concat([batch, [rows, columns]], 0)
        ground = fill(whole, convert_to_tensor(padding_value, x.dtype))
        return apply(MatrixSetDiag(low, high, align), ground, x)


def _is_number(value: Any, number: int) -> bool:
    return isinstance(value, int | float | np.generic) and bool(value == number)


def matrix_diag_part(
    input: Any,
    name: str = "diag_part",
    k: Any = 0,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Returns diagonals of matrices.

    Args:
        input: Matrices, [..., m, n].
        name: Name of the operation.
        k: Which diagonal: 0 is the main one, those above it are positive; or (lowest, highest).
        padding_value: Fills shorter ones of several diagonals; a number.
        align: Where shorter ones stand in their rows, see `matrix_diag`.
    """
    filled = get_static_value(padding_value)
    if filled is None:
        raise InvalidArgumentError("expected a padding_value known while the graph is built")
    x, padding = convert_to_tensor(input), np.asarray(filled).item()
    if x.dtype.is_integer and np.asarray(padding).astype(x.dtype.np_dtype) != padding:
        raise expected_dtype(f"a padding_value of dtype {x.dtype}", padding)
    op = MatrixDiagPart(*_diagonals(k), align, padding)
    return apply(op, x, name=name or "diag_part")


@op_function("input")
def matrix_set_diag(
    input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Returns matrices with diagonals replaced.

    Args:
        input: Matrices, [..., m, n].
        diagonal: The new diagonals, as `matrix_diag_part` gives them.
        k: Which diagonal: 0 is the main one, those above it are positive; or (lowest, highest).
        align: Where shorter ones stand in their rows, see `matrix_diag`.
    """
    op = MatrixSetDiag(*_diagonals(k), align)
    return apply(op, input, convert_to_tensor(diagonal, input.dtype), name=name or "set_diag")


def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Returns matrices with zeros outside a band.

    Args:
        input: Matrices, [..., m, n].
        num_lower: How many diagonals below the main one stay; all if negative.
        num_upper: How many above it stay; all if negative.
        name: Name of the operation.
    """
    lower, upper = [convert_to_tensor(v, None, None, dtypes.int64) for v in (num_lower, num_upper)]
    return apply(MatrixBandPart(), convert_to_tensor(input), lower, upper, name=name)


def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """Returns a tensor of twice the rank with `diagonal` on its diagonal, zeros elsewhere.

    Of a vector, that is a matrix; see `matrix_diag` for a batch of them.
    """
    x = convert_to_tensor(diagonal)
    if x.spec.rank == 1:
        return apply(_DIAG, x, name=name or "Diag")
    with x.graph.name_scope(name or "Diag"):
        sizes = shape_of(x)
        return reshape(apply(_DIAG, reshape(x, [-1])), concat([sizes, sizes], 0))


def diag_part(input: Any, name: str | None = None) -> Tensor:
    """Returns the diagonal of a tensor whose shape is one shape twice over: undoes `diag`.

    Raises:
        InvalidArgumentError: if the rank is unknown or odd, or the halves of the shape differ.
    """
    x = convert_to_tensor(input)
    dims = x.spec.shape
    half = 0 if dims is None else len(dims) // 2
    if not dims or len(dims) % 2 or not compatible(dims[:half], dims[half:]):
        raise expected("a shape that is another one twice over", dims)
    if half == 1:
        return apply(_DIAG_PART, x, name=name or "DiagPart")
    with x.graph.name_scope(name or "DiagPart"):
        sizes = shape_of(x)[:half]
        first = size(x[(..., *[0] * half)])
        return reshape(apply(_DIAG_PART, reshape(x, [first, first])), sizes)
