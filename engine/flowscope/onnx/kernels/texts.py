"""Operators on strings, and casts of them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from flowscope.graph.values.dtypes import as_dtype
from flowscope.onnx.kernels.operator import computes

_Array = Any


def _mapped(x: _Array, function: Any) -> _Array:
    out = np.empty(x.size, object)
    out[:] = [function(v) for v in x.reshape(-1).tolist()]
    return out.reshape(x.shape)


@computes("CastString")
def _cast_string(x: _Array, *, dtype: str) -> _Array:
    wanted = as_dtype(dtype)
    if dtype == "string":
        return _mapped(x, lambda v: _written(v, x.dtype).encode())
    numbers = [float(v) if wanted.is_floating else int(float(v)) for v in x.reshape(-1).tolist()]
    return np.array(numbers).astype(wanted.np_dtype).reshape(x.shape)


def _written(value: Any, dtype: Any) -> str:
    if isinstance(value, float) and dtype != np.float64:
        return str(dtype.type(value)) if dtype == np.float16 else str(np.float32(value))
    return str(value)


@computes("CastFloat8")
def _cast_float8(x: _Array, *, dtype: str, saturate: bool) -> _Array:
    wanted = as_dtype(dtype).np_dtype
    import ml_dtypes

    with np.errstate(all="ignore"):
        wide = x.astype(np.float32)
        if saturate:
            info: Any = ml_dtypes.finfo
            most = np.float32(info(wanted).max)
            wide = np.where(np.isnan(wide), wide, np.clip(wide, -most, most))
        elif "fnuz" in dtype or "e4m3" in dtype:
            wide = np.where(np.isinf(wide), np.float32(np.nan), wide)
        return wide.astype(wanted)


@computes("StringNormalizer")
def _normalize(x: _Array, *, case: str, is_case_sensitive: bool, stopwords: list[str]) -> _Array:
    words = [v.decode() for v in x.reshape(-1).tolist()]
    left_out = set(stopwords) if is_case_sensitive else {s.lower() for s in stopwords}
    kept = [w for w in words if (w if is_case_sensitive else w.lower()) not in left_out]
    if case == "LOWER":
        kept = [w.lower() for w in kept]
    elif case == "UPPER":
        kept = [w.upper() for w in kept]
    out = np.empty(max(len(kept), 1), object)
    out[:] = [w.encode() for w in kept] or [b""]
    return out.reshape((1, -1) if x.ndim == 2 else (-1,))


@computes("StringSplit")
def _split(x: _Array, *, delimiter: str, most: int) -> tuple[_Array, _Array]:
    rows = []
    for v in x.reshape(-1).tolist():
        text = v.decode()
        rows.append(text.split(delimiter or None, most) if text else [])
    width = max([len(r) for r in rows], default=0)
    out = np.empty((len(rows), width), object)
    for i, row in enumerate(rows):
        out[i] = [w.encode() for w in row] + [b""] * (width - len(row))
    counts = np.array([len(r) for r in rows], np.int64).reshape(x.shape)
    return out.reshape((*x.shape, width)), counts


@computes("RegexFullMatch")
def _matches(x: _Array, *, pattern: str) -> _Array:
    found = re.compile(pattern)
    flat = [found.fullmatch(v.decode()) is not None for v in x.reshape(-1).tolist()]
    return np.array(flat, bool).reshape(x.shape)


@computes("TfIdfVectorizer")
def _tf_idf(
    x: _Array,
    *,
    mode: str,
    lengths: tuple[int, int],
    skips: int,
    counts: list[int],
    indexes: list[int],
    pool: list[Any],
    weights: list[float],
) -> _Array:
    ngrams: dict[tuple[Any, ...], int] = {}
    for i, start in enumerate(counts):
        end = counts[i + 1] if i + 1 < len(counts) else len(pool)
        n = i + 1
        for j in range(start, end - n + 1, n):
            ngrams[tuple(pool[j : j + n])] = len(ngrams)
    width = max(indexes) + 1
    rows = np.atleast_2d(x)
    out = np.zeros((len(rows), width), np.float32)
    for row, sums in zip(rows, out):
        values = [v.decode() if isinstance(v, bytes) else v for v in row.tolist()]
        for n in range(lengths[0], lengths[1] + 1):
            for skip in range(1, (skips if n > 1 else 0) + 2):
                for start in range(len(values) - (n - 1) * skip):
                    at = ngrams.get(tuple(values[start : start + (n - 1) * skip + 1 : skip]))
                    if at is not None:
                        sums[indexes[at]] += 1
    scale = np.ones(width, np.float32)
    if weights:
        for at, weight in enumerate(weights):
            scale[indexes[at]] = weight
    if mode == "IDF":
        out = (out > 0) * scale
    elif mode == "TFIDF":
        out = out * scale
    return out[0] if x.ndim == 1 else out
