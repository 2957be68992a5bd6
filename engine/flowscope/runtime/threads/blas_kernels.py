"""Which kernels NumPy's OpenBLAS uses, and which it should.

OpenBLAS chooses kernels by the CPU's model when it is loaded. For models that it does not know, or
behind some hypervisors, it takes those for AVX2 where the CPU has AVX-512, and a product takes up
to twice as long. OPENBLAS_CORETYPE in the environment decides, but only before NumPy is loaded: who
starts a process (the kernel for notebooks, `make lab`) asks `environment` and sets it. In a process
that runs already `%load_ext flowscope` and `python -m flowscope` say what to set.

Source: OpenBLAS's documentation, "Runtime variables".
"""

from __future__ import annotations

import os
from collections.abc import Set
from pathlib import Path
from typing import Any

VARIABLE = "OPENBLAS_CORETYPE"
#: Kernels for any CPU with these flags; newer ones have kernels of the same width.
AVX512 = "SkylakeX"
_FLAGS = {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"}
_WIDE = {AVX512.lower(), "cooperlake", "sapphirerapids", "zen4", "zen5"}


def environment() -> dict[str, str]:
    """Variables to add to a process's environment before NumPy is loaded there.

    This loads NumPy. What the user has set stays as it is.
    """
    if VARIABLE in os.environ:
        return {}
    wanted = better_choice()
    return {VARIABLE: wanted} if wanted else {}


def better_choice() -> str | None:
    """The value that `VARIABLE` should have; None where the libraries use the right kernels."""
    flags = cpu_flags()
    return next(filter(None, (better_kernels(found, flags) for found in libraries())), None)


def libraries() -> list[dict[str, Any]]:
    """threadpoolctl's entries of the BLAS libraries under NumPy and SciPy."""
    import numpy  # noqa: F401  (loads the library)
    import threadpoolctl

    return [one for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"]


def better_kernels(library: dict[str, Any], flags: Set[str]) -> str | None:
    """Returns the kernels that a library should use; None where it uses the right ones."""
    chosen = library.get("architecture")
    if library.get("internal_api") != "openblas" or not chosen:
        return None
    return AVX512 if flags >= _FLAGS and chosen.lower() not in _WIDE else None


def cpu_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """Returns the CPU's flags as Linux names them; nothing elsewhere."""
    try:
        text = cpuinfo.read_text()
    except OSError:
        return frozenset()
    lines = (line.partition(":") for line in text.splitlines())
    return frozenset(next((v.split() for k, _, v in lines if k.strip() == "flags"), ()))


__all__ = [
    "AVX512",
    "VARIABLE",
    "better_choice",
    "better_kernels",
    "cpu_flags",
    "environment",
    "libraries",
]
