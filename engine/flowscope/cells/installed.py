"""Which code is installed, and so stays as it is while a notebook runs; the rest is the user's."""

from __future__ import annotations

import functools
import os
import site
import sys
import sysconfig
from types import ModuleType
from typing import Any

from flowscope.graph.origins.origin import is_ours

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE


@functools.cache
def _folders() -> tuple[str, ...]:
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    paths = sysconfig.get_paths()
    found = [*(paths[kind] for kind in kinds), *site.getsitepackages(), site.getusersitepackages()]
    every = {form for path in found for form in (path, os.path.realpath(path))}
    return tuple(sorted(f"{path}{os.sep}" for path in every))


def is_installed_file(filename: str) -> bool:
    """Whether a file belongs to Python, to an installed package or to flowscope."""
    return filename.startswith((*_folders(), "<frozen ")) or is_ours(filename)


def is_installed_module(module: ModuleType) -> bool:
    """Whether a module belongs to Python, to an installed package or to flowscope."""
    origin = getattr(getattr(module, "__spec__", None), "origin", None)
    filename = getattr(module, "__file__", None) or origin
    return filename in ("built-in", "frozen") or bool(filename and is_installed_file(filename))


def is_installed(thing: Any) -> bool:
    """Whether a class is Python's own, or an object is what an installed module has by its name."""
    if isinstance(thing, type) and not thing.__flags__ & _HEAP_TYPE:
        return True
    module = sys.modules.get(getattr(thing, "__module__", None) or "")
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None)
    if module is None or not isinstance(name, str) or not is_installed_module(module):
        return False
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is thing


__all__ = ["is_installed", "is_installed_file", "is_installed_module"]
