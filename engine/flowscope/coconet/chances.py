"""Chances of dropout that follow from an element's place in the whole tensor.

A key is drawn once per run. An element's chance is a hash of the key and of the element's place in
C order: so it does not matter which rank computes it, or in which part.

Source: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators" (the mixing
function of SplitMix64).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import flowscope as fs
from flowscope.errors import InvalidArgumentError
from flowscope.graph.lazy import frozen
from flowscope.graph.op import Array, ArrayModule

#: The odd number nearest to 2^64 divided by the golden ratio.
_STEP = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def kept(
    xp: Any, key: int, shape: tuple[int, ...], dim: int, part: tuple[int, int], rate: float
) -> Any:
    """Whether elements are kept: a bool array of the shape of a part.

    Args:
        xp: The array module.
        key: An integer of 64 bits.
        shape: The shape of the whole tensor.
        dim: The dimension that is cut.
        part: Where the part begins and ends there.
        rate: The probability that an element is not kept.
    """
    if not shape:
        places = xp.zeros((), "uint64")
    else:
        begin, end = part
        inner = int(np.prod(shape[dim + 1 :], dtype=np.int64))
        outer = int(np.prod(shape[:dim], dtype=np.int64))
        rows = xp.arange(outer, dtype="uint64")[:, None, None] * np.uint64(shape[dim] * inner)
        own = xp.arange(begin, end, dtype="uint64")[None, :, None] * np.uint64(inner)
        places = rows + own + xp.arange(inner, dtype="uint64")
        places = places.reshape((*shape[:dim], end - begin, *shape[dim + 1 :]))
    z = (places + np.uint64(1)) * np.uint64(_STEP) + np.uint64(key & (2**64 - 1))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
    return (z ^ (z >> np.uint64(31))) >> np.uint64(11) >= np.uint64(int(rate * 2**53))


@frozen
class ChanceKey(fs.Op, is_random=True, is_differentiable=False):
    """The key of a run's chances: one number of 64 bits for all ranks.

    Attributes:
        seed: Seed of the op.

    Shapes: -> []
    """

    seed: int

    def infer(self) -> fs.Spec:
        """The spec of the key: a scalar of int64."""
        return fs.Spec(fs.int64, ())

    def kernel(self, xp: ArrayModule, rng: Any) -> Array:
        """The key; `rng` follows from the graph's seed, the op's and the run."""
        return np.int64(int(np.asarray(rng.random((), "float64")) * 2**53))


@frozen
class KeptElements(fs.Op, is_differentiable=False, host_inputs=(0,)):
    """Whether the elements of a part of a tensor are kept by dropout.

    Attributes:
        shape: The shape of the whole tensor.
        dim: The dimension that is cut.
        first: Where the part begins.
        last: Where it ends, exclusive.
        rate: The probability that an element is not kept.

    Shapes: key [] -> shape, with last - first in the place of the dimension
    Raises: InvalidArgumentError if the key is no scalar.
    """

    shape: tuple[int, ...]
    dim: int
    first: int
    last: int
    rate: float

    def infer(self, key: fs.Spec) -> fs.Spec:
        """The spec of the choices: bool, of the part's shape."""
        if key.shape not in ((), None):
            raise InvalidArgumentError(f"expected a scalar as key, got {key.shape}")
        found = list(self.shape)
        if found:
            found[self.dim] = self.last - self.first
        return fs.Spec(fs.bool, tuple(found))

    def kernel(self, xp: ArrayModule, key: Array) -> Array:
        """The choices of a key."""
        return kept(xp, int(key), self.shape, self.dim, (self.first, self.last), self.rate)[()]


__all__: list[str] = []
