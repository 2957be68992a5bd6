"""Plans whose nodes are on several CPUs by a rule, whatever asked for which device."""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from flowscope.graph.values.dtypes import resource, variant
from flowscope.plan import pipeline
from flowscope.plan.ir.program import Node, Program
from flowscope.plan.ir.rewriting import changed
from flowscope.plan.ir.structured import LoopNode
from flowscope.plan.passes.transfers import insert_transfers
from flowscope.plan.plan import compiled
from flowscope.runtime.state.random_generators import generator


def device(number: int, kind: str = "CPU") -> str:
    return f"/job:localhost/replica:0/task:0/device:{kind}:{number}"


#: Says on which device a node is.
Rule = Callable[[Node], str]


def by_letter(node: Node) -> str:
    """`A1` is on the first CPU, `B1` on the second one, what has no such name on the first."""
    found = re.findall(r"(?:^|/)([A-H])\d", node.name)
    return device("ABCDEFGH".index(found[-1]) if found else 0)


def by_chance(program: Program, seed: int, count: int = 3) -> Rule:
    """Every node is somewhere, but what touches lists and state is on the first CPU."""
    bound = set(_kept(program))

    def rule(node: Node) -> str:
        touches_list = any(
            v.spec.dtype in (variant, resource) for v in (*node.inputs, *node.outputs)
        )
        if node in bound or (touches_list and not node.blocks):
            return device(0)
        return device(random.Random(f"{seed} {node.name}").randrange(count))

    return rule


def _kept(program: Program) -> Iterator[Node]:
    """Yields what makes values that are kept in lists that more than loops touch."""
    taken = {v for n in program.walk() if isinstance(n, LoopNode) for v in n.taken}
    used = [
        v
        for n in program.walk()
        for v in (
            *(() if isinstance(n, LoopNode) else n.inputs),
            *(f for b in n.blocks for f in b.fetches),
        )
    ]
    others = {v for v in used if v.spec.dtype is variant}
    for loop in program.walk():
        if isinstance(loop, LoopNode):
            for kept, value in zip(loop.kept, loop.kept_values, strict=True):
                if kept in others or kept not in taken:
                    yield from [value.node] if value.node is not None else []


def placed(program: Program, rule: Rule) -> Program:
    """Returns a program with these devices."""
    return changed(program, {n: {"device": rule(n), "reason": "a rule"} for n in program.walk()})


def with_transfers(program: Program, rule: Rule) -> Program:
    return insert_transfers(placed(program, rule))


def plan_on(sess: Any, fetches: Any, feeds: Any, rule: Rule | int, count: int = 3) -> Any:
    """Returns a plan on several CPUs; a number as rule stands for `by_chance`."""
    planner = sess.planner
    plan = sess.plan(fetches, list(feeds))
    program = dict(plan.stages())["place"]
    found = by_chance(program, rule, count) if isinstance(rule, int) else rule
    program = placed(program, found)
    names = [p.name for p in pipeline.PASSES]
    for one in pipeline.PASSES[names.index("place") + 1 :]:
        if one.runs_for(plan.request):
            program = one.run(program, plan.request)
    devices = {n.device: sess.devices[0] for n in program.walk()} | {"": sess.devices[0]}
    made = dataclasses.replace(plan_of(plan), program=program)
    return compiled(
        plan.request,
        made,
        devices,
        generator,
        planner.back_ends,
    )


def short(program: Program) -> str:
    """Returns a program as text, `name = type(inputs) letter of the device`, without constants."""

    def lines(block: Program, indent: str) -> Iterator[str]:
        for node in block.nodes:
            if node.op.type == "Const":
                continue
            inputs = ", ".join(v.label for v in (node.explicit if node.blocks else node.inputs))
            after = "".join(f" after {c.name}" for c in node.control)
            letter = "ABCDEFGH"[int(node.device.rpartition(":")[2])]
            yield f"{indent}{node.name} = {node.op.type}({inputs}) {letter}{after}"
            for name, inner in zip(node.block_names, node.blocks, strict=False):
                takes = ", ".join(v.label for v in inner.feeds)
                yield f"{indent}  {name}({takes}):"
                yield from lines(inner, indent + "    ")
                yield f"{indent}    -> " + (", ".join(v.label for v in inner.fetches) or "nothing")

    return "\n".join(lines(program, ""))


def plan_of(plan: Any) -> Any:
    from flowscope.plan.plan import Planned

    return Planned(plan.program, plan.operations, plan.sources, plan.program)
