"""The subscribers: the views that were heard of lately. No clock: time comes in.

A view says when it closes, but one whose page was reloaded, crashed or lost its connection says
nothing more. So a view counts only for a while after it was heard of, and says from time to time
that it is still there. One that was taken for closed and is heard again is told everything anew.
"""

from __future__ import annotations

#: Seconds of silence after which a view is taken for closed. Views say three times as often that
#: they are there; browsers let pages in the background do so once a minute.
SILENCE_S = 90.0


class Subscribers:
    """The open views, by the numbers that they drew.

    Args:
        silence_s: Seconds of silence after which a view is taken for closed.
    """

    def __init__(self, silence_s: float = SILENCE_S) -> None:
        self.silence_s = silence_s
        self._heard_s: dict[int, float] = {}

    def __contains__(self, view: int) -> bool:
        return view in self._heard_s

    def __len__(self) -> int:
        return len(self._heard_s)

    def heard(self, view: int, now_s: float) -> bool:
        """Notes that a view is there; returns whether it was known to be."""
        is_known = view in self._heard_s
        self._heard_s[view] = now_s
        return is_known

    def left(self, view: int) -> None:
        """Notes that a view has closed."""
        self._heard_s.pop(view, None)

    def remains(self, now_s: float) -> bool:
        """Takes silent views for closed; returns whether any is left."""
        start_s = now_s - self.silence_s
        self._heard_s = {view: s for view, s in self._heard_s.items() if s >= start_s}
        return bool(self._heard_s)


__all__ = ["SILENCE_S", "Subscribers"]
