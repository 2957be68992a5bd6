"""Simulated execution of a program: on devices that are given, or on those that finish first.

Simulated greedy execution: from the sources on, in the program's order, each node takes
the device on which it would finish first. What it takes there follows from the costs of that moment
(`plan.analysis.costs`), from what has to be brought to it, and from how often it runs; a device
whose memory would be full is passed over. The first node of a component that does some work chooses
for all of it. What does none - a constant, a variable that is read - goes along with the first node
that uses it.

The same walk, with devices that are given, predicts how long a step takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from flowscope.control.lists import EmptyList
from flowscope.graph.constant import Const
from flowscope.graph.values.dtypes import resource
from flowscope.plan.analysis.costs import Costs
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import CondNode, LoopNode
from flowscope.plan.placement.machine import PlacementMachine
from flowscope.plan.placement.makers import Makers
from flowscope.plan.placement.schedule import SimulatedSchedule

#: A component's nodes, and the numbers of the devices that it can have.
Group = tuple[Sequence[Node], Sequence[int]]


class Simulation:
    """One simulated step.

    Args:
        program: The program, in order.
        machine: The devices.
        costs: What nodes take, how often they run, what values hold.
        is_one_thread: Whether one thread gives work to all devices.

    Attributes:
        schedule: When things happen.
        places: Numbers of the nodes' devices; those with blocks have none.
        finish_s: When nodes are done.
        peaks: Per memory the most bytes that were there at once.
        full: Nodes for which no device had the memory.
    """

    def __init__(
        self, program: Program, machine: PlacementMachine, costs: Costs, is_one_thread: bool
    ) -> None:
        self.schedule = SimulatedSchedule(machine, is_one_thread)
        self.places: dict[Node, int] = {}
        self.finish_s: dict[Node, float] = {}
        self.peaks = [0.0] * len(machine.limits)
        self.full: list[Node] = []
        self._program = program
        self._machine = machine
        self._costs = costs
        self._is_one_thread = is_one_thread
        #: Values that are there on whichever device asks, and when.
        self._floating: dict[Value, float] = {}
        #: How often values are made anew.
        self._often: dict[Value, float] = dict.fromkeys(program.feeds, 1.0)
        self._used = [0.0] * len(machine.limits)
        #: Uses that are still to come, and the memories of values that are alive.
        self._uses: Counter[Value] = Counter()
        self._alive: dict[Value, int] = {}
        self._has_limits = any(machine.limits)
        #: Bytes of values, and what invocations take.
        self._sizes: dict[Value, int] = {}
        self._takes: dict[Node, list[float]] = {}
        #: Per device the numbers of its memory and lane.
        self._at = list(zip(machine.memories, machine.lanes, strict=True))
        self._profiles = list(dict.fromkeys(zip(machine.types, machine.profiles, strict=True)))
        kinds = {p: i for i, p in enumerate(self._profiles)}
        #: Per device the number of its type and profile.
        self._kinds = [kinds[p] for p in zip(machine.types, machine.profiles, strict=True)]

    def run(self) -> float:
        """Simulates the step; returns its seconds."""
        if self._has_limits:
            self._uses.update(v for n in self._program.walk() for v in n.inputs)
            self._uses.update(self._program.fetches)
        self.schedule.ready.update((v, (0.0, 0, 0)) for v in self._program.feeds)
        self._block(self._program, 1.0)
        for value in self._program.fetches:
            self._come(value, 0, 0, 1.0)
        return self.schedule.end_s

    @property
    def is_over_full(self) -> bool:
        """Whether a memory holds more than it can."""
        limits = self._machine.limits
        return any(limit and peak > limit for peak, limit in zip(self.peaks, limits, strict=True))

    # -- the walk -------------------------------------------------------------------------------

    def _block(self, program: Program, often: float) -> None:
        for node in program.nodes:
            if isinstance(node, LoopNode):
                self._loop(node, often)
            elif isinstance(node, CondNode):
                self._branch(node, often)
            elif _does_nothing(node):
                self._stand(node, often)
            else:
                self._work(node, often)

    def _loop(self, loop: LoopNode, often: float) -> None:
        inside = often * self._costs.trips(loop)
        for i, start in enumerate(loop.starts):
            self._carry(loop, i, start, often)
        for taken, element in zip(loop.taken, loop.elements, strict=True):
            self._stands_for(element, taken)
            self._often[element] = inside
        for block in loop.blocks:
            self._often.update(dict.fromkeys(block.feeds, inside))
        for condition in loop.conditions:
            self._block(condition, inside)
            self._come(condition.fetches[0], 0, 0, inside)
        self._block(loop.body, inside)
        made = [*loop.next_values, None, *loop.kept_values]
        for value, source in zip(loop.outputs, made, strict=True):
            self._often[value] = often
            if source is None:
                self.schedule.ready[value] = self.schedule.end_s, 0, 0
            else:
                self._stands_for(value, source)

    def _carry(self, loop: LoopNode, index: int, start: Value, often: float) -> None:
        """Has the loop's blocks know a variable before the first iteration."""
        for block in loop.blocks:
            self._stands_for(block.feeds[index], start)
            self._float(block.feeds[index])

    def _float(self, value: Value) -> None:
        """Has a value be there on whichever device asks first."""
        if value in self.schedule.ready:
            self._floating[value] = self.schedule.ready.pop(value)[0]

    def _branch(self, branch: CondNode, often: float) -> None:
        self._come(branch.pred, 0, 0, often)
        share = self._costs.share(branch)
        self._block(branch.then, often * share)
        self._block(branch.orelse, often * (1 - share))
        for i, value in enumerate(branch.outputs):
            self._often[value] = often
            ends = [b.fetches[i] for b in branch.blocks]
            found = [v for v in ends if v in self.schedule.ready]
            self._stands_for(value, max(found, key=self._ready_s) if found else ends[0])

    def _ready_s(self, value: Value) -> float:
        return self.schedule.ready[value][0]

    def _stands_for(self, value: Value, source: Value) -> None:
        if source in self.schedule.ready:
            self.schedule.ready[value] = self.schedule.ready[source]
        else:
            self._floating[value] = self._floating.get(source, 0.0)

    # -- nodes ----------------------------------------------------------------------------------

    def _stand(self, node: Node, often: float) -> None:
        """Has a constant, a handle or a variable's value be there."""
        self.finish_s[node] = 0.0
        for value in node.outputs:
            self._often[value] = often
            if _is_everywhere(node):
                self._floating[value] = 0.0
            else:
                self._stand_at(value, self.places[node])

    def _stand_at(self, value: Value, device: int) -> None:
        self._floating.pop(value, None)
        machine = self._machine
        self.schedule.ready[value] = 0.0, machine.memories[device], machine.lanes[device]

    def _work(self, node: Node, often: float) -> None:
        self._finish(node, self.places[node], often, self._seconds(node))

    def _seconds(self, node: Node) -> list[float]:
        """The seconds of an invocation, per type and profile of devices."""
        found = self._takes.get(node)
        if found is None:
            found = [self._costs.seconds_on(node, *kind) for kind in self._profiles]
            self._takes[node] = found
        return found

    def take_costs_of(self, other: Simulation) -> None:
        """Takes over what another simulation of the program has found of its costs."""
        self._takes, self._sizes = other._takes, other._sizes

    def _finish(self, node: Node, device: int, often: float, seconds: Sequence[float]) -> None:
        """Runs a node on a device."""
        machine = self._machine
        memory, lane = machine.memories[device], machine.lanes[device]
        in_host = _positions(node.op.host_inputs, len(node.inputs))
        arrivals = [
            self._come(v, 0 if i in in_host else memory, lane, often)
            for i, v in enumerate(node.inputs)
            if v.spec.dtype is not resource
        ]
        takes, issue_s = often * seconds[self._kinds[device]], 0.0
        if memory and self._is_one_thread:  # the host's thread makes the calls
            issue_s = often * min(machine.profiles[device].call_s, seconds[self._kinds[device]])
            takes -= issue_s
        done = self.schedule.run(lane, arrivals, takes, issue_s)
        self.finish_s[node] = done
        on_host = _positions(node.op.host_outputs, len(node.outputs))
        for i, value in enumerate(node.outputs):
            self._often[value] = often
            self.schedule.ready[value] = done, 0 if i in on_host else memory, lane
        if self._has_limits:
            self._fill(node, memory)

    def _come(self, value: Value, memory: int, lane: int, often: float) -> float:
        """Brings a value to a lane; returns when it is there."""
        if value not in self.schedule.ready:
            return self._floating.get(value, 0.0)  # 0 where a loop made by hand closes
        nbytes, seconds = self._crossing(value, memory, often)
        return self.schedule.bring(value, memory, lane, seconds, nbytes)

    def _crossing(self, value: Value, memory: int, often: float) -> tuple[float, float]:
        """Returns the bytes and seconds of bringing a value into a memory, as often as it must."""
        source = self.schedule.ready[value][1]
        if source == memory:
            return 0.0, 0.0
        times = min(often, self._often.get(value, 1.0))
        nbytes = self._nbytes(value)
        return times * nbytes, times * self._machine.crossing_s(nbytes, source, memory)

    def _fill(self, node: Node, memory: int) -> None:
        """Counts the memory that values take until their last use."""
        used = self._used
        for value in node.outputs:
            if self._uses[value]:
                used[memory] += self._nbytes(value)
                self._alive[value] = memory
        self.peaks[memory] = max(self.peaks[memory], used[memory])
        for value in node.inputs:
            self._uses[value] -= 1
            if not self._uses[value] and value in self._alive:
                used[self._alive.pop(value)] -= self._nbytes(value)

    def _hold(self, node: Node, device: int) -> None:
        """Counts the memory of a variable, which lasts."""
        if node.op.is_handle:
            memory = self._machine.memories[device]
            self._used[memory] += sum(self._nbytes(v) for v in node.outputs)
            self.peaks[memory] = max(self.peaks[memory], self._used[memory])

    def _nbytes(self, value: Value) -> int:
        found = self._sizes.get(value)
        if found is None:
            found = self._sizes[value] = self._costs.nbytes(value)
        return found


