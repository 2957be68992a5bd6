"""Generated code: a function with its source, and what leads from a line to an invocation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from flowscope.graph.lazy import frozen
from flowscope.plan.ir.invocation import Invocation, InvocationError
from flowscope.plan.ir.program import Node
from flowscope.plan.ir.structured import loop_name

if TYPE_CHECKING:
    from flowscope.plan.codegen.readings import SlotTable, StampTable


class Line(NamedTuple):
    """What one generated line does: which node, and the locals that hold its inputs.

    `loops` are the loops around, with the locals that count their iterations.
    """

    node: Node | None
    arguments: tuple[str, ...]
    loops: tuple[tuple[Node, str], ...] = ()


@frozen
class Code:
    """The function of a region with its source and line table."""

    function: Callable[..., tuple[Any, ...]]
    source: str
    #: Line i + 1 of the source.
    lines: tuple[Line, ...]
    filename: str
    #: Functions that it calls for blocks that stand too deep in others, by the line that does.
    outlined: Mapping[int, Code]
    #: Which readings of a clock it leaves; None for none.
    stamps: StampTable | None = None
    #: Its loops that machine code may take over: `flowscope.runtime.threads.native_loops`.
    native: tuple[Any, ...] = ()

    @functools.cached_property
    def slots(self) -> SlotTable | None:
        """What the readings mean; None where it leaves none."""
        from flowscope.plan.codegen.readings import SlotTable  # at need: plain code has none

        return None if self.stamps is None else SlotTable(self.stamps)

    @property
    def text(self) -> str:
        """Its source, and that of the functions that it calls."""
        return "\n".join([self.source, *[c.text for c in self.outlined.values()]])

    def failed(self, traceback: TracebackType | None) -> Invocation | None:
        """The invocation whose line raised; None if no line of the function did."""
        while traceback is not None:
            frame = traceback.tb_frame
            if frame.f_code is self.function.__code__:
                line = self.lines[traceback.tb_lineno - 1]
                names = {**frame.f_globals, **frame.f_locals}
                if line.node is None:
                    return None
                inputs = tuple(names.get(a) for a in line.arguments)
                counted = tuple((loop_name(n), int(names[c])) for n, c in line.loops)
                inner_code = self.outlined.get(traceback.tb_lineno)
                inner = inner_code and inner_code.failed(traceback.tb_next)
                if inner:
                    return inner.inside(counted)
                return Invocation(line.node, inputs, counted)
            traceback = traceback.tb_next
        return None

    def located(self, error: Exception, around: tuple[tuple[str, int], ...] = ()) -> Exception:
        """Returns the `InvocationError` of what the function has raised; itself if no line did.

        Args:
            error: What was raised.
            around: The loops around the region, with the numbers of their iterations.
        """
        failed = self.failed(error.__traceback__)
        return error if failed is None else InvocationError(failed.inside(around), error)


def compiled(
    source: str, filename: str, namespace: dict[str, Any], before: Code | None = None
) -> Callable[..., tuple[Any, ...]]:
    """Returns the function `region` that a source defines.

    Args:
        source: The source.
        filename: What tracebacks call it.
        namespace: What names stand for in it.
        before: Code that may have the same source: what Python has compiled of it is used again.
    """
    # Tracebacks and debuggers ask for the source by these two. An entry in `linecache.cache` would
    # have to be taken out when the function ends, perhaps while others go through the cache.
    namespace["__name__"], namespace["__loader__"] = "flowscope_plan", _Loader(source)
    if before is not None and before.source == source:
        code = before.function.__code__.replace(co_filename=filename)
        return FunctionType(code, namespace, "region")
    exec(compile(source, filename, "exec"), namespace)
    found: Callable[..., tuple[Any, ...]] = namespace["region"]
    return found


class _Loader:
    """Has the source of generated code, as the loader of a module has."""

    def __init__(self, source: str) -> None:
        self._source = source

    def get_source(self, name: str) -> str:
        """The source."""
        return self._source


class CodeAtNeed:
    """Code that is written when it is first run: a program that is tried may never need it."""

    def __init__(self, write: Callable[[], Code]) -> None:
        self._write = write

    @functools.cached_property
    def code(self) -> Code:
        """The code."""
        return self._write()

    def function(self, *arguments: Any) -> tuple[Any, ...]:
        """Runs the function."""
        return self.code.function(*arguments)

    def located(self, error: Exception, around: tuple[tuple[str, int], ...] = ()) -> Exception:
        """Returns the `InvocationError` of what the function has raised; itself if no line did."""
        return self.code.located(error, around)


__all__ = ["Code", "CodeAtNeed", "Line", "compiled"]
