"""Runs the projections of a program as coroutines, which a scheduler takes in any order.

This is the reference: no thread, no code, a dictionary as the rendezvous. A part goes on until what
it receives is not there, or until at a back edge too much of what it has sent is unread.
"""

from __future__ import annotations

import functools
import random
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from flowscope.ops.core.send_recv import Recv, Send
from flowscope.plan.ir.invocation import Invoker
from flowscope.plan.ir.modules import Modules
from flowscope.plan.ir.program import Program
from flowscope.plan.ir.structured import CondNode, LoopNode
from flowscope.plan.passes.partition import Projection
from flowscope.runtime.state.random_generators import generator

#: A tag: the names of the loops around, and the numbers of their iterations.
Tag = tuple[tuple[str, int], ...]


class Projected:
    """One step of projections.

    Args:
        projections: What the devices run.
        feeds, states: The values of the step's feeds, and what its handles stand for, by name.
        run: The run, for random operations.
        seed: Says which part goes on when several can.
        window: So many messages of one key may be unread when an iteration begins.
        devices: The devices by name, where there are accelerators.
    """

    def __init__(
        self,
        projections: Sequence[Projection],
        feeds: Sequence[Any],
        states: dict[str, Any],
        run: Any,
        seed: int = 0,
        window: int = 1,
        devices: Mapping[str, Any] | None = None,
    ) -> None:
        self.projections = projections
        self.feeds, self.states = feeds, states
        self.window = window
        self.draw = functools.partial(generator, run)
        self.random = random.Random(seed)
        nodes = [n for p in projections for n in p.program.walk()]
        self.modules = Modules(np, devices, nodes)
        #: Per key what was sent and not received, with its tag.
        self.sent: defaultdict[str, deque[tuple[Tag, Any]]] = defaultdict(deque)
        self.messages = 0
        self.loops: list[tuple[str, str]] = []

    def run(self) -> list[Any]:
        """Returns the values of the fetches; fails if all parts wait for each other."""
        current = self.modules.current
        with nullcontext() if current is None else current.active():
            return self._run()

    def _run(self) -> list[Any]:
        parts = {p.device: self._part(p) for p in self.projections}
        found: dict[int, Any] = {}
        numbers = {p.device: p.fetched for p in self.projections}
        idle: set[str] = set()
        while parts:
            device = self.random.choice(sorted(parts))
            try:
                has_moved = next(parts[device])
            except StopIteration as end:
                found |= dict(zip(numbers[device], end.value, strict=True))
                del parts[device]
                has_moved = True
            idle = set() if has_moved else idle | {device}
            assert not parts or idle != set(parts), f"all wait for each other: {sorted(parts)}"
        assert not any(self.sent.values()), "something that was sent is never received"
        return [found[i] for i in sorted(found)]

    def _part(self, part: Projection) -> Iterator[Any]:
        values = {v: self.feeds[v.index] for v in part.program.feeds}
        values |= {n.outputs[0]: self.states[n.name] for n in part.program.nodes if n.op.is_handle}
        return self._block(part.program, values, (), part.device)

    def _block(self, block: Program, values: dict[Any, Any], tag: Tag, device: str) -> Any:
        for node in block.nodes:
            if node.op.is_handle:
                continue
            inputs = [values[v] for v in node.inputs]
            outputs: Any = ()
            if isinstance(node.op, Send):
                self.sent[node.op.key].append((tag, inputs[0]))
                self.messages += 1
                yield True
            elif isinstance(node.op, Recv):
                while not self.sent[node.op.key]:
                    yield False
                at, value = self.sent[node.op.key].popleft()
                assert at == tag, f"{node.op.key} of {at} has come in {tag}"
                outputs = (value,)
                yield True
            elif isinstance(node, CondNode):
                taken = node.then if values[node.pred] else node.orelse
                outputs = yield from self._block(taken, dict(values), tag, device)
            elif isinstance(node, LoopNode):
                outputs = yield from self._loop(node, inputs, values, tag, device)
            else:
                iterations = tuple([i for _, i in tag])
                outputs = Invoker(node, self.modules)(self.draw, iterations, inputs)
            values.update(zip(node.outputs, outputs, strict=True))
        return [values[v] for v in block.fetches]

    def _loop(self, node: LoopNode, inputs: Any, values: Any, tag: Tag, device: str) -> Any:
        self.loops.append((device, node.name))
        n, first = node.variables, node.op.first
        limit = int(inputs[0]) if node.count is not None else None
        state = inputs[first : first + n]
        lists = inputs[first + n : first + n + node.lists]
        kept: list[Any] = [None] * len(node.kept)
        sends = [m for b in node.blocks for m in b.walk() if isinstance(m.op, Send)]
        count = 0
        while limit is None or count < limit:
            inside = (*tag, (node.name, count))
            if node.condition is not None:
                given = values | dict(zip(node.condition.feeds, state, strict=True))
                (goes_on,) = yield from self._block(node.condition, given, inside, device)
                if not goes_on:
                    break
            elements = [pair[0] for pair in lists]
            lists = [pair[1] for pair in lists]
            given = values | dict(zip(node.body.feeds, [*state, *elements], strict=True))
            results = yield from self._block(node.body, given, inside, device)
            state = results[:n]
            kept = [(value, before) for value, before in zip(results[n:], kept, strict=True)]
            count += 1
            while any(len(self.sent[m.op.key]) >= self.window for m in sends):
                yield False
        return [*state, np.int64(count), *kept]


__all__ = ["Projected"]
