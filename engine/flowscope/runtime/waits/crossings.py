"""Send and Recv in the machine of tokens: by iterations, and nobody waits in place.

A Recv is begun and left alone, as all that waits for others. A Send hands its value over at once;
in a loop that has run ahead as far as it may, it is done only once others have read. Its iteration
is done no sooner, and so the window of its loop bounds how far it goes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flowscope.graph.current_step import current_step
from flowscope.ops.core.send_recv import Recv, Send
from flowscope.plan.ir.crossings import send_credit
from flowscope.plan.ir.program import Node

if TYPE_CHECKING:
    from flowscope.executor.frames import Iteration
    from flowscope.executor.static import Unit


def crossing(node: Node) -> Callable[[Any, Unit, Iteration, list[Any]], Any]:
    """A function for a Send or Recv: (step, unit, iteration, inputs) -> outputs, or None."""
    return _receive if isinstance(node.op, Recv) else _send


def awaited_device(op: Send | Recv) -> str:
    """Returns the device that a Send or a Recv waits for."""
    return op.send_device if isinstance(op, Recv) else op.recv_device


def _receive(step: Any, unit: Unit, it: Iteration, inputs: list[Any]) -> Any:
    op: Any = unit.node.op
    box, tag = current_step().channel.tagged(op.key), it.path

    def begin(finish: Callable[[Any], None]) -> Callable[[], None]:
        def finished(value: Any) -> None:
            finish(value if isinstance(value, BaseException) else (value,))

        if (value := box.receive(tag, finished)) is not None:
            finish(value)
        return lambda: box.forget(tag)

    step.wait_for(unit, it, begin)
    return None


def _send(step: Any, unit: Unit, it: Iteration, inputs: list[Any]) -> Any:
    op: Any = unit.node.op
    box = current_step().channel.tagged(op.key)
    box.send(inputs[0], it.path)
    most, frame = send_credit(unit.node, it.frame.static.window) if it.path else 0, it.path[:-1]
    if not most or box.unread(frame) < most:
        step.told(unit, it, ())
        return ()

    def begin(finish: Callable[[Any], None]) -> Callable[[], None]:
        if box.when_below(most, frame, lambda: finish(())):
            finish(())
        return lambda: None

    step.wait_for(unit, it, begin)
    return None


__all__ = ["awaited_device", "crossing"]
