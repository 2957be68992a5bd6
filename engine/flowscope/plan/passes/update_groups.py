"""Update groups: the writes of one are all done, or none is, also where one of them fails.

The nodes of a group stand side by side, behind all that they need: nothing else can fail between
them. What the writes themselves can fail of is dealt with in one of three ways:

- Where shapes are known and fit, nothing can go wrong, and nothing is added.
- Where all inputs are there before the first write, each is checked before it: `CheckUpdate`.
- Else the values are kept (`BeginUpdate`, `EndUpdate`): then a write makes a new buffer, and the
  old one is put back if the step fails. So it is in tokens mode, where others run in between, where
  a branch writes for the group, and where a write needs what another one has written.

A group whose variables are on several devices has these nodes on each of them. Then the writes wait
for all of them, also where partitions run apart, and the devices keep values in one order.

In a program in which something blocks, what a write needs may come long after what another one
needs. There the first write waits for what any of them needs from outside of the group
(`AwaitUpdate`, `BeginUpdate`). All of that stands before the group in the order of the program, so
these waits close no circle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowscope.control.dynamic.primitives import Primitive
from flowscope.graph.constant import Const
from flowscope.graph.op import Op, Spec
from flowscope.graph.values.dtypes import variant
from flowscope.ops.core.flow import Identity, NoOp
from flowscope.ops.state.update_groups import AwaitUpdate, BeginUpdate, CheckUpdate, EndUpdate
from flowscope.plan.analysis.effects import leaves, touched
from flowscope.plan.analysis.updates import UpdateGroup, gathered, let_go
from flowscope.plan.ir.lowering import is_ambient
from flowscope.plan.ir.memories import host_of, short_name
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.rewriting import ProgramEdits, changed, origins_of, with_nodes


def make_groups_whole(
    program: Program, by_tokens: bool = False, is_apart: bool = False, has_waits: bool = False
) -> Program:
    """Returns a placed program whose update groups are whole.

    Args:
        program: The program.
        by_tokens: Whether operations run as tokens arrive: then others may run between two writes.
        is_apart: Whether devices are threads of their own: then a group is not written in one go.
        has_waits: Whether something blocks, so that the inputs of two writes come at two times.
    """
    walked = list(program.walk())
    # Where primitives are made by hand it is not known what of these is dead.
    if any(isinstance(n.op, Primitive) for n in walked):
        return program
    if sum(n.writes_state and not n.blocks for n in walked) < 2:
        return program
    trusts = program.has_true_specs and not any(n.op.has_declared_shapes for n in walked)
    return _Updates(by_tokens, is_apart, has_waits, trusts).block(program, False)


class _Updates:
    def __init__(self, by_tokens: bool, is_apart: bool, has_waits: bool, trusts: bool) -> None:
        self._by_tokens = by_tokens
        self._is_apart = is_apart
        self._has_waits = has_waits
        self._trusts = trusts
        self._named = 0

    def block(self, program: Program, is_inner: bool) -> Program:
        """Returns a block whose update groups are whole, and those of its blocks."""
        inner: dict[Node, tuple[Program, ...]] = {}
        for node in program.nodes:
            if node.blocks and len([n for n in leaves(node) if n.writes_state]) > 1:
                inner[node] = tuple([self.block(b, True) for b in node.blocks])
        program = changed(program, {n: {"blocks": blocks} for n, blocks in inner.items()})
        program = let_go(program, touched)
        nodes, groups = gathered(program.nodes, touched)
        if not groups:
            return program
        edits = ProgramEdits()
        ended: tuple[Node, ...] = ()
        position = {n: i for i, n in enumerate(nodes)}
        for group in sorted(groups, key=lambda group: position[group.whole[0]]):
            ended = self._make_whole(group, is_inner, edits, ended)
        return edits.applied(with_nodes(program, nodes))

    def _make_whole(
        self, group: UpdateGroup, is_inner: bool, edits: ProgramEdits, ended: tuple[Node, ...]
    ) -> tuple[Node, ...]:
        """Puts what makes a group whole around it.

        Args:
            group: The group.
            is_inner: Whether it stands in a branch or loop.
            edits: Where that is noted.
            ended: The end of the group before it: by tokens, this one begins after it. While one
                keeps what was before, none takes more.

        Returns:
            The end of this group; nothing where it needs none.
        """
        is_apart = self._is_apart and len({n.device for n in group.members}) > 1
        checks = None if self._by_tokens or is_apart else self._checks(group, is_inner)
        if checks is not None:
            if self._has_waits:
                checks.append(_awaited(group, checks))
            edits.insert(checks, group.whole[0])
            if self._has_waits or len({n.device for n in group.members}) > 1:
                _wait(group, checks, edits)
            return ()
        by_tokens = self._by_tokens or self._has_waits
        begins = _begins(group, ended, by_tokens, is_apart)
        if len({host_of(b.device) for b in begins}) > 1:
            self._name(begins)
        ends = [_end(group, begin) for begin in begins]
        edits.insert(begins, group.whole[0])
        edits.append(ends, group.whole[-1])
        if by_tokens or is_apart or len(begins) > 1:
            _wait(group, begins, edits)
        return tuple(ends)

    def _name(self, begins: Sequence[Node]) -> None:
        """Gives a group a name by which its processes agree on its end."""
        self._named += 1
        for begin in begins:
            op: Any = begin.op
            name = f"{begin.name.rpartition('/')[0]}#{self._named}"
            begin.op = BeginUpdate(op.variables, name)

    def _checks(self, group: UpdateGroup, is_inner: bool) -> list[Node] | None:
        """Returns nodes that check the writes of a group; None if not all can be checked before."""
        made: list[Node] = []
        own = {v for n in group.whole for v in n.outputs}
        written = [h for n in group.members for h in n.handles]
        if len(set(written)) < len(written) or not all(map(_is_safe, _between(group))):
            return None
        for node in group.members:
            if node.blocks or not getattr(node.op, "is_checkable", False):
                return None
            if self._always_fits(node, is_inner):
                continue
            if any(v in own for v in node.inputs):
                return None
            made.append(_made(CheckUpdate(node.op), node, "check", node.inputs, []))
        return made

    def _always_fits(self, node: Node, is_inner: bool) -> bool:
        # In a block it is not known whether a variable that is read has a value.
        if not self._trusts or (is_inner and node.op.reads_state):
            return False
        op: Any = node.op
        return bool(op.always_fits(*[v.spec for v in node.inputs]))


def _between(group: UpdateGroup) -> list[Node]:
    return [n for n in group.whole if n not in group.members]


def _is_safe(node: Node) -> bool:
    """Whether nothing can go wrong with a node."""
    if isinstance(node.op, (NoOp, Identity, Const)):
        return True
    is_number = all(v.spec.shape == () for v in (*node.inputs, *node.outputs))
    is_float = all(v.spec.dtype.kind == "f" for v in (*node.inputs, *node.outputs))
    return node.op.is_pure and node.op.expression is not None and is_number and is_float


def _wait(group: UpdateGroup, nodes: Sequence[Node], edits: ProgramEdits) -> None:
    """Has the writes of a group wait for what is put before it."""
    for member in group.members if nodes else ():
        edits.change(member, control=(*member.control, *nodes))


def _awaited(group: UpdateGroup, checks: Sequence[Node]) -> Node:
    """A node that has run once all inputs of a group's writes are there."""
    made = _made(AwaitUpdate(), group.members[0], "update_waits", group.values, [])
    made.control = tuple([n for n in group.control if not is_ambient(n)] + list(checks))
    return made


