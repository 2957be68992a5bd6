"""Sums of gradients, dense ones and sparse ones, in a stated order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class GradientRows(NamedTuple):
    """A sparse gradient: its rows in ascending order, each once.

    Attributes:
        indices: Their numbers, int64 [n].
        values: The rows, [n, ...].
        counts: Of how many gradients each is the sum, int64 [n].
    """

    indices: Any
    values: Any
    counts: Any

    @property
    def nbytes(self) -> int:
        """Bytes of all of it."""
        return int(self.indices.nbytes + self.values.nbytes + self.counts.nbytes)


def as_rows(indices: Any, values: Any) -> GradientRows:
    """Returns a sparse gradient in order; rows that come twice are added up.

    Args:
        indices: Numbers of the rows, int64 [n].
        values: The rows, [n, ...].
    """
    numbers, inverse = np.unique(indices, return_inverse=True)
    if len(numbers) == len(indices):
        rows = values[np.argsort(indices, kind="stable")]
    else:
        rows = np.zeros((len(numbers), *values.shape[1:]), values.dtype)
        np.add.at(rows, inverse.reshape(-1), values)
    return GradientRows(numbers, rows, np.ones(len(numbers), np.int64))


def summed(values: Sequence[Any]) -> Any:
    """The sum of one or more gradients, from left to right: a new array, or new rows."""
    first, *others = values
    total = (
        GradientRows(*[part.copy() for part in first])
        if isinstance(first, GradientRows)
        else first.copy()
    )
    for value in others:
        if isinstance(value, GradientRows):
            total = _with_rows(total, value)
        elif isinstance(total, np.ndarray):
            total += value
        else:
            total = total + value  # a scalar
    return total


def _with_rows(a: GradientRows, b: GradientRows) -> GradientRows:
    indices = np.union1d(a.indices, b.indices)
    shape = (len(indices), *a.values.shape[1:])
    values = np.empty(shape, a.values.dtype)
    counts = np.zeros(len(indices), np.int64)
    at_a, at_b = np.searchsorted(indices, a.indices), np.searchsorted(indices, b.indices)
    values[at_a], counts[at_a] = a.values, a.counts
    has = counts[at_b] > 0
    values[at_b[has]] += b.values[has]
    values[at_b[~has]] = b.values[~has]
    counts[at_b] += b.counts
    return GradientRows(indices, values, counts)


__all__ = ["GradientRows", "as_rows", "summed"]
