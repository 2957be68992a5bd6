# ruff: noqa: E501
# fmt: off
"""Sets, edit distances, labels made ready for CTC."""

from __future__ import annotations

from typing import Any

import numpy as np
from row_tools import In, Table

import flowscope as fs

ROWS = Table()
row = ROWS.row

_A, _B = np.array([[1, 2, 2, 7], [3, 4, 5, 7], [7, 7, 7, 7]]), np.array([[2, 9], [3, 3], [7, 8]])
_INTEGERS = ("int8", "int32", "int64", "uint8")


def parts(s: Any) -> list[Any]:
    return [s.indices, s.values, s.dense_shape]


def sets(*groups: list[int], dtype: Any) -> list[Any]:
    places = [[i, j] for i, g in enumerate(groups) for j in range(len(g))]
    return [np.array(places).reshape(-1, 2), np.array([v for g in groups for v in g], dtype), np.array([len(groups), max(map(len, groups))])]


for _name, _call, _groups in (
    ("union", fs.sets.union, ([1, 2, 7, 9], [3, 4, 5, 7], [7, 8])),
    ("intersection", fs.sets.intersection, ([2], [3], [7])),
    ("difference", fs.sets.difference, ([1, 7], [4, 5, 7], [])),
    ("difference_other", lambda a, b: fs.sets.difference(a, b, aminusb=False), ([9], [], [8])),
):
    row(f"set_{_name}", lambda a, b, f=_call: parts(f(a, b)), lambda a, b, g=_groups: sets(*g, dtype=a.dtype),
        In(value=_A), In(value=_B), dtypes=_INTEGERS, order=0, dynamic=True, rank=True)
row("set_union_strings", lambda a, b: parts(fs.sets.set_union(a, b)), lambda a, b: [np.array([[0], [1], [2]]), np.array([b"a", b"b", b"c"], object), np.array([3])],
    In(value=[b"b", b"a"], dtype="object"), In(value=[b"c", b"a"], dtype="object"), dtypes=("object",), order=0, dynamic=True, rank=True)
row("set_size", lambda v: fs.sets.set_size(fs.SparseTensor([[0, 0], [0, 2], [0, 3], [2, 0]], v, [3, 4])),
    lambda v: np.array([2, 0, 1], "i4"), In(value=[4, 4, 5, 4]), dtypes=_INTEGERS, order=0)
row("set_size_one", lambda v: fs.sets.set_size(fs.SparseTensor([[0], [2]], v, [3])), lambda v: np.int32(1), In(value=[4, 4]), dtypes=("int32",), order=0)
row("set_none", lambda a, b: parts(fs.sets.set_union(a, b)), lambda a, b: [np.zeros((0, 2), "i8"), np.zeros(0, a.dtype), np.array([2, 0])],
    In((2, 0)), In((2, 0)), dtypes=("int32",), order=0, dynamic=True, rank=True)


def distances(normalize: bool) -> Any:
    """Between "abc" and "axc!", "" and "z", "z" and "", "" and ""."""
    a = [[0, 0], [0, 1], [0, 2], [2, 0]], [4, 3]
    b = [[0, 0], [0, 1], [0, 2], [0, 3], [1, 1]], [4, 4]
    return lambda v, w: fs.edit_distance(fs.SparseTensor(a[0], v, a[1]), fs.SparseTensor(b[0], w, b[1]), normalize)


for _name, _want in (("", [0.5, 1, np.inf, 0]), ("plain", [2, 1, 1, 0])):
    row(f"edit_distance_{_name}", distances(not _name), lambda v, w, x=_want: np.array(x, "f4"),
        In(value=[1, 2, 3, 9]), In(value=[1, 7, 3, 8, 9]), dtypes=("int32", "float64"), order=0)

row("ctc_unique_labels", fs.nn.ctc_unique_labels,
    lambda x: [np.array([[3, 4, 0, 0], [9, 1, 2, 0]]), np.array([[0, 1, 1, 0], [0, 1, 2, 0]], "i4")],
    In(value=[[3, 4, 4, 3], [9, 1, 2, 9]]), dtypes=("int32", "int64"), order=0)
row("ctc_unique_labels_none", fs.nn.ctc_unique_labels, lambda x: [np.zeros((2, 0), "i8"), np.zeros((2, 0), "i4")], In((2, 0)), dtypes=("int32",), order=0)
row("collapse_repeated", fs.nn.collapse_repeated, lambda x, n: [np.array([[1, 2, 0], [1, 2, 1]], x.dtype), np.array([2, 3], n.dtype)],
    In(value=[[1, 1, 2, 2, 0], [1, 2, 1, 1, 1]]), In(value=[4, 3], dtype="int32"), dtypes=("int32", "int64"), order=0, dynamic=True)
row("collapse_repeated_none", fs.nn.collapse_repeated, lambda x, n: [np.zeros((0, 0), x.dtype), n.copy()],
    In((0, 3)), In((0,), dtype="int64"), dtypes=("int32",), order=0, dynamic=True)
