"""Random numbers from counters: the same program draws the same ones, in every order.

NumPy takes 20 us to make a generator and 4.6 us to set one to a key and a counter: each thread has
one, which is set anew for each draw. What it draws follows from key and counter alone.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from flowscope.ops.random.seeds import DEFAULT_GRAPH_SEED, NAME_SEEDS

#: An odd number that spreads iteration numbers over 64 bits (Knuth's multiplier for LCGs).
_MIX = 6364136223846793005

_WORD = (1 << 64) - 1


class _Scratch:
    """A generator, and the state that it is set to."""

    def __init__(self) -> None:
        self.bits = np.random.Philox(0)
        self.generator = np.random.Generator(self.bits)
        self.state = self.bits.state
        self.words = np.zeros(6, np.uint64)
        self.state["state"] = {"counter": self.words[:4], "key": self.words[4:]}
        self.state["buffer_pos"] = 4  # no bits are left over


#: Each thread's scratch.
_local = threading.local()


def philox(
    key: tuple[int, int], counter: tuple[int, int, int, int] = (0, 0, 0, 0)
) -> np.random.Generator:
    """Returns the thread's generator at a counter; it is good until the next call.

    Source: Philox 4x64, Salmon et al. 2011.

    Args:
        key: Two numbers, of which 64 bits count.
        counter: Four numbers below 2**64.
    """
    scratch = getattr(_local, "scratch", None)
    if scratch is None:
        scratch = _local.scratch = _Scratch()
    scratch.words[:] = (*counter, key[0] & _WORD, key[1] & _WORD)
    scratch.bits.state = scratch.state
    found: np.random.Generator = scratch.generator
    return found


def generator(run: tuple[Any, ...], op_seed: int, path: int = 0, *iterations: int) -> Any:
    """Returns the generator of one invocation of a random op.

    Where the graph has no seed, an op with a seed of its own draws the same numbers in every
    session, and one without draws other numbers in each, as in TensorFlow.

    Its key is (graph seed, op seed), its counter that of this run: see `philox`.

    Args:
        run: (graph seed or None, the session's entropy, number of the run in its session). In a
            round, see `runtime.session.rounds`, (seed, entropy, number of the round, number of
            the run): what it draws does not depend on how many runs of others came before.
        op_seed: The op's own seed, or one that follows from its name: see `NAME_SEEDS`.
        path: Tells the calls of a function and the blocks apart that the op stands in; 0 outside.
        iterations: Numbers of the iterations of the loops around it, from the outermost.
    """
    graph_seed, entropy, number = run[:3]
    mask = (1 << 64) - 1
    for count in iterations:
        path = (path * _MIX + count + 1) & mask
    if graph_seed is None:
        graph_seed = DEFAULT_GRAPH_SEED if op_seed < NAME_SEEDS else entropy
    return philox((graph_seed, op_seed), (0, len(run) - 3, path, number))
