"""The debugger of a session: its breakpoints, and the steps that are held."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from flowscope.debug.breakpoints import Breakpoint, conditions, joined
from flowscope.debug.culprit import Culprit, culprit
from flowscope.debug.explain import explain, measured
from flowscope.debug.explanation import Explanation
from flowscope.debug.history import History
from flowscope.debug.replay import Replay
from flowscope.debug.stops import Debugged, Stop, tensor_of
from flowscope.debug.targets import PlanPlaces, Standing, target
from flowscope.debug.variables import Variables, variables
from flowscope.debug.watchpoints import FlagTest, Watchpoint
from flowscope.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from flowscope.graph.current_step import current_thread
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.origins.origin import stacklevel
from flowscope.plan.ir.breakpoints import NO_TESTS, BreakTest, BreakTests
from flowscope.plan.plan import Plan
from flowscope.runtime.session.replayer import Replayer
from flowscope.runtime.session.session import debuggers

if TYPE_CHECKING:
    from flowscope.runtime.step.step import Step
    from flowscope.tracing.recording import Recording

#: So many plans' places are kept at most.
MOST_PLACES = 64


class Debugger:
    """Holds steps where they were asked to stop; `session.debug`.

        stop = sess.debug.break_after("loss", when="not finite")
        sess.debug.on_stop(lambda stop: print(stop, stop.value("logits").max()))

    A step that is held waits until somebody lets it go on: a view, another thread, or the function
    of `on_stop`. Breakpoints may be set while a step runs: it meets them from its next safepoint
    on. Code runs at full speed up to them.

    Args:
        session: The session, or the replay of a step of one.
    """

    def __init__(self, session: Debugged) -> None:
        self._session: Any = weakref.proxy(session)
        self._breakpoints: list[Breakpoint] = []
        self._count = 0
        #: The threads on which a floating-point error was flagged and not looked at yet.
        self.flagged: set[int] = set()
        #: What was found of plans, by their ids.
        self._places: dict[int, PlanPlaces] = {}
        #: What is recorded; None for nothing.
        self.history: History | None = None
        #: The replay that `back` or `revisit` has made, and the stop that it is the past of.
        self._past: tuple[Replay, Stop | None] | None = None

    # -- breakpoints ----------------------------------------------------------------------------

    def break_before(
        self,
        op: Operation | Tensor | str | None = None,
        *,
        scope: str | None = None,
        op_type: str | None = None,
        line: int | None = None,
        cell: int | None = None,
        file: str | None = None,
        when: str | Callable[[Any], Any] | None = None,
        iteration: int | tuple[int, ...] | None = None,
        step: int | None = None,
        hits: int = 1,
    ) -> Breakpoint:
        """Holds steps before operations; returns the breakpoint.

        Exactly one of `op`, `scope`, `op_type` and `line` says which operations; those that are
        added to the graph later are meant too.

        Args:
            op: An operation, a tensor, or the name of one.
            scope: The name of a scope: all operations in it.
            op_type: An op type, such as "MatMul".
            line: A line of the user's code, from 1.
            cell, file: The notebook cell or the file that the line is in.
            when: What the operation's first input has to be: a comparison such as "max > 3" (see
                `flowscope.debug.conditions`), or a function that is given it and must not change
                it. One that raises does not hold the step: a warning tells the error, and
                `Breakpoint.error` has it.
            iteration: The iteration of the innermost loop, from 0; a tuple for all loops around,
                from the outermost.
            step: The number of the run in its session, from 0: all runs count.
            hits: From which time on it holds, of those on which all else is met.

        Raises:
            InvalidArgumentError: if that is no breakpoint.
            ValueError, KeyError: if the graph has no such operation.
        """
        given = op, scope, op_type, line, cell, file
        return self._add(given, False, when, iteration, step, hits)

    def break_after(
        self,
        op: Operation | Tensor | str | None = None,
        *,
        scope: str | None = None,
        op_type: str | None = None,
        line: int | None = None,
        cell: int | None = None,
        file: str | None = None,
        when: str | Callable[[Any], Any] | None = None,
        iteration: int | tuple[int, ...] | None = None,
        step: int | None = None,
        hits: int = 1,
    ) -> Breakpoint:
        """Holds steps after operations; returns the breakpoint.

        As `break_before`; `when` is asked of the operation's first output.
        """
        given = op, scope, op_type, line, cell, file
        return self._add(given, True, when, iteration, step, hits)

    def _add(
        self, given: Any, is_after: bool, when: Any, iteration: Any, step: Any, hits: int
    ) -> Breakpoint:
        meant = target(self._session.graph, *given)
        wanted = conditions(when, iteration, step, hits)
        self._count += 1
        made = Breakpoint(self, self._count, meant, is_after, wanted)
        self._breakpoints.append(made)
        self.arm()
        self.tell_who_passes()
        return made

    def watch(
        self,
        op: Operation | Tensor | str | None = None,
        *,
        scope: str | None = None,
        op_type: str | None = None,
        line: int | None = None,
        cell: int | None = None,
        file: str | None = None,
        when: str | Callable[[Any], Any] | None = None,
        exceptions: Sequence[str] = (),
        raises: bool = True,
    ) -> Watchpoint:
        """Watches values that have to be finite, or as a condition says; returns the watchpoint.

            sess.debug.watch()
            sess.debug.watch(scope="decoder", when="min < -1 or max > 1", raises=False)
            sess.debug.watch("logits", when="shape != (32, 10)")

        The first operation whose output holds a NaN or an infinity is named, with its iteration,
        its step and its inputs, and what held one before: fed tensors, variables, constants. It is
        the same operation in every mode. With `when` it is the first of which that is true.

        Args:
            op, scope, op_type, line, cell, file: Which operations, as for `break_before`; all of
                them where none is given.
            when: What no value may be: a comparison (see `flowscope.debug.conditions`), or a
                function that is given each value and must not change it; None for not finite. One
                that raises is told as that of a breakpoint is.
            exceptions: Names of operations and scopes that may have such values.
            raises: Whether the step ends with InvalidArgumentError there; else it is held.
        """
        given = op, scope, op_type, line, cell, file
        is_all = all(one is None for one in given)
        meant = None if is_all else target(self._session.graph, *given)
        if isinstance(exceptions, str):
            raise InvalidArgumentError(
                f"expected a list of names as exceptions, got {exceptions!r}"
            )
        wanted = conditions(when, None, None, 1)
        self._count += 1
        made = Watchpoint(self, self._count, meant, exceptions, raises, wanted.when)
        self._breakpoints.append(made)
        self.arm()
        self.tell_who_passes()
        return made

    def stop_at_nan(self, exceptions: Sequence[str] = ()) -> Watchpoint:
        """Holds steps at the first value that is not finite, wherever it is made.

            sess.debug.stop_at_nan()
            sess.debug.on_stop(lambda stop: print(stop.culprit()))

        Steps are recorded from now on, unless they are already, so that the one that is held can be
        computed again; those of a cluster cannot be recorded. Removing the watchpoint ends that.

        Args:
            exceptions: Names of operations and scopes that may have such values.

        Returns:
            The watchpoint; one that does the same already is taken away.
        """
        for before in [b for b in self._breakpoints if isinstance(b, Watchpoint)]:
            if before.stops_at_nan:
                before.remove()
        made = self.watch(exceptions=exceptions, raises=False)
        is_of_replay = isinstance(self._session, Replayer)
        if self.history is None and not is_of_replay and self._session.cluster is None:
            made.history = self.record()
        return made

    @property
    def breakpoints(self) -> tuple[Breakpoint, ...]:
        """The breakpoints, in the order in which they were set."""
        return tuple(self._breakpoints)

    def remove(self, breakpoint: Breakpoint) -> None:
        """Takes a breakpoint away; nothing happens where it is gone already."""
        self._breakpoints = [b for b in self._breakpoints if b is not breakpoint]
        if isinstance(breakpoint, Watchpoint) and breakpoint.history is not None:
            breakpoint.history.remove()
        self.arm()

    def clear(self) -> None:
        """Takes all breakpoints away; steps that are held stay held."""
        for breakpoint in self._breakpoints:
            breakpoint.remove()

    def arm(self) -> None:
        """Has plans and running steps ask at the breakpoints that there are now."""
        session = self._session
        planner, gate = session.planner, session.gate
        enabled = [b for b in self._breakpoints if b.is_enabled]
        is_asked = enabled or (self.history is not None and self.history.tensors)
        planner.breakpoints = self._tests if is_asked else None
        before = {s: s.call.tests for s in gate.inside}
        planner.arm()
        for step, tests in before.items():
            if tests.flagged is None and step.call.tests.flagged is not None:
                self.flagged.add(step.thread)  # NumPy was not asked to tell of flags in this step
        gate.rearm(lambda s: s in before and _asks_anew(s, before[s]))

    def tell_who_passes(self) -> None:
        """Warns of the steps on their way that do not heed breakpoints which were set just now."""
        for step in self._session.gate.inside:
            remote = step.call.elsewhere
            why = ""
            if step.call.trace is not None:
                why = "it is traced"
            elif remote is not None and not remote.takes_turns and not step.is_joint:
                why = "it has queues, locks or primitives of control flow, and runs on workers"
            if why and step.whole is step and any(self._tests(step.plan).names):
                warnings.warn(
                    f"step {step.number} runs past breakpoints that are set from now on, for {why}",
                    RuntimeWarning,
                    stacklevel(),
                )

    def _tests(self, plan: Plan) -> BreakTests:
        """The tests that the code of a plan makes, by places."""
        places = self._places_in(plan)
        sides: tuple[dict[str, list[BreakTest]], dict[str, list[BreakTest]]] = {}, {}
        for breakpoint in [b for b in self._breakpoints if b.is_enabled]:
            side = sides[breakpoint.is_after]
            found = places.of(breakpoint.target, breakpoint.is_after)
            for name, test in breakpoint.tests(plan, [n for one in found for n in one.nodes]):
                side.setdefault(name, []).append(test)
        if self.history is not None:
            for side, tests in zip(sides, self.history.tests(plan), strict=True):
                for name, asked in tests.items():
                    side.setdefault(name, []).extend(asked)
        if not any(sides):
            return NO_TESTS
        before, after = ({name: joined(t) for name, t in side.items()} for side in sides)
        watches = [b for b in self._breakpoints if isinstance(b, Watchpoint) and b.is_enabled]
        if not watches:
            return BreakTests(before, after)
        flag = self._flag if any(w.conditions.when is None for w in watches) else None
        fed = partial(_finds_fed, self.flagged, watches)
        guards = {
            n: self.flagged
            for n, t in sides[1].items()
            if all(isinstance(one, FlagTest) and one.is_small for one in t)
        }
        return BreakTests(before, after, flag, guards, fed)

    def _flag(self, kind: str, flag: int) -> None:
        """Notes that NumPy has flagged a floating-point error on this thread."""
        self.flagged.add(current_thread())

    def standing(self, breakpoint: Breakpoint) -> tuple[Standing, ...]:
        """Returns where a breakpoint stands in the plans that there are."""
        side = breakpoint.target, breakpoint.is_after
        if not breakpoint.has_target:
            return ()
        plans = [call.plan for call in self._session.planner.calls.all()]
        return tuple([one for plan in plans for one in self._places_in(plan).of(*side)])

    def _places_in(self, plan: Plan) -> PlanPlaces:
        """Returns where operations stand in a plan, found once: views ask again and again."""
        found = self._places.get(id(plan))
        if found is None or found.plan is not plan:
            if len(self._places) > MOST_PLACES:
                self._places.clear()
            found = self._places[id(plan)] = PlanPlaces(plan)
        return found

    # -- the past -------------------------------------------------------------------------------

    def record(
        self,
        tensors: Tensor | Operation | str | Sequence[Tensor | Operation | str] = (),
        *,
        max_bytes: int = 1 << 28,
    ) -> History:
        """Records steps from now on: what each is computed from, and the values of tensors.

            history = sess.debug.record(["loss", "cell/h"])
            ...
            history.values("loss")[-1].value
            with sess.debug.replay(history.steps[0]) as past:
                past.value("cell/h", iteration=3)

        Variables are kept as they were before each step: one that is written then takes a new
        buffer each time. Feeds and values are copied. The oldest go first. What was recorded before
        ends.

        Args:
            tensors: Tensors whose values are kept, over steps and iterations, or their names; an
                operation stands for its first output.
            max_bytes: So many bytes are kept at most.

        Raises:
            InvalidArgumentError: if `max_bytes` is not positive.
            FailedPreconditionError: in a replay.
            UnimplementedError: for a session of a cluster.
        """
        if isinstance(self._session, Replayer):
            raise FailedPreconditionError(
                "a replay is computed from what was recorded: record in its session"
            )
        self._check_can_record()
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes <= 0:
            raise InvalidArgumentError(f"expected bytes above 0 as max_bytes, got {max_bytes!r}")
        given = [tensors] if isinstance(tensors, str | Tensor | Operation) else tensors
        chosen = dict.fromkeys(tensor_of(self._session.graph, t) for t in given)
        self.history = made = History([*chosen], max_bytes, lambda: self._end_history(made))
        self._session.planner.wrap(made.around)
        self.arm()
        return made

    def _check_can_record(self) -> None:
        if self._session.cluster is not None:
            raise UnimplementedError(
                "steps over a cluster are not recorded: the variables of its workers would have to "
                "be kept there. Record the same program in a session of this process"
            )

    def _end_history(self, history: History) -> None:
        if self.history is history:
            self.history = None
            self._session.planner.wrap(None)
            self.arm()

    def replay(self, step: int | None = None) -> Replay:
        """Returns a step that was recorded, to be computed again.

        Args:
            step: The number of the run in its session, from 0: all runs count. None for the last
                one that was recorded.

        Raises:
            FailedPreconditionError: if the step was not recorded, or does not follow from feeds,
                variables and the number of the run: the message says why.
            UnimplementedError: for a session of a cluster.
        """
        if isinstance(self._session, Replayer):
            raise FailedPreconditionError("it is a step of the past already")
        if self.history is None:
            self._check_can_record()
            raise FailedPreconditionError(
                "nothing is recorded: call sess.debug.record() before the steps that are to be "
                "replayed"
            )
        steps = self.history.steps
        number = step if step is not None else steps[-1] if steps else None
        found = None if number is None else self.history.inputs.find(number)
        if number is None or found is None:
            if number is None:
                raise FailedPreconditionError(
                    "nothing can be replayed: no step was recorded yet, or none that follows from "
                    "its inputs; sess.debug.replay(number) says why a step does not"
                )
            why = self.history.inputs.why_not(number)
            raise FailedPreconditionError(f"step {number} cannot be replayed: {why}")
        return Replay(self._session, found)

    def back(self, stop: Stop) -> Stop:
        """Returns a stop before the operation that ran last; see `Stop.step_back`."""
        if isinstance(self._session, Replay):
            return self._session.step_back(stop.position)
        past = self.replay(stop.step)
        self.leave_past()
        self._past = past, stop
        return past.step_back(stop.position)

    def revisit(
        self,
        step: int,
        op: Operation | Tensor | str,
        iteration: int | tuple[int, ...] | None,
    ) -> Stop:
        """Returns a stop before an operation of a step that was recorded; `stops` has it too.

        It stands there until a step goes on, or something else of the past is asked for.

        Args:
            step: The number of the run.
            op, iteration: See `Replay.before`.
        """
        past = self.replay(step)
        self.leave_past()
        self._past = past, next(iter(self.stops), None)
        return past.before(op, iteration)

    def culprit(self, stop: Stop, computes: bool) -> Culprit | None:
        """The culprit of the value that holds a step; see `Stop.culprit`."""
        return culprit(stop, lambda: self.replay(stop.step), computes)

    def leave_past(self) -> None:
        """Ends the past that `back` or `revisit` has made; steps that are held stay held."""
        before, self._past = self._past, None
        if before is not None:
            before[0].close()

    # -- explaining -----------------------------------------------------------------------------

    def explain(
        self, op: Operation | Tensor | str, recording: Recording | None = None
    ) -> Explanation:
        """Explains an operation; see `Session.explain`."""
        if isinstance(self._session, Replayer):
            raise FailedPreconditionError(
                "a replay explains nothing: call `explain` of its session, which tells of it"
            )
        found = self._session.graph.as_graph_element(op)
        meant = found.op if isinstance(found, Tensor) else found
        spent = None if recording is None else measured(recording.nodes, recording.totals)
        return explain(self._session, meant, spent)

    def variables(self, scope: str | None = None, statistics: bool = False) -> Variables:
        """Returns the variables with what is kept of them; see `Session.variables`."""
        if isinstance(self._session, Replayer):
            raise FailedPreconditionError(
                "a replay lists no variables: `Replay.variables` has those of its step, and the "
                "session lists what they are now"
            )
        return variables(self._session, scope, None if statistics else ())

    # -- steps that are held --------------------------------------------------------------------

    @property
    def stops(self) -> tuple[Stop, ...]:
        """The steps that are held now, each with where it stands, and the past of one of them."""
        found = _held(self._session)
        if self._past is not None:
            past, of = self._past
            if of is None or of.is_there:
                found += _held(past)
            else:
                self.leave_past()
        return tuple(found)

    def wait(self, timeout_s: float = 10.0) -> Stop | None:
        """Waits until a step is held; returns it, None if none is after so many seconds."""
        if not timeout_s >= 0:
            raise InvalidArgumentError(f"expected seconds of 0 or more, got {timeout_s}")
        self._session.gate.wait_until_held(timeout_s)
        return next(iter(self.stops), None)

    def on_stop(self, function: Callable[[Stop], Any] | None) -> None:
        """Has a function called wherever a step is held, on the thread that runs the step.

        The step goes on when it returns; it may ask for another move first, such as
        `stop.step_op()`. What it raises ends the step.

        Args:
            function: Is given the stop; None for no function: steps wait then.
        """
        gate = self._session.gate
        gate.listener = None if function is None else partial(self._tell, function)

    def _tell(self, function: Callable[[Stop], Any], step: Step) -> None:
        try:
            function(Stop(self._session, step))
        finally:
            self.leave_past()

    def __repr__(self) -> str:
        lines = [f"<fs.Debugger: {len(self._breakpoints)} breakpoints, {len(self.stops)} held>"]
        return "\n".join([*lines, *map(repr, self._breakpoints)])


def _held(session: Debugged) -> list[Stop]:
    """The steps of a session that are held, but for one that goes on meanwhile."""
    found = []
    for step in session.gate.held_steps():
        with suppress(FailedPreconditionError):
            found.append(Stop(session, step))
    return found


def _asks_anew(step: Step, before: BreakTests) -> bool:
    """Whether a step is to leave its code, for that asks not at the breakpoints that there are.

    Not a part of a step that runs in several processes, nor the client's thread of that: what
    stands for the whole asks.
    """
    is_elsewhere = step.takes_turns or step.call.elsewhere is not None
    return step.call.tests is not before and not is_elsewhere


def _finds_fed(flagged: set[int], watches: Sequence[Watchpoint], step: Step) -> bool:
    """Whether a step that begins is fed what a watchpoint holds it for; its flags are new."""
    if step.outer is None or step.outer.thread != step.thread:
        flagged.discard(step.thread)
    return any(w.finds_fed(step) for w in watches)


debuggers.append(Debugger)

__all__ = ["Debugger"]
