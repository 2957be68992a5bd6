"""Partition: what each device, or each process, runs of a program with transfers.

A partition is the *projection* of the program onto a *site*: its nodes, its parts of branches and
loops, and of each transfer the end that lies there, a `Send` or a `Recv`. All are subsequences of
one order, so waiting in place cannot deadlock. A site is a device, or all devices of a process;
then transfers between these stay as they are. Its name is that of a device of it, a CPU if it has
one, in whose memory values come and go: what an accelerator sends or gets takes one transfer more.

- A `Recv` stands where the transfer stood, late. Its `Send` stands as early as it can in the same
  block: directly behind what makes the value. So where one runs, so does the other.
- A site takes part in a branch or a loop if some of its nodes are in there, or results lie on it.
- Who takes part in a branch is told its predicate before it. Who takes part in a loop is told the
  condition in every iteration, from where it is made; or once, before the loop, how many iterations
  there will be, where that is known there.
- A control input of a node on another site becomes an empty message: one per node and site.
- Constants and handles are in every partition that uses them, feeds are given to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from flowscope.graph.constant import Const, Literal
from flowscope.graph.lazy import frozen
from flowscope.graph.op import Op, Spec
from flowscope.graph.values.dtypes import float32, int64, uint16
from flowscope.ops.core.lossy_transfers import FromUpperHalf, UpperHalf
from flowscope.ops.core.send_recv import Recv, Send, Transfer, TripCount
from flowscope.plan.analysis.counted_loops import counted
from flowscope.plan.analysis.value_locations import ValueLocation, ValueLocations
from flowscope.plan.ir.lowering import is_ambient
from flowscope.plan.ir.memories import is_host, short_name
from flowscope.plan.ir.program import Node, Program, Value, devices_of, is_back_edge, outer_values
from flowscope.plan.ir.raw_crossings import check_raw_crossings
from flowscope.plan.ir.structured import CondNode, LoopNode


@frozen
class Projection:
    """What a site runs.

    Attributes:
        device: The site: the full name of its device, or of one of them.
        program: Its operations. A feed's `index` is its number among the step's feeds.
        fetched: Which of the step's fetches it gives, in the order of the program's own.
    """

    device: str
    program: Program
    fetched: tuple[int, ...]


#: Returns the site of a device.
SiteOf = Callable[[str], str]


def project(program: Program, site_of: SiteOf = str) -> tuple[Projection, ...]:
    """The part of each site of a program with transfers, first that of its first node.

    Args:
        program: The program.
        site_of: Returns the site of a device: by default itself.

    Raises:
        UnimplementedError: if a loop or branch made by hand of primitives is on several sites.
    """
    if len(set(map(site_of, devices_of(program)))) < 2:
        device = site_of(program.device)
        return (Projection(device, program, tuple(range(len(program.fetches)))),)
    check_raw_crossings(program, site_of)
    return _Projector(program, site_of).projections()


class _Level:
    """A block that is being projected: per site that takes part, the nodes of its part."""

    def __init__(self, block: Program, devices: Iterable[str], owner: Node | None = None) -> None:
        self.block = block
        self.owner = owner
        self.parts: dict[str, list[Node]] = {d: [] for d in devices}
        #: What is sent at the beginning, and behind a node, there.
        self._sends: dict[tuple[str, Node | None], list[Node]] = {}

    def send(self, device: str, after: Node | None, nodes: Sequence[Node]) -> None:
        """Puts nodes behind one of a part, or at its beginning."""
        self._sends.setdefault((device, after), []).extend(nodes)

    def nodes(self, device: str) -> tuple[Node, ...]:
        """Returns the nodes of a site's part in their order."""
        found = [*self._sends.get((device, None), ())]
        for node in self.parts[device]:
            found.append(node)
            found += self._sends.get((device, node), ())
        return tuple(found)


