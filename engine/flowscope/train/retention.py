"""Which checkpoints are kept (SPEC O15): the last few, and one every so many hours for good."""

from __future__ import annotations

from dataclasses import field

from flowscope.graph.late import mutable


@mutable
class Retention:
    """The checkpoints that one saver wrote, the oldest first.

    Attributes:
        max_to_keep: How many are kept; None or 0 for all.
        hours: Of those that go, one is kept for good every so many hours.
        kept: (prefix, seconds since 1970 when it was written) of those that may go later.
        preserved: When the last one was written that is kept for good, or the first one of all:
            from then the hours count. None before there is any.
    """

    max_to_keep: int | None
    hours: float
    kept: list[tuple[str, float]] = field(default_factory=list)
    preserved: float | None = None

    def add(self, prefix: str, written: float) -> list[str]:
        """Notes a new checkpoint; returns the prefixes of those to delete."""
        self.kept = [(p, t) for p, t in self.kept if p != prefix]
        self.kept.append((prefix, written))
        if self.preserved is None:
            self.preserved = written
        gone = []
        while self.max_to_keep and len(self.kept) > self.max_to_keep:
            path, time = self.kept.pop(0)
            if time - self.preserved >= self.hours * 3600:
                self.preserved = time
            else:
                gone.append(path)
        return gone


__all__ = ["Retention"]
