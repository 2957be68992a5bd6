"""Matrix products that several threads share, with the bits that one thread gives.

A product is cut into blocks of rows or of columns, and the threads of a `NativePool` take them. How
BLAS adds up an element may depend on the block that it lies in: a block of one row goes to another
function, and a small one to code without packing. So a cut is used where a trial has given equal
bits, for the same sizes, dtype and layout; where none has, one thread computes the whole. The
result does not depend on who computes which block, so it is the same on any number of threads.

The first products of a layout are left to one thread, and so are all while the native code is being
compiled, on a thread of its own: what runs once gains nothing.

Several steps multiply at the same time, and nothing is locked for that. Counts of layouts may lose
some, so a layout is cut a little later; two threads that try cuts of one layout find the same one.
Only one thread is started that compiles: whoever gets `_claim` starts it, and nobody gives it back.
"""

from __future__ import annotations

import math
import threading
from typing import Any, Literal

import numpy as np

from flowscope.graph.current_step import forget_when_forked
from flowscope.graph.lazy import frozen
from flowscope.runtime.threads import blas
from flowscope.runtime.threads.native_pool import MOST_BLOCKS, RECIPE, NativePool

#: As often a layout has to come before it is cut.
_USUAL = 3
#: So many multiplications make a block that is worth a hand-over, and one that is long enough.
_WORTH, _LONG = 1 << 19, 1 << 24
#: Rows and columns of a block are multiples of so many: BLAS computes tiles. Those of AVX-512 have
#: 16 rows, those of AVX2 48.
_ROWS, _COLUMNS = (16, 48), 64
#: So many layouts are known at a time.
_KEPT = 1024
#: A block that a helper has begun is waited for as long as this times the caller's own.
_PATIENCE = 2.0
#: Multiplications in a second that BLAS is taken to manage at the least (one thread).
_SLOW = 5e9
#: A block of calls that a helper has begun is waited for so long.
_CALL_PATIENCE_S = 1e-3
_ROW_MAJOR_AS_IT_IS, _TRANSPOSED = 111, 112

_LETTERS = {"f": "s", "d": "d"}


@frozen
class _Cut:
    """How products of one layout are cut.

    Attributes:
        recipe: The words that the native code is told, and their address.
        rows: Rows of a block; 0 where columns are cut.
        columns: Columns of a block; 0 where rows are cut.
        blocks: How many blocks there are.
    """

    recipe: tuple[Any, int]
    rows: int
    columns: int
    blocks: int

    def block(self, i: int) -> tuple[slice, slice]:
        """Returns which rows and columns of the result a block has."""
        every = slice(None)
        if self.rows:
            return slice(i * self.rows, (i + 1) * self.rows), every
        return every, slice(i * self.columns, (i + 1) * self.columns)


