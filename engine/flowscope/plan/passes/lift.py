"""Lift: a loop that was made by hand of primitives becomes a loop of the program.

What its iterations run is read off the primitives: a variable is a Merge of an Enter and a
NextIteration; what follows from the true side of a Switch is the body, what does not and the
LoopCond needs is the condition. Then everything that planning does for loops is done for these:
they are code, lie on several devices, and are cut.

Lifted is what has this form, down to the innermost loop. The rest stays as it is: a loop whose
values may be dead, with a branch by hand in it, whose variables change their shapes, or that would
have to compute something with an effect twice.

Source: the form is that of Yu et al. 2018, "Dynamic control flow in large-scale machine learning",
section 4.1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field

from flowscope.control.dynamic.primitives import Enter, Exit, LoopCond, Merge, NextIteration, Switch
from flowscope.graph.lazy import mutable
from flowscope.graph.op import Spec
from flowscope.graph.values.dtypes import int64
from flowscope.plan.ir.lowering import is_ambient
from flowscope.plan.ir.program import Node, Program, Value, is_back_edge, outer_values
from flowscope.plan.ir.rewriting import ProgramEdits, in_order, origins_of
from flowscope.plan.ir.structured import LoopNode, LoopOp

#: The names of the frames around, from the outermost.
Path = tuple[str, ...]
#: The substitute of a value in a scope.
Resolve = Callable[[Value], Value]


def lift_loops(program: Program) -> Program:
    """Returns a program in which loops by hand are loops, where they have the form of one."""
    edits, same = ProgramEdits(), list[tuple[object, object]]()
    names = {n.name for n in program.walk()}
    for block in (program, *[b for n in program.walk() for b in n.blocks]):
        if any(isinstance(n.op, Enter) for n in block.nodes):
            _lift(block, edits, names, same)
    lifted = edits.applied(program)
    return dataclasses.replace(lifted, same=(*lifted.same, *same)) if same else lifted


def _lift(
    block: Program, edits: ProgramEdits, names: set[str], same: list[tuple[object, object]]
) -> None:
    frames = _frames(block)
    position = {n: i for i, n in enumerate(block.nodes)}
    for frame in () if frames is None else frames.children.values():
        try:
            _check_place(frame, block, position)
            lifter = _Lifter(names)
            loop = lifter.loop(frame, lambda v: v, lambda c: (c,))
        except _OtherFormError:
            continue
        edits.insert([loop], min(frame.exits, key=position.__getitem__))
        for node, value in lifter.results:
            edits.same[node.outputs[0]] = value
        for node in frame.all_nodes():
            edits.drop(node, (loop,))
        same += lifter.same


def _check_place(frame: _Frame, block: Program, position: Mapping[Node, int]) -> None:
    """Raises `_OtherFormError` unless the loop may stand where the first Exit does."""
    if not frame.exits:
        raise _OtherFormError
    nodes = [*frame.all_nodes()]
    at = min(position[n] for n in frame.exits)
    own, first = set(nodes), min(position[n] for n in nodes)
    taken = [b for n in nodes for b in _before(n) if b not in own]
    handles = {h for n in nodes for h in n.handles}
    others = (n for n in block.nodes[first:] if n not in own and position[n] < at)
    if any(position[b] > at for b in taken if b in position) or (
        handles and any(not handles.isdisjoint(n.handles) for n in others)
    ):
        raise _OtherFormError


class _OtherFormError(Exception):
    """A loop by hand is not of the form that can be lifted."""


@mutable
class _Frame:
    """What a loop by hand consists of.

    Attributes:
        path: Its name, and those of the frames around.
        children: The frames inside, by their names.
        nodes: Its nodes in an order that respects data and control, with the Exits of children.
        exits: The Exits that leave it.
        is_other: Whether something is wrong with it, seen from outside.
    """

    path: Path
    children: dict[str, _Frame] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    exits: list[Node] = field(default_factory=list)
    is_other: bool = False

    @property
    def enters(self) -> list[Node]:
        """The Enters that lead into it."""
        return [n for n in self.nodes if isinstance(n.op, Enter)]

    def all_nodes(self) -> Iterable[Node]:
        """Yields its nodes, those of frames inside, and the Exits that leave it."""
        for child in self.children.values():
            yield from (n for n in child.all_nodes() if n not in self.nodes)
        yield from self.nodes
        yield from self.exits


def _frames(block: Program) -> _Frame | None:
    """Returns the frames of a block; None where nothing can be said of it."""
    own = set(block.nodes)
    before = {n: {b for b in _before(n) if b in own} for n in block.nodes}
    nodes = in_order(block.nodes, before)
    if len(nodes) < len(block.nodes):
        return None
    root = _Frame(())
    found: dict[Node, _Frame] = {}
    dead: set[Node] = set()
    for node in nodes:
        around = list({id(f): f for n in before[node] if (f := found.get(n))}.values())
        frame = max(around, key=lambda f: len(f.path), default=root)
        if is_ambient(node) and not node.control:
            continue
        if any(n in dead for n in before[node]) or _is_branch(node):
            dead.add(node)
        if len(around) > 1 or (frame is not root and _takes_from_outside(node, own, before)):
            frame.is_other = True
        found[node] = frame = _entered(node, frame, root, found)
        frame.is_other = frame.is_other or (node in dead and frame is not root)
        if frame is not root:
            frame.nodes.append(node)
    return root


def _entered(node: Node, frame: _Frame, root: _Frame, found: dict[Node, _Frame]) -> _Frame:
    """Returns the frame of a node, whose inputs are of another one if it enters or leaves it."""
    if isinstance(node.op, Enter):
        name = node.op.frame_name
        return frame.children.setdefault(name, _Frame((*frame.path, name)))
    if isinstance(node.op, Exit):
        frame.exits.append(node)
        at = root
        for name in frame.path[:-1]:
            at = at.children[name]
        return at
    return frame


def _before(node: Node) -> list[Node]:
    found = [v.node for v in node.inputs if v.node is not None and not is_back_edge(v, node)]
    return [*found, *node.control]


def _takes_from_outside(node: Node, own: set[Node], before: dict[Node, set[Node]]) -> bool:
    """Whether a node of a frame takes a value that did not come in through an Enter."""
    return any(v.node is None or v.node not in own for v in node.inputs) and bool(before[node])


def _is_branch(node: Node) -> bool:
    """Whether a node is a Switch of no loop."""
    if not isinstance(node.op, Switch):
        return False
    pred = node.inputs[1].node
    return pred is None or not isinstance(pred.op, LoopCond)


class _Parts:
    """What of a frame is its condition, and what its body.

    Attributes:
        merges: The variables.
        test: The LoopCond.
        late: What follows from the true side of a Switch.
        children: The frame inside that an Exit leaves.
    """

    def __init__(self, frame: _Frame) -> None:
        self.frame = frame
        self.merges: list[Node] = []
        self.late: set[Node] = set()
        self.children = {e: c for c in frame.children.values() for e in c.exits}
        tests = [n for n in frame.nodes if isinstance(n.op, LoopCond)]
        if frame.is_other or len(tests) != 1:
            raise _OtherFormError
        self.test = tests[0]
        for node in frame.nodes:
            self._look(node)
        are_late = all(_is_true_side(v) or v.node in self.late for v in self.next_values)
        if not self.merges or not are_late or any(not self._leaves(e) for e in frame.exits):
            raise _OtherFormError

    def _look(self, node: Node) -> None:
        match node.op:
            case Merge():
                self._variable(node)
            case Switch():
                if node.inputs[1].node is not self.test:
                    raise _OtherFormError
            case NextIteration() | Enter() | LoopCond() | Exit():
                pass
            case _:
                if any(_is_false_side(v) for v in node.inputs):
                    raise _OtherFormError
        if self._follows(node):
            if isinstance(node.op, LoopCond | Switch | Merge):
                raise _OtherFormError
            self.late.add(node)

    def _follows(self, node: Node) -> bool:
        if isinstance(node.op, Enter):
            return False
        child = self.children.get(node)
        nodes = [node] if child is None else child.enters
        used = [v for n in nodes for v in n.inputs if not is_back_edge(v, n)]
        waits = [c for n in nodes for c in n.control]
        return any(_is_true_side(v) or v.node in self.late for v in used) or any(
            c in self.late for c in waits
        )

    def _variable(self, node: Node) -> None:
        start, back = node.inputs if len(node.inputs) == 2 else (None, None)
        if start is None or back is None or start.node is None or back.node is None:
            raise _OtherFormError
        enter, following = start.node.op, back.node.op
        is_variable = isinstance(enter, Enter) and not enter.is_constant
        if not is_variable or not isinstance(following, NextIteration):
            raise _OtherFormError
        spec, after = node.outputs[0].spec, back.node.inputs[0].spec
        if spec.shape != after.shape or spec.shape != start.spec.shape:
            raise _OtherFormError
        self.merges.append(node)

    def _leaves(self, node: Node) -> bool:
        """Whether an Exit hands out a variable, and waits for nothing else."""
        (value,) = node.inputs
        switch = value.node
        return (
            switch is not None
            and _is_false_side(value)
            and switch.inputs[0].node in self.merges
            and switch.inputs[0].index == 0
            and not node.control
        )

    @property
    def next_values(self) -> list[Value]:
        """What the variables are in the next iteration."""
        backs = [m.inputs[1].node for m in self.merges]
        return [b.inputs[0] for b in backs if b is not None]

    def needed(self, values: Iterable[Value], is_late: bool) -> list[Node]:
        """Returns the nodes that values need, and those with effects of one of the two parts."""
        own = set(self.frame.nodes)
        stack = [v.node for v in values]
        stack += [n for n in own if (n in self.late) is is_late and n.has_effect]
        for exit_, child in self.children.items():
            has_effect = any(n.has_effect for n in child.all_nodes())
            stack += [exit_] if has_effect and (exit_ in self.late) is is_late else []
        found: set[Node] = set()
        while stack:
            node = stack.pop()
            if node is None or node not in own or node in found:
                continue
            found.add(node)
            if isinstance(node.op, Enter | Merge):
                continue
            if isinstance(node.op, Switch):  # whether it runs is what the part is about
                stack.append(node.inputs[0].node)
                continue
            inner = self.children.get(node)
            for each in [node] if inner is None else inner.enters:
                stack += [*(v.node for v in each.inputs), *each.control]
        return [n for n in self.frame.nodes if n in found]


class _Lifter:
    """Makes a loop of a frame and of those inside.

    Attributes:
        results: The Exits, and the values of the loop that they hand out.
        same: The identities of values that are gone, and of those in their place.
    """

    def __init__(self, names: set[str]) -> None:
        self._names = names
        self.results: list[tuple[Node, Value]] = []
        self.same: list[tuple[object, object]] = []

    def loop(
        self, frame: _Frame, resolve: Resolve, awaited: Callable[[Node], tuple[Node, ...]]
    ) -> LoopNode:
        """Returns the loop; raises `_OtherFormError` where it is not of the form.

        Args:
            frame: The frame.
            resolve: The value outside of the loop for one that enters it.
            awaited: The node there for one that is waited for.
        """
        parts = _Parts(frame)
        test, merges = parts.test, parts.merges
        condition = self._block(parts, resolve, False, [test.inputs[0]])
        body = self._block(parts, resolve, True, parts.next_values)
        starts = [resolve(m.inputs[0].node.inputs[0]) for m in merges if m.inputs[0].node]
        enters = frame.enters
        window = min(e.op.parallel_iterations for e in enters if isinstance(e.op, Enter))
        name = self._unique(frame.path[-1])
        op = LoopOp(f"{name}_body", f"{name}_cond", len(merges), 0, False, window)
        specs = [*[m.outputs[0].spec for m in merges], Spec(int64, ())]
        inputs = (*starts, *outer_values((condition, body)))
        primitives = [*[m.inputs[0].node for m in merges], test, *merges, *enters, *frame.exits]
        order = min(n.order for n in (*frame.exits, test))
        origins = origins_of((*primitives, *parts.frame.nodes))
        made = LoopNode(op, f"{name}/Loop", order, inputs, specs, test.requested, origins,
                        test.path)  # fmt: skip
        made.blocks = condition, body
        waits = [w for e in enters for c in e.control for w in awaited(c)]
        made.control = tuple(dict.fromkeys(waits))
        for node in frame.exits:
            switch = node.inputs[0].node
            assert switch is not None and switch.inputs[0].node is not None
            value = made.outputs[merges.index(switch.inputs[0].node)]
            value.stand_for(node.outputs[0])
            self.results.append((node, value))
        return made

    def _unique(self, name: str) -> str:
        found, count = name, 0
        while f"{found}/Loop" in self._names:
            count += 1
            found = f"{name}_{count}"
        self._names.add(f"{found}/Loop")
        return found

    def _block(
        self, parts: _Parts, resolve: Resolve, is_body: bool, wanted: Sequence[Value]
    ) -> Program:
        """Returns the condition or the body, from copies of the nodes that it needs."""
        feeds = []
        for i, merge in enumerate(parts.merges):
            value = merge.outputs[0]
            feeds.append(Value(None, i, value.spec, value.label, value.identity))
        scope = _Scope(parts, resolve, is_body)
        scope.values.update((m.outputs[0], f) for m, f in zip(parts.merges, feeds, strict=True))
        for node in parts.needed(wanted, is_body):
            self._copy(node, scope)
        fetches = tuple([scope.value(v) for v in wanted])
        return Program(tuple(scope.nodes), tuple(feeds), fetches)

    def _copy(self, node: Node, scope: _Scope) -> None:
        parts = scope.parts
        match node.op:
            case Merge() | NextIteration():
                return
            case Enter():
                if node.op.is_constant:
                    self._stands(node.outputs[0], scope.resolve(node.inputs[0]), scope)
                return
            case LoopCond():
                if not scope.is_body:
                    self._stands(node.outputs[0], scope.value(node.inputs[0]), scope)
                return
            case Switch():
                self._stands(node.outputs[1], scope.value(node.inputs[0]), scope)
                return
        if (node in parts.late) is not scope.is_body and not _is_again(node, parts, scope):
            raise _OtherFormError
        child = parts.children.get(node)
        if child is None:
            scope.add(node)
        elif node.outputs[0] not in scope.values:
            count = len(self.results)
            scope.nodes.append(self.loop(child, scope.value, scope.awaited))
            scope.copies.update(dict.fromkeys(child.exits, (scope.nodes[-1],)))
            scope.values.update((e.outputs[0], v) for e, v in self.results[count:])
            del self.results[count:]

    def _stands(self, value: Value, made: Value, scope: _Scope) -> None:
        scope.values[value] = made
        if value.identity is not made.identity:
            self.same.append((value.identity, made.identity))


def _is_again(node: Node, parts: _Parts, scope: _Scope) -> bool:
    """Whether the body may compute again what the condition has computed."""
    return scope.is_body and node.op.is_pure and not node.blocks and node not in parts.children


class _Scope:
    """A condition or a body that is being made.

    Attributes:
        parts: The loop's parts.
        resolve: The value outside of the loop for one that enters it.
        is_body: Whether it is the body.
        values: What stands here for values of the frame.
        nodes: Its nodes.
        copies: What stands here for nodes.
    """

    def __init__(self, parts: _Parts, resolve: Resolve, is_body: bool) -> None:
        self.parts = parts
        self.resolve = resolve
        self.is_body = is_body
        self.values: dict[Value, Value] = {}
        self.nodes: list[Node] = []
        self.copies: dict[Node, tuple[Node, ...]] = {}

    def value(self, value: Value) -> Value:
        """The value here of one of the frame, or of one that comes in by itself."""
        found = self.values.get(value)
        if found is not None:
            return found
        if value.node is None or not is_ambient(value.node):
            raise _OtherFormError
        return self.resolve(value)

    def awaited(self, node: Node) -> tuple[Node, ...]:
        """The nodes here in place of a control input; none if that has run already."""
        if node in self.copies:
            return self.copies[node]
        if node in self.parts.late or node not in self.parts.frame.nodes:
            raise _OtherFormError
        is_primitive = isinstance(node.op, Merge | Enter | Switch | LoopCond)
        if not self.is_body and not is_primitive:
            raise _OtherFormError
        return ()

    def add(self, node: Node) -> None:
        """Puts a copy of a node here."""
        inputs = tuple([self.value(v) for v in node.inputs])
        control = tuple(dict.fromkeys([w for c in node.control for w in self.awaited(c)]))
        made = node.copy()
        made.inputs, made.control = inputs, control
        if node.blocks:
            made.blocks = _inside(node, self.value)
            explicit = inputs[: len(inputs) - len(outer_values(node.blocks))]
            made.inputs = (*explicit, *outer_values(made.blocks))
        self.nodes.append(made)
        self.copies[node] = (made,)
        self.values.update(zip(node.outputs, made.outputs, strict=True))


def _inside(node: Node, resolve: Resolve) -> tuple[Program, ...]:
    """Returns the blocks of a node, which take other values from outside."""
    edits = ProgramEdits()
    edits.same.update((v, resolve(v)) for v in outer_values(node.blocks))
    return tuple([edits.applied(b) for b in node.blocks])


def _is_true_side(value: Value) -> bool:
    return value.node is not None and isinstance(value.node.op, Switch) and value.index == 1


def _is_false_side(value: Value) -> bool:
    return value.node is not None and isinstance(value.node.op, Switch) and value.index == 0


__all__ = ["lift_loops"]
