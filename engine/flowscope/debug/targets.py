"""Targets: which operations a breakpoint means, and at which nodes of a plan it stands."""

from __future__ import annotations

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import Const
from flowscope.graph.graph import Graph
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.ops.core.send_recv import Crossing
from flowscope.plan.ir.program import Node
from flowscope.plan.plan import Plan


@frozen
class BreakpointTarget:
    """What a breakpoint was asked for: exactly one of an operation, a scope, a type and a line.

    Attributes:
        op: The name of an operation.
        scope: The name of a scope: all operations in it.
        op_type: An op type: all operations of it.
        line: A line, from 1: all operations that it made, directly or through functions.
        cell: The notebook cell that the line is in, by its execution count.
        file: The file that the line is in, or the end of its name; "" for any.
    """

    op: str = ""
    scope: str = ""
    op_type: str = ""
    line: int = 0
    cell: int | None = None
    file: str = ""

    def means(self, op: Operation) -> bool:
        """Whether it means an operation."""
        if self.op:
            return op.name == self.op
        if self.scope:
            return op.name.startswith(f"{self.scope}/")
        if self.op_type:
            return op.type == self.op_type
        return self.line > 0 and any(
            p.line == self.line
            and (self.cell is None or p.cell == self.cell)
            and (not self.file or p.filename.endswith(self.file))
            for p in op.origin.places
        )

    def __str__(self) -> str:
        if self.op:
            return f'"{self.op}"'
        if self.scope:
            return f'scope "{self.scope}"'
        if self.op_type:
            return f"every {self.op_type}"
        if not self.line:
            return "everything"
        place = f" of cell {self.cell}" if self.cell is not None else ""
        return f"line {self.line}{place}" + (f" of {self.file}" if self.file else "")


def target(
    graph: Graph,
    op: Operation | Tensor | str | None,
    scope: str | None,
    op_type: str | None,
    line: int | None,
    cell: int | None,
    file: str | None,
) -> BreakpointTarget:
    """Returns the target of a breakpoint; see `Debugger.break_before` for the arguments.

    Raises:
        InvalidArgumentError: if not exactly one of op, scope, op_type and line is given.
        NotFoundError: if the graph has no such operation.
    """
    given = {"op": op, "scope": scope, "op_type": op_type, "line": line}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise InvalidArgumentError(
            f"a breakpoint: expected one of op, scope, op_type and line, got {named or 'none'}"
        )
    if (cell is not None or file) and line is None:
        raise InvalidArgumentError("a breakpoint: cell and file say where `line` is: give a line")
    if op is None:
        scope = (scope or "").rstrip("/")
        return BreakpointTarget("", scope, op_type or "", line or 0, cell, file or "")
    found = graph.as_graph_element(op)
    return BreakpointTarget(found.op.name if isinstance(found, Tensor) else found.name)


@frozen
class Standing:
    """Where a breakpoint stands in a plan for one operation.

    Attributes:
        op: The operation.
        nodes: The nodes of the plan; () where it stands nowhere.
        why: What stands in the operation's place, as a sentence; "" where it stands itself.
    """

    op: Operation
    nodes: tuple[Node, ...]
    why: str

    def __str__(self) -> str:
        at = ", ".join(f'"{n.name}"' for n in self.nodes)
        found = f'"{self.op.name}"'
        if at != found:
            found += f" stands at {at}" if at else " stands nowhere"
        return f"{found}: {self.why}" if self.why else found


class PlanPlaces:
    """Where operations stand in a plan.

    Args:
        plan: The plan.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._own: dict[int, list[Node]] = {}
        self._parts: dict[int, list[Node]] = {}
        for node in plan.program.walk():
            is_own = not (isinstance(node.op, Const | Crossing) or node.op.is_handle)
            if is_own and node.origins:
                self._own.setdefault(node.origins[0].id, []).append(node)
                for origin in node.origins[1:]:
                    self._parts.setdefault(origin.id, []).append(node)

    def of(self, target: BreakpointTarget, is_after: bool) -> list[Standing]:
        """Returns where the operations stand that a target means."""
        meant = [op for op in self.plan.operations.values() if target.means(op)]
        return [self.standing(op, is_after) for op in sorted(meant, key=lambda op: op.id)]

    def standing(self, op: Operation, is_after: bool) -> Standing:
        """Returns where an operation stands; of several parts the first, or after it the last."""
        if op.id in self._own:
            return Standing(op, tuple(self._own[op.id]), "")
        answers = [at for t in op.outputs for at in self.plan.locate(t)]
        for at in answers:
            if at.kind in ("constant", "fed"):
                return Standing(op, (), at.why)
            if at.kind == "same" and at.value is not None and at.value.node is not None:
                return Standing(op, (at.value.node,), at.why)
        if op.id in self._parts:
            why = "it is computed as a part of this" if not is_after else "its last part is this"
            parts = self._parts[op.id]
            return Standing(op, (parts[-1 if is_after else 0],), why)
        return Standing(op, (), answers[0].why if answers else "nothing that is run needs it")


__all__ = ["BreakpointTarget", "PlanPlaces", "Standing", "target"]
