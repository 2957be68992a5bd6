"""What a model's variables are and hold: counts, bytes, values that are not finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowscope.graph.lazy import frozen
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.shapes import Dims, as_dims, size_of, text
from flowscope.ops.state.variable_lists import global_variables, trainable_variables
from flowscope.ops.state.variables import Variable


@frozen
class ParameterRow:
    """One variable of a report; numbers are None where the shape is not known."""

    name: str
    dtype: DType
    shape: Dims
    count: int | None
    nbytes: int | None

    def cells(self) -> tuple[str, ...]:
        """Its row of the table."""
        return self.name, f"{self.dtype}{text(self.shape)}", _number(self.count), _size(self.nbytes)


@frozen
class ParameterReport:
    """Counts and bytes of variables; its repr is a table."""

    rows: tuple[ParameterRow, ...]

    @property
    def count(self) -> int:
        """Elements of all variables of known shape."""
        return sum(r.count or 0 for r in self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes of all variables of known shape."""
        return sum(r.nbytes or 0 for r in self.rows)

    def __repr__(self) -> str:
        some = "variable" if len(self.rows) == 1 else "variables"
        total = (f"{len(self.rows)} {some}", "", _number(self.count), _size(self.nbytes))
        lines = [("name", "type", "count", "size"), *[r.cells() for r in self.rows], total]
        widths = [max(len(line[i]) for line in lines) for i in range(4)]
        return "\n".join(_aligned(line, widths) for line in lines)


def parameter_report(var_list: Sequence[Variable] | None = None) -> ParameterReport:
    """Returns counts and bytes of variables, by default of the trainable ones.

    Example:
        >>> import flowscope as fs
        >>> with fs.Graph().as_default():
        ...     w = fs.Variable(fs.zeros([784, 256]), name="w")
        ...     b = fs.Variable(fs.zeros([256]), name="b")
        ...     print(fs.train.parameter_report())
        name         type                count       size
        w            float32[784,256]  200,704  784.0 KiB
        b            float32[256]          256    1.0 KiB
        2 variables                    200,960  785.0 KiB
    """
    return ParameterReport(
        tuple([_row(v) for v in (trainable_variables() if var_list is None else var_list)])
    )


def non_finite_variables(sess: Any, var_list: Sequence[Variable] | None = None) -> list[str]:
    """Returns the names of variables that hold an infinity or NaN in a session.

    Args:
        sess: The session.
        var_list: All global variables by default; those without floats are passed over.

    Raises:
        FailedPreconditionError: if one has no value yet.
    """
    looked_at = global_variables() if var_list is None else var_list
    floats = [v for v in looked_at if v.dtype.is_floating or v.dtype.is_complex]
    values = sess.run(floats)
    return [v.op.name for v, x in zip(floats, values, strict=True) if not np.isfinite(x).all()]


def _row(var: Variable) -> ParameterRow:
    dims = as_dims(var.shape)
    count = size_of(dims)
    nbytes = None if count is None else count * var.dtype.size
    return ParameterRow(var.op.name, var.dtype, dims, count, nbytes)


def _number(n: int | None) -> str:
    return "?" if n is None else f"{n:,}"


def _size(nbytes: int | None) -> str:
    if nbytes is None:
        return "?"
    power = max(min((nbytes.bit_length() - 1) // 10, 4), 0)
    unit = ("B", "KiB", "MiB", "GiB", "TiB")[power]
    return f"{nbytes / 1024**power:.1f} {unit}" if power else f"{nbytes} B"


def _aligned(line: tuple[str, ...], widths: list[int]) -> str:
    name, kind, count, size = line
    left = f"{name:<{widths[0]}}  {kind:<{widths[1]}}"
    return f"{left}  {count:>{widths[2]}}  {size:>{widths[3]}}".rstrip()


__all__ = ["ParameterReport", "ParameterRow", "non_finite_variables", "parameter_report"]
