"""Poly1305 by Python's own OpenSSL: message authentication of large arrays at memory speed.

`hashlib` has nothing quicker than 1 to 2 GB/s; this runs at 5 to 12. Python's `_hashlib` is linked
with OpenSSL, whose functions are found through it. A build of Python that hides them has none.

Source: RFC 8439, section 2.5. A key authenticates one message only.
"""

from __future__ import annotations

import _hashlib
import ctypes
from functools import cache
from typing import Any

import numpy as np

from flowscope.cluster.transport.encoding.values import Data

KEY_BYTES = 32
TAG_BYTES = 16
_TYPES: dict[str, tuple[Any, list[Any]]] = {
    "EVP_MAC_fetch": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]),
    "EVP_MAC_CTX_new": (ctypes.c_void_p, [ctypes.c_void_p]),
    "EVP_MAC_CTX_free": (None, [ctypes.c_void_p]),
    "EVP_MAC_init": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p],
    ),
    "EVP_MAC_update": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]),
    "EVP_MAC_final": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t],
    ),
}


@cache
def _openssl() -> tuple[Any, int] | None:
    """Returns OpenSSL's functions and its Poly1305; None if Python's build has none to use."""
    try:
        library = ctypes.CDLL(_hashlib.__file__)
        for name, (result, arguments) in _TYPES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        found = library.EVP_MAC_fetch(None, b"POLY1305", None)
    except (AttributeError, OSError):
        return None
    return (library, found) if found else None


def is_available() -> bool:
    """Whether this Python can compute it."""
    return _openssl() is not None


class Poly1305:
    """Computes tags; for one thread at a time."""

    def __init__(self) -> None:
        found = _openssl()
        assert found is not None  # both ends have said so
        self._library, method = found
        self._context = self._library.EVP_MAC_CTX_new(method)
        self._tag = ctypes.create_string_buffer(TAG_BYTES)
        self._size = ctypes.c_size_t()

    def __del__(self) -> None:
        self._library.EVP_MAC_CTX_free(self._context)

    def tag(self, key: bytes, data: Data) -> bytes:
        """Returns the tag of bytes, under a key of 32 bytes that is used for nothing else."""
        library, context = self._library, self._context
        at = np.frombuffer(data, np.uint8).ctypes.data
        is_done = (
            library.EVP_MAC_init(context, key, KEY_BYTES, None)
            and library.EVP_MAC_update(context, at, len(data))
            and library.EVP_MAC_final(context, self._tag, ctypes.byref(self._size), TAG_BYTES)
        )
        if not is_done:
            raise MemoryError("OpenSSL could not compute a Poly1305 tag")
        return self._tag.raw


__all__ = ["KEY_BYTES", "TAG_BYTES", "Poly1305", "is_available"]
