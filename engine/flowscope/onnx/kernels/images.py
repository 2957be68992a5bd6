"""Operators on images and boxes, and Fourier transforms."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from flowscope.onnx.kernels.operator import computes

_Array = Any


@computes("MaxPoolWithIndex")
def _max_pool(
    x: _Array,
    *,
    kernel: list[int],
    strides: list[int],
    dilations: list[int],
    pads: list[list[int]],
    is_row_major: bool,
) -> tuple[_Array, _Array]:
    sizes = x.shape[2:]
    order = sizes if is_row_major else sizes[::-1]
    places = np.arange(math.prod(sizes)).reshape(order)
    if not is_row_major:
        places = places.transpose()
    lead = np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * len(sizes))
    index = lead * math.prod(sizes) + places
    around = [(0, 0), (0, 0), *map(tuple, pads)]
    lowest = -np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min
    values = np.pad(x, around, constant_values=lowest)
    index = np.pad(index, around, constant_values=-1)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    outs = [(s - p) // t + 1 for s, p, t in zip(values.shape[2:], spans, strides)]
    best: Any = None
    found: Any = None
    for offsets in itertools.product(*map(range, kernel)):
        cut = (
            slice(None),
            slice(None),
            *[
                slice(o * d, o * d + (n - 1) * t + 1, t)
                for o, d, n, t in zip(offsets, dilations, outs, strides)
            ],
        )
        here, at = values[cut], index[cut]
        if best is None:
            best, found = here.copy(), at.copy()
        else:
            better = (here > best) | (found < 0)
            best, found = np.where(better, here, best), np.where(better, at, found)
    return best, found


def _reflected(at: _Array, low: float, high: float) -> _Array:
    span = high - low
    if span <= 0:
        return np.zeros_like(at)
    turned = np.mod(at - low, 2 * span)
    return low + np.where(turned > span, 2 * span - turned, turned)


@computes("GridSample")
def _grid_sample(x: _Array, grid: _Array, *, mode: str, outside: str, align: bool) -> _Array:
    sizes = x.shape[2:]
    rank = len(sizes)
    points = grid.astype(np.float64)[..., ::-1]
    at = []
    for i, size in enumerate(sizes):
        p = points[..., i]
        p = (p + 1) / 2 * (size - 1) if align else ((p + 1) * size - 1) / 2
        low, high = (0, size - 1) if align else (-0.5, size - 0.5)
        if outside == "border" and mode != "cubic":
            p = np.clip(p, 0, size - 1)
        elif outside == "reflection" and mode != "cubic":
            p = np.clip(_reflected(p, low, high), 0, size - 1)
        at.append(p)

    def sample(places: list[_Array]) -> _Array:
        inside = np.ones(places[0].shape, bool)
        index = []
        for p, size in zip(places, sizes):
            if outside == "reflection":
                low, high = (0, size - 1) if align else (-0.5, size - 0.5)
                p = np.rint(_reflected(p, low, high)).astype(np.int64)
            elif outside == "zeros":
                inside &= (p >= 0) & (p < size)
            index.append(np.clip(p, 0, size - 1).astype(np.int64))
        batch = np.arange(x.shape[0]).reshape(-1, *[1] * rank)
        got = np.moveaxis(x, 1, -1)[(batch, *index)]
        return np.moveaxis(np.where(inside[..., None], got, 0), -1, 1)

    if mode == "nearest":
        return sample([np.rint(p).astype(np.int64) for p in at])
    width = 2 if mode == "linear" else 4
    shift = 0 if mode == "linear" else -1
    first = [np.floor(p).astype(np.int64) for p in at]
    weights = [_weights(p - f, mode) for p, f in zip(at, first)]
    found: Any = 0
    for offsets in itertools.product(range(width), repeat=rank):
        weight: Any = 1
        for w, o in zip(weights, offsets):
            weight = weight * w[o]
        places = [f + o + shift for f, o in zip(first, offsets)]
        found = found + sample(places) * weight[:, None]
    return found


def _weights(t: _Array, mode: str) -> list[_Array]:
    if mode == "linear":
        return [1 - t, t]
    a = -0.75
    near = [(a + 2) * d**3 - (a + 3) * d**2 + 1 for d in (t, 1 - t)]
    far = [a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a for d in (t + 1, 2 - t)]
    return [far[0], *near, far[1]]


@computes("RoiAlign")
def _roi_align(
    x: _Array,
    rois: _Array,
    batch: _Array,
    *,
    mode: str,
    size: tuple[int, int],
    ratio: int,
    scale: float,
    is_half_pixel: bool,
) -> _Array:
    out = np.zeros((len(rois), x.shape[1], *size), x.dtype)
    shift = 0.5 if is_half_pixel else 0.0
    for row, roi, image in zip(out, rois.astype(np.float64), x[batch]):
        left, top, right, bottom = roi * scale - shift
        width, height = right - left, bottom - top
        if not is_half_pixel:
            width, height = max(width, 1.0), max(height, 1.0)
        bins = height / size[0], width / size[1]
        counts = [ratio if ratio > 0 else math.ceil(b) for b in bins]
        if min(counts) < 1:
            continue
        lines = [
            start + (np.arange(n * c).reshape(n, c) + 0.5) * b / c
            for start, n, c, b in zip((top, left), size, counts, bins)
        ]
        samples = _bilinear(image, lines[0].reshape(-1), lines[1].reshape(-1), mode)
        parts = samples.reshape(-1, size[0], counts[0], size[1], counts[1])
        row[:] = parts.mean((2, 4)) if mode == "avg" else parts.max((2, 4))
    return out


def _bilinear(image: _Array, ys: _Array, xs: _Array, mode: str) -> _Array:
    parts = []
    for at, size in zip((ys, xs), image.shape[1:]):
        inside = (at >= -1) & (at <= size)
        at = np.clip(at, 0, size - 1)
        low = np.floor(at).astype(int)
        high = np.minimum(low + 1, size - 1)
        parts.append((low, high, at - low, inside))
    (y0, y1, fy, iy), (x0, x1, fx, ix) = parts
    corners = [
        image[:, a][:, :, b] * wa[:, None] * wb
        for a, wa in ((y0, 1 - fy), (y1, fy))
        for b, wb in ((x0, 1 - fx), (x1, fx))
    ]
    inside = iy[:, None] & ix
    found = np.maximum.reduce(corners) if mode == "max" else sum(corners)
    return np.where(inside, found, 0)


@computes("MaxRoiPool")
def _max_roi_pool(x: _Array, rois: _Array, *, size: list[int], scale: float) -> _Array:
    out = np.zeros((len(rois), x.shape[1], *size), x.dtype)
    for row, roi in zip(out, rois):
        image = x[int(roi[0])]
        left, top, right, bottom = [math.floor(v * scale + 0.5) for v in roi[1:].tolist()]
        extent = max(bottom - top + 1, 1), max(right - left + 1, 1)
        for i, j in itertools.product(range(size[0]), range(size[1])):
            cut = []
            for k, start, n, e, limit in zip((i, j), (top, left), size, extent, image.shape[1:]):
                first = math.floor(k * e / n) + start
                last = math.ceil((k + 1) * e / n) + start
                cut.append(slice(min(max(first, 0), limit), min(max(last, 0), limit)))
            part = image[:, cut[0], cut[1]]
            if part.size:
                row[:, i, j] = part.max((1, 2))
    return out


@computes("NonMaxSuppression")
def _non_max_suppression(
    boxes: _Array,
    scores: _Array,
    most: _Array,
    overlap: _Array,
    threshold: _Array,
    *,
    is_centred: bool,
    has_threshold: bool,
) -> _Array:
    limit, bound = int(np.reshape(most, -1)[0]), float(np.reshape(overlap, -1)[0])
    found = []
    for b, group in enumerate(boxes.astype(np.float32)):
        if is_centred:
            centre, half = group[:, :2], group[:, 2:] / 2
            low, high = centre - half, centre + half
        else:
            low = np.minimum(group[:, :2], group[:, 2:])
            high = np.maximum(group[:, :2], group[:, 2:])
        area = np.prod(high - low, 1)
        for c, row in enumerate(scores[b]):
            kept: list[int] = []
            for i in np.argsort(-row, kind="stable").tolist():
                if len(kept) >= limit:
                    break
                if has_threshold and row[i] <= np.reshape(threshold, -1)[0]:
                    break
                shared = np.minimum(high[kept], high[i]) - np.maximum(low[kept], low[i])
                common = np.prod(np.maximum(shared, 0), 1)
                whole = area[kept] + area[i] - common
                if not np.any(common > bound * whole):
                    kept.append(i)
            found += [(b, c, i) for i in kept]
    return np.array(found, np.int64).reshape(-1, 3)


@computes("Col2Im")
def _col2im(
    x: _Array,
    image: _Array,
    block: _Array,
    *,
    dilations: list[int],
    pads: list[int],
    strides: list[int],
) -> _Array:
    sizes, kernel = image.tolist(), block.tolist()
    rank = len(sizes)
    whole = [s + pads[i] + pads[i + rank] for i, s in enumerate(sizes)]
    counts = [
        (w - d * (k - 1) - 1) // t + 1 for w, d, k, t in zip(whole, dilations, kernel, strides)
    ]
    parts = x.reshape(x.shape[0], -1, *kernel, *counts)
    out = np.zeros((*parts.shape[:2], *whole), x.dtype)
    for offsets in itertools.product(*map(range, kernel)):
        cut = [
            slice(o * d, o * d + (c - 1) * t + 1, t)
            for o, d, c, t in zip(offsets, dilations, counts, strides)
        ]
        out[(slice(None), slice(None), *cut)] += parts[(slice(None), slice(None), *offsets)]
    inner = [slice(pads[i], pads[i] + s) for i, s in enumerate(sizes)]
    return out[(slice(None), slice(None), *inner)]


@computes("DeformConv")
def _deform_conv(
    x: _Array,
    w: _Array,
    offset: _Array,
    bias: _Array,
    mask: _Array,
    *,
    strides: list[int],
    dilations: list[int],
    pads: list[list[int]],
    group: int,
    offset_group: int,
    has_bias: bool,
    has_mask: bool,
) -> _Array:
    n, c = x.shape[:2]
    kernel, outs = w.shape[2:], offset.shape[2:]
    rank, taps = len(kernel), math.prod(kernel)
    moved = offset.reshape(n, offset_group, taps, rank, *outs)
    weight = mask.reshape(n, offset_group, taps, *outs) if has_mask else None
    columns = np.zeros((n, c, taps, *outs))
    per = c // offset_group
    for t, place in enumerate(itertools.product(*map(range, kernel))):
        for g in range(offset_group):
            at = []
            for i in range(rank):
                line = np.arange(outs[i]) * strides[i] - pads[i][0] + place[i] * dilations[i]
                line = line.reshape([-1 if j == i else 1 for j in range(rank)])
                at.append(line + moved[:, g, t, i])
            got = _multilinear(x[:, g * per : (g + 1) * per], at)
            if weight is not None:
                got = got * weight[:, g, t][:, None]
            columns[:, g * per : (g + 1) * per, t] = got
    rows = columns.reshape(n, group, c // group * taps, -1)
    filters = w.reshape(group, w.shape[0] // group, -1)
    found = np.einsum("gmk,ngkp->ngmp", filters, rows).reshape(n, w.shape[0], *outs)
    return found + bias.reshape(-1, *[1] * rank) if has_bias else found


def _multilinear(x: _Array, at: list[_Array]) -> _Array:
    """Samples of x [n, c, ...] at places [n, ...], 0 outside."""
    first = [np.floor(p).astype(np.int64) for p in at]
    batch = np.arange(len(x)).reshape(-1, *[1] * (at[0].ndim - 1))
    last = np.moveaxis(x, 1, -1)
    found: Any = 0
    for offsets in itertools.product((0, 1), repeat=len(at)):
        weight: Any = 1
        inside: Any = True
        index = []
        for p, f, o, size in zip(at, first, offsets, x.shape[2:]):
            place = f + o
            weight = weight * (p - f if o else 1 - (p - f))
            inside = inside & (place >= 0) & (place < size)
            index.append(np.clip(place, 0, size - 1))
        found = found + last[(batch, *index)] * (weight * inside)[..., None]
    return np.moveaxis(found, -1, 1)


def _complex(x: _Array) -> _Array:
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]


def _pairs(x: _Array) -> _Array:
    return np.stack([x.real, x.imag], -1)


@computes("DFT")
def _dft(x: _Array, *rest: _Array, axis: int | None, inverse: bool, one_sided: bool) -> _Array:
    given = list(rest)
    if axis is None:
        axis = int(np.reshape(given.pop(), -1)[0]) % x.ndim
    size = int(np.reshape(given[0], -1)[0]) if given else None
    values = _complex(x)
    if one_sided and inverse:
        return np.fft.irfft(values, size, axis)[..., None]
    if inverse:
        return _pairs(np.fft.ifft(values, size, axis))
    found = np.fft.fft(values, size, axis)
    if one_sided:
        found = np.take(found, np.arange(found.shape[axis] // 2 + 1), axis)
    return _pairs(found)


@computes("STFT")
def _stft(
    x: _Array,
    step: _Array,
    *rest: _Array,
    one_sided: bool,
    has_window: bool,
    has_length: bool,
) -> _Array:
    window = rest[0] if has_window else None
    size = int(np.reshape(rest[-1], -1)[0]) if has_length else len(rest[0])
    hop = int(np.reshape(step, -1)[0])
    values = _complex(x) if x.ndim == 3 else x
    count = (values.shape[1] - size) // hop + 1
    places = np.arange(count)[:, None] * hop + np.arange(size)
    frames = values[:, places]
    if window is not None:
        frames = frames * window
    found = np.fft.fft(frames, axis=-1)
    return _pairs(found[..., : size // 2 + 1] if one_sided else found)