def _begins(
    group: UpdateGroup, ended: tuple[Node, ...], by_tokens: bool, is_apart: bool
) -> list[Node]:
    """The nodes that keep the values of a group, one per device that holds some, in a chain.

    Where devices are threads of one process, one of them keeps the values of all, and lets go of
    them in one go: a step that ends in between has written all of the group, or nothing. Each
    process does so with its own.
    """
    handles: dict[str, dict[Value, None]] = {}
    keepers: dict[str, str] = {}
    for node in group.members:
        keepers.setdefault(host_of(node.device), node.device)
    for handle in (h for n in group.members for h in n.handles):
        device = keepers.get(host_of(handle.device), handle.device) if is_apart else handle.device
        handles.setdefault(device, {})[handle.outputs[0]] = None
    devices = sorted(handles)
    awaited: dict[str, list[Value]] = {d: [] for d in devices}
    for value in group.values if by_tokens else ():
        if not any(value in some for some in handles.values()):
            device = "" if value.node is None else value.node.device
            awaited[device if device in handles else devices[0]].append(value)
    made: list[Node] = []
    for device in devices:
        before = [*[n for n in group.control if not is_ambient(n)], *ended] if by_tokens else []
        begin = _begin(group, device, [*handles[device]], awaited[device])
        if len(devices) > 1:
            begin.name += f"_{len(made)}" if is_apart else f"_{short_name(device)}"
        begin.control = (*before, *made[-1:])
        made.append(begin)
    return made


def _begin(
    group: UpdateGroup, device: str, handles: Sequence[Value], awaited: Sequence[Value]
) -> Node:
    first = group.members[0]
    op = BeginUpdate(len(handles))
    node = _made(op, first, "update_begins", (*handles, *awaited), [Spec(variant, ())])
    node.origins = origins_of(group.members)
    node.device = device
    return node


def _end(group: UpdateGroup, begin: Node) -> Node:
    """The node that drops kept values once all writes of the group are done."""
    op: Any = begin.op
    made = _made(EndUpdate(op.group), group.members[-1], "update_ends", (begin.outputs[0],), [])
    made.device, made.control = begin.device, group.members
    made.name += begin.name.rpartition("update_begins")[2]
    return made


def _made(op: Op, like: Node, what: str, inputs: tuple[Value, ...], specs: list[Spec]) -> Node:
    node = Node(op, f"{like.name}/{what}", like.order, inputs, specs, like.requested, like.origins,
                like.path)  # fmt: skip
    node.device, node.reason = like.device, f'belongs to "{like.name}"'
    return node


__all__ = ["make_groups_whole"]
