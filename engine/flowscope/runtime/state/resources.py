"""State that outlives a step: variables' values.

A read takes a lease on the variable's buffer, and a writer changes the buffer in place only when no
lease is out. A lease is a Python reference: the reader's local variable, a fetched array's base, a
view. So the count that CPython keeps anyway says whether one is out, at no cost to the reader, and
none can be forgotten. While a writer works, the buffer is detached, so that no reader can take it
up: first it is detached, then the leases are counted. Writers have the variable's lock; so has a
reader that finds no value, who then waits for the writer. Whether there is a value at all is asked
without the lock, for an update group may hold it for long: `_turn` is odd while a writer works and
while the variable is in doubt, and who finds neither a value nor a writer looks whether it is still
the same turn.

A change of several variables takes their locks in one order, that of their ids.

A writer that has to be able to take its write back takes a lease itself (`keep`): then it writes to
a new buffer, and the old one is what was before.

A variable is *in doubt* while it is not known here how an update group of several processes has
ended (`runtime.state.shared_updates`): nobody finds its value, and whoever wants it waits for
the outcome first. So nothing is asked on the way to variables that are not.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.errors import CancelledError, FailedPreconditionError, InvalidArgumentError
from flowscope.graph.current_step import current_step, current_thread, steps_of_threads
from flowscope.graph.values.shapes import compatible, text

if TYPE_CHECKING:
    from flowscope.runtime.state.shared_updates import Doubt, UndoLog
    from flowscope.runtime.step.step import Step

#: Returns a value on a device, or as it is; None for where it lies.
Put = Callable[[Any], Any] | None

#: So often a thread lets others go on before it waits for a lock.
_TRIES = 50
#: Whether there is space is looked at before a group of writes, for arrays of so many bytes.
_LARGE_BYTES = 1 << 20


#: So often a thread that waits for a lock in earnest looks whether its variable is in doubt.
_LOOK_S = 0.02


def try_to_enter(lock: threading.Lock) -> bool:
    """Acquires a lock that is held for moments only; returns False if it is held for longer.

    Who waits in `acquire` is handed the lock while another thread has the interpreter; then all
    take turns, with a change of threads at each step (measured: four times slower). So let the
    holder go on instead, and wait in earnest only after that did not help.
    """
    if lock.acquire(False):
        return True
    for _ in range(_TRIES):
        time.sleep(0)
        if lock.acquire(False):
            return True
    return False


def _enter(state: VariableState, is_overwritten: bool = False) -> None:
    """Acquires the lock of a variable; one that is in doubt is settled first.

    Args:
        state: The variable.
        is_overwritten: Whether its value does not matter: if the outcome cannot be told, the
            variable loses it.

    Raises:
        FailedPreconditionError: if the variable is in doubt and the outcome cannot be told.
        CancelledError: if the step is to end.
    """
    lock = state._lock
    if try_to_enter(lock):
        return
    while True:
        doubt = state.doubt
        if doubt is not None:
            doubt.settle(state, is_overwritten)
        step = current_step()
        if step is not None and step.is_stopping:
            raise CancelledError(
                f'the step ends, and waits for the variable "{state.name}" no more'
            )
        if lock.acquire(True, _LOOK_S):
            return


class VariableState:
    """The value of one variable.

    Attributes:
        name: The variable's name.
        value: The buffer; None before it is initialised and while a writer works on it.
        writes: How many writes there were.
        written_in: The number of the run that wrote it last; None where it was no run.
        doubt: The update groups by whose outcome its value is decided; None for none. They hold the
            lock meanwhile.
        undo_log: What it was before the unsettled update groups of the step that keeps it.
        refusal: Why its value is gone, as an error says it; "" where it never had one.
    """

    __slots__ = (
        "_keeper", "_kept", "_kept_run", "_lock", "_lost", "_turn", "dims", "doubt", "name",
        "refusal", "undo_log", "value", "writes", "written_in",
    )  # fmt: skip

    def __init__(self, name: str, dims: Any = None) -> None:
        self.name = name
        self.dims = dims
        self.value: Any = None
        self.writes = 0
        self.written_in: int | None = None
        self._lock = threading.Lock()
        #: Grows when the value is detached, and when it is back: it is odd meanwhile.
        self._turn = 0
        self._lost = False
        #: The step whose update group keeps the value, None for none; it holds the lock meanwhile.
        self._keeper: Step | None = None
        self._kept: Any = None
        self._kept_run: int | None = None
        self.doubt: Doubt | None = None
        self.undo_log: UndoLog | None = None
        self.refusal = ""

    @property
    def rank(self) -> int:
        """The place in the order in which the locks of several variables are taken."""
        return id(self)

    @property
    def is_lost(self) -> bool:
        """Whether it stands for one that had a value, of another shape or dtype."""
        return self._lost and not self.is_initialized

    def take_loss(self) -> None:
        """Counts as one that never had a value."""
        self._lost = False

    @property
    def is_initialized(self) -> bool:
        """Whether it has a value."""
        while True:
            turn = self._turn
            if self.value is not None or turn % 2:
                return True
            if turn == self._turn:
                return False

    @property
    def nbytes(self) -> int:
        """Bytes of its value and of what its unsettled update groups keep; 0 if it has none."""
        doubt = self.doubt
        held = [self.value] if doubt is None else doubt.values_of(self)
        return sum(getattr(v, "nbytes", len(v) if isinstance(v, bytes) else 0) for v in held)

    def read(self) -> Any:
        """Returns the value, on lease: never changed while the caller holds it.

        Raises:
            FailedPreconditionError: if the variable has no value yet, or is in doubt and the
                outcome cannot be told.
        """
        value = self.value
        if value is not None:
            return value
        if not self._is_mine():
            _enter(self)
            try:
                value = self.value
            finally:
                self._lock.release()
        if value is None:
            raise uninitialized([self])
        return value

    def current(self) -> Any:
        """Returns the value where it lies, for a look at it; raises as `read` does."""
        return VariableState.read(self)

    # -- what an update group does to be whole --------------------------------------------------

    def keep(self) -> bool:
        """Keeps the value for `undo`, and others from writing until `settle`.

        Returns whether this step did not do so already.
        """
        if self._is_mine():
            return False
        _enter(self, True)
        self._kept = self.value
        self._kept_run = self.written_in
        self._keeper = current_step()
        return True

    def hold(self, step: Step, log: UndoLog) -> bool:
        """Keeps others from writing until `release`; what it was before, a log of the step keeps.

        Returns whether the step did not do so already.
        """
        if self._is_mine():
            return False
        _enter(self, True)
        self._keeper = step
        self.undo_log = log
        return True

    def release(self) -> None:
        """Lets others write again."""
        self._keeper = self.undo_log = None
        self._lock.release()

    def take_into_doubt(self, doubt: Doubt, log: UndoLog) -> tuple[Any, int | None] | None:
        """Hides the value until `come_out`, and holds the lock.

        Args:
            doubt: What the value depends on.
            log: That of the step that has written it.

        Returns:
            The value, and in which run it was written; None where another step is at work on it.
        """
        if self.undo_log is not log and not try_to_enter(self._lock):
            return None
        self.doubt = doubt
        self._keeper = self.undo_log = None
        self._turn += 1
        value, self.value = self.value, None
        return value, self.written_in

    def come_out(self, value: Any, written_in: int | None, refusal: str = "") -> None:
        """Has a value again, or none, because of what a refusal says."""
        self.value = value
        self.written_in = written_in
        self.refusal = refusal
        self._turn += 1
        self.doubt = None
        self._lock.release()

    def refuse(self, refusal: str) -> None:
        """Loses the value, once nobody is at work on it."""
        _enter(self, True)
        self.value, self.refusal = None, refusal
        self._lock.release()

    def clear(self) -> None:
        """Takes the value away, whatever the outcome of what it is in doubt about."""
        doubt = self.doubt
        if doubt is not None:
            doubt.let_go(self)
        self.drop()

    def settle(self) -> None:
        """Lets go of what was kept."""
        self._kept = None
        self._keeper = None
        self._lock.release()

    def undo(self) -> None:
        """Puts the value back that this step has kept, on the thread that has kept it."""
        is_kept = self._keeper is not None and self.undo_log is None
        if is_kept and self._keeper is current_step():
            self.value = self._kept
            self.written_in = self._kept_run
            self.settle()

    def _is_mine(self) -> bool:
        keeper = self._keeper
        return keeper is not None and keeper.whole.includes(current_step())

    def _is_mine_to_write(self) -> bool:
        if not self._is_mine():
            return False
        if self.undo_log is not None:
            self.undo_log.is_written(self)
        return True

    def check_assign(self, value: Any) -> None:
        """Raises what `assign` would raise for a value; changes nothing."""
        self._check(value)
        buffer = self.value
        nbytes = getattr(value, "nbytes", 0)
        if nbytes >= _LARGE_BYTES and not _fits(buffer, value):
            np.empty(nbytes, np.uint8)

    def check_update(self) -> None:
        """Raises if there is no value, or a large one is read and there is no space for another."""
        buffer = VariableState.read(self)
        # References here: the variable's, `buffer` and getrefcount's argument.
        if getattr(buffer, "nbytes", 0) >= _LARGE_BYTES and sys.getrefcount(buffer) > _SOLE + 1:
            np.empty(buffer.nbytes, np.uint8)

    # -- writing --------------------------------------------------------------------------------

    def assign(self, value: Any) -> Any:
        """Sets the value, copying it; returns the new one.

        Raises:
            InvalidArgumentError: if the value does not have the variable's shape.
        """
        self._check(value)
        is_mine = self._keeper is not None and self._is_mine_to_write()
        if not is_mine:
            _enter(self, True)
        try:
            is_first = self.value is None
            if not is_first:
                self._turn += 1
            buffer, self.value = self.value, None
            try:
                # References here: `buffer` and getrefcount's argument.
                if sys.getrefcount(buffer) <= _SOLE and _fits(buffer, value):
                    buffer[...] = value
                else:
                    buffer = value.copy() if hasattr(value, "copy") else value
            finally:
                self.value = buffer
                if not is_first:
                    self._turn += 1
            self.writes += 1
            step = steps_of_threads.get(current_thread())
            self.written_in = None if step is None else step.number
        finally:
            if not is_mine:
                self._lock.release()
        return buffer

    def adopt(self, value: Any) -> Any:
        """Sets the value to the array itself, without a copy; returns the new value.

        The caller vouches that nobody else holds the array or will change it. One that is a view,
        is read-only or does not lie row by row in memory is copied all the same.

        Raises:
            InvalidArgumentError: if the value does not have the variable's shape.
        """
        if not _is_whole(value):
            return self.assign(value)
        self._check(value)
        is_mine = self._keeper is not None and self._is_mine_to_write()
        if not is_mine:
            _enter(self, True)
        try:
            self.value = value
            self.writes += 1
            step = steps_of_threads.get(current_thread())
            self.written_in = None if step is None else step.number
        finally:
            if not is_mine:
                self._lock.release()
        return value

    def drop(self) -> bool:
        """Takes the value away; returns whether there was one."""
        if self._is_mine():
            return self._dropped()
        _enter(self, True)
        try:
            return self._dropped()
        finally:
            self._lock.release()

    def _dropped(self) -> bool:
        had = self.value is not None
        self.value = None
        self.refusal = ""
        self.writes += had
        return had

    def relocate(self, put: Callable[[Any], Any]) -> None:
        """Takes the value to another device: `put` returns it there, or as it is."""
        if self._is_mine():
            self.value = None if self.value is None else put(self.value)
            return
        _enter(self)
        try:
            if self.value is not None:
                self.value = put(self.value)
        finally:
            self._lock.release()

    def _check(self, value: Any) -> None:
        # A string of rank 0 is a bytes object.
        shape = getattr(value, "shape", ())
        if not compatible(self.dims, shape):
            raise InvalidArgumentError(
                f"expected a value of shape {text(self.dims)}, got {text(shape)}"
            )

    def update(
        self, fresh: Callable[[Any], Any], in_place: Callable[[Any], None], put: Put = None
    ) -> Any:
        """Changes the value atomically; returns the new one.

        Args:
            fresh: Returns a new value for the old one, which it leaves alone.
            in_place: Changes the array that it is given.
            put: Takes the value to the device where it is changed, see `relocate`; None for where
                it lies.

        Raises:
            FailedPreconditionError: if the variable has no value yet.
        """
        is_mine = self._keeper is not None and self._is_mine_to_write()
        if not is_mine:
            _enter(self)
        try:
            if self.value is None:
                raise uninitialized([self])
            if put is not None:
                self.value = put(self.value)
            self._turn += 1
            buffer, self.value = self.value, None
            try:
                if sys.getrefcount(buffer) <= _SOLE and _is_array(buffer):
                    in_place(buffer)
                else:
                    buffer = _in_c_order(fresh(buffer))
            finally:
                self.value = buffer
                self._turn += 1
            self.writes += 1
            step = steps_of_threads.get(current_thread())
            self.written_in = None if step is None else step.number
        finally:
            if not is_mine:
                self._lock.release()
        return buffer

    def change(
        self,
        others: Sequence[VariableState],
        in_place: Callable[..., None],
        put: Put = None,
    ) -> Any:
        """Changes this value and those of other variables in one go; returns the new one.

        All their locks are held meanwhile, so two such changes never mix. A buffer that somebody
        reads is copied, and the copy changed.

        Args:
            others: Further variables, e.g. an optimizer's slots; each of them once.
            in_place: Gets one array per variable, this one's first, and changes them. If it finds
                something wrong it raises before it changes anything.
            put: Takes the values to the device where they are changed; None for where they lie.

        Raises:
            FailedPreconditionError: if variables have no value yet; it names them all.
        """
        states = (self, *others)
        to_lock = [s for s in sorted(states, key=id) if not (s._keeper and s._is_mine_to_write())]
        locks: list[threading.Lock] = []
        taken: list[tuple[Any, Any]] = []
        done = False
        try:
            for s in to_lock:
                _enter(s)
                locks.append(s._lock)
            missing = [s for s in states if s.value is None]
            if missing:
                raise uninitialized(missing)
            if put is not None:
                for s in states:
                    s.value = put(s.value)
            for s in states:
                taken.append(s._take())  # noqa: PERF401 (what was taken so far is given back)
            in_place(*[array for array, _ in taken])
            done = True
        finally:
            step = steps_of_threads.get(current_thread())
            run = None if step is None else step.number
            for s, (array, before) in zip(states, taken, strict=False):
                s._put(array if done else before, before, run if done else s.written_in)
            value = self.value
            for lock in locks:
                lock.release()
        return value

    def _take(self) -> tuple[Any, Any]:
        """Returns an array to write to, and the value before, which may be the same; locked."""
        self._turn += 1
        buffer, self.value = self.value, None
        if sys.getrefcount(buffer) <= _SOLE and _is_array(buffer):
            return buffer, buffer
        try:
            return np.array(buffer) if isinstance(buffer, np.generic) else buffer.copy(), buffer
        except BaseException:
            self._put(buffer, buffer, self.written_in)
            raise

    def _put(self, array: Any, before: Any, run: int | None) -> None:
        """Sets the value to what `_take` returned, a number where it was one; locked."""
        self.value = array[()] if isinstance(before, np.generic) else array
        self._turn += 1
        self.writes += 1
        self.written_in = run


def _fits(buffer: Any, value: Any) -> bool:
    """Whether a value can be copied into a buffer."""
    return (
        type(buffer) is type(value)
        and _is_array(buffer)
        and buffer.shape == value.shape
        and buffer.dtype == value.dtype
        and buffer.device == value.device
    )


def _is_array(value: Any) -> bool:
    """Whether a value is an array, of NumPy or of a device, and no number or string."""
    return isinstance(value, np.ndarray) or hasattr(type(value), "__setitem__")


def _in_c_order(value: Any) -> Any:
    """Returns a value row by row in memory, as `ReadVariableOp` promises: a copy if need be."""
    flags = getattr(value, "flags", None)
    return value if flags is None or flags.c_contiguous else value.copy()


def _is_whole(value: Any) -> bool:
    """Whether it is a scalar, or an array that owns its memory, in order, and may be changed."""
    if not isinstance(value, np.ndarray):
        return isinstance(value, np.generic | bytes)
    flags = value.flags
    return bool(flags.owndata and flags.writeable and flags.c_contiguous)


def _count_of_sole_owner() -> int:
    """The `getrefcount` of a buffer that only the writer's local variable holds."""
    buffer = np.empty(1)
    return sys.getrefcount(buffer)


_SOLE = _count_of_sole_owner()


def uninitialized(states: Sequence[Any]) -> FailedPreconditionError:
    """Returns the error for reading variables that have no value, or none any more."""
    for state in states:
        if getattr(state, "refusal", ""):
            return FailedPreconditionError(state.refusal)
    names = [s.name for s in states]
    listed = ", ".join(f'"{n}"' for n in names)
    some = "variables have" if len(names) > 1 else "variable has"
    return FailedPreconditionError(
        f"attempting to use uninitialized value: the {some} no value yet: {listed}; "
        "run fs.global_variables_initializer() or the variable's initializer first"
    )
