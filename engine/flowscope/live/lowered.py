"""The program as lowered, as views see it: the five primitives in place of branches and loops.

It is the program of one plan, lowered in full, whatever the executor does with it. The user's
operations keep their numbers and names; each node tells which operations it was made of. What a
branch or loop became stands in the scope that shows it in the graph as written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowscope.graph.operation import Operation
from flowscope.live import schema
from flowscope.live.nesting import parent_path
from flowscope.live.state import made_at, output_of, short
from flowscope.plan.passes.lower import lower
from flowscope.plan.plan import Plan
from flowscope.plan.program import Node, Value

#: Numbers of nodes that are no operation of the user's are above this: no graph grows so large.
FIRST_ID = 2**32


def lowered_nodes(plan: Plan) -> tuple[schema.Node, ...]:
    """Returns the nodes of a plan's program, lowered in full."""
    program = lower(plan.program).program
    feeds = list(zip(program.feeds, plan.request.feeds, strict=True))
    teller = _Teller(program.nodes, {value: tensor.op for value, tensor in feeds})
    return teller.nodes()


class _Teller:
    """Numbers and names the nodes, and tells them."""

    def __init__(self, nodes: Iterable[Node], feeds: dict[Value, Operation]) -> None:
        self._nodes = tuple(nodes)
        self._feeds = feeds
        self._count = 0
        self._taken: set[Any] = set()
        self._ids: dict[Node | Value, int] = {v: self._id((op,), True) for v, op in feeds.items()}
        self._ids |= {n: self._id(n.origins, not part_of(n)) for n in self._nodes}

    def nodes(self) -> tuple[schema.Node, ...]:
        """Returns what is told of all nodes."""
        fed = [self._feed(value, op) for value, op in self._feeds.items()]
        return (*fed, *[self._node(n) for n in self._nodes])

    def _id(self, origins: tuple[Operation, ...], is_users: bool) -> int:
        found = origins[0].id if is_users and origins else None
        if found is None or found in self._taken:
            found = FIRST_ID + self._count
            self._count += 1
        self._taken.add(found)
        return found

    def _name(self, node: Node) -> str:
        """Returns the name; a part of "loop/Loop" is called "loop/Switch", not "loop/Loop/Switch".

        So it stands in the scope of the loop.
        """
        name = node.name
        owner = part_of(node)
        if owner is not None and owner.name.endswith(f"/{owner.type}"):
            scope, what = parent_path(owner.name), name[len(owner.name) :]
            if name == owner.name + what and f"{scope}{what}" not in self._taken:
                name = f"{scope}{what}"
        self._taken.add(name)
        return name

    def _feed(self, value: Value, op: Operation) -> schema.Node:
        return schema.Node(
            id=self._ids[value],
            name=op.name,
            type="Placeholder",
            inputs=(),
            control=(),
            outputs=(output_of(value.spec),),
            attributes={},
            device=op.device,
            placed=None,
            summary="A value that is fed.",
            origin=made_at(op),
            made_from=(_source(op),),
        )

    def _node(self, node: Node) -> schema.Node:
        inputs = [(self._ids[v if v.node is None else v.node], self._index(v)) for v in node.inputs]
        return schema.Node(
            id=self._ids[node],
            name=self._name(node),
            type=node.op.type,
            inputs=tuple(inputs),
            control=tuple(self._ids[c] for c in node.control if c in self._ids),
            outputs=tuple(output_of(v.spec.variable or v.spec) for v in node.outputs),
            attributes={k: short(v) for k, v in node.op.attributes().items()},
            device=node.requested,
            placed=node.device or None,
            summary=(type(node.op).__doc__ or "").strip().partition("\n")[0],
            origin=made_at(node.origins[0]) if node.origins else None,
            made_from=tuple([_source(op) for op in node.origins]),
        )

    def _index(self, value: Value) -> int:
        return 0 if value.node is None else value.index


def part_of(node: Node) -> Operation | None:
    """Returns the branch or loop that a node was made for; None for a user's own operation."""
    if node.origins and not node.blocks and node.origins[0].type in ("Cond", "Loop"):
        return node.origins[0]
    return None


def _source(op: Operation) -> schema.Source:
    return schema.Source(op.id, op.name, op.type)


__all__ = ["lowered_nodes", "part_of"]
