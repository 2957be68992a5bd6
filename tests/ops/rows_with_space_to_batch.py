# ruff: noqa: E501
# fmt: off
"""Operations on windows that skip elements."""

from __future__ import annotations

import numpy as np
from row_tools import In, Table
from rows_pooling import mean, top

import flowscope as fs

ROWS = Table()
row = ROWS.row

for _padding in ("SAME", "VALID"):
    row(f"with_space_to_batch_{_padding}", lambda x, w, p=_padding: fs.nn.with_space_to_batch(x, [2, 1], p, lambda y, n, q: fs.nn.conv2d(y, w, 1, q), w.shape[:2]),
        lambda x, w, p=_padding: _convolved(x, w, p), In((2, 6, 5, 2)), In((3, 2, 2, 2)), static=True)
row("with_space_to_batch_axes", lambda x: fs.nn.with_space_to_batch(x, [2], "VALID", lambda y, n, q: fs.nn.max_pool(y, [1, 1, 2, 1], 1, q), spatial_dims=[2]),
    lambda x: top(x, [1, 2], [1, 1], "VALID", [1, 2]), In((2, 3, 6, 2)), rank=True)
row("with_space_to_batch_same", lambda x: fs.nn.with_space_to_batch(x, [1, 1], "SAME", lambda y, n, q: fs.nn.avg_pool(y, n, 1, q)),
    lambda x: mean(x, 2, 1, "SAME"), In((2, 3, 4, 2)), rank=True)


def _convolved(x, w, padding):  # type: ignore[no-untyped-def]
    if padding == "SAME":
        x = np.pad(x, [(0, 0), (2, 2), (0, 1), (0, 0)])
    parts = np.lib.stride_tricks.sliding_window_view(x.astype("f8"), (5, 2), (1, 2))[..., ::2, :]
    return np.einsum("nijchw,hwck->nijk", parts, w).astype(x.dtype)
