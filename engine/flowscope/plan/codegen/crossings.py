"""Send and Recv in generated code, for a partition that runs on a thread of its own.

The function takes its mailboxes at its head. A Send puts its value into one; a Recv takes one out,
and waits in place where none is there yet: in the global order its Send stands before it, so
nobody waits for ever. Between two iterations a loop that sends waits for credit.

    x0, x1, = mailboxes()
    s3 = x0.receive(gate) if x0.values else receive(x0, p5, gate, run, locals())
    x1.send(s4)
    if x1.is_ahead(10, 65536): wait_for_credit(x1, 10, 65536, p6, gate, run, locals())
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from flowscope.graph.current_step import current_step
from flowscope.ops.core.send_recv import Recv, Send
from flowscope.plan.codegen.safepoints import STRETCH_S, Safepoint
from flowscope.plan.codegen.variants import Probe
from flowscope.plan.ir.crossings import credits, keys
from flowscope.plan.ir.memories import host_of
from flowscope.plan.ir.program import Node
from flowscope.plan.ir.structured import LoopNode

if TYPE_CHECKING:
    from flowscope.plan.codegen.function import BlockScope, Writer


def write_mailboxes(writer: Writer) -> None:
    """Writes the line that takes the mailboxes, where the function sends or receives."""
    found = keys(writer.region.nodes)
    if found:
        writer.mailboxes = {key: f"x{i}" for i, key in enumerate(found)}
        writer.namespace["mailboxes"] = partial(_mailboxes, tuple(found))
        writer.namespace.update(receive=_receive, wait_for_credit=_wait_for_credit)
        writer.emit(f"{', '.join(writer.mailboxes.values())}, = mailboxes()")


def write_crossing(writer: Writer, scope: BlockScope, node: Node) -> None:
    """Writes a Send or a Recv."""
    box = writer.mailboxes[node.op.key]  # type: ignore[attr-defined]
    if isinstance(node.op, Recv):
        _write_recv(writer, scope, node, box)
        return
    value = node.inputs[0]
    names = (writer.place[value],)
    send = "send_with_next" if _is_followed(writer, scope, node) else "send"
    text = f"{box}.{send}({writer.boxed(value)})"
    gone = writer.release(scope, node)
    writer.emit(text + (writer.clear(scope, gone) if gone else ""), node, names)


def _is_followed(writer: Writer, scope: BlockScope, node: Node) -> bool:
    """Whether another value goes to the same process soon, and nobody waits before that.

    Then both travel as one message. Nothing lies between but other Sends and operations without
    effects, and no safepoint: so the next Send comes whatever others do, and within the work of one
    stretch. Not in loops: there values of several iterations are joined by time.
    """
    if len(writer.scopes) > 1 or type(writer.probe) is not Probe or writer.sections:
        return False
    to, work = _process_of(node), writer.work
    for later in scope.nodes[scope.index + 1 :]:
        op = later.op
        work += writer.costs.seconds(later)
        if work > STRETCH_S or later.blocks or not (op.is_pure or isinstance(op, Send)):
            return False
        if isinstance(op, Send) and _process_of(later) == to:
            return True
    return False


def _process_of(node: Node) -> str:
    """The name of the process to which a Send goes."""
    return host_of(node.op.recv_device)  # type: ignore[attr-defined]


def _write_recv(writer: Writer, scope: BlockScope, node: Node, box: str) -> None:
    value = node.outputs[0]
    if scope.index in scope.unsafe:
        text = f"{box}.receive(gate, None, False)"
    else:
        point = writer.point(False)
        waiting = f"receive({box}, {point}, gate, run, locals())"
        text = f"{box}.receive(gate) if {box}.values else {waiting}"
    target = writer.slot(scope.wishes.get(value))
    writer.place[value] = target
    writer.emit(f"{target} = {text}", node, ())
    if value not in scope.last_use:
        writer.release_names([writer.place.take(value)])
    writer.work = STRETCH_S  # a step that waited here while it was paused goes no farther


def write_credits(writer: Writer, node: LoopNode, is_safe: bool) -> None:
    """Writes where a loop waits that has run ahead, at the end of its iterations."""
    for credit in credits(node):
        box, most = writer.mailboxes[credit.key], f"{credit.most}, {credit.nbytes}"
        if is_safe:
            point = writer.point(True)
            what = f"wait_for_credit({box}, {most}, {point}, gate, run, locals())"
        else:
            what = f"{box}.throttle({most}, gate, None, False)"
        writer.emit(f"if {box}.is_ahead({most}): {what}", node)


def _mailboxes(found: tuple[str, ...]) -> list[Any]:
    channel = current_step().channel
    return [channel.mailbox(key) for key in found]


def _receive(box: Any, point: Safepoint, gate: Any, run: Any, live: dict[str, Any]) -> Any:
    return _waited(partial(box.receive, gate), point, run, live)


def _wait_for_credit(
    box: Any, most: int, nbytes: int, point: Safepoint, gate: Any, run: Any, live: dict[str, Any]
) -> None:
    _waited(partial(box.throttle, most, nbytes, gate), point, run, live)


def _waited(wait: Callable[..., Any], point: Safepoint, run: Any, live: dict[str, Any]) -> Any:
    try:
        return wait(point.here(run, live))
    finally:
        live.clear()


__all__ = ["write_credits", "write_crossing", "write_mailboxes"]
