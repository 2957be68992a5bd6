"""Hand-overs of work: kernels and sections that other threads help with."""

from __future__ import annotations

import sys
from typing import Any

from handovers import hand_over, wrong


class _Part:
    """A part of a kernel that counts who runs it."""

    def __init__(self, run: Any, count: int, fails: int = -1) -> None:
        self.run, self.fails = run, fails
        self.seen = [0] * count
        self.inside = 0

    def __call__(self, i: int) -> None:
        self.inside += 1
        self.run.point()
        self.seen[i] += 1
        self.inside -= 1
        if i == self.fails:
            raise ValueError(str(i))


@hand_over("runtime.threads.thread_pool", few=400)
def parts_of_a_kernel(run: Any, m: Any) -> None:
    """Each part is run once, by the time that the kernel has ended."""
    pool = m.ThreadPool(3)
    part = _Part(run, 3)

    def share() -> None:
        pool.parallel_for(3, part)
        assert part.seen == [1, 1, 1], part.seen

    run.together(share)
    pool.stop()


wrong(
    parts_of_a_kernel,
    "the count becomes 0 when the task is closed",
    ("while not self._is_closed and (i", "while (i"),
    ("self._is_closed = True\n            is_left", "self._is_closed, self._count = True, 0\n"
     "            is_left"),
)  # fmt: skip
wrong(
    parts_of_a_kernel,
    "a number that was given out is given back to nobody",
    (
        "            self._run(i)\n",
        "            if not self._is_closed:\n                self._run(i)\n",
    ),
)
wrong(
    parts_of_a_kernel,
    "who shares waits for nobody",
    ("            self._done.wait()\n", "            pass\n"),
)


@hand_over("runtime.threads.thread_pool")
def parts_of_two_kernels(run: Any, m: Any) -> None:
    """Two threads share kernels at the same time, and the pool has not begun yet."""
    pool = m.ThreadPool(2)

    def share() -> None:
        for count in (2, 1, 3):
            part = _Part(run, count)
            pool.parallel_for(count, part)
            assert part.seen == [1] * count, part.seen

    run.together(share, share)
    pool.stop()


@hand_over("runtime.threads.thread_pool")
def parts_of_a_kernel_that_fails(run: Any, m: Any) -> None:
    """The error of a part is raised when nobody is in a part any more, and none begins later."""
    pool = m.ThreadPool(3)
    part = _Part(run, 4, fails=1)

    def share() -> None:
        try:
            pool.parallel_for(4, part)
        except ValueError:
            pass
        else:
            raise AssertionError("no error")
        assert not part.inside
        before = [*part.seen]
        assert max(before) == 1
        run.point()
        assert part.seen == before

    run.together(share)
    pool.stop()


class _Pool:
    """A thread that comes to help with sections, or comes too late."""

    def __init__(self) -> None:
        from queue import SimpleQueue  # that of the schedule, in one

        self._tasks: SimpleQueue[Any] = SimpleQueue()

    def put(self, task: Any) -> None:
        self._tasks.put(task)

    def help(self, count: int = 2) -> None:
        for _ in range(count):
            self._tasks.get().help()


class _Argument:
    """Something that is lent to a section."""


@hand_over("runtime.threads.forks")
def sections_of_a_step(run: Any, m: Any) -> None:
    """Each section is run once, its result is whole, and nobody holds its arguments behind that."""
    pool = _Pool()
    lent = [_Argument() for _ in range(2)]
    free = sys.getrefcount(lent[0])
    seen = [0, 0]

    def compute(i: int, argument: Any) -> tuple[int, int]:
        run.point()
        seen[i] += 1
        run.point()
        return i, i

    def step() -> None:
        tasks = m.ForkTasks(pool)
        forks = [tasks.fork(compute, i, lent[i]) for i in range(2)]
        for i, fork in enumerate(forks):
            assert tasks.join(fork) == (i, i)
            assert sys.getrefcount(lent[i]) == free, "somebody holds an argument"
        tasks.close()
        assert seen == [1, 1], seen

    run.together(step, pool.help)


wrong(
    sections_of_a_step,
    "the result comes before the arguments are let go of",
    ("        del function, arguments  # before the step", "        # before the step"),
)
wrong(
    sections_of_a_step,
    "the claim is looked at, and then taken",
    (
        "        if not self._claim.acquire(blocking=False):\n            return\n",
        "        if self._claim.locked():\n            return\n"
        "        self._claim.acquire(blocking=False)\n",
    ),
)


@hand_over("runtime.threads.forks")
def sections_of_a_step_that_ends(run: Any, m: Any) -> None:
    """A step that fails leaves no section behind that runs, or holds something."""
    pool = _Pool()
    lent = _Argument()
    free = sys.getrefcount(lent)
    inside = [0]

    def fail(argument: Any) -> None:
        inside[0] += 1
        run.point()
        inside[0] -= 1
        raise ValueError("it fails")

    def step() -> None:
        tasks = m.ForkTasks(pool)
        forks = [tasks.fork(fail, lent) for _ in range(2)]
        try:
            tasks.join(forks[0])
        except ValueError:
            tasks.close()
        else:
            raise AssertionError("no error")
        assert not inside[0], "a section runs"
        del forks
        assert sys.getrefcount(lent) == free, "somebody holds an argument"

    run.together(step, pool.help)


wrong(
    sections_of_a_step_that_ends,
    "what has let go of its function counts as ended",
    (
        "        with self._done:\n            pass\n        self._result = self",
        "        if self._function is not None:\n            self._done.acquire()\n"
        "        self._result = self",
    ),
)
