"""Merging: partitions of one process become one program again, in the global order.

Every partition is a subsequence of that order, so it is found from the partitions alone: of the
nodes that could come next - a Recv once its Send has come, a branch or a loop once all partitions
stand before their own part of it - the one first in program order comes. A Recv becomes an
assignment of what was sent, and a Send nothing. Parts of one branch are one branch again; parts of
one loop are one loop, which has the variables of all.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from collections.abc import Iterable, Sequence

from flowscope.errors import InternalError
from flowscope.graph.op import Op, Spec
from flowscope.ops.core.flow import Identity
from flowscope.ops.core.send_recv import Recv, Send
from flowscope.plan.partitions import Partition
from flowscope.plan.program import Node, Program, Value, outer_values
from flowscope.plan.structured import CondNode, LoopNode

#: The parts of one branch or loop have this in common: its name, and the calls that it stands in.
_Key = tuple[str, tuple[str, ...]]


def merged(partitions: Sequence[Partition]) -> Program:
    """Returns the program of all partitions; of one alone its own.

    Raises:
        InternalError: if they are no subsequences of one order; it names the Recvs that wait.
    """
    if len(partitions) == 1:
        return partitions[0].program
    return _Merger().program(partitions)


class _Merger:
    """Makes new nodes and values, and knows what stands for those of the partitions."""

    def __init__(self) -> None:
        self._values: dict[Value, Value] = {}
        #: What is waited for in the place of each node.
        self._nodes: dict[Node, tuple[Node, ...]] = {}
        self._sent: dict[str, Value] = {}

    def program(self, partitions: Sequence[Partition]) -> Program:
        programs = [p.program for p in partitions]
        feeds: dict[int, Value] = {}
        for v in (v for p in programs for v in p.feeds):
            self._values[v] = feeds.setdefault(v.index, Value(None, v.index, v.spec, v.name))
        nodes = self._block(programs)
        positions = [(i, v) for p in partitions for i, v in zip(p.fetched, p.program.fetches)]
        fetches = [self._values[v] for _, v in sorted(positions, key=lambda pair: pair[0])]
        targets = [n for p in programs for t in p.targets for n in self._nodes[t]]
        notes = [note for p in programs for note in p.notes]
        return Program(
            nodes, tuple([feeds[i] for i in sorted(feeds)]), tuple(fetches),
            tuple(dict.fromkeys(targets)), tuple(dict.fromkeys(notes)),
        )  # fmt: skip

    def _block(self, blocks: Sequence[Program]) -> tuple[Node, ...]:
        """Returns the nodes of the parts of a block, in the global order."""
        waiting = [deque(b.nodes) for b in blocks]
        parts = Counter(_key(n) for b in blocks for n in b.nodes if n.blocks)
        made: list[Node] = []
        while any(waiting):
            nodes = self._next([q[0] for q in waiting if q], parts)
            made += self._merge(nodes)
            for queue in waiting:
                if queue and queue[0] in nodes:
                    queue.popleft()
        return tuple(made)

    def _next(self, heads: Sequence[Node], parts: Counter[_Key]) -> list[Node]:
        """Returns the node that comes next, or all parts of a branch or loop that does."""
        at = Counter(_key(n) for n in heads if n.blocks)
        ready = [
            n for n in heads
            if (at[_key(n)] == parts[_key(n)] if n.blocks else self._is_there(n))
        ]  # fmt: skip
        if not ready:
            waits = ", ".join(f'"{n.name}"' for n in heads)
            raise InternalError(f"the partitions have no common order: {waits} wait for each other")
        first = min(ready, key=lambda n: n.order)
        return [n for n in heads if n.blocks and _key(n) == _key(first)] or [first]

    def _is_there(self, node: Node) -> bool:
        return not isinstance(node.op, Recv) or node.op.key in self._sent

    def _merge(self, nodes: Sequence[Node]) -> list[Node]:
        """Returns what stands for a node, or for the parts of one; nothing for a Send."""
        first = nodes[0]
        if isinstance(first.op, Send):
            (value,) = self._all(first.inputs)
            self._sent[first.op.key] = value
            maker = () if value.node is None else (value.node,)
            self._nodes[first] = (*maker, *self._control(nodes))
            return []
        if isinstance(first.op, Recv):
            sent = self._sent[first.op.key]
            made = _like(first, (sent,), [v.spec for v in first.outputs], Identity())
            self._values[first.outputs[0]] = made.outputs[0]
        elif isinstance(first, LoopNode):
            made = self._loop([n for n in nodes if isinstance(n, LoopNode)])
        elif isinstance(first, CondNode):
            made = self._cond([n for n in nodes if isinstance(n, CondNode)])
        else:
            made = _like(first, self._all(first.inputs), [v.spec for v in first.outputs])
            self._values.update(zip(first.outputs, made.outputs, strict=True))
        made.control = tuple(dict.fromkeys(self._control(nodes)))
        self._nodes.update((n, (made,)) for n in nodes)
        return [made]

    def _cond(self, nodes: Sequence[CondNode]) -> Node:
        blocks = []
        for parts in zip(*[n.blocks for n in nodes], strict=True):
            inner = self._block(parts)
            fetches = [v for p in parts for v in self._all(p.fetches)]
            blocks.append(Program(inner, (), tuple(fetches)))
        specs = [v.spec for n in nodes for v in n.outputs]
        made = self._with_blocks(nodes[0], self._all([nodes[0].pred]), blocks, specs)
        self._values.update(zip((v for n in nodes for v in n.outputs), made.outputs, strict=True))
        return made

    def _loop(self, nodes: Sequence[LoopNode]) -> Node:
        first, blocks = nodes[0], []
        conditions = [n.condition for n in nodes if n.condition is not None]
        if conditions:
            feeds = self._enter([v for c in conditions for v in c.feeds])
            inner = self._block(conditions)
            blocks.append(Program(inner, feeds, self._all(conditions[0].fetches)))
        feeds = self._enter(_joined([(n.parameters, n.elements) for n in nodes]))
        inner = self._block([n.body for n in nodes])
        fetches = _joined([(n.next_values, n.kept_values) for n in nodes])
        blocks.append(Program(inner, feeds, self._all(fetches)))
        variables = sum(n.variables for n in nodes)
        results = _joined([(n.results, n.kept) for n in nodes])
        outputs = [*results[:variables], first.trip_count, *results[variables:]]
        count = [] if first.count is None else [first.count]
        explicit = self._all([*count, *_joined([(n.starts, n.taken) for n in nodes])])
        made = self._with_blocks(first, explicit, blocks, [v.spec for v in outputs])
        lists = sum(n.lists for n in nodes)
        made.op = dataclasses.replace(first.op, variables=variables, lists=lists)
        self._values.update(zip(outputs, made.outputs, strict=True))
        self._values.update((n.trip_count, made.outputs[variables]) for n in nodes)
        return made

    def _enter(self, feeds: Sequence[Value]) -> tuple[Value, ...]:
        """Returns the parameters of a block that stand for those of its parts."""
        made = tuple([Value(None, i, v.spec, v.name) for i, v in enumerate(feeds)])
        self._values.update(zip(feeds, made, strict=True))
        return made

    def _with_blocks(
        self,
        like: Node,
        explicit: Sequence[Value],
        blocks: Sequence[Program],
        specs: Sequence[Spec],
    ) -> Node:
        made = _like(like, (*explicit, *outer_values(blocks)), specs)
        made.blocks = tuple(blocks)
        return made

    def _all(self, values: Iterable[Value]) -> tuple[Value, ...]:
        return tuple([self._values[v] for v in values])

    def _control(self, nodes: Iterable[Node]) -> list[Node]:
        return [made for n in nodes for c in n.control for made in self._nodes[c]]


def _key(node: Node) -> _Key:
    return node.name, node.path


def _joined(pairs: Sequence[tuple[Sequence[Value], Sequence[Value]]]) -> list[Value]:
    """Returns what parts of a loop have of one kind, then what they have of the other."""
    return [v for first, _ in pairs for v in first] + [v for _, second in pairs for v in second]


def _like(node: Node, inputs: Sequence[Value], specs: Sequence[Spec], op: Op | None = None) -> Node:
    """Returns a node in the place of another, with other inputs and outputs, perhaps another op."""
    facts = (node.name, node.order, tuple(inputs), specs, node.requested, node.origins, node.path)
    made = type(node)(op or node.op, *facts)
    made.device, made.reason, made.group = node.device, node.reason, node.group
    return made


__all__ = ["merged"]
