"""Order: dependencies first, and side effects on one variable in program order."""

from __future__ import annotations

from flowscope.errors import InvalidArgumentError
from flowscope.graph.operation import where
from flowscope.graph.values.dtypes import resource
from flowscope.plan.ir.origins import named
from flowscope.plan.ir.program import Node, Program, Value, is_back_edge
from flowscope.plan.ir.rewriting import changed, in_order, with_nodes


def order(program: Program) -> Program:
    """Returns the program with its nodes in an order that respects data, control and side effects.

    Among the orders that are possible it is the one closest to the order of creation, which is
    program order. So reads and writes of one variable run as the user wrote them.

    Raises:
        InvalidArgumentError: if control dependencies contradict program order on a variable.
    """
    nodes = sorted(program.nodes, key=lambda n: n.order)
    position = {n: i for i, n in enumerate(nodes)}
    if not all(
        all(position[p] < i for p in n.control)
        and all(
            position.get(v.node, -1) < i or is_back_edge(v, n)  # type: ignore[arg-type]
            for v in n.inputs
        )
        for i, n in enumerate(nodes)
    ):
        nodes = _sorted(nodes, position)
    _check_handles(nodes)
    program = with_nodes(program, nodes)
    ordered = {n: tuple([order(b) for b in n.blocks]) for n in nodes if n.blocks}
    return changed(program, {n: {"blocks": b} for n, b in ordered.items() if b != n.blocks})


def _check_handles(nodes: list[Node]) -> None:
    """Raises an error if the step writes a variable that is fed."""
    for node in nodes:
        if node.writes_state and any(_is_fed_handle(v) for v in node.inputs):
            facts = where(node.origins[0]) if node.origins else {}
            raise InvalidArgumentError(
                "a variable that is fed cannot be written in the same step"
            ).located(op=named(node.name, node.origins), op_type=node.op.type, **facts)


def _is_fed_handle(value: Value) -> bool:
    return value.node is None and value.spec.dtype is resource


def _sorted(nodes: list[Node], position: dict[Node, int]) -> list[Node]:
    before = {n: _awaited(n, position) | set(n.control) for n in nodes}
    for n, earlier in effects(nodes).items():
        before[n] |= earlier
    done = in_order(nodes, before)
    if len(done) < len(nodes):
        reached = set(done)
        stuck = ", ".join(f'"{n.name}"' for n in nodes if n not in reached)
        raise InvalidArgumentError(
            "control dependencies contradict the order in which a variable is read and written: "
            + stuck
        )
    return done


def _awaited(node: Node, position: dict[Node, int]) -> set[Node]:
    found = [v.node for v in node.inputs if not is_back_edge(v, node)]
    return {n for n in found if n is not None and n in position}


def effects(nodes: list[Node]) -> dict[Node, set[Node]]:
    """Returns, per node, the accesses to the same variable that must come before it."""
    edges: dict[Node, set[Node]] = {}
    last_write: dict[Node, Node] = {}
    reads: dict[Node, list[Node]] = {}
    for node in nodes:
        for handle in node.handles:
            if handle in last_write:
                edges.setdefault(node, set()).add(last_write[handle])
            if node.writes_state:
                edges.setdefault(node, set()).update(reads.pop(handle, ()))
                last_write[handle] = node
            else:
                reads.setdefault(handle, []).append(node)
    return edges
