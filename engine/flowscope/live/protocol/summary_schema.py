"""Summaries for views, as data: a part of `flowscope.live.protocol.schema`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flowscope.live.protocol.questions import Answer, Question
from flowscope.live.protocol.trace_schema import Table


@dataclass(frozen=True)
class SummaryState:
    """What writers of summaries were given so far."""

    #: Grows with everything that they are given: what was asked before is old then.
    version: int
    nbytes: int
    max_bytes: int
    #: Points that newer ones took the place of.
    dropped: int


@dataclass(frozen=True)
class ScalarSeries:
    """The numbers of a run under a tag."""

    #: The writer's folder; "" for one without.
    run: str
    tag: str
    #: How many points are kept, and how many newer ones took the place of.
    points: int
    dropped: int
    #: A row per point, by step: "step", "time" (seconds since the first point of the run) and
    #: "value". Where there are more than can be told, the least and the largest of each part.
    values: Table


@dataclass(frozen=True)
class HistogramSeries:
    """The histograms of a run under a tag, in bins of one width that are the same for all."""

    run: str
    tag: str
    points: int
    dropped: int
    #: The ends of the bins.
    low: float
    high: float
    bins: int
    #: A row per histogram: "step", "min" and "max". Of too many some, evenly chosen.
    values: Table
    #: The shares of the bins, one histogram after the other: one column "share".
    shares: Table


@dataclass(frozen=True)
class ImageSeries:
    """The pictures of a run under a tag, and one of them."""

    run: str
    tag: str
    points: int
    dropped: int
    #: The step of the picture that is told.
    step: int
    width: int
    height: int
    #: Its file in base64; "" where the answer has no room for it.
    data: str
    nbytes: int


@dataclass(frozen=True)
class TextSeries:
    """The texts of a run under a tag, and those of one step."""

    run: str
    tag: str
    points: int
    dropped: int
    step: int
    #: The texts, the first ones where there are many.
    texts: tuple[str, ...]
    #: Characters that are not told.
    left_out: int


@dataclass(frozen=True)
class AskSummaries(Question):
    """A view asks for summaries; the answer is one `Summaries`."""

    view: int
    request_id: int
    #: Pictures and texts are those of this step, or of the last one before it; None for the newest.
    step: int | None
    kind: Literal["ask_summaries"] = "ask_summaries"


@dataclass(frozen=True)
class Summaries(Answer, to=AskSummaries):
    """The answer to `AskSummaries`, by tag and run."""

    request_id: int
    #: "" where it is the answer; else why there is none.
    error: str
    #: `SummaryState.version` of what is told.
    version: int
    scalars: tuple[ScalarSeries, ...]
    histograms: tuple[HistogramSeries, ...]
    images: tuple[ImageSeries, ...]
    texts: tuple[TextSeries, ...]
    #: Series that the answer has no room for.
    left_out: int
    #: The steps that pictures and texts are of: one column "step", growing.
    steps: Table
    #: The view that it is for.
    view: int
    kind: Literal["summaries"] = "summaries"


__all__ = [
    "AskSummaries",
    "HistogramSeries",
    "ImageSeries",
    "ScalarSeries",
    "Summaries",
    "SummaryState",
    "TextSeries",
]
