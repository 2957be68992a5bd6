"""What a view is to run, and what came of it, as data: a part of `live.protocol.schema`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Need:
    """A tensor that must be fed for what is chosen to be fetched."""

    #: The tensor's name: "x:0".
    name: str
    dtype: str
    #: Dimensions; None for an unknown dimension; None as a whole for an unknown rank.
    shape: tuple[int | None, ...] | None
    #: How its value is given: a literal or the name of a variable of the notebook, as typed; "" if
    #: it is not given, or by Python.
    text: str
    #: What the value is: "float64[10,784]"; "" while none is known.
    value: str
    #: Why the value cannot be fed, and what to write; "" if it can, or none was given.
    problem: str
    #: The notebook's variables whose values would fit, those made last first.
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fetched:
    """What a run has made of one fetch: a short text, else what can be told of an array."""

    #: The tensor's name, or the operation's.
    name: str
    #: "" for an operation, which has no value.
    dtype: str
    shape: tuple[int, ...]
    #: The value of a scalar or a short array; "" of others.
    text: str
    #: Of the finite elements; None where there are none, and for what is no number.
    minimum: float | None
    maximum: float | None
    mean: float | None
    #: How many finite elements lie in each of equal parts from `minimum` to `maximum`.
    histogram: tuple[int, ...]
    #: Elements that are infinite or not a number.
    not_finite: int


@dataclass(frozen=True)
class ScalarState:
    """A number that steps have fetched, or a writer of summaries was given, lately."""

    #: The tensor's name without ":0", or the tag.
    name: str
    #: The operation that makes it; None where none is known.
    op: int | None
    #: How many steps had ended, or the summary's step, with the newest value.
    step: int
    value: float
    #: The newest values that were seen, the oldest first.
    curve: tuple[float, ...]


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    #: From 1.
    number: int
    seconds: float
    fetched: tuple[Fetched, ...]
    #: The fed tensors' names, with what they were fed as in `Need`: `text`, else `value`.
    fed: tuple[tuple[str, str], ...]
    #: One line; "" if the run has succeeded.
    error: str
    #: The name of the operation at which it failed; "" where it is not known.
    failed_at: str


@dataclass(frozen=True)
class FetchChange:
    """How a fetched value of one run differs from that of another."""

    name: str
    #: Whether dtype, shape and all bits are equal.
    is_equal: bool
    #: The greatest absolute difference of two elements; None where it cannot be told.
    max_abs: float | None
    #: For people: "equal bits", "differs by up to 0.013", or why it cannot be told.
    text: str


@dataclass(frozen=True)
class RunSetup:
    """What the views of a graph are to run, and what came of it."""

    #: Names as `Session.run` takes them: "y:0" of a tensor, "train" of an operation.
    fetches: tuple[str, ...]
    #: Placeholders that would run and other tensors that were chosen to be fed.
    needs: tuple[Need, ...]
    #: Ids of the operations that would run, those of bodies too, as first and last of each row.
    would_run: tuple[tuple[int, int], ...]
    #: "waiting": for the running cell to end.
    state: Literal["ready", "waiting", "running"]
    #: Why it cannot be run, and what to do; "" if it can.
    problem: str
    #: The latest run.
    latest: Outcome | None
    #: Numbers of the runs that are kept, oldest first.
    kept: tuple[int, ...]
    #: The run that the latest is compared with; 0 for none.
    compared_with: int
    #: How the latest run's values differ from that one's, by fetch.
    changes: tuple[FetchChange, ...]


__all__ = ["FetchChange", "Fetched", "Need", "Outcome", "RunSetup"]
