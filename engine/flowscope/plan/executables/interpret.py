"""Op mode: a region run one operation at a time, for debuggers and as the code's counterpart.

It calls kernels where generated code inlines templates, allocates alike and gives bit-equal
results.
Templates for numbers may differ from the kernel in the sign of a zero, so both modes share them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from flowscope.graph.constant import Const
from flowscope.graph.current_step import current_step
from flowscope.plan.analysis.locations import (
    BlockLocation,
    DeoptState,
    LoopState,
    Moved,
    RegionRun,
    StepLocation,
    loops_at,
    replace_in,
    values_in,
    where_in,
)
from flowscope.plan.analysis.updates import unsafe_inside, unsafe_positions
from flowscope.plan.ir.breakpoints import (
    NO_TESTS,
    BlockBreakpoint,
    BreakTests,
    next_operation,
    stands,
)
from flowscope.plan.ir.crossings import Credit, credits, is_crossing
from flowscope.plan.ir.invocation import Draw, Invocation, InvocationError, Invoker, Probe
from flowscope.plan.ir.kernels import own
from flowscope.plan.ir.modules import Modules
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import CondNode, LoopNode, loop_name
from flowscope.plan.passes.regions import Region


class Interpreter:
    """Runs a region one operation at a time; same signature as generated code.

    Args:
        region: The region.
        modules: The array modules of its nodes.
        generator: See `flowscope.plan.codegen.function`.
        unsafe: Positions before which the step cannot be held.
        loops: Runs loops as generated code while steps need not run one operation at a time; None
            where they always do.
    """

    def __init__(
        self,
        region: Region,
        modules: Modules,
        generator: Callable[..., Any],
        unsafe: frozenset[int],
        loops: GeneratedLoops | None = None,
    ) -> None:
        self._region = region
        self._generator = generator
        self._loops = loops
        self._program = Program(region.nodes, region.inputs, region.outputs)
        self._blocks: dict[int, _Block] = {
            id(self._program): _Block(self._program, modules, unsafe)
        }
        for block in (b for n in self._program.walk() for b in n.blocks):
            self._blocks[id(block)] = _Block(block, modules, unsafe_positions(block.nodes))

    def __call__(
        self,
        gate: Any,
        run: Any,
        feeds: tuple[Any, ...],
        resources: tuple[Any, ...],
        probe: Probe | None = None,
    ) -> tuple[Any, ...]:
        """Runs the region once; see `flowscope.plan.codegen.function` for the arguments."""
        step = self._step(gate, run, resources, probe)
        return self._outputs(step.block(self._program, feeds))

    def rest(
        self, gate: Any, run: Any, resources: tuple[Any, ...], state: DeoptState
    ) -> tuple[Any, ...]:
        """Runs the rest of a step whose code was left."""
        step = self._step(gate, run, resources, None)
        step.values.update(state.values)
        step.stand_at(state)
        outermost = BlockLocation(self._program, state.locations[0].index, "region")
        return self._outputs(step.rest((outermost, *state.locations[1:])))

    def _step(self, gate: Any, run: Any, resources: tuple[Any, ...], probe: Probe | None) -> _Step:
        values = dict(zip(self._region.handle_values, resources, strict=True))
        step = _Step(self._blocks, self._generator, gate, run, probe, values)
        step.codes, step.resources = self._loops, resources
        step.outermost = self._program
        step.tests = gate.breakpoints()
        return step

    def _outputs(self, outputs: list[Any]) -> tuple[Any, ...]:
        region = self._region
        return tuple(
            own(o) if s and v.spec.shape != () else o
            for v, o, s in zip(region.outputs, outputs, region.shared, strict=True)
        )


class GeneratedLoops(Protocol):
    """What runs the rest of a loop as generated code."""

    def __call__(
        self,
        gate: Any,
        run: Any,
        around: tuple[LoopState, ...],
        loop: LoopState,
        values: dict[Value, Any],
        resources: tuple[Any, ...],
    ) -> tuple[Any, ...] | DeoptState:
        """Returns the loop's outputs, or where its code was left.

        Args:
            gate, run, resources: See `flowscope.plan.codegen.function`.
            around: The loops around, from the outermost.
            loop: The loop, between two iterations.
            values: All that is alive.
        """


class _Block:
    """What is known of a block before a step: which values die after which of its nodes."""

    def __init__(self, program: Program, modules: Modules, unsafe: frozenset[int]) -> None:
        self._modules = modules
        #: Before what nobody waits: the inside of update groups, and what is no work.
        self.unsafe = unsafe | {
            i for i, n in enumerate(program.nodes) if n.op.is_handle or isinstance(n.op, Const)
        }
        self.closed = unsafe_inside(program.nodes)
        self.dying = _dying(program)
        #: What runs its nodes, made as they first run.
        self.invokers: list[Invoker | None] = [None] * len(program.nodes)
        self.own = [*program.feeds, *[v for n in program.nodes for v in n.outputs]]
        #: Where steps come to breakpoints, and those that this was found for.
        self._stands: tuple[BreakTests, dict[int, list[BlockBreakpoint]]] = (NO_TESTS, {})

    def stands(self, program: Program, tests: BreakTests) -> dict[int, list[BlockBreakpoint]]:
        """Returns where steps come to breakpoints."""
        if self._stands[0] is not tests:
            chosen = tests.before, tests.after
            found = stands(program.nodes, self.unsafe, self.closed, *chosen)
            self._stands = tests, found
        return self._stands[1]

    def invoker(self, index: int, node: Node) -> Invoker:
        """A new function that runs a node."""
        made = self.invokers[index] = Invoker(node, self._modules)
        return made


class _Step:
    """One run of a region.

    Attributes:
        values: All that is alive.
        run: The run of the step; see `flowscope.plan.codegen.function`.
        iterations: Numbers of the iterations of the loops around, from the outermost.
        loops: These loops.
        is_safe: Whether the step may be held: not inside an update group.
        passes: Before how many of the nodes that come next it is not to be held: it was held here
            already, where code was left, or told to stand behind the transfers that come next.
        has_asked: Whether it has been asked here at breakpoints already.
        codes: Runs loops as code where nobody wants them one operation at a time.
        resources: The state that the region uses.
        outermost: The region's nodes: behind the last of them parts of a step stand, too, that keep
            to their turns.
        tests: The breakpoints of the plan.
    """

    def __init__(
        self,
        blocks: dict[int, _Block],
        generator: Callable[..., Any],
        gate: Any,
        run: Any,
        probe: Probe | None,
        values: dict[Value, Any],
    ) -> None:
        self._blocks = blocks
        self._draw: Draw = functools.partial(generator, run)
        self._gate = gate
        self.run = run
        self._probe = probe
        self.values = values
        self.iterations: tuple[int, ...] = ()
        self.loops: list[LoopState] = []
        self.is_safe = True
        self.passes = 0
        self.has_asked = False
        self.codes: GeneratedLoops | None = None
        self.resources: tuple[Any, ...] = ()
        self.outermost: Program | None = None
        self.tests = NO_TESTS
        self._credits: dict[LoopNode, tuple[Credit, ...]] = {}

    def block(self, program: Program, feeds: Sequence[Any]) -> list[Any]:
        """Runs a block and returns its results; what it made is gone then."""
        self.values.update(zip(program.feeds, feeds, strict=True))
        return self._from(program, 0)

    def rest(self, locations: Sequence[BlockLocation]) -> list[Any]:
        """Runs the rest of a block, in which the step stands; see `block`."""
        location, *inside = locations
        program, at = location.program, location.index
        if inside:
            node = program.nodes[at]
            if inside[0].loop is None:
                outputs = tuple(self.rest(inside))
            else:
                outputs = self._iterate(inside[0].loop, inside)
            self._hand_on(node, outputs, self._blocks[id(program)].dying[at])
            at += 1
        return self._from(program, at)

    def _from(self, program: Program, first: int) -> list[Any]:
        block = self._blocks[id(program)]
        for i, node in enumerate(program.nodes[first:] if first else program.nodes, first):
            if self.tests is not NO_TESTS:
                self._breakpoints(block, program, i)
            if node.op.is_handle:
                continue
            if self._gate.raised and self.is_safe and i not in block.unsafe:
                self.safepoint(i, node)
            if node.blocks:
                outputs = self._blocks_of(node, i in block.closed, block.dying[i])
                if self._probe is not None:
                    self._probe(node, self.iterations, outputs)
            elif is_crossing(node.op):
                outputs = self._cross(node, self.is_safe and i not in block.unsafe)
            else:
                outputs = self._invoke(block.invokers[i] or block.invoker(i, node))
            self._hand_on(node, outputs, block.dying[i])
        if self.tests is not NO_TESTS:
            self._breakpoints(block, program, len(program.nodes))
        elif self._gate.raised and program is self.outermost and current_step().keeps_turns:
            self._gate.hold(len(program.nodes), _Here(self, None))
        results = [self.values[v] for v in program.fetches]
        for v in block.own:
            self.values.pop(v, None)
        return results

    def sample(self, sample: Any) -> None:
        """Tells a sample of the operations that come next, where no probe is told already."""
        if self._probe is None:
            rows = sample.begin_rows()

            def probe(node: Node, iterations: tuple[int, ...], outputs: Sequence[Any]) -> None:
                rows.probe(node, iterations, outputs)
                if rows.is_done:
                    self._probe = None

            self._probe = probe

    def safepoint(self, point: int, node: Node | None) -> None:
        """Lets the step be held before a node, or at the end of an iteration."""
        if self.passes:
            self.passes -= 1
        elif self._gate.raised:
            self._gate.hold(point, _Here(self, node))
            self.tests = self._gate.breakpoints()

    def stand_at(self, state: DeoptState) -> None:
        """Notes that the step stands where code was left."""
        self.passes, self.has_asked = int(not state.is_breakpoint), state.is_breakpoint

    def _breakpoints(self, block: _Block, program: Program, at: int) -> None:
        """Asks at the breakpoints before a node whether the step is to be held there."""
        if self.has_asked:
            self.has_asked = False
            self.passes = self._passes(block, program, at)
            return
        for stand in block.stands(program, self.tests).get(at, ()) if self.is_safe else ():
            tests = self.tests.after if stand.is_after else self.tests.before
            values = stand.node.outputs if stand.is_after else stand.node.inputs
            test = tests.get(stand.node.name)
            found = [self.values.get(v) for v in values]
            if test is not None and test(self.run, self.iterations, found):
                told = next_operation(program.nodes, at)
                node = program.nodes[told] if told < len(program.nodes) else None
                self._gate.hold(at, _Here(self, node, True))
                self.tests = self._gate.breakpoints()
                self.passes = self._passes(block, program, at)

    def _passes(self, block: _Block, program: Program, at: int) -> int:
        """Returns before how many nodes a step is not to be held that goes on from a breakpoint."""
        if not self._gate.raised:
            return 0
        last = min(next_operation(program.nodes, at), len(program.nodes) - 1)
        return sum(i not in block.unsafe for i in range(at, last + 1))

    def _invoke(self, invoker: Invoker) -> Sequence[Any]:
        inputs = [self.values[v] for v in invoker.node.inputs]
        try:
            return invoker(self._draw, self.iterations, inputs, self._probe)
        except Exception as e:
            around = tuple((loop_name(s.node), s.count) for s in self.loops)
            raise invoker.failed(inputs, e, around) from e

    def _cross(self, node: Node, is_safe: bool) -> Sequence[Any]:
        """Sends or receives, in place."""
        box = current_step().channel.mailbox(node.op.key)  # type: ignore[attr-defined]
        inputs = [self.values[v] for v in node.inputs]
        outputs: tuple[Any, ...] = ()
        try:
            if inputs:
                box.send(*inputs)
            else:
                outputs = (box.receive(self._gate, _Here(self, node), is_safe),)
        except Exception as e:
            around = tuple((loop_name(s.node), s.count) for s in self.loops)
            raise InvocationError(Invocation(node, tuple(inputs), around), e) from e
        if self._probe is not None:
            self._probe(node, self.iterations, outputs)
        return outputs

    def _wait_for_credit(self, loop: LoopNode) -> None:
        """Waits between two iterations of a loop that sends and has run ahead."""
        found = self._credits.get(loop)
        if found is None:
            found = self._credits[loop] = credits(loop)
        for credit in found:
            box = current_step().channel.mailbox(credit.key)
            here = _Here(self, None)
            box.throttle(credit.most, credit.nbytes, self._gate, here, self.is_safe)

    def _blocks_of(self, node: Node, is_closed: bool, dying: Sequence[Value]) -> Sequence[Any]:
        was_safe, self.is_safe = self.is_safe, self.is_safe and not is_closed
        outputs: Sequence[Any]
        if isinstance(node, CondNode):
            outputs = self._cond(node)
        else:
            assert isinstance(node, LoopNode)
            inputs = [self.values[v] for v in node.inputs]
            self._hand_over(node, dying)
            outputs = self._loop(node, inputs)
        self.is_safe = was_safe
        return outputs

    def _hand_over(self, loop: LoopNode, dying: Sequence[Value]) -> None:
        """Leaves to a loop alone what only it reads: it frees the elements of lists one by one."""
        inside = set(loop.behind)
        for v in dying:
            if v not in inside:
                self.values.pop(v, None)

    def _hand_on(self, node: Node, outputs: Sequence[Any], dying: Sequence[Value]) -> None:
        for v in dying:
            self.values.pop(v, None)
        self.values.update((v, o) for v, o in zip(node.outputs, outputs, strict=True))
        if self._gate.is_by_op and not isinstance(node.op, Const):
            self._moved(node)

    def _moved(self, node: Node, is_dead: bool = False, is_back: bool = False) -> None:
        loops: tuple[tuple[Node, int], ...] = tuple((s.node, s.count) for s in self.loops)
        if isinstance(self.run, RegionRun):
            loops = (*[(at.node, at.iteration) for at in self.run.look().loops], *loops)
        self._gate.moves.append(Moved(node, loops, is_dead, is_back))

    def _cond(self, node: CondNode) -> tuple[Any, ...]:
        then, orelse = node.then, node.orelse
        taken, other = (then, orelse) if self.values[node.pred] else (orelse, then)
        if self._gate.is_by_op:
            for n in other.nodes:
                self._moved(n, is_dead=True)
        return tuple(self.block(taken, ()))

    def _loop(self, node: LoopNode, inputs: list[Any]) -> tuple[Any, ...]:
        n, first = node.variables, node.op.first
        limit = None if node.count is None else int(inputs[0])
        pushed: list[Any] = [None] * len(node.kept_values)
        end = first + n + node.lists
        loop = LoopState(node, 0, limit, inputs[first : first + n], inputs[first + n : end], pushed)
        inputs.clear()
        return self._iterate(loop, ())

    def _iterate(self, loop: LoopState, inside: Sequence[BlockLocation]) -> tuple[Any, ...]:
        """Runs a loop, or the rest of one; `inside` tells where in an iteration it stands."""
        around = self.iterations
        self.loops.append(loop)
        while True:
            if (not inside or inside[0].part == "back") and self._runs_as_code():
                found = self._as_code(loop)
                if not isinstance(found, DeoptState):
                    outputs = found
                    break
                inside = found.locations[1:]
                assert inside[0].loop is not None
                loop = self.loops[-1] = inside[0].loop
                self.values.update(found.values)
                self.stand_at(found)
                continue
            self.iterations = (*around, loop.count)
            if not self._iteration(loop, inside):
                outputs = (*loop.variables, np.int64(loop.count), *loop.pushed)
                break
            inside = ()
            self._wait_for_credit(loop.node)
            if self._gate.raised and self.is_safe:
                if self._gate.is_by_op:
                    self._moved(loop.node, is_back=True)
                self.safepoint(loop.count, None)
        self.iterations = around
        self.loops.pop()
        return outputs

    def _iteration(self, loop: LoopState, inside: Sequence[BlockLocation]) -> bool:
        """Runs an iteration, or the rest of one; returns whether there was one."""
        *tests, body = loop.node.blocks
        part = inside[0].part if inside else "back"
        n = len(loop.variables)
        if part != "body":
            if part == "back" and loop.limit is not None and loop.count >= loop.limit:
                return False
            if part == "test":
                goes_on = self.rest(inside)[0]
            else:
                goes_on = not tests or self.block(tests[0], loop.variables)[0]
            if not goes_on:
                return False
            taken = [x[0] for x in loop.lists]
            loop.lists = [x[1] for x in loop.lists]
            results = self.block(body, [*loop.variables, *taken])
        else:
            results = self.rest(inside)
        loop.variables = results[:n]
        loop.pushed = [(x, rest) for x, rest in zip(results[n:], loop.pushed, strict=True)]
        loop.count += 1
        return True

    def _runs_as_code(self) -> bool:
        return self.codes is not None and self.is_safe and not self._gate.is_by_op

    def _as_code(self, loop: LoopState) -> tuple[Any, ...] | DeoptState:
        assert self.codes is not None
        around = tuple(self.loops[:-1])
        try:
            return self.codes(self._gate, self.run, around, loop, self.values, self.resources)
        except InvocationError as e:
            outer = tuple((loop_name(s.node), s.count) for s in self.loops[:-1])
            e.invocation = e.invocation.inside(outer)
            raise


class _Here:
    """A step before a node, or at the end of an iteration where `node` is None."""

    __slots__ = ("_node", "_step", "is_breakpoint", "is_changed")

    def __init__(self, step: _Step, node: Node | None, is_breakpoint: bool = False) -> None:
        self._step = step
        self._node = node
        self.is_breakpoint = is_breakpoint
        self.is_changed = False

    @property
    def is_op(self) -> bool:
        """Whether an operation comes next."""
        return self._node is not None

    @property
    def is_back_edge(self) -> bool:
        """Whether an iteration of a loop has just ended."""
        return self._node is None

    @property
    def node(self) -> Node | None:
        """The node that comes next; None at the end of an iteration."""
        return self._node

    def values(self) -> dict[object, Any]:
        """The live arrays, by the identities of their values."""
        return values_in(self._step.run, self._step.values)

    def replace(self, identity: object, array: Any) -> bool:
        """Puts an array into the place of a value."""
        values = self._step.values
        is_there = replace_in(self._step.run, values, {v: v for v in values}, identity, array)
        self.is_changed = self.is_changed or is_there
        return is_there

    def sample(self, sample: Any) -> None:
        """Lets a sample take the operations that come next."""
        self._step.sample(sample)

    def where(self) -> StepLocation:
        """Returns where it is."""
        step, node = self._step, self._node
        loops = loops_at(step.loops, node, step.values)
        if step.codes is None:
            return StepLocation("op", loops, node)
        return where_in(step.run, StepLocation("compiled", loops, node, is_stepped=True))


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
