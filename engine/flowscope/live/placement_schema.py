"""What a view is told of devices, and asks of them, as data: a part of `flowscope.live.schema`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class CandidateState:
    """A device that an operation could be placed on, or why it could not."""

    device: str
    #: Predicted seconds from the step's begin to its end there; None where there is no prediction.
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
class AskPlacement:
    """A view asks where the latest plan has placed something; the answer is one `Placement`."""

    view: int
    request_id: int
    #: An operation's name, or a scope's path with a "/" behind it; "" for nothing.
    name: str
    kind: Literal["ask_placement"] = "ask_placement"


@dataclass(frozen=True)
class Placement:
    """The answer to `AskPlacement`."""

    request_id: int
    #: "" where it is the answer; else why there is none.
    error: str
    #: The session's devices.
    devices: tuple[str, ...]
    #: What was asked for; None of a scope, of what the latest step did not run, and of nothing.
    op: OpPlacementState | None
    #: The view that it is for.
    view: int = 0
    kind: Literal["placement"] = "placement"


__all__ = [
    "AskPlacement",
    "CandidateState",
    "OpPlacementState",
    "Placement",
]
