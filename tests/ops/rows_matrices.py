# ruff: noqa: E501
# fmt: off
"""Rows of diagonals, bands, moved elements and patches."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from row_tools import C, F, In, Table, vec

import flowscope as fs

ROWS = Table()
row = ROWS.row

# -- diagonals ------------------------------------------------------------------------------------

row("matrix_diag", fs.matrix_diag, lambda x: np.stack([np.diag(v) for v in x]), In(), dtypes=(*F, "int32", "bool", *C))
row("matrix_diag_none", fs.matrix_diag, lambda x: np.zeros((2, 0, 0), x.dtype), In((2, 0)))
row("diag", fs.diag, np.diag, In((3,)), dtypes=(*F, "int32", *C))
row("diag_matrix", fs.diag, lambda x: np.diag(x.reshape(-1)).reshape(2, 3, 2, 3), In())
row("diag_part", fs.diag_part, np.diag, In((3, 3)), dtypes=(*F, "int32"), rank=True)
row("diag_part_4", fs.diag_part, lambda x: np.diag(x.reshape(6, 6)).reshape(2, 3), In((2, 3, 2, 3)), rank=True)
row("matrix_diag_part", fs.matrix_diag_part, lambda x: np.diagonal(x, 0, -2, -1), In((2, 2, 3)), dtypes=(*F, "int32", "bool"))


def diagonals(x: Any, low: int, high: int, align: str, padding: float = 0) -> Any:
    """Diagonals in rows, one element after the other."""
    m, n = x.shape[-2:]
    longest = min(m + min(high, 0), n - max(low, 0))
    out = np.full((*x.shape[:-2], high - low + 1, longest), padding, x.dtype)
    for i, k in enumerate(range(high, low - 1, -1)):
        line = np.diagonal(x, k, -2, -1)
        missing = longest - line.shape[-1]
        right = align.split("_")[k < 0] == "RIGHT"
        for j in range(line.shape[-1]):
            out[..., i, j + missing * right] = line[..., j]
    return out[..., 0, :] if low == high else out


def replaced(x: Any, d: Any, low: int, high: int, align: str) -> Any:
    """The matrix with the diagonals put back where `diagonals` takes them from."""
    out = x.copy()
    places = np.broadcast_to(np.arange(x.shape[-2] * x.shape[-1]).reshape(x.shape[-2:]), x.shape)
    where = diagonals(places, low, high, align, -1)
    flat, lines, numbers = out.reshape(-1, x.shape[-2] * x.shape[-1]), *(v.reshape(-1, d.size // max(1, np.prod(x.shape[:-2], dtype=int))) for v in (d, where))
    for b, i in itertools.product(range(len(flat)), range(numbers.shape[1])):
        if numbers[b, i] >= 0:
            flat[b, numbers[b, i]] = lines[b, i]
    return out


for _low, _high, _align in ((1, 1, "RIGHT_LEFT"), (-2, -2, "RIGHT_LEFT"), (-1, 1, "RIGHT_LEFT"), (-1, 1, "LEFT_RIGHT"),
                            (-2, 3, "LEFT_LEFT"), (-2, 2, "RIGHT_RIGHT"), (1, 3, "LEFT_RIGHT"), (-2, -1, "RIGHT_LEFT"), (-2, 0, "LEFT_RIGHT")):
    _k, _id = (_low, _high), f"{_low}_{_high}_{_align}"
    _o = {"k": _k, "align": _align}
    _a = (_low, _high, _align)
    row(f"matrix_diag_part_{_id}", lambda x, o=_o: fs.matrix_diag_part(x, **o), lambda x, a=_a: diagonals(x, *a), In((2, 3, 4)), dtypes=("float64", "int32"))
    _n = min(3 + min(_high, 0), 4 - max(_low, 0))
    _d = In((2, _n) if _low == _high else (2, _high - _low + 1, _n))
    row(f"matrix_set_diag_{_id}", lambda x, d, o=_o: fs.matrix_set_diag(x, d, **o), lambda x, d, a=_a: replaced(x, d, *a), In((2, 3, 4)), _d, dtypes=("float64", "int32"))
    row(f"matrix_diag_{_id}", lambda d, o=_o: fs.matrix_diag(d, num_rows=3, num_cols=4, padding_value=7, **o),
        lambda d, a=_a: replaced(np.full((2, 3, 4), 7, d.dtype), d, *a), _d, dtypes=("float64",), dynamic=True)
row("matrix_diag_part_padding", lambda x: fs.matrix_diag_part(x, k=(-1, 0), padding_value=-9), lambda x: diagonals(x, -1, 0, "RIGHT_LEFT", -9), In((3, 3)), order=1)
row("matrix_diag_above", lambda d: fs.matrix_diag(d, k=1), lambda d: np.diag(d, 1), In((2,)), dynamic=True)
row("matrix_diag_below_rows", lambda d: fs.matrix_diag(d, k=-1, num_cols=4), lambda d: replaced(np.zeros((3, 4), d.dtype), d, -1, -1, "RIGHT_LEFT"), In((2,)), dynamic=True)
for _l, _u in ((1, 0), (-1, 0), (0, -1), (0, 0), (1, 2), (-1, -1)):
    row(f"matrix_band_part_{_l}_{_u}", lambda x, a=_l, b=_u: fs.matrix_band_part(x, a, b),
        lambda x, a=_l, b=_u: np.tril(np.triu(x, -a if a >= 0 else -9), b if b >= 0 else 9), In((2, 3, 4)), dtypes=(*F, "int32", "bool", "complex64"))
row("matrix_band_part_fed", fs.matrix_band_part, lambda x, a, b: np.tril(np.triu(x, -1)), In((3, 3)), In(value=1, dtype="int32"), In(value=0, dtype="int32"))
row("cross", fs.cross, np.cross, In(), In(), dtypes=(*F, "int32"))

# -- moved elements -------------------------------------------------------------------------------

row("roll", lambda x: fs.roll(x, 2, 0), lambda x: np.roll(x, 2, 0), In((5,)), dtypes=(*F, "int32", "bool"))
row("roll_axes", lambda x: fs.roll(x, [1, -4, 1], [0, -1, 0]), lambda x: np.roll(x, (2, -4), (0, 1)), In((4, 3)))
row("roll_fed", fs.roll, lambda x, s, a: np.roll(x, -1, 1), In(), In(value=-1, dtype="int32"), In(value=1, dtype="int32"))
row("roll_none", lambda x: fs.roll(x, 1, 0), lambda x: x, In((0, 3)))


def backwards(x: Any, n: Any, seq: int, batch: int) -> Any:
    out = x.copy()
    for i, k in enumerate(n):
        a, b = np.moveaxis(out, (batch, seq), (0, 1))[i], np.moveaxis(x, (batch, seq), (0, 1))[i]
        a[:k] = b[:k][::-1]
    return out


row("reverse_sequence", lambda x, n: fs.reverse_sequence(x, n, 1), lambda x, n: backwards(x, n, 1, 0), In((3, 4, 2)), vec(2, 0, 4), dtypes=(*F, "int32", "bool"))
row("reverse_sequence_old", lambda x, n: fs.reverse_sequence(x, n, seq_dim=0, batch_dim=2), lambda x, n: backwards(x, n, 0, 2), In((4, 2, 3)), vec(2, 1, 4, dtype="int64"))


def to_depth(x: Any, k: int) -> Any:
    return np.concatenate([x[:, i::k, j::k] for i, j in itertools.product(range(k), repeat=2)], -1)


row("space_to_depth", lambda x: fs.space_to_depth(x, 2), lambda x: to_depth(x, 2), In((2, 4, 2, 3)), dtypes=(*F, "int32"))
row("space_to_depth_nchw", lambda x: fs.space_to_depth(x, 2, data_format="NCHW"),
    lambda x: to_depth(x.transpose(0, 2, 3, 1), 2).transpose(0, 3, 1, 2), In((2, 3, 4, 2)))


def from_depth(x: Any, k: int) -> Any:
    n, h, w, c = x.shape
    out = np.empty((n, h * k, w * k, c // k**2), x.dtype)
    for p, (i, j) in enumerate(itertools.product(range(k), repeat=2)):
        out[:, i::k, j::k] = x[..., p * out.shape[3]:(p + 1) * out.shape[3]]
    return out


row("depth_to_space", lambda x: fs.depth_to_space(x, 2), lambda x: from_depth(x, 2), In((2, 1, 2, 8)), dtypes=(*F, "int32"))
row("depth_to_space_nchw", lambda x: fs.depth_to_space(x, 2, data_format="NCHW"),
    lambda x: from_depth(x.transpose(0, 2, 3, 1), 2).transpose(0, 3, 1, 2), In((2, 8, 1, 2)))


def to_batch(x: Any, block: Any, pads: Any) -> Any:
    p = np.pad(x, [(0, 0), *pads, *[(0, 0)] * (x.ndim - 1 - len(block))])
    return np.concatenate([p[(slice(None), *[slice(i, None, k) for i, k in zip(at, block)])] for at in itertools.product(*map(range, block))])


def from_batch(x: Any, block: Any, crops: Any) -> Any:
    m = len(block)
    out = np.empty((x.shape[0] // int(np.prod(block)), *[d * k for d, k in zip(x.shape[1:], block)], *x.shape[m + 1:]), x.dtype)
    parts = np.split(x, int(np.prod(block)))
    for part, at in zip(parts, itertools.product(*map(range, block))):
        out[(slice(None), *[slice(i, None, k) for i, k in zip(at, block)])] = part
    return out[(slice(None), *[slice(a, d - b) for d, (a, b) in zip(out.shape[1:], crops)])]


row("space_to_batch_nd", lambda x: fs.space_to_batch_nd(x, [2, 3], [[1, 1], [0, 1]]), lambda x: to_batch(x, [2, 3], [(1, 1), (0, 1)]), In((2, 2, 5, 2)), dtypes=(*F, "int32"))
row("space_to_batch", lambda x: fs.space_to_batch(x, [[0, 0], [2, 0]], 2), lambda x: to_batch(x, [2, 2], [(0, 0), (2, 0)]), In((1, 4, 4, 1)))
row("space_to_batch_fed", fs.space_to_batch_nd, lambda x, b, p: to_batch(x, [2], [(1, 1)]), In((1, 6)), vec(2), In(value=[[1, 1]], dtype="int32"), dynamic=True)
row("batch_to_space_nd", lambda x: fs.batch_to_space_nd(x, [2, 3], [[1, 0], [0, 2]]), lambda x: from_batch(x, [2, 3], [(1, 0), (0, 2)]), In((6, 2, 2, 2)), dtypes=(*F, "int32"))
row("batch_to_space", lambda x: fs.batch_to_space(x, [[0, 0], [0, 1]], 2), lambda x: from_batch(x, [2, 2], [(0, 0), (0, 1)]), In((4, 1, 2, 1)))
row("required_paddings", lambda x: [x[0, 0], *fs.required_space_to_batch_paddings([3, 4], [2, 3], [[1, 0], [0, 1]])],
    lambda x: [x[0, 0], np.array([[1, 0], [0, 2]], "i4"), np.array([[0, 0], [0, 1]], "i4")], In(), order=1)
row("required_paddings_fed", lambda n: fs.required_space_to_batch_paddings(n, [2, 3]),
    lambda n: [np.array([[0, 1], [0, 2]], "i4")] * 2, vec(3, 4), order=0)
row("meshgrid", lambda x, y: fs.meshgrid(x, y), lambda x, y: np.meshgrid(x, y), In((3,)), In((2,)), dtypes=(*F, "int32"))
row("meshgrid_ij", lambda x, y, z: fs.meshgrid(x, y, z, indexing="ij"), lambda x, y, z: np.meshgrid(x, y, z, indexing="ij"), In((3,)), In((2,)), In((1,)))
row("meshgrid_one", lambda x: fs.meshgrid(x), lambda x: [x], In((3,)))

# -- patches --------------------------------------------------------------------------------------


def patches(x: Any, k: Any, s: Any, r: Any, same: bool) -> Any:
    m = len(k)
    reach = [(a - 1) * b + 1 for a, b in zip(k, r)]
    n = [-(-d // b) if same else (d - e) // b + 1 for d, b, e in zip(x.shape[1:], s, reach)]
    pad = [max(0, (a - 1) * b + e - d) if same else 0 for a, b, e, d in zip(n, s, reach, x.shape[1:])]
    p = np.pad(x, [(0, 0), *[(a // 2, a - a // 2) for a in pad], (0, 0)])
    out = np.empty((x.shape[0], *n, int(np.prod(k)) * x.shape[-1]), x.dtype)
    for at in itertools.product(*map(range, n)):
        window = p[(slice(None), *[slice(i * b, i * b + e, c) for i, b, e, c in zip(at, s, reach, r)])]
        out[(slice(None), *at)] = window.reshape(x.shape[0], -1)
    assert m == len(at)
    return out


for _i, (_k, _s, _r, _p) in enumerate((((2, 2), (2, 2), (1, 1), "VALID"), ((3, 2), (1, 2), (1, 2), "SAME"), ((2, 3), (3, 1), (2, 1), "VALID"), ((2, 2), (1, 1), (2, 2), "SAME"))):
    row(f"extract_image_patches_{_i}", lambda x, k=_k, s=_s, r=_r, p=_p: fs.extract_image_patches(x, [1, *k, 1], [1, *s, 1], [1, *r, 1], p),
        lambda x, k=_k, s=_s, r=_r, p=_p: patches(x, k, s, r, p == "SAME"), In((2, 4, 5, 2)), dtypes=(*F, "int32"))
row("extract_volume_patches", lambda x: fs.extract_volume_patches(x, [1, 2, 1, 2, 1], [1, 1, 1, 2, 1], "SAME"),
    lambda x: patches(x, (2, 1, 2), (1, 1, 2), (1, 1, 1), True), In((1, 3, 2, 3, 2)))
