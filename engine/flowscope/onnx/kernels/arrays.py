"""Operators on arrays of any rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.onnx.kernels.operator import computes

_Array = Any


@computes("ScatterMul")
def _scatter_mul(x: _Array, index: _Array, updates: _Array) -> _Array:
    found = x.copy()
    places = tuple(np.moveaxis(index, -1, 0))
    for place, value in zip(
        np.stack([p.reshape(-1) for p in places], 1).tolist(),
        updates.reshape(-1, *updates.shape[index.ndim - 1 :]),
    ):
        found[tuple(place)] *= value
    return found


@computes("TopK")
def _top_k(x: _Array, k: _Array, *, axis: int, largest: bool) -> tuple[_Array, _Array]:
    count = int(k.reshape(-1)[0])
    if not 0 <= count <= x.shape[axis]:
        raise ValueError(f"expected k in [0, {x.shape[axis]}], got {count}")
    if largest:
        turned = np.flip(x, axis)
        order = np.flip(np.argsort(turned, axis, kind="stable"), axis)
        index = x.shape[axis] - 1 - order
    else:
        index = np.argsort(x, axis, kind="stable")
    index = np.take(index, np.arange(count), axis)
    return np.take_along_axis(x, index, axis), index.astype(np.int64)


@computes("Unique")
def _unique(
    x: _Array, *, axis: int | None, is_sorted: bool
) -> tuple[_Array, _Array, _Array, _Array]:
    values, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not is_sorted:
        order = np.argsort(first)
        rank = np.argsort(order)
        values = np.take(values, order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    return values, first, inverse, counts


@computes("MaxUnpool")
def _max_unpool(x: _Array, index: _Array, *shape: _Array, small: list[int]) -> _Array:
    out = np.zeros(int(np.prod(small)), x.dtype)
    out[index.reshape(-1)] = x.reshape(-1)
    out = out.reshape(small)
    if shape:
        full = np.zeros(shape[0].tolist(), x.dtype)
        full[tuple(slice(0, s) for s in small)] = out
        return full
    return out


@computes("MelWeights")
def _mel_weights(bins: _Array, dft: _Array, rate: _Array, low: _Array, high: _Array) -> _Array:
    count, length = int(bins), int(dft)
    ends = [2595 * np.log10(1 + float(f) / 700) for f in (low, high)]
    step = (ends[1] - ends[0]) / (count + 2)
    mel = np.arange(count + 2) * step + ends[0]
    points = 700 * (np.power(10, mel / 2595) - 1)
    points = ((length + 1) * points // int(rate)).astype(int)
    out = np.zeros((length // 2 + 1, count))
    for i in range(count):
        left, middle, right = points[i], points[i + 1], points[i + 2]
        if middle == left:
            out[middle, i] = 1
        else:
            for j in range(left, middle + 1):
                out[j, i] = (j - left) / (middle - left)
        if right > middle:
            for j in range(middle, right):
                out[j, i] = (right - j) / (right - middle)
    return out
