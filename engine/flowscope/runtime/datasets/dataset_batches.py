"""Pipelines that stack elements up, and take them apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import text
from flowscope.ops.host import dataset_ops as ops
from flowscope.runtime.datasets.dataset_pipelines import (
    Context,
    Element,
    EndOfDataset,
    Pipeline,
    Transformation,
    makers,
    positive,
)


class _Batch(Transformation):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        super().__init__(dataset, context)
        self.is_fresh = True
        self._size = positive("batch_size", dataset.inputs[1])
        self._drops = bool(dataset.inputs[2])
        self._rows: list[Element] = []
        self._columns = self.input.columns

    def next(self) -> Element:
        rows, size, take = self._rows, self._size, self.input.next
        self.control.check()
        if self._columns is not None:
            return self._gathered(self._columns)
        try:
            while len(rows) < size:
                rows.append(take())
        except EndOfDataset:
            if not rows or self._drops:
                rows.clear()
                raise
        self._rows = []
        return self.stacked(rows)

    def _gathered(self, columns: tuple[Any, ...]) -> Element:
        found = self.input.indices(self._size)
        if not found or (self._drops and len(found) < self._size):
            raise EndOfDataset
        indices = np.array(found)
        return tuple([column.take(indices, 0) for column in columns])

    def stacked(self, rows: list[Element]) -> Element:
        """Returns elements as one."""
        return tuple([stacked(column, i) for i, column in enumerate(zip(*rows))])

    def skip(self, count: int) -> int:
        if self._rows or self.passed:
            return super().skip(count)
        found = self.input.skip(count * self._size)
        whole, rest = divmod(found, self._size)
        return whole + (rest > 0 and not self._drops)


def stacked(values: Sequence[Any], index: int) -> Any:
    """Returns the values of one component, along a new first axis.

    Raises:
        InvalidArgumentError: if their shapes differ.
    """
    first = values[0]
    if isinstance(first, bytes):
        out = np.empty(len(values), object)
        out[:] = values
        return out
    if not isinstance(first, np.ndarray):
        if any(isinstance(v, np.ndarray) for v in values):
            _refuse(values, index)
        return np.array(values, first.dtype)
    shape = first.shape
    out = np.empty((len(values), *shape), first.dtype)
    for i, value in enumerate(values):
        if np.shape(value) != shape:
            _refuse(values, index)
        out[i] = value
    return out


def _refuse(values: Sequence[Any], index: int) -> None:
    shapes = dict.fromkeys(text(np.shape(v)) for v in values)
    raise InvalidArgumentError(
        f"expected elements of one shape for a batch, got component {index} of shapes "
        f"{', '.join(shapes)}: padded_batch fills them up"
    )


class _PaddedBatch(_Batch):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        super().__init__(dataset, context)
        count = dataset.op.count
        self._shapes = [tuple(map(int, s)) for s in dataset.inputs[3 : 3 + count]]
        self._fills = dataset.inputs[3 + count :]
        self._columns = None

    def stacked(self, rows: list[Element]) -> Element:
        facts = zip(zip(*rows), self._shapes, self._fills, strict=True)
        return tuple([_padded(column, s, fill, i) for i, (column, s, fill) in enumerate(facts)])


def _padded(values: Sequence[Any], shape: tuple[int, ...], fill: Any, index: int) -> Any:
    shapes = [np.shape(v) for v in values]
    if any(len(s) != len(shape) for s in shapes):
        odd = next(s for s in shapes if len(s) != len(shape))
        raise expected(f"component {index} of rank {len(shape)}", f"shape {text(odd)}")
    most = np.max(np.array(shapes, np.int64).reshape(len(values), len(shape)), axis=0, initial=0)
    sizes = [int(m) if n < 0 else n for n, m in zip(shape, most)]
    if any(m > n for n, m in zip(sizes, most)):
        raise expected(f"component {index} no larger than {text(tuple(sizes))}", text(tuple(most)))
    is_text = isinstance(fill, bytes)
    out = np.full((len(values), *sizes), fill, object if is_text else fill.dtype)
    for row, value in zip(out, values) if sizes else ():
        row[tuple([slice(n) for n in np.shape(value)])] = value
    if not sizes:
        out[:] = values
    return out


class _Elements:
    """Stands in the place of an op for elements that are there; their values are its inputs."""

    type = "window"


class _Given(Pipeline):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        self._values = dataset.inputs
        self._at = 0

    def next(self) -> Element:
        if self._at == len(self._values):
            raise EndOfDataset
        self._at += 1
        return (self._values[self._at - 1],)


class _Window(Transformation):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        super().__init__(dataset, context)
        size, shift, stride, drops = dataset.inputs[1:]
        self._stride = positive("stride", stride)
        self._span = (positive("size", size) - 1) * self._stride + 1
        self._shift = positive("shift", shift)
        self._drops = bool(drops)
        self._rows: list[Element] = []
        #: So many elements are passed over before the next window.
        self._before = 0

    def next(self) -> Element:
        self.control.check()
        rows = self._rows
        try:
            while self._before:
                if not (found := self.input.skip(self._before)):
                    raise EndOfDataset
                self._before -= found
            while len(rows) < self._span:
                rows.append(self.input.next())
        except EndOfDataset:
            if not rows or self._drops:
                rows.clear()
                raise
        window = rows[:: self._stride]
        self._before = max(0, self._shift - len(rows))
        self._rows = rows[self._shift :]
        return tuple([ops.DatasetValue(_Elements(), values) for values in zip(*window)])


class _Unbatch(Transformation):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        super().__init__(dataset, context)
        self.is_fresh = False
        self._rows: Iterator[Element] = iter(())

    def next(self) -> Element:
        while True:
            self.control.check()
            found = next(self._rows, None)
            if found is not None:
                return found
            element = self.input.next()
            counts = {len(v) if np.ndim(v) else None for v in element}
            if len(counts) > 1 or None in counts:
                shapes = ", ".join(text(np.shape(v)) for v in element)
                raise expected("components with as many slices each", f"shapes {shapes}")
            self._rows = zip(*element)


makers |= {
    ops.BatchDataset: _Batch,
    ops.PaddedBatchDataset: _PaddedBatch,
    ops.UnbatchDataset: _Unbatch,
    ops.WindowDataset: _Window,
    _Elements: _Given,
}

__all__: list[str] = []
