"""How far a worker's clock is ahead of the client's, from messages there and back.

A message leaves at `sent`, the worker reads its clock at `there`, the answer is back at `back`. The
worker read it between the two, so its clock is ahead by `there - (sent + back) / 2`, and this is
wrong by half of the time between them at most. Of several round trips the quickest is believed.

Source: Cristian, "Probabilistic clock synchronization", 1989; the clock filter of NTP (RFC 5905,
section 10) takes the sample of the smallest delay too.
"""

from __future__ import annotations

from collections import deque

from flowscope.graph.lazy import frozen

#: Clocks of two machines may drift apart by so much: 50 millionths.
DRIFT = 50e-6
#: Round trips that are kept.
KEPT = 16


@frozen
class ClockSample:
    """One round trip, in seconds of each one's own clock.

    Attributes:
        sent, back: When the client sent the question, and had the answer.
        there: What the worker's clock said.
    """

    sent: float
    there: float
    back: float

    @property
    def ahead_s(self) -> float:
        """How far the worker's clock is ahead."""
        return self.there - (self.sent + self.back) / 2

    def error_s(self, now: float) -> float:
        """How wrong that can be at a time: clocks may have drifted apart since."""
        return (self.back - self.sent) / 2 + max(0.0, now - self.back) * DRIFT


class ClockOffset:
    """What is known of one worker's clock."""

    def __init__(self) -> None:
        self._samples: deque[ClockSample] = deque(maxlen=KEPT)

    def add(self, sample: ClockSample) -> None:
        """Takes a round trip into account."""
        self._samples.append(sample)

    @property
    def quickest_s(self) -> float | None:
        """The seconds of the quickest round trip; None before one."""
        return min([s.back - s.sent for s in self._samples], default=None)

    def best(self, now: float) -> tuple[float, float] | None:
        """Returns how far the clock is ahead, and the most that this is wrong; None before one.

        Args:
            now: The client's clock.
        """
        best = min(self._samples, key=lambda s: s.error_s(now), default=None)
        return None if best is None else (best.ahead_s, best.error_s(now))


__all__ = ["ClockOffset", "ClockSample"]
