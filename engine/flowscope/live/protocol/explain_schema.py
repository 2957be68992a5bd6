"""What a view is told of an operation that it wants explained: a part of `live.protocol.schema`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flowscope.live.protocol.debug_schema import ValueState
from flowscope.live.protocol.questions import Answer, Question


@dataclass(frozen=True)
class AskExplanation(Question):
    """A view asks what an operation does; the answer is one `Explanation`."""

    view: int
    request_id: int
    #: The operation's name.
    name: str
    kind: Literal["ask_explanation"] = "ask_explanation"


@dataclass(frozen=True)
class Sentence:
    """A sentence of an explanation."""

    topic: Literal["computes", "step", "device", "cost", "made", "gradient", "block", "values"]
    text: str


@dataclass(frozen=True)
class ExplainedTensor:
    """An input or an output of an operation that is explained."""

    role: Literal["input", "output"]
    name: str
    #: Dtype and shape: those of its value where that is known.
    type: str
    #: Which step its value is of, or why there is none; "" for nothing to say.
    why: str
    #: None where it is not known.
    value: ValueState | None


@dataclass(frozen=True)
class Explanation(Answer, to=AskExplanation):
    """The answer to `AskExplanation`."""

    request_id: int
    #: "" where it is the answer; else why there is none.
    error: str
    #: The operation's name.
    name: str
    sentences: tuple[Sentence, ...]
    tensors: tuple[ExplainedTensor, ...]
    #: The view that it is for.
    view: int = 0
    kind: Literal["explanation"] = "explanation"


__all__ = ["AskExplanation", "ExplainedTensor", "Explanation", "Sentence"]
