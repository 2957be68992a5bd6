"""What a schedule costs, predicted: bytes over links, bytes of memory, flops, operations.

On workers ranks compute side by side, and a collective takes as long as a rank sends. In one
process they share memory and cores: nothing is sent, and the work of all ranks adds up. What is
predicted is an order among schedules, from which a tuner takes a few to measure.

Source: bytes of ring collectives, Thakur, Rabenseifner and Gropp 2005.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowscope.coconet.layouts import Local
from flowscope.coconet.sizes import BoundSizes
from flowscope.coconet.stage_graph import StageGraph, StageNode, units
from flowscope.coconet.stage_ops import (
    AllGatherStage,
    AllReduceStage,
    BroadcastStage,
    MatMulStage,
    ReduceScatterStage,
    ReduceStage,
    SendStage,
    SliceStage,
    TotalStage,
)
from flowscope.coconet.values import ValueType
from flowscope.graph.lazy import frozen


@frozen
class RankMachine:
    """How quick the machines and links of ranks are.

    Attributes:
        memory_bytes_per_s: Bytes that a process reads and writes in a second.
        flops_per_s: Floating-point operations of products of matrices in a second.
        link_bytes_per_s: Bytes that a rank sends in a second; 0 where ranks share a process.
        latency_s: Seconds that a small message takes.
        operation_s: Seconds that it takes to call an operation.
    """

    memory_bytes_per_s: float = 8e9
    flops_per_s: float = 5e10
    link_bytes_per_s: float = 0.0
    latency_s: float = 1e-4
    operation_s: float = 1e-5

    @property
    def is_shared(self) -> bool:
        """Whether ranks share a process."""
        return not self.link_bytes_per_s


@frozen
class PredictedCost:
    """What a schedule, or a part of it, costs.

    Attributes:
        seconds: How long it takes.
        sent_bytes: Bytes that a rank sends, at most.
        memory_bytes: Bytes that a rank reads and writes.
        flops: Floating-point operations of products on a rank.
        operations: Operations of a rank.
    """

    seconds: float
    sent_bytes: float
    memory_bytes: float
    flops: float
    operations: int

    def __add__(self, other: PredictedCost) -> PredictedCost:
        return PredictedCost(
            self.seconds + other.seconds,
            self.sent_bytes + other.sent_bytes,
            self.memory_bytes + other.memory_bytes,
            self.flops + other.flops,
            self.operations + other.operations,
        )


NOTHING = PredictedCost(0.0, 0.0, 0.0, 0.0, 0)


class _Costs:
    """The costs of the units of a graph."""

    def __init__(self, graph: StageGraph, sizes: BoundSizes, machine: RankMachine) -> None:
        self.graph = graph
        self.sizes = sizes
        self.machine = machine

    def whole(self, spec: ValueType) -> float:
        """Bytes of the whole value."""
        found = float(spec.dtype.size)
        for d in spec.shape:
            found *= self.sizes.length(d)
        return found

    def part(self, spec: ValueType) -> float:
        """Bytes that a rank has of a value."""
        return self.whole(spec) / (self.ranks(spec) if spec.layout.is_sliced else 1)

    def ranks(self, spec: ValueType) -> int:
        return self.sizes.count(spec)

    def of(
        self, ranks: int, sent: float, memory: float, flops: float, calls: int, waits: int
    ) -> PredictedCost:
        """The cost of these amounts, each of one rank."""
        m = self.machine
        times = ranks if m.is_shared else 1
        seconds = times * (
            memory / m.memory_bytes_per_s + flops / m.flops_per_s + calls * m.operation_s
        )
        if not m.is_shared:
            seconds += sent / m.link_bytes_per_s + waits * m.latency_s
        return PredictedCost(seconds, 0.0 if m.is_shared else sent, memory, flops, calls)

    def stage(self, stage: StageNode) -> PredictedCost:
        """The cost of a stage that runs by itself."""
        op, spec = stage.op, stage.type
        n, own = self.ranks(spec), self.part(spec)
        source = self.graph.by_name[stage.sources[0]].type if stage.sources else spec
        whole, read = (
            self.whole(spec),
            sum(self.part(self.graph.by_name[x].type) for x in stage.sources),
        )
        away = whole * (n - 1) / n
        match op:
            case AllReduceStage():  # in one process one rank folds for all
                memory = (n + 1) * whole / n if self.machine.is_shared else 3 * whole
                return self.of(n, 2 * away, memory, 0, 1, 2)
            case ReduceScatterStage():
                return self.of(n, away, (n + 1) * whole / n, 0, 1, 1)
            case AllGatherStage():
                memory = 2 * whole / n if self.machine.is_shared else 2 * whole
                if op.updates:
                    memory += 2 * whole
                return self.of(n, away, memory, 0, 1, 1)
            case ReduceStage() | BroadcastStage():
                return self.of(n, whole * (n - 1), 2 * whole, 0, 1, 1)
            case SendStage():
                return self.of(n, own, own, 0, 1, 1)
            case SliceStage():
                return self.of(n, 0, 0, 0, 1, 0)
            case TotalStage():
                waits = source.layout.is_sliced
                return self.of(n, 8.0 * waits, 2 * read, 0, 3, int(waits))
            case MatMulStage():
                inner = self.sizes.length(source.shape[-1])
                if source.layout.dim == source.rank - 1:
                    inner = -(-inner // n)
                return self.of(n, 0, read + own, 2 * inner * own / spec.dtype.size, 1, 0)
        if self.graph.writes_state(stage):
            read += own  # the value is copied to the variable
        return self.of(n, 0, read + own, 0, 1, 0)

    def group(self, stages: Sequence[StageNode]) -> PredictedCost:
        """The cost of a fused group: memory for what comes in and what stays."""
        names = {s.name for s in stages}
        found, seen = NOTHING, set[str]()
        memory, count = 0.0, 0
        n = self.ranks(stages[0].type)
        for s in stages:
            if not s.op.is_elementwise:
                cost = self.stage(s)
                is_scatter = isinstance(s.op, ReduceScatterStage)
                if is_scatter:  # slices are read where they are folded, and the sum is not written
                    cost = self.of(n, cost.sent_bytes, self.whole(s.type), 0, 1, 1)
                found += cost
                continue
            count += 1
            for x in s.sources:
                if x not in names and x not in seen:
                    seen.add(x)
                    memory += self.part(self.graph.by_name[x].type)
            if self.graph.is_used_outside(s.name, names) or self.graph.writes_state(s):
                memory += self.part(s.type) * (2 if self.graph.writes_state(s) else 1)
        return found + self.of(n, 0, memory, 0, 1 if count else 0, 0)

    def unit(self, stages: Sequence[StageNode]) -> PredictedCost:
        """The cost of what runs in one go."""
        chain = self.graph.chain_of.get(stages[0].name)
        if chain is None:
            return self.run(stages)
        parts = []
        for name in chain:
            members = set(self.graph.members(name))
            parts.append(self.run([s for s in stages if s.name in members]))
        total = NOTHING
        for one in parts:
            total += one
        if self.machine.is_shared:
            return total  # one process: chunks take turns
        longest = max(one.seconds for one in parts)
        rest = (total.seconds - longest) / 2  # with two chunks, the first and the last wait
        return PredictedCost(
            longest + rest, total.sent_bytes, total.memory_bytes, total.flops, 2 * total.operations
        )

    def run(self, stages: Sequence[StageNode]) -> PredictedCost:
        if stages[0].name in self.graph.group_of:
            return self.group(stages)
        found = NOTHING
        for s in stages:
            found += self.stage(s)
        return found


def predicted(
    graph: StageGraph,
    lengths: Mapping[str, int],
    ranks: Mapping[str, int],
    machine: RankMachine,
) -> tuple[PredictedCost, dict[str, PredictedCost]]:
    """The cost of a graph of stages, and of each part that runs in one go, by its last stage."""
    costs = _Costs(graph, BoundSizes(ranks, lengths), machine)
    parts = {unit[-1].name: costs.unit(unit) for unit in units(graph)}
    total = NOTHING
    for one in parts.values():
        total += one
    return total, parts


def state_bytes(graph: StageGraph, lengths: Mapping[str, int], ranks: Mapping[str, int]) -> Any:
    """Bytes that a rank keeps of arguments that are updated."""
    costs = _Costs(graph, BoundSizes(ranks, lengths), RankMachine())
    kept = [a.type for a in graph.arguments if a.is_state]
    return sum(costs.part(t) for t in kept if t.layout != Local)


__all__ = ["PredictedCost", "RankMachine", "predicted", "state_bytes"]
