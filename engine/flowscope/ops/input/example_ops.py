"""Examples as tensors: the ops, which take a batch of serialized examples to values at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowscope.graph.op import Array, ArrayModule, Spec, frozen
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, string as STRING
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import compatible, text
from flowscope.graph.values.string_values import boxed, zeros
from flowscope.ops.input.example_scan import FEATURE_LISTS, Batch, Values
from flowscope.ops.strings.string_op import StringOp, check_string

__all__ = ["ParseExample", "ParseFeatureLists"]

Dims = tuple[int, ...]


@frozen
class ParseExample(StringOp, out=STRING):
    """The features of serialized examples.

    Attributes: whether there `is_single` example, a scalar, in place of a vector; the names and
        dtypes of `sparse` features and of `dense` ones; of the latter the shapes, whether the
        number of such shapes is `variable`, and whether an example is `required` to have it.

    Shapes: serialized [n], names [n] or [0], a default per dense feature -> per sparse feature
        indices [k, 2], then of each the values [k], then of each the shape [2]; per dense feature
        [n] + shape, or [n, longest] + shape if it is variable; all without n for a single example
    Raises: InvalidArgumentError if bytes are no example, a feature is missing that is required, or
        it has another dtype or number of values.
    """

    is_single: bool
    sparse: tuple[str, ...]
    sparse_types: tuple[DType, ...]
    dense: tuple[str, ...]
    dense_types: tuple[DType, ...]
    dense_shapes: tuple[tuple[int, ...], ...]
    variable: tuple[bool, ...]
    required: tuple[bool, ...]

    def infer(self, serialized: Spec, names: Spec, *defaults: Spec) -> Any:
        lead = _lead(self.is_single, serialized, names)
        out = _sparse_specs(self.sparse_types, len(lead) + 1)
        for dtype, dims, grows in zip(self.dense_types, self.dense_shapes, self.variable):
            out.append(Spec(dtype, (*lead, *([None] if grows else []), *dims)))
        return tuple(out) if len(out) > 1 else out[0]

    def kernel(self, xp: ArrayModule, serialized: Array, names: Array, *defaults: Array) -> Any:
        batch = _batch(serialized, names)
        where = batch.find([*self.sparse, *self.dense])
        sparse, dense = [], []
        for i, (key, dtype) in enumerate(zip(self.sparse, self.sparse_types)):
            got = batch.values(where, i, key, dtype)
            sparse.append(_sparse([np.maximum(got.lengths, 0)], got.flat, self.is_single))
        for i, key in enumerate(self.dense):
            got = batch.values(where, len(self.sparse) + i, key, self.dense_types[i])
            if self.required[i] and (got.lengths < 0).any():
                who = batch.label(int(np.argmax(got.lengths < 0)))
                raise expected(f"feature {key!r}, which has no default, in {who}", "none")
            make = _variable if self.variable[i] else _fixed
            made = make(batch, key, got, self.dense_shapes[i], defaults[i])
            dense.append(made[0] if self.is_single else made)
        return _flat(sparse, dense)


@frozen
class ParseFeatureLists(StringOp, out=STRING):
    """The lists of features of serialized sequence examples.

    Attributes: as those of `ParseExample`; a `required` list is not missing.

    Shapes: serialized [n], names [n] or [0] -> per sparse list indices [k, 3], then of each the
        values [k], then of each the shape [3]; per dense one [n, longest] + shape, padded with
        zeros or empty strings; then of each the numbers of steps, int64 [n]; all without n for a
        single example
    Raises: InvalidArgumentError as for `ParseExample`; a dense list may have no step without it.
    """

    is_single: bool
    sparse: tuple[str, ...]
    sparse_types: tuple[DType, ...]
    dense: tuple[str, ...]
    dense_types: tuple[DType, ...]
    dense_shapes: tuple[tuple[int, ...], ...]
    required: tuple[bool, ...]

    def infer(self, serialized: Spec, names: Spec) -> Any:
        lead = _lead(self.is_single, serialized, names)
        out = _sparse_specs(self.sparse_types, len(lead) + 2)
        for dtype, dims in zip(self.dense_types, self.dense_shapes):
            out.append(Spec(dtype, (*lead, None, *dims)))
        out += [Spec(dtypes.int64, lead) for _ in self.dense]
        return tuple(out)

    def kernel(self, xp: ArrayModule, serialized: Array, names: Array) -> Any:
        batch = _batch(serialized, names)
        where = batch.find([*self.sparse, *self.dense], FEATURE_LISTS)
        sparse, dense, lengths = [], [], []
        for i, (key, dtype) in enumerate(zip(self.sparse, self.sparse_types)):
            steps, inner = batch.steps(where, i)
            got = batch.values(inner, 0, key, dtype)
            counts = [np.maximum(steps, 0), np.maximum(got.lengths, 0)]
            sparse.append(_sparse(counts, got.flat, self.is_single))
        for i, key in enumerate(self.dense):
            steps, made = self._dense(batch, where, i, key)
            dense.append(made[0] if self.is_single else made)
            lengths.append(steps[0] if self.is_single else steps)
        return _flat(sparse, [*dense, *lengths])

    def _dense(self, batch: Batch, where: Any, i: int, key: str) -> tuple[Any, Any]:
        steps, inner = batch.steps(where, len(self.sparse) + i)
        if self.required[i] and (steps < 0).any():
            who = batch.label(int(np.argmax(steps < 0)))
            raise expected(f"a list {key!r}, which may not be missing, in {who}", "none")
        steps = np.maximum(steps, 0)
        got = batch.values(inner, 0, key, self.dense_types[i])
        dims = self.dense_shapes[i]
        size = _size(dims)
        wrong = got.lengths != size
        if wrong.any():
            index = int(np.argmax(wrong))
            who, count = batch.label(int(inner.owners[index])), max(int(got.lengths[index]), 0)
            raise expected(f"{size} values in each step of {key!r} of {who}", count)
        rows = got.flat.reshape(int(steps.sum()), *dims)
        return steps, _padded(rows, steps, zeros(np, (), got.flat.dtype))


def _lead(is_single: bool, serialized: Spec, names: Spec) -> tuple[int | None, ...]:
    """The axis of examples."""
    check_string(serialized)
    check_string(names)
    rank, what = (0, "a scalar") if is_single else (1, "a vector")
    if not compatible((None,) * rank, serialized.shape):
        raise expected(f"serialized examples as {what}", f"shape {text(serialized.shape)}")
    return () if is_single else serialized.shape or (None,)


def _sparse_specs(types: tuple[DType, ...], rank: int) -> list[Spec]:
    """Indices, values and shapes of sparse tensors."""
    return [
        *[Spec(dtypes.int64, (None, rank)) for _ in types],
        *[Spec(t, (None,)) for t in types],
        *[Spec(dtypes.int64, (rank,)) for _ in types],
    ]


def _batch(serialized: Array, names: Array) -> Batch:
    values, labels = boxed(serialized).reshape(-1).tolist(), boxed(names).reshape(-1).tolist()
    if labels and len(labels) != len(values):
        raise expected(f"{len(values)} names of examples", len(labels))
    return Batch(values, labels)


def _flat(sparse: list[tuple[Any, Any, Any]], dense: list[Any]) -> Any:
    out = [*[s[0] for s in sparse], *[s[1] for s in sparse], *[s[2] for s in sparse], *dense]
    return tuple(out) if len(out) > 1 else out[0]


def _sparse(counts: list[Any], flat: Any, is_single: bool) -> tuple[Any, Any, Any]:
    """Indices, values and shape of rows, or of rows of rows.

    Args:
        counts: How many rows each example has, then how many values each row has.
        flat: The values.
        is_single: Whether the first axis, of one example, is left out.
    """
    columns: list[Any] = [np.arange(len(counts[0]))]
    for lengths in counts:
        begins = np.repeat(np.cumsum(lengths) - lengths, lengths)
        columns = [np.repeat(c, lengths) for c in columns]
        columns.append(np.arange(len(begins)) - begins)
    shape = [len(counts[0]), *[int(c.max(initial=0)) for c in counts]]
    first = 1 if is_single else 0
    indices = np.stack(columns[first:], 1).astype(np.int64)
    return indices, flat, np.array(shape[first:], np.int64)


def _size(dims: Dims) -> int:
    return math.prod(dims)


def _fixed(batch: Batch, key: str, got: Values, dims: Dims, default: Array) -> Array:
    """The values of features that all have one shape, which the default has too."""
    size, lengths = _size(dims), got.lengths
    if (lengths == size).all():  # as mostly
        return got.flat.reshape(len(batch), *dims)
    is_missing = lengths < 0
    wrong = ~is_missing & (lengths != size)
    if wrong.any():
        index = int(np.argmax(wrong))
        who = batch.label(index)
        raise expected(f"{size} values in feature {key!r} of {who}", int(got.lengths[index]))
    out = got.flat
    if is_missing.any():
        out = np.empty((len(batch), size), got.flat.dtype)
        out[~is_missing] = got.flat.reshape(int((~is_missing).sum()), size)
        out[is_missing] = boxed(default).reshape(-1)
    return out.reshape(len(batch), *dims)


def _variable(batch: Batch, key: str, got: Values, dims: Dims, default: Array) -> Array:
    """The values of features that have any number of rows of one shape, padded at their ends."""
    size, lengths = _size(dims), np.maximum(got.lengths, 0)
    wrong = lengths % max(size, 1) != 0
    if wrong.any():
        index = int(np.argmax(wrong))
        what = f"a multiple of {size} values in feature {key!r} of {batch.label(index)}"
        raise expected(what, int(lengths[index]))
    rows = got.flat.reshape(len(got.flat) // max(size, 1), *dims)
    return _padded(rows, lengths // max(size, 1), boxed(default).reshape(-1)[0])


def _padded(rows: Array, counts: Any, filler: Any) -> Array:
    """Rows by example, at the ends filled up to the most that one has."""
    widest = int(counts.max(initial=0))
    if (counts == widest).all():
        return rows.reshape(len(counts), widest, *rows.shape[1:])
    out = np.empty((len(counts), widest, *rows.shape[1:]), rows.dtype)
    out[...] = boxed(filler)
    out[np.arange(widest) < counts[:, None]] = rows
    return out
