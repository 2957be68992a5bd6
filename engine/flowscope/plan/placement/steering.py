"""What steers a program: numbers that branches, loops, shapes and axes go by, and nothing else.

A counter that decides whether a loop goes on is read by the host in every iteration. On an
accelerator that reading would wait for all the work before it. So a node without a wish stays on
the host if all that it makes is small, of integers or bools, and is read there alone: it decides
(`CondNode.pred`, a loop's condition and count), is a host input (`Op.host_inputs`), is fetched, or
goes to nodes of which the same is true. TensorFlow does so for int32, whatever reads it.

Found as the largest set: what anybody on an accelerator reads is taken away, with all that it is
made of, until nothing changes; then what nobody goes by.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from flowscope.graph.op import Spec
from flowscope.graph.values.dtypes import bool_, int32, int64
from flowscope.graph.values.shapes import size_of
from flowscope.plan.ir.lowering import is_ambient
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import CondNode, LoopNode

#: The most elements of a value that is read on the host.
MOST_ELEMENTS = 16


def steering(program: Program) -> set[Node]:
    """Returns the nodes of a program, in blocks too, that steer it and compute nothing else."""
    uses = _Uses(program)
    found = {n for n in program.walk() if _can_steer(n)}
    stack = [v for v, users in uses.by_nodes.items() if not users <= found]
    stack += uses.elsewhere
    lost: set[Value] = set()
    while stack:
        value = stack.pop()
        if value in lost:
            continue
        lost.add(value)
        stack += uses.sources[value]
        if value.node in found:
            found.discard(value.node)
            stack += uses.data[value.node]
    return found & _gone_by(uses, found)


def _gone_by(uses: _Uses, found: set[Node]) -> set[Node]:
    """Returns the nodes among those found that something goes by."""
    stack, seen, gone_by = [*uses.deciding], set[Value](), set[Node]()
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        stack += uses.sources[value]
        if value.node in found:
            gone_by.add(value.node)
            stack += value.node.inputs
    return gone_by


class _Uses:
    """The readers of each value, and their purpose.

    Attributes:
        by_nodes: The nodes that compute with a value.
        data: What a node computes with; host inputs are not among it.
        deciding: What the program goes by.
        elsewhere: What lists keep.
        sources: What becomes a value, at a loop's or a branch's border.
    """

    def __init__(self, program: Program) -> None:
        self.by_nodes: defaultdict[Value, set[Node]] = defaultdict(set)
        self.data: dict[Node, list[Value]] = {}
        self.deciding: list[Value] = []
        self.elsewhere: list[Value] = []
        self.sources: defaultdict[Value, list[Value]] = defaultdict(list)
        for node in program.walk():
            if isinstance(node, CondNode):
                self._cond(node)
            elif isinstance(node, LoopNode):
                self._loop(node)
            else:
                self._plain(node)

    def _plain(self, node: Node) -> None:
        on_host = node.op.inputs_on_host(len(node.inputs))
        self.deciding += [node.inputs[i] for i in on_host]
        self.data[node] = [v for i, v in enumerate(node.inputs) if i not in on_host]
        for value in self.data[node]:
            self.by_nodes[value].add(node)

    def _cond(self, node: CondNode) -> None:
        self.deciding.append(node.pred)
        for block in node.blocks:
            self._become(block.fetches, node.outputs)

    def _loop(self, node: LoopNode) -> None:
        self.deciding += [c.fetches[0] for c in node.conditions]
        self.deciding += [] if node.count is None else [node.count]
        self.elsewhere += [*node.kept_values, *node.elements]
        n = node.variables
        for made in (node.parameters, node.results, *[c.feeds[:n] for c in node.conditions]):
            self._become(node.starts, made)
            self._become(node.next_values, made)

    def _become(self, values: Iterable[Value], made: Iterable[Value]) -> None:
        for value, one in zip(values, made, strict=True):
            self.sources[one].append(value)


def _can_steer(node: Node) -> bool:
    if node.blocks or node.requested or not node.outputs or not node.op.is_pure:
        return False
    if is_ambient(node) or "CPU" not in node.op.devices:
        return False
    specs = [v.spec for v in node.outputs]
    is_number = all(s.dtype in (int32, int64, bool_) for s in specs)
    return is_number and all(map(_is_small, [*specs, *[v.spec for v in node.inputs]]))


def _is_small(spec: Spec) -> bool:
    size = size_of(spec.shape)
    return size is not None and size <= MOST_ELEMENTS


__all__ = ["steering"]
