"""Splitting: what it is predicted to save if each device of a program has a thread of its own.

Small operations hold the interpreter, so threads overlap with nothing but large ones. Outside of
loops these are computed early by other threads anyway (`plan.passes.forks`). What is left are loops
whose bodies lie on several devices: one device may work for an iteration while another one does for
the next. Each value that crosses in an iteration costs a message.
"""

from __future__ import annotations

from flowscope.ops.core.send_recv import Transfer
from flowscope.plan.analysis.costs import Costs
from flowscope.plan.analysis.device_profile import DeviceProfile
from flowscope.plan.ir.program import Node, Program
from flowscope.plan.ir.structured import LoopNode
from flowscope.plan.placement.machine import PlacementMachine
from flowscope.plan.placement.schedule import HAND_OVER_S
from flowscope.plan.placement.simulation import Prediction

#: What has to be saved at least, as in `plan.passes.forks`.
WORTH_S = 300e-6
#: What does less than this holds the interpreter for a good part of its time.
_LARGE_S = 50e-6
#: A message whose receiver waits for it.
_MESSAGE_S = 25e-6


def pays(program: Program, machine: PlacementMachine, costs: Costs) -> bool:
    """Whether a thread for each device saves more than it costs.

    Args:
        program: The program, with transfers.
        machine: The devices, and how many threads a step may use.
        costs: What nodes take, and how often they run.
    """
    if machine.lane_count < 2 or not any(map(_is_shared, program.nodes)):
        return False
    return gain_s(program, machine, costs) >= WORTH_S


def gain_s(program: Program, machine: PlacementMachine, costs: Costs) -> float:
    """Returns the seconds that a step is predicted to take less on a thread per device."""
    large = _LargeCosts(costs)
    one_thread = Prediction(program, machine, large, True).run()
    apart = Prediction(program, machine, large, False).run()
    lost = _messages(program, costs, 1.0) * _MESSAGE_S + machine.lane_count * HAND_OVER_S
    return one_thread - apart - lost


class _LargeCosts(Costs):
    """The costs of what frees the interpreter."""

    def __init__(self, costs: Costs) -> None:
        vars(self).update(vars(costs))
        self._costs = costs

    def seconds_on(self, node: Node, device_type: str, profile: DeviceProfile) -> float:
        """Returns the seconds of one invocation on a device; 0 where they are few."""
        found = self._costs.seconds_on(node, device_type, profile)
        return found if found >= _LARGE_S else 0.0


def _messages(program: Program, costs: Costs, often: float) -> float:
    """Returns how many values cross in a step."""
    found = 0.0
    for node in program.nodes:
        times = often * costs.trips(node) if isinstance(node, LoopNode) else often
        found += often * isinstance(node.op, Transfer)
        found += sum(_messages(b, costs, times) for b in node.blocks)
    return found


def _is_shared(node: Node) -> bool:
    """Whether a node is a loop on several devices, or has one in it."""
    inside = [n for b in node.blocks for n in b.walk()]
    if isinstance(node, LoopNode):
        return len({n.device for n in inside if not n.blocks}) > 1
    return any(map(_is_shared, inside))


__all__ = ["WORTH_S", "gain_s", "pays"]
