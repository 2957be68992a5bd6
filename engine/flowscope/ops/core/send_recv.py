"""Send and Recv: how a value gets from the partition of one device to that of another.

Users do not build with them. A plan puts them where an edge crosses from one device to another, one
pair per tensor and receiving device, also in the bodies of loops and in branches; both carry the
same key. Within one process a Recv is an assignment: see `flowscope.plan.merging`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from flowscope.graph.dtypes import DType
from flowscope.graph.op import Cost, Op, Spec, frozen
from flowscope.graph.shapes import Dims


class Transfer(Op, abstract=True):
    """Base class of Send and Recv: what goes from which device to which."""

    is_stateful: ClassVar[bool] = True
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
class Send(Transfer):
    """Hands a value to the Recv with the same key; it never waits.

    Attributes:
        tensor_name: The tensor's name.
        send_device: Full name of the device that has it.
        recv_device: Full name of the device that gets it.
    """

    tensor_name: str
    send_device: str
    recv_device: str

    def infer(self, value: Spec) -> Any:
        return ()


@frozen
class Recv(Transfer):
    """Takes the value that the Send with the same key hands over; waits until it is there.

    Attributes:
        tensor_name: The tensor's name.
        send_device: Full name of the device that has it.
        recv_device: Full name of the device that gets it.
        dtype: The value's dtype.
        shape: Its shape, as far as it is known.
    """

    is_blocking: ClassVar[bool] = True
    tensor_name: str
    send_device: str
    recv_device: str
    dtype: DType
    shape: Dims

    def infer(self) -> Spec:
        return Spec(self.dtype, self.shape)


__all__: list[str] = []
