"""Files as streams of bytes, plain or compressed, that are read piece by piece.

No more is held than a piece and what it came from, however far the compressed bytes expand.
"""

from __future__ import annotations

import os
import zlib
from typing import Any, Final

from flowscope.errors import DataLossError, InvalidArgumentError
from flowscope.ops.host.files import file_errors

__all__ = ["COMPRESSIONS", "MOST_BYTES", "PIECE", "ByteStream", "check_compression", "open_stream"]

#: Bytes of a piece.
PIECE: Final = 1 << 18
#: No record of a compressed file, and no line, has more bytes: nothing else bounds them.
MOST_BYTES: Final = (1 << 31) - 1
#: zlib's "window bits" by the names of compressions.
COMPRESSIONS: Final = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}


def check_compression(name: str) -> str:
    """Returns the name of a compression: "", "GZIP" or "ZLIB".

    Raises:
        InvalidArgumentError: if it is another one.
    """
    if name and name not in COMPRESSIONS:
        raise InvalidArgumentError(f'expected a compression of "", "GZIP" or "ZLIB", got {name!r}')
    return name


class ByteStream:
    """A file that is read from its beginning to its end. What is added meanwhile is read, too.

    Args:
        path: Its name.

    Raises:
        NotFoundError: if there is no such file; PermissionDeniedError if it may not be read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with file_errors("read", path):
            self._file: Any = open(path, "rb", buffering=0)  # noqa: SIM115 - it is kept

    def read(self, size: int = PIECE) -> bytes:
        """Returns at most `size` bytes; none at the end.

        Raises:
            DataLossError: if they are damaged, where that can be told.
        """
        with file_errors("read", self.path):
            found: bytes = self._file.read(size)
        return found

    def skip(self, count: int) -> None:
        """Passes over bytes, as far as there are any."""
        self._file.seek(count, os.SEEK_CUR)

    def left(self) -> int | None:
        """Returns how many bytes are left now; None if that is not known."""
        with file_errors("read", self.path):
            left: int = os.fstat(self._file.fileno()).st_size - self._file.tell()
        return max(0, left)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()


class _Expanded(ByteStream):
    """A compressed file, as what it was made of; several may follow each other in it."""

    def __init__(self, path: str, compression: str) -> None:
        super().__init__(path)
        self._bits = COMPRESSIONS[compression]
        self._expander = zlib.decompressobj(self._bits)
        self._waiting = b""
        self._has_begun = False

    def read(self, size: int = PIECE) -> bytes:
        while True:
            if self._expander.eof:
                self._waiting = self._expander.unused_data
                self._expander = zlib.decompressobj(self._bits)
                self._has_begun = False
            if not self._waiting:
                self._waiting = super().read(PIECE)
            if not self._waiting:
                # What the expander still has may come out without further bytes.
                found = self._expand(size) if self._has_begun else b""
                if not found and self._has_begun and not self._expander.eof:
                    raise DataLossError(f"the compressed file {self.path!r} ends too early")
                return found
            self._has_begun = True
            found = self._expand(size)
            if found:
                return found

    def _expand(self, size: int) -> bytes:
        try:
            found = self._expander.decompress(self._waiting, size)
        except zlib.error as e:
            raise DataLossError(f"the compressed file {self.path!r} is damaged: {e}") from e
        self._waiting = self._expander.unconsumed_tail
        return found

    def skip(self, count: int) -> None:
        while count > 0 and (found := self.read(min(count, PIECE))):
            count -= len(found)

    def left(self) -> None:
        return None


def open_stream(path: str, compression: str = "") -> ByteStream:
    """Opens a file.

    Args:
        path: Its name.
        compression: "", "GZIP" or "ZLIB".
    """
    return _Expanded(path, compression) if compression else ByteStream(path)
