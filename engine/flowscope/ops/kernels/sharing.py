"""Kernels that several threads share: products of matrices, and blocks of a batch.

The step that runs a kernel says which threads there are, see `runtime.threads.thread_pool`. Bits
do not depend on them: a product that is shared has the bits of one thread, and a batch falls into
blocks by its sizes alone, whoever computes them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowscope.graph.current_step import current_step
from flowscope.graph.op import Array, ArrayModule

#: Below so many multiplications of a product one thread is quicker.
WORTH = 1 << 20
#: Flops of a block of a batch that is worth a hand-over, and how many blocks there are at most.
BLOCK_FLOPS, _MOST_BLOCKS = 5e6, 4
#: To read or write a number takes as long as so many flops.
FLOPS = 20.0
_CALLED = ctypes.CFUNCTYPE(ctypes.c_uint32, *[ctypes.c_int64] * 4)
#: Of numbers in the machine's order of bytes.
_TYPES = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def matrix_product(xp: ArrayModule, a: Array, b: Array) -> Array:
    """Returns `xp.matmul(a, b)`."""
    if a.size * b.shape[-1] >= WORTH and xp is np and a.ndim == 2 == b.ndim:
        step = current_step()
        if step is not None and step.pool is not None and a.dtype == b.dtype in _TYPES:
            found: Any = step.pool.product(a, b)
            if found is not None:
                return found
    return xp.matmul(a, b)


def shared_calls(
    blocks: Sequence[Sequence[tuple[int, ...]]], kept: Any
) -> tuple[list[int], list[int]]:
    """Makes the calls of blocks, on several threads where the step has some.

    Args:
        blocks: Per block its calls: where a function lies, and four arguments.
        kept: What the calls need; it is kept until no thread makes them any more.

    Returns:
        The blocks that are late, see `runtime.threads.native_pool`, and what the calls of the
        others returned that are not the first of a block.
    """
    count = max(map(len, blocks))
    table = np.zeros((len(blocks), count, 6), np.int64)
    table[:, :, :5] = [[*calls, *[calls[0]] * (count - len(calls))] for calls in blocks]
    step = current_step() if len(blocks) > 1 else None
    late = -1 if step is None or step.pool is None else step.pool.calls(table, kept)
    if late < 0:
        late = 0
        for calls, words in zip(blocks, table, strict=True):
            for j, (function, *args) in enumerate(calls):
                words[j, 5] = _CALLED(function)(*args)
    missing = [i for i in range(len(blocks)) if late >> i & 1]
    done = [i for i in range(len(blocks)) if not late >> i & 1]
    statuses = [table[i, 1 : len(blocks[i]), 5] for i in done]
    return missing, [int(s) for some in statuses for s in some]


def batch_blocks(xp: ArrayModule, count: int, flops: float) -> list[slice]:
    """Returns the blocks of a batch of `count` examples that threads share; one where none should.

    Args:
        xp: The array module.
        count: How many examples there are.
        flops: How much there is to do for all of them.
    """
    blocks = min(count, _MOST_BLOCKS, int(flops / BLOCK_FLOPS)) if xp is np else 1
    if blocks < 2:
        return [slice(0, count)]
    step = -(-count // blocks)
    return [slice(first, first + step) for first in range(0, count, step)]
