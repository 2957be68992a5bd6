"""SciPy's functions for the arrays of a device: imported when the first kernel needs them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from flowscope.errors import UnimplementedError
from flowscope.graph.op import ArrayModule

#: `find(xp, part)` returns what stands for `scipy.<part>` with arrays of `xp`, or None. The back
#: ends of the runtime add theirs.
finders: list[Callable[[ArrayModule, str], Any]] = []

_loaded: dict[str, Any] = {}


def scipy_of(xp: ArrayModule, part: str) -> Any:
    """Returns `scipy.<part>` ("special", "linalg", ...) for arrays of `xp`.

    Raises:
        UnimplementedError: if the device has nothing that stands for it.
    """
    if xp is np:
        found = _loaded.get(part)
        if found is None:
            found = _loaded[part] = import_module(f"scipy.{part}")
        return found
    for find in finders:
        found = find(xp, part)
        if found is not None:
            return found
    raise UnimplementedError(f"this device has no counterpart of scipy.{part}")
