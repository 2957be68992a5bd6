"""Wait-for graphs: against what brute force finds."""

from __future__ import annotations

import itertools
import random

import pytest

from flowscope.runtime.waits.wait_graph import circles, stuck


def random_waits(rng):
    nodes = range(rng.randint(1, 6))
    return {
        n: [
            None if rng.random() < 0.1 else rng.sample(nodes, rng.randint(0, min(3, len(nodes))))
            for _ in range(rng.randint(0, 2))
        ]
        for n in nodes
        if rng.random() < 0.9
    }


@pytest.mark.parametrize("seed", range(300))
def test_stuck_nodes_are_the_largest_set_that_only_waits_for_itself(seed):
    waits = random_waits(random.Random(seed))
    closed = [
        set(chosen)
        for count in range(len(waits) + 1)
        for chosen in itertools.combinations(waits, count)
        if all(
            waits[n] and all(by is not None and set(by) <= set(chosen) for by in waits[n])
            for n in chosen
        )
    ]
    assert stuck(waits) == max(closed, key=len)


@pytest.mark.parametrize("seed", range(300))
def test_a_circle_is_found_where_there_is_one(seed):
    rng = random.Random(seed)
    nodes = range(rng.randint(1, 7))
    following = {n: rng.sample(nodes, rng.randint(0, min(2, len(nodes)))) for n in nodes}
    found = circles(nodes, following.__getitem__)
    for ring in found:
        assert all(b in following[a] for a, b in itertools.pairwise([*ring, ring[0]]))
    of_all = [n for ring in found for n in ring]
    assert len(of_all) == len(set(of_all))
    behind = {n: set(following[n]) for n in nodes}
    for _ in nodes:
        behind = {n: b.union(*[behind[m] for m in b]) for n, b in behind.items()}
    assert bool(found) == any(n in behind[n] for n in nodes)


def test_a_node_that_one_outside_could_end_frees_those_that_wait_for_it():
    assert stuck({1: [(2,)], 2: [(1,), None]}) == set()
    assert stuck({1: [(2,)], 2: [(1,)], 3: [(1, 4)], 4: []}) == {1, 2}
    assert stuck({1: [()]}) == {1}  # nobody could end it
