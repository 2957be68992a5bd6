"""From where steps are to the messages' `RunState`. No clock, no threads: time comes in."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from flowscope.control.dynamic.primitives import Enter
from flowscope.errors import NotFoundError
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, is_back_edge
from flowscope.graph.values.dtypes import resource
from flowscope.live.graphs.blocks import blocks_of
from flowscope.live.protocol.schema import FrameState, Iteration, Position, RunState, Token
from flowscope.live.watchers.outbox import TOKENS
from flowscope.plan.analysis.locations import IterationAt, LoopAt, Moved, StepLocation
from flowscope.plan.ir.program import Node
from flowscope.runtime.step.frames import RunningFrame, RunningFrames, frames_of, place, running

if TYPE_CHECKING:
    from flowscope.runtime.step.step import Step

#: Over so many seconds iterations are counted.
WINDOW_S = 1.5


class FrameWatcher:
    """Knows the frames that were seen lately, and how quickly they iterate."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._samples: dict[str, deque[tuple[float, int]]] = {}

    def state(
        self,
        now_s: float,
        seen: Mapping[Step, StepLocation],
        held: Collection[Step],
        moves: Iterable[Moved],
        pace_s: float,
    ) -> RunState:
        """Returns where the running steps are.

        Args:
            now_s: The time.
            seen: Where each step was seen.
            held: The steps that stand still.
            moves: What has run one operation at a time since the last call.
            pace_s: Seconds per operation that were asked for.
        """
        frames = {f.path: f for f in running(seen.values())}
        self._samples = {path: s for path, s in self._samples.items() if path in frames}
        states = tuple([self._frame(now_s, f) for f in frames.values()])
        tokens = list(dict.fromkeys(t for m in moves for t in _tokens(m, self._graph)))
        return RunState(states, _position(seen, held), tuple(tokens[-TOKENS:]), pace_s)

    def _frame(self, now_s: float, frame: RunningFrame) -> FrameState:
        op: object = frame.node.op
        around = frame.around
        return FrameState(
            id=frame.path,
            loop=_id(frame.node),
            name=frame.label if _is_by_hand(frame.node) else frame.node.name,
            parent=None if around is None else around.path,
            parent_iteration=None if around is None else around.iteration,
            mode=frame.mode,
            iteration=frame.iteration,
            limit=frame.limit,
            iterations_per_s=self._rate(now_s, frame),
            parallel_iterations=getattr(op, "parallel_iterations", 1),
            window=_window(frame),
            held=frame.held,
            kept_bytes=frame.kept_bytes,
            kept_estimate_bytes=frame.kept_estimate_bytes,
        )

    def _rate(self, now_s: float, frame: RunningFrame) -> float | None:
        samples = self._samples.setdefault(frame.path, deque())
        if samples and samples[-1][1] > frame.iteration:
            samples.clear()  # the loop has begun again
        samples.append((now_s, frame.iteration))
        while len(samples) > 2 and now_s - samples[1][0] >= WINDOW_S:
            samples.popleft()
        start_s, first = samples[0]
        if now_s <= start_s:
            return None
        return float(f"{(frame.iteration - first) / (now_s - start_s):.4g}")


def _window(frame: RunningFrame) -> tuple[Iteration, ...]:
    if not frame.window:
        return (Iteration(frame.iteration, "running", frame.finished, frame.total),)
    return tuple(
        Iteration(i.number, _state(i), i.done, i.waiting + i.running + i.done + i.dead)
        for i in frame.window
    )


def _state(iteration: IterationAt) -> Literal["waiting", "running", "done", "dead"]:
    if iteration.is_busy:
        return "running"
    if iteration.waiting:
        return "waiting"
    return "done" if iteration.done else "dead"


def _position(seen: Mapping[Step, StepLocation], held: Collection[Step]) -> Position | None:
    for step in held:
        where = seen.get(step)
        if where is None:
            return Position(None, "", (), "between two steps")
        frames: RunningFrames = frames_of(where)
        return Position(
            None if where.node is None else _id(where.node),
            frames[-1].path if frames else "",
            tuple(f.iteration for f in frames),
            place(where, frames),
        )
    return None


def _is_by_hand(loop: Node) -> bool:
    """Whether a loop was made by hand: then no operation stands for all of it, but its Enters."""
    return bool(loop.origins) and loop.origins[0].type == Enter.__name__


def _tokens(move: Moved, graph: Graph) -> list[Token]:
    """The values that moved when a node ran, by the edges that views draw."""
    op = _operation(move.node, graph)
    if op is None:
        return []
    loops = [LoopAt(n, count, None, 0, ()) for n, count in move.loops]
    frames = frames_of(StepLocation("op", tuple(loops), None))
    path = frames[-1].path if frames else ""
    iterations = tuple(f.iteration for f in frames)
    return [
        Token(source, output, target, path, iterations, move.is_dead)
        for source, output, target in (_back(op, move.variable) if move.is_back else _into(op))
    ]


def _into(op: Operation) -> list[tuple[int, int, int]]:
    return [(t.op.id, t.value_index, op.id) for t in op.inputs if t.spec.dtype is not resource]


def _back(loop: Operation, variable: int | None) -> list[tuple[int, int, int]]:
    if loop.type == "Merge":
        back = [t for t in loop.inputs if is_back_edge(t, loop)]
        return [(t.op.id, t.value_index, loop.id) for t in back]
    carried = blocks_of(loop).get("carried", ())
    chosen = carried if variable is None else carried[variable : variable + 1]
    return [(*c.result, c.parameter) for c in chosen]


def _operation(node: Node, graph: Graph) -> Operation | None:
    """Returns the operation that a node came from; None if the graph does not have it any more."""
    if not node.origins:
        return None
    ref = node.origins[0]
    try:
        op = graph.get_operation_by_name(ref.name)
    except NotFoundError:
        return None
    return op if op.id == ref.id else None


def _id(node: Node) -> int:
    return node.origins[0].id if node.origins else -1


__all__ = ["FrameWatcher"]
