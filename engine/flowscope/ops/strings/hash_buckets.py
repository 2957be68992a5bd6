"""Buckets of strings: numbers that follow from their hashes. All of it runs on the CPU."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.ops.core.build import apply
from flowscope.ops.strings.hashes import farm, murmur, sip
from flowscope.ops.strings.string_op import StringOp, as_strings, as_text

__all__ = [
    "fingerprint",
    "string_to_hash_bucket",
    "string_to_hash_bucket_fast",
    "string_to_hash_bucket_strong",
]


@frozen
class HashBucket(StringOp, out=dtypes.int64):
    """A bucket for each string, by a hash of it.

    Attributes: `method` "murmur", "farm" or "sip", whose `key` is two words.
    """

    method: str
    buckets: int
    key: tuple[int, ...] = ()

    def one(self, s: bytes) -> int:
        if self.method == "sip":
            return sip(s, (self.key[0], self.key[1])) % self.buckets
        return (farm(s) if self.method == "farm" else murmur(s)) % self.buckets


class Fingerprint(StringOp):
    """FarmHash's 64 bits of each string, or of the bytes of each row of numbers, as bytes.

    Shapes: strings [n], or numbers [n, ...] -> [n, 8]
    """

    def infer(self, x: Spec) -> Spec:
        is_text = x.dtype.kind == "s"
        if x.rank == 0 or (is_text and x.rank not in (None, 1)):
            wanted = "rank 1 for strings" if is_text else "rank 1 at least"
            raise expected(f"{wanted}", x.shape)
        return Spec(dtypes.uint8, (x.shape[0] if x.shape else None, 8))

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        rows = list(x) if x.dtype.kind == "O" else [row.tobytes() for row in x]
        words = xp.array([farm(row) for row in rows], xp.uint64)
        return words.astype("<u8").view(xp.uint8).reshape(len(rows), 8)


def _buckets(count: Any) -> int:
    if not isinstance(count, int) or count < 1:
        raise expected("one bucket at least", repr(count))
    return count


def string_to_hash_bucket(
    string_tensor: Any = None, num_buckets: Any = None, name: str | None = None, input: Any = None
) -> Tensor:
    """Returns a bucket in [0, num_buckets) for each string, by a hash of it.

    Args:
        string_tensor: Strings.
        num_buckets: Number of buckets.
        name: Name of the operation.
        input: New name of `string_tensor`.
    """
    value = input if string_tensor is None else string_tensor
    op = HashBucket("murmur", _buckets(num_buckets))
    return apply(op, as_strings(value), name=name or "StringToHashBucket")


def string_to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """Returns a bucket for each string, by a hash that never changes (FarmHash)."""
    op = HashBucket("farm", _buckets(num_buckets))
    return apply(op, as_strings(input), name=name or "StringToHashBucketFast")


def string_to_hash_bucket_strong(
    input: Any, num_buckets: int, key: Any, name: str | None = None
) -> Tensor:
    """Returns a bucket for each string, by a hash with a key of two integers (SipHash)."""
    words = tuple([int(k) for k in key])
    if len(words) != 2:
        raise expected("a key of two integers", list(words))
    op = HashBucket("sip", _buckets(num_buckets), words)
    return apply(op, as_strings(input), name=name or "StringToHashBucketStrong")


def fingerprint(data: Any, method: Any = "farmhash64", name: str | None = None) -> Tensor:
    """Returns 8 bytes for each string, or row of numbers, that tell it from others.

    Args:
        data: Strings or numbers, of rank 1 at least.
        method: "farmhash64".
        name: Name of the operation.
    """
    if as_text(method, "method") != "farmhash64":
        raise expected('method "farmhash64"', repr(method))
    return apply(Fingerprint(), convert_to_tensor(data), name=name)
