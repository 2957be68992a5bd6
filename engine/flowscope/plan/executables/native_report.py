"""What is told of the loops of a plan: which run as machine code, and why others do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flowscope.plan.codegen.native_hooks import why_python
from flowscope.plan.executables.back_ends import Executable
from flowscope.plan.ir.program import Program
from flowscope.plan.ir.structured import LoopNode, loop_name

if TYPE_CHECKING:
    from flowscope.plan.codegen.code import Code
    from flowscope.plan.codegen.native_hooks import LoopCompiler

_STATES = {
    "python": "Python, not run often enough to be compiled",
    "compiling": "Python, while it is compiled",
    "native": "native",
}


def native_text(
    program: Program, executable: Executable, compiler: LoopCompiler | None, xp_of: Any
) -> str:
    """A line per loop: how it runs, or why it has no machine code.

    Args:
        program: What is run.
        executable: What runs it.
        compiler: Compiles loops; None where llvmlite is not installed.
        xp_of: Returns the array module of a node's device.
    """
    made = {} if executable.code is None else {n.node: n for n in _loops(executable.code)}
    around = {
        inner: node
        for node in program.walk()
        if node in made and made[node].state == "native"
        for block in node.blocks
        for inner in block.walk()
    }
    lines = []
    for node in program.walk():
        if not isinstance(node, LoopNode):
            continue
        line = _line(node, made.get(node), compiler, xp_of)
        if node in around and node in made:
            line = f"native, in {loop_name(around[node])}"
        lines.append(f"{loop_name(node)}: {line}")
    return "\n".join(lines) or "no loops"


def _loops(code: Code) -> list[Any]:
    return [*code.native, *[one for inner in code.outlined.values() for one in _loops(inner)]]


def _line(node: LoopNode, made: Any, compiler: LoopCompiler | None, xp_of: Any) -> str:
    if compiler is None:
        return "Python: llvmlite is not installed"
    reason = why_python(node, xp_of) or compiler.why_not(node)
    if made is not None and made.reason:
        reason = made.reason
    if reason:
        return f"Python: {reason}"
    return "one operation at a time" if made is None else _STATES[made.state]


__all__ = ["native_text"]
