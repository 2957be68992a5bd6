"""Controls: what people ask of the steps of a session while they run."""

from __future__ import annotations

import math

from flowscope.errors import FailedPreconditionError, InvalidArgumentError
from flowscope.runtime.session.runner import Runner
from flowscope.runtime.step.frames import RunningFrames, running
from flowscope.runtime.waits.predicates import END_OF_STEP, NEXT_ITERATION, NEXT_OP


class Controls(Runner):
    """Pauses, steps, slows down, stops and looks at steps."""

    def pause(self) -> None:
        """Makes running steps wait at their next safepoints, and others before they start."""
        self.gate.request("pause")

    def resume(self) -> None:
        """Lets paused steps go on."""
        self.gate.request("resume")

    def step_op(self) -> None:
        """Lets a paused step run one more operation; one that runs is paused before its next."""
        self.gate.run_until(NEXT_OP)

    def step_iteration(self) -> None:
        """Lets a step run until the next iteration of a loop ends, and holds it there."""
        self.gate.run_until(NEXT_ITERATION)

    def step_out(self) -> None:
        """Lets the held step run until the innermost loop that it is in has ended.

        Outside of loops it runs to its end.

        Raises:
            FailedPreconditionError: if no step is held.
        """
        held = self.gate.held_steps()
        if not held:
            raise FailedPreconditionError("no step is held: pause one, or set a breakpoint")
        self.gate.step_out(held[0])

    def step_run(self) -> None:
        """Lets a step run to its end, and holds it there; the next one is held before it starts."""
        self.gate.run_until(END_OF_STEP)

    def pace(self, seconds: float) -> None:
        """Sets how long steps wait before each operation: slow motion; 0 for full speed.

        Raises:
            InvalidArgumentError: if it is negative or not finite.
        """
        if not 0 <= seconds < math.inf:
            raise InvalidArgumentError(f"expected seconds of 0 or more, got {seconds}")
        self.gate.set_pace(float(seconds))

    def frames(self) -> RunningFrames:
        """Returns the loops that run now, with their iterations; its text is a table.

        Steps tell at their next safepoints; what takes longer than a second to come to one is
        missing.
        """
        self.gate.look(wait_s=1.0)
        seen, _ = self.gate.report()
        return running(seen.values())

    def stop(self) -> None:
        """Ends the running steps, or the next one, at a safepoint: they raise CancelledError."""
        self.gate.request("stop")


__all__ = ["Controls"]
