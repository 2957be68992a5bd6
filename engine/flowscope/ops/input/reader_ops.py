"""Readers as ops: a handle, and what reads, asks, resets, and saves where a reader is.

A read takes names of work units, mostly files, from a queue where the reader has none in progress:
so it may have to wait. It has `begin` in place of a kernel, as what takes from a queue; see
`flowscope.runtime.state.reader_state`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import compatible, text
from flowscope.ops.input.sources import (
    FixedLengthSource,
    IdentitySource,
    Item,
    LineSource,
    Position,
    RecordSource,
    Source,
    WholeFileSource,
)
from flowscope.ops.strings.string_op import check_string

#: Called once with the op's outputs, or with what went wrong.
Finish = Callable[[Any], None]


class ReaderHandle(Op, abstract=True, is_stateful=True, is_handle=True, family="reader"):
    """Base of the handles of readers, which live in a container."""

    container: str
    shared_name: str

    def infer(self) -> Spec:
        """A resource."""
        return Spec(dtypes.resource, ())

    def source(self, work: bytes, position: Position) -> Source:
        """Opens a work unit."""
        raise NotImplementedError


@frozen
class WholeFileReaderHandle(ReaderHandle, is_stateful=True, is_handle=True):
    """The handle of a reader of whole files."""

    container: str
    shared_name: str

    def source(self, work: bytes, position: Position) -> Source:
        return WholeFileSource(work, position)


@frozen
class IdentityReaderHandle(ReaderHandle, is_stateful=True, is_handle=True):
    """The handle of a reader whose records are the names of work units."""

    container: str
    shared_name: str

    def source(self, work: bytes, position: Position) -> Source:
        return IdentitySource(work, position)


@frozen
class TextLineReaderHandle(ReaderHandle, is_stateful=True, is_handle=True):
    """The handle of a reader of lines."""

    container: str
    shared_name: str
    skip_header_lines: int = 0

    def source(self, work: bytes, position: Position) -> Source:
        return LineSource(work, position, self.skip_header_lines)


@frozen
class FixedLengthRecordReaderHandle(ReaderHandle, is_stateful=True, is_handle=True):
    """The handle of a reader of records of one length.

    Attributes: `lengths` in bytes: of the header, of a record, of the footer, and from one record
        to the next.
    """

    container: str
    shared_name: str
    lengths: tuple[int, int, int, int]
    compression: str

    def source(self, work: bytes, position: Position) -> Source:
        return FixedLengthSource(work, position, self.lengths, self.compression)


@frozen
class TFRecordReaderHandle(ReaderHandle, is_stateful=True, is_handle=True):
    """The handle of a reader of files of records."""

    container: str
    shared_name: str
    compression: str

    def source(self, work: bytes, position: Position) -> Source:
        return RecordSource(work, position, self.compression)


class _ReaderOp(Op, abstract=True, is_stateful=True, is_differentiable=False, devices=("CPU",)):
    """Base of all ops of readers."""


class _Reads(_ReaderOp, abstract=True, is_blocking=True):
    empties: ClassVar[bool] = True

    def _outputs(self, items: Sequence[Item]) -> tuple[Any, ...]:
        raise NotImplementedError

    def _most(self, *count: Array) -> int:
        return 1

    def attempt(self, state: Any, *inputs: Array) -> tuple[Any, ...] | None:
        """Reads if no name has to be waited for."""
        queue, *count = inputs
        items = state.take(queue, self._most(*count))
        return None if items is None else self._outputs(items)

    def begin(self, state: Any, finish: Finish, *inputs: Array) -> Callable[[], None]:
        """Asks the reader for records."""
        queue, *count = inputs

        def finished(items: Any) -> None:
            finish(items if isinstance(items, BaseException) else self._outputs(items))

        give_up: Callable[[], None] = state.read(queue, self._most(*count), finished)
        return give_up


class ReaderRead(_Reads):
    """The next record of a reader, waiting for the name of a work unit where it has none.

    Shapes: reader [], queue [] -> key [], value []
    Raises: OutOfRangeError if the queue is closed and empty; what reading the file raises.
    """

    def infer(self, reader: Spec, queue: Spec) -> tuple[Spec, ...]:
        _check_handles(reader, queue)
        return Spec(dtypes.string, ()), Spec(dtypes.string, ())

    def _outputs(self, items: Sequence[Item]) -> tuple[Any, ...]:
        return items[0].key, items[0].value


class ReaderReadUpTo(_Reads):
    """The next records of a reader, at most n and all of one work unit.

    Shapes: reader [], queue [], n [] -> keys [k], values [k], 1 <= k <= n
    Raises: OutOfRangeError if the queue is closed and empty; what reading the file raises.
    """

    def infer(self, reader: Spec, queue: Spec, n: Spec) -> tuple[Spec, ...]:
        _check_handles(reader, queue)
        if n.dtype is not dtypes.int64:
            raise expected_dtype("the number of records as int64", n.dtype)
        if not compatible((), n.shape):
            raise expected("the number of records as a scalar", f"shape {text(n.shape)}")
        if n.constant is not None:
            self._most(n.constant)
        return Spec(dtypes.string, (None,)), Spec(dtypes.string, (None,))

    def _most(self, *count: Array) -> int:
        most = int(count[0])
        if most <= 0:
            raise expected("a number of records above 0", most)
        return most

    def _outputs(self, items: Sequence[Item]) -> tuple[Any, ...]:
        keys, values = np.empty(len(items), object), np.empty(len(items), object)
        keys[:] = [i.key for i in items]
        values[:] = [i.value for i in items]
        return keys, values


class _Asks(_ReaderOp, abstract=True, reads_state=True, accepts_empty=True):
    def infer(self, reader: Spec) -> Spec:
        _check_handles(reader)
        return Spec(dtypes.int64, ())


class ReaderNumRecordsProduced(_Asks):
    """How many records a reader has produced since it was made or reset."""

    def kernel(self, xp: ArrayModule, state: Any) -> Array:
        return np.int64(state.progress.num_records_produced)


class ReaderNumWorkUnitsCompleted(_Asks):
    """How many work units a reader has read to their ends since it was made or reset."""

    def kernel(self, xp: ArrayModule, state: Any) -> Array:
        return np.int64(state.progress.work_finished)


class ReaderSerializeState(_ReaderOp, reads_state=True, accepts_empty=True):
    """Where a reader is, as bytes for `ReaderRestoreState`."""

    def infer(self, reader: Spec) -> Spec:
        _check_handles(reader)
        return Spec(dtypes.string, ())

    def kernel(self, xp: ArrayModule, state: Any) -> Any:
        return state.progress.SerializeToString()


class ReaderReset(_ReaderOp):
    """Makes a reader new: with no work unit in progress, and counts of 0."""

    def infer(self, reader: Spec) -> tuple[Spec, ...]:
        _check_handles(reader)
        return ()

    def kernel(self, xp: ArrayModule, state: Any) -> None:
        state.reset()


class ReaderRestoreState(_ReaderOp):
    """Puts a reader to where another one, or itself, has been.

    Raises: InvalidArgumentError if the bytes are no state; NotFoundError if the file is gone.
    """

    def infer(self, reader: Spec, state: Spec) -> tuple[Spec, ...]:
        _check_handles(reader)
        check_string(state)
        if not compatible((), state.shape):
            raise expected("the state as a scalar", f"shape {text(state.shape)}")
        return ()

    def kernel(self, xp: ArrayModule, reader: Any, state: Array) -> None:
        reader.restore(state)


def _check_handles(*handles: Spec) -> None:
    for what, handle in zip(("a reader", "a queue"), handles):
        if handle.dtype is not dtypes.resource or handle.variable is not None:
            raise expected_dtype(what, handle)


__all__ = [
    "FixedLengthRecordReaderHandle",
    "IdentityReaderHandle",
    "ReaderHandle",
    "ReaderNumRecordsProduced",
    "ReaderNumWorkUnitsCompleted",
    "ReaderRead",
    "ReaderReadUpTo",
    "ReaderReset",
    "ReaderRestoreState",
    "ReaderSerializeState",
    "TFRecordReaderHandle",
    "TextLineReaderHandle",
    "WholeFileReaderHandle",
]
