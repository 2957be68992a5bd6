"""Hand-overs inside of sessions and engines: plans, traces, calls of functions, native threads."""

from __future__ import annotations

import weakref
from threading import get_ident
from types import SimpleNamespace
from typing import Any

from handovers import PATIENCE_S, as_step, hand_over, wrong
from handovers_of_values import new_gate, new_step


class _Plan:
    """Something that was planned."""

    def __init__(self, is_stale: bool = False) -> None:
        self.is_stale = is_stale


@hand_over("runtime.planning.plan_cache")
def plans_that_are_kept(run: Any, m: Any) -> None:
    """What was just added or found is kept, while others come and the generations change."""
    cache = m.PlanCache(8, lambda plan: 1)

    def use(name: str) -> None:
        for i in range(3):
            if cache.find((name, i)) is None:
                cache.add((name, i), _Plan())
            assert cache.find((name, i)) is not None, "a plan was lost"

    run.together(lambda: use("a"), lambda: use("b"))
    assert cache.misses == 6


wrong(
    plans_that_are_kept,
    "generations change without the lock",
    (
        "        with self._lock:\n            self.misses += 1\n",
        "        if True:\n            self.misses += 1\n",
    ),
)


@hand_over("runtime.planning.plan_cache")
def plans_that_are_forgotten(run: Any, m: Any) -> None:
    """What is stale is gone when it was forgotten, though somebody has just found it."""
    cache = m.PlanCache(4, lambda plan: 1)
    for i in range(3):
        cache.add(i, _Plan(is_stale=not i % 2))

    def look() -> None:
        for i in range(3):
            cache.find(i)

    run.together(look, look, lambda: cache.forget(lambda plan: plan.is_stale))
    assert not any(plan.is_stale for plan in cache.all()), "a stale plan is kept"
    assert cache.find(1) is not None


wrong(
    plans_that_are_forgotten,
    "what was found is nowhere for a moment",
    (
        "        with self._lock:\n            found = self.get",
        "        if True:\n            found = self.get",
    ),
)


