"""Values in the host's memory: NumPy arrays, and NumPy scalars for rank 0."""

from __future__ import annotations

from typing import Any

import numpy as np


def on_host(value: Any) -> Any:
    """Returns a value of any device as a NumPy array or scalar.

    One of another memory is copied, which waits until its device has computed it.
    """
    if isinstance(value, np.generic):
        return value
    get = getattr(value, "get", None)
    value = value if get is None else get()
    return value[()] if getattr(value, "ndim", 1) == 0 else value


def beside(value: Any, other: Any) -> Any:
    """Returns a value of the host's memory where another one lies.

    Args:
        value: A NumPy array or scalar.
        other: A value of any device, CuPy's arrays among them.
    """
    if not hasattr(other, "get"):
        return value
    put = getattr(other.device, "put", None)
    if put is not None:
        return put(value)
    with other.device:
        made = type(other)(np.shape(value), value.dtype)
        made.set(np.ascontiguousarray(value))
    return made


__all__ = ["beside", "on_host"]
