# ruff: noqa: E501
# fmt: off
"""What a row of the ops' table is; the tables are `op_rows.py` and the files `rows_<topic>.py`.

A file of a topic makes `ROWS = Table()` and adds to it; `op_rows.py` joins all of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

F = ("float32", "float64")
H = ("float16", *F)
I = ("int8", "uint8", "int32", "int64")
C = ("complex64", "complex128")
B = ("bool",)


@dataclass(frozen=True)
class In:
    """An input: random numbers of a shape in a range, or a value as it is."""

    shape: tuple[int, ...] = (2, 3)
    low: float = -2
    high: float = 2
    #: Its own dtype, whatever the row's.
    dtype: str | None = None
    value: Any = None

    def make(self, rng: Any, dtype: str, shape: tuple[int, ...] | None = None) -> Any:
        dtype = self.dtype or dtype
        shape = self.shape if shape is None else shape
        if self.value is not None:
            out = np.array(self.value, dtype)
        elif dtype == "bool":
            out = np.array(rng.random(shape) < 0.5)
        elif np.dtype(dtype).kind in "iu":
            low = max(self.low, 0) if dtype.startswith("u") else self.low
            out = np.array(rng.integers(int(np.ceil(low)), int(self.high) + 1, shape), dtype)
        elif np.dtype(dtype).kind == "c":
            re, im = (rng.uniform(self.low, self.high, shape) for _ in range(2))
            out = np.array(re + 1j * im, dtype)
        else:
            out = np.array(rng.uniform(self.low, self.high, shape), dtype)
        return out if out.ndim else out[()]


@dataclass(frozen=True)
class Row:
    """One call.

    Attributes:
        call: Function of tensors that returns a tensor, or a list of them.
        reference: The same of arrays.
        order: Up to which order gradients are compared with differences.
        elementwise: Whether it takes inputs of any shapes that can be broadcast.
        rank: Whether it needs to know its inputs' ranks; `static`: their shapes.
        dynamic: Whether its output's shape depends on values.
    """

    name: str
    call: Callable[..., Any]
    reference: Callable[..., Any]
    inputs: tuple[In, ...]
    dtypes: tuple[str, ...] = F
    order: int = 2
    elementwise: bool = False
    rank: bool = False
    static: bool = False
    dynamic: bool = False
    rtol: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)


class Table(list[Row]):
    """Rows, and short ways to add one."""

    def row(self, name: str, call: Any, reference: Any, *inputs: In, **options: Any) -> None:
        self.append(Row(name, call, reference, inputs, **options))

    def unary(self, name: str, call: Any, reference: Any, low: float = -2, high: float = 2, **options: Any) -> None:
        self.row(name, call, reference, In(low=low, high=high), elementwise=True, **options)

    def binary(self, name: str, call: Any, reference: Any, low: float = -2, high: float = 2, **options: Any) -> None:
        one = In(low=low, high=high)
        self.row(name, call, reference, one, one, elementwise=True, **options)


#: Rows that one test goes through: each test costs pytest more than most rows take.
ROWS_PER_TEST = 16


def for_each(rows: Iterable[Row]) -> Callable[[Callable[[Row], None]], Callable[..., None]]:
    """Decorator: a check of one row becomes tests of several rows each, in a graph per row.

    A test names every row that fails, with its error. `FS_ROW=conv2d` leaves only the rows whose names
    match that regular expression.
    """
    pattern = os.environ.get("FS_ROW", "")
    chosen = [row for row in rows if re.search(pattern, row.name)]
    parts = [chosen[i : i + ROWS_PER_TEST] for i in range(0, len(chosen), ROWS_PER_TEST)]

    def decorate(check: Callable[[Row], None]) -> Callable[..., None]:
        def test(part: list[Row]) -> None:
            failures = [error for row in part if (error := _failure(check, row)) is not None]
            if failures:
                names = ", ".join(error.__notes__[-1] for error in failures)
                raise ExceptionGroup(f"{len(failures)} of {len(part)} rows: {names}", failures)

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        ids = [f"{part[0].name}..{part[-1].name}" for part in parts]
        return pytest.mark.parametrize("part", parts, ids=ids)(test)

    return decorate


def _failure(check: Callable[[Row], None], row: Row) -> Exception | None:
    """The error of one row, with its name as the last note; None if the row passes."""
    import flowscope as fs

    try:
        with fs.Graph().as_default():
            check(row)
    except Exception as error:
        error.add_note(row.name)
        return error
    return None


def with_own_calls(rows: list[Row]) -> list[Row]:
    """The rows without those that make an earlier row's call with other numbers."""
    found: dict[Any, Row] = {}
    for row in rows:
        found.setdefault(_call(row), row)
    return list(found.values())


def _call(row: Row) -> Any:
    """What a row calls: of a function of these files its code and the functions it refers to."""
    code = getattr(row.call, "__code__", None)
    if code is None or Path(code.co_filename).parent != Path(__file__).parent:
        return row.call
    held = [cell.cell_contents for cell in row.call.__closure__ or ()]
    held += [*(row.call.__defaults__ or ()), *(row.call.__kwdefaults__ or {}).values()]
    return code, *[value for value in held if callable(value)]


def like(f: Any) -> Any:
    """The reference in float64, rounded to the input's dtype."""

    def reference(*xs: Any) -> Any:
        wide = [np.asarray(x, np.complex128 if np.iscomplexobj(x) else np.float64) for x in xs]
        return np.asarray(f(*wide)).astype(xs[0].dtype)

    return reference


def vec(*value: int, dtype: str = "int32") -> In:
    return In(value=list(value), dtype=dtype)
