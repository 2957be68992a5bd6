"""Where operations are placed, for views: what was asked, what was chosen, and why."""

from __future__ import annotations

from flowscope.live.placement_schema import AskPlacement, OpPlacementState, Placement
from flowscope.ops.core.send_recv import Transfer
from flowscope.plan.plan import Plan
from flowscope.runtime.session import Session


def placement(session: Session | None, asked: AskPlacement) -> Placement:
    """Returns the answer to a question about devices."""
    if session is None:
        what = "no session runs this graph"
        return Placement(asked.request_id, what, (), None, view=asked.view)
    devices = tuple(device.name for device in session.devices)
    plan = session.latest_plan
    op = None if plan is None else _op(plan, asked.name)
    return Placement(asked.request_id, "", devices, op, view=asked.view)


def _op(plan: Plan, name: str) -> OpPlacementState | None:
    """Returns where an operation stands; None where the plan has no node of it."""
    for node in plan.program.walk():
        is_own = not isinstance(node.op, Transfer)
        if is_own and any(origin.name == name for origin in node.origins):
            found = node.op.type, node.requested, node.device, node.reason
            return OpPlacementState(name, *found, candidates=())
    return None


__all__ = ["placement"]
