"""Transfer, Send and Recv: how a value gets from one device to another; and TripCount.

Users do not build with them. A plan puts a transfer where an edge crosses from one device to
another, one per tensor and receiving device, also in the bodies of loops and in branches. In the
partitions of the two devices it is a Send and a Recv, which carry the same key.
"""

from __future__ import annotations

from typing import Any, ClassVar

from flowscope.graph.op import Cost, Op, Spec, frozen
from flowscope.graph.values.dtypes import DType, int64
from flowscope.graph.values.shapes import Dims
from flowscope.ops.core.lossy_transfers import FromUpperHalf, UpperHalf


class Crossing(Op, abstract=True):
    """Base class of Transfer, Send and Recv: what goes from which device to which."""

    is_differentiable: ClassVar[bool] = False
    tensor_name: str
    send_device: str
    recv_device: str

    @property
    def key(self) -> str:
        """What a Send and its Recv have in common; frame and iteration come on top in a step."""
        return f"{self.send_device};{self.recv_device};{self.tensor_name}"

    def cost(self, inputs: tuple[Spec, ...], outputs: tuple[Spec, ...]) -> Cost:
        return Cost(0.0, sum(s.nbytes or 0 for s in (*inputs, *outputs)))


@frozen
class Transfer(Crossing):
    """Brings a value from one device to another, or from a device's memory to the host's and back.

    Attributes:
        tensor_name: The tensor's name.
        send_device: Full name of the device that has it.
        recv_device: Full name of the device that gets it; the same one where only the memory is
            another.
        to_host: Whether it comes into the host's memory, for the inputs that steer a device.
        is_lossy: Whether the upper 16 bits of each number go over alone: see `lossy_transfer`.
    """

    tensor_name: str
    send_device: str
    recv_device: str
    to_host: bool = False
    is_lossy: bool = False
    views: ClassVar[tuple[int, ...]] = (0,)

    @property
    def host_outputs(self) -> tuple[int, ...]:  # type: ignore[override]
        """What comes into the host's memory is there."""
        return (0,) if self.to_host else ()

    def infer(self, value: Spec) -> Spec:
        return value

    def kernel(self, device: Any, value: Any) -> Any:
        """Returns the value in the memory of a device, which stands in the place of `xp`."""
        found = device.put(value)
        if not self.is_lossy:
            return found
        return FromUpperHalf().kernel(device.xp, UpperHalf().kernel(device.xp, found))


@frozen
class Send(Crossing):
    """Hands a value to the Recv with the same key; it never waits.

    Attributes:
        tensor_name: The tensor's name.
        send_device: Full name of the device that has it.
        recv_device: Full name of the device that gets it.
    """

    is_stateful: ClassVar[bool] = True
    tensor_name: str
    send_device: str
    recv_device: str

    def infer(self, value: Spec) -> Any:
        return ()


@frozen
class Recv(Crossing):
    """Takes the value that the Send with the same key hands over; waits until it is there.

    Attributes:
        tensor_name: The tensor's name.
        send_device: Full name of the device that has it.
        recv_device: Full name of the device that gets it.
        dtype: The value's dtype.
        shape: Its shape, as far as it is known.
    """

    is_stateful: ClassVar[bool] = True
    is_blocking: ClassVar[bool] = True
    tensor_name: str
    send_device: str
    recv_device: str
    dtype: DType
    shape: Dims

    def infer(self) -> Spec:
        return Spec(self.dtype, self.shape)


@frozen
class TripCount(Op):
    """How often a loop runs whose first variable counts up to a limit.

    Attributes:
        step: By how much it counts in every iteration; at least 1.
        is_inclusive: Whether it runs with the limit, too.
    """

    is_differentiable: ClassVar[bool] = False
    host_inputs: ClassVar[tuple[int, ...]] = (0, 1)
    host_outputs: ClassVar[tuple[int, ...]] = (0,)
    step: int
    is_inclusive: bool

    def infer(self, start: Spec, limit: Spec) -> Spec:
        return Spec(int64, ())

    def kernel(self, xp: Any, start: Any, limit: Any) -> Any:
        distance = int(limit) - int(start) + self.is_inclusive
        return xp.int64(max(0, -(-distance // self.step)))


__all__: list[str] = []