class _Session:
    """What an engine knows of a session."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.attempts = 1
        self.tracers: tuple[Any, ...] = ()


@hand_over("runtime.session.engine", "runtime.trace.tracers", is_real=False)
def sessions_of_an_engine(run: Any, m: Any) -> None:
    """Sessions come and go while others ask for them: no step is counted twice, or not at all."""
    engine, graph = m.Engine(), _Plan()
    kept = [_Session(graph) for _ in range(4)]
    for session in kept[:2]:
        engine.opened(session)

    def come() -> None:
        for session in kept[2:]:
            engine.opened(session)

    def look() -> None:
        before = 0
        for _ in range(2):
            now = engine.steps_on(graph)
            assert before <= now <= 4, (before, now)
            before = now

    run.together(come, lambda: engine.closed(kept[0]), lambda: engine.closed(kept[0]), look)
    assert engine.steps_on(graph) == 4, engine.steps_on(graph)
    assert set(engine.sessions) == set(kept[1:])


wrong(
    sessions_of_an_engine,
    "a session that closes is counted without the lock",
    ("        with self._lock:\n            running", "        if True:\n            running"),
)


@hand_over("runtime.session.engine", "runtime.trace.tracers", is_real=False)
def tracers_of_an_engine(run: Any, m: Any) -> None:
    """A session that opens meanwhile is traced if its engine is, and is not if it is not."""
    engine = m.Engine()
    sessions = [_Session(None) for _ in range(2)]
    stays, ends = object(), object()
    engine.trace(ends)
    run.together(
        lambda: engine.trace(stays),
        lambda: engine.end_trace(ends),
        *[lambda s=s: engine.opened(s) for s in sessions],
    )
    for session in sessions:
        assert session.tracers == (stays,), "a session has other tracers than its engine"


wrong(
    tracers_of_an_engine,
    "a session opens while tracers come",
    (
        "        with self._lock:\n            session.tracers",
        "        if True:\n            session.tracers",
    ),
)


@hand_over("runtime.trace.step_trace")
def waits_of_partitions(run: Any, m: Any) -> None:
    """Partitions of one step note at the same time when they waited: all of it is told."""
    trace = m.StepTrace(SimpleNamespace(back_end="tokens"), 0)
    waits: list[tuple[int, int]] = []

    def wait() -> None:
        for _ in range(2):
            begin = m.clock()
            run.point()
            trace.waited("wait", begin)
            waits.append((begin, m.clock()))

    def help_out() -> None:
        trace.took_part(m.clock())

    run.together(wait, wait, help_out)
    assert len(trace.parts) == 1
    for begin, end in waits:
        assert any(w.begin <= begin <= w.end for w in trace.waits), (begin, end, trace.waits)


wrong(
    waits_of_partitions,
    "the last wait is looked at, and another one is taken out",
    ("        with self._waiting:\n", "        if True:\n"),
)


@hand_over("runtime.trace.stamp_buffers")
def buffers_of_traced_steps(run: Any, m: Any) -> None:
    """No two steps fill the same buffer at the same time."""
    code = m.StampedCode(None, SimpleNamespace(owner=[0], has_loops=False))
    used: set[int] = set()

    def step() -> None:
        for _ in range(2):
            buffer = code.buffer()
            assert id(buffer) not in used, "two steps have one buffer"
            used.add(id(buffer))
            run.point()
            assert not len(buffer)
            used.discard(id(buffer))
            code.take_back(buffer)

    run.together(step, step, step)


wrong(
    buffers_of_traced_steps,
    "a buffer is looked at, and taken then",
    ("            return self._spare.pop()\n", "            found = self._spare[-1]\n"
     "            self._spare.remove(found)\n            return found\n"),
)  # fmt: skip


@hand_over("runtime.threads.host_calls", "runtime.waits.gate")
def functions_that_are_waited_for(run: Any, m: Any) -> None:
    """Each function runs once, and the step goes on when it has returned."""
    gate, threads, seen = new_gate(), m.HostThreads(), [0, 0]

    def function(i: int) -> int:
        run.point()
        seen[i] += 1
        return i

    def step(i: int) -> None:
        with as_step(new_step(gate)):
            assert m.call_and_wait(gate, threads, lambda: function(i)) == i

    run.together(lambda: step(0), lambda: step(1))
    assert seen == [1, 1]
    threads.stop()


wrong(
    functions_that_are_waited_for,
    "a wake at the gate is lost",
    ("            self.is_done = True\n            wake =", "            wake ="),
    ("        if wake is not None:\n            wake()\n\n\nclass", "        if wake is not None:\n"
     "            wake()\n        self.is_done = True\n\n\nclass"),
)  # fmt: skip


@hand_over("runtime.threads.host_calls")
def functions_that_tell(run: Any, m: Any) -> None:
    """A callback for the result of a function is called once, however early or late it is set."""
    threads, told, has_come = m.HostThreads(), [], m.threading.Event()

    def finish(result: int) -> None:
        told.append(result)
        has_come.set()

    def start() -> None:
        call = m.HostCall(lambda: 5, threads)
        run.point()
        call.tell(finish)
        has_come.wait()

    run.together(start)
    threads.stop()
    assert told == [5], told


wrong(
    functions_that_tell,
    "whether it is done is asked before it is told whom to tell",
    ("            is_done = self.is_done\n        if is_done:", "        if is_done:"),
    ("        with self._guard:\n            self._wake = wake\n",
     "        is_done = self.is_done\n        with self._guard:\n            self._wake = wake\n"),
)  # fmt: skip


@hand_over("runtime.threads.host_calls", is_real=False)
def functions_that_are_left_alone(run: Any, m: Any) -> None:
    """One that is given up gets the exception in itself, or never begins; no other call gets it."""
    threads, inside, raised = m.HostThreads(), {}, []

    def raise_in(thread: int) -> None:
        assert inside.get(thread) == "first", "the exception comes to another call"
        raised.append(thread)

    class Call(m.HostCall):  # type: ignore[misc, name-defined]
        def run(self) -> None:
            inside[get_ident()] = self._function()
            try:
                super().run()
            finally:
                del inside[get_ident()]

    def give_up() -> None:
        call = Call(lambda: "first", threads)
        run.point()
        call.leave_alone()
        call.wait(PATIENCE_S)

    def other() -> None:
        assert Call(lambda: "second", threads).wait(PATIENCE_S) is None

    original, m._raise_in = m._raise_in, raise_in
    try:
        run.together(give_up, other, other)
        threads.stop()
    finally:
        m._raise_in = original


wrong(
    functions_that_are_left_alone,
    "the exception is raised behind the guard",
    (
        "            self._is_left = True\n            if self._thread is not None:\n"
        "                _raise_in(self._thread)\n",
        "            self._is_left = True\n            thread = self._thread\n"
        "        if thread is not None:\n            _raise_in(thread)\n",
    ),
)


@hand_over("runtime.threads.matrix_products")
def native_threads_that_are_made_ready(run: Any, m: Any) -> None:
    """Native code is compiled once, though several steps find that it pays."""
    products, made = m.MatrixProducts(), []

    def compiled() -> None:
        made.append(1)
        products._state = "absent"

    products.compile = compiled

    def multiply() -> None:
        for _ in range(3):
            assert products.calls(None, None, 2) == -1

    run.together(multiply, multiply)
    products.stop()
    assert len(made) <= 1, "it was compiled twice"


wrong(
    native_threads_that_are_made_ready,
    "whether it was asked for is looked at, and then noted",
    (" and self._claim.acquire(blocking=False)", ""),
)


class _Native:
    """The native side of a pool: a helper that is late, and may be in a job of before."""

    pauses_per_second = 1.0

    def __init__(self, run: Any) -> None:
        self.run = run
        self.inside: Any = None

    def product(self, address: int, recipe: int, a: Any, b: Any, out: Any, helpers: int) -> int:
        self.run.point()
        if self.inside is not None:
            return -1
        self.inside = mine = weakref.ref(out)
        self.run.point()
        return int(self.inside is mine)

    def late(self, address: int, patience: int) -> int:
        self.run.point()
        is_inside = self.inside is not None
        self.run.point()
        return int(is_inside)

    def leave(self) -> None:
        inside = self.inside
        if inside is not None:
            assert inside() is not None, "a helper writes to memory that was freed"
            self.inside = None


@hand_over("runtime.threads.native_pool", few=1000)
def arrays_that_helpers_are_late_with(run: Any, m: Any) -> None:
    """The arrays of a job live until no helper is in it any more."""
    native = _Native(run)
    pool = m.NativePool.__new__(m.NativePool)
    pool._code = native
    pool._helpers = SimpleNamespace(threads=[0], address=0)
    pool._lent = {object(): ()}

    def multiply() -> None:
        for _ in range(2):
            out = _Plan()
            pool.run((None, 0), None, None, out, 1)
            del out
            pool.settle()

    def leave() -> None:
        for _ in range(6):
            run.point()
            native.leave()

    run.together(multiply, multiply, multiply, leave)
    native.leave()
    pool.settle()
    assert not pool._lent, "arrays are kept for nobody"


wrong(
    arrays_that_helpers_are_late_with,
    "a job that went well lets go of all others",
    ("            self._let_go(lent)  #", "            self._lent.clear()  #"),
)
wrong(
    arrays_that_helpers_are_late_with,
    "the look at helpers lets go of what came behind it",
    (
        "        lent = [*self._lent]\n        if lent and not",
        "        if self._lent and not",
    ),
    (
        "self._helpers.address, 0):\n            self._let_go(lent)",
        "self._helpers.address, 0):\n            self._lent.clear()",
    ),
)
