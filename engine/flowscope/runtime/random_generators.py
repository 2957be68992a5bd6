"""Random numbers from counters: the same program draws the same ones, in every order."""

from __future__ import annotations

from typing import Any

from flowscope.ops.random.philox import philox
from flowscope.ops.random.seeds import DEFAULT_GRAPH_SEED, NAME_SEEDS

#: An odd number that spreads iteration numbers over 64 bits (Knuth's multiplier for LCGs).
_MIX = 6364136223846793005


def generator(
    run: tuple[int | None, int, int], op_seed: int, path: int = 0, *iterations: int
) -> Any:
    """Returns the generator of one invocation of a random op.

    Where the graph has no seed, an op with a seed of its own draws the same numbers in every
    session, and one without draws other numbers in each, as in TensorFlow.

    Its key is (graph seed, op seed), its counter that of this run: see `ops.random.philox`.

    Args:
        run: (graph seed or None, the session's entropy, number of the run in its session).
        op_seed: The op's own seed, or one that follows from its name: see `NAME_SEEDS`.
        path: Tells the calls of a function and the blocks apart that the op stands in; 0 outside.
        iterations: Numbers of the iterations of the loops around it, from the outermost.
    """
    graph_seed, entropy, number = run
    mask = (1 << 64) - 1
    for count in iterations:
        path = (path * _MIX + count + 1) & mask
    if graph_seed is None:
        graph_seed = DEFAULT_GRAPH_SEED if op_seed < NAME_SEEDS else entropy
    return philox((graph_seed, op_seed), (0, 0, path, number))
