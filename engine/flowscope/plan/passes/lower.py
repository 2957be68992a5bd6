"""Lower: branches and loops become primitives, for the executor of tokens.

- A `Cond` becomes one Switch per value and branch that uses it, and one Merge per output.
- A `Loop` becomes, per variable, Enter, Merge, Switch, NextIteration and Exit; what it captures
  comes in by constant Enters, through every frame on the way. A list that it takes elements of, or
  keeps, is a variable; so is the number of iterations, where somebody asks for it.
- What a body does runs with its branch or iteration also where it takes no value: then it waits for
  the *pivot* of the place.
- Accesses to a variable that the step writes keep program order. Where they lie in branches and
  loops, the order comes in and goes out as one more value. Effects on the outside world (printing,
  Python functions, files) are ordered the same way. What blocks is exempt.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowscope.control.dynamic.primitives import (
    Exit,
    ListPop,
    ListPush,
    LoopCond,
    Merge,
    NextIteration,
    Switch,
)
from flowscope.control.lists import EmptyList, element_spec
from flowscope.graph.lazy import frozen
from flowscope.graph.op import Spec, op_class
from flowscope.graph.values.dtypes import bool_, int32, int64
from flowscope.ops.core.flow import Identity
from flowscope.plan.analysis.effects import WORLD, is_worldly, leaves
from flowscope.plan.ir.known_ops import LESS, LESS_EQUAL
from flowscope.plan.ir.lowering import (
    Branch,
    Key,
    LoweredBody,
    LoweredFrame,
    LoweredPlace,
    UniqueNames,
    copied,
    is_ambient,
)
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import CondNode, CondOp, LoopNode


@dataclass(frozen=True, eq=False)
class LoweredLoop:
    """What became of a loop, for those who look at its frame.

    Attributes:
        node: The loop as it was.
        variables: The Merge of each of its variables.
        counter: The Merge of the number of iterations; None where nobody asks for it.
        test: The LoopCond.
        kept: The Merge of each list that it keeps.
        limits: What may tell how many iterations there will be: (value of the program that was
            lowered, what stands for it in the frame).
    """

    node: LoopNode
    variables: tuple[Node, ...]
    counter: Node | None
    test: Node
    kept: tuple[Node, ...]
    limits: tuple[tuple[Value, Value], ...]


@frozen
class BoundaryEdges:
    """How values come into what became of a branch or loop, and out of it.

    Attributes:
        entries: The nodes, Switches and Enters, that let values in.
        ends: The nodes that give its results to the place around, each with the output whose value
            that is, None for an order.
    """

    entries: tuple[Node, ...]
    ends: tuple[tuple[Node, Value | None], ...]


@frozen
class Lowered:
    """A lowered program.

    Attributes:
        program: The program.
        places: In which place each node stands: those of one place run together.
        loops: The loop that each frame was made of, by the frame's name.
        kept: What each node is that was no part of lowering: a node of the program as it was.
        doors: By branch or loop as it was. Without those of a condition that is guarded by a count.
    """

    program: Program
    places: Mapping[Node, int]
    loops: Mapping[str, LoweredLoop]
    kept: Mapping[Node, Node]
    doors: Mapping[Node, BoundaryEdges]


def lower(program: Program, chosen: Callable[[Node], bool] | None = None) -> Lowered:
    """Returns a placed program with primitives in the place of branches and loops.

    Args:
        program: The program, its nodes in order.
        chosen: Which nodes with blocks become primitives; what lies in others must not either.
            None if all do.
    """
    return _Lowering(program, chosen).run(program)


class _Lowering:
    """One walk through a program and the blocks in it."""

    def __init__(self, program: Program, chosen: Callable[[Node], bool] | None) -> None:
        walked = list(program.walk())
        self._chosen = chosen or (lambda node: True)
        self._names = UniqueNames(n.name for n in walked)
        self._written: set[Key] = {
            h for n in walked if not n.blocks and n.writes_state for h in n.handles
        }
        self._awaited = _awaited(program)
        self._used = {v for n in walked for v in n.inputs} | {
            v for p in _programs(program) for v in p.fetches
        }
        #: What to wait for in place of a node.
        self._instead: dict[Node, tuple[Node, ...]] = {}
        self._loops: dict[str, LoweredLoop] = {}
        self._kept: dict[Node, Node] = {}
        self._doors: dict[Node, BoundaryEdges] = {}
        #: Merges made by hand, and what stands for them: what comes around a loop comes later.
        self._merges: list[tuple[Node, Node]] = []
        #: Awaited nodes with blocks that are being lowered.
        self._open: list[Node] = []

    def run(self, program: Program) -> Lowered:
        root = LoweredPlace(self._names)
        self._block(root, program)
        for node, made in self._merges:
            made.inputs = tuple([root.get(v) for v in node.inputs])
        fetches = tuple([root.get(v) for v in program.fetches])
        targets = tuple(m for n in program.targets for m in self._instead.get(n, (n,)))
        nodes = tuple(self._names.nodes)
        lowered = dataclasses.replace(program, nodes=nodes, fetches=fetches, targets=targets)
        return Lowered(lowered, self._names.places, self._loops, self._kept, self._doors)

    def _block(self, place: LoweredPlace, program: Program) -> None:
        for node in program.nodes:
            if not (node.blocks and self._chosen(node)):
                self._keep(place, node)
                continue
            if node in self._awaited:
                self._open.append(node)
            self._lower(place, node)
            if node in self._awaited:
                self._open.remove(node)

    def _controls(self, node: Node) -> tuple[Node, ...]:
        """The control inputs of a node."""
        found = dict.fromkeys(m for n in node.control for m in self._instead.get(n, (n,)))
        return tuple([n for n in found if not is_ambient(n)])

    def _lower(self, place: LoweredPlace, node: Node) -> None:
        keys = self._keys(node)
        tokens = self._tokens(place, node, keys)
        if isinstance(node, CondNode):
            ends = self._cond(place, node, tokens)
        else:
            assert isinstance(node, LoopNode)
            ends = self._loop(place, node, tokens)
        for key, end in ends.items():
            place.accesses.note(key, end, keys[key])
        if node in ends:
            self._instead[node] = (ends[node],)

    def _keep(self, place: LoweredPlace, node: Node) -> None:
        """Puts a copy of a node into its place; a constant or a handle as it is."""
        if is_ambient(node):
            place.add(node)
            return
        keys = self._keys(node)
        before = [n for key, writes in keys.items() for n in self._before(place, key, writes)]
        control = dict.fromkeys((*self._controls(node), *before))
        made = place.add(copied(node, place.get, tuple(control)))
        place.values.update(zip(node.outputs, made.outputs, strict=True))
        self._instead[node] = (made,)
        self._kept[made] = node
        if isinstance(node.op, Merge):
            self._merges.append((node, made))
        for key, writes in keys.items():
            place.accesses.note(key, made, writes)

    def _tokens(self, place: LoweredPlace, node: Node, keys: dict[Key, bool]) -> dict[Key, Value]:
        """Returns, per key, a value that is there once a node with blocks may touch it."""
        return {
            key: place.token(self._before(place, key, writes), node) for key, writes in keys.items()
        }

    def _before(self, place: LoweredPlace, key: Key, writes: bool) -> list[Node]:
        """The nodes that an access must wait for; none where others wait for all of them."""
        return [] if key in self._awaited else place.accesses.before(key, writes)

    def _keys(self, node: Node) -> dict[Key, bool]:
        """Returns the state that a node touches, by whether it writes it."""
        keys: dict[Key, bool] = {}
        for inner in leaves(node):
            for handle in inner.handles:
                if handle in self._written:
                    keys[handle] = keys.get(handle, False) or inner.writes_state
            if is_worldly(inner):
                keys[WORLD] = True
        if node.has_effect or node.blocks:
            keys |= {owner: False for owner in self._open if owner is not node}
        if node in self._awaited:
            keys[node] = True
        return keys

    # -- branches -------------------------------------------------------------------------------

    def _cond(
        self, place: LoweredPlace, node: CondNode, tokens: dict[Key, Value]
    ) -> dict[Key, Node]:
        """Lowers a Cond; returns the token of the end per key."""
        pred = place.get(node.pred)
        control = self._controls(node)
        if control:
            pred = place.make(Identity(), "pred", (pred,), [pred.spec], node, control).outputs[0]
        ends: list[list[Value]] = []
        entries: list[Node] = []
        for taken, block in zip((True, False), node.blocks, strict=True):
            branch = Branch(place, node, pred, taken)
            for key, token in tokens.items():
                branch.start(key, branch.bring(token))
            self._block(branch, block)
            results = [branch.result(v) for v in block.fetches]
            ends.append([*results, *[branch.end(key) for key in tokens]])
            entries += branch.entries
        merged: list[Node] = []
        for then, orelse in zip(*ends, strict=True):
            i = len(merged)
            spec = node.outputs[i].spec if i < len(node.outputs) else Spec(bool_, ())
            specs = [spec, Spec(int32, ())]
            merged.append(place.make(Merge(), "Merge", (orelse, then), specs, node))
        for output, merge in zip(node.outputs, merged, strict=False):
            place.let_stand([output], merge.outputs)
        outputs = (*node.outputs, *[None for _ in tokens])
        self._doors[node] = BoundaryEdges(tuple(entries), tuple(zip(merged, outputs, strict=True)))
        return dict(zip(tokens, merged[len(node.outputs) :], strict=True))

    # -- loops ----------------------------------------------------------------------------------

    def _loop(
        self, place: LoweredPlace, node: LoopNode, tokens: dict[Key, Value]
    ) -> dict[Key, Node]:
        """Lowers a Loop; returns the token of the end per key."""
        body = node.body
        name = self._names.unique(f"{node.name}/frame")
        frame = LoweredFrame(place, node, name, node.op.parallel_iterations, self._controls(node))
        variables, counter = self._variables(place, node)
        merges = [frame.variable(start, spec) for start, spec in variables]
        orders = {key: frame.variable(token, token.spec) for key, token in tokens.items()}
        for key, merge in orders.items():
            frame.accesses.note(key, merge, True)
        count = merges[-1].outputs[0] if counter else None
        limit = None if node.count is None else frame.get(node.count)
        carried = [m.outputs[0] for m in merges]
        test = self._test(frame, node, list(node.conditions), carried, count, limit)
        inside = LoweredBody(frame, node, test)
        switched = [self._switch(frame, inside, node, v, test) for v in carried]
        ordered = {key: self._switch(frame, inside, node, frame.end(key), test) for key in orders}
        nexts = self._iteration(inside, node, body, [s.outputs[1] for s in switched], counter)
        for key, switch in ordered.items():
            inside.start(key, switch.outputs[1])
        self._block(inside, body)
        nexts = [inside.get(n) if isinstance(n, Value) else n() for n in nexts]
        for merge, value in zip(merges, nexts, strict=True):
            self._back(inside, merge, value)
        for key, merge in orders.items():
            self._back(inside, merge, inside.end(key))
        left = self._exits(place, node, switched, counter)
        self._loops[name] = _lowered_loop(frame, node, merges, counter, test)
        ends = {
            key: place.make(Exit(), "Exit", (s.outputs[0],), [s.outputs[0].spec], node)
            for key, s in ordered.items()
        }
        left += [(end, None) for end in ends.values()]
        self._doors[node] = BoundaryEdges(tuple(frame.entries), tuple(left))
        return ends

    def _variables(
        self, place: LoweredPlace, node: LoopNode
    ) -> tuple[list[tuple[Value, Spec]], bool]:
        """Returns the start and the Spec of each variable, and whether the last is a counter."""
        found = []
        for value, parameter in zip(node.starts, node.parameters, strict=True):
            found.append((place.get(value), _outside(parameter.spec)))
        taken = [place.get(value) for value in node.taken]
        found += [(value, _outside(value.spec)) for value in taken]
        for output in node.kept:
            empty = place.make(
                EmptyList(element_spec(output.spec)), "empty", (), [output.spec], node
            )
            found.append((empty.outputs[0], output.spec))
        is_counted = node.count is not None or node.trip_count in self._used
        has_counter = is_counted or not found
        if has_counter:
            zero = place.constant(np.int64(0), int64, "count", node)
            found.append((zero, Spec(int64, ())))
        return found, has_counter

    def _test(
        self,
        frame: LoweredFrame,
        node: LoopNode,
        conditions: list[Program],
        carried: list[Value],
        count: Value | None,
        limit: Value | None,
    ) -> Value:
        """Lowers the condition; returns whether there is another iteration."""
        test: Value | None = None
        if limit is not None:
            assert count is not None
            test = frame.make(
                op_class("Less")(), "is_left", (count, limit), [Spec(bool_, ())], steers=True
            ).outputs[0]  # fmt: skip
        for cond in conditions:
            frame.values.update(zip(cond.feeds, carried, strict=False))
            if test is None:
                self._block(frame, cond)
                test = frame.get(cond.fetches[0])
            elif all(_may_run_early(n) for n in cond.nodes):
                self._block(frame, cond)
                pair = (test, frame.get(cond.fetches[0]))
                test = frame.make(
                    op_class("LogicalAnd")(), "goes_on", pair, [Spec(bool_, ())], steers=True
                ).outputs[0]  # fmt: skip
            else:
                test = self._guarded(frame, node, cond, test)
        assert test is not None
        return frame.make(LoopCond(), "LoopCond", (test,), [Spec(bool_, ())]).outputs[0]

    def _guarded(self, frame: LoweredFrame, node: Node, cond: Program, test: Value) -> Value:
        """Lowers a condition that must not run once the count says that the loop ends."""
        false = frame.constant(np.False_, bool_, "ends")
        guard = CondNode(
            CondOp("", ""),
            self._names.unique(f"{node.name}/goes_on"),
            node.order,
            (test,),
            [Spec(bool_, ())],
            node.requested,
            node.origins,
            node.path,
        )
        guard.device = node.device
        guard.blocks = (dataclasses.replace(cond, feeds=()), Program((), (), (false,)))
        keys = self._keys(guard)
        tokens = self._tokens(frame, guard, keys)
        for key, end in self._cond(frame, guard, tokens).items():
            frame.accesses.note(key, end, keys[key])
        return frame.get(guard.outputs[0])

    def _switch(
        self, frame: LoweredFrame, inside: LoweredBody, node: Node, value: Value, test: Value
    ) -> Node:
        spec = _outside(value.spec)
        switch = frame.make(Switch(), "Switch", (value, test), [spec, spec], node)
        inside.let(switch.outputs[1])
        return switch

    def _iteration(
        self,
        inside: LoweredBody,
        node: LoopNode,
        body: Program,
        switched: list[Value],
        has_counter: bool,
    ) -> list[Any]:
        """Gives the body its variables; returns their next values, or what makes them."""
        n, lists = node.variables, node.lists
        inside.let_stand(body.feeds[:n], switched)
        nexts: list[Any] = list(node.next_values)
        for feed, taken in zip(node.elements, switched[n : n + lists], strict=True):
            specs = [_outside(feed.spec), _outside(taken.spec)]
            pop = inside.make(ListPop(), "pop", (taken,), specs)
            inside.let_stand([feed], pop.outputs)
            nexts.append(pop.outputs[1])
        for value, kept in zip(node.kept_values, switched[n + lists :], strict=False):
            nexts.append(lambda v=value, k=kept: self._push(inside, k, v))
        if has_counter:
            one = inside.constant(np.int64(1), int64, "one")
            pair, spec = (switched[-1], one), Spec(int64, ())
            added = inside.make(op_class("Add")(), "count", pair, [spec], steers=True)
            nexts.append(added.outputs[0])
        return nexts

    def _push(self, inside: LoweredBody, kept: Value, value: Value) -> Value:
        return inside.make(
            ListPush(), "push", (kept, inside.get(value)), [_outside(kept.spec)]
        ).outputs[0]  # fmt: skip

    def _back(self, inside: LoweredBody, merge: Node, value: Value) -> None:
        node = inside.make(NextIteration(), "NextIteration", (value,), [_outside(value.spec)])
        merge.inputs = (*merge.inputs, node.outputs[0])

    def _exits(
        self, place: LoweredPlace, node: LoopNode, switched: list[Node], has_counter: bool
    ) -> list[tuple[Node, Value | None]]:
        """Gives the outputs that somebody uses their Exits; returns these."""
        n = node.variables
        ends = [*switched[:n], switched[-1] if has_counter else None, *switched[n + node.lists :]]
        made: list[tuple[Node, Value | None]] = []
        for output, switch in zip(node.outputs, ends, strict=False):
            if switch is not None and output in self._used:
                left = switch.outputs[0]
                exit = place.make(Exit(), "Exit", (left,), [output.spec], node)
                place.let_stand([output], exit.outputs)
                made.append((exit, output))
        return made


def _lowered_loop(
    frame: LoweredFrame, node: LoopNode, merges: list[Node], has_counter: bool, goes_on: Value
) -> LoweredLoop:
    n = node.variables + node.lists
    kept = merges[n : n + len(node.kept)]
    limits = [] if node.count is None else [node.count]
    cond = node.condition
    test = None if cond is None else cond.fetches[0].node
    if cond is not None and test is not None and isinstance(test.op, (LESS, LESS_EQUAL)):
        own = {*cond.feeds, *[v for m in cond.nodes for v in m.outputs]}
        limits += [v for v in test.inputs[1:] if v not in own]
    known = tuple([(v, frame.get(v)) for v in limits if v.spec.constant is None])
    assert goes_on.node is not None
    counter = merges[-1] if has_counter else None
    return LoweredLoop(
        node, tuple(merges[: node.variables]), counter, goes_on.node, tuple(kept), known
    )


def _outside(spec: Spec) -> Spec:
    return Spec(spec.dtype, spec.shape, variable=spec.variable)


def _programs(program: Program) -> list[Program]:
    return [program, *[b for n in program.walk() for b in n.blocks]]


def _awaited(program: Program) -> set[Node]:
    """Returns the nodes with blocks that others wait for without a value, or nobody reads."""
    nodes = list(program.walk())
    return {c for n in nodes for c in n.control if c.blocks}


def _may_run_early(node: Node) -> bool:
    """Whether a node of a loop's condition can be computed though the count says that it ends."""
    if node.blocks or not node.op.may_run_early:
        return False
    return all(v.spec.shape == () for v in (*node.inputs, *node.outputs))


__all__ = ["Lowered", "LoweredLoop", "lower"]
