"""Op mode: a region run one operation at a time, for debuggers and as the code's counterpart.

It calls kernels where generated code inlines templates, allocates alike and gives bit-equal
results.
Templates for numbers may differ from the kernel in the sign of a zero, so both modes share them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowscope.graph.op import is_special, kernel_of
from flowscope.plan.code import (
    counter,
    device_type,
    own,
    scalar_template,
    unsafe_inside,
    unsafe_positions,
)
from flowscope.plan.passes.regions import Region
from flowscope.plan.program import Node, Program, Value

#: Called after each operation with the node and its outputs' values.
Probe = Callable[[Node, tuple[Any, ...]], None]


class Interpreter:
    """Runs a region one operation at a time; same signature as generated code."""

    def __init__(
        self, region: Region, xp: Any, generator: Callable[..., Any], unsafe: frozenset[int]
    ) -> None:
        self._region = region
        self._xp = xp
        self._generator = generator
        self._program = Program(region.nodes, region.inputs, region.outputs)
        self._blocks: dict[int, _Block] = {id(self._program): _Block(self._program, unsafe)}
        for block in (b for n in self._program.walk() for b in n.blocks):
            self._blocks[id(block)] = _Block(block, unsafe_positions(block.nodes))

    def __call__(
        self,
        gate: Any,
        run: Any,
        feeds: tuple[Any, ...],
        resources: tuple[Any, ...],
        probe: Probe | None = None,
    ) -> tuple[Any, ...]:
        """Runs the region once; see `flowscope.plan.code` for the arguments."""
        region = self._region
        values: dict[Value, Any] = dict(zip(region.handle_values, resources, strict=True))
        step = _Step(self._blocks, self._xp, self._generator, gate, run, probe, values)
        outputs = step.block(self._program, feeds)
        return tuple(
            own(o) if s and v.spec.shape != () else o
            for v, o, s in zip(region.outputs, outputs, region.shared, strict=True)
        )


class _Block:
    """What is known of a block before a step: which values die after which of its nodes."""

    def __init__(self, program: Program, unsafe: frozenset[int]) -> None:
        self.unsafe = unsafe
        self.closed = unsafe_inside(program.nodes)
        self.dying = _dying(program)
        self.own = [*program.feeds, *[v for n in program.nodes for v in n.outputs]]


class _Step:
    """One run of a region.

    Attributes:
        values: All that is alive.
        iterations: Numbers of the iterations of the loops around, from the outermost.
        is_safe: Whether the step may be held: not inside an update group.
    """

    def __init__(
        self,
        blocks: dict[int, _Block],
        xp: Any,
        generator: Callable[..., Any],
        gate: Any,
        run: Any,
        probe: Probe | None,
        values: dict[Value, Any],
    ) -> None:
        self._blocks = blocks
        self._xp = xp
        self._generator = generator
        self._gate = gate
        self._run = run
        self._probe = probe
        self.values = values
        self.iterations: tuple[int, ...] = ()
        self.is_safe = True

    def block(self, program: Program, feeds: Sequence[Any]) -> list[Any]:
        """Runs a block and returns its results; what it made is gone then."""
        block = self._blocks[id(program)]
        self.values.update(zip(program.feeds, feeds, strict=True))
        for i, node in enumerate(program.nodes):
            if node.op.is_handle:
                continue
            if self.is_safe and i not in block.unsafe:
                self.safepoint(i)
            self._node(node, i in block.closed, block.dying[i])
        results = [self.values[v] for v in program.fetches]
        for v in block.own:
            self.values.pop(v, None)
        return results

    def safepoint(self, point: int) -> None:
        """Lets the step be held."""
        if self._gate.raised:
            live = tuple(self.values)
            given = self._gate.hold(point, tuple(self.values.values()))
            self.values.update(zip(live, given, strict=True))

    def _node(self, node: Node, is_closed: bool, dying: Sequence[Value]) -> None:
        inputs = [self.values[v] for v in node.inputs]
        if node.blocks:
            was_safe, self.is_safe = self.is_safe, self.is_safe and not is_closed
            outputs = self._cond(node) if node.op.type == "Cond" else self._loop(node, inputs)
            self.is_safe = was_safe
        else:
            try:
                outputs = self._invoke(node, inputs)
            except Exception as e:
                raise InvocationError(node, tuple(inputs), e) from e
        for v in dying:
            self.values.pop(v, None)
        inputs.clear()
        self.values.update((v, o) for v, o in zip(node.outputs, outputs, strict=True))
        if self._probe is not None:
            self._probe(node, outputs)

    def _cond(self, node: Node) -> tuple[Any, ...]:
        then, orelse = node.blocks
        return tuple(self.block(then if self.values[node.inputs[0]] else orelse, ()))

    def _loop(self, node: Node, inputs: list[Any]) -> tuple[Any, ...]:
        op: Any = node.op
        n, first = op.variables, op.first
        *conditions, body = node.blocks
        limit = int(inputs[0]) if op.has_count else None
        variables = inputs[first : first + n]
        lists = inputs[first + n : first + n + op.lists]
        inputs.clear()
        pushed: list[Any] = [None] * (len(body.fetches) - n)
        count = 0
        around = self.iterations
        while limit is None or count < limit:
            self.iterations = (*around, count)
            if not all(self.block(c, variables)[0] for c in conditions):
                break
            results = self.block(body, [*variables, *[x[0] for x in lists]])
            lists = [x[1] for x in lists]
            variables = results[:n]
            pushed = [(x, rest) for x, rest in zip(results[n:], pushed, strict=True)]
            count += 1
            del results
            if self.is_safe:
                self.safepoint(count)
        self.iterations = around
        return (*variables, np.int64(count), *pushed)

    def _invoke(self, node: Node, inputs: list[Any]) -> tuple[Any, ...]:
        device = device_type(node)
        template = scalar_template(node)
        if template is not None and not is_special(node.op, device):
            kernel = _function(template, len(inputs))
        else:
            kernel = kernel_of(node.op, device)
        if node.op.is_random:
            counts = counter(node)
            counts = (*counts, *self.iterations) if len(counts) == 2 else counts
            result = kernel(self._xp, self._generator(self._run, *counts), *inputs)
        else:
            result = kernel(self._xp, *inputs)
        if len(node.outputs) == 1:
            return (result,)
        return result if node.outputs else ()


@functools.cache
def _function(template: str, count: int) -> Callable[..., Any]:
    """Returns a template as a function (xp, *inputs)."""
    names = [f"a{i}" for i in range(count)]
    function: Callable[..., Any] = eval(f"lambda xp, {', '.join(names)}: {template.format(*names)}")
    return function


class InvocationError(Exception):
    """An operation's kernel failed with `kernel_error`; the session turns it into an OpError."""

    def __init__(self, node: Node, inputs: tuple[Any, ...], kernel_error: Exception) -> None:
        super().__init__(node.name)
        self.kernel_error = kernel_error
        self.node = node
        self.inputs = inputs


def _dying(program: Program) -> list[list[Value]]:
    """Returns, per node, the values of the block that nothing reads after it."""
    own = {*program.feeds, *[v for n in program.nodes for v in n.outputs]}
    last: dict[Value, int] = {}
    for i, node in enumerate(program.nodes):
        for v in (*node.outputs, *node.inputs):
            if v in own:
                last[v] = i
    for v in program.fetches:
        last.pop(v, None)
    dying: list[list[Value]] = [[] for _ in program.nodes]
    for v, i in last.items():
        dying[i].append(v)
    return dying
