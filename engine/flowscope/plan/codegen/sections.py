"""Sections in generated code: a function of their own, which another thread may run earlier.

Where all inputs of a section are there the code hands it out (`t0 = tasks.fork(...)`), and takes
its results at the section's place (`s3, = tasks.join(t0)`): if no thread has begun it the code runs
it there. However the function ends, `tasks.close()` leaves no thread behind. At a safepoint between
the two the section has not run, as far as the program is concerned: whoever goes on with the step
one operation at a time computes it where it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from flowscope.graph.constant import Const
from flowscope.graph.values.dtypes import resource
from flowscope.plan.codegen.control_flow import number_type
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.passes.forks import ForkedSection, find_forks
from flowscope.plan.passes.regions import Region

if TYPE_CHECKING:
    from flowscope.plan.codegen.function import BlockScope, Writer


class SectionTasks(Protocol):
    """The sections that one call of a function hands out."""

    def fork(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Hands out a section; returns what stands for it."""

    def join(self, fork: Any) -> Any:
        """Returns its results, or raises what it has raised; runs it if nobody has begun it."""

    def close(self) -> None:
        """Waits for those that have begun; the others never do."""


#: Makes the tasks of one call.
MakeTasks = Callable[[], SectionTasks]


class Sections:
    """The sections of the blocks of one function, and the tasks that stand for them.

    Args:
        program: The region's program; blocks in it have sections, too.
        seconds: What one invocation of a node takes.
    """

    def __init__(self, program: Program, seconds: Callable[[Node], float]) -> None:
        self._of: dict[int, tuple[ForkedSection, ...]] = {}
        #: The task and the outputs of each section that was handed out, by its block.
        self._out: dict[tuple[int, ForkedSection], tuple[str, Any, tuple[Value, ...]]] = {}
        self._count = 0
        self._find(program, seconds)

    def _find(self, program: Program, seconds: Callable[[Node], float]) -> None:
        if found := find_forks(program, seconds):
            self._of[id(program)] = found
        for node in program.nodes:
            for block in node.blocks:
                self._find(block, seconds)

    def __bool__(self) -> bool:
        return bool(self._of)

    def write_forks(self, writer: Writer, scope: BlockScope) -> None:
        """Hands out the sections whose inputs are there before the node that comes next."""
        for fork in self._of.get(id(scope.program), ()):
            if fork.ready == scope.index:
                self._fork(writer, scope, fork)

    def at(self, scope: BlockScope) -> ForkedSection | None:
        """Returns the section that stands at the node that comes next."""
        forks = self._of.get(id(scope.program), ())
        return next((f for f in forks if f.start == scope.index), None)

    def _fork(self, writer: Writer, scope: BlockScope, fork: ForkedSection) -> None:
        stretch = scope.nodes[fork.start : fork.end]
        nodes = tuple([n for n in stretch if not isinstance(n.op, Const)])
        own = {v for n in nodes for v in n.outputs}
        used = dict.fromkeys(v for n in nodes for v in n.inputs if v not in own)
        taken = tuple([v for v in used if v.spec.dtype is not resource])
        for v in taken:
            if v not in writer.place and v.node is not None:
                writer.constant(v.node)
        given = tuple([v for v in own if scope.last_use.get(v, -1) >= fork.end])
        region = Region(nodes, taken, given, (False,) * len(given), writer.region.handles)
        code = writer.of_section(region)
        number, self._count = self._count, self._count + 1
        writer.namespace[f"q{number}"] = code.function
        arguments = "".join(f"{writer.boxed(v)}, " for v in taken)
        writer.emit(f"t{number} = tasks.fork(q{number}, gate, run, ({arguments}), resources)")
        self._out[id(scope.program), fork] = f"t{number}", code, given

    def write_join(self, writer: Writer, scope: BlockScope, fork: ForkedSection) -> None:
        """Takes the results of the section that stands at the node that comes next."""
        task, code, given = self._out[id(scope.program), fork]
        stretch = scope.nodes[fork.start : fork.end]
        first = next(n for n in stretch if not isinstance(n.op, Const))
        gone = []
        for scope.index, node in enumerate(stretch, fork.start):
            if isinstance(node.op, Const):
                if node.outputs[0] not in writer.place:
                    writer.constant(node)
            else:
                gone += writer.release(scope, node)
        targets = [writer.slot(scope.wishes.get(v)) for v in given]
        writer.place.assign(given, targets)
        left = f"{', '.join(targets)}, = " if targets else ""
        writer.emit(f"{left}tasks.join({task}); {task} = None{writer.clear(scope, gone)}", first)
        writer.outlined[len(writer.lines)] = code
        for value, target in zip(given, targets, strict=True):
            if value in writer.unboxed.values:
                writer.emit(f"{target} = {number_type(value)}({target})", first)


__all__ = ["MakeTasks", "Sections"]
