"""What a view is told of devices, and asks of them, as data: a part of `live.protocol.schema`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flowscope.live.protocol.questions import Answer, Question


@dataclass(frozen=True)
class CandidateState:
    """A device that an operation could be placed on, or why it could not."""

    device: str
    #: When it would be done there, in predicted seconds from the step's begin; None where it would
    #: not be.
    seconds: float | None
    #: Why it cannot stand there, or what speaks for it; "" for nothing.
    reason: str


@dataclass(frozen=True)
class OpPlacementState:
    """Where the latest plan has placed an operation, and why."""

    name: str
    #: Op type.
    type: str
    #: The device that the user asked for, "" for none.
    requested: str
    device: str
    reason: str
    candidates: tuple[CandidateState, ...]


@dataclass(frozen=True)
class MovePrediction:
    """What moving an operation or a scope to a device would do."""

    device: str
    #: Predicted seconds of a step as it is, and as it would be; None where it is not known.
    before_s: float | None
    after_s: float | None
    #: Bytes of variables that would be moved once.
    moved_bytes: int
    #: The constraint that forbids it; "" where it can be done.
    refused: str


@dataclass(frozen=True)
class MoveWish:
    """Operations are to stand on a device."""

    #: An operation's name, or a scope's path with a "/" behind it; else what a view calls `parts`.
    name: str
    device: str
    #: The names of the operations that a view shows as one, in the place of `name`; () for that.
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class MoveState:
    """The latest move that a view has asked for, and what came of it."""

    name: str
    device: str
    #: Predicted seconds of a step before and after.
    before_s: float | None
    after_s: float | None
    #: Mean seconds of the steps before it; None where none was measured.
    measured_before_s: float | None
    #: Mean seconds of the steps since; None before one has ended.
    measured_after_s: float | None
    #: The clock that measured: this machine's, or that of simulated devices.
    clock: Literal["wall", "simulated"] = "wall"


@dataclass(frozen=True)
class AskPlacement(Question):
    """A view asks where the latest plan has placed something; the answer is one `Placement`."""

    view: int
    request_id: int
    #: An operation's name, or a scope's path with a "/" behind it; "" for nothing.
    name: str
    #: The device that it might be moved to, for a prediction; "" for none.
    device: str
    #: As in `MoveWish`.
    parts: tuple[str, ...] = ()
    kind: Literal["ask_placement"] = "ask_placement"


@dataclass(frozen=True)
class Placement(Answer, to=AskPlacement):
    """The answer to `AskPlacement`."""

    request_id: int
    #: "" where it is the answer; else why there is none.
    error: str
    #: What was asked for; None of a scope, of what the latest step did not run, and of nothing.
    op: OpPlacementState | None
    #: None where no device was asked for.
    move: MovePrediction | None
    #: The view that it is for.
    view: int = 0
    kind: Literal["placement"] = "placement"


__all__ = [
    "AskPlacement",
    "CandidateState",
    "MovePrediction",
    "MoveState",
    "MoveWish",
    "OpPlacementState",
    "Placement",
]
