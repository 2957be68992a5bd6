"""Frames: the running loops of a session as people see them, with their places.

A frame is one running instance of a loop. Its path tells the iterations that it belongs to:
"while:3/inner" is the instance of `inner` that was started in iteration 3 of `while`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from flowscope.control.dynamic.primitives import Enter
from flowscope.graph.constant import Const
from flowscope.graph.lazy import frozen
from flowscope.plan.analysis.locations import IterationAt, LoopAt, StepLocation, bytes_of
from flowscope.plan.ir.program import Node


@frozen
class RunningFrame:
    """A running instance of a loop.

    Attributes:
        path: Its path, see this module.
        node: The loop; of one made by hand an Enter.
        mode: How it runs.
        iteration: Number of the newest iteration that has begun.
        limit: How many there will be at most, None where that is not known.
        finished: Operations done in this iteration.
        kept_bytes: Bytes kept for the gradient; None where nothing is kept.
        window: Its iterations on their way, the oldest first; () where there is only one.
        held: Why the next iteration has not begun; "" if nothing holds it.
        around: The frame around it, None for the outermost.
    """

    path: str
    node: Node
    mode: Literal["compiled", "op", "tokens"]
    iteration: int
    limit: int | None
    finished: int
    kept_bytes: int | None
    window: tuple[IterationAt, ...]
    held: str
    around: RunningFrame | None

    @property
    def label(self) -> str:
        """What people call the loop: its name scope."""
        return label(self.node)

    @property
    def total(self) -> int:
        """Operations of an iteration."""
        return sum(not isinstance(n.op, Const) for block in self.node.blocks for n in block.nodes)

    @property
    def kept_estimate_bytes(self) -> int | None:
        """Bytes that will be kept at the end; None where that cannot be told."""
        if not self.kept_bytes or self.limit is None or not self.iteration:
            return None
        return self.kept_bytes // self.iteration * self.limit


class RunningFrames(tuple[RunningFrame, ...]):
    """Frames, outer ones before inner ones; its text is a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self:
            return "no loop is running"
        rows = [("frame", "iteration", "of", "on the way", "kept", "runs as")]
        for f in self:
            limit = "?" if f.limit is None else f"{f.limit:,}"
            kept = "" if f.kept_bytes is None else f"{f.kept_bytes:,} bytes"
            count = f"{max(1, len(f.window)):,}"
            rows.append((f.path, f"{f.iteration:,}", limit, count, kept, _MODES[f.mode]))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(_row(row, widths).rstrip() for row in rows)


_MODES = {"compiled": "code", "op": "operations", "tokens": "tokens"}


def _row(cells: tuple[str, ...], widths: list[int]) -> str:
    numbers = {1, 2, 3, 4}
    return "  ".join(
        c.rjust(w) if i in numbers else c.ljust(w)
        for i, (c, w) in enumerate(zip(cells, widths, strict=True))
    )


def frames_of(where: StepLocation) -> RunningFrames:
    """Returns the frames around a place."""
    return _frames(where.loops, where.mode)


def running(wheres: Iterable[StepLocation]) -> RunningFrames:
    """Returns all frames of steps that are at these places, outer ones before inner ones."""
    found: dict[str, RunningFrame] = {}
    for where in wheres:
        for path in where.running or (where.loops,):
            for frame in _frames(path, where.mode)[-1 if where.running else 0 :]:
                found[frame.path] = frame
    return RunningFrames(found.values())


def _frames(loops: Iterable[LoopAt], mode: Literal["compiled", "op", "tokens"]) -> RunningFrames:
    found: list[RunningFrame] = []
    path = ""
    for loop in loops:
        around = found[-1] if found else None
        path = f"{path}:{around.iteration}/{label(loop.node)}" if around else label(loop.node)
        found.append(
            RunningFrame(
                path,
                loop.node,
                "tokens" if loop.window else mode,
                loop.iteration,
                loop.limit,
                loop.finished,
                _kept_bytes(loop),
                loop.window,
                loop.held,
                around,
            )
        )
    return RunningFrames(found)


def label(node: Node) -> str:
    """The display name of a loop: its name scope, without that of the body around.

    A loop made by hand, for which an Enter stands, is called what its frame is called.
    """
    if isinstance(node.op, Enter):
        return node.op.frame_name
    scope = node.name.rpartition("/")[0] or node.name
    block = node.origins[0].block if node.origins else ""
    return scope.removeprefix(block + "/") if block else scope


def place(where: StepLocation, frames: RunningFrames) -> str:
    """Returns where a step is in a line for people."""
    if where.node is None:
        if not frames:
            return "between two operations"
        return f'before iteration {frames[-1].iteration} of "{frames[-1].path}"'
    text = f'before "{where.node.name}"'
    if frames:
        text += f', iteration {frames[-1].iteration} of "{frames[-1].path}"'
    return text + (" (stepped by operation)" if where.is_stepped else "")


def _kept_bytes(loop: LoopAt) -> int | None:
    if loop.kept_bytes is not None or not loop.kept:
        return loop.kept_bytes
    return sum(map(bytes_of, loop.kept)) * loop.iteration