class _Projector:
    """One traversal of a program, which makes the partitions of all sites: each `device` is one."""

    def __init__(self, program: Program, site_of: SiteOf) -> None:
        self._program = program
        self._site_of = site_of
        self._locations = ValueLocations(program)
        self._participants: dict[Node, dict[str, None]] = {}
        self._used = {v for n in program.walk() for v in n.inputs}.union(program.fetches)
        self._used.update(v for n in program.walk() for b in n.blocks for v in b.fetches)
        self._devices = self._work(program)
        #: The levels of nodes and parameters.
        self._levels: dict[Node | Value, _Level] = {}
        #: What stands on a device for a value, for a node, and for who has finished elsewhere.
        self._values: dict[tuple[Value, str], Value] = {}
        self._nodes: dict[tuple[Node, str], Node] = {}
        self._signals: dict[tuple[Node, str, str], Node] = {}
        #: How often a name was taken for what crosses.
        self._names: dict[tuple[str, str], int] = {}
        self._feeds: dict[str, set[Value]] = {d: set() for d in self._devices}
        #: Nodes that take values of a back edge, which comes later: as they were, and as they are.
        self._merges: list[tuple[Node, Node, str]] = []

    def projections(self) -> tuple[Projection, ...]:
        """Returns the partitions."""
        program, devices = self._program, self._devices
        root = _Level(program, devices)
        self._block(root)
        for node, made, device in self._merges:
            made.inputs = tuple([self._value(v, device) for v in node.inputs])
        fetched: dict[str, list[int]] = {d: [] for d in devices}
        for i, value in enumerate(program.fetches):
            fetched[self._fetched_on(value)].append(i)
        given = {d: [self._value(program.fetches[i], d) for i in fetched[d]] for d in devices}
        targets = {d: [n for t in program.targets for n in self._parts_of(t, d)] for d in devices}
        return tuple(
            [
                Projection(
                    d,
                    Program(
                        root.nodes(d),
                        tuple(sorted(self._feeds[d], key=lambda v: v.index)),
                        tuple(given[d]),
                        tuple(targets[d]),
                    ),
                    tuple(fetched[d]),
                )
                for d in devices
            ]
        )

    def _fetched_on(self, value: Value) -> str:
        at = self._locations.of(value)
        made_on = at.device if at is not None else value.node.device if value.node else ""
        device = self._site_of(made_on)
        return device if device in self._devices else next(iter(self._devices))

    # -- who takes part -------------------------------------------------------------------------

    def _work(self, block: Program) -> dict[str, None]:
        """Returns the devices that do something in a block, in the order in which they begin."""
        found: dict[str, None] = {}
        for node in block.nodes:
            if node.blocks:
                found |= self._takes_part(node)
            elif isinstance(node.op, Transfer):
                ends = node.op.send_device, node.op.recv_device
                found |= dict.fromkeys(map(self._site_of, ends))
            elif not is_ambient(node):
                found[self._site_of(node.device)] = None
        return found or dict.fromkeys([self._site_of(block.device)])

    def _takes_part(self, node: Node) -> dict[str, None]:
        """Returns the devices that take part in a branch or a loop."""
        found = self._participants.get(node)
        if found is None:
            self._participants[node] = found = {}
            results = [*node.outputs]
            if isinstance(node, LoopNode):
                results.remove(node.trip_count)
                if node.condition is not None or node.trip_count in self._used:
                    found[self._site_of(node.device)] = None
                results += node.taken
            for block in node.blocks:
                if any(not is_ambient(n) for n in block.nodes):
                    found |= self._work(block)
            for value in results:
                at = self._locations.of(value)
                if at is not None:
                    found[self._site_of(at.device)] = None
            if not found:
                found[self._site_of(node.device)] = None
        return found

    # -- values and control inputs --------------------------------------------------------------

    def _value(self, value: Value, device: str) -> Value:
        """The value on a device of a value of the program."""
        found = self._values.get((value, device))
        if found is not None:
            return found
        node = value.node
        if node is None:
            if value not in self._levels:  # a feed of the step
                self._feeds[device].add(value)
                return value
            return value if self._is_there(value, device) else self._told(value, device)
        if is_ambient(node):
            return self._copy(node, device)
        return value if self._is_there(value, device) else self._told(value, device)

    def _is_there(self, value: Value, device: str) -> bool:
        at = self._locations.of(value)
        return at is None or self._site_of(at.device) == device

    def _copy(self, node: Node, device: str) -> Value:
        """Returns a constant or a handle as it is on a device, in the same block."""
        made = node
        if self._site_of(node.device) != device:
            made = node.copy()
            made.device = device
        self._levels[node].parts[device].append(made)
        self._values[node.outputs[0], device] = made.outputs[0]
        return made.outputs[0]

    def _told(self, value: Value, device: str) -> Value:
        """The predicate of a branch or loop on a device that must be sent it."""
        source = value
        while source.node is not None and self._crosses(source.node):
            source = source.node.inputs[0]
        at = self._locations.of(source)
        assert at is not None
        is_here = self._site_of(at.device) == device
        if is_here and _is_in_host(at):
            return self._value(source, device)
        found = self._values.get((source, device))
        if found is None:
            level = self._levels[source.node or source]
            op = Transfer(self._unique(f"{source.label}/told", device), at.device, device, True)
            near = source.node or level.owner
            assert near is not None
            if is_here:
                found, nodes = self._in_host(op.tensor_name, source, near)
                level.send(device, self._maker(source, device), nodes)
            else:
                found = self._sent(op, source, level, level, near)
            self._values[source, device] = found
        return found

    def _crosses(self, node: Node) -> bool:
        """Whether a node brings a value to another site, and not only to another memory."""
        op = node.op
        if not isinstance(op, Transfer):
            return False
        return self._site_of(op.send_device) != self._site_of(op.recv_device)

    def _maker(self, value: Value, device: str) -> Node | None:
        """The node that makes a value on its site; None for a feed."""
        return None if value.node is None else self._nodes.get((value.node, device), value.node)

    def _in_host(self, name: str, value: Value, near: Node) -> tuple[Value, list[Node]]:
        """Returns a value in its host's memory on its site, and what brings it there."""
        at = self._locations.of(value)
        if at is None or _is_in_host(at):
            return value, []
        op = Transfer(name, at.device, at.device, True)
        made = _end(op, "to_host", near, at.device, (value,), value.spec)
        return made.outputs[0], [made]

    def _sent(self, op: Transfer, value: Value, home: _Level, level: _Level, near: Node) -> Value:
        """Sends a value from one site to another; returns it in the memory of the host there.

        Args:
            op: What crosses, and where to.
            value: The value.
            home: Where it is made.
            level: The block in which it crosses.
            near: The node whose origins and order the two ends have.
        """
        sender, receiver = self._site_of(op.send_device), self._site_of(op.recv_device)
        name = op.tensor_name
        if op.recv_device != receiver:  # several devices of a site may get it by themselves
            name = f"{name}/{short_name(op.recv_device)}"
        given, sends = self._in_host(name, self._value(value, sender), near)
        spec = value.spec
        if op.is_lossy:
            spec = value.spec.like(uint16)
            half = _end(UpperHalf(), f"{name}/half", near, sender, (given,), spec)
            given = half.outputs[0]
            sends.append(half)
        facts = name, sender, receiver
        sends.append(_end(Send(*facts), f"to_{short_name(receiver)}", near, sender, (given,)))
        level.send(sender, self._maker(value, sender) if home is level else None, sends)
        what = Recv(*facts, spec.dtype, spec.shape)
        recv = _end(what, f"from_{short_name(sender)}", near, receiver, (), spec)
        level.parts[receiver].append(recv)
        if op.is_lossy:
            whole = FromUpperHalf(), f"{name}/whole", near, receiver, recv.outputs
            recv = _end(*whole, value.spec)
            level.parts[receiver].append(recv)
        else:
            recv.outputs[0].stand_for(value)
        return recv.outputs[0]

    def _control(self, node: Node, device: str) -> tuple[Node, ...]:
        """The control inputs of a node's part on a device."""
        found: dict[Node, None] = {}
        for before in node.control:
            for at in self._where(before):
                if at == device:
                    found |= dict.fromkeys(self._parts_of(before, device))
                else:
                    found[self._signal(before, at, device)] = None
        return tuple(found)

    def _where(self, node: Node) -> Iterable[str]:
        """Returns the sites on which parts of a node run."""
        if node.blocks:
            return self._takes_part(node)
        return () if is_ambient(node) else (self._site_of(node.device),)

    def _parts_of(self, node: Node, device: str) -> list[Node]:
        if device not in self._where(node):
            return []
        return [self._nodes.get((node, device), node)]

    def _unique(self, name: str, device: str) -> str:
        """Returns a name for what comes to a site: loops that a pass has split share theirs."""
        count = self._names.get((name, device), 0)
        self._names[name, device] = count + 1
        return f"{name}_{count}" if count else name

    def _signal(self, node: Node, at: str, device: str) -> Node:
        """The receipt, on a device, of the empty signal that a node has finished on another."""
        found = self._signals.get((node, at, device))
        if found is None:
            level = self._levels[node]
            (done,) = self._parts_of(node, at)
            facts = self._unique(f"^{node.name}", device), at, device
            empty = np.empty(0, np.float32)
            value = _end(
                Const(Literal(empty), float32),
                f"^{node.name}/done",
                node,
                at,
                (),
                Spec(float32, (0,), empty),
            )
            send = _end(Send(*facts), f"to_{short_name(device)}", node, at, value.outputs)
            send.control = (done,)
            level.send(at, done, [value, send])
            found = _end(
                Recv(*facts, float32, (0,)),
                f"from_{short_name(at)}",
                node,
                device,
                (),
                Spec(float32, (0,)),
            )
            level.parts[device].append(found)
            self._signals[node, at, device] = found
        return found

    # -- nodes ----------------------------------------------------------------------------------

    def _block(self, level: _Level) -> None:
        """Projects the nodes of a block."""
        block = level.block
        self._levels.update(dict.fromkeys(block.nodes, level))
        for node in block.nodes:
            if isinstance(node, CondNode):
                self._cond(node, level)
            elif isinstance(node, LoopNode):
                self._loop(node, level)
            elif self._crosses(node):
                self._transfer(node, level)
            elif not is_ambient(node):
                self._plain(node, level)

    def _plain(self, node: Node, level: _Level) -> None:
        device = self._site_of(node.device)
        inputs = tuple([self._value(v, device) for v in node.inputs])
        control = self._control(node, device) if node.control else ()
        made = node
        is_circle = any(is_back_edge(v, node) for v in node.inputs)
        if (
            is_circle
            or any(a is not b for a, b in zip(inputs, node.inputs, strict=True))
            or (control != node.control)
        ):
            made = self._made(node, device, node.outputs, inputs, control)
        if is_circle:
            self._merges.append((node, made, device))
        level.parts[device].append(made)

    def _made(
        self,
        node: Node,
        device: str,
        outputs: Sequence[Value],
        inputs: tuple[Value, ...],
        control: tuple[Node, ...],
    ) -> Node:
        """Returns a node's part on a site, and notes that it stands for the node there."""
        made = node.copy(outputs)
        if self._site_of(node.device) != device:
            made.device = device
        made.inputs, made.control = inputs, control
        self._nodes[node, device] = made
        for value, own in zip(outputs, made.outputs, strict=True):
            self._values[value, device] = own
        return made

    def _transfer(self, node: Node, level: _Level) -> None:
        """Makes the two ends of a transfer; none where the site has the value already."""
        op: Any = node.op
        (value,) = node.inputs
        device = self._site_of(op.recv_device)
        found = self._values.get((value, device))
        if found is None and value.node is None and value not in self._levels:
            found = self._value(value, device)  # what an earlier call of a partial run has made
        if found is None:
            home = self._levels[value.node or value]
            found = self._sent(op, value, home, level, node)
            self._delay(found, node, device)
            if home is level:
                self._values[value, device] = found
        if not op.to_host and not is_host(op.recv_device):
            put = Transfer(op.tensor_name, op.recv_device, op.recv_device)
            made = _end(put, "put", node, op.recv_device, (found,), value.spec)
            level.parts[device].append(made)
            found = made.outputs[0]
        self._values[node.outputs[0], device] = found
        if found.node is not None:
            self._nodes[node, device] = found.node

    def _delay(self, received: Value, node: Node, device: str) -> None:
        """Has a Recv wait for what its transfer waits for on the same site."""
        recv = received.node
        while recv is not None and recv.inputs:
            recv = recv.inputs[0].node
        if recv is not None and node.control:
            waits = [p for n in node.control for p in self._parts_of(n, device)]
            recv.control = (*recv.control, *waits)

    # -- branches and loops ---------------------------------------------------------------------

    def _inner(self, block: Program, devices: Iterable[str], owner: Node) -> _Level:
        level = _Level(block, devices, owner)
        self._levels.update(dict.fromkeys(block.feeds, level))
        self._block(level)
        return level

    def _on(self, values: Sequence[Value], device: str) -> list[int]:
        """Returns the numbers of the values that lie on a site."""
        found = [self._locations.of(v) for v in values]
        return [
            i for i, at in enumerate(found) if at is not None and self._site_of(at.device) == device
        ]

    def _cond(self, node: CondNode, level: _Level) -> None:
        devices = self._takes_part(node)
        preds = {d: self._value(node.pred, d) for d in devices}
        inner = [self._inner(b, devices, node) for b in node.blocks]
        for d in devices:
            chosen = self._on(node.outputs, d)
            blocks = []
            for part in inner:
                gives = tuple([self._value(part.block.fetches[i], d) for i in chosen])
                blocks.append(Program(part.nodes(d), (), gives))
            outputs = [node.outputs[i] for i in chosen]
            self._structured(node, d, level, [preds[d]], blocks, outputs)

    def _loop(self, node: LoopNode, level: _Level) -> None:
        devices = self._takes_part(node)
        trips = self._trips(node, level) if len(devices) > 1 else None
        counts = {d: self._count(node, d, trips) for d in devices}
        variables = {d: self._on(node.results, d) for d in devices}
        lists = {d: self._lists(node, d) for d in devices}
        starts = {d: [self._value(node.starts[i], d) for i in variables[d]] for d in devices}
        taken = {d: [self._value(node.taken[i], d) for i in lists[d]] for d in devices}
        testing = devices if trips is None else [self._site_of(node.device)]
        conditions = [self._inner(b, testing, node) for b in node.conditions]
        tests = [{d: self._value(c.block.fetches[0], d) for d in testing} for c in conditions]
        body = self._inner(node.body, devices, node)
        for d in devices:
            kept = self._on(node.kept, d)
            blocks = []
            for condition, test in zip(conditions, tests, strict=True) if d in testing else ():
                feeds = tuple([condition.block.feeds[i] for i in variables[d]])
                blocks.append(Program(condition.nodes(d), feeds, (test[d],)))
            nexts = [node.next_values[i] for i in variables[d]]
            gives = tuple(
                [self._value(v, d) for v in (*nexts, *[node.kept_values[i] for i in kept])]
            )
            feeds = tuple(
                [node.parameters[i] for i in variables[d]] + [node.elements[i] for i in lists[d]]
            )
            blocks.append(Program(body.nodes(d), feeds, gives))
            outputs = [node.results[i] for i in variables[d]]
            outputs += [node.trip_count, *[node.kept[i] for i in kept]]
            explicit = [*counts[d], *starts[d], *taken[d]]
            op = dataclasses.replace(
                node.op,
                variables=len(variables[d]),
                lists=len(lists[d]),
                has_count=bool(counts[d]),
            )
            self._structured(node, d, level, explicit, blocks, outputs, op)

    def _count(self, node: LoopNode, device: str, trips: Value | None) -> list[Value]:
        """Returns the most iterations of a loop's part on a device, where it is given them."""
        if trips is not None:
            is_own = device == self._site_of(node.device)
            return [] if is_own else [self._told(trips, device)]
        return [] if node.count is None else [self._value(node.count, device)]

    def _trips(self, node: LoopNode, level: _Level) -> Value | None:
        """Returns how often a loop runs, where that is known before it and others are to know."""
        found, home = counted(node), self._site_of(node.device)
        if found is None:
            return None
        if self._site_of(self._locations.variable(node, found.variable).device) != home:
            return None
        limit = found.limit
        if limit.node is not None and is_ambient(limit.node):
            copy = limit.node.copy()
            copy.device = node.device
            level.parts[home].append(copy)
            limit = copy.outputs[0]
        inputs = (
            self._value(node.starts[found.variable], home),
            self._value(limit, home) if limit is found.limit else limit,
        )
        op = TripCount(found.step, found.is_inclusive)
        name = f"{node.name}/trips"
        facts = (name, node.order, inputs, [Spec(int64, ())], "", node.origins, node.path)
        made = Node(op, *facts)
        made.device, made.reason = node.device, f'belongs to "{node.name}"'
        made.control = self._control(node, home)
        level.parts[home].append(made)
        self._levels[made] = level
        return made.outputs[0]

    def _lists(self, node: LoopNode, device: str) -> list[int]:
        """Returns the numbers of the lists that a loop takes elements of on a device."""
        return self._on(node.elements, device)

    def _structured(
        self,
        node: Node,
        device: str,
        level: _Level,
        explicit: Sequence[Value],
        blocks: Sequence[Program],
        outputs: Sequence[Value],
        op: Op | None = None,
    ) -> None:
        """Puts a device's part of a branch or loop into the block around."""
        inputs = (*explicit, *outer_values(blocks))
        made = self._made(node, device, outputs, inputs, self._control(node, device))
        made.blocks = tuple(blocks)
        made.op = op or node.op
        level.parts[device].append(made)


def _is_in_host(at: ValueLocation) -> bool:
    return bool(at.in_host) or is_host(at.device)


def _end(
    op: Op, what: str, near: Node, device: str, inputs: tuple[Value, ...], *specs: Spec
) -> Node:
    """Returns a node that sends or receives."""
    tensor = getattr(op, "tensor_name", "")
    name = f"{tensor}/{what}" if tensor else what
    made = Node(op, name, near.order, inputs, specs, "", near.origins, near.path)
    made.device, made.reason = device, f'belongs to "{near.name}"'
    return made


__all__ = ["Projection", "SiteOf", "project"]
