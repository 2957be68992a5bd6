"""Files that are written whole or not at all, and what their errors are called here.

A file is written under a hidden name beside its own, synced, and renamed: whoever is killed, or
finds the disk full, leaves the old one. The writer holds a lock on the hidden file, so the next one
can tell what a killed process left behind from what a living one still writes.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from flowscope.errors import (
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnknownError,
)

_HIDDEN = re.compile(r"\..+\.\d+-[0-9a-f]{8}\.tmp", re.ASCII)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_BAD_PATH = (errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP)


@contextmanager
def replaced(path: str) -> Iterator[IO[bytes]]:
    """Yields a file to write that takes the place of `path` once it is on disk.

    The folder is made if it is missing.

    Raises:
        ResourceExhaustedError: if the disk is full.
        PermissionDeniedError: if the folder may not be written to.
        InvalidArgumentError: if no file can have this path.
    """
    folder = os.path.dirname(path) or "."
    with os_errors(path):
        os.makedirs(folder, exist_ok=True)
        temporary, file = _hidden(folder, os.path.basename(path))
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if os.name == "posix":  # while the lock is held
                    os.replace(temporary, path)
            if os.name != "posix":
                os.replace(temporary, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
        _sync_folder(folder)


def clear_leftovers(folder: str) -> None:
    """Deletes what processes that were killed while they wrote have left in a folder."""
    with suppress(OSError), os.scandir(folder or ".") as entries:
        for entry in entries:
            if _HIDDEN.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                _clear(entry.path)


def _clear(path: str) -> None:
    with suppress(OSError), open(path, "rb+") as file:
        if _is_locked(file):
            os.unlink(path)


def _hidden(folder: str, name: str) -> tuple[str, IO[bytes]]:
    while True:
        unique = f".{name[:200]}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
        path = os.path.join(folder, unique)
        file = open(path, "xb")  # noqa: SIM115 - the caller closes it
        _is_locked(file)
        if os.fstat(file.fileno()).st_nlink or os.name != "posix":
            return path, file
        file.close()  # another process took it for a leftover before it was locked


def _is_locked(file: IO[bytes]) -> bool:
    """Locks a file; returns False where another process holds it, or there are no locks."""
    try:
        import fcntl  # absent on Windows
    except ImportError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sync_folder(folder: str) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def os_errors(path: Any) -> Iterator[None]:
    """Turns errors of the operating system into those of `flowscope.errors`, with the path."""
    try:
        yield
    except OSError as e:
        raise os_error(e, path) from e
    except ValueError as e:
        if isinstance(e, OpError) or "null" not in str(e):
            raise
        raise InvalidArgumentError(f"no file can have the path {path!r}: {e}") from e


def os_error(error: OSError, path: Any) -> OpError:
    """Returns the error of `flowscope.errors` for one of the operating system."""
    text = f'"{path}": {error.strerror or error}'
    if isinstance(error, FileNotFoundError):
        return NotFoundError(f'there is no file "{path}"')
    if isinstance(error, PermissionError):
        return PermissionDeniedError(text)
    if error.errno in _NO_SPACE:
        return ResourceExhaustedError(text)
    if error.errno in _BAD_PATH:
        return InvalidArgumentError(text)
    return UnknownError(text)
