"""The BLAS libraries under NumPy and SciPy: how many threads they use, where their products are.

Their own threads wait for each other by spinning. Where another process wants the processor too
that costs far more than it gains: eight products of a small network take 0.5 ms on two idle cores,
and 108 ms beside one busy process. So BLAS has one thread while steps run whose plans have
products, and large products are cut and shared by threads that nobody has to wait for, see
`flowscope.runtime.threads.matrix_products`.

The setting is the process's and not a session's: it is counted. The first step that comes in sets
it, the last one that goes restores what was there. What other threads of the program multiply
meanwhile has one thread too. Functions of the user's that a step calls have what was there, as
long as no other step with products runs.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from flowscope.errors import InvalidArgumentError

#: SciPy has a library of its own, loaded with the first of these modules.
_SCIPY = "scipy.linalg._fblas"


class OneThread:
    """Counts who wants BLAS to have one thread.

    Of libraries other than OpenBLAS nothing is known: they keep their threads.
    """

    def __init__(self) -> None:
        self._count = 0
        self._lock = threading.Lock()
        self._libraries: list[tuple[Callable[[], int], Callable[[int], Any]]] | None = None
        self._saw_scipy = False
        self._before: list[tuple[Callable[[int], Any], int]] = []

    def enter(self) -> None:
        """Lets BLAS have one thread, until `leave` is called as often."""
        with self._lock:
            if not self._count:
                self._set()
            self._count += 1

    def leave(self) -> None:
        """Restores what was there, if nobody else wants one thread."""
        with self._lock:
            self._count -= 1
            if not self._count:
                for set_threads, count in self._before:
                    set_threads(count)
                self._before = []

    def look(self) -> None:
        """Takes in libraries that were loaded since somebody has entered."""
        with self._lock:
            if self._count:
                self._set()

    def _set(self) -> None:
        if self._libraries is None or self._saw_scipy != (_SCIPY in sys.modules):
            self._saw_scipy = _SCIPY in sys.modules
            self._libraries = _settings()
        for get_threads, set_threads in self._libraries:
            if (count := get_threads()) != 1:
                self._before.append((set_threads, count))
                set_threads(1)

    def __enter__(self) -> None:
        self.enter()

    def __exit__(self, *exc: object) -> None:
        self.leave()

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Gives the wish up for the time of the block: what runs there is not the step's."""
        self.leave()
        try:
            yield
        finally:
            self.enter()


def open_blas() -> list[Any]:
    """Returns the OpenBLAS libraries that are loaded, NumPy's first."""
    import threadpoolctl  # at need: it looks at all loaded libraries

    found = threadpoolctl.ThreadpoolController().lib_controllers
    found = [c for c in found if c.internal_api == "openblas"]
    return [c.dynlib for c in sorted(found, key=lambda c: "scipy.libs" in c.filepath)]


def symbol(library: Any, name: str) -> tuple[Any, bool] | None:
    """Returns a function of OpenBLAS, and whether it takes sizes of 64 bits; None for none.

    Builds give their functions prefixes and suffixes, for several may be loaded.
    """
    for prefix in ("scipy_", ""):
        for suffix in ("64_", "_64", ""):
            found = getattr(library, f"{prefix}{name}{suffix}", None)
            if found is not None:
                return found, bool(suffix)
    return None


def _settings() -> list[tuple[Callable[[], int], Callable[[int], Any]]]:
    found = []
    for library in open_blas():
        pair = [symbol(library, f"openblas_{verb}_num_threads") for verb in ("get", "set")]
        if pair[0] is not None and pair[1] is not None:
            found.append((pair[0][0], pair[1][0]))
    return found


def limit_threads(count: int) -> None:
    """Lets BLAS use `count` threads in this process outside of steps; 0 leaves it as it is.

    Raises:
        InvalidArgumentError: if the count is negative.
    """
    if count < 0:
        raise InvalidArgumentError(
            f"expected intra_op_parallelism_threads of 0 (as it is) or more, got {count}"
        )
    if count:
        import threadpoolctl

        threadpoolctl.threadpool_limits(count, user_api="blas")


def threads() -> int:
    """Returns how many threads BLAS uses; 1 where that is not known."""
    import threadpoolctl

    found = [i["num_threads"] for i in threadpoolctl.threadpool_info() if i["user_api"] == "blas"]
    return max(found, default=1)


#: BLAS's number of threads is the process's, and so is who wants it to be one.
one_thread = OneThread()
