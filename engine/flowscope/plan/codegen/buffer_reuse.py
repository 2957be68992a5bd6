"""Reuse: which dying buffers take the output of the node that reads them last.

`y = x * 2` may write into x's buffer where nothing reads x afterwards, nothing else shares its
memory, and the two have the same shape and dtype. That saves an allocation and, for large arrays,
the page faults and cache misses that come with it.

Both modes must give bit-equal results, and NumPy's reductions depend on an array's strides. So a
buffer is only reused where the result has the strides that a new array would have: in an
element-wise op whose other inputs are numbers, or where all arrays are known to be row-major: no
stride is smaller than that of a later axis, as in an array in C order and in parts of it. A new
array that is row-major is in C order.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from flowscope.graph.constant import Const
from flowscope.graph.lazy import frozen
from flowscope.graph.values.expression import Expression, into_buffer, parsed
from flowscope.ops.array.arrays import Fill, ZerosLike
from flowscope.ops.core.flow import Placeholder
from flowscope.ops.core.send_recv import Send
from flowscope.ops.state.variable_ops import AssignVariableOp
from flowscope.plan.ir.kernels import device_type
from flowscope.plan.ir.program import Node, Program, Value, outer_values
from flowscope.plan.ir.structured import LoopNode
from flowscope.plan.passes.regions import Region

#: Up to about this size a new buffer costs nothing (measured: from 16 KB on it doubles the time).
SMALL_BYTES = 1 << 13
#: A variable takes over an array that nobody else holds.
_ADOPT = parsed("{0}.adopt({1})")


@frozen
class Reuse:
    """How one node uses the buffer of a dying input.

    Attributes:
        expression: The node's expression, written into a buffer.
        index: Which input's buffer takes the output.
        same: Inputs whose shapes must equal its own for that, to be tested when it runs.
    """

    expression: Expression
    index: int
    same: tuple[int, ...] = ()


def reuse(region: Region) -> dict[Node, Reuse]:
    """Returns how nodes of the region use buffers again."""
    if not can_reuse(region):
        return {}
    return _reused(region)


def can_reuse(region: Region) -> bool:
    """Whether shapes hold: not where one may follow from a known value that a feed replaces."""
    return all(v.spec.constant is None and v.spec.dims is None for v in region.inputs)


def reuse_in_block(block: Program, owned: Collection[Value] = ()) -> dict[Node, Reuse]:
    """Returns how nodes of a branch or a loop's body use the buffers that die in it again.

    What comes from outside the block, or from an iteration before, is left alone, but for what is
    `owned`.
    """
    return _reused(_as_region(block), owned)


def _as_region(block: Program) -> Region:
    inputs = (*block.feeds, *outer_values([block]))
    return Region(block.nodes, inputs, block.fetches, (), ())


def owned_variables(node: LoopNode) -> list[Value]:
    """Returns parameters of a loop's body whose buffers the next values can take: sums, mostly.

    They start in C order, their next values have memory of their own that is in C order too, and
    the body writes into them. The loop has to start with a copy, which is its own.
    """
    block = node.body
    pairs = list(zip(node.parameters, node.next_values, strict=True))
    found = []
    for (f, after), start in zip(pairs, node.starts, strict=True):
        if f.spec.shape != () and after.node in block.nodes and _starts_in_c_order(start):
            found.append(f)
    while found:
        buffers = _Buffers(_as_region(block), found)
        owners = [buffers.owner.get(v) for v in block.fetches]
        good = [
            f for f, after in pairs
            if f in found and buffers.owner.get(after) is after and owners.count(after) == 1
            and after in buffers.row_major
        ]  # fmt: skip
        if len(good) == len(found):
            break
        found = good
    taken = {n.inputs[r.index] for n, r in reuse_in_block(block, found).items()}
    return [f for f in found if f in taken]


def _starts_in_c_order(value: Value) -> bool:
    if value.node is None or value.spec.rank is None:
        return False
    if isinstance(value.node.op, Const):
        constant = value.spec.constant
        return isinstance(constant, np.ndarray) and constant.flags.c_contiguous
    return isinstance(value.node.op, (Fill, ZerosLike))


def _reused(region: Region, owned: Collection[Value] = ()) -> dict[Node, Reuse]:
    if not any(map(_may_reuse, region.nodes)):
        return {}
    buffers = _Buffers(region, owned)
    found = {}
    for i, node in enumerate(region.nodes):
        plan = _plan(node, i, buffers)
        if plan is not None:
            found[node] = plan
    return found


class _Buffers:
    """Which values share memory, who made it, and when it is used last."""

    def __init__(self, region: Region, owned: Collection[Value] = ()) -> None:
        #: The value that owns each value's memory; None for memory that is not the region's.
        self.owner: dict[Value, Value | None] = dict.fromkeys(region.inputs)
        self.owner.update((v, v) for v in owned)
        self.row_major: set[Value] = set(owned)
        outside = [(v.node, v) for v in region.inputs]
        self.row_major.update(v for n, v in outside if n and self._is_row_major(n, v))
        self.last: dict[Value, int] = dict.fromkeys(owned, -1)
        for i, node in enumerate(region.nodes):
            self._enter(i, node)
        for v in region.outputs:
            self.last[v] = len(region.nodes)
            owner = self.owner.get(v)
            if owner is not None:
                self.last[owner] = len(region.nodes)

    def is_free(self, value: Value, at: int) -> bool:
        """Whether `value` has memory of its own that nothing reads after node `at`."""
        return self.owner.get(value) is value and self.last[value] == at

    def _enter(self, i: int, node: Node) -> None:
        op, owners, last = node.op, self.owner, self.last
        for v in node.inputs:
            last[v] = i
            owner = owners.get(v)
            if owner is not None:
                last[owner] = i
        for v in node.inputs if node.blocks or isinstance(op, Send) else ():
            owner = owners.get(v)
            if owner is not None:
                # Outputs may share it, iterations read it again, and so does who receives it.
                owners[owner] = None
        is_new = not op.views and op.is_pure and not isinstance(op, (Const, Placeholder))
        for out in node.outputs:
            owners[out] = out if is_new else self._shared(node)
            last[out] = i
            if self._is_row_major(node, out):
                self.row_major.add(out)

    def _shared(self, node: Node) -> Value | None:
        owners = {self.owner.get(node.inputs[j]) for j in node.op.views}
        if len(owners) == 1:
            return owners.pop()
        for owner in owners - {None}:
            assert owner is not None
            self.owner[owner] = None  # whose memory it is depends on values: nobody's
        return None

    def _is_row_major(self, node: Node, out: Value) -> bool:
        rank, order = out.spec.rank, node.op.memory_order
        if isinstance(node.op, Const):
            constant = out.spec.constant
            return isinstance(constant, np.ndarray) and constant.flags.c_contiguous
        if rank is not None and rank <= 1 and not node.op.views:
            return True
        if order in ("C", "C2"):
            return order == "C" or (rank is not None and rank <= 2)
        if order == "R":
            return node.inputs[0] in self.row_major
        return order == "K" and all(v.spec.shape == () or v in self.row_major for v in node.inputs)


def _may_reuse(node: Node) -> bool:
    """Whether a node could use a buffer again, if one died at it."""
    op = node.op
    if isinstance(op, AssignVariableOp):
        return device_type(node) == "CPU"
    if op.memory_order != "K" or op.expression is None or len(node.outputs) != 1:
        return False
    out = node.outputs[0].spec
    if out.shape == () or out.dtype.kind not in "fiucb":
        return False
    return (out.nbytes or SMALL_BYTES) >= SMALL_BYTES and device_type(node) == "CPU"


def _plan(node: Node, at: int, buffers: _Buffers) -> Reuse | None:
    if not _may_reuse(node):
        return None
    op, out = node.op, node.outputs[0].spec if node.outputs else None
    if isinstance(op, AssignVariableOp):
        return Reuse(_ADOPT, 1) if buffers.is_free(node.inputs[1], at) else None
    assert op.expression is not None and out is not None
    expression = into_buffer(op.expression)
    if expression is None:
        return None
    for j, v in enumerate(node.inputs):
        if v.spec.dtype is out.dtype and buffers.is_free(v, at):
            same = _must_equal(node, j, buffers)
            if same is not None:
                return Reuse(expression, j, same)
    return None


def _must_equal(node: Node, index: int, buffers: _Buffers) -> tuple[int, ...] | None:
    """Returns the inputs to compare with at run time; None if input `index` cannot be reused."""
    mine = node.inputs[index]
    others = [j for j, v in enumerate(node.inputs) if v is not mine and v.spec.shape != ()]
    if others and not all(v.spec.shape == () or v in buffers.row_major for v in node.inputs):
        return None
    if any(buffers.owner.get(node.inputs[j]) is mine for j in others):
        return None
    dims, out = mine.spec.shape, node.outputs[0].spec.shape
    if dims is None or out is None or len(dims) != len(out):
        return None
    if any(a is not None and b is not None and a != b for a, b in zip(dims, out, strict=True)):
        return None
    if not others or (None not in dims and dims == out):
        return ()
    same = []
    for j in others:
        other = node.inputs[j].spec.shape
        if other is None:
            return None
        aligned = (1,) * (len(dims) - len(other)) + other
        if all(b == 1 or (a is not None and b == a) for a, b in zip(dims, aligned, strict=True)):
            continue
        if len(other) != len(dims):
            return None
        same.append(j)
    return tuple(same)


def out_expression(how: Reuse, arguments: tuple[str, ...]) -> str:
    """Returns an expression of the buffer that is used again, None where that cannot be."""
    out = arguments[how.index]
    if how.same:
        tests = " == ".join(f"{arguments[j]}.shape" for j in (how.index, *how.same))
        out = f"{out} if {tests} else None"
    return out
