"""Hand-overs at the gate: requests of one thread, and the steps of others that meet them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from handovers import as_step, hand_over, wrong
from handovers_of_values import new_step

from flowscope.errors import CancelledError
from flowscope.graph.current_step import steps_of_threads


def _run_step(run: Any, gate: Any, points: int = 3, breaks_at: int | None = None) -> str:
    """Runs a step of some safepoints, as a session does; returns how it has ended."""
    step = new_step(gate)
    with as_step(step):
        try:
            for point in range(points):
                run.point()
                if gate.raised or point == breaks_at:
                    gate.hold(point, _here(point == breaks_at))
            run.point()
            return "ended"
        except CancelledError:
            return "stopped"
        finally:
            step.has_ended = True
            run.point()
            if gate.raised:
                gate.left(step)


def _here(is_breakpoint: bool) -> Any:
    """Returns a safepoint of an operation."""
    where = SimpleNamespace(loops=[])
    return SimpleNamespace(is_breakpoint=is_breakpoint, is_op=True, where=lambda: where, node=None)


@hand_over("runtime.waits.gate")
def steps_that_are_paused(run: Any, m: Any) -> None:
    """Steps that are paused go on when that ends, and the flag is down when nobody wants it."""
    gate = m.Gate()

    def pause() -> None:
        for request in ("pause", "resume"):
            gate.request(request)
            run.point()

    ends: list[str] = []
    run.together(*[lambda: ends.append(_run_step(run, gate))] * 2, pause, pause)
    assert ends == ["ended"] * 2
    assert gate.state == "open" and not gate.raised and not gate.inside


wrong(
    steps_that_are_paused,
    "a pause ends without a word",
    (
        "            self._requests.append(request)\n            self._drain()\n"
        "            self._changed.notify_all()\n        self._tell_follower(request)\n",
        "            self._requests.append(request)\n            self._drain()\n"
        "        self._tell_follower(request)\n",
    ),
)
wrong(
    steps_that_are_paused,
    "requests are carried out without the lock",
    (
        "        with self._lock:\n            self._requests.append(request)\n"
        "            self._drain()\n            self._changed.notify_all()\n",
        "        self._requests.append(request)\n        self._drain()\n        with self._lock:\n"
        "            self._changed.notify_all()\n",
    ),
)


@hand_over("runtime.waits.gate")
def a_pause_that_holds(run: Any, m: Any) -> None:
    """A step that begins while the gate is closed stands still until it is open."""
    gate = m.Gate()
    gate.request("pause")
    log: list[str] = []

    def step() -> None:
        _run_step(run, gate)
        log.append("ended")

    def resume() -> None:
        while not gate.wait_until_held(1e6):
            pass
        assert gate.state == "paused" and not log
        log.append("resumed")
        gate.request("resume")

    run.together(step, resume)
    assert log == ["resumed", "ended"]


@hand_over("runtime.waits.gate")
def a_breakpoint_beside_a_held_step(run: Any, m: Any) -> None:
    """Whoever waits for a held step finds the one that has met a breakpoint, beside others."""
    gate = m.Gate()
    gate.request("pause")

    def debug() -> None:
        while not gate.wait_until_held(1e6, 2):
            pass
        gate.request("resume")
        run.point()
        while not gate.wait_until_held(1e6):
            pass
        assert any(s.here is not None and s.here.is_breakpoint for s in gate.held_steps())
        gate.request("resume")

    run.together(lambda: _run_step(run, gate), lambda: _run_step(run, gate, 3, 1), debug)
    assert gate.state == "open" and not gate.raised and not gate.inside


wrong(
    a_breakpoint_beside_a_held_step,
    "one that has met a breakpoint is not waited for",
    ("            return enough and not any(step.is_arriving for step in self.inside)\n",
     "            return enough\n"),
)  # fmt: skip


@hand_over("runtime.waits.gate")
def a_stop_that_is_met_once(run: Any, m: Any) -> None:
    """A stop ends the step that is inside when it comes, or the next one, and no other."""
    gate = m.Gate()
    ends: list[str] = []

    def steps() -> None:
        ends.extend(_run_step(run, gate, 2) for _ in range(2))

    run.together(steps, lambda: gate.request("stop"))
    ends.extend(_run_step(run, gate, 1) for _ in range(2))
    assert ends.count("stopped") == 1 and ends[-1] == "ended", ends
    assert gate.state == "open" and not gate.raised


wrong(
    a_stop_that_is_met_once,
    "a stop that all have missed is forgotten",
    ("            self._forget_moves(step)\n", "            self._forget_moves(step)\n"
     "            self._is_met = True\n"),
)  # fmt: skip


@hand_over("runtime.waits.gate")
def waits_that_others_end(run: Any, m: Any) -> None:
    """Whoever waits at the gate goes on when it was woken, however early the wake has come."""
    gate, done = m.Gate(), [False, False]

    def wait() -> None:
        step = new_step(gate)
        with as_step(step):
            gate.wait(lambda: all(done))

    def finish(i: int) -> None:
        done[i] = True
        gate.wake()

    run.together(wait, wait, lambda: finish(0), lambda: finish(1))


wrong(
    waits_that_others_end,
    "what is waited for is looked at without the lock",
    (
        "            with self._lock:\n                if is_done():\n                    return\n",
        "            if is_done():\n                return\n            with self._lock:\n",
    ),
)


@hand_over("runtime.waits.gate")
def looks_at_steps(run: Any, m: Any) -> None:
    """A look is answered by every step that goes on, and leaves the flag down."""
    gate = m.Gate()

    def look() -> None:
        gate.look()
        run.point()
        while gate.is_looking:
            gate.look(1e6)

    run.together(lambda: _run_step(run, gate), lambda: _run_step(run, gate), look)
    assert not gate.raised and gate.state == "open"
    assert not any(step.gate is gate for step in steps_of_threads.values())
