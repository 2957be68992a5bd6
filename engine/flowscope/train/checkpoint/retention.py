"""Which checkpoints are kept: the last few, and one every so many hours for good."""

from __future__ import annotations

from dataclasses import field

from flowscope.graph.lazy import mutable


@mutable
class Retention:
    """The checkpoints that one saver wrote, the oldest first.

    Attributes:
        max_to_keep: How many are kept; None or 0 for all, and none is noted.
        hours: Of those that go, one is kept for good every so many hours.
        kept: (prefix, seconds since 1970 when it was written) of those that may go later.
        preserved: When the last one was written that is kept for good, or the first one of all:
            from then the hours count. None before there is any.
    """

    max_to_keep: int | None
    hours: float
    kept: list[tuple[str, float]] = field(default_factory=list)
    preserved: float | None = None

    def with_new(self, prefix: str, written: float) -> tuple[Retention, list[str]]:
        """The state after a new checkpoint, and the prefixes of those to delete."""
        if not self.max_to_keep:
            return self, []
        kept = [*[(p, t) for p, t in self.kept if p != prefix], (prefix, written)]
        preserved = written if self.preserved is None else self.preserved
        gone = []
        while len(kept) > self.max_to_keep:
            path, time = kept.pop(0)
            if time - preserved >= self.hours * 3600:
                preserved = time
            else:
                gone.append(path)
        return Retention(self.max_to_keep, self.hours, kept, preserved), gone


__all__ = ["Retention"]
