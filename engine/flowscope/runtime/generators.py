"""Random numbers from counters: the same program draws the same ones, in every order."""

from __future__ import annotations

from typing import Any

import numpy as np


def generator(run: tuple[int, int], op_seed: int) -> Any:
    """Returns the generator of one invocation of a random op.

    Source: Philox 4x64 (Salmon et al. 2011), keyed by (graph seed, op seed), at the counter of this
    run, so that no generator is ever kept between invocations.

    Args:
        run: (graph seed, number of the run in its session).
        op_seed: The op's own seed.
    """
    graph_seed, number = run
    mask = (1 << 64) - 1
    return np.random.Generator(
        np.random.Philox(key=[graph_seed & mask, op_seed & mask], counter=[0, 0, 0, number])
    )
