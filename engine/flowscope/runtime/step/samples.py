"""Samples: a step that lasts is traced for a while, and goes on in the same code.

What has begun is not left: the frame of the generated function gets a tracing function, as a
debugger gives it one, which reads a clock before each line; the code's line table tells the nodes.
After so many lines it is taken away, and nothing is left of it. Where operations run one by one,
they are told to a probe for as long.

Where a debugger, or a tool that measures coverage, has such a function already, steps that last are
not sampled.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from flowscope.plan.analysis.locations import StepLocation
from flowscope.plan.codegen.code import Code, Line
from flowscope.plan.ir.program import Node, Program
from flowscope.plan.ir.structured import LoopNode
from flowscope.plan.plan import Plan
from flowscope.runtime.step.step import Step
from flowscope.runtime.trace.step_trace import ProbedInvocation, Rows, StepTrace, Tracer, clock

#: Lines, or operations, of one sample.
LINES = 1000


class Sample:
    """Traces a running step for a while, from its next safepoint on.

    Args:
        step: The step.
        tracer: Takes the trace.
        most: So many lines or operations are traced.
    """

    def __init__(self, step: Step, tracer: Tracer, most: int = LINES) -> None:
        self._step = step
        self._tracer = tracer
        self._most = most
        self._lines: list[tuple[int, int, int]] = []
        self._code: Code | None = None
        self._begun: tuple[tuple[Node, int], ...] = ()

    def begin_lines(self, frame: FrameType, where: StepLocation, is_back_edge: bool) -> None:
        """Traces the lines of a generated function, which stands at a safepoint.

        Args:
            frame: The function's frame.
            where: Where it stands.
            is_back_edge: Whether an iteration has just ended there.
        """
        self._code = _code_of(self._step.plan, frame)
        if self._code is None or sys.gettrace() is not None:
            return
        begun = [(at.node, at.iteration) for at in where.loops]
        if is_back_edge:  # the line is still one of the iteration before
            begun[-1] = begun[-1][0], begun[-1][1] - 1
        self._begun = tuple(begun)
        self._lines.append((clock(), frame.f_lineno, clock()))
        frame.f_trace = self._line
        sys.settrace(_elsewhere)

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        now = clock()
        self._lines.append((now, frame.f_lineno, clock()))
        if event == "return" or len(self._lines) > self._most:
            sys.settrace(None)
            frame.f_trace = None
            self._take(self._rows())
            return None
        return self._line

    def _take(self, rows: Sequence[ProbedInvocation]) -> None:
        if rows:
            trace = StepTrace(self._step.plan, rows[0].begin)
            trace.rows = Rows()
            trace.rows.rows = [*rows]
            trace.sampled(self._step.number, rows[0].begin, rows[-1].end)
            self._tracer.take(trace)

    def _rows(self) -> list[ProbedInvocation]:
        """The spans of the traced lines."""
        assert self._code is not None
        around = loops_around(self._step.plan)
        place = _Place(dict(self._begun), around)
        found: list[ProbedInvocation] = []
        for (_, number, begin), (end, *_) in zip(self._lines, self._lines[1:], strict=False):
            line = self._code.lines[number - 1]
            place.move(number, line)
            if line.node is not None and not line.node.blocks:
                path = tuple([place.numbers.get(n, 0) for n in around[line.node]])
                found.append(ProbedInvocation(line.node, path, end, begin))
        return found

    # -- operations that run one by one ---------------------------------------------------------

    def begin_rows(self) -> _SampleRows:
        """The trace of the operations that run one by one from now on."""
        return _SampleRows(self, self._most)


class _SampleRows(Rows):
    """What a probe is told during a sample."""

    def __init__(self, sample: Sample, most: int) -> None:
        super().__init__()
        self._sample = sample
        self._most = most
        self._last = clock()
        self.is_done = False

    def probe(self, node: Node, iterations: tuple[int, ...], outputs: Any) -> None:
        """Takes an operation."""
        now = clock()
        self.rows.append(ProbedInvocation(node, iterations, now, self._last))
        self._last = now
        if len(self.rows) >= self._most:
            self.is_done = True
            self._sample._take(self.rows)


class _Place:
    """Counts the iterations of loops from line to line.

    The line that a loop begins with stands outside of it, and may compute its condition.

    Attributes:
        numbers: The iterations, by loop.
    """

    def __init__(self, numbers: dict[Node, int], around: Mapping[Node, tuple[Node, ...]]) -> None:
        self.numbers = numbers
        self._around = around
        self._inside: tuple[Node, ...] | None = None
        self._last = 0
        self._heads: Node | None = None

    def move(self, number: int, line: Line) -> None:
        """Moves to the next line."""
        inside = tuple([loop for loop, _ in line.loops])
        heads = self._headed(line, inside)
        before = self._inside
        if before is not None:
            common = sum(a is b for a, b in zip(before, inside, strict=False))
            if number <= self._last:
                again = heads if heads in before else inside[-1] if common else None
                if again is not None:
                    self.numbers[again] = self.numbers.get(again, 0) + 1
            else:
                entered = [n for n in inside[common:] if n is not self._heads]
                for loop in [*entered, heads]:
                    if loop is not None:
                        self.numbers[loop] = 0
        self._inside, self._last, self._heads = inside, number, heads

    def _headed(self, line: Line, inside: tuple[Node, ...]) -> Node | None:
        """Returns the loop that a line begins."""
        node = line.node
        if node is None or node in inside:
            return None
        if isinstance(node, LoopNode):
            return node
        loops = self._around.get(node, ())
        return loops[-1] if len(loops) > len(inside) else None


def loops_around(plan: Plan) -> dict[Node, tuple[Node, ...]]:
    """Returns the loops around each node of a plan, from the outermost."""
    found: dict[Node, tuple[Node, ...]] = {}

    def walk(program: Program, loops: tuple[Node, ...]) -> None:
        for node in program.nodes:
            found[node] = loops
            for block in node.blocks:
                walk(block, (*loops, node) if isinstance(node, LoopNode) else loops)

    walk(plan.program, ())
    return found


def _elsewhere(frame: FrameType, event: str, argument: Any) -> None:
    """Traces no other function."""


def _code_of(plan: Plan, frame: FrameType) -> Code | None:
    """Returns the code of a plan's that a frame runs; None for another one."""
    stack = [] if plan.executable.code is None else [plan.executable.code]
    while stack:
        code = stack.pop()
        if code.function.__code__ is frame.f_code:
            return code
        stack += code.outlined.values()
    return None


__all__ = ["LINES", "Sample"]
