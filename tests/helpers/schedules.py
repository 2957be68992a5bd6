"""A scheduler of threads: it runs one at a time and changes between any two bytecodes.

    def scenario(run, module):
        box = module.Mailbox("a")
        run.together(lambda: box.send(1), lambda: box.receive(gate))

    explore(scenario, module, count=1000)

A scenario runs on a thread of its own and starts others with `run.together`; each is a real thread,
and all but one wait. In the code of the module under test a tracing function is called before each
bytecode (`frame.f_trace_opcodes`), and there the scheduler may let another thread go on. Locks,
events, queues, clocks and threads of the module under test are replaced by those of
`scheduled_locks`, so it knows who waits, and finds a deadlock. Its clock stands still while a
thread can run: a wait that only its timeout has ended is a *stall*, for a wake was lost.

All that it decides follows from a seed; a failure names the seed, and tells the changes of threads.
Half of the seeds walk at random. The other half give threads priorities, and lower that of the
running thread at a few bytecodes: a defect that needs `d` changes at certain ones of `k` bytecodes
of `n` threads is met with a chance of 1 / (n k^(d-1)) at least.

Source: Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with Probabilistic
Guarantees of Finding Bugs, 2010 (the priorities).
"""

from __future__ import annotations

import _thread
import gc
import inspect
import random
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

#: For so long nothing happens where a thread waits for something that the scheduler does not know.
STUCK_S = 120.0
#: More bytecodes than any scenario needs.
_ENDLESS = 300_000
#: A bytecode takes so long by the schedule's clock.
_BYTECODE_S = 1e-7
#: Behind so many schedules garbage is collected.
_COLLECTED = 1000
#: So many changes of threads are told of a schedule that fails: the last ones.
_TOLD = 40

Scenario = Callable[["Schedule", Any], None]


class Deadlock(AssertionError):
    """Nobody can go on."""


class Stalled(AssertionError):
    """Somebody went on only because the time of a wait was over."""


class Abandoned(BaseException):
    """Ends a thread whose schedule is over."""


class Task:
    """One thread of a schedule.

    Attributes:
        name: What it is called.
        is_daemon: Whether the schedule may end before it.
        has_ended: Whether it has.
        can_go: Whether what it waits for has come; None while it waits for nothing.
        due: When its wait ends anyway, by the schedule's clock; None for never.
        sleeps: Whether its wait is for that time.
        place: Where it stands, as the code and the line.
    """

    def __init__(self, name: str, function: Callable[[], Any], is_daemon: bool) -> None:
        self.name = name
        self.function = function
        self.is_daemon = is_daemon
        self.has_ended = False
        self.can_go: Callable[[], bool] | None = None
        self.waits_for = ""
        self.due: float | None = None
        self.sleeps = False
        self.place: tuple[Any, int] | None = None
        self.worker: _Worker | None = None

    def __str__(self) -> str:
        where = "" if self.place is None else f" at {_text(self.place)}"
        return f"{self.name}{where}" + (f" waits for {self.waits_for}" if self.can_go else "")


