"""Update groups for which several processes write: whole in all of them, or in none.

The writes of a group wait until it has begun in all processes, and it ends in a process when all
have written. So processes differ by one group at most: while one has written for the nth, all have
written the one before. A process keeps what its variables were before the last group until it
*knows* that this one was written everywhere - the first write for the next one tells it - or what
has become of it. That the client of the step decides, by what the processes say: the nth group is
written if it has ended in one of them. As no two differ by more than one, the word of a single one
is enough, whoever else can be asked.

When a process is done with its part of a step, the variables are *in doubt* until the client has
told it the outcome: nobody finds their values (`runtime.state.resources`), and the client is
asked for whoever wants one.

Source: two-phase commit with the participants' undo logs: Gray 1978, Notes on Data Base Operating
Systems; the votes are the messages by which a group's writes wait for each other anyway.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flowscope.errors import CancelledError, FailedPreconditionError
from flowscope.runtime.state.device_variable import PlacedVariable
from flowscope.runtime.state.resources import VariableState

if TYPE_CHECKING:
    from flowscope.runtime.step.step import Step


class _Undo:
    """What a variable was before a group.

    Attributes:
        group, count: Which group, and the how manieth of this name in the step.
        value, written_in: What it was.
        writes: How many writes there were.
        writes_at_end: How many there were when the group had ended; None before.
        is_built_on: Whether another step has written since.
    """

    __slots__ = (
        "count",
        "group",
        "is_built_on",
        "value",
        "writes",
        "writes_at_end",
        "written_in",
    )

    def __init__(self, group: str, count: int, state: VariableState) -> None:
        self.group, self.count = group, count
        self.value, self.written_in, self.writes = state.value, state.written_in, state.writes
        self.writes_at_end: int | None = None
        self.is_built_on = False

    def look_for_others(self, state: VariableState, number: int | None) -> None:
        """Notes whether another step than that of a number has written since it has ended."""
        end = self.writes_at_end
        if end is not None and state.writes != end and state.written_in != number:
            self.is_built_on = True


class UndoLog:
    """What the variables of a process were before the unsettled groups of a step."""

    def __init__(self) -> None:
        self.entries: dict[VariableState, list[_Undo]] = {}

    def is_written(self, state: VariableState) -> None:
        """Notes that the step writes a variable that it keeps, for its last group.

        All processes have begun this group then, and so have written the one before.
        """
        found = self.entries[state]
        if len(found) > 1:
            last = found[-1]
            found[:] = [one for one in found if one is last or one.group != last.group]


class SharedUpdates:
    """The update groups of a step for which several processes write, as far as they are here.

    In a loop that tokens run, one may begin here before the one of the iteration before has ended.

    Args:
        step: The step.
        groups: Their names.
    """

    def __init__(self, step: Step, groups: Iterable[str]) -> None:
        self._step = step
        self._log = UndoLog()
        #: How often each has begun and ended here.
        self._begun = dict.fromkeys(groups, 0)
        self._ended = dict(self._begun)
        #: By group, while one is open: the variables that it locks, and all that it writes.
        self._held: dict[str, list[VariableState]] = {}
        self._lock = threading.Lock()
        self._is_closed = False
        #: What is in doubt, once they are closed; None where nothing is.
        self.doubt: Doubt | None = None
        self._states: dict[str, Sequence[VariableState]] = {}

    def begin(self, group: str, states: Sequence[VariableState | PlacedVariable]) -> None:
        """Notes that a group begins here: keeps the values of these, and others from writing.

        Raises:
            CancelledError: if they are closed: the step has failed elsewhere.
        """
        with self._lock:
            if self._is_closed:
                raise CancelledError("the step has failed elsewhere: no other update begins")
            self._begun[group] += 1
        log, number = self._log, self._step.number
        own = [s.state if isinstance(s, PlacedVariable) else s for s in states]
        if group not in self._held:
            self._states[group] = own
            self._held[group] = held = []
            for state in own:
                if state.hold(self._step, log):
                    held.append(state)  # noqa: PERF401 (those that it has when it is stopped count)
        count = self._begun[group]
        for state in own:
            found = log.entries.setdefault(state, [])
            if found:
                found[-1].look_for_others(state, number)
            found.append(_Undo(group, count, state))

    def end(self, group: str) -> None:
        """Notes that a group has ended: all processes have written for it."""
        if self._begun[group] == self._ended[group] + 1:
            for state in self._states[group]:
                self._log.entries[state][-1].writes_at_end = state.writes
            for state in self._held.pop(group):
                state.release()
        with self._lock:
            self._ended[group] += 1

    @property
    def written(self) -> dict[str, int]:
        """How many of each group are known to be written in all processes."""
        found = dict(self._ended)
        for state, undos in self._log.entries.items():
            for one in undos:
                is_last = one.count == self._begun[one.group]
                if is_last and state.writes != one.writes:
                    found[one.group] = max(found[one.group], one.count - 1)
        return found

    def close(
        self, ask: Callable[[VariableState], None] | None = None, is_over: bool = True
    ) -> bool:
        """Has what is not settled be in doubt; no group begins any more.

        Args:
            ask: See `Doubt`.
            is_over: Whether nothing of the step runs here any more.

        Returns:
            Whether it is done: where the step is not over, a group may be open.
        """
        with self._lock:
            if not is_over and self._begun != self._ended:
                return False
            self._is_closed = True
        for state in {s for found in self._held.values() for s in found} - self._log.entries.keys():
            state.release()
        if self._log.entries:
            self.doubt = Doubt(self.written, self._log, self._step.number, ask)
        return True


class Doubt:
    """Variables whose values depend on the outcome of a step's update groups.

    Args:
        written: How many of each group are known to be written in all processes.
        log: What the variables were.
        number: The number of the run.
        ask: Waits until a variable is not in doubt any more, for a thread that wants its value.
            Raises if the outcome cannot be told. None where it comes in a moment.

    Attributes:
        written: As above.
        on_settled: Is called once, when nothing is in doubt any more.
    """

    def __init__(
        self,
        written: Mapping[str, int],
        log: UndoLog,
        number: int | None,
        ask: Callable[[VariableState], None] | None,
    ) -> None:
        self.written = dict(written)
        self.on_settled: Callable[[], None] = lambda: None
        self._ask = ask
        self._lock = threading.Lock()
        self._undos = dict(log.entries)
        #: What the variables are if all is written. Others are at work on those that are not here.
        self._values: dict[VariableState, tuple[Any, int | None]] = {}
        with self._lock:
            for state, undos in self._undos.items():
                value = state.take_into_doubt(self, log)
                if value is None:
                    undos[-1].is_built_on = True
                else:
                    undos[-1].look_for_others(state, number)
                    self._values[state] = value

    @property
    def is_settled(self) -> bool:
        """Whether all outcomes are known here."""
        return not self._undos

    def values_of(self, state: VariableState) -> list[Any]:
        """The kept values of a variable: the one prepared here, then those that are undone to."""
        value, _ = self._values.get(state, (None, None))
        return [value, *[one.value for one in self._undos.get(state, ())]]

    def settle(self, state: VariableState, is_overwritten: bool = False) -> None:
        """Waits until a variable is not in doubt any more.

        Args:
            state: The variable.
            is_overwritten: Whether its value does not matter: it is lost where the outcome cannot
                be told.

        Raises:
            FailedPreconditionError: if the outcome cannot be told.
        """
        if self._ask is None:
            return
        try:
            self._ask(state)
        except FailedPreconditionError as e:
            if not is_overwritten:
                raise FailedPreconditionError(refusal(state.name, e.message)) from None
            self.let_go(state, refusal(state.name, e.message))

    def conclude(self, written: Mapping[str, int] | None) -> None:
        """Takes the outcome: what was not written everywhere is put back.

        Args:
            written: How many of each group are written, of those whose outcome is known; None where
                all that have begun are.
        """
        with self._lock:
            for state, undos in list(self._undos.items()):
                groups = {one.group for one in undos}
                if written is not None and not groups <= written.keys():
                    continue
                del self._undos[state]
                self._come_out(state, undos, written)
            is_over = not self._undos
        if is_over:
            self.on_settled()

    def let_go(self, state: VariableState, why: str = "") -> None:
        """Lets a variable lose its value, whatever the outcome."""
        with self._lock:
            undos = self._undos.pop(state, None)
            if undos is not None and self._values.pop(state, None) is not None:
                state.come_out(None, None, why)
            is_over = undos is not None and not self._undos
        if is_over:
            self.on_settled()

    def _come_out(
        self, state: VariableState, undos: Sequence[_Undo], written: Mapping[str, int] | None
    ) -> None:
        is_undone = [written is not None and one.count > written[one.group] for one in undos]
        hidden = self._values.pop(state, None)
        first = is_undone.index(True) if any(is_undone) else len(undos)
        since = undos[first:]
        if all(is_undone[first:]) and not any(one.is_built_on for one in since):
            if hidden is not None:
                value = (since[0].value, since[0].written_in) if since else hidden
                state.come_out(*value)
            return
        why = refusal(state.name, "it was written again before it was known that the update failed")
        if hidden is not None:
            state.come_out(None, None, why)
        else:  # whoever is at work on it is not waited for here
            threading.Thread(target=state.refuse, args=(why,), daemon=True).start()


def refusal(name: str, why: str) -> str:
    """The sentence of an error on a variable that was lost between two values."""
    return (
        f'the variable "{name}" took part in an update of several processes, and whether this was '
        f"written or put back elsewhere cannot be told: {why}; restore the variables of the update "
        "from a checkpoint, or run their initializers"
    )


__all__ = ["Doubt", "SharedUpdates", "UndoLog", "refusal"]
