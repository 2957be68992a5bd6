"""Checks that many shape rules make: of a dtype, a rank, a shape; one line where it is made.

check_kind(indices.dtype, "iu", "integer indices")
check_rank(logits, 2, "logits of rank 2")
"""

from __future__ import annotations

from typing import Any

from flowscope.graph.op import Spec
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, compatible

_KINDS = {
    "f": "floating-point",
    "i": "integer",
    "c": "complex",
    "b": "bool",
    "s": "string",
}


def check_kind(dtype: DType, kinds: str, what: str | None = None) -> None:
    """Raises DTypeError unless the dtype's kind is among `kinds` (letters of `DType.kind`).

    `what` says what is expected, where that is more than a dtype of these kinds.
    """
    if dtype.kind not in kinds:
        wanted = [word for letter, word in _KINDS.items() if letter in kinds]
        raise expected_dtype(what or f"a dtype that is {' or '.join(wanted)}", dtype)


def check_index_dtype(x: Any, what: str) -> None:
    """Raises DTypeError unless a Spec or tensor is int32 or int64; `what` is e.g. "lengths"."""
    if x.dtype.name not in ("int32", "int64"):
        raise expected_dtype(f"{what} of dtype int32 or int64", x.dtype)


def check_integers(x: Spec, what: str, *ranks: int) -> None:
    """Raises unless these are int32 or int64, and of one of the ranks; `what` is e.g. "lengths"."""
    check_index_dtype(x, what)
    if x.rank is not None and x.rank not in ranks:
        raise expected(f"{what} of rank {ranks[-1]}", x.shape)


def check_same(a: Spec, b: Spec) -> None:
    """Raises DTypeError unless both have one dtype."""
    if a.dtype is not b.dtype:
        raise expected_dtype("both of one dtype", a.dtype, f"{b.dtype}: use fs.cast")


def check_one_dtype(first: Spec, other: Spec) -> None:
    """Raises DTypeError unless another of several tensors has the first one's dtype."""
    if other.dtype is not first.dtype:
        raise expected_dtype("all of one dtype", first.dtype, other.dtype)


def check_rank(x: Spec, rank: int, what: str) -> None:
    """Raises InvalidArgumentError if the rank is known and another one."""
    if x.rank is not None and x.rank != rank:
        raise expected(what, x.shape)


def check_shape(x: Spec, dims: Dims, what: str) -> None:
    """Raises InvalidArgumentError if the shape cannot be `dims`."""
    if not compatible(x.shape, dims):
        raise expected(what, x.shape)