class Schedule:
    """Runs the threads of one scenario, one at a time.

    Args:
        seed: What is decided follows from it.
        chosen: The ids of the code in which threads may change at every bytecode.
        length: About how many bytecodes the scenario has; 0 for no change that need not be.

    Attributes:
        steps: Bytecodes so far.
        stalls: The waits that nothing but their timeouts has ended, as text.
        may_stall: Whether there may be some.
    """

    def __init__(self, seed: int, chosen: set[int], length: int) -> None:
        self.steps = 0
        self.stalls: list[str] = []
        self.may_stall = False
        self._random = random.Random(seed)
        self._chosen = chosen
        self._now = 0.0
        self._tasks: list[Task] = []
        self._current: Task | None = None
        self._changes: list[tuple[Task, Any, Task]] = []
        self._is_over = False
        self._error: BaseException | None = None
        self._finished = _thread.allocate_lock()
        self._finished.acquire()
        self._strategy = (_Priorities, _Walk)[seed % 2](self._random, length)
        self._switch_at = self._strategy.next_switch(0)
        self._each, self._call = self._tracing_functions()

    # -- what scenarios use ---------------------------------------------------------------------

    def together(self, *functions: Callable[[], Any]) -> None:
        """Runs functions on a thread each; returns when all have ended."""
        for task in [self.start(f, getattr(f, "__name__", "thread")) for f in functions]:
            self.join(task)

    def point(self) -> None:
        """Lets another thread go on, perhaps."""
        self.steps += 1
        if self.steps >= self._switch_at:
            self._switch(sys._getframe(1))

    # -- what locks, clocks and threads use -----------------------------------------------------

    @property
    def now(self) -> float:
        """The schedule's clock, in seconds."""
        return self._now + self.steps * _BYTECODE_S

    @property
    def current(self) -> Task:
        """The task that runs."""
        assert self._current is not None
        return self._current

    def start(self, function: Callable[[], Any], name: str, is_daemon: bool = False) -> Task:
        """Starts a thread."""
        task = Task(f"{name}-{len(self._tasks)}", function, is_daemon)
        self._tasks.append(task)
        self._strategy.add(task)
        return task

    def join(self, task: Task, seconds: float | None = None) -> None:
        """Waits for the end of a thread."""
        if not task.has_ended:
            self.wait(lambda: task.has_ended, seconds, f"the end of {task.name}")

    def wait(self, can_go: Callable[[], bool], seconds: float | None, what: str) -> bool:
        """Has the running thread wait; returns whether what it waits for has come."""
        if self._is_over:
            raise Abandoned
        task = self.current
        task.can_go, task.waits_for, task.place = can_go, what, self._traced_place()
        task.due = None if seconds is None else self.now + seconds
        try:
            self._change()
            return can_go()
        finally:
            task.can_go = task.due = None

    def sleep(self, seconds: float) -> None:
        """Has the running thread sleep, behind all others."""
        self._strategy.lower(self.current)
        self.current.sleeps = True
        try:
            self.wait(lambda: False, max(seconds, _BYTECODE_S), "time")
        finally:
            self.current.sleeps = False

    # -- inside ---------------------------------------------------------------------------------

    def _tracing_functions(self) -> tuple[Any, Any]:
        chosen = self._chosen

        def each(frame: Any, event: str, argument: Any) -> Any:
            if event == "opcode":
                self.steps += 1
                if self.steps >= self._switch_at:
                    self._switch(frame)
            return each

        def call(frame: Any, event: str, argument: Any) -> Any:
            if id(frame.f_code) not in chosen:
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            return each

        return each, call

    def _switch(self, frame: Any) -> None:
        if self._is_over:
            return  # it runs to its end
        if self.steps > _ENDLESS:
            self._end(Deadlock("the scenario does not end"))
            raise Abandoned
        self.current.place = frame.f_code, frame.f_lineno
        self._strategy.lower(self.current)
        self._switch_at = self._strategy.next_switch(self.steps)
        self._change()

    def _traced_place(self) -> tuple[Any, int] | None:
        frame = sys._getframe(2)
        while frame is not None and id(frame.f_code) not in self._chosen:
            frame = frame.f_back
        return None if frame is None else (frame.f_code, frame.f_lineno)

    def _change(self) -> None:
        """Lets the thread go on that is to; returns when this one is to go on again."""
        me = self.current
        task = self._next()
        if task is not me:
            self._hand_to(task)
            if me.has_ended:
                return
            assert me.worker is not None
            me.worker.sleep()
        if self._is_over and not me.has_ended:
            raise Abandoned

    def _next(self) -> Task | None:
        """Returns who goes on; None for nobody."""
        live = [t for t in self._tasks if not t.has_ended]
        if not self._is_over:
            self._let_time_pass(live)
        while not self._is_over:
            now = self.now
            able = [
                t
                for t in live
                if t.can_go is None or t.can_go() or (t.due is not None and t.due <= now)
            ]
            if able:
                return self._strategy.choose(able)
            if all(t.is_daemon for t in live):
                self._is_over = True  # helpers wait for more, and nothing comes
                break
            timed = [t for t in live if t.due is not None]
            if not timed:
                self._end(Deadlock("nobody can go on: " + "; ".join(map(str, live))))
                break
            late = min(timed, key=lambda t: t.due or 0.0)
            if not late.sleeps:
                self.stalls.append(str(late))
            self._pass_to(late.due or 0.0)
        return live[0] if live else None

    def _let_time_pass(self, live: Sequence[Task]) -> None:
        """Lets a wait run out of time now and then, though others could go on."""
        timed = [t for t in live if t.due is not None]
        if timed and self._random.random() < 0.05:
            self._pass_to(self._random.choice(timed).due or 0.0)

    def _pass_to(self, due: float) -> None:
        self._now = max(self._now, due - self.steps * _BYTECODE_S + 1e-12)

    def _hand_to(self, task: Task | None) -> None:
        before, self._current = self._current, task
        if task is None:
            self._finished.release()
            return
        if before is not None:
            self._changes.append((before, before.place, task))
        if task.worker is None:
            task.worker = _idle.pop() if _idle else _Worker()
            task.worker.begin(self, task)
        else:
            task.worker.wake()

    def _end(self, error: BaseException) -> None:
        """Ends all threads; the first error counts."""
        if not self._is_over:
            self._error = error
        self._is_over = True

    def run_task(self, task: Task) -> None:
        """Runs one thread to its end, on the calling one; lets others go on then."""
        sys.settrace(self._call)
        try:
            if not self._is_over:
                task.function()
        except Abandoned:
            pass
        except BaseException as e:
            self._end(e)
        finally:
            sys.settrace(None)
        task.has_ended = True
        assert task.worker is not None
        _idle.append(task.worker)
        self._change()

    def run(self, scenario: Callable[[], None]) -> None:
        """Runs a scenario to its end, from a thread of which the scheduler knows nothing.

        Raises: what the first thread that has failed has raised.
        """
        self._hand_to(self.start(scenario, "scenario"))
        if not self._finished.acquire(True, STUCK_S):
            where = "; ".join(str(t) for t in self._tasks if not t.has_ended)
            raise RuntimeError(f"a thread waits for what the scheduler does not know: {where}")
        if self._error is not None:
            raise self._error
        if self.stalls and not self.may_stall:
            raise Stalled(f"nothing but a timeout has ended the wait of {self.stalls[0]}")

    def told(self) -> str:
        """Returns the changes of threads, one a line."""
        lines = [
            f"  {before.name} stops at {_text(place)}, {after.name} goes on"
            for before, place, after in self._changes[-_TOLD:]
        ]
        return "\n".join(lines)


