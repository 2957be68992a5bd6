"""Stages: one program that is run in several calls, as its feeds come in.

A stage is what can run once some feeds are there and could not before: every node whose inputs,
control inputs and earlier effects on its variables are done. So each node runs once, in the first
call that allows it, in an order that program order allows too. The writes of one update group stay
together: they run once all of them can.

A stage is a program of its own. Values that later stages need are its outputs and their inputs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from flowscope.graph.constant import Const
from flowscope.graph.lazy import frozen
from flowscope.ops.core.flow import Identity
from flowscope.plan.analysis.value_locations import ValueLocations
from flowscope.plan.executables.back_ends import BackEnd
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.rewriting import ProgramEdits
from flowscope.plan.passes.order import effects
from flowscope.plan.plan import Plan, Planned, PlanningDevice, Request, compiled, planned, required

Feeds = frozenset[int]


@frozen
class Stage:
    """What one call of a partial run does.

    Attributes:
        plan: Its plan.
        takes: The values of the whole program that it is fed: what the call gives, and what earlier
            stages have made.
        gives: The values that it fetches: what the user and later stages take.
    """

    plan: Plan
    takes: tuple[Value, ...]
    gives: tuple[Value, ...]


@frozen
class Staged:
    """A program with the feeds that each node waits for, by their positions.

    Attributes:
        made: What the program was made from.
        data: What a node's inputs and control inputs wait for.
        needs: What a node waits for, with earlier effects and its update group.
        earlier: Per node these effects and the others of its group.
        required: Handles of variables that are read before the step writes them.
    """

    request: Request
    program: Program
    made: Planned
    data: Mapping[Node, Feeds]
    needs: Mapping[Node, Feeds]
    earlier: Mapping[Node, set[Node]]
    required: tuple[Node, ...]

    def waits_for(self, value: Value) -> Feeds:
        """Returns the feeds that a value needs."""
        return self.needs[value.node] if value.node is not None else frozenset([value.index])

    def blockers(self, node: Node, given: Feeds) -> list[tuple[Node, Feeds]]:
        """The nodes before a node that wait for feeds, each with those feeds.

        Empty where the node itself is computed from a feed that is missing.
        """
        if not self.data[node] <= given:
            return []
        found: dict[Node, Feeds] = {}
        stack, seen = [node], {node}
        while stack:
            at = stack.pop()
            for n in (*_before(at), *self.earlier.get(at, ())):
                if n in seen:
                    continue
                seen.add(n)
                if self.data[n] <= given:
                    stack.append(n)
                else:
                    found[n] = self.data[n] - given
        return list(found.items())

    def stage(
        self,
        before: Feeds | None,
        now: Feeds,
        devices: Mapping[str, PlanningDevice],
        generator: Callable[..., Any],
        back_ends: Mapping[str, BackEnd],
    ) -> Stage:
        """The part of a plan that can run with the feeds `now` and could not with `before`.

        Args:
            before: The feeds of earlier calls; None if there were none.
            now: These and the ones of this call.
            devices, generator, back_ends: See `make_plan`.
        """
        nodes = self.program.nodes
        own = {
            n for n in nodes
            if self.needs[n] <= now and (before is None or not self.needs[n] <= before)
        }  # fmt: skip
        used = [v for n in nodes if n in own for v in n.inputs]
        own |= {v.node for v in used if v.node is not None and _is_remade(v.node)}
        inputs = dict.fromkeys(v for v in used if v.node is None or v.node not in own)
        later = {v for n in nodes if not self.needs[n] <= now for v in n.inputs}
        fetched = set(self.program.fetches)
        outputs = tuple([
            v for n in nodes if n in own for v in n.outputs
            if v in fetched or (v in later and not _is_remade(n))
        ])  # fmt: skip
        locations = ValueLocations(self.program)
        program = _by_itself([n for n in nodes if n in own], tuple(inputs), outputs, locations)
        # whoever hands the fetches out copies them
        made = dataclasses.replace(self.made, program=program)
        given = self.request, made, devices, generator, back_ends
        return Stage(compiled(*given, is_handed_out=False), tuple(inputs), outputs)

    def still_needed(self, given: Feeds) -> frozenset[Value]:
        """Returns the values that nodes need which cannot run with these feeds."""
        late = [n for n in self.program.nodes if not self.needs[n] <= given]
        return frozenset(v for n in late for v in n.inputs)


def _by_itself(
    nodes: list[Node],
    takes: tuple[Value, ...],
    gives: tuple[Value, ...],
    locations: ValueLocations,
) -> Program:
    """Returns the program of a stage: what it takes is fed, what has run is not waited for.

    A feed lies nowhere. What an earlier stage has made is handed on where it lay: transfers of the
    program, and what a loop does with it, go by that.
    """
    feeds = [Value(None, i, v.spec, v.name, v.identity) for i, v in enumerate(takes)]
    own, devices = set(nodes), {n.device for n in nodes}
    edits = ProgramEdits()
    for value, feed in zip(takes, feeds, strict=True):
        at = locations.of(value)
        if value.node is None or at is None or at.in_host or len(devices) < 2:
            edits.same[value] = feed
            continue
        made = Node(Identity(), f"{value.label}/taken", value.node.order, (feed,), [value.spec],
                    "", value.node.origins, value.node.path)  # fmt: skip
        made.device, made.reason = at.device, f'belongs to "{value.node.name}"'
        edits.same[value] = made.outputs[0]
        nodes = [made, *nodes]
    for node in nodes:
        edits.instead.update((n, ()) for n in node.control if n not in own)
    return edits.applied(Program(tuple(nodes), tuple(feeds), gives))


def staged(request: Request) -> Staged:
    """Returns the program of a request, to be run in stages."""
    made = planned(request)
    program = made.program
    data: dict[Node, Feeds] = {}
    for node in program.nodes:
        own = frozenset(v.index for v in node.inputs if v.node is None)
        data[node] = own.union(*(data[n] for n in _before(node)))
    earlier = _earlier(program)
    needs = _needs(program, data, earlier)
    return Staged(request, program, made, data, needs, earlier, required(program))


def _earlier(program: Program) -> dict[Node, set[Node]]:
    """By node: those that must run before it or together with it, and give it no value."""
    earlier = effects(list(program.nodes))
    groups: dict[str, list[Node]] = {}
    for node in program.nodes:
        if node.writes_state and node.update_group:
            groups.setdefault(node.update_group, []).append(node)
    for group in groups.values():
        for node in group:
            earlier.setdefault(node, set()).update(n for n in group if n is not node)
    return earlier


def _needs(
    program: Program, data: Mapping[Node, Feeds], earlier: Mapping[Node, set[Node]]
) -> dict[Node, Feeds]:
    needs = dict(data)
    changed = True
    while changed:
        changed = False
        for node in program.nodes:
            before = (*_before(node), *earlier.get(node, ()))
            found = needs[node].union(*(needs[n] for n in before))
            changed = changed or found != needs[node]
            needs[node] = found
    return needs


def _is_remade(node: Node) -> bool:
    """Whether every stage that uses it makes it for itself."""
    return isinstance(node.op, Const) or node.op.is_handle


def _before(node: Node) -> list[Node]:
    return [*(v.node for v in node.inputs if v.node is not None), *node.control]


__all__ = ["Feeds", "Stage", "Staged", "staged"]
