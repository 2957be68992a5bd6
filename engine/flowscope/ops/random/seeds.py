"""Seeds of graphs and of ops: what random numbers follow from."""

from __future__ import annotations

import operator
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from flowscope.graph.default import get_default_graph
from flowscope.graph.values.expected import expected_dtype

__all__ = ["get_seed", "set_random_seed"]


#: Stands in for the graph's seed where only the op has one.
DEFAULT_GRAPH_SEED = 87654321


_MAX_SEED = 2**31 - 1


#: Seeds from here on follow from operations' names.
NAME_SEEDS = 1 << 64


def set_random_seed(seed: int | None) -> None:
    """Sets the seed of the default graph: its random ops draw the same numbers in every session.

    Args:
        seed: An integer; None takes the seed away.

    Example:
        >>> fs.set_random_seed(7)
        >>> x = fs.random_uniform([])
        >>> bool(fs.Session().run(x) == fs.Session().run(x))
        True
    """
    try:
        get_default_graph().seed = None if seed is None else operator.index(seed)
    except TypeError:
        raise expected_dtype("an integer seed", repr(seed)) from None


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """Returns (graph seed, op seed), both None where nothing is set.

    A graph without a seed counts as one with a fixed seed for an op that has one. In a graph with a
    seed an op without one gets the number of operations so far. Both lie in the range of int32,
    and (0, 0), which stands for no seed elsewhere, is never returned.
    """
    graph = get_default_graph()
    graph_seed = graph.seed
    if graph_seed is None and op_seed is None:
        return None, None
    if graph_seed is None:
        graph_seed = DEFAULT_GRAPH_SEED
    op_seed = len(graph) if op_seed is None else op_seed
    found = graph_seed % _MAX_SEED, op_seed % _MAX_SEED
    return (0, _MAX_SEED) if found == (0, 0) else found


@contextmanager
def fold_seeds(index: int) -> Iterator[None]:
    """Has the seeds that users give ops of the block follow from a number, too.

    So copies of a model draw differently, and each copy draws the same in every session. Number 0
    changes nothing. Ops without a seed draw differently by their names.

    Args:
        index: The number, such as that of the copy, from 0.

    Example:
        >>> x = fs.random_uniform([], seed=1)
        >>> with fs.random.fold_seeds(1):
        ...     y = fs.random_uniform([], seed=1)
        >>> a, b = fs.Session().run([x, y])
        >>> bool(a == b)
        False
    """
    extras = get_default_graph().thread_extras
    before = extras.get("folded_seeds", ())
    extras["folded_seeds"] = (*before, index) if index else before
    try:
        yield
    finally:
        extras["folded_seeds"] = before


def seed_of(seed: int | None, name: str) -> int:
    """Returns the op's seed: the user's, or else one from its name, which a rebuild keeps."""
    if seed is not None:
        folded = get_default_graph().thread_extras.get("folded_seeds", ())
        return zlib.crc32(repr((int(seed), folded)).encode()) if folded else int(seed)
    full = get_default_graph().unique_name(name, mark_as_used=False)
    return NAME_SEEDS + zlib.crc32(full.encode())
