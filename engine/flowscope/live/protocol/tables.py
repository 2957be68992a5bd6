"""Tables of numbers as they travel: see `schema.Table`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from flowscope.live.protocol.schema import Table

_TYPES = {"int32": "<i4", "float64": "<f8"}


class Numbers(Table):
    """A table that has its numbers with it, until it is sent.

    Args:
        columns: The numbers by the names of the columns; integers travel in 32 bits.
    """

    data: bytes

    def __init__(self, columns: Mapping[str, Any]) -> None:
        arrays = {name: np.asarray(column) for name, column in columns.items()}
        kinds = {n: "int32" if a.dtype.kind in "iu" else "float64" for n, a in arrays.items()}
        rows = len(next(iter(arrays.values()))) if arrays else 0
        parts = [_padded(a.astype(_TYPES[kinds[n]])) for n, a in arrays.items()]
        super().__init__(rows, 0, tuple(kinds.items()))  # type: ignore[arg-type]
        object.__setattr__(self, "data", b"".join(parts))


def _padded(array: Any) -> bytes:
    data: bytes = array.tobytes()
    return data + bytes(-len(data) % 8)


def columns_of(table: Table, buffer: bytes) -> dict[str, Any]:
    """Returns the columns of a table by their names, as the front end reads them."""
    found, at = {}, 0
    for name, kind in table.columns:
        size = 4 if kind == "int32" else 8
        found[name] = np.frombuffer(buffer, _TYPES[kind], table.rows, at)
        at += -(-size * table.rows // 8) * 8
    return found


__all__ = ["Numbers", "columns_of"]
