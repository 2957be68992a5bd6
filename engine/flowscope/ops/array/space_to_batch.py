"""Blocks of pixels moved between space, depth and batch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowscope.graph.constant import constant, convert_to_tensor, get_static_value
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import compatible, text
from flowscope.graph.values.string_values import zeros
from flowscope.ops.array.arrays import zeros_like
from flowscope.ops.array.joining import stack
from flowscope.ops.core.build import apply
from flowscope.ops.core.shape_rules import check_integers, check_rank
from flowscope.ops.math.elementwise import add, floormod, negative

__all__ = [
    "batch_to_space",
    "batch_to_space_nd",
    "depth_to_space",
    "required_space_to_batch_paddings",
    "space_to_batch",
    "space_to_batch_nd",
    "space_to_depth",
]


def _check_block(block: int, layout: str, x: Spec) -> None:
    if block < 2:
        raise expected("a block size of 2 or more", block)
    if layout not in ("NHWC", "NCHW"):
        raise expected("data_format NHWC or NCHW", repr(layout))
    check_rank(x, 4, "images of rank 4")


def _divided(n: int | None, by: int, what: str) -> int | None:
    if n is not None and n % by:
        raise expected(f"a multiple of {by} for {what}", n)
    return None if n is None else n // by


def _times(n: int | None, by: int) -> int | None:
    return None if n is None else n * by


@frozen
class SpaceToDepth(Op, views=(0,)):
    """Blocks of pixels moved into the channels.

    Shapes: [batch, h, w, c] -> [batch, h / block, w / block, block * block * c]   (NHWC)
    """

    block: int
    layout: str = "NHWC"

    def infer(self, x: Spec) -> Spec:
        _check_block(self.block, self.layout, x)
        return Spec(x.dtype, None if x.shape is None else self._shape(x.shape))

    def _shape(self, dims: Any) -> Any:
        k = self.block
        n, h, w, c = dims if self.layout == "NHWC" else (dims[0], *dims[2:], dims[1])
        h, w, c = _divided(h, k, "the height"), _divided(w, k, "the width"), _times(c, k * k)
        return (n, h, w, c) if self.layout == "NHWC" else (n, c, h, w)

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(DepthToSpace(self.block, self.layout), g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        k, out = self.block, self._shape(x.shape)
        if self.layout == "NHWC":
            parts = x.reshape(x.shape[0], out[1], k, out[2], k, x.shape[3])
            return parts.transpose(0, 1, 3, 2, 4, 5).reshape(out)
        parts = x.reshape(x.shape[0], x.shape[1], out[2], k, out[3], k)
        return parts.transpose(0, 3, 5, 1, 2, 4).reshape(out)


@frozen
class DepthToSpace(Op, views=(0,)):
    """Channels moved into blocks of pixels: the inverse of `SpaceToDepth`.

    Shapes: [batch, h, w, block * block * c] -> [batch, h * block, w * block, c]   (NHWC)
    """

    block: int
    layout: str = "NHWC"

    def infer(self, x: Spec) -> Spec:
        _check_block(self.block, self.layout, x)
        return Spec(x.dtype, None if x.shape is None else self._shape(x.shape))

    def _shape(self, dims: Any) -> Any:
        k = self.block
        n, h, w, c = dims if self.layout == "NHWC" else (dims[0], *dims[2:], dims[1])
        h, w, c = _times(h, k), _times(w, k), _divided(c, k * k, "the channels")
        return (n, h, w, c) if self.layout == "NHWC" else (n, c, h, w)

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(SpaceToDepth(self.block, self.layout), g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        k, out = self.block, self._shape(x.shape)
        if self.layout == "NHWC":
            n, h, w, _ = x.shape
            return x.reshape(n, h, w, k, k, out[3]).transpose(0, 1, 3, 2, 4, 5).reshape(out)
        n, _, h, w = x.shape
        return x.reshape(n, k, k, out[1], h, w).transpose(0, 3, 4, 1, 5, 2).reshape(out)


def space_to_depth(
    input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC"
) -> Tensor:
    """Returns images whose blocks of pixels have become channels.

    Args:
        input: Images of rank 4.
        block_size: Height and width of a block; those of the images are multiples of it.
        name: Name of the operation.
        data_format: "NHWC" or "NCHW".
    """
    return apply(SpaceToDepth(int(block_size), data_format), convert_to_tensor(input), name=name)


def depth_to_space(
    input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC"
) -> Tensor:
    """Returns images whose channels have become blocks of pixels; see `space_to_depth`."""
    return apply(DepthToSpace(int(block_size), data_format), convert_to_tensor(input), name=name)


def _known(s: Spec) -> list[Any] | None:
    return None if s.constant is None else np.asarray(s.constant).tolist()


class _Blocks(Op, abstract=True, grad_reads=("block", "margins"), views=(0,)):
    def infer(self, x: Spec, block: Spec, margins: Spec) -> Spec:
        check_integers(block, "a block shape", 1)
        check_integers(margins, "margins", 2)
        m = block.shape[0] if block.shape else None
        if not compatible(margins.shape, (m, 2)):
            raise expected(f"margins of shape {text((m, 2))}", margins.shape)
        if x.shape is None:
            return Spec(x.dtype, None)
        if m is None:
            return Spec(x.dtype, (None,) * len(x.shape))
        if len(x.shape) <= m:
            raise expected(f"rank {m + 1} at least", x.shape)
        sizes, edges = _known(block), _known(margins)
        if sizes is None or edges is None:
            return Spec(x.dtype, (*(None,) * (m + 1), *x.shape[m + 1 :]))
        return Spec(x.dtype, self._shape(x.shape, sizes, edges))

    def _shape(self, dims: Any, block: list[int], margins: list[list[int]]) -> tuple[Any, ...]:
        raise NotImplementedError


def _check_sizes(block: list[int], margins: list[list[int]]) -> None:
    if any(b < 1 for b in block) or any(e < 0 for pair in margins for e in pair):
        raise expected("blocks from 1 on and margins from 0 on", block, margins)


def _padded(xp: ArrayModule, x: Array, edges: list[list[int]]) -> Array:
    """Returns x with zeros before and behind on the axes behind the first."""
    if not any(e for pair in edges for e in pair):
        return x
    sizes = [d + a + b for d, (a, b) in zip(x.shape[1:], edges)]
    out = zeros(xp, (x.shape[0], *sizes, *x.shape[1 + len(edges) :]), x.dtype)
    inner = [slice(a, a + d) for d, (a, _) in zip(x.shape[1:], edges)]
    out[(slice(None), *inner)] = x
    return out


class SpaceToBatchND(_Blocks, host_inputs=(1, 2)):
    """Blocks of the axes behind the first moved into the first, after padding with zeros.

    Shapes: x [n, d0, ...] + s, block [m], paddings [m, 2]
        -> [n * product of block, (d0 + paddings) / block[0], ...] + s
    """

    def _shape(self, dims: Any, block: list[int], margins: list[list[int]]) -> tuple[Any, ...]:
        _check_sizes(block, margins)
        space = [
            _divided(None if d is None else d + a + b, k, "the padded length")
            for d, k, (a, b) in zip(dims[1:], block, margins)
        ]
        return (_times(dims[0], math.prod(block)), *space, *dims[1 + len(block) :])

    def grad(self, g: Tensor, y: Tensor, x: Tensor, block: Tensor, margins: Tensor) -> Any:
        return apply(BatchToSpaceND(), g, block, margins), None, None

    def kernel(self, xp: ArrayModule, x: Array, block: Array, margins: Array) -> Array:
        sizes, edges = block.tolist(), margins.tolist()
        m, out = len(sizes), self._shape(x.shape, sizes, edges)
        padded = _padded(xp, x, edges)
        pairs = [d for pair in zip(out[1 : m + 1], sizes) for d in pair]
        parts = padded.reshape(x.shape[0], *pairs, *out[m + 1 :])
        space, inner = range(1, 2 * m + 1, 2), range(2, 2 * m + 1, 2)
        rest = range(2 * m + 1, parts.ndim)
        return parts.transpose(*inner, 0, *space, *rest).reshape(out)


class BatchToSpaceND(_Blocks, host_inputs=(1, 2)):
    """Parts of the first axis moved into blocks of the axes behind it, whose margins are cut off.

    Shapes: x [n * product of block, d0, ...] + s, block [m], crops [m, 2]
        -> [n, d0 * block[0] - crops, ...] + s
    """

    def _shape(self, dims: Any, block: list[int], margins: list[list[int]]) -> tuple[Any, ...]:
        _check_sizes(block, margins)
        space = []
        for d, k, (a, b) in zip(dims[1:], block, margins):
            left = None if d is None else d * k - a - b
            if left is not None and left < 0:
                raise expected(f"crops of at most {d * k}", a, b)
            space.append(left)
        n = _divided(dims[0], math.prod(block), "the batch")
        return (n, *space, *dims[1 + len(block) :])

    def grad(self, g: Tensor, y: Tensor, x: Tensor, block: Tensor, margins: Tensor) -> Any:
        return apply(SpaceToBatchND(), g, block, margins), None, None

    def kernel(self, xp: ArrayModule, x: Array, block: Array, margins: Array) -> Array:
        sizes, edges = block.tolist(), margins.tolist()
        m, out = len(sizes), self._shape(x.shape, sizes, edges)
        parts = x.reshape(*sizes, out[0], *x.shape[1:])
        perm = [m, *[i for j in range(m) for i in (m + 1 + j, j)], *range(2 * m + 1, parts.ndim)]
        space = [d * k for d, k in zip(x.shape[1:], sizes)]
        whole = parts.transpose(perm).reshape(out[0], *space, *out[m + 1 :])
        inner = [slice(a, d - b) for d, (a, b) in zip(space, edges)]
        return whole[(slice(None), *inner)].copy()


def space_to_batch_nd(
    input: Any, block_shape: Any, paddings: Any, name: str | None = None
) -> Tensor:
    """Returns blocks of the axes behind the first as elements of the batch.

    Args:
        input: A tensor; its first axis is the batch.
        block_shape: m block sizes, for the m axes behind the first.
        paddings: Zeros before and behind, of shape [m, 2]; the padded axes are multiples.
        name: Name of the operation.
    """
    return _blocks(SpaceToBatchND(), input, block_shape, paddings, name)


def batch_to_space_nd(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """Returns elements of the batch as blocks of the axes behind it: undoes `space_to_batch_nd`.

    Args:
        input: A tensor; its first axis is the batch.
        block_shape: m block sizes, for the m axes behind the first.
        crops: How much to cut off before and behind, of shape [m, 2].
        name: Name of the operation.
    """
    return _blocks(BatchToSpaceND(), input, block_shape, crops, name)


def _blocks(op: Op, input: Any, block: Any, margins: Any, name: str | None) -> Tensor:
    sizes, edges = [convert_to_tensor(v, None, None, dtypes.int32) for v in (block, margins)]
    return apply(op, convert_to_tensor(input), sizes, edges, name=name)


def space_to_batch(
    input: Any,
    paddings: Any,
    block_size: Any = None,
    name: str | None = None,
    block_shape: Any = None,
) -> Tensor:
    """Returns blocks of the two axes behind the first as elements of the batch.

    Args:
        input: A tensor of rank 3 or more.
        paddings: Zeros before and behind, of shape [2, 2].
        block_size: Height and width of a block.
        name: Name of the operation.
        block_shape: Sizes of a block as in `space_to_batch_nd`, in place of `block_size`.
    """
    shape = [block_size, block_size] if block_shape is None else block_shape
    return space_to_batch_nd(input, shape, paddings, name)


def batch_to_space(
    input: Any,
    crops: Any,
    block_size: Any = None,
    name: str | None = None,
    block_shape: Any = None,
) -> Tensor:
    """Returns elements of the batch as blocks of the two axes behind: undoes `space_to_batch`."""
    shape = [block_size, block_size] if block_shape is None else block_shape
    return batch_to_space_nd(input, shape, crops, name)


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Returns (paddings, crops): paddings make lengths multiples of blocks, crops undo them.

    Args:
        input_shape: Lengths, a vector [m].
        block_shape: Block sizes, a vector [m].
        base_paddings: Paddings of shape [m, 2] to start from, 0 by default.
        name: Name scope of the operations.
    """
    sizes = convert_to_tensor(input_shape, dtypes.int32)
    with sizes.graph.name_scope(name or "required_space_to_batch_paddings"):
        blocks = convert_to_tensor(block_shape, dtypes.int32)
        none = zeros_like(stack([blocks, blocks], 1))
        base = none if base_paddings is None else convert_to_tensor(base_paddings, dtypes.int32)
        known = [get_static_value(t) for t in (sizes, blocks, base)]
        if all(v is not None for v in known):
            margins, crops = _known_paddings(*known)
            return constant(margins, name="paddings"), constant(crops, name="crops")
        full = add(add(sizes, base[:, 0]), base[:, 1])
        extra = floormod(negative(full), blocks)
        paddings = stack([base[:, 0], add(base[:, 1], extra)], 1, "paddings")
        return paddings, stack([zeros_like(extra), extra], 1, "crops")


def _known_paddings(sizes: Any, blocks: Any, base: Any) -> tuple[Any, Any]:
    extra = -(sizes + base.sum(1)) % blocks
    none = np.zeros_like(extra)
    return base + np.stack([none, extra], 1), np.stack([none, extra], 1)
