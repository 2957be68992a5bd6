"""Loops of primitives made by hand: which scope shows an operation that runs in one.

Such a loop has no operation that owns a body: what it consists of follows from the Enter and Exit
operations. It is shown as a scope of its own, named after its frame, which lies where its first
Enter was made; name scopes inside of that are kept.
"""

from __future__ import annotations

from typing import NamedTuple

from flowscope.control.dynamic.frames import PrimitiveFrame, PrimitiveFrames
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation
from flowscope.live.graphs.nesting import parent_path


class Shown(NamedTuple):
    """Where an operation is shown; "" for both of one that runs in no loop made by hand.

    Attributes:
        scope: The scope that shows it.
        frame: Of an Enter: the scope that shows the loop which it leads into.
    """

    scope: str = ""
    frame: str = ""


def has_frames(graph: Graph) -> bool:
    """Whether the graph has loops made by hand."""
    return _frames(graph) is not None


def _frames(graph: Graph) -> PrimitiveFrames | None:
    return next((c for c in graph.checks if isinstance(c, PrimitiveFrames)), None)


def shown(op: Operation) -> Shown:
    """Returns where an operation is shown; what leads into a loop or out of it, inside of it."""
    frames = _frames(op.graph)
    if frames is None:
        return Shown()
    # An Exit's outputs are used outside, but it runs inside.
    frame = frames.of(op.inputs[0].op if op.type == "Exit" else op)
    if frame is None:
        return Shown()
    path = _path(frame) if op.type == "Enter" else ""
    return Shown(_inside(frame, parent_path(op.name)), path)


def _path(frame: PrimitiveFrame) -> str:
    """Returns the path of the scope that shows a loop's frame."""
    around = _base(frame)
    name = frame.name.removeprefix(around + "/") if around else frame.name
    return _joined(_inside(frame.parent, around), name)


def _inside(frame: PrimitiveFrame | None, scope: str) -> str:
    """Returns where a name scope is shown in a loop."""
    if frame is None:
        return scope
    base = _base(frame)
    inner = "" if scope == base else scope.removeprefix(base + "/") if base else scope
    return _joined(_path(frame), inner)


def _base(frame: PrimitiveFrame) -> str:
    """Returns the name scope in which a loop was made: that of its first Enter."""
    enter = next((e for e in frame.enters if e.stale is None), frame.enters[0])
    scope, body = parent_path(enter.name), enter.block.name
    is_within = not body or scope == body or scope.startswith(body + "/")
    return scope if is_within else body


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)


__all__ = ["Shown", "has_frames", "shown"]
