"""The runs that were made from a view: what came of each, and how two of them differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.live.answers.fetched import change
from flowscope.live.protocol.run_schema import FetchChange, Outcome

#: Runs whose values are kept, and how many bytes of values besides those of the latest.
KEPT = 8
KEPT_BYTES = 256_000_000


@dataclass(frozen=True, eq=False)
class Run:
    """A run of what was chosen in a view.

    Attributes:
        outcome: What is told of it: number, seconds, error, a summary of each value.
        values: The fetched values by name, None of operations; {} if the run has failed.
    """

    outcome: Outcome
    values: Mapping[str, Any]

    @property
    def number(self) -> int:
        """From 1."""
        return self.outcome.number

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return sum(getattr(value, "nbytes", 0) for value in self.values.values())

    def __repr__(self) -> str:
        return f"<run {self.number}: {self.outcome.error or ', '.join(self.values)}>"


class Runs:
    """The latest runs, oldest first.

    Attributes:
        kept: The runs whose values are kept.
        count: How many there were.
        baseline: The number of the run to compare the latest with; None for the one before.
    """

    def __init__(self) -> None:
        self.kept: list[Run] = []
        self.count = 0
        self.baseline: int | None = None
        #: The two runs that were compared last, and what was found.
        self._compared: tuple[tuple[int, int], tuple[FetchChange, ...]] = (0, 0), ()

    def add(self, run: Run) -> None:
        """Takes a run, and lets go of the oldest beyond the bounds, but not of the baseline."""
        self.count = run.number
        found: list[Run] = []
        left = KEPT_BYTES + run.nbytes
        for one in reversed([*self.kept, run]):
            left -= one.nbytes
            if one.number == self.baseline or (left >= 0 and len(found) < KEPT):
                found.insert(0, one)
        self.kept = found

    def set_baseline(self, number: int | None) -> None:
        """Sets the run to compare with.

        Raises:
            InvalidArgumentError: if there is no such run any more.
        """
        self.baseline = None if number is None else self._run(number).number

    @property
    def compared_with(self) -> int:
        """The number of the run that the latest is compared with; 0 for none."""
        other = self._other()
        return 0 if other is None else other.number

    def changes(
        self, before: int | None = None, after: int | None = None
    ) -> tuple[FetchChange, ...]:
        """Returns how the values of a run differ from those of another, by fetch of both.

        Args:
            before: The number of a run; that of the baseline if None.
            after: The number of another; the latest if None.

        Raises:
            InvalidArgumentError: if there is no such run any more.
        """
        old = self._other() if before is None else self._run(before)
        if old is None:
            return ()
        new = self.kept[-1] if after is None else self._run(after)
        pair = old.number, new.number
        if self._compared[0] != pair:
            both = [name for name in new.values if name in old.values]
            found = tuple(change(name, old.values[name], new.values[name]) for name in both)
            self._compared = pair, found
        return self._compared[1]

    def _other(self) -> Run | None:
        """Returns the run that the latest is compared with; one that has failed has no values."""
        before = [run for run in self.kept[:-1] if not run.outcome.error]
        chosen = [run for run in before if run.number == self.baseline]
        found = chosen or before
        return found[-1] if found else None

    def _run(self, number: int) -> Run:
        for run in self.kept:
            if run.number == number:
                return run
        known = [run.number for run in self.kept]
        raise InvalidArgumentError(f"expected the number of a run, one of {known}, got {number}")


__all__ = ["Run", "Runs"]
