"""Decides which steps are traced for views: some of each program, for as long as views want that.

A session's program may be one plan that runs all the time, several that take turns, or one step
that lasts for an hour. Three rules keep the figures of each fresh and true:

- each plan is traced at a rate of its own, so that a rare one (an evaluation) is not starved by one
  that runs all the time, nor by turns that happen to keep step with the looks;
- the session is asked only while some plan is due: what runs meanwhile pays nothing;
- a plan counts as one that lasts only while its newest step does. One slow step - the first, or one
  that was paused - says nothing of those that follow it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from flowscope.plan.ir.structured import LoopNode
from flowscope.plan.plan import Plan
from flowscope.runtime.step.step import Step

#: A plan whose steps take so many seconds is not traced as a whole; its steps are sampled.
LASTS_S = 1.0
#: A plan that was not seen for so many seconds is not waited for any more.
GONE_S = 60.0
#: Plans that were seen within so many seconds share the rate at which steps are traced.
_TOGETHER_S = 2.0
#: Plans that are known at most.
_PLANS = 64


class _Program:
    """What is known of a plan.

    Attributes:
        plan: The plan.
        begun_s: When a step of it was seen to begin, in seconds of the caller's clock; None before.
        seen_s: The look at or after which it was seen last.
        due_s: The look from which on its next step is to be traced.
        is_lasting: Whether its newest step lasts, or lasted.
    """

    def __init__(self, plan: Plan, look_s: float) -> None:
        self.plan = plan
        self.begun_s: float | None = None
        self.seen_s = self.due_s = look_s
        self.is_lasting = False


class SamplingSchedule:
    """Which steps are to be traced as wholes, and which to be sampled.

    Looks and beginnings of steps come from different threads; each method is told the time.
    """

    def __init__(self) -> None:
        #: By the numbers of the plans in memory, which are held with them.
        self._programs: OrderedDict[int, _Program] = OrderedDict()
        #: The steps that ran at the look before, and when each was seen first.
        self._running: list[tuple[Step, float]] = []
        self._look_s = 0.0

    def look(self, running: Sequence[Step], plans: Iterable[Plan], now_s: float) -> list[Step]:
        """Takes a look at a session; returns the steps that ran at the look before, too.

        Args:
            running: The steps that run.
            plans: Plans that have run since the look before, as far as that is known.
            now_s: The time of the look, in seconds.
        """
        self._look_s = now_s
        for plan in plans:
            self._see(plan)
        known = {id(step): since for step, since in self._running}
        self._running = [(step, known.get(id(step), now_s)) for step in running]
        for step, since in self._running:
            program = self._see(step.plan)
            program.is_lasting |= now_s - since >= LASTS_S
        return [step for step in running if id(step) in known]

    def is_any_due(self) -> bool:
        """Whether some plan is due that is likely to run, or none is known yet."""
        earliest_s = self._look_s - GONE_S
        known = list(self._programs.values())
        return not known or any(p.due_s <= self._look_s and p.seen_s >= earliest_s for p in known)

    def wants(self, plan: Plan, now_s: float, interval_s: float) -> bool:
        """Whether the step that begins is to be traced as a whole.

        Args:
            plan: Its plan.
            now_s: When it begins, in seconds; steps' beginnings are compared with each other.
            interval_s: So many seconds shall lie between two traced steps, of whichever plan.
        """
        is_new = id(plan) not in self._programs
        program = self._see(plan)
        before_s, program.begun_s = program.begun_s, now_s
        if before_s is not None and now_s - before_s < LASTS_S:  # the step before has ended
            program.is_lasting = False
        if program.is_lasting or program.due_s > self._look_s:
            return False
        if is_new and any(isinstance(n, LoopNode) for n in plan.program.walk()):
            return False  # what loops has to be seen once
        program.due_s = self._look_s + interval_s * self._count_together()
        return True

    def _count_together(self) -> int:
        earliest_s = self._look_s - _TOGETHER_S
        return sum(p.seen_s >= earliest_s for p in list(self._programs.values()))

    def _see(self, plan: Plan) -> _Program:
        program = self._programs.get(id(plan))
        if program is None:
            program = self._programs[id(plan)] = _Program(plan, self._look_s)
            while len(self._programs) > _PLANS:
                self._programs.popitem(last=False)
        else:
            self._programs.move_to_end(id(plan))
        program.seen_s = self._look_s
        return program


__all__ = ["GONE_S", "LASTS_S", "SamplingSchedule"]
