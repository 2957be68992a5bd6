"""Cuts programs into two partitions by hand, with Send and Recv also in branches and loops.

Each operation without blocks goes to a side by chance; what has effects, and lists, stay on the
first one. Branches and loops have a part on each side that runs something of them.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Sequence
from typing import Any

from flowscope.graph.dtypes import resource, variant
from flowscope.ops.core.send_recv import Recv, Send
from flowscope.plan.lowering import is_ambient
from flowscope.plan.partitions import Partition
from flowscope.plan.passes.regions import regions
from flowscope.plan.program import Node, Program, Value, outer_values
from flowscope.plan.structured import CondNode, LoopNode

DEVICES = tuple(f"/job:localhost/replica:0/task:0/device:CPU:{i}" for i in range(2))


def cut(
    program: Program,
    back_ends: Sequence[str] = ("python", "python"),
    seed: int = 0,
    is_split: bool = True,
) -> tuple[Partition, ...]:
    """Returns two partitions of a program.

    Args:
        program: The program.
        back_ends: The names of the partitions' code back ends.
        seed: Says which side operations go to.
        is_split: Whether a branch or a loop may run on both sides; else it is on the first one.
    """
    return _Cut(seed, is_split).partitions(program, back_ends)


class _Cut:
    def __init__(self, seed: int, is_split: bool) -> None:
        self.seed = seed
        self.is_split = is_split
        self.depth = 0
        self.numbers = itertools.count()
        #: Per side: what stands there for values of the program, and for nodes.
        self.there: list[dict[Value, Value]] = [{}, {}]
        self.nodes: list[dict[Node, Node]] = [{}, {}]
        #: The node that is being cut.
        self.near: Any = None

    def partitions(self, program: Program, back_ends: Sequence[str]) -> tuple[Partition, ...]:
        feeds = [self.enter(program.feeds, s) for s in (0, 1)]
        out: dict[int, list[Node]] = {0: [], 1: []}
        self.block(program, out)
        sides = [self.choice(i, (0, 1)) for i in range(len(program.fetches))]
        fetched = [[i for i, x in enumerate(sides) if x == s] for s in (0, 1)]
        given = [tuple([self.at(program.fetches[i], s, out) for i in fetched[s]]) for s in (0, 1)]
        found = []
        for s, name in enumerate(back_ends):
            part = Program(tuple(out[s]), feeds[s], given[s])
            found.append(Partition(DEVICES[s], part, regions(part), name, tuple(fetched[s])))
        return tuple(found)

    def choice(self, what: Any, sides: Sequence[int]) -> int:
        return random.Random(f"{self.seed} {what}").choice(list(sides))

    def side(self, node: Node) -> int:
        op = node.op
        is_bound = op.has_effect or op.is_handle or node.handles or op.reads_state
        is_bound = is_bound or (self.depth > 0 and not self.is_split)
        values = [*node.inputs, *node.outputs]
        if (
            is_bound
            or (self.depth and not self.is_split)
            or any(v.spec.dtype in (variant, resource) for v in values)
        ):
            return 0
        return self.choice(node.name, (0, 1))

    def at(self, value: Value, side: int, out: dict[int, list[Node]]) -> Value:
        """Returns what stands for a value on a side; sends it there if it is on the other one."""
        if value in self.there[side]:
            return self.there[side][value]
        sent = self.there[1 - side][value]
        facts = f"{value.label}/{next(self.numbers)}", DEVICES[1 - side], DEVICES[side]
        assert value.spec.dtype not in (variant, resource)
        origins = self.near.origins
        send = Node(Send(*facts), facts[0] + "/send", self.near.order, (sent,), (), "", origins)
        op = Recv(*facts, value.spec.dtype, value.spec.shape)
        recv = Node(op, facts[0] + "/recv", self.near.order, (), [value.spec], "", origins)
        out[1 - side].append(send)
        out[side].append(recv)
        found = self.there[side][value] = recv.outputs[0]
        return found

    def enter(self, feeds: Sequence[Value], side: int) -> tuple[Value, ...]:
        made = tuple([Value(None, v.index, v.spec, v.name) for v in feeds])
        self.there[side].update(zip(feeds, made, strict=True))
        return made

    def block(self, program: Program, out: dict[int, list[Node]]) -> None:
        for node in program.nodes:
            self.near = node
            if node.blocks:
                self.structured(node, out)
                continue
            is_everywhere = is_ambient(node) and not node.op.is_handle
            lists = node.outputs and node.outputs[0].spec.dtype is variant
            for side in out if is_everywhere and not lists else (self.side(node),):
                inputs = tuple([self.at(v, side, out) for v in node.inputs])
                self.made(node, side, inputs, node.outputs, node.op, (), out)

    def made(
        self, node: Node, side: int, inputs: Any, outputs: Any, op: Any, blocks: Any, out: Any
    ) -> None:
        specs = [v.spec for v in outputs]
        facts = (node.name, node.order, inputs, specs, node.requested, node.origins, node.path)
        made = type(node)(op, *facts)
        made.device, made.group, made.blocks = DEVICES[side], node.group, blocks
        made.control = tuple([self.nodes[side][c] for c in node.control if c in self.nodes[side]])
        self.nodes[side][node] = made
        self.there[side].update(zip(outputs, made.outputs, strict=True))
        out[side].append(made)

    def structured(self, node: Node, out: dict[int, list[Node]]) -> None:
        self.depth += 1
        leaves = [n for b in node.blocks for n in b.walk() if not n.blocks and not is_ambient(n)]
        sides = sorted({self.side(n) for n in leaves} or {0})
        if any(v.spec.dtype is variant for v in (*node.inputs, *node.outputs)):
            sides = sorted({0, *sides})
        outer = node.inputs if isinstance(node, CondNode) else node.captured
        for value in outer:
            for side in [0] if value.spec.dtype in (resource, variant) else sides:
                self.at(value, side, out)
        (self.cond if isinstance(node, CondNode) else self.loop)(node, sides, out)
        self.depth -= 1

    def part(self, node: Node, values: Sequence[Value], sides: list[int]) -> dict[int, list[int]]:
        """Returns which of some values lie on each side."""
        found: dict[int, list[int]] = {s: [] for s in sides}
        for i, value in enumerate(values):
            is_list = value.spec.dtype is variant
            found[0 if is_list else self.choice((node.name, i), sides)].append(i)
        return found

    def inner(
        self, block: Program, feeds: dict[int, list[Value]], give: dict[int, list[Value]]
    ) -> dict[int, Program]:
        """Returns the parts of a block."""
        kept = [dict(x) for x in self.there]
        out: dict[int, list[Node]] = {s: [] for s in give}
        entered = {}
        for s in give:
            made = tuple([Value(None, i, v.spec, v.name) for i, v in enumerate(feeds[s])])
            self.there[s].update(zip(feeds[s], made, strict=True))
            entered[s] = made
        self.block(block, out)
        given = {s: tuple([self.at(v, s, out) for v in give[s]]) for s in give}
        self.there = kept
        return {s: Program(tuple(out[s]), entered[s], given[s]) for s in give}

    def cond(self, node: CondNode, sides: list[int], out: dict[int, list[Node]]) -> None:
        part = self.part(node, node.outputs, sides)
        none: dict[int, list[Value]] = {s: [] for s in sides}
        blocks = [
            self.inner(b, none, {s: [b.fetches[i] for i in part[s]] for s in sides})
            for b in node.blocks
        ]
        for s in sides:
            own = tuple([b[s] for b in blocks])
            inputs = (self.there[s][node.pred], *outer_values(own))
            self.made(node, s, inputs, [node.outputs[i] for i in part[s]], node.op, own, out)

    def loop(self, node: LoopNode, sides: list[int], out: dict[int, list[Node]]) -> None:
        part = self.part(node, node.parameters, sides)
        lists = {s: [*node.elements] if s == 0 else [] for s in sides}
        explicit = {}
        for s in sides:
            values = [node.starts[i] for i in part[s]] + ([*node.taken] if s == 0 else [])
            values = ([] if node.count is None else [node.count]) + values
            explicit[s] = [self.at(v, s, out) for v in values]
        blocks = []
        if node.condition is not None:
            feeds = {s: [node.condition.feeds[i] for i in part[s]] for s in sides}
            test = node.condition.fetches
            blocks.append(self.inner(node.condition, feeds, {s: list(test) for s in sides}))
        feeds = {s: [node.parameters[i] for i in part[s]] + lists[s] for s in sides}
        kept = {s: [*node.kept_values] if s == 0 else [] for s in sides}
        give = {s: [node.next_values[i] for i in part[s]] + kept[s] for s in sides}
        blocks.append(self.inner(node.body, feeds, give))
        for s in sides:
            own = tuple([b[s] for b in blocks])
            results = [node.results[i] for i in part[s]]
            outputs = [*results, node.trip_count, *(node.kept if s == 0 else ())]
            op = dataclasses.replace(node.op, variables=len(part[s]), lists=len(lists[s]))
            inputs = (*explicit[s], *outer_values(own))
            self.made(node, s, inputs, outputs, op, own, out)
