"""Files as operations: read, written and listed on the machine where the operation is placed."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from flowscope.errors import (
    FailedPreconditionError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnknownError,
)
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import compatible, text
from flowscope.ops.core.build import apply, apply_none
from flowscope.ops.strings.string_op import check_string

__all__ = ["matching_files", "read_file", "write_file"]

_KINDS: dict[type[OSError], type[OpError]] = {
    FileNotFoundError: NotFoundError,
    PermissionError: PermissionDeniedError,
    IsADirectoryError: FailedPreconditionError,
    NotADirectoryError: FailedPreconditionError,
}


class _FileOp(Op, abstract=True, is_stateful=True, is_differentiable=False, devices=("CPU",)):
    """Base of ops on files: what they do follows the order of effects, and is never folded."""


def _check_scalar(what: str, spec: Spec) -> None:
    check_string(spec)
    if not compatible((), spec.shape):
        raise expected(f"{what} as a scalar", f"shape {text(spec.shape)}")


class ReadFile(_FileOp):
    """The contents of a file.

    Shapes: filename [] -> []
    Raises: NotFoundError if there is no such file, PermissionDeniedError if it may not be read.
    """

    def infer(self, filename: Spec) -> Spec:
        _check_scalar("the name of a file", filename)
        return Spec(dtypes.string, ())

    def kernel(self, xp: ArrayModule, filename: Array) -> Any:
        with reading(filename) as file:
            return file.read()


class WriteFile(_FileOp):
    """Writes a file, and makes its folder.

    Shapes: filename [], contents []
    Raises: PermissionDeniedError if it may not be written, ResourceExhaustedError if the disk is
        full.
    """

    def infer(self, filename: Spec, contents: Spec) -> tuple[Spec, ...]:
        _check_scalar("the name of a file", filename)
        _check_scalar("the contents of a file", contents)
        return ()

    def kernel(self, xp: ArrayModule, filename: Array, contents: Array) -> None:
        path = os.fsdecode(filename)
        with file_errors("write", path):
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(path, "wb") as file:
                file.write(contents)


@frozen
class MatchingFiles(_FileOp):
    """The names of the files that match one of several patterns, in order.

    Attributes: with `is_required` there is one at least.
    Shapes: pattern [] or [n] -> [files]
    Raises: NotFoundError if one is required and there is none.
    """

    is_required: bool = False

    def infer(self, pattern: Spec) -> Spec:
        check_string(pattern)
        if pattern.shape is not None and len(pattern.shape) > 1:
            raise expected("a pattern, or a list of them", f"shape {text(pattern.shape)}")
        return Spec(dtypes.string, (None,))

    def kernel(self, xp: ArrayModule, pattern: Array) -> Array:
        patterns = [pattern] if isinstance(pattern, bytes) else pattern.tolist()
        found = sorted({name for one in patterns for name in glob.glob(one)})  # noqa: PTH207 - of bytes, whole
        if self.is_required and not found:
            shown = ", ".join(repr(os.fsdecode(one)) for one in patterns)
            raise NotFoundError(f"no files are found at {shown}")
        out = np.empty(len(found), object)
        out[:] = found
        return out


@contextmanager
def file_errors(what: str, path: str) -> Iterator[None]:
    """A context that tells of a file that could not be used, by TensorFlow's errors."""
    try:
        yield
    except OSError as error:
        kind = _KINDS.get(type(error), UnknownError)
        if error.errno == errno.ENOSPC:
            kind = ResourceExhaustedError
        raise kind(f"cannot {what} the file {path!r}: {error.strerror or error}") from error


@contextmanager
def reading(filename: Array) -> Iterator[Any]:
    """A context with a file that is open for reading bytes; errors are TensorFlow's."""
    path = os.fsdecode(filename)
    with file_errors("read", path), open(path, "rb") as file:
        yield file


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """The contents of a file, as a string.

    Args:
        filename: Its name, a scalar.
        name: Name of the operation.

    Raises:
        NotFoundError: when it runs, if there is no such file; PermissionDeniedError if it may not
            be read.
    """
    return apply(ReadFile(), convert_to_tensor(filename, dtypes.string), name=name)


def write_file(filename: Any, contents: Any, name: str | None = None) -> Operation:
    """An operation that writes a file; its folder is made if it is not there.

    Args:
        filename: The file's name, a scalar.
        contents: A string, a scalar.
        name: Name of the operation.

    Raises:
        PermissionDeniedError: when it runs, if it may not be written; ResourceExhaustedError if
            the disk is full.
    """
    inputs = [convert_to_tensor(x, dtypes.string) for x in (filename, contents)]
    return apply_none(WriteFile(), *inputs, name=name)


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The names of the files that match patterns such as "data/*.csv", in order.

    Args:
        pattern: A pattern, or a vector of them, as of Python's `glob`.
        name: Name of the operation.

    Shapes: [files]
    """
    return apply(MatchingFiles(), convert_to_tensor(pattern, dtypes.string), name=name)
