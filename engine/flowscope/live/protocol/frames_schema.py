"""What a view is told of loops that run and of where a step is: part of `live.protocol.schema`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Iteration:
    """One iteration of a loop that is in flight, or has just ended."""

    number: int
    #: "waiting": it waits for others, a queue or the iteration before; "dead": the condition is
    #: false, nothing of it is computed.
    state: Literal["waiting", "running", "done", "dead"]
    #: Operations done in it.
    finished: int
    #: Operations of the loop's body and condition.
    total: int


@dataclass(frozen=True)
class FrameState:
    """One running instance of a loop."""

    #: Its path: "while"; "while:3/inner" is the instance of `inner` in iteration 3 of `while`.
    id: str
    #: The Loop operation, and its name; of a loop made by hand an Enter, and the frame's name.
    loop: int
    name: str
    #: The frame around it and the iteration there that it belongs to; None for the outermost.
    parent: str | None
    parent_iteration: int | None
    #: How it runs: as generated code, one operation at a time, or by tokens, with several
    #: iterations in flight.
    mode: Literal["compiled", "op", "tokens"]
    #: The newest iteration that has begun.
    iteration: int
    #: How many there will be, where that is known; at most so many for a loop with a condition.
    limit: int | None
    #: Over the last second or so; None where it cannot be told yet.
    iterations_per_s: float | None
    parallel_iterations: int
    #: Iterations in flight and a few that are just done, oldest first; compiled and op: one.
    window: tuple[Iteration, ...]
    #: Why the next iteration does not begin: `parallel_iterations`, or a back edge, and the
    #: operation that is waited for, with what that waits for; "" if nothing holds it.
    held: str
    #: Bytes that are kept for the gradient now; None where nothing is kept or it is not known.
    kept_bytes: int | None
    #: Bytes that will be kept at the end, where the trip count is known.
    kept_estimate_bytes: int | None


@dataclass(frozen=True)
class Token:
    """A value that moved along an edge."""

    #: The operation that made it, and which of its outputs it is.
    source: int
    output: int
    #: The operation that takes it.
    target: int
    #: The frame and the iterations of all loops around, outermost first; "" and () outside loops.
    frame: str
    iterations: tuple[int, ...]
    is_dead: bool


@dataclass(frozen=True)
class Position:
    """Where a step is held, or was a moment ago."""

    #: The operation that runs next; None at the end of an iteration or where it cannot be told.
    op: int | None
    #: The innermost frame, "" outside loops, and the iterations of all loops around.
    frame: str
    iterations: tuple[int, ...]
    #: One line for people.
    what: str


@dataclass(frozen=True)
class RunState:
    """Where the running steps are."""

    #: Outer frames before inner ones. () where no loop runs.
    frames: tuple[FrameState, ...]
    #: Where the step is held; None while it runs freely.
    position: Position | None
    #: In slow motion and stepping: what has moved since the message before, in this order.
    tokens: tuple[Token, ...]
    #: Seconds per operation that were asked for; 0 for full speed.
    pace_s: float


__all__ = ["FrameState", "Iteration", "Position", "RunState", "Token"]
