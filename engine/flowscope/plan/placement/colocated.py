"""What operations are colocated with that are not in the plan: their wishes count all the same.

TensorFlow places whole graphs, so operations that `colocate_with` names are always there. Here what
a step does not need is in no plan, and nothing else would tell that two of them ask for different
devices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from flowscope.errors import InvalidArgumentError
from flowscope.graph.devices import contradict
from flowscope.graph.operation import Operation, where
from flowscope.plan.ir.origins import named
from flowscope.plan.ir.program import Node, Program


def check_colocation(program: Program, nodes: Sequence[Node], soft: bool) -> list[str]:
    """Returns notes about operations outside of a plan that contradict who is colocated with them.

    Args:
        program: The plan's program.
        nodes: Its colocated nodes.
        soft: Whether that is passed over, with a note.

    Raises:
        InvalidArgumentError: if it is not.
    """
    notes = []
    inside = {origin.name for n in program.walk() for origin in n.origins}
    for node in nodes:
        for other in _outside(node, inside):
            if other.device and contradict(other.device, node.requested):
                what = (
                    f'"{node.name}" is colocated with "{other.name}", which asks for '
                    f"{other.device} in {other.origin.place}, and with what asks for "
                    f"{node.requested}"
                )
                if not soft:
                    raise _refusal(node, what)
                notes.append(f"{what}; the latter counts")
    return notes


def _outside(node: Node, inside: Collection[str]) -> Iterator[Operation]:
    """Yields the operations that a node is colocated with and that are in no node of the plan."""
    operation = node.origins[0].operation
    if operation is None:  # the program was made in another process, and placed there
        return
    for name in node.origins[0].colocation:
        if name in inside:
            continue
        try:
            found = operation.graph.get_operation_by_name(name)
        except (KeyError, ValueError):
            continue
        yield found


def _refusal(node: Node, what: str) -> InvalidArgumentError:
    error = InvalidArgumentError(
        f"{what}: colocate it with one of them, or set ConfigProto(allow_soft_placement=True)"
    )
    facts = where(node.origins[0])
    return error.located(op=named(node.name, node.origins), op_type=node.op.type, **facts)


__all__ = ["check_colocation"]