def _text(place: tuple[Any, int] | None) -> str:
    return "its end" if place is None else f"{place[0].co_qualname}:{place[1]}"


class _Walk:
    """Changes threads at random, seldom or often."""

    def __init__(self, source: random.Random, length: int) -> None:
        self._random = source
        self._chance = source.choice((0.3, 0.1, 0.03, 3 / max(30, length)))

    def add(self, task: Task) -> None:
        pass

    def next_switch(self, steps: int) -> int:
        return steps + 1 + int(self._random.expovariate(self._chance))

    def lower(self, task: Task) -> None:
        pass

    def choose(self, able: Sequence[Task]) -> Task:
        return self._random.choice(able)


class _Priorities:
    """Runs the thread of the highest priority, and lowers it at a few bytecodes."""

    def __init__(self, source: random.Random, length: int) -> None:
        self._random = source
        self._priority: dict[Task, float] = {}
        self._lowest = 0.0
        changes = source.choice((1, 2, 2, 3)) if length else 0
        self._at = sorted([source.randrange(1, length + 1) for _ in range(changes)])

    def add(self, task: Task) -> None:
        self._priority[task] = self._random.random()

    def next_switch(self, steps: int) -> int:
        while self._at and self._at[0] <= steps:
            self._at.pop(0)
        return self._at[0] if self._at else steps + 20_000  # a loop that waits must end

    def lower(self, task: Task) -> None:
        self._lowest -= 1.0
        self._priority[task] = self._lowest

    def choose(self, able: Sequence[Task]) -> Task:
        return max(able, key=self._priority.__getitem__)


