"""The machine that placement by cost reckons with: devices, their memories, who computes when."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flowscope.plan.analysis.device_profile import DeviceProfile, Link
from flowscope.plan.ir.memories import host_of, is_host, memory_of


def at_once(one: str, other: str) -> Link:
    """Returns the link between two processes where it takes no time."""
    return Link(bytes_per_s=float("inf"), latency_s=0.0)


class PlacementMachine:
    """The devices of a session, by numbers.

    CPUs share the cores of the process: there are as many *lanes* of CPUs as there are cores that
    steps may use. Every other device has a lane of its own.

    Args:
        names: Full names of the devices, best first.
        profiles: How quick each of them is.
        cores: How many threads a step may use.
        link_of: Returns the link between the hosts of two devices that are not in one process.

    Attributes:
        names: As above.
        types: Their types.
        profiles: As above.
        memories: Per device the number of its memory; 0 is the host's.
        lanes: Per device the number of its lane; 0 is the host thread's.
        lane_count: How many lanes there are.
        limits: Bytes that each memory can take; 0 where that is not known.
        latency_s: Per memory, and memory that it goes to, the seconds that a crossing takes at
            least.
        seconds_per_byte: Per pair what each byte takes on top.
    """

    def __init__(
        self,
        names: Sequence[str],
        profiles: Sequence[DeviceProfile],
        cores: int = 1,
        link_of: Callable[[str, str], Link] = at_once,
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
        own = [at_once("", "")] * len(memories)
        for name, memory, profile in zip(names, self.memories, self.profiles, strict=True):
            self.limits[memory] = max(self.limits[memory], profile.memory_bytes)
            if not is_host(name) and profile.link is not None:
                own[memory] = profile.link
        ways = [[_way(a, b, own, link_of) for b in memories.items()] for a in memories.items()]
        self.latency_s = [[sum(k.latency_s for k in way) for way in row] for row in ways]
        self.seconds_per_byte = [[sum(1 / k.bytes_per_s for k in w) for w in row] for row in ways]

    def crossing_s(self, nbytes: float, source: int, target: int) -> float:
        """Returns the seconds that bytes take from one memory to another; 0 within one."""
        return self.latency_s[source][target] + nbytes * self.seconds_per_byte[source][target]


def _way(
    source: tuple[str, int],
    target: tuple[str, int],
    own: Sequence[Link],
    link_of: Callable[[str, str], Link],
) -> list[Link]:
    """Returns the links between two memories: a device's, the one between hosts, a device's."""
    if source == target:
        return []
    found = [own[source[1]], own[target[1]]]
    if host_of(source[0]) != host_of(target[0]):
        found.append(link_of(source[0], target[0]))
    return found


__all__ = ["PlacementMachine", "at_once"]
