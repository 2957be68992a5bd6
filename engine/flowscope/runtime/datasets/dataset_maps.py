"""Pipelines that call a function with each element."""

from __future__ import annotations

from typing import Any

from flowscope.errors import OutOfRangeError
from flowscope.ops.host import dataset_ops as ops
from flowscope.runtime.datasets.dataset_functions import ElementFunction
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


class _Applied(Transformation):
    """Base of what calls a function with each element.

    An element whose call was ended from outside stays, for the next one.
    """

    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        super().__init__(dataset, context)
        op: Any = dataset.op
        captured = dataset.inputs[1 + len(op.scalars) :]
        self.function = ElementFunction(
            op.function, captured, self.control, context.key, context.path
        )
        self.number = 0
        self.held: Element | None = None

    def take(self) -> Element:
        """Returns the next element of the input, or the one that is left over."""
        if self.held is None:
            self.held = self.input.next()
        return self.held

    def call(self) -> tuple[Element, tuple[Any, ...]]:
        """Returns the next element of the input, and what the function returns for it."""
        element = self.take()
        try:
            found = self.function(self.number, element)
        except Exception as e:
            if not goes_back(e):
                self._pass()
            raise
        self._pass()
        return element, found

    def _pass(self) -> None:
        self.held = None
        self.number += 1


class Map(_Applied):
    """The results of a function for each element."""

    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        super().__init__(dataset, context)
        self.is_fresh = True

    def next(self) -> Element:
        """Returns the results for the next element."""
        try:
            return self.call()[1]
        except OutOfRangeError as e:  # a function may end the dataset
            raise EndOfDataset from e

    def skip(self, count: int) -> int:
        """Passes over elements; a function without effects is not called."""
        if not self.function.is_pure or self.held is not None or self.passed:
            return super().skip(count)
        found = self.input.skip(count)
        self.number += found
        return found


class _Filter(_Applied):
    def next(self) -> Element:
        while True:
            self.control.check()
            element, (is_kept,) = self.call()
            if is_kept:
                return element


class _FlatMap(_Applied):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        super().__init__(dataset, context)
        self.is_fresh = False
        self._current: Pipeline | None = None

    def next(self) -> Element:
        while True:
            self.control.check()
            if self._current is None:
                self._current = self.opened()
            try:
                return self._current.next()
            except EndOfDataset:
                self._current = None

    def opened(self) -> Pipeline:
        """Returns the pipeline of the next dataset that the function makes."""
        number = self.number
        _, (made,) = self.call()
        return pipeline_of(made, self.context.of_element(number))


class Interleave(_FlatMap):
    """The elements of several datasets at a time, in turns."""

    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        super().__init__(dataset, context)
        cycle = positive("cycle_length", dataset.inputs[1])
        self.block = positive("block_length", dataset.inputs[2])
        self._open: list[Pipeline | None] = [None] * cycle
        self.position = self._given = 0
        self._has_ended = False

    def next(self) -> Element:
        """Returns the next element of the dataset whose turn it is."""
        while not self._has_ended or any(self._open):
            self.control.check()
            current = self._open[self.position]
            if current is None:
                self._fill()
                continue
            try:
                found = current.next()
            except EndOfDataset:
                self._open[self.position] = None
                self._advance()
                continue
            self._given += 1
            if self._given == self.block:
                self._advance()
            return found
        raise EndOfDataset

    def _fill(self) -> None:
        if self._has_ended:
            self._advance()
            return
        try:
            self._open[self.position] = self.opened()
        except EndOfDataset:
            self._has_ended = True

    def _advance(self) -> None:
        self._given = 0
        self.position = (self.position + 1) % len(self._open)


makers |= {
    ops.FilterDataset: _Filter,
    ops.FlatMapDataset: _FlatMap,
}

__all__ = ["Interleave", "Map"]
