"""What a view is told of variables: a part of `live.protocol.schema`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flowscope.live.protocol.debug_schema import ValueState
from flowscope.live.protocol.questions import Answer, Question


@dataclass(frozen=True)
class AskVariables(Question):
    """A view asks for the list of variables; the answer is one `Variables`."""

    view: int
    request_id: int
    #: The names of those of whose values numbers are wanted; no more than `MOST_MEASURED` are told.
    measured: tuple[str, ...]
    #: The recorded step before which the values are wanted; None for those of now.
    step: int | None
    kind: Literal["ask_variables"] = "ask_variables"


@dataclass(frozen=True)
class VariableState:
    """A variable, and what the session keeps of it."""

    #: The operation of its handle.
    op: int
    name: str
    dtype: str
    #: Of its value; the static one where that is not known.
    shape: tuple[int | None, ...] | None
    #: 0 where it has no value.
    nbytes: int
    #: "" before a plan has placed it.
    device: str
    #: None where that is not known.
    is_initialized: bool | None
    is_trainable: bool
    #: How often it was written.
    writes: int
    #: The number of the run that wrote it last; None where that was no run.
    written_in: int | None
    #: The operation of the variable that it accompanies, as an optimizer's running average does;
    #: None for none.
    primary: int | None
    #: Why something is not known; "" where all is.
    why: str


@dataclass(frozen=True)
class Variables(Answer, to=AskVariables):
    """The answer to `AskVariables`."""

    request_id: int
    #: "" where it is the answer; else why there is none.
    error: str
    #: In program order, each followed by those that accompany it.
    rows: tuple[VariableState, ...]
    #: How many there are besides, and the bytes of the values of all.
    left_out: int
    nbytes: int
    #: The values that numbers were asked for, by the names of their variables: of a large one, of
    #: elements that lie evenly in it.
    values: tuple[ValueState, ...]
    #: The view that it is for.
    view: int = 0
    kind: Literal["variables"] = "variables"


__all__ = ["AskVariables", "VariableState", "Variables"]
