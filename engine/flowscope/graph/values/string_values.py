"""How a string tensor's value is held: `bytes` at rank 0, else an array of `bytes` objects.

NumPy's own arrays of strings (dtypes "S" and "U") drop the NULs at the ends of their elements, so
no value is ever one of them. NumPy makes one of a `bytes` object that it is asked to take as an
array: `boxed` is for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError


def as_bytes(text: str | bytes) -> bytes:
    """Returns a text in UTF-8, and bytes as they are.

    Raises:
        InvalidArgumentError: if the text has lone surrogates, which UTF-8 cannot hold.
    """
    try:
        return text.encode() if isinstance(text, str) else bytes(text)
    except UnicodeEncodeError as e:
        raise InvalidArgumentError(
            f"expected text that UTF-8 can hold, got {text[:60]!a} with lone surrogates: give "
            'bytes, e.g. text.encode("utf-8", "surrogateescape")'
        ) from e


def boxed(value: Any) -> Any:
    """Returns a value that NumPy may take as an array: `bytes` as an array of rank 0, others alone.

    Kernels call it where NumPy would make an array of an input.
    """
    return np.array(value, object) if isinstance(value, bytes) else value


def zeros(xp: Any, dims: Any, dtype: Any) -> Any:
    """Returns zeros of NumPy's `dtype`; of strings, an array of empty ones.

    Args:
        xp: Array module.
        dims: Lengths of the axes.
        dtype: NumPy's dtype.
    """
    if dtype.kind != "O":
        return xp.zeros(dims, dtype)
    return xp.full(dims, np.array(b"", object), dtype)
