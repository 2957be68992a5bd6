"""The lines of `flowscope/runtime/devices/cupy_table.txt`, as the CuPy that is installed has them.

`python tests/helpers/cupy_table_lines.py` prints them. CuPy loads without a GPU.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

import numpy as np

#: What stands for which module of NumPy's or SciPy's.
MODULES = {
    "cupy": "numpy",
    "cupy.linalg": "numpy.linalg",
    "cupy.fft": "numpy.fft",
    "cupy.lib.stride_tricks": "numpy.lib.stride_tricks",
    "cupyx.scipy.special": "scipy.special",
    "cupyx.scipy.fft": "scipy.fft",
    "cupyx.scipy.linalg": "scipy.linalg",
}
_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")


def lines(module: str) -> list[str]:
    """Returns the lines of the functions that a module of CuPy's shares with its model.

    Raises:
        ImportError: if the module does not load.
    """
    theirs, model = import_module(module), import_module(MODULES[module])
    found = []
    for name in sorted(n for n in dir(model) if not n.startswith("_")):
        ours, its = getattr(theirs, name, None), getattr(model, name)
        if ours is None or isinstance(its, type) or not callable(its):
            continue
        found.append(f"{module}.{name}{_written(ours)}")
    if module == "cupy":
        found += [f"cupy.ndarray.{n}" for n in _array_members(theirs.ndarray)]
    return found


def _written(function: Any) -> str:
    if hasattr(function, "types"):
        loops = [t for t in function.types if "E" not in t]  # bfloat16, with ml_dtypes alone
        return " " + " ".join([*loops, *_methods(function)])
    return f"({_parameters(function)})"


def _parameters(function: Any) -> str:
    """Returns a function's parameters; each default is written as None."""
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return _of_docstring(function)
    return _joined([(p.name, p.kind, p.default is not p.empty) for p in found])


def _of_docstring(function: Any) -> str:
    head = (function.__doc__ or "").split("\n")[0]
    inside = re.search(r"\((.*)\)", head)
    if inside is None:
        return "*args, **kwargs"
    parts = [p.strip() for p in re.sub(r"\([^()]*\)", "", inside.group(1)).split(",")]
    names = []
    for part in parts:
        name, equals, _ = part.partition("=")
        names.append(re.split(r"[ :]", name.strip())[-1] + "=None" * bool(equals))
    return ", ".join(n for n in names if n not in ("self", ""))


def _joined(parameters: list[tuple[str, Any, bool]]) -> str:
    parts, kinds = [], [kind for _, kind, _ in parameters]
    for i, (name, kind, has_default) in enumerate(parameters):
        if kind is inspect.Parameter.KEYWORD_ONLY and not {
            inspect.Parameter.KEYWORD_ONLY,
            inspect.Parameter.VAR_POSITIONAL,
        } & set(kinds[:i]):
            parts.append("*")
        star = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        parts.append(star.get(kind, "") + name + "=None" * has_default)
        last = i + 1 == len(kinds) or kinds[i + 1] is not kind
        if kind is inspect.Parameter.POSITIONAL_ONLY and last:
            parts.append("/")
    return ", ".join(parts)


def _array(dtype: Any) -> Any:
    """Returns an array whose memory is not there: enough to ask what CuPy refuses."""
    import cupy

    memory = cupy.cuda.UnownedMemory(4096, 1 << 20, None, 0)
    return cupy.ndarray((3,), dtype, memptr=cupy.cuda.MemoryPointer(memory, 0))


def _methods(function: Any) -> list[str]:
    """Returns which methods a universal function has, and for which dtypes."""
    found = []
    for name in _METHODS:
        if name == "outer" and function.nin == 2:
            found.append("outer:*")
        dtypes = "".join(d for d in "?bBhHiIlLefdFD" if _takes(function, name, d))
        if name != "outer" and dtypes:
            found.append(f"{name}:{dtypes}")
    return found


def _takes(function: Any, name: str, dtype: str) -> bool:
    if name == "at":
        given = (_array(dtype), _array("l"), _array(dtype))
    else:
        given = (_array(dtype), [0]) if name == "reduceat" else (_array(dtype),)
    try:
        getattr(function, name)(*given)
    except (NotImplementedError, TypeError, ValueError, AttributeError):
        return False
    except Exception as e:  # there is no driver
        return "cuda" in f"{type(e).__name__} {e}".lower()
    return True


def _array_members(cls: Any) -> list[str]:
    """Returns an array's methods with their parameters, and its attributes."""
    found = []
    for name in sorted(n for n in dir(cls) if not n.startswith("_")):
        member = getattr(cls, name)
        if not hasattr(np.ndarray, name):
            continue
        found.append(f"{name}({_of_docstring(member)})" if callable(member) else name)
    return found


if __name__ == "__main__":
    for module in MODULES:
        try:
            print("\n".join(lines(module)))
        except ImportError as e:
            import sys

            print(f"{module}: {e}", file=sys.stderr)
