"""Pipelines of arrays and numbers, and of what changes the order and the number of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.values.expected import expected
from flowscope.ops.host import dataset_ops as ops
from flowscope.runtime.datasets.dataset_pipelines import (
    Context,
    Element,
    EndOfDataset,
    Pipeline,
    Transformation,
    makers,
    pipeline_of,
    positive,
)
from flowscope.runtime.state.queue_transactions import goes_back
from flowscope.runtime.state.random_generators import philox

#: So many random numbers are drawn at once.
_BLOCK = 1024


class _Tensors(Pipeline):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        self._element: Element | None = dataset.inputs

    def next(self) -> Element:
        element, self._element = self._element, None
        if element is None:
            raise EndOfDataset
        return element


class _Rows(Pipeline):
    """Base of pipelines whose elements may be rows of arrays."""

    def next(self) -> Element:
        assert self.columns is not None
        found = self.indices(1)
        if not found:
            raise EndOfDataset
        i = found[0]
        return tuple([column[i] for column in self.columns])


class _Slices(_Rows):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        self.columns = arrays = dataset.inputs
        self._at = 0
        for i, array in enumerate(arrays):
            if np.ndim(array) == 0:
                raise expected(f"component {i} with a first axis of elements", "a scalar")
        counts = {len(a) for a in arrays}
        if len(counts) > 1:
            raise expected("components with as many slices each", sorted(counts))
        self._count = counts.pop()

    def indices(self, count: int) -> list[int]:
        first = self._at
        self._at = min(first + count, self._count)
        return list(range(first, self._at))

    def skip(self, count: int) -> int:
        found = min(count, self._count - self._at)
        self._at += found
        return found


class _Range(Pipeline):
    is_fresh = True

    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        start, stop, step = map(int, dataset.inputs)
        if step == 0:
            raise expected("a step of a range other than 0", 0)
        self._left = range(start, stop, step)

    def next(self) -> Element:
        if not self._left:
            raise EndOfDataset
        found = self._left[0]
        self._left = self._left[1:]
        return (np.int64(found),)

    def skip(self, count: int) -> int:
        found = min(count, len(self._left))
        self._left = self._left[found:]
        return found


class _Shuffle(Transformation, _Rows):
    """Draws each element from a buffer; the number of the draw says which random number decides.

    Of rows the buffer holds the numbers.
    """

    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        super().__init__(dataset, context)
        op: Any = dataset.op
        self.columns = self.input.columns
        self._size = positive("buffer_size", dataset.inputs[1])
        self._key = op.seed or (context.key, context.place)
        self._path = context.path if op.reshuffles else 0
        self._buffer: list[Any] = []
        self._draws = 0
        self._numbers: list[float] = []
        self._has_ended = False

    def next(self) -> Element:
        if self.columns is not None:
            return _Rows.next(self)
        if len(self._buffer) < self._size and not self._has_ended:
            self._fill()
        if not self._buffer:
            raise EndOfDataset
        found: Element = self._drawn()
        return found

    def indices(self, count: int) -> list[int]:
        if not self._draws:
            self._buffer = self.input.indices(self._size - 1)
        buffer, out = self._buffer, []
        given = self.input.indices(count)
        for one in given:
            buffer.append(one)
            out.append(self._drawn())
        for _ in range(min(count - len(given), len(buffer))):
            out.append(self._drawn())  # noqa: PERF401 (each draw changes the buffer)
        return out

    def skip(self, count: int) -> int:
        return super().skip(count) if self.columns is None else len(self.indices(count))

    def _drawn(self) -> Any:
        """Takes one out of the buffer."""
        buffer, position = self._buffer, self._draws % _BLOCK
        if not position:
            counter = (0, 0, self._path, self._draws // _BLOCK)
            self._numbers = philox(self._key, counter).random(_BLOCK).tolist()
        self._draws += 1
        chosen = int(self._numbers[position] * len(buffer))
        last = buffer.pop()
        if chosen == len(buffer):
            return last
        found, buffer[chosen] = buffer[chosen], last
        return found

    def _fill(self) -> None:
        buffer, size, take = self._buffer, self._size, self.input.next
        try:
            while len(buffer) < size:
                if not len(buffer) % _BLOCK:
                    self.control.check()
                buffer.append(take())
        except EndOfDataset:
            self._has_ended = True


class _Shard(Transformation):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        super().__init__(dataset, context)
        self._shards, index = (int(v) for v in dataset.inputs[1:])
        if not 0 <= index < self._shards:
            raise expected("0 <= index < num_shards", f"index {index} of {self._shards}")
        self._before = index

    def next(self) -> Element:
        self.control.check()
        if self._before:
            self._before -= self.input.skip(self._before)
            if self._before:
                raise EndOfDataset
        found = self.input.next()
        self._before = self._shards - 1
        return found


class _Repeat(Transformation):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        self._dataset = dataset.inputs[0]
        self._count = int(dataset.inputs[1])
        self._epoch = 0
        self._is_empty = True
        self.context, self.control = context, context.control
        self._open()

    def _open(self) -> None:
        self.input = pipeline_of(self._dataset, self.context.of_repetition(self._epoch))
        self.is_fresh, self.columns = self.input.is_fresh, self.input.columns

    def indices(self, count: int) -> list[int]:
        out: list[int] = []
        while len(out) < count and (self._count < 0 or self._epoch < self._count):
            found = self.input.indices(count - len(out))
            self._is_empty = self._is_empty and not found
            out += found
            if len(out) < count:
                try:
                    self._end_epoch()
                except EndOfDataset:
                    break
        return out

    def next(self) -> Element:
        while self._count < 0 or self._epoch < self._count:
            self.control.check()
            try:
                found = self.input.next()
            except EndOfDataset:
                self._end_epoch()
                continue
            self._is_empty = False
            return found
        raise EndOfDataset

    def _end_epoch(self) -> None:
        if self._is_empty:  # it would stay so for ever
            raise EndOfDataset
        self._epoch += 1
        self._is_empty = True
        if self._count < 0 or self._epoch < self._count:
            self._open()

    def skip(self, count: int) -> int:
        while self.passed < count and (self._count < 0 or self._epoch < self._count):
            self.control.check()
            found = self.input.skip(count - self.passed)
            self.passed += found
            self._is_empty = self._is_empty and not found
            if self.passed < count:
                try:
                    self._end_epoch()
                except EndOfDataset:
                    break
        done, self.passed = self.passed, 0
        return done


class _Take(Transformation):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        super().__init__(dataset, context)
        self._left = int(dataset.inputs[1])
        self.columns = self.input.columns

    def indices(self, count: int) -> list[int]:
        found = self.input.indices(count if self._left < 0 else min(count, self._left))
        self._left -= len(found) if self._left > 0 else 0
        return found

    def next(self) -> Element:
        if self._left == 0:
            raise EndOfDataset
        try:
            found = self.input.next()
        except Exception as e:
            if not goes_back(e) and self._left > 0:
                self._left -= 1
            raise
        self._left -= self._left > 0
        return found

    def skip(self, count: int) -> int:
        found = self.input.skip(count if self._left < 0 else min(count, self._left))
        self._left -= found if self._left > 0 else 0
        return found


class _Skip(Transformation):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        super().__init__(dataset, context)
        self._before = int(dataset.inputs[1])

    def next(self) -> Element:
        while self._before:
            self.control.check()
            found = self.input.skip(_BLOCK if self._before < 0 else min(self._before, _BLOCK))
            self._before -= found if self._before > 0 else 0
            if not found:
                raise EndOfDataset
        return self.input.next()


class _Zip(Pipeline):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        self._inputs = [
            pipeline_of(one, context.of_input(i)) for i, one in enumerate(dataset.inputs)
        ]
        self.is_fresh = all(one.is_fresh for one in self._inputs)
        self._parts: list[Element] = []
        self._skipped: list[int] = []

    def next(self) -> Element:
        parts = self._parts
        try:
            while len(parts) < len(self._inputs):
                parts.append(self._inputs[len(parts)].next())
        except Exception as e:
            if not goes_back(e):
                self._parts = []
            raise
        self._parts = []
        return tuple([value for part in parts for value in part])

    def skip(self, count: int) -> int:
        if self._parts or self.passed:
            return super().skip(count)
        while len(self._skipped) < len(self._inputs):
            self._skipped.append(self._inputs[len(self._skipped)].skip(count))
        found, self._skipped = min(self._skipped), []
        return found


class _Concatenate(Pipeline):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        self._left = [pipeline_of(one, context.of_input(i)) for i, one in enumerate(dataset.inputs)]
        self.is_fresh = all(one.is_fresh for one in self._left)

    def next(self) -> Element:
        while self._left:
            try:
                return self._left[0].next()
            except EndOfDataset:
                self._left = self._left[1:]
        raise EndOfDataset

    def skip(self, count: int) -> int:
        while self.passed < count and self._left:
            self.passed += self._left[0].skip(count - self.passed)
            if self.passed < count:
                self._left = self._left[1:]
        found, self.passed = self.passed, 0
        return found


class _IgnoreErrors(Transformation):
    def next(self) -> Element:
        while True:
            self.control.check()
            try:
                return self.input.next()
            except EndOfDataset:
                raise
            except Exception as e:
                if goes_back(e):
                    raise


makers |= {
    ops.ConcatenateDataset: _Concatenate,
    ops.IgnoreErrorsDataset: _IgnoreErrors,
    ops.RangeDataset: _Range,
    ops.RepeatDataset: _Repeat,
    ops.ShardDataset: _Shard,
    ops.ShuffleDataset: _Shuffle,
    ops.SkipDataset: _Skip,
    ops.TakeDataset: _Take,
    ops.TensorDataset: _Tensors,
    ops.TensorSliceDataset: _Slices,
    ops.ZipDataset: _Zip,
}

__all__: list[str] = []
