"""Native threads that take blocks of matrix products, without the interpreter's lock.

A thread of Python needs the interpreter's lock before it can call BLAS, and gets it too late for a
product of a tenth of a millisecond. So a few lines are compiled, by llvmlite, that helper threads
enter once: they look for a job, take its blocks, and sleep when there was none for a while. Where
llvmlite is not installed there is no such pool.

One job runs at a time: who finds the pool at work does its product alone. `word` holds the job's
number and which blocks nobody has begun, `first` to `last`. The caller takes the first one, helpers
take the last one, each by one compare-and-swap. A block that a helper is in the middle of is waited
for as long as such a block takes, no longer: the helper's processor may have gone to somebody else.
Then the caller is told which block is late and computes it in other memory. The helper writes to
memory that nobody reads, and the pool refuses jobs until it has left; the arrays stay referenced
for so long.

Each block is computed once, or once more in other memory. A block is taken by the compare-and-swap
that makes `word` name one block less, so by one thread; it fails for whoever has looked before
another thread's, or at another job. A helper writes down the block before it takes it, and wipes
that out when it has computed it: who finds no block left, and then no helper inside, knows that all
are computed. A job begins only where no block was left of the one before and no helper is inside,
so no helper reads the places of two jobs. A helper that falls asleep says so and then looks for a
job; a caller says that there is a job and then looks who sleeps. The code as it stands is run
instruction by instruction, in many orders of a few threads: `tests/runtime/test_native_pool.py`.

Which arrays helpers may still use is noted per job (`_lent`), behind its end. A job that was noted
before a look that has found no helper inside is left for good, and no other job is let go of then.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowscope.graph.current_step import forget_when_forked
from flowscope.runtime.threads import native_code as at
from flowscope.runtime.threads.native_code import MOST, RECIPE, NativeCode

#: Blocks of a job at most: what is late is told as bits.
MOST_BLOCKS = 32
#: For so long a helper looks for the next job before it sleeps, giving way to other processes.
_LINGER_S = 5e-4


class NativePool:
    """Helper threads that run compiled code.

    They start at the first job, and end when there was none for some seconds, when the pool is
    collected and when the interpreter ends. A forked process has none, and starts its own.

    Args:
        long_sizes: Whether BLAS takes sizes of 64 bits, and not of 32.
        idle_s: A helper that slept for so long ends.

    Attributes:
        pauses_per_second: How many steps of waiting make a second.

    Raises:
        ImportError: if llvmlite is not installed.
        RuntimeError: if the code does not fit this machine.
    """

    def __init__(self, long_sizes: bool, idle_s: float = 5.0) -> None:
        self._code = NativeCode(long_sizes)
        self._idle_s = idle_s
        self.pauses_per_second = self._code.pauses_per_second
        self.forget_threads()
        forget_when_forked(self)

    def before_fork(self) -> None:
        """Waits for helpers that are inside BLAS, which has locks: at most a second."""
        self._code.late(self._helpers.address, int(self.pauses_per_second))

    def forget_threads(self) -> None:
        """Has no threads: they are started when there is a job."""
        self._helpers = _Helpers(self._code, self._idle_s)
        #: The arrays of jobs that helpers may not have left.
        self._lent: dict[object, tuple[Any, ...]] = {}
        self._end = weakref.finalize(self, self._helpers.end)

    def run(self, recipe: Any, a: Any, b: Any, out: Any, helpers: int) -> int:
        """Computes a product into `out`, with at most so many helpers.

        Args:
            recipe: The words that `RECIPE` names, and their address.
            a: The first factor, an array of the layout that the recipe is for.
            b: The second one.
            out: An array in C order that nobody reads yet.
            helpers: How many threads may help.

        Returns:
            0 if all is done; -1 if nothing is, for another job is on its way; otherwise the blocks
            that are late as bits: `out` stays the helpers', the values have to go elsewhere.
        """
        team = self._helpers
        if len(team.threads) < helpers:
            team.start(helpers)
        lent = [*self._lent]
        late: int = self._code.product(team.address, recipe[1], a, b, out, helpers)
        if late > 0:
            self._lent[object()] = (recipe, a, b, out)
        elif lent and late == 0:
            self._let_go(lent)  # nobody was inside when it began
        return late

    def settle(self) -> None:
        """Lets go of the arrays of a job that helpers were late with, if they have left it."""
        lent = [*self._lent]
        if lent and not self._code.late(self._helpers.address, 0):
            self._let_go(lent)

    def _let_go(self, jobs: Sequence[object]) -> None:
        for job in jobs:
            self._lent.pop(job, None)

    def stop(self) -> None:
        """Ends the threads, and waits until they have ended; a later job starts others."""
        self._end()
        self.forget_threads()

    @property
    def threads(self) -> list[threading.Thread]:
        """The helper threads that there are."""
        return list(self._helpers.threads.values())


class _Helpers:
    """Helper threads, and the memory through which they are given jobs.

    Args:
        code: What they run.
        idle_s: One that slept for so long ends.

    Attributes:
        address: Where the memory lies.
        threads: Those that run, by their numbers.
    """

    def __init__(self, code: NativeCode, idle_s: float) -> None:
        self._code = code
        self._process = os.getpid()
        self._lock = threading.Lock()
        self.threads: dict[int, threading.Thread] = {}
        memory = np.zeros(at.WORDS + 8, np.int64)
        skipped = -memory.ctypes.data % 64 // 8
        self._state = state = memory[skipped : skipped + at.WORDS]
        self.address: int = state.ctypes.data
        state[at.ACQUIRE], state[at.RELEASE] = code.acquire, code.release
        state[at.YIELD] = code.yields
        state[at.SLEEP_US] = int(idle_s * 1e6)
        state[at.YIELDS] = max(1, int(_LINGER_S / code.yield_s))
        for h in range(MOST):
            state[at.HELPER + h * at.HELPER_WORDS + at.LOCK] = code.new_lock()

    def start(self, count: int) -> None:
        """Starts threads until there are so many."""
        with self._lock:
            if self._state[at.QUIT]:
                return
            for number in set(range(count)) - set(self.threads):
                name = f"flowscope-native-{number + 1}"
                thread = threading.Thread(target=self._help, args=(number,), name=name, daemon=True)
                self.threads[number] = thread
                thread.start()

    def _help(self, number: int) -> None:
        try:
            self._code.help(self.address, number)
        finally:
            with self._lock:
                del self.threads[number]

    def end(self) -> None:
        """Ends the threads, and waits until they have ended."""
        if self._process != os.getpid():
            return  # they run in the process that this one was forked from
        with self._lock:
            self._code.stop(self.address)
            threads = list(self.threads.values())
        for thread in threads:
            thread.join()


__all__ = ["MOST", "MOST_BLOCKS", "RECIPE", "NativePool"]
