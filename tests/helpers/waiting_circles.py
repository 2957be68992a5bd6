"""Random programs of several queues and steps, of which some deadlock by construction.

    python tests/helpers/waiting_circles.py 1000 --seed 7 --seconds 300

prints how many steps that met their deadlines were told as waiting in a circle, of those that do
and of those that do not. What a program does is worked out from all orders in which its steps can
run.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from collections import Counter
from typing import Any, NamedTuple

import flowscope as fs
from flowscope.errors import CancelledError, DeadlineExceededError, GraphError
from flowscope.runtime.session.engine import Engine
from flowscope.runtime.step.step import deadline_after

#: What an error says of a circle, with and without threads that could end it.
TOLD = ("nobody can go on", "these wait for each other")
#: Waits that stay the same so long are thought to stay.
QUIET_S = 0.1


class Program(NamedTuple):
    """Some queues and steps.

    Attributes:
        capacities: Of the queues.
        filled: How many elements each has at first.
        steps: Per step its operations in order: the number of a queue, and True to put one in.
        slow: The steps that compute until they are stopped before their last operation.
        teller: The step that gets a deadline when all others wait or compute.
        mode: The mode of the sessions.
        sessions: How many sessions the steps are spread over.
    """

    capacities: tuple[int, ...]
    filled: tuple[int, ...]
    steps: tuple[tuple[tuple[int, bool], ...], ...]
    slow: frozenset[int]
    teller: int
    mode: str
    sessions: int


def random_program(rng: random.Random) -> Program:
    """A program of two to four queues and as many steps, each with one to four operations."""
    queues, steps = rng.randint(2, 4), rng.randint(2, 4)
    capacities = [rng.randint(1, 2) for _ in range(queues)]
    made = [
        tuple((rng.randrange(queues), rng.random() < 0.5) for _ in range(rng.randint(1, 4)))
        for _ in range(steps)
    ]
    return Program(
        tuple(capacities),
        tuple(rng.randint(0, c) for c in capacities),
        tuple(made),
        frozenset(i for i in range(steps) if rng.random() < 0.25),
        rng.randrange(steps),
        rng.choice(["compiled", "tokens"]),
        rng.randint(1, 2),
    )


State = tuple[tuple[int, ...], tuple[int, ...]]


def following(program: Program, state: State, frozen: frozenset[int]) -> list[State]:
    """Where steps and queues may be next; those that are frozen do not do their last operation."""
    found, (at, sizes) = [], state
    for i, operations in enumerate(program.steps):
        if at[i] >= len(operations) - (i in frozen):
            continue
        queue, puts = operations[at[i]]
        size = sizes[queue] + (1 if puts else -1)
        if 0 <= size <= program.capacities[queue]:
            moved = tuple(a + (j == i) for j, a in enumerate(at))
            found.append((moved, tuple(size if j == queue else s for j, s in enumerate(sizes))))
    return found


def reached(program: Program, begin: State, frozen: frozenset[int] = frozenset()) -> set[State]:
    """All that may come of a state."""
    seen, todo = set(), [begin]
    while todo:
        state = todo.pop()
        if state not in seen:
            seen.add(state)
            todo += following(program, state, frozen)
    return seen


def waits_in_circle(program: Program, at: tuple[int, ...]) -> bool:
    """True if the teller waits for a step that waits ... for one of these; none is slow."""
    held = {
        i
        for i, operations in enumerate(program.steps)
        if at[i] < len(operations) - (i in program.slow)
    }

    def behind(begin: int) -> set[int]:
        seen: set[int] = set()
        todo = [begin]
        while todo:
            i = todo.pop()
            queue, puts = program.steps[i][at[i]]
            new = {j for j in held if (queue, not puts) in program.steps[j]} - seen
            seen |= new
            todo += new
        return seen

    if program.teller not in held:
        return False
    return any(i in behind(i) for i in {program.teller} | behind(program.teller))


def expected(program: Program) -> str:
    """Returns "never", "always" or "perhaps": whether the teller waits in or for a circle.

    When it tells, slow steps still compute, and all others have come as far as they can.
    """
    begin = (0,) * len(program.steps), program.filled
    found = set()
    for state in reached(program, begin, program.slow):
        if following(program, state, program.slow):
            continue
        place = state[0][program.teller]
        may_go_on = any(at[program.teller] > place for at, _ in reached(program, state))
        found.add(not may_go_on and waits_in_circle(program, state[0]))
    return {(True,): "always", (False,): "never"}.get(tuple(found), "perhaps")


def run(program: Program) -> str:
    """Runs it; returns what the teller's error says, "" where it met no deadline."""
    with Engine().as_default(), fs.Graph().as_default():
        with fs.container("shared"):
            queues = [fs.FIFOQueue(c, [fs.float32], [[]]) for c in program.capacities]
        fills = [
            q.enqueue(0.0) for q, n in zip(queues, program.filled, strict=True) for _ in range(n)
        ]
        lasts = [
            _chain(queues, operations, is_slow=i in program.slow)
            for i, operations in enumerate(program.steps)
        ]
        config = fs.ConfigProto(mode=program.mode)
        sessions = [fs.Session(config=config) for _ in range(program.sessions)]
    for fill in fills:
        sessions[0].run(fill)
    told: dict[int, str] = {}

    def step(i: int) -> None:
        try:
            sessions[i % len(sessions)].run(lasts[i])
        except (DeadlineExceededError, CancelledError, GraphError) as error:
            told[i] = error.message

    threads = [threading.Thread(target=step, args=(i,)) for i in range(len(lasts))]
    for thread in threads:
        thread.start()
    settle(sessions)
    teller = threads[program.teller]
    for session in sessions:
        for one in session.gate.inside:
            if one.thread == teller.ident:
                end_now(one)
    teller.join()
    for session in sessions:
        session.close()
    for thread in threads:
        thread.join()
    return told.get(program.teller, "")


