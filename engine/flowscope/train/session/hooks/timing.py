"""`fs.train.SecondOrStepTimer`: says when a hook is due, by steps or by seconds."""

from __future__ import annotations

import time

from flowscope.errors import InvalidArgumentError

__all__ = ["SecondOrStepTimer"]


class SecondOrStepTimer:
    """Says every so many steps, or seconds, that something is due. The first step is always due.

    Args:
        every_secs: Seconds between two triggers.
        every_steps: Steps between two triggers.

    Raises:
        InvalidArgumentError: if not exactly one of the two is given.
    """

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        if (every_secs is None) == (every_steps is None):
            given = "neither" if every_secs is None else "both"
            raise InvalidArgumentError(f"expected one of every_secs and every_steps, got {given}")
        self._every_secs = every_secs
        self._every_steps = every_steps
        self.reset()

    def reset(self) -> None:
        """Forgets when it triggered last."""
        self._last_step: int | None = None
        self._last_s: float | None = None

    def should_trigger_for_step(self, step: int) -> bool:
        """True if something is due at a step: never twice at the same one."""
        if self._last_step is None or self._last_s is None:
            return True
        if step == self._last_step:
            return False
        if self._every_secs is not None:
            return time.monotonic() >= self._last_s + self._every_secs
        assert self._every_steps is not None
        return step >= self._last_step + self._every_steps

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Notes that it triggered at a step.

        Returns:
            Seconds and steps since it triggered before; None and None at the first time.
        """
        now = time.monotonic()
        last_s, last_step = self._last_s, self._last_step
        self._last_s, self._last_step = now, step
        if last_s is None or last_step is None:
            return None, None
        return now - last_s, step - last_step

    def due_text(self) -> str:
        """When it is due next; "" before the first time."""
        if self._last_step is None or self._last_s is None:
            return ""
        if self._every_steps is not None:
            return f"waits for step {self._last_step + self._every_steps}"
        assert self._every_secs is not None
        left_s = max(0.0, self._last_s + self._every_secs - time.monotonic())
        return f"is due in {left_s:.0f} s"

    def last_triggered_step(self) -> int | None:
        """The step at which it triggered last; None before the first time."""
        return self._last_step


def timer_of(what: str, secs: float | None, steps: int | None) -> SecondOrStepTimer:
    """A timer of a hook's two arguments, whose names an error tells (`save_steps`, ...).

    Raises:
        InvalidArgumentError: if not exactly one is given, or it is not positive.
    """
    first, second = what.format("secs"), what.format("steps")
    if (secs is None) == (steps is None):
        given = "neither" if secs is None else "both"
        raise InvalidArgumentError(f"expected one of {first} and {second}, got {given}")
    given_as, value = (first, secs) if steps is None else (second, steps)
    if value is None or not value > 0:
        raise InvalidArgumentError(f"expected {given_as} above 0, got {value!r}")
    return SecondOrStepTimer(secs, steps)
