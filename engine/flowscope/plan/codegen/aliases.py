"""Values that are only brought to another device of the host: both have one local variable.

So the code of a block does not change by a character when an operation is moved to another CPU.
The variable is free when the last of its values has died.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowscope.ops.core.send_recv import Transfer
from flowscope.plan.codegen.variants import Probe
from flowscope.plan.ir.kernels import is_assignment
from flowscope.plan.ir.program import Node

if TYPE_CHECKING:
    from flowscope.plan.codegen.function import BlockScope, Writer


def is_aliased(writer: Writer, scope: BlockScope, node: Node) -> bool:
    """Has the value that a transfer gives share a variable with the one that it takes, if it can.

    Not in blocks, which give their variables back as a whole, nor where each node is told of.
    """
    if type(node.op) is not Transfer or len(writer.scopes) > 1 or type(writer.probe) is not Probe:
        return False
    (source,), (made,) = node.inputs, node.outputs
    name, raw = writer.place.get(source), writer.unboxed.values
    if name is None or source in raw or made in raw or made not in scope.last_use:
        return False
    if not is_assignment(node):
        return False
    if name[0] == "s":
        writer.sharers[name] = writer.sharers.get(name, 0) + 1
    writer.place[made] = name
    writer.release(scope, node)
    return True


__all__ = ["is_aliased"]
