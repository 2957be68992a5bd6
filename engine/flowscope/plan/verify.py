"""The verifier: what holds of every program between two passes, and of a plan's partitions.

Tests run it behind every pass; plans are made without it. What it finds is a fault of a pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from flowscope.control.calls import Call
from flowscope.errors import InternalError
from flowscope.graph.values.dtypes import bool_, int64, resource, variant
from flowscope.graph.values.shapes import compatible
from flowscope.plan.ir.program import Node, Program, Value, is_back_edge, outer_values
from flowscope.plan.ir.structured import CondNode, LoopNode, StructuredNode
from flowscope.plan.partition.partitions import Partition
from flowscope.plan.partition.wait_order import unit_circle, waits_in_circle


def verify(program: Program, stage: str = "a pass", is_ordered: bool = True) -> None:
    """Raises InternalError if a program is not sound; it says what is wrong with which node.

    Every value is made before its use, in the same block or one around it; control inputs, targets
    and handles are there; specs are those that the ops infer; blocks take and give what their nodes
    hand them; and every node has an origin.

    Args:
        program: The program.
        stage: What has made it.
        is_ordered: Whether `passes.order` has run, so that the order of the nodes is checked too.
    """
    faults = [*_Verifier(is_ordered).block(program, frozenset(), frozenset())]
    if faults:
        shown = "\n  ".join(faults[:10])
        raise InternalError(f"{len(faults)} faults in the program after {stage}:\n  {shown}")


def verify_waits(partitions: Sequence[Partition]) -> None:
    """Raises InternalError if partitions that run apart would wait for each other for ever.

    Args:
        partitions: The partitions of a plan, with the code back ends that compile them.
    """
    programs = [p.program for p in partitions]
    back_ends = {p.back_end for p in partitions}
    if back_ends <= {"regions", "tokens"}:
        found = [n.name for n in unit_circle(programs, "regions" in back_ends)]
    else:
        found = list(waits_in_circle(programs))
    if found:
        raise InternalError(f"these wait for each other in a circle: {', '.join(found[:10])}")


class _Verifier:
    def __init__(self, is_ordered: bool) -> None:
        self._is_ordered = is_ordered

    def block(
        self, program: Program, values: frozenset[Value], around: frozenset[Node]
    ) -> Iterator[str]:
        """Yields the faults of a block.

        Args:
            program: The block.
            values: What is known where it stands.
            around: The nodes of the blocks around.
        """
        known = {*values, *program.feeds}
        whole = known.union(v for n in program.nodes for v in n.outputs)
        nodes = {*around, *program.nodes}
        done: set[Node] = set(around)
        if len(set(program.nodes)) < len(program.nodes):
            yield "a node stands in its block twice"
        for node in program.nodes:
            seen = known if self._is_ordered else whole
            for fault in self._node(node, seen, done if self._is_ordered else nodes, whole):
                yield f'"{node.name}" ({node.op.type}): {fault}'
            for block in node.blocks:
                yield from self.block(block, frozenset(seen), frozenset(done))
            known.update(node.outputs)
            done.add(node)
        yield from (f"the fetch {v.label} is missing" for v in program.fetches if v not in whole)
        yield from (f'the target "{n.name}" is missing' for n in program.targets if n not in nodes)

    def _node(
        self, node: Node, known: set[Value], done: set[Node], whole: set[Value]
    ) -> Iterator[str]:
        for v in node.inputs:
            if v not in known and not (is_back_edge(v, node) and v in whole):
                yield f"its input {v.label} comes not before it"
        yield from (f'"{n.name}" comes not before it' for n in node.control if n not in done)
        yield from (f'"{h.name}" is no handle' for h in node.handles if not _is_handle(h))
        for i, v in enumerate(node.outputs):
            if v.node is not node or v.index != i:
                yield f"its output {i} says that it is another"
        if not node.origins:
            yield "it has no origin"
        if isinstance(node.op, Call) or (isinstance(node, StructuredNode) and not node.blocks):
            return  # its functions are not inlined yet
        if isinstance(node, LoopNode):
            yield from _loop(node)
        elif isinstance(node, CondNode):
            yield from _cond(node)
        elif node.blocks:
            yield "it has blocks, and is neither a loop nor a branch"
        else:
            yield from _inferred(node)


def _is_handle(node: Node) -> bool:
    return node.op.is_handle or any(v.spec.dtype is resource for v in node.inputs)


def _inferred(node: Node) -> Iterator[str]:
    """Yields where a node's specs are not those that its op infers."""
    is_fed = any(v.node is None and v.spec.dtype is resource for v in node.inputs)
    if node.op.kernel_inputs is not None or is_fed:  # what is fed is the variable's value
        return
    found = node.op.infer(*[v.spec for v in node.inputs])
    specs = found if isinstance(found, tuple) else () if found is None else (found,)
    if len(specs) != len(node.outputs):
        yield f"it has {len(node.outputs)} outputs, and its op infers {len(specs)}"
    for v, spec in zip(node.outputs, specs, strict=False):
        if v.spec.dtype is not spec.dtype or not compatible(v.spec.shape, spec.shape):
            yield f"{v.label} is {v.spec}, and its op infers {spec}"


