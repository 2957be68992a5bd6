"""How quick devices and the links between their memories are, as costs and simulations take it.

A device class states its profile (`runtime.devices.device.Device.profile`). A CPU's is what
`plan.analysis.costs` was measured on; that of any other device says how it differs. Simulated
placement and the fake accelerator's virtual clock reckon with the same figures.
"""

from __future__ import annotations

from flowscope.graph.lazy import frozen


@frozen
class Link:
    """The way between a device's memory and the host's, in either direction.

    Attributes:
        bytes_per_s: Bytes that cross in a second.
        latency_s: Seconds that any crossing takes, however small.
    """

    bytes_per_s: float = 8e9
    latency_s: float = 10e-6

    def seconds(self, nbytes: float) -> float:
        """The seconds of a transfer of so many bytes."""
        return self.latency_s + nbytes / self.bytes_per_s


@frozen
class DeviceProfile:
    """How quick a device is.

    Attributes:
        speed: How many times the work of one core of a CPU it does in the same time.
        call_s: Seconds that each call of an array function takes beside its work.
        link: How values come into its memory; None where that is the host's.
        memory_bytes: Bytes of memory that programs may fill; 0 where that is not known.
    """

    speed: float = 1.0
    call_s: float = 1e-6
    link: Link | None = None
    memory_bytes: int = 0

    def seconds(self, work_s: float, calls: int = 1) -> float:
        """The seconds of a kernel.

        Args:
            work_s: Seconds that its work takes one core of a CPU.
            calls: How many array functions it calls.
        """
        return calls * self.call_s + work_s / self.speed


#: Of a CPU.
CPU_PROFILE = DeviceProfile()


def transfer_s(nbytes: float, source: DeviceProfile, target: DeviceProfile) -> float:
    """The seconds of a transfer between the memories of two devices.

    Between two memories that are not the host's they cross the host's.
    """
    return sum(p.link.seconds(nbytes) for p in (source, target) if p.link is not None)


__all__ = ["CPU_PROFILE", "DeviceProfile", "Link", "transfer_s"]
