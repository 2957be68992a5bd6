"""What a view is told of the past of a session, and asks of it: part of `live.protocol.schema`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flowscope.live.protocol.debug_schema import ValueState
from flowscope.live.protocol.questions import Answer, Question
from flowscope.live.protocol.trace_schema import Table


@dataclass(frozen=True)
class RecordWish:
    """A view asks for steps to be recorded from now on; what was recorded before ends."""

    #: Names of tensors, or of operations for their first outputs, whose values are kept.
    tensors: tuple[str, ...]
    #: So many bytes are kept at most.
    max_bytes: int


@dataclass(frozen=True)
class ReplayWish:
    """A view asks for a step of the past to be computed again, up to an operation."""

    #: The number of the run.
    step: int
    #: The name of the operation that it is to stand before.
    op: str
    #: The iterations of the loops around, the outermost first; () for the first time.
    iterations: tuple[int, ...]


@dataclass(frozen=True)
class HistoryState:
    """What is recorded of a session."""

    #: Grows with everything that is recorded: what was asked of values is old then.
    version: int
    #: How many steps can be computed again, the numbers of the first and the last; None for none.
    steps: int
    first: int | None
    last: int | None
    #: The tensors whose values are kept.
    tensors: tuple[str, ...]
    nbytes: int
    max_bytes: int


@dataclass(frozen=True)
class AskHistory(Question, recorded=True):
    """A view asks for the values that a tensor had; the answer is one `TensorHistory`."""

    view: int
    request_id: int
    #: The name of a tensor that is recorded, or of its operation.
    tensor: str
    #: So many values at most, the newest.
    most: int
    #: The row, counted from the first value that is told, of which all is told; None for none.
    row: int | None
    #: Of a tensor of more than two axes: the place along each of those before the last two, where
    #: the picture is taken; () for the first. What is beyond an axis' end is its last place.
    at: tuple[int, ...]
    kind: Literal["ask_history"] = "ask_history"


@dataclass(frozen=True)
class TensorHistory(Answer, to=AskHistory):
    """The answer to `AskHistory`."""

    request_id: int
    #: "" where it is the answer; else why there is none.
    error: str
    #: `HistoryState.version` of what is told.
    version: int
    tensor: str
    #: A row per value, the oldest first: "step", "iteration" (of the innermost loop, -1 outside of
    #: loops), "around0", "around1" and so on (of the loops around that one, the outermost first),
    #: "finite" and "size" (elements), "min", "max" and "mean" of the finite ones, NaN where
    #: there are none.
    values: Table
    #: The value that was asked for by its row; None for none.
    shown: ValueState | None
    #: The view that it is for.
    view: int
    kind: Literal["history"] = "history"


__all__ = [
    "AskHistory", "HistoryState", "RecordWish", "ReplayWish", "TensorHistory",
]  # fmt: skip
