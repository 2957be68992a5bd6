"""Batch normalisation by oneDNN, where that library is installed: see `onednn`.

Large batches of float32 in training go there, channels last. It goes through the images three times
in all, NumPy once per elementary step.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from flowscope.ops.kernels.onednn import (
    DIFF_DST,
    DIFF_SRC,
    DST,
    SCRATCHPAD,
    SCRATCHPAD_MD,
    SRC,
    TRAINING,
    Calls,
    Library,
    RefusedByOneDnn,
    library,
    run,
)

#: Below so many elements the calls cost more than they gain.
WORTH_ELEMENTS = 50_000

_BACKWARD = 128
_WITH_SCALE, _WITH_SHIFT = 2, 4
_MEAN, _VARIANCE, _SCALE, _SHIFT = 49, 50, 51, 52
_DIFF_SCALE, _DIFF_SHIFT = 255, 256


class NormRecipe:
    """What was made for rows of channels: [n, c]."""

    def __init__(self, library: Library, n: int, c: int, epsilon: float) -> None:
        self.library = library
        # One image of n rows: the library's quick code wants channels second and images last.
        self.rows = rows = library.described([1, c, n, 1], [n * c, 1, c, c])
        self.vector = library.described([c], [1])
        last = ctypes.c_float(epsilon), _WITH_SCALE | _WITH_SHIFT
        forward = library.made(
            "batch_normalization_forward_primitive_desc_create", library.engine, TRAINING,
            rows, rows, *last, library.attributes,
        )  # fmt: skip
        backward = library.made(
            "batch_normalization_backward_primitive_desc_create", library.engine, _BACKWARD,
            rows, rows, rows, *last, forward, library.attributes,
        )  # fmt: skip
        self.forward, self.backward = (
            (library.made("primitive_create", made), library.asked(made, SCRATCHPAD_MD))
            for made in (forward, backward)
        )

    def run(self, primitive: tuple[Any, Any], arrays: dict[int, Any]) -> None:
        """Runs a primitive; `arrays` are C-contiguous, by their role."""
        call = Calls(self.library, [])
        memories = {
            role: call.outside(self.rows if a.ndim == 2 else self.vector)
            for role, a in arrays.items()
        }
        memories[SCRATCHPAD] = call.inside(primitive[1])
        call.add(primitive[0], memories)
        run(call.bind(*arrays.values()))


@functools.lru_cache(128)
def _recipe(n: int, c: int, epsilon: float) -> NormRecipe | None:
    loaded = library()
    if loaded is None:
        return None
    try:
        with loaded.one_thread():
            return NormRecipe(loaded, n, c, epsilon)
    except RefusedByOneDnn:
        return None


def _suited(rows: Any, epsilon: float) -> NormRecipe | None:
    if type(rows) is not np.ndarray or rows.dtype != np.float32 or rows.size < WORTH_ELEMENTS:
        return None
    return _recipe(*rows.shape, epsilon)


def normalized(rows: Any, scale: Any, offset: Any, epsilon: float) -> tuple[Any, Any, Any] | None:
    """Returns (y [n, c], means [c], variances [c]) of rows [n, c]; None where NumPy should."""
    found = _suited(rows, epsilon)
    if found is None:
        return None
    y = np.empty(rows.shape, np.float32)
    mean, variance = np.empty_like(scale), np.empty_like(scale)
    given = {SRC: rows, _SCALE: scale, _SHIFT: offset}
    arrays = {role: np.ascontiguousarray(a) for role, a in given.items()}
    found.run(found.forward, {**arrays, DST: y, _MEAN: mean, _VARIANCE: variance})
    return y, mean, variance


def normalized_gradient(
    g: Any, rows: Any, scale: Any, mean: Any, variance: Any, epsilon: float
) -> tuple[Any, Any, Any] | None:
    """Returns the gradients for rows, scale and offset; None where NumPy should."""
    found = _suited(rows, epsilon)
    if found is None:
        return None
    out = np.empty(rows.shape, np.float32)
    to_scale, to_offset = np.empty_like(scale), np.empty_like(scale)
    given = {SRC: rows, DIFF_DST: g, _SCALE: scale, _MEAN: mean, _VARIANCE: variance}
    arrays = {role: np.ascontiguousarray(a) for role, a in given.items()}
    made = {DIFF_SRC: out, _DIFF_SCALE: to_scale, _DIFF_SHIFT: to_offset}
    found.run(found.backward, {**arrays, **made})
    return out, to_scale, to_offset


__all__ = ["NormRecipe", "normalized", "normalized_gradient"]
