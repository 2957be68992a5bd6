"""The machine that placement by cost reckons with: devices, their memories, who computes when."""

from __future__ import annotations

from collections.abc import Sequence

from flowscope.plan.device_profile import DeviceProfile
from flowscope.plan.memories import host_of, memory_of


class Machine:
    """The devices of a session, by numbers.

    CPUs share the cores of the process: there are as many *lanes* of CPUs as there are cores that
    steps may use. Every other device has a lane of its own.

    Args:
        names: Full names of the devices, best first.
        profiles: How quick each of them is.
        cores: How many threads a step may use.

    Attributes:
        names: As above.
        types: Their types.
        profiles: As above.
        memories: Per device the number of its memory; 0 is the host's.
        lanes: Per device the number of its lane; 0 is the host thread's.
        lane_count: How many lanes there are.
        limits: Bytes that each memory can take; 0 where that is not known.
        latency_s: Per memory the seconds that a crossing from or to the host's takes at least.
        seconds_per_byte: Per memory what each byte of such a crossing takes on top.
    """

    def __init__(
        self, names: Sequence[str], profiles: Sequence[DeviceProfile], cores: int = 1
    ) -> None:
        self.names = tuple(names)
        self.types = tuple([n.rpartition("device:")[2].partition(":")[0] for n in names])
        self.profiles = tuple(profiles)
        self.numbers = {name: i for i, name in enumerate(self.names)}
        memories = {host_of(self.names[0]): 0}
        self.memories = tuple([memories.setdefault(memory_of(n), len(memories)) for n in names])
        cpus = max(1, min(cores, sum(m == 0 for m in self.memories)))
        lanes: list[int] = []
        seen = 0
        for memory in self.memories:
            lanes.append(seen % cpus if memory == 0 else cpus + memory - 1)
            seen += memory == 0
        self.lanes = tuple(lanes)
        self.lane_count = max(lanes) + 1
        self.limits = [0] * len(memories)
        self.latency_s = [0.0] * len(memories)
        self.seconds_per_byte = [0.0] * len(memories)
        for memory, profile in zip(self.memories, self.profiles, strict=True):
            self.limits[memory] = max(self.limits[memory], profile.memory_bytes)
            if memory and profile.link is not None:
                self.latency_s[memory] = profile.link.latency_s
                self.seconds_per_byte[memory] = 1 / profile.link.bytes_per_s

    def crossing_s(self, nbytes: float, source: int, target: int) -> float:
        """Returns the seconds that bytes take from one memory to another; 0 within one."""
        if source == target:
            return 0.0
        latency_s = self.latency_s[source] + self.latency_s[target]
        return latency_s + nbytes * (self.seconds_per_byte[source] + self.seconds_per_byte[target])


__all__ = ["Machine"]
