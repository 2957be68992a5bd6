"""Where generated code hands a loop to machine code: between two iterations, before the safepoint.

    at = native.begin()
    while i < n:
        ...
        if count == at: count, i, x, at = native(gate, count, 0, i, x, w)

Machine code runs whole iterations and gives the variables back. Python's code decides what comes
then: it looks at its safepoint, tests the condition, and runs the next iteration, be it to fail at
the user's line. See `flowscope.plan.codegen.loop_assembly`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from flowscope.graph.op import Op
from flowscope.graph.values.dtypes import resource
from flowscope.ops.core.flow import NoOp
from flowscope.plan.codegen.unboxed import is_constant
from flowscope.plan.ir.program import Value
from flowscope.plan.ir.structured import LoopNode

if TYPE_CHECKING:
    from flowscope.plan.codegen.function import Writer

_BOXES: dict[str, Callable[[Any], Any]] = {
    "int32": np.int32, "int64": np.int64, "float32": np.float32, "float64": np.float64,
    "bool": np.bool_,
}  # fmt: skip


class LoopCompiler(Protocol):
    """Compiles loops while Python's code runs them."""

    def loop(
        self, node: LoopNode, boxes: tuple[Callable[[Any], Any] | None, ...], is_asked: bool
    ) -> Any:
        """The callable of generated code: `flowscope.runtime.threads.native_loops.NativeLoop`.

        Args:
            node: The loop.
            boxes: Makes of a number what the code has for each variable; None for the number.
            is_asked: Whether the code asks at breakpoints.
        """

    def why_not(self, node: LoopNode) -> str:
        """Why a loop has no machine code; "" if it would be compiled."""


#: Makes the compiler of loops; None where all stays Python. Asked where there is a loop.
NativeMaker = Callable[[], LoopCompiler | None]


class NativeHook:
    """Writes what hands one loop over.

    Attributes:
        at: The local variable with the number of iterations at which it is called.
    """

    def __init__(self, writer: Writer, node: LoopNode, compiler: LoopCompiler) -> None:
        raw = writer.unboxed.values
        boxes = tuple([None if v in raw else _BOXES[v.spec.dtype.name] for v in node.parameters])
        loop = compiler.loop(node, boxes, writer.probe.asks)
        self._name = f"native{writer.globals}"
        writer.globals += 1
        writer.namespace[self._name] = loop
        writer.native.append(loop)
        self._captured = [writer.place[v] for v in captured_values(node)]
        self.at = writer.slot()

    def begin(self, writer: Writer, counter: str, goes_on: bool) -> None:
        """Writes the line before a loop.

        Args:
            writer: The writer.
            counter: The variable that counts the iterations.
            goes_on: Whether it may have begun already.
        """
        first = f"{self._name}.at" if writer.iterations else f"{self._name}.begin()"
        writer.emit(f"{self.at} = {counter} + {first}" if goes_on else f"{self.at} = {first}")

    def back_edge(
        self, writer: Writer, counter: str, limit: Sequence[str], variables: Sequence[str]
    ) -> None:
        """Writes the line between two iterations."""
        given = ", ".join([counter, *(limit or ["0"]), *variables, *self._captured])
        taken = ", ".join([counter, *variables, self.at])
        writer.emit(f"if {counter} == {self.at}: {taken} = {self._name}(gate, {given})")


def captured_values(node: LoopNode) -> tuple[Value, ...]:
    """The values that a loop reads from outside, without constants."""
    values = dict.fromkeys(node.behind)
    return tuple([v for v in values if v.spec.dtype is not resource and not is_constant(v)])


def why_python(node: LoopNode, xp_of: Callable[[Any], Any]) -> str:
    """Why a loop stays Python, as far as that is seen at once; "" if it may be compiled.

    Args:
        node: The loop.
        xp_of: Returns the array module of a node's device.
    """
    if node.kept:
        return "it keeps lists for its gradient"
    if node.op.lists:
        return "it takes elements of lists, as the gradients of loops do"
    for v in captured_values(node):
        if not _is_number(v):
            return f"it reads {v.label}, {v.spec.dtype.name}{_shape(v)}: no single number"
    for block in node.blocks:
        for v in block.feeds:
            if not _is_number(v):
                return f"its variable {v.label} is {v.spec.dtype.name}{_shape(v)}: no single number"
    nodes = [n for block in node.blocks for n in block.walk()]
    for inner in sorted(nodes, key=lambda n: not _does_more(n.op)):
        op = inner.op
        if inner.blocks or isinstance(op, NoOp):
            continue
        if _does_more(op):
            return f"{op.type} ({inner.name}) does more than to compute a number"
        for v in (*inner.inputs, *inner.outputs):
            if not _is_number(v):
                what = f"{v.spec.dtype.name}{_shape(v)}"
                return f"{op.type} ({inner.name}) has {what}: no single number"
        if inner.outputs and inner.inputs and xp_of(inner) not in (np, None):
            if getattr(xp_of(inner), "xp", None) is not np:
                return f"{op.type} ({inner.name}) runs on {inner.device}"
    return ""


def _does_more(op: Op) -> bool:
    return op.is_random or op.is_stateful or op.is_blocking or op.is_handle


def _is_number(value: Any) -> bool:
    return value.spec.shape == () and value.spec.dtype.name in _BOXES


def _shape(value: Any) -> str:
    shape = value.spec.shape
    return (
        "[...]" if shape is None else f"[{','.join('?' if d is None else str(d) for d in shape)}]"
    )


__all__ = ["LoopCompiler", "NativeHook", "NativeMaker", "captured_values", "why_python"]
