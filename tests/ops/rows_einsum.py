# ruff: noqa: E501  (a table: one line per row)
# fmt: off
"""Rows of the ops' table: Einstein sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from row_tools import F, In, Table

import flowscope as fs

ROWS = Table()


def _sum(name: str, equation: str, *shapes: tuple[int, ...], **options: Any) -> None:
    options.setdefault("rank", "..." in equation)
    ROWS.row(f"einsum_{name}", lambda *xs: fs.einsum(equation, *xs),
             lambda *xs: np.asarray(np.einsum(equation, *xs), xs[0].dtype), *[In(s) for s in shapes], **options)


_ALL = (*F, "int32", "complex128")
_sum("diagonal", "ii->i", (3, 3), dtypes=_ALL)
_sum("trace", "ii->", (3, 3))
_sum("trace_implicit", "ii", (3, 3))
_sum("sum", "ij->j", (2, 3), dtypes=_ALL)
_sum("total", "ij->", (2, 3))
_sum("transpose", "ba", (2, 3))
_sum("same", "ij->ij", (2, 3))
_sum("scalar", "->", ())
_sum("inner_diagonal", "ijiik->kj", (2, 3, 2, 2, 2))
_sum("rest_last", "i...->...", (2, 3, 2))
_sum("rest_diagonal", "i...i->i...", (2, 3, 2))
_sum("product", "ij,jk->ik", (2, 3), (3, 4), dtypes=_ALL)
_sum("product_turned", "ji,kj->ki", (3, 2), (4, 3), dtypes=_ALL)
_sum("implicit", "ij, jk", (2, 3), (3, 2))
_sum("batch", "bij,bjk->bik", (2, 2, 3), (2, 3, 2))
_sum("batch_inner", "bi,bi->b", (3, 4), (3, 4), dtypes=_ALL)
_sum("batch_last", "ijb,jkb->bki", (2, 3, 2), (3, 4, 2))
_sum("inner", "i,i->", (3,), (3,), dtypes=_ALL)
_sum("outer", "i,j->ji", (2,), (3,))
_sum("hadamard", "ij,ji->ij", (2, 3), (3, 2))
_sum("scaled", ",ij->ij", (), (2, 3))
_sum("two_axes", "ijk,jkl->il", (2, 3, 2), (3, 2, 2))
_sum("own_sums", "ijk,jl->i", (2, 3, 2), (3, 2))
_sum("own_diagonals", "iij,jkk->ik", (2, 2, 3), (3, 2, 2))
_sum("empty", "ij,jk->ik", (2, 0), (0, 3))
_sum("rest", "...ij,...jk->...ik", (2, 1, 2, 3), (3, 3, 2), order=1)
_sum("rest_second", "ij,...jk->...ik", (2, 3), (2, 3, 2))
_sum("rest_middle", "a...b,b->...a", (2, 3, 2), (2,))
_sum("rest_implicit", "i...,j...", (2, 3), (2, 3))
_sum("rest_broadcast", "...i,...i->...", (3, 1, 2), (4, 2), order=1)
_sum("three", "ij,kj,k->i", (2, 3), (4, 3), (4,))
_sum("three_diagonal", "ij,jj,jk->ik", (2, 3), (3, 3), (3, 2), order=1, static=True)  # shapes choose the order
_sum("four", "ab,bc,cd,de->ae", (2, 3), (3, 2), (2, 3), (3, 2), order=1, static=True)
_sum("attention", "bqhd,bkhd->bhqk", (2, 3, 2, 2), (2, 2, 2, 2), order=1)
