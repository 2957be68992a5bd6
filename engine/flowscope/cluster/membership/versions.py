"""What the processes of a cluster compute with: versions of libraries, and features of the CPU.

A client compares its own with those of each task when it connects with it. Functions travel as
Python's byte code, and arrays in them as NumPy pickles them: where these differ too much, a task is
refused. Other versions of the libraries that compute, and other vector instructions, may round
differently: that is told once.
"""

from __future__ import annotations

import platform
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from flowscope.errors import VersionWarning
from flowscope.graph.origins.origin import stacklevel

#: What a process computes with, by the words for it.
Versions = Mapping[str, str]

_NONE = "none"
_PYTHON = "Python"
_NUMPY = "NumPy"
_CLOUDPICKLE = "cloudpickle"


def _first(count: int) -> Callable[[str], str]:
    """A function that keeps the first `count` numbers of a version."""
    return lambda told: ".".join(told.split(".")[:count])


#: What must be alike if programs are to be exchanged, and as far as it must.
_BREAKS: Mapping[str, Callable[[str], str]] = {
    _PYTHON: _first(2),
    _NUMPY: _first(1),
    _CLOUDPICKLE: _first(1),
    "byte order": str,
}
#: The packages that compute, by the words for them.
_PACKAGES = {"SciPy": "scipy", "ml_dtypes": "ml_dtypes", "oneDNN": "onednn-cpu-gomp"}
#: What may change the last bits of results.
_ROUNDS = (_NUMPY, *_PACKAGES, "BLAS", "machine", "vector instructions")


@cache
def versions() -> Versions:
    """The versions that this process computes with."""
    found = {
        _PYTHON: f"{platform.python_version()} ({platform.python_implementation()})",
        _NUMPY: np.__version__,
        _CLOUDPICKLE: _version_of("cloudpickle"),
        "byte order": sys.byteorder,
        "BLAS": _blas(),
        "machine": platform.machine(),
        "vector instructions": _vector_instructions(),
    }
    return found | {name: _version_of(package) for name, package in _PACKAGES.items()}


def refusal(task: str, theirs: Versions, ours: Versions | None = None) -> str | None:
    """Returns why a task cannot work with this process; None if it can.

    Args:
        task: The task's name.
        theirs: What it computes with.
        ours: What this process does.
    """
    ours = versions() if ours is None else ours
    found = [
        f"{what} {theirs[what]}, and this process has {ours[what]}"
        for what, part in _BREAKS.items()
        if what in theirs and part(theirs[what]) != part(ours[what])
    ]
    if not found:
        return None
    return (
        f"{task} has {'; it has '.join(found)}: programs cannot be exchanged between them. Run "
        "both in environments with the same versions, and restart the worker"
    )


def _differences(theirs: Versions, ours: Versions) -> tuple[str, ...]:
    """Returns in what two processes that work together may round differently."""
    return tuple(
        f"{what} {ours[what]} here and {theirs[what]} there"
        for what in _ROUNDS
        if what in theirs and theirs[what] != ours[what]
    )


class Rounding:
    """Tells once in what tasks of a cluster may round differently from this process.

    Args:
        ours: What this process computes with.
    """

    def __init__(self, ours: Versions | None = None) -> None:
        self._ours = versions() if ours is None else ours
        self._lock = threading.Lock()
        self._told: set[tuple[str, ...]] = set()
        #: The tasks by what is different there and was not told yet.
        self._news: dict[tuple[str, ...], set[str]] = {}

    def take(self, task: str, theirs: Versions) -> None:
        """Compares a task that has come."""
        found = _differences(theirs, self._ours)
        with self._lock:
            if found and found not in self._told:
                self._news.setdefault(found, set()).add(task)

    def warn(self) -> None:
        """Warns, at the user's line, of what was not told yet."""
        with self._lock:
            news, self._news = self._news, {}
            self._told |= news.keys()
        for found, tasks in news.items():
            warnings.warn(
                f"results of {', '.join(sorted(tasks))} may differ from those of this process in "
                f"their last bits: {'; '.join(found)}",
                VersionWarning,
                stacklevel=stacklevel(),
            )


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return _NONE


def _vector_instructions() -> str:
    """Returns the sets of vector instructions that NumPy's kernels use."""
    found = np.show_config(mode="dicts")
    extensions = found["SIMD Extensions"] if found else {}
    return " ".join([*extensions.get("baseline", ()), *extensions.get("found", ())]) or _NONE


def _blas() -> str:
    """Returns NumPy's library for products of matrices, and for which CPU its kernels are."""
    from threadpoolctl import threadpool_info  # takes a while

    found = [one for one in threadpool_info() if one["user_api"] == "blas"]
    numpys = [one for one in found if "numpy" in one["filepath"]] or found
    if not numpys:
        return _NONE
    facts = [numpys[0].get(name) for name in ("internal_api", "version", "architecture")]
    return " ".join(str(fact) for fact in facts if fact)


__all__ = ["Rounding", "Versions", "refusal", "versions"]
