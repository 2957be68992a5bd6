"""The slices of a tensor in random order, and blocks from random places."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.shapes import text
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.array.slicing import slice as slice_
from flowscope.ops.core import builder
from flowscope.ops.core.build import apply
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.flow import identity
from flowscope.ops.math.elementwise import add, floormod, subtract
from flowscope.ops.random.normal_and_uniform import random_uniform
from flowscope.ops.random.seeds import seed_of

__all__ = ["random_crop", "random_shuffle"]


@frozen
class RandomShuffle(Op, is_random=True, is_differentiable=False):
    """The slices along the first axis in random order."""

    seed: int

    def infer(self, x: Spec) -> Spec:
        return x.like()

    def kernel(self, xp: ArrayModule, rng: Any, x: Array) -> Array:
        return x[xp.asarray(rng.permutation(x.shape[0]))] if x.ndim else x


def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """Returns the slices of `value` along its first axis in random order."""
    op = RandomShuffle(seed_of(seed, name or "RandomShuffle"))
    return apply(op, convert_to_tensor(value), name=name)


@op_function("value", scope="random_crop")
def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """Returns a block of a tensor from a random place.

    Args:
        value: A tensor.
        size: Shape of the block.
        seed: Seed of the op; by default it follows from the operation's name.

    Raises:
        InvalidArgumentError: if the block is larger than the tensor.
    """
    lengths = convert_to_tensor(size, dtypes.int32, "size")
    whole = shape_of(value)
    said = f"expected a block that fits {text(value.spec.shape)}"
    check = builder.assert_greater_equal(whole, lengths, message=said)
    with value.graph.control_dependencies([check]):
        room = add(subtract(identity(whole), lengths), 1)
        drawn = random_uniform(shape_of(whole), 0, dtypes.int32.max, dtypes.int32, seed)
        return slice_(value, floormod(drawn, room), lengths)
