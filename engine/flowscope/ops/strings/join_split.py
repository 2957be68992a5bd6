"""Strings joined along axes, by segments, and taken apart."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import compatible, text
from flowscope.ops.core.axes import Axes, as_axes, positive_axes, reduced
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.core.shape_rules import check_rank
from flowscope.ops.sparse.sparse_tensor import SparseTensor
from flowscope.ops.strings.string_op import StringOp, as_strings, as_text, check_string

__all__ = ["reduce_join", "string_split"]


@frozen
class ReduceJoin(StringOp):
    """Strings joined along axes, along the first that is named first.

    Attributes: `axis` None stands for all axes, the last one first.
    """

    axis: Axes
    keepdims: bool
    separator: str

    def infer(self, x: Spec) -> Spec:
        check_string(x)
        return Spec(dtypes.string, reduced(x.shape, self.axis, self.keepdims))

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        if isinstance(x, bytes):
            return x
        axes = range(x.ndim)[::-1] if self.axis is None else self.axis
        places = positive_axes(axes, x.ndim)
        between = self.separator.encode("latin-1")
        for a in places:
            x = self._joined(xp, x, a, between)
        if not self.keepdims:
            x = x.reshape([d for i, d in enumerate(x.shape) if i not in places])
        return x[()]

    def _joined(self, xp: ArrayModule, x: Array, axis: int, between: bytes) -> Array:
        lines = xp.moveaxis(x, axis, -1)
        out = xp.empty(lines.shape[:-1], object)
        rows = lines.reshape(out.size, lines.shape[-1]).tolist()
        out.reshape(-1)[:] = [between.join(row) for row in rows]
        return xp.expand_dims(out, axis)


@frozen
class UnsortedSegmentJoin(StringOp):
    """Strings that share an id, joined; an empty string for an empty segment.

    Shapes: x i + s, ids i, num_segments [] -> [num_segments] + s
    """

    separator: str

    def infer(self, x: Spec, ids: Spec, num: Spec) -> Spec:
        check_string(x)
        for s in (ids, num):
            if s.dtype.name not in ("int32", "int64"):
                raise expected_dtype("segment ids of int32 or int64", s.dtype)
        if x.shape is None or ids.shape is None:
            return Spec(dtypes.string, None)
        if not compatible(x.shape[: len(ids.shape)], ids.shape):
            raise expected(f"an id per row of {text(x.shape)}", ids.shape)
        n = None if num.constant is None else int(num.constant)
        return Spec(dtypes.string, (n, *x.shape[len(ids.shape) :]))

    def kernel(self, xp: ArrayModule, x: Array, ids: Array, num: Array) -> Array:
        n, places = int(num), ids.reshape(-1).tolist()
        rows = x.reshape(len(places), -1) if places else x.reshape(0, 1)
        if any(p >= n for p in places):
            raise expected(f"segment ids below {n}", max(places))
        parts: list[list[list[bytes]]] = [[[] for _ in range(rows.shape[1])] for _ in range(n)]
        for row, place in zip(rows.tolist(), places):
            for cell, value in zip(parts[place] if place >= 0 else (), row):
                cell.append(value)
        out = xp.empty(n * rows.shape[1], object)
        between = self.separator.encode("latin-1")
        out[:] = [between.join(cell) for row in parts for cell in row]
        return out.reshape(n, *x.shape[ids.ndim :])


@frozen
class StringSplit(StringOp, out=dtypes.string):
    """The parts of strings between delimiters, as indices, values and shape of a sparse tensor.

    Attributes: `separator`, "" for white space (or, with `letters`, for the places between bytes);
        `any_of` whether each of its bytes is a delimiter; `skip_empty` whether empty parts are left
        out; `limit` of splits, -1 for none.

    Shapes: [n] -> [number of parts, 2], [number of parts], [2]
    """

    separator: str
    any_of: bool = False
    skip_empty: bool = False
    letters: bool = False
    limit: int = -1

    def infer(self, x: Spec) -> Any:
        check_string(x)
        check_rank(x, 1, "a vector of strings")
        int64: DType = dtypes.int64
        return Spec(int64, (None, 2)), Spec(dtypes.string, (None,)), Spec(int64, (2,))

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        rows = [self._parts(s) for s in x.tolist()]
        places = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
        values = xp.empty(len(places), object)
        values[:] = [part for row in rows for part in row]
        widest = max((len(row) for row in rows), default=0)
        indices = xp.array(places, xp.int64).reshape(len(places), 2)
        return indices, values, xp.array([len(rows), widest], xp.int64)

    def _parts(self, s: bytes) -> list[bytes]:
        separator = self.separator.encode("latin-1")
        if self.letters:
            found = [bytes([b]) for b in s]
        elif not separator:
            found = s.split(None, self.limit)
        elif self.any_of:
            found = _split_at_any(s, separator)
        else:
            found = s.split(separator, self.limit)
        return [p for p in found if p] if self.skip_empty else found


def _split_at_any(s: bytes, delimiters: bytes) -> list[bytes]:
    first = delimiters[:1]
    table = bytes([first[0] if b in delimiters else b for b in range(256)])
    out, at = [], 0
    for part in s.translate(table).split(first):
        out.append(s[at : at + len(part)])
        at += len(part) + 1
    return out


def reduce_join(
    inputs: Any,
    axis: Any = None,
    keep_dims: bool | None = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Returns strings joined along axes.

    Args:
        inputs: Strings.
        axis: The axes, in the order in which they are joined; all if None, the last one first.
        keep_dims: Old name of `keepdims`.
        separator: What stands between them.
        name: Name of the operation.
        reduction_indices: Old name of `axis`.
        keepdims: Whether the axes stay, of length 1.
    """
    axes = as_axes(reduction_indices if axis is None else axis)
    op = ReduceJoin(axes, bool(keepdims or keep_dims), as_text(separator, "separator"))
    return apply(op, as_strings(inputs), name=name)


