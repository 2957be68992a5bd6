"""Place: a device for every node. So far the first device that the wish and the kernels allow."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from flowscope.errors import InvalidArgumentError
from flowscope.graph.devices import DeviceSpec
from flowscope.graph.op import has_kernel
from flowscope.graph.operation import where
from flowscope.plan.program import Node, Program


def place(program: Program, devices: Sequence[DeviceSpec], soft: bool) -> Program:
    """Returns the program with `device` and `reason` set on every node.

    Args:
        program: An ordered program.
        devices: The devices of the session, best first.
        soft: Whether a wish that cannot be fulfilled is passed over, with a note.

    Raises:
        InvalidArgumentError: if a wish cannot be fulfilled and `soft` is not set.
    """
    memo: dict[tuple[str, type], tuple[str, str, bool]] = {}
    notes: list[str] = []
    for node in program.nodes:
        key = (node.requested, type(node.op))
        if key not in memo:
            memo[key] = _choose(node, devices, soft)
        node.device, node.reason, moved = memo[key]
        if moved:
            notes.append(f'"{node.name}": {node.reason}')
    return dataclasses.replace(program, notes=(*program.notes, *notes))


def _choose(node: Node, devices: Sequence[DeviceSpec], soft: bool) -> tuple[str, str, bool]:
    able = [d for d in devices if has_kernel(node.op, d.device_type or "")]
    wish = DeviceSpec.from_string(node.requested)
    allowed = [d for d in able if wish.allows(d)]
    if allowed:
        reason = (
            f"asked for {node.requested}" if node.requested else "the first device with a kernel"
        )
        return str(allowed[0]), reason, False
    if able and soft:
        return str(able[0]), f"asked for {node.requested}, which is not there; moved", True
    names = ", ".join(str(d) for d in devices)
    what = (
        f"no device fits {node.requested!r}"
        if able
        else f"no device has a kernel for {node.op.type}"
    )
    hint = "; ConfigProto(allow_soft_placement=True) would move it" if able else ""
    error = InvalidArgumentError(f"{what}; this session has {names}{hint}")
    facts = where(node.origins[0]) if node.origins else {}
    raise error.located(op=node.name, op_type=node.op.type, **facts)
