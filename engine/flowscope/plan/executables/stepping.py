"""Stepping: a step of generated code is taken over and goes on one operation at a time.

When code is left at a safepoint, the rest of the step is interpreted, with bit-equal results. A
loop of it that need not run one operation at a time any more becomes generated code again, at its
next back edge: the code of a loop that has begun takes the loop's state and gives its outputs. That
code can be left in turn. So a step can be paused, stepped and continued any number of times, at
full speed in between, and no code is entered in its middle.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.graph.op import Spec
from flowscope.graph.values.dtypes import int64, resource
from flowscope.plan.analysis.locations import DeoptState, LoopState, NestedRun, nested_generator
from flowscope.plan.analysis.updates import unsafe_positions
from flowscope.plan.codegen.code import Code
from flowscope.plan.codegen.function import generate
from flowscope.plan.codegen.safepoints import OsrEntry, to_caller
from flowscope.plan.codegen.variants import PLAIN, Breakpoints, Variant
from flowscope.plan.executables.interpret import Interpreter
from flowscope.plan.ir.modules import Modules
from flowscope.plan.ir.program import Node, Value
from flowscope.plan.ir.structured import LoopNode, loop_name
from flowscope.plan.passes.regions import Region

if TYPE_CHECKING:
    from flowscope.plan.codegen.native_hooks import NativeMaker


class Stepper:
    """Runs a region, or the rest of it, one operation at a time, and its loops as code again.

    Args:
        region: The region.
        modules: The array modules of its nodes.
        generator: See `flowscope.plan.codegen.function`.
        native: Makes the compiler of loops of single numbers; None where all stays Python.
    """

    def __init__(
        self,
        region: Region,
        modules: Modules,
        generator: Callable[..., Any],
        native: NativeMaker | None = None,
    ) -> None:
        self._region = region
        self._modules = modules
        self._generator = generator
        self._native = native
        #: The code of loops that have begun, and the breakpoints that it asks at.
        self._loops: dict[Node, tuple[Variant, Code, tuple[Value, ...]]] = {}

    def __call__(
        self, gate: Any, run: Any, feeds: tuple[Any, ...], resources: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """Runs the region once; see `flowscope.plan.codegen.function` for the arguments."""
        return self._interpreter(gate, run, feeds, resources)

    def rest(
        self, gate: Any, run: Any, resources: tuple[Any, ...], state: DeoptState
    ) -> tuple[Any, ...]:
        """Runs the rest of a step whose code was left; returns the region's outputs."""
        return self._interpreter.rest(gate, run, resources, state)

    @cached_property
    def _interpreter(self) -> Interpreter:
        region = self._region
        unsafe = unsafe_positions(region.nodes)
        return Interpreter(region, self._modules, self._generator, unsafe, self._as_code)

    def _as_code(
        self,
        gate: Any,
        run: Any,
        around: tuple[LoopState, ...],
        loop: LoopState,
        values: dict[Value, Any],
        resources: tuple[Any, ...],
    ) -> tuple[Any, ...] | DeoptState:
        """Runs the rest of a loop as code; see `plan.executables.interpret.GeneratedLoops`."""
        tests = gate.breakpoints()
        own = {loop.node.name}  # before and after the loop itself the interpreter asks
        asked = [frozenset(names) - own for names in tests.names]
        variant = Breakpoints(*asked) if any(asked) else PLAIN
        found = self._loops.get(loop.node)
        if found is None or found[0] != variant:
            found = self._loops[loop.node] = (variant, *self._code(loop.node, variant))
        _, code, captured = found
        limit = () if loop.limit is None else (np.int64(loop.limit),)
        feeds = (
            loop.count,
            *limit,
            *loop.variables,
            *loop.lists,
            *loop.pushed,
            *[values[v] for v in captured],
        )
        try:
            inside = NestedRun(run, around, loop.node, values)
            result = code.function(gate, inside, feeds, resources)
        except Exception as e:
            error = code.located(e, tuple((loop_name(s.node), s.count) for s in around))
            if error is e:
                raise
            raise error from e
        return result

    def _code(self, node: LoopNode, variant: Variant) -> tuple[Code, tuple[Value, ...]]:
        """Returns the code of a loop that has begun, and the values from outside that it takes."""
        start = _feeds(node.inputs[: len(node.inputs) - len(node.behind)], 1)
        pushes = tuple(Value(None, 1 + len(start) + i, v.spec) for i, v in enumerate(node.kept))
        behind = node.behind
        captured = tuple(dict.fromkeys(v for v in behind if v.spec.dtype is not resource))
        count = Value(None, 0, Spec(int64, ()))
        specs = [v.spec for v in node.outputs]
        clone = LoopNode(node.op, node.name, node.order, (*start, *behind), specs,
                         node.requested, node.origins, node.path)  # fmt: skip
        clone.device = node.device
        clone.blocks = node.blocks
        region = Region(
            (clone,),
            (count, *start, *pushes, *captured),
            clone.outputs,
            (False,) * len(clone.outputs),
            self._region.handles,
        )
        entries: dict[Node, OsrEntry] = {clone: OsrEntry(node, count, pushes)}
        generator = nested_generator(self._generator)
        code = generate(
            region, self._modules, generator, to_caller, entries, variant=variant,
            native=self._native,
        )  # fmt: skip
        return code, captured


def _feeds(values: tuple[Value, ...], first: int) -> tuple[Value, ...]:
    """Returns feeds that stand for values."""
    return tuple(Value(None, first + i, Spec(v.spec.dtype, v.spec.shape, variable=v.spec.variable))
                 for i, v in enumerate(values))  # fmt: skip