def settle(sessions: list[fs.Session]) -> None:
    """Waits until steps have begun and their waits stay the same for a while."""
    seen, since = None, time.monotonic()
    while time.monotonic() < since + QUIET_S:
        waits = {
            step: step.awaits and tuple(step.awaits.awaited())
            for session in sessions
            for step in session.gate.inside
        }
        if waits != seen:
            seen, since = waits, time.monotonic()
        time.sleep(QUIET_S / 20)


def end_now(step: Any) -> None:
    """Has the deadline of a step come."""
    step.gate.limit(step, deadline_after(1))
    step.gate.wake()


def _chain(queues: list[Any], operations: tuple[tuple[int, bool], ...], is_slow: bool) -> Any:
    last = fs.no_op()
    for number, (queue, puts) in enumerate(operations):
        if is_slow and number == len(operations) - 1:
            with fs.control_dependencies([last]):
                zero = fs.identity(0)
            last = fs.while_loop(lambda i: i < 10**8, lambda i: i + 1, [zero]).op
        with fs.control_dependencies([last]):
            last = queues[queue].enqueue(1.0) if puts else queues[queue].dequeue().op
    return last


def tally(count: int, seed: int, seconds: float) -> Counter[tuple[str, bool]]:
    """Returns how often circles were told or not, by what is expected of a program."""
    rng, end = random.Random(seed), time.monotonic() + seconds
    found: Counter[tuple[str, bool]] = Counter()
    for _ in range(count):
        if time.monotonic() > end:
            break
        program = random_program(rng)
        told = run(program)
        is_told = any(text in told for text in TOLD)
        kind = expected(program)
        found[kind, is_told] += 1
        if (kind, is_told) in {("never", True), ("always", False)}:
            print(kind, program, told, flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=300.0)
    given = parser.parse_args()
    for (kind, is_told), times in sorted(tally(given.count, given.seed, given.seconds).items()):
        print(f"circle {kind}: {'told' if is_told else 'not told'} {times}")
