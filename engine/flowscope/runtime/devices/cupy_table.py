"""What CuPy has: its functions, their parameters, the dtypes of its universal functions.

`cupy_table.txt` states it, a line each, as CuPy 14 has it; a test compares it with the CuPy that is
installed, where there is one. A universal function's line has its loops, in NumPy's letters, then
its methods with the dtypes that they take. Defaults are written as None.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from flowscope.graph.lazy import frozen

#: Dtypes of CuPy's arrays.
DTYPES = frozenset("?bBhHiIlLqQefdFD")
#: What any universal function takes by name.
_KEYWORDS = frozenset({"out", "dtype", "casting", "where"})
#: Dtypes that `at` takes in CuPy 14 and not in CuPy 13.
_NEW_AT = frozenset("lq")


@frozen
class Ufunc:
    """A universal function.

    Attributes:
        name: Its name.
        loops: Dtypes of inputs and outputs, such as ("ff->f", ...).
        methods: The dtypes that its methods take, by their names.
    """

    name: str
    loops: tuple[str, ...]
    methods: dict[str, str]

    @property
    def inputs(self) -> int:
        """How many inputs it has."""
        return len(self.loops[0].partition("->")[0])

    def check(self, dtypes: tuple[Any, ...], keywords: Any = ()) -> None:
        """Raises TypeError unless it takes inputs of these dtypes, and these keywords.

        Args:
            dtypes: Dtypes of arrays, types of Python's numbers.
            keywords: Names of arguments.
        """
        if not _KEYWORDS.issuperset(keywords):
            raise TypeError(f"CuPy's {self.name} takes no argument {sorted(keywords)}")
        if not _has_loop(self.loops, dtypes):
            names = ", ".join(str(d) for d in dtypes)
            raise TypeError(f"CuPy's {self.name} does not take {names}")

    def check_method(self, name: str, dtype: Any) -> None:
        """Raises unless it has a method that takes arrays of a dtype."""
        found = self.methods.get(name, "")
        if not found:
            raise NotImplementedError(f"CuPy's {self.name}.{name} is not there yet")
        is_new = name == "at" and dtype.char in _NEW_AT
        if found != "*" and (dtype.char not in found or is_new):
            raise TypeError(f"CuPy's {self.name}.{name} does not take {dtype}")


@functools.lru_cache(4096)
def _has_loop(loops: tuple[str, ...], dtypes: tuple[Any, ...]) -> bool:
    return any(_fits(loop.partition("->")[0], dtypes) for loop in loops)


def _fits(letters: str, dtypes: tuple[Any, ...]) -> bool:
    if len(letters) > len(dtypes):
        return False
    return all(
        _ORDER.index(d) <= _KINDS[np.dtype(letter).kind]
        if isinstance(d, type)
        else np.can_cast(d, letter, "safe")
        for letter, d in zip(letters, dtypes, strict=False)
    )


#: Python's numbers take the dtype of the arrays beside them, if that is of their kind or a wider.
_ORDER = [bool, int, float, complex]
_KINDS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


@functools.cache
def _lines() -> dict[str, str]:
    text = Path(__file__).with_name("cupy_table.txt").read_text(encoding="utf-8")
    found = {}
    for line in text.splitlines():
        name, opening, rest = line.partition("(") if "(" in line else line.partition(" ")
        found[name] = opening + rest
    return found


def has(name: str) -> bool:
    """Whether CuPy has something under a full name, such as "cupy.linalg.svd"."""
    return name in _lines()


@functools.cache
def ufunc(name: str) -> Ufunc | None:
    """Returns the universal function of a full name; None if it is none."""
    text = _lines().get(name, "")
    if not text.startswith(" "):
        return None
    words = text.split()
    methods = dict(word.split(":") for word in words if ":" in word)
    short = name.removeprefix("cupy.")
    return Ufunc(short, tuple([w for w in words if "->" in w]), methods)


@functools.cache
def binder(name: str) -> Callable[..., dict[str, Any]] | None:
    """A function that takes the arguments of a function and gives them by name.

    It raises TypeError for those that the function does not take. None where CuPy has no function
    of the name, or one whose parameters are not known.
    """
    text = _lines().get(name, "")
    if not text.startswith("("):
        return None
    short = name.rpartition(".")[2]
    function: Callable[..., dict[str, Any]] = eval(f"lambda {text[1:-1]}: locals()")
    function.__name__ = function.__qualname__ = short
    return function


__all__ = ["DTYPES", "Ufunc", "binder", "has", "ufunc"]
