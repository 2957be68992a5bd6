"""Wait-for graphs: who waits for whom, and who can never go on.

Nodes are what waits: devices within a step, steps, partitions. A wait names all nodes that could
end it, or none where somebody outside of the graph could. A node may have several waits at a time,
and goes on when one of them ends. So a node is *stuck* only where each of its waits could be ended
by stuck nodes alone: stuck nodes are the greatest set of which that is true.

Nothing here looks at clocks or threads. That the waits were there at one moment, all together, is
for those to prove who ask: `cluster.watch.waits` and `runtime.waits.local_waits`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def stuck(waits: Mapping[Node, Sequence[Collection[Node] | None]]) -> set[Node]:
    """Returns the nodes that can never go on.

    Args:
        waits: Per node that waits, for each of its waits the nodes that could end it; None where
            somebody outside could, too.
    """
    found = {node for node, ends in waits.items() if ends and None not in ends}
    while True:
        free = {n for n in found if not all(found.issuperset(by or ()) for by in waits[n])}
        if not free:
            return found
        found -= free


def circles(nodes: Iterable[Node], following: Callable[[Node], Iterable[Node]]) -> list[list[Node]]:
    """Returns circles, in each of which every node waits for the next: no two share a node.

    Args:
        nodes: The nodes that they are looked for from, in this order.
        following: Returns the nodes that a node waits for.
    """
    found: list[list[Node]] = []
    done: set[Node] = set()
    for start in nodes:
        path: list[Node] = []
        ways = [iter((start,))] if start not in done else []
        while ways:
            node = next(ways[-1], None)
            if node is None:
                ways.pop()
                done.update(path[-1:])
                del path[-1:]
            elif node in path:
                found.append(path[path.index(node) :])
                done.update(path)
                break
            elif node not in done:
                path.append(node)
                ways.append(iter(following(node)))
    return found


__all__ = ["circles", "stuck"]