class _Worker:
    """A thread of the system's that runs threads of schedules, one after the other."""

    def __init__(self) -> None:
        self._go = _thread.allocate_lock()
        self._go.acquire()
        self._job: tuple[Schedule, Task] | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def begin(self, schedule: Schedule, task: Task) -> None:
        self._job = schedule, task
        self.wake()

    def wake(self) -> None:
        self._go.release()

    def sleep(self) -> None:
        self._go.acquire()

    def end(self) -> None:
        self._job = None
        self.wake()
        self._thread.join()

    def _work(self) -> None:
        me = _thread.get_ident()
        while True:
            self._go.acquire()
            job, self._job = self._job, None
            if job is None:
                break
            _schedules[me] = job[0]
            job[0].run_task(job[1])
            del job
        _schedules.pop(me, None)


#: Workers that run nothing now.
_idle: list[_Worker] = []
#: What runs, by the threads of workers.
_schedules: dict[int, Schedule] = {}


def schedule_here() -> Schedule | None:
    """Returns the schedule that runs the calling thread; None for none."""
    return _schedules.get(_thread.get_ident())


def code_of(thing: Any) -> Iterator[types.CodeType]:
    """Yields the code of a module, a class or a function, with what is defined in it."""
    if isinstance(thing, types.CodeType):
        yield thing
        for constant in thing.co_consts:
            if isinstance(constant, types.CodeType):
                yield from code_of(constant)
    elif isinstance(thing, types.ModuleType):
        for value in list(vars(thing).values()):
            if getattr(value, "__module__", None) == thing.__name__:
                yield from code_of(value)
    elif isinstance(thing, type):
        for value in list(vars(thing).values()):
            yield from code_of(value)
    elif isinstance(thing, property):
        yield from code_of(thing.fget)
    elif isinstance(thing, staticmethod | classmethod):
        yield from code_of(thing.__func__)
    elif inspect.isfunction(thing):
        yield from code_of(inspect.unwrap(thing).__code__)


def explore(
    scenario: Scenario, module: Any, count: int, first: int = 0, chosen: Sequence[Any] = ()
) -> None:
    """Runs a scenario under many schedules.

    Args:
        scenario: Is given the schedule and the module.
        module: The module under test.
        count: How many schedules.
        first: The seed of the first one.
        chosen: More code than the module's in which threads may change at every bytecode.

    Raises:
        AssertionError: about the first schedule that fails; it names its seed.
    """
    from scheduled_locks import replaced

    codes = [code for thing in (module, *chosen) for code in code_of(thing)]
    ids = {id(code) for code in codes}
    is_collecting = gc.isenabled()
    gc.disable()  # it would run finalizers at bytecodes that no seed tells
    with replaced(module, *[c for c in chosen if isinstance(c, types.ModuleType)]):
        try:
            pilot = Schedule(0, ids, 0)
            _try(scenario, module, pilot, 0)
            for seed in range(first, first + count):
                _try(scenario, module, Schedule(seed, ids, pilot.steps), seed)
                if not seed % _COLLECTED:
                    gc.collect()
        finally:
            while _idle:
                _idle.pop().end()
            if is_collecting:
                gc.enable()


def _try(scenario: Scenario, module: Any, schedule: Schedule, seed: int) -> None:
    try:
        schedule.run(lambda: scenario(schedule, module))
    except Exception as error:
        raise AssertionError(
            f"{scenario.__name__}, seed {seed}: {type(error).__name__}: {error}\n{schedule.told()}"
        ) from error
