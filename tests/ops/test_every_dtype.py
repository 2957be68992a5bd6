"""The rows of the ops' table in all dtypes that their ops declare, not only in those they name.

An op says by its shape rule what it takes. Whatever that lets through must have a kernel that keeps
the promised dtype and shape, and no error in NumPy's words. Numbers of 16 bits must come out like
those of float32, rounded; integers of other widths as the row's reference says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_oracle import evaluate, noted
from op_rows import ROWS, Row
from row_tools import for_each
from test_rows import Case, _check_words, gradients, known, reference, weighted

import flowscope as fs
from flowscope.graph.values.dtypes import ALL, DType

pytestmark = pytest.mark.slow

LIMIT = {"float16": 8e-3, "bfloat16": 6e-2}
#: Rows that are not compared, for what they give hangs on the dtype's size or range.
NOT_COMPARED = {
    "bitcast_down": "of another number of bytes",
    "bitcast_up": "of another number of bytes",
    "saturate_cast_int32": "the largest number of the dtype below 2^31",
    "saturate_cast_half": "cut at numbers that float16 does not have",
    "scatter_nd_many": "sums of hundreds of terms, rounded one by one",
    "tensor_scatter_sub_many": "sums of hundreds of terms, rounded one by one",
}
#: What begins so gives the dtype's lowest or highest number for an empty segment.
OF_RANGE = ("unsorted_segment_max", "unsorted_segment_min", "max_empty", "min_empty")


def numbers(row: Row, dtype: DType) -> list[Any] | None:
    """The row's inputs in this dtype; None where there is no such number in their ranges."""
    rng = np.random.default_rng(7)
    made = []
    for i in row.inputs:
        is_plain = i.dtype is None and dtype.kind in "iucb"
        try:
            value = np.asarray(i.make(rng, dtype.name if is_plain else "float32"))
        except (ValueError, OverflowError, TypeError):
            return None
        if i.dtype is None:
            with np.errstate(all="ignore"):
                value = value.astype(dtype.np_dtype)
        made.append(value if value.ndim else value[()])
    return made


def widened(arrays: list[Any]) -> list[Any]:
    """Those of 16 bits as float32."""
    small = [np.asarray(a).dtype.itemsize == 2 and a.dtype.kind in "fV" for a in arrays]
    return [a.astype("float32")[()] if s else a for a, s in zip(arrays, small, strict=True)]


def others(row: Row) -> list[DType]:
    return [d for d in ALL if d.kind in "fiucbenm" and d.name not in row.dtypes]


@for_each(ROWS)
def test_what_an_op_takes_it_computes(row: Row) -> None:
    for dtype in others(row):
        arrays = numbers(row, dtype)
        if arrays is None:
            continue
        with noted(dtype):
            try:
                case = Case(row, dtype.name, arrays, known(arrays))
            except fs.OpError as error:
                _check_words(error)
                continue
            if None not in case.outputs:  # of integers there is no gradient
                check(row, dtype, case, arrays)


def check(row: Row, dtype: DType, case: Case, arrays: list[Any]) -> None:
    try:
        values = case.values()
    except fs.OpError as error:
        _check_words(error)
        return
    if row.name in NOT_COMPARED or row.name.startswith(OF_RANGE):
        return
    if dtype.name in LIMIT and "float32" in row.dtypes:
        wide = widened(arrays)
        agree(values, Case(row, "float32", wide, known(wide)).values(), LIMIT[dtype.name])
        if row.order:
            tensors = [g for g in gradients(case, weighted(case)) if g is not None]
            evaluate(tensors, case.feeds)
    elif dtype.kind in "iu" and "int32" in row.dtypes:
        agree(values, reference(row, arrays), 0)


def agree(got: list[Any], want: list[Any], limit: float) -> None:
    for g, w in zip(got, want, strict=True):
        if np.asarray(g).dtype.kind in "fV" and limit:
            plain = np.asarray(g, np.float64)
            np.testing.assert_allclose(plain, np.float64(w), rtol=limit, atol=limit)
        elif np.asarray(g).dtype.kind != "O":
            np.testing.assert_array_equal(g, np.asarray(w).astype(np.asarray(g).dtype))
