"""Transfers: a value that is used where it does not lie is brought there, once.

Where values lie `plan.analysis.value_locations` says: on a device, in its memory or, of what steers
a program (`Op.host_outputs`, `Op.host_inputs`), in the host's. Who wants one elsewhere takes a
`Transfer`: one per value, device and memory. It stands

- directly before the first use: so what has come is held as briefly as it can be;
- before the outermost loop in which the value does not change;
- in a branch, where only that branch uses it.

A list never crosses, its elements do. Feeds are in the host's memory at every device; constants are
there in every memory that wants them, by copies of their nodes. Handles stand for what is nowhere
in the program. Control inputs take no transfers. What `lossy_transfer` gives crosses by half of its
bits, and with `GraphOptions.enable_bfloat16_sendrecv` all that is float32 does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from flowscope.control.lists import EmptyList
from flowscope.errors import InvalidArgumentError
from flowscope.graph.operation import where
from flowscope.graph.values.dtypes import float32, resource, variant
from flowscope.ops.core.lossy_transfers import LossyTransfer
from flowscope.ops.core.send_recv import Transfer
from flowscope.plan.analysis.value_locations import ValueLocation, ValueLocations, located
from flowscope.plan.ir.lowering import is_ambient
from flowscope.plan.ir.memories import host_of, is_host, memory_of, short_name
from flowscope.plan.ir.origins import named
from flowscope.plan.ir.program import Node, Program, Value, devices_of
from flowscope.plan.ir.rewriting import ProgramEdits, explicit_inputs
from flowscope.plan.ir.structured import CondNode, LoopNode


def insert_transfers(program: Program, as_bfloat16: bool = False) -> Program:
    """Returns a placed program in which every value is where it is used.

    Args:
        program: The program.
        as_bfloat16: Whether all float32 numbers go to other devices by their upper 16 bits.

    Raises:
        InvalidArgumentError: if several devices would need one list.
    """
    devices = devices_of(program)
    if len(devices) < 2 and all(map(is_host, devices)):
        return program
    return _Transfers(program, as_bfloat16).applied()


class _Block:
    """A block of the program, and the node of the block around that runs it."""

    __slots__ = ("around", "depth", "ends", "is_loop", "owner", "program")

    def __init__(self, program: Program, around: _Block | None, owner: Node | None) -> None:
        self.program = program
        self.around = around
        self.owner = owner
        self.is_loop = isinstance(owner, LoopNode)
        self.depth: int = 0 if around is None else around.depth + 1
        #: Transfers at its end.
        self.ends: list[Node] = []


class _Use(NamedTuple):
    """Input `at` of a node of a block; where that is None, result `at` of the block."""

    block: _Block
    node: Node | None
    at: int

    def outside(self) -> _Use:
        """Returns where the block itself stands in the block around it."""
        assert self.block.around is not None
        return _Use(self.block.around, self.block.owner, 0)


#: Uses of a value on a device, in their order, each with whether it wants it in the host's memory.
_Uses = list[tuple[_Use, bool]]


class _Transfers:
    """One walk through a program that finds what is used elsewhere; then the edits."""

    def __init__(self, program: Program, as_bfloat16: bool = False) -> None:
        self._program = program
        self._as_bfloat16 = as_bfloat16
        self._locations = ValueLocations(program)
        self._root = _Block(program, None, None)
        #: The blocks in blocks that make a node or have a parameter.
        self._homes: dict[Node | Value, _Block] = {}
        #: Per value and device that wants it.
        self._uses: dict[tuple[Value, str], _Uses] = {}
        #: Per constant and other memory that wants it.
        self._copies: dict[tuple[Node, str], list[_Use]] = {}
        self._blocks: dict[Node, list[_Block]] = {}
        self._edits = ProgramEdits()
        #: What is used in the place of a value.
        self._taken: dict[_Use, Value] = {}
        self._names: dict[str, Value] = {}

    def applied(self) -> Program:
        """Returns the program with transfers; the same one where all is where it is used."""
        self._walk(self._root)
        for (node, memory), uses in self._copies.items():
            made = _copied(node, memory)
            self._edits.append([made], node)
            self._taken.update(dict.fromkeys(uses, made.outputs[0]))
        for (value, device), found in self._uses.items():
            self._cross(value, device, found)
        if self._taken:
            self._rewire()
        return self._edits.applied(self._program)

    # -- what is used where ---------------------------------------------------------------------

    def _walk(self, block: _Block) -> None:
        if block.around is not None:
            self._homes.update(dict.fromkeys((*block.program.feeds, *block.program.nodes), block))
        for node in block.program.nodes:
            if isinstance(node, LoopNode):
                self._loop(node, block)
            elif isinstance(node, CondNode):
                self._cond(node, block)
            elif not isinstance(node.op, Transfer):
                self._plain(node, block)

    def _plain(self, node: Node, block: _Block) -> None:
        device, is_cpu = node.device, is_host(node.device)
        in_host = node.op.inputs_on_host(len(node.inputs))
        for i, value in enumerate(node.inputs):
            maker = value.node
            if is_cpu and maker is not None and maker.device == device and not maker.blocks:
                continue
            if node.op.follows_memory:
                to = self._locations.of_input(node, value)
            else:
                to = located(device, i in in_host)
            self._use(value, to, _Use(block, node, i))

    def _cond(self, node: CondNode, block: _Block) -> None:
        self._use(node.pred, located(node.device, True), _Use(block, node, 0))
        for branch in node.blocks:
            inner = self._inner(branch, block, node)
            for i, (value, result) in enumerate(zip(branch.fetches, node.outputs, strict=True)):
                to = self._locations.of(result)
                assert to is not None
                self._use(value, to, _Use(inner, None, i))

    def _loop(self, node: LoopNode, block: _Block) -> None:
        if node.count is not None:
            self._use(node.count, located(node.device, True), _Use(block, node, 0))
        variables = [self._locations.variable(node, i) for i in range(node.variables)]
        for i, (value, to) in enumerate(zip(node.starts, variables, strict=True)):
            self._use(value, to, _Use(block, node, node.op.first + i))
        for condition in node.conditions:
            inner = self._inner(condition, block, node)
            self._use(condition.fetches[0], located(node.device, True), _Use(inner, None, 0))
        inner = self._inner(node.body, block, node)
        places = [*variables, *map(self._locations.of, node.kept)]
        for i, (value, place) in enumerate(zip(node.body.fetches, places, strict=True)):
            assert place is not None
            self._use(value, place, _Use(inner, None, i))

    def _inner(self, program: Program, around: _Block, owner: Node) -> _Block:
        block = _Block(program, around, owner)
        self._blocks.setdefault(owner, []).append(block)
        self._walk(block)
        return block

    def _use(self, value: Value, to: ValueLocation, use: _Use) -> None:
        """Notes a use of a value, and where it is to lie for it."""
        node = value.node
        if value.spec.dtype is resource or (node is not None and type(node.op) is EmptyList):
            return
        if node is not None and is_ambient(node):
            memory = host_of(to.device) if to.in_host else memory_of(to.device)
            if memory_of(node.device) != memory:
                self._copies.setdefault((node, memory), []).append(use)
            return
        source = self._locations.of(value) or located(to.device, True)
        if source == to:
            return
        if value.spec.dtype is variant:
            raise _on_two_devices(value, source, to, use)
        self._uses.setdefault((value, to.device), []).append((use, bool(to.in_host)))

    # -- where transfers stand ------------------------------------------------------------------

    def _cross(self, value: Value, device: str, found: _Uses) -> None:
        """Brings a value to a device: once, also where both of its memories want it."""
        source = self._locations.of(value) or located(device, True)
        memories = dict.fromkeys(in_host for _, in_host in found)
        if len(memories) == 2:
            in_host = bool(source.in_host) or is_host(source.device)
            come = self._transfer(value, source.device, (device, in_host), [u for u, _ in found])
            self._taken.update((u, come) for u, wanted in found if wanted is in_host)
            value, source = come, ValueLocation(device, in_host)
            del memories[in_host]
        for in_host in memories:
            uses = [u for u, wanted in found if wanted is in_host]
            made = self._transfer(value, source.device, (device, in_host), uses)
            self._taken.update(dict.fromkeys(uses, made))

    def _transfer(self, value: Value, sender: str, to: tuple[str, bool], uses: list[_Use]) -> Value:
        """Puts a transfer of a value before its uses, the first of which comes first."""
        home = self._homes.get(value.node or value, self._root)
        if all(use.block is home for use in uses):
            before = uses[0]
        else:
            before = _common([_before_loops(use, home) for use in uses])
        made = self._made(value, sender, to, before)
        self._homes[made] = before.block
        if before.node is None:
            before.block.ends.append(made)
        else:
            self._edits.insert([made], before.node)
        return made.outputs[0]

    def _made(self, value: Value, sender: str, to: tuple[str, bool], before: _Use) -> Node:
        device, in_host = to
        source = value
        while source.node is not None and isinstance(source.node.op, Transfer):
            source = source.node.inputs[0]
        label = source.label
        name = self._unique(source, label)
        is_lossy = sender != device and self._is_lossy(value)
        op = Transfer(name, sender, device, in_host, is_lossy)
        near = before.node or (before.block.program.nodes or (before.block.owner,))[-1]
        assert near is not None
        origins = near.origins if value.node is None else value.node.origins
        what = f"{name}/to_{short_name(device)}{'/host' if in_host else ''}"
        made = Node(op, what, near.order, (value,), [value.spec], "", origins, near.path)
        if not op.is_lossy:
            made.outputs[0].stand_for(value)
        made.device = device
        made.reason = f'brings "{label}" from {sender}{" as bfloat16" if is_lossy else ""}'
        return made

    def _is_lossy(self, value: Value) -> bool:
        """Whether a value goes to other devices by the upper 16 bits of each number."""
        if self._as_bfloat16:
            return value.spec.dtype is float32
        return value.node is not None and isinstance(value.node.op, LossyTransfer)

    def _unique(self, value: Value, label: str) -> str:
        """Returns the name of a value, with a number where another one has it."""
        name, count = label, 0
        while self._names.setdefault(name, value) is not value:
            count += 1
            name = f"{label}_{count}"
        return name

    # -- edits ----------------------------------------------------------------------------------

    def _rewire(self) -> None:
        """Has nodes and blocks take what was brought."""
        inputs: dict[Node, dict[int, Value]] = {}
        results: dict[_Block, dict[int, Value]] = {}
        for use, value in self._taken.items():
            if use.node is None:
                results.setdefault(use.block, {})[use.at] = value
            else:
                inputs.setdefault(use.node, {})[use.at] = value
        for node, some in inputs.items():
            given = list(explicit_inputs(node) if node.blocks else node.inputs)
            for at, value in some.items():
                given[at] = value
            self._edits.change(node, inputs=tuple(given))
        for owner in dict.fromkeys(block.owner for block in results):
            assert owner is not None
            made = [self._given(b, results.get(b, {})) for b in self._blocks[owner]]
            self._edits.change(owner, blocks=tuple(made))

    def _given(self, block: _Block, results: dict[int, Value]) -> Program:
        """Returns a block that gives other results."""
        if not results:
            return block.program
        fetches = _replaced(block.program.fetches, results)
        made = dataclasses.replace(block.program, fetches=fetches)
        self._edits.append_to(made, block.ends)
        return made


def _replaced(values: Sequence[Value], some: dict[int, Value]) -> tuple[Value, ...]:
    return tuple([some.get(i, v) for i, v in enumerate(values)])


def _before_loops(use: _Use, home: _Block) -> _Use:
    """Returns the place before the outermost loop around a use in which a value does not change."""
    found = use
    while use.block is not home:
        is_loop, use = use.block.is_loop, use.outside()
        found = use if is_loop else found
    return found


def _common(uses: Sequence[_Use]) -> _Use:
    """Returns the place before the first of some uses, in the innermost block around all."""
    first, *others = uses
    for other in others:
        while other.block is not first.block:
            if other.block.depth >= first.block.depth:
                other = other.outside()
            else:
                first = first.outside()
    return first


def _copied(node: Node, memory: str) -> Node:
    """Returns a constant that is in another memory."""
    made = node.copy()
    made.device, made.reason = memory, f'a copy of "{node.name}" for this memory'
    return made


def _on_two_devices(value: Value, source: ValueLocation, to: ValueLocation, use: _Use) -> Exception:
    """Returns the error for a list that is kept on one device and used on another."""
    node = use.node or use.block.owner
    assert node is not None
    places = source.device, to.device
    facts = where(node.origins[0]) if node.origins else {}
    return InvalidArgumentError(
        f'a list stays on one device, its elements alone go to others: "{value.label}" is kept on '
        f"{places[0]}, and used on {places[1]}; give what uses it the device of what fills it"
    ).located(op=named(node.name, node.origins), op_type=node.op.type, **facts)


__all__ = ["insert_transfers"]