class MatrixProducts:
    """Computes products on several threads: on native ones, so where llvmlite is installed."""

    def __init__(self) -> None:
        self._pool: NativePool | None = None
        self._gemm: dict[str, int] = {}
        self._state: Literal["new", "compiling", "ready", "absent"] = "new"
        #: Whoever gets it has the native code compiled.
        self._claim = threading.Lock()
        self._calls = 0
        self._empty = np.empty(1)
        self._cuts: dict[Any, Any] = {}
        self._noise: Any = None
        forget_when_forked(self)

    def before_fork(self) -> None:
        """Nothing to do: its threads hold no lock of a library between two calls of Python's."""

    def forget_threads(self) -> None:
        """Compiles anew where a thread did so that does not run in this process."""
        if self._state == "compiling":
            self._claim = threading.Lock()
            self._state = "new"

    def product(self, a: Any, b: Any, size: int) -> Any:
        """Returns the product of two matrices of float32 or float64; None where one thread should.

        Args:
            a: The first matrix.
            b: The second one, of the same dtype; sizes fit.
            size: How many threads work on it at most.
        """
        key = (a.shape, a.strides, b.shape, b.strides, a.dtype.char, size)
        cut = self._cuts.get(key, 0)
        if type(cut) is int:
            cut = self._first(key, cut + 1, a, b, size)
        if cut is None or self._pool is None:
            return None
        out = np.empty((a.shape[0], b.shape[1]), a.dtype)
        late = self._pool.run(cut.recipe, a, b, out, size - 1)
        if late == 0:
            return out
        return None if late < 0 else _completed(a, b, out, cut, late)

    def calls(self, table: Any, kept: Any, size: int) -> int:
        """Makes calls of blocks, on at most so many threads.

        Args:
            table: Words of calls, by block and call; what they return is written to the last ones.
            kept: What the calls need.
            size: How many threads work on it at most.

        Returns:
            0 if all is done; -1 if nothing is; otherwise the blocks that are late as bits.
        """
        if self._pool is None:
            self._calls += 1
            if self._calls >= _USUAL:
                self._prepare()
            return -1
        patience = int(_CALL_PATIENCE_S * self._pool.pauses_per_second)
        told = {"calls": table.ctypes.data, "count": table.shape[1], "blocks": len(table)}
        words = np.array([{**told, "patience": patience}.get(n, 0) for n in RECIPE], np.int64)
        recipe = words, words.ctypes.data, table, kept
        return self._pool.run(recipe, table, words, self._empty, size - 1)

    def _prepare(self) -> None:
        if self._state == "new" and self._claim.acquire(blocking=False):
            self._state = "compiling"
            threading.Thread(target=self.compile, name="flowscope-compile", daemon=True).start()

    def settle(self) -> None:
        """Lets go of what helper threads were late with: a step does so at its end."""
        if self._pool is not None:
            self._pool.settle()

    def stop(self) -> None:
        """Ends the helper threads; a later product starts others."""
        if self._pool is not None:
            self._pool.stop()

    @property
    def threads(self) -> list[threading.Thread]:
        """The helper threads that there are."""
        return [] if self._pool is None else self._pool.threads

    def _first(self, key: Any, count: int, a: Any, b: Any, size: int) -> Any:
        """Counts a product, and tries cuts once it was seen often enough."""
        if len(self._cuts) >= _KEPT:
            self._cuts.clear()
        found: Any = count
        if count >= _USUAL:
            self._prepare()
            if self._state == "compiling":
                found = _USUAL - 1
            else:
                found = self._tried(a, b, size) if self._state == "ready" else None
        self._cuts[key] = found
        return None if type(found) is int else found

    def compile(self) -> bool:
        """Makes the native threads ready; returns whether there are any."""
        try:
            self._gemm, long_sizes = _gemm()
            if self._gemm:
                self._pool = NativePool(long_sizes)
        except (ImportError, RuntimeError):
            self._gemm = {}  # one thread does it all
        self._state = "ready" if self._gemm else "absent"
        return self._state == "ready"

    def _tried(self, a: Any, b: Any, size: int) -> _Cut | None:
        """Returns a cut that gives equal bits; None for none."""
        (m, k), n = a.shape, b.shape[1]
        layouts = [_layout(x) for x in (a, b)]
        if None in layouts or a.dtype.char not in self._gemm or not a.dtype.isnative:
            return None
        blocks = min(max(size, m * k * n // _LONG), 2 * size, MOST_BLOCKS, m * k * n // _WORTH)
        if blocks < 2 or min(m, n, k) < 2:
            return None
        by_rows = [(_step(m, blocks, rows), 0) for rows in _ROWS]
        by_columns = [(0, _step(n, blocks, _COLUMNS))]
        x, y = (self._like(v) for v in (a, b))
        with blas.one_thread:
            whole = np.matmul(x, y)
            ways = by_rows + by_columns if m >= n else by_columns + by_rows
            for rows, columns in dict.fromkeys(ways):
                if rows or columns:
                    cut = self._cut(x, y, rows, columns)
                    if self._is_equal(cut, x, y, whole):
                        return self._cut(a, b, rows, columns)
        return None

    def _is_equal(self, cut: _Cut, x: Any, y: Any, whole: Any) -> bool:
        assert self._pool is not None
        out = np.empty(whole.shape, whole.dtype)
        return self._pool.run(cut.recipe, x, y, out, 0) == 0 and out.tobytes() == whole.tobytes()

    def _cut(self, a: Any, b: Any, rows: int, columns: int) -> _Cut:
        (m, k), n, item = a.shape, b.shape[1], a.itemsize
        (trans_a, lda), (trans_b, ldb) = _layout(a) or (0, 0), _layout(b) or (0, 0)
        blocks = -(-m // rows) if rows else -(-n // columns)
        assert self._pool is not None
        patience = _PATIENCE * m * n * k / blocks / _SLOW * self._pool.pauses_per_second
        told = {
            "trans_a": trans_a, "trans_b": trans_b, "m": m, "n": n, "k": k, "lda": lda, "ldb": ldb,
            "ldc": n, "rows": rows, "columns": columns, "a_bytes": rows * a.strides[0],
            "b_bytes": columns * b.strides[1], "c_bytes": (rows * n + columns) * item,
            "blocks": blocks, "patience": int(patience), "gemm": self._gemm[a.dtype.char],
            "is_double": a.dtype.char == "d", "alignment": item - 1, "calls": 0, "count": 0,
        }  # fmt: skip
        words = np.array([told[name] for name in RECIPE], np.int64)
        return _Cut((words, words.ctypes.data), rows, columns, blocks)

    def _like(self, a: Any) -> Any:
        """Returns an array of noise of the same shape, dtype and order."""
        if self._noise is None:
            self._noise = np.random.default_rng(0).standard_normal(65_521)
        values = np.resize(self._noise.astype(a.dtype), math.prod(a.shape))
        if _layout(a) == (_TRANSPOSED, a.strides[1] // a.itemsize):
            return values.reshape(a.shape[::-1]).T
        return values.reshape(a.shape)


def _completed(a: Any, b: Any, out: Any, cut: _Cut, late: int) -> Any:
    """Returns the product in new memory, with the blocks that are late computed once more."""
    found = out.copy()
    for i in range(cut.blocks):
        if late >> i & 1:
            rows, columns = cut.block(i)
            found[rows, columns] = np.matmul(a[rows], b[:, columns])
    return found


def _step(length: int, blocks: int, multiple: int) -> int:
    """Returns the length of a block; 0 where there would be one."""
    step = -(-length // blocks)
    step = -(-step // multiple) * multiple
    return step if step < length else 0


def _layout(a: Any) -> tuple[int, int] | None:
    """Returns how BLAS is told that a matrix lies, as NumPy does; None where it would be copied."""
    (m, k), (down, across), item = a.shape, a.strides, a.itemsize
    if across == item and down % item == 0 and down >= k * item:
        return _ROW_MAJOR_AS_IT_IS, down // item
    if down == item and across % item == 0 and across >= m * item:
        return _TRANSPOSED, across // item
    return None


def _gemm() -> tuple[dict[str, int], bool]:
    """Returns where BLAS's products are, by the letters of dtypes, and whether sizes are long."""
    import ctypes

    libraries = blas.open_blas()
    if not libraries:
        return {}, False
    found, is_long = {}, False
    for char, letter in _LETTERS.items():
        pair = blas.symbol(libraries[0], f"cblas_{letter}gemm")
        if pair is None:
            return {}, False
        found[char] = ctypes.cast(pair[0], ctypes.c_void_p).value or 0
        is_long = pair[1]
    return found, is_long


__all__ = ["MatrixProducts"]