def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: str = "", name: str | None = None
) -> Tensor:
    """Returns the strings of each segment, joined; see `fs.unsorted_segment_sum`."""
    ids, number = [
        convert_to_tensor(v, None, None, dtypes.int32) for v in (segment_ids, num_segments)
    ]
    op = UnsortedSegmentJoin(as_text(separator, "separator"))
    return apply(op, as_strings(inputs), ids, number, name=name)


def _sparse(op: StringSplit, source: Any, name: str) -> Any:
    return SparseTensor(*apply_many(op, as_strings(source), name=name))


def string_split(
    source: Any,
    sep: Any = None,
    skip_empty: bool = True,
    delimiter: Any = None,
    result_type: str = "SparseTensor",
    name: str | None = None,
) -> Any:
    """Returns the parts of strings between delimiters, as a sparse tensor with a row per string.

    Args:
        source: A vector of strings.
        sep: Delimiters: each of its bytes is one, " " by default; "" splits into bytes.
        skip_empty: Whether empty parts are left out.
        delimiter: Old name of `sep`.
        result_type: "SparseTensor".
        name: Name of the operation.

    Example:
        >>> fs.Session().run(fs.string_split(["a b c"]).values)
        array([b'a', b'b', b'c'], dtype=object)
    """
    _check_result(result_type)
    given = delimiter if sep is None else sep
    known = as_text(" " if given is None else given, "sep")
    op = StringSplit(known, any_of=True, skip_empty=bool(skip_empty), letters=not known)
    return _sparse(op, source, name or "StringSplit")


def split(
    input: Any = None,
    sep: Any = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> Any:
    """Returns the parts of strings as Python's `split` gives them, as a sparse tensor.

    Args:
        input: A vector of strings.
        sep: What stands between parts; white space by default.
        maxsplit: How often to split at most, -1 for always.
        result_type: "SparseTensor".
        source: Old name of `input`.
        name: Name of the operation.
    """
    _check_result(result_type)
    op = StringSplit(as_text("" if sep is None else sep, "sep"), limit=maxsplit)
    return _sparse(op, source if input is None else input, name or "StringSplit")


def bytes_split(input: Any, name: str | None = None) -> Any:
    """Returns the bytes of strings as strings, as a sparse tensor with a row per string."""
    return _sparse(StringSplit("", letters=True), input, name or "StringBytesSplit")


def _check_result(result_type: str) -> None:
    if result_type != "SparseTensor":
        raise expected(
            'result_type "SparseTensor", for there are no ragged tensors', repr(result_type)
        )
