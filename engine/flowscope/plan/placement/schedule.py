"""A schedule: when each node of a program would run, on which device, with what brought to it.

It is filled in the program's order, which is that in which a step does its work. A lane does one
thing after the other: a core, or an accelerator. A value is brought into another memory once, and
from its first use on it is there; a link brings one value after the other, in either direction.

In a step of one thread the host gives all work to the devices in the program's order, and waits
where it needs a value of theirs. A node that runs often - in a loop of so many iterations, in a
branch of such a share of steps - counts so often: all runs of it are reckoned as one piece.

Source: simulated greedy execution as in the TensorFlow white paper, section 3.2.1; the finish times
of heterogeneous scheduling are those of HEFT (Topcuoglu, Hariri and Wu 2002), without insertion.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowscope.plan.ir.program import Value
from flowscope.plan.placement.machine import PlacementMachine

#: Seconds that it takes to hand a value from one thread to another.
HAND_OVER_S = 51e-6


class SimulatedSchedule:
    """What is known so far of a simulated step.

    Args:
        machine: The devices.
        is_one_thread: Whether one thread gives work to all devices.

    Attributes:
        ready: Per value when it is there, and the memory and the lane that it is in.
        moved_bytes: Bytes that were brought from one memory to another.
        busy: Per lane the seconds that it works.
        end_s: When all is done.
    """

    def __init__(self, machine: PlacementMachine, is_one_thread: bool = False) -> None:
        self._machine = machine
        self._is_one_thread = is_one_thread
        self.ready: dict[Value, tuple[float, int, int]] = {}
        self.moved_bytes = 0.0
        self.end_s = 0.0
        lanes, memories = machine.lane_count, len(machine.limits)
        self.busy = [0.0] * lanes
        #: When each lane is free; the first is the host's thread.
        self._free = [0.0] * lanes
        #: When each link is free, inwards and outwards.
        self._links = [[0.0] * memories, [0.0] * memories]
        #: What was brought into another memory, and when it is there.
        self._copies: dict[tuple[Value, int], float] = {}

    def starts(
        self, inputs: Sequence[Value], places: Sequence[tuple[int, int]], often: Sequence[float],
        nbytes: Sequence[float], floor: float,
    ) -> list[float]:  # fmt: skip
        """Returns when work could begin in each of some places: see `arrival` and `start`.

        Args:
            inputs: What it takes, all of it `ready`.
            places: Memories and lanes.
            often: How often each input would cross.
            nbytes: Bytes of each input.
            floor: Before this it cannot begin.
        """
        machine, is_one = self._machine, self._is_one_thread
        latency, per_byte = machine.latency_s, machine.seconds_per_byte
        inwards, outwards = self._links
        host = self._free[0] if is_one else 0.0
        known = [(v, *self.ready[v], o, n) for v, o, n in zip(inputs, often, nbytes, strict=True)]
        found = []
        for memory, lane in places:
            start = max(self._free[lane], floor, host)
            for value, at, source, by, times, size in known:
                if source != memory:
                    copied = self._copies.get((value, memory))
                    if copied is None:
                        at = max(at, inwards[memory], outwards[source], host)
                        at += times * (latency[source][memory] + size * per_byte[source][memory])
                    else:
                        at = copied
                elif by != lane and not memory and not is_one:
                    at += HAND_OVER_S
                if at > start:
                    start = at
            found.append(start)
        return found

    def arrival(self, value: Value, memory: int, lane: int, seconds: float) -> float:
        """Returns when a value would be there for a lane, if its crossing takes so long."""
        at, source, by = self.ready[value]
        if source == memory:
            waits = by != lane and not memory and not self._is_one_thread
            return at + HAND_OVER_S if waits else at
        copied = self._copies.get((value, memory))
        if copied is not None:
            return copied
        start = max(at, self._links[0][memory], self._links[1][source])
        if self._is_one_thread:
            start = max(start, self._free[0])
        return start + seconds

    def start(self, lane: int, arrivals: Sequence[float]) -> float:
        """Returns when work could begin whose inputs arrive then."""
        found = self._free[lane]
        if self._is_one_thread:
            found = max(found, self._free[0])
        for at in arrivals:
            found = max(found, at)
        return found

    def bring(self, value: Value, memory: int, lane: int, seconds: float, nbytes: float) -> float:
        """Brings a value to a lane; returns when it is there."""
        found = self.arrival(value, memory, lane, seconds)
        _, source, _ = self.ready[value]
        if source != memory and (value, memory) not in self._copies:
            self._copies[value, memory] = found
            self.moved_bytes += nbytes
            if memory:
                self._links[0][memory] = found
            if source:
                self._links[1][source] = found
            if found > self.end_s:
                self.end_s = found
        if not memory and source and self._is_one_thread and found > self._free[0]:
            self._free[0] = found  # the host waits for what it reads
        return found

    def run(
        self, lane: int, arrivals: Sequence[float], seconds: float, issue_s: float = 0.0
    ) -> float:
        """Has a lane work so long once its inputs are there; returns when it is done.

        Args:
            lane: The lane.
            arrivals: When its inputs are there.
            seconds: How long it works.
            issue_s: What it takes the one thread to give the work to another lane.
        """
        start = self.start(lane, arrivals)
        if self._is_one_thread and lane:
            self._free[0] += issue_s
        done = self._free[lane] = start + seconds
        self.busy[lane] += seconds
        if done > self.end_s:
            self.end_s = done
        return done


__all__ = ["HAND_OVER_S", "SimulatedSchedule"]
