"""What a step takes on simulated devices: it runs, and a virtual clock is read.

Fake accelerators advance their own time lines as they run. What runs on a CPU takes the host's time
as `plan.analysis.costs` says for the shapes that the step has; the same figures stand behind the
placement by simulation, whose predictions can so be held against runs without a GPU.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.lazy import frozen
from flowscope.graph.op import Spec
from flowscope.ops.core.send_recv import Transfer
from flowscope.plan.analysis.costs import estimate
from flowscope.plan.ir.kernels import device_type
from flowscope.plan.ir.program import Node, Value
from flowscope.runtime.devices.fake import FakeDevice

if TYPE_CHECKING:
    from flowscope.runtime.devices.virtual_clock import VirtualClock
    from flowscope.runtime.session.session import Session


@frozen
class SimulatedStep:
    """A step on simulated devices.

    Attributes:
        seconds: What it took, on the virtual clock.
        waited_s: Seconds of that in which the host waited for devices.
        busy_s: Seconds that each fake device computed, by its full name.
    """

    seconds: float
    waited_s: float
    busy_s: dict[str, float]


def simulated_step(
    session: Session, fetches: Any, feed_dict: Mapping[Any, Any] | None = None
) -> SimulatedStep:
    """Runs a step, with all its effects, and returns what it would take.

    Args:
        session: A session with fake devices.
        fetches, feed_dict: As for `Session.run`.

    Raises:
        InvalidArgumentError: if the session has no fake devices.
    """
    fakes = [d for d in session.list_devices() if isinstance(d, FakeDevice)]
    if not fakes:
        raise InvalidArgumentError(
            "expected a session with simulated devices: fs.ConfigProto(fake_devices=...)"
        )
    given = dict(feed_dict or {})
    call = copy.copy(session._call(fetches, given, session.config.mode))
    feeds = tuple([c(v) for c, v in zip(call.converters, given.values(), strict=True)])
    clock, before = fakes[0].clock, [d.usage().busy_s for d in fakes]
    host = _Host(clock, dict(zip(call.plan.program.feeds, feeds, strict=True)))
    call.function = call.wrap(call.plan.executable.probed(host))
    start, waited = clock.now_s, clock.waited_s
    session._step(call, feeds)
    for device in fakes:
        device.synchronize()
    busy = {d.name: d.usage().busy_s - b for d, b in zip(fakes, before, strict=True)}
    return SimulatedStep(clock.now_s - start, clock.waited_s - waited, busy)


class _Host:
    """Is told of each invocation, and takes the host's time for those on CPUs."""

    def __init__(self, clock: VirtualClock, values: Mapping[Value, Any]) -> None:
        self._clock = clock
        self._shapes = {v: getattr(a, "shape", ()) for v, a in values.items()}

    def __call__(self, node: Node, iterations: tuple[int, ...], outputs: Sequence[Any]) -> None:
        for value, array in zip(node.outputs, outputs, strict=False):
            self._shapes[value] = getattr(array, "shape", ())
        if node.blocks or device_type(node) != "CPU" or isinstance(node.op, Transfer):
            return
        self._clock.work(
            estimate(node, *[tuple(map(self._spec, vs)) for vs in (node.inputs, node.outputs)])
        )

    def _spec(self, value: Value) -> Spec:
        if value.spec.dtype.kind in "rv":
            return value.spec
        return Spec(value.spec.dtype, self._shapes.get(value, value.spec.shape))


__all__ = ["SimulatedStep", "simulated_step"]