class Prediction(Simulation):
    """A step on devices that are given.

    Args:
        program, machine, costs, is_one_thread: As for `Simulation`.
        devices: The nodes' devices by name; their own `device` by default.
    """

    def __init__(
        self,
        program: Program,
        machine: PlacementMachine,
        costs: Costs,
        is_one_thread: bool = True,
        devices: Mapping[Node, str] | None = None,
    ) -> None:
        super().__init__(program, machine, costs, is_one_thread)
        self._makers = Makers(program)
        for node in program.walk():
            if not node.blocks:
                name = node.device if devices is None else devices[node]
                self.places[node] = machine.numbers.get(name, 0)
                self._hold(node, self.places[node])

    def _carry(self, loop: LoopNode, index: int, start: Value, often: float) -> None:
        """Brings a variable to where its next value is made."""
        maker = self._makers.maker(loop.next_values[index])
        if maker is None or _is_everywhere(maker):
            return super()._carry(loop, index, start, often)
        device = self.places[maker]
        memory, lane = self._machine.memories[device], self._machine.lanes[device]
        at = self._come(start, memory, lane, often)
        for block in loop.blocks:
            self.schedule.ready[block.feeds[index]] = at, memory, lane
        return None


class Greedy(Simulation):
    """A step whose nodes take the devices on which they finish first.

    Args:
        program, machine, costs: As for `Simulation`.
        groups: The components and the devices that each can have.
        asked: Of components that have a device, by their positions.
        is_one_thread: As for `Simulation`.
        explains: Whether devices are tried for all nodes, those that have one too.

    Attributes:
        tried: Per node that has chosen, when it would be done by device; None where it would not
            fit into the memory.
    """

    def __init__(
        self,
        program: Program,
        machine: PlacementMachine,
        costs: Costs,
        groups: Sequence[Group],
        asked: Mapping[int, int],
        is_one_thread: bool = False,
        explains: bool = False,
    ) -> None:
        super().__init__(program, machine, costs, is_one_thread)
        self._explains = explains
        self.tried: dict[Node, dict[int, float | None]] = {}
        self._groups = groups
        self._group = {n: i for i, (nodes, _) in enumerate(groups) for n in nodes}
        self._chosen: dict[int, int] = {}
        #: Values of variables that have no place yet, by group.
        self._waiting: dict[int, list[Value]] = {}
        #: The group of each such value.
        self._unplaced: dict[Value, int] = {}
        for i, device in asked.items():
            self._choose(i, device)

    def run(self) -> float:
        """Simulates the step; returns its seconds. All nodes have a place then."""
        found = super().run()
        for i, (_, devices) in enumerate(self._groups):
            if i not in self._chosen:
                self._choose(i, devices[0])
        return found

    def _choose(self, group: int, device: int) -> None:
        self._chosen[group] = device
        for node in self._groups[group][0]:
            self.places[node] = device
            self._hold(node, device)
        for value in self._waiting.pop(group, ()):
            del self._unplaced[value]
            self._stand_at(value, device)

    def _stand(self, node: Node, often: float) -> None:
        group = self._group[node]
        if group in self._chosen or _is_everywhere(node):
            return super()._stand(node, often)
        self.finish_s[node] = 0.0
        for value in node.outputs:
            self._often[value] = often
            self._floating[value] = 0.0
            self._unplaced[value] = group
            self._waiting.setdefault(group, []).append(value)
        return None

    def _work(self, node: Node, often: float) -> None:
        group = self._group[node]
        seconds = self._seconds(node)
        device = self._chosen.get(group)
        if device is None:
            device = self._best(node, group, often, seconds)
            self._choose(group, device)
        elif self._explains:
            self._best(node, group, often, seconds)
        for value in node.inputs:
            if value in self._unplaced:
                other = self._unplaced[value]
                devices = self._groups[other][1]
                self._choose(other, device if device in devices else devices[0])
        self._finish(node, device, often, seconds)

    def _best(self, node: Node, group: int, often: float, seconds: Sequence[float]) -> int:
        """Returns the device on which a node, and with it its component, finishes first."""
        nodes, devices = self._groups[group]
        if len(devices) == 1 and not self._explains:
            return devices[0]
        rest = self._rest(nodes, node, often) if len(nodes) > 1 else None
        starts = self._starts(node, devices, often)
        needs = self._needs_with_read(node) if self._has_limits else 0.0
        kinds, memories = self._kinds, self._machine.memories
        tried: dict[int, float | None] = {}
        best, first = -1, 0.0
        for device, start in zip(devices, starts, strict=True):
            if needs and self._is_full(memories[device], needs):
                tried[device] = None
                continue
            kind = kinds[device]
            at = tried[device] = start + often * seconds[kind]
            if rest is not None:
                at += rest[kind]
            if best < 0 or at < first:
                best, first = device, at
        self.tried[node] = tried
        if best < 0:
            self.full.append(node)
            return min(devices, key=lambda d: self._used[memories[d]])
        return best

    def _starts(self, node: Node, devices: Sequence[int], often: float) -> list[float]:
        """Returns when a node could begin on each of some devices."""
        ready, floor = self.schedule.ready, 0.0
        inputs = []
        for value in node.inputs:
            floating = self._floating.get(value)
            if floating is not None:
                floor = max(floor, floating)
            elif value in ready:
                inputs.append(value)
        times = [min(often, self._often.get(v, 1.0)) for v in inputs]
        sizes = [self._nbytes(v) for v in inputs]
        at = self._at
        return self.schedule.starts(inputs, [at[d] for d in devices], times, sizes, floor)

    def _rest(self, nodes: Sequence[Node], node: Node, often: float) -> list[float]:
        """The seconds of a component's other nodes, per type and profile of devices."""
        others = [self._seconds(n) for n in nodes if n is not node and not _does_nothing(n)]
        return [often * sum(column) for column in zip(*others, strict=True)] or [0.0] * len(
            self._profiles
        )

    def _is_full(self, memory: int, needs: float) -> bool:
        limit = self._machine.limits[memory]
        return bool(limit) and self._used[memory] + needs > limit

    def _needs_with_read(self, node: Node) -> float:
        """Returns the bytes of what a node makes, and of the variables that come with it."""
        waiting = {self._unplaced[v] for v in node.inputs if v in self._unplaced}
        read = sum(self._nbytes(v) for g in waiting for v in self._waiting[g])
        return read + sum(self._nbytes(v) for v in node.outputs)


def _does_nothing(node: Node) -> bool:
    """Whether a node stands for what is there already: a constant, a handle, a variable's value."""
    if _is_everywhere(node):
        return True
    op = node.op
    return op.reads_state and not op.writes_state and len(node.inputs) == 1


def _is_everywhere(node: Node) -> bool:
    return isinstance(node.op, (Const, EmptyList)) or node.op.is_handle


def _positions(chosen: Collection[int], count: int) -> frozenset[int]:
    """Returns positions of which negative ones count from the end."""
    return frozenset([i + count if i < 0 else i for i in chosen]) if chosen else _NONE


_NONE: frozenset[int] = frozenset()


__all__ = ["Greedy", "Group", "Prediction", "Simulation"]
