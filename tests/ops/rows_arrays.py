# ruff: noqa: E501
# fmt: off
"""Rows of arrays made, padded, repeated, chosen from, and transformed."""

from __future__ import annotations

from typing import Any

import numpy as np
from row_tools import C, F, In, Table, vec

import flowscope as fs

ROWS = Table()
row, unary = ROWS.row, ROWS.unary

row("linspace_both", lambda a, b: fs.linspace(a, b, 4), lambda a, b: np.linspace(a, b, 4, dtype=a.dtype), In(()), In(()))
row("linspace_one", lambda a, b: fs.lin_space(a, b, 1), lambda a, b: np.array([a]), In(()), In(()))
row("linspace_fed", fs.linspace, lambda a, b, n: np.linspace(a, b, 3, dtype=a.dtype), In(()), In(()), In(value=3, dtype="int32"), dynamic=True)
row("linspace_rows", lambda a, b: fs.linspace(a, b, 3), lambda a, b: np.linspace(a, b, 3, dtype=a.dtype), In(), In())
row("linspace_axis", lambda a, b: fs.linspace(a, b, 3, axis=-1), lambda a, b: np.linspace(a, b, 3, dtype=a.dtype, axis=-1), In(), In())
row("eye_batch", lambda x: x + fs.eye(2, 3, [2], x.dtype), lambda x: x + np.eye(2, 3, dtype=x.dtype), In((2, 2, 3)))
row("eye_batch_fed", lambda b: fs.eye(2, batch_shape=b), lambda b: np.broadcast_to(np.eye(2, dtype="f4"), (2, 1, 2, 2)), vec(2, 1), order=0, dynamic=True)
row("eye_all_fed", lambda n, b: fs.eye(n, n + 1, b), lambda n, b: np.broadcast_to(np.eye(2, 3, dtype="f4"), (3, 2, 3)), In(value=2, dtype="int32"), vec(3), order=0, dynamic=True)
row("pad_with", lambda x, v: fs.pad(x, [[1, 0], [2, 1]], constant_values=v), lambda x, v: np.pad(x, [[1, 0], [2, 1]], constant_values=v), In(), In(()), dtypes=(*F, "int32"))
row("pad_with_scalar", lambda x, v: fs.pad(x, fs.zeros([0, 2], "int32"), constant_values=v), lambda x, v: x, In(()), In(()))
row("pad_with_fed", lambda x, p, v: fs.pad(x, p, constant_values=v), lambda x, p, v: np.pad(x, p, constant_values=v), In(), In(value=[[1, 0], [2, 1]], dtype="int64"), In(()), dynamic=True)
row("tile_fed", fs.tile, lambda x, m: np.tile(x, (2, 2)), In(), vec(2, 2), dynamic=True)
row("broadcast_to_ones", lambda x: fs.broadcast_to(x, [2, 1, 3]), lambda x: np.broadcast_to(x, (2, 1, 3)), In((1, 3)))
row("repeat_vector", lambda x: fs.repeat(x, [2, 0, 3], 1), lambda x: x.repeat([2, 0, 3], 1), In(), dtypes=(*F, "int32", "bool"))
row("repeat_flat", lambda x: fs.repeat(x, 2), lambda x: x.repeat(2), In())
row("repeat_rows", lambda x: fs.repeat(x, [3], 0), lambda x: x.repeat(3, 0), In())
row("repeat_fed", lambda x, n: fs.repeat(x, n, -1), lambda x, n: x.repeat(n, -1), In(), vec(1, 2, 0), dynamic=True)
row("repeat_empty", lambda x: fs.repeat(x, 2, 0), lambda x: x, In((0, 2)))
_COND = In(value=[[True], [False]], dtype="bool")
row("where_v2", fs.where_v2, np.where, _COND, In((3,)), In((2, 3)), dtypes=(*F, "int32"))
row("where_v2_numbers", lambda c, x: fs.where_v2(c, x, 5.0), lambda c, x: np.where(c, x, x.dtype.type(5)), _COND, In((3,)))
row("where_v2_large", fs.where_v2, np.where, In((100, 60), dtype="bool"), In((60,)), In((100, 1)), dtypes=(*F, "int32", "float16"), order=0)
row("where_v2_scalars", fs.where_v2, lambda c, x, y: y, In(value=False, dtype="bool"), In(()), In(()))
row("where_v2_positions", fs.where_v2, np.argwhere, _COND, order=0, dynamic=True)
row("saturate_cast_int32", lambda x: fs.saturate_cast(x, "int32"), lambda x: np.array([2147483520, -2**31, 7], "i4"), In(value=[2.0**40, -2.0**40, 7.9]), order=0, dtypes=("float32",))
row("saturate_cast_complex", lambda x: fs.saturate_cast(x, "uint8"), lambda x: np.array([255, 0], "u1"), In(value=[300 + 2j, -1]), order=0, dtypes=C)
row("saturate_cast_half", lambda x: fs.saturate_cast(x, "float16"), lambda x: np.array([65504, -65504, 1], "f2"), In(value=[1e6, -1e6, 1]), order=0)
row("to_complex64", fs.to_complex64, lambda x: x.astype("c8"), In(), order=0)
row("to_complex128", fs.to_complex128, lambda x: x.astype("c16"), In(), order=0)

# -- Fourier transforms ---------------------------------------------------------------------------

for _n, _axes in ((1, (-1,)), (2, (-2, -1)), (3, (-3, -2, -1))):
    _d = "" if _n == 1 else f"{_n}d"
    _a: dict[str, Any] = {"axes": _axes}
    row(f"fft{_d}", getattr(fs, f"fft{_d}"), lambda x, a=_a: np.fft.fftn(x, **a).astype(x.dtype), In((2, 3, 4)), dtypes=C, order=1)
    row(f"ifft{_d}", getattr(fs.signal, f"ifft{_d}"), lambda x, a=_a: np.fft.ifftn(x, **a).astype(x.dtype), In((2, 3, 4)), dtypes=C, order=1)
    row(f"rfft{_d}", getattr(fs.signal, f"rfft{_d}"), lambda x, a=_a: np.fft.rfftn(x, **a).astype("c8" if x.itemsize == 4 else "c16"), In((2, 3, 4)), rtol=1e-5)
    row(f"irfft{_d}", getattr(fs.signal, f"irfft{_d}"), lambda x, a=_a: np.fft.irfftn(x, **a).astype("f4" if x.itemsize == 8 else "f8"), In((2, 3, 4)), dtypes=C, order=0, rtol=1e-5)
for _length in (3, 4, 6):
    row(f"rfft_{_length}", lambda x, n=_length: fs.signal.rfft(x, [n]), lambda x, n=_length: np.fft.rfft(x, n).astype("c8" if x.itemsize == 4 else "c16"), In((2, 4)), rtol=1e-5)
    row(f"irfft_{_length}", lambda x, n=_length: fs.signal.irfft(x, [n]), lambda x, n=_length: np.fft.irfft(x, n).astype("f4" if x.itemsize == 8 else "f8"), In((2, 4)), dtypes=C, order=0, rtol=1e-5)
    row(f"irfft_{_length}_grad", lambda x, n=_length: fs.signal.irfft(fs.complex(x, 2.0 * x), [n]), lambda x, n=_length: np.fft.irfft(x + 2j * x, n), In((2, 4)), dtypes=("float64",))
row("fft_none", fs.fft, lambda x: x, In((2, 0)), dtypes=C, order=0)
