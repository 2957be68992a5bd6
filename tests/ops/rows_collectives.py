# ruff: noqa: E501
# fmt: off
"""Rows of collectives: what each rank gets."""

from __future__ import annotations

import functools

import numpy as np
from row_tools import F, H, I, In, Table

import flowscope as fs

ROWS = Table()
row = ROWS.row
fc = fs.collectives
_NP = {"sum": np.add, "mean": np.add, "min": np.minimum, "max": np.maximum, "prod": np.multiply}


def fold(how, xs):
    total = functools.reduce(_NP[how], xs)
    return np.asarray(total / len(xs) if how == "mean" else total).astype(xs[0].dtype)


def parts(x, n):
    return [x[len(x) * i // n : len(x) * (i + 1) // n] for i in range(n)]


for _how in _NP:
    _d = F if _how == "mean" else (*F, *I)
    row(f"all_reduce_{_how}", lambda *xs, h=_how: fc.all_reduce(xs, h), lambda *xs, h=_how: [fold(h, xs)] * 3, In(), In(), In(), dtypes=_d)
    row(f"reduce_scatter_{_how}", lambda *xs, h=_how: fc.reduce_scatter(xs, h), lambda *xs, h=_how: parts(fold(h, xs), 2), In((3, 2)), In((3, 2)), dtypes=_d)
    row(f"rank_reduce_{_how}", lambda *xs, h=_how: fc.reduce(xs, h), lambda *xs, h=_how: fold(h, xs), In(), In(), In(), dtypes=_d)
row("all_reduce_halves", lambda *xs: fc.all_reduce(xs), lambda *xs: [(xs[0].astype("f4") + xs[1] + xs[2]).astype("f2")] * 3, In(), In(), In(), dtypes=("float16",), order=0)
row("all_reduce_one", lambda x: fc.all_reduce([x], "prod"), lambda x: [x], In(), dtypes=(*H, *I))
row("all_reduce_prod_zero", lambda *xs: fc.all_reduce(xs, "prod"), lambda *xs: [fold("prod", xs)] * 2, In(value=[0.0, 2.0]), In(value=[3.0, 0.0]))
row("all_reduce_max_tie", lambda *xs: fc.all_reduce(xs, "max"), lambda *xs: [fold("max", xs)] * 2, In(value=[1.0, 2.0]), In(value=[1.0, -2.0]), order=0)
row("reduce_scatter_short", lambda *xs: fc.reduce_scatter(xs), lambda *xs: parts(fold("sum", xs), 3), In((1, 2)), In((1, 2)), In((1, 2)))
row("rank_all_gather", lambda *xs: fc.all_gather(xs), lambda *xs: [np.concatenate(xs)] * 3, In((2, 2)), In((0, 2)), In((3, 2)), dtypes=(*F, "bool"))
row("all_to_all", lambda *xs: fc.all_to_all(xs), lambda *xs: [np.concatenate([x[2 * i : 2 * i + 2] for x in xs]) for i in range(2)], In((4, 3)), In((4, 3)), dtypes=(*F, "bool"))
row("rank_broadcast", lambda x: fc.broadcast(x, [None] * 3), lambda x: [x] * 3, In(), dtypes=(*F, "bool"))
row("rank_scatter", lambda x: fc.scatter(x, [None] * 3), lambda x: parts(x, 3), In((4, 2)), dtypes=(*F, "bool"))
row("forward_reference", lambda x: fc.forward_reference(x), lambda x: x, In(), dtypes=(*F, *I, "bool"))