def _loop(node: LoopNode) -> Iterator[str]:
    n, lists = node.op.variables, node.op.lists
    yield from _block_inputs(node, node.op.first + n + lists)
    kept = len(node.body.fetches) - n
    yield from _count("parameters and elements", node.body.feeds, n + lists)
    yield from _count("outputs", node.outputs, n + 1 + kept)
    if kept < 0 or len(node.outputs) != n + 1 + kept:
        return
    for condition in node.conditions:
        yield from _count("parameters of the condition", condition.feeds, n)
        yield from _count("results of the condition", condition.fetches, 1)
        yield from _alike("the condition", condition.feeds, node.parameters)
        if condition.fetches[0].spec.dtype is not bool_:
            yield f"its condition is {condition.fetches[0].spec}"
    if node.condition is None and node.count is None:
        yield "nothing ends it"
    yield from _alike("the starts", node.starts, node.parameters)
    yield from _alike("the next values", node.next_values, node.parameters)
    yield from _alike("the results", node.results, node.parameters)
    if node.trip_count.spec.dtype is not int64:
        yield f"its trip count is {node.trip_count.spec}"
    for v in (*node.taken, *node.kept):
        if v.spec.dtype is not variant:
            yield f"{v.label} is {v.spec} and no list"


def _cond(node: CondNode) -> Iterator[str]:
    yield from _block_inputs(node, 1)
    if node.pred.spec.dtype is not bool_:
        yield f"it chooses by {node.pred.spec}"
    for name, block in zip(("then", "else"), node.blocks, strict=True):
        yield from _count(f"parameters of {name}", block.feeds, 0)
        yield from _count(f"results of {name}", block.fetches, len(node.outputs))
        yield from _alike(f"the results of {name}", block.fetches, node.outputs)


def _block_inputs(node: StructuredNode, explicit: int) -> Iterator[str]:
    """Yields what is wrong with the inputs that only the blocks of a node use."""
    if {*node.inputs[explicit:]} != {*outer_values(node.blocks)}:
        yield "its inputs are not what its blocks use"


def _count(what: str, values: Sequence[Value], expected: int) -> Iterator[str]:
    if len(values) != expected:
        yield f"it has {len(values)} {what}, not {expected}"


def _alike(what: str, values: Iterable[Value], like: Iterable[Value]) -> Iterator[str]:
    for a, b in zip(values, like, strict=False):
        if a.spec.dtype is not b.spec.dtype:
            yield f"{what} have {a.spec} for {b.spec}"


__all__ = ["verify", "verify_waits"]
