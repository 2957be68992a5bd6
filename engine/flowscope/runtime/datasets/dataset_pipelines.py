"""Going through datasets: a pipeline per dataset takes elements from those of its inputs.

A pipeline gives elements until it raises `EndOfDataset`. What ends a step from outside may end the
computation of an element anywhere: then the pipeline keeps what it has taken from its inputs, and
the next call goes on with that, so nothing is lost. An element that fails counts as taken.

Whatever is random follows from seeds - where there are none, from the iterator's key - and from the
numbers of elements and repetitions: never from threads or other runs. So a pipeline is at
element n in a state that n alone says, and `skip` may get there without computing what nobody
wants.

The transformations are in `dataset_order`, `dataset_batches`, `dataset_maps` and `dataset_ahead`.

Source: what each does is TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowscope.graph.values.expected import expected
from flowscope.ops.host import dataset_ops as ops
from flowscope.runtime.datasets.dataset_functions import PassControl, mixed
from flowscope.runtime.state.queue_transactions import goes_back

#: The values of one element, one per component.
Element = tuple[Any, ...]


class EndOfDataset(Exception):
    """There are no more elements."""


class Context:
    """Facts that pipelines of one pass of an iterator share, and numbers that tell them apart.

    Attributes:
        control: Ends it from outside.
        key: What random numbers follow from where nothing else says so.
        caches: What was kept in memory, by `cache_key`.
    """

    __slots__ = ("_epoch", "_nest", "_place", "caches", "control", "key")

    def __init__(
        self,
        control: PassControl,
        key: int,
        caches: dict[Any, list[Element]],
        place: int = 0,
        epoch: int = 0,
        nest: int = 0,
    ) -> None:
        self.control, self.key, self.caches = control, key, caches
        self._place, self._epoch, self._nest = place, epoch, nest

    @property
    def path(self) -> int:
        """Tells a pipeline from those of other repetitions."""
        return self._epoch

    @property
    def place(self) -> int:
        """Tells it from those of other datasets."""
        return self._place

    @property
    def cache_key(self) -> tuple[int, int]:
        """Key of a cache: the same for pipelines of one dataset on the same data."""
        return self._place, self._nest

    def of_input(self, index: int) -> Context:
        """Returns the context of an input's pipeline."""
        return self._made(mixed(self._place, index), self._epoch, self._nest)

    def of_repetition(self, number: int) -> Context:
        """Returns the context of a repetition of an input."""
        return self._made(mixed(self._place, 0), mixed(self._epoch, number), self._nest)

    def of_element(self, number: int) -> Context:
        """Returns the context of a dataset which was made of an element."""
        epoch, nest = mixed(self._epoch, number), mixed(self._nest, number)
        return self._made(mixed(self._place, 1), epoch, nest)

    def _made(self, place: int, epoch: int, nest: int) -> Context:
        return Context(self.control, self.key, self.caches, place, epoch, nest)


class Pipeline:
    """Gives the elements of a dataset, one after the other, to one thread at a time.

    Attributes:
        is_fresh: Whether nobody else has the arrays of its elements.
        passed: How many elements a `skip` has passed over that was ended from outside.
        columns: The arrays whose rows its elements are, for `indices`; None where they are not.
    """

    is_fresh = False
    passed = 0
    columns: tuple[Any, ...] | None = None

    def next(self) -> Element:
        """Returns the next element.

        Raises:
            EndOfDataset: if there is none.
        """
        raise NotImplementedError

    def indices(self, count: int) -> list[int]:
        """Returns which rows of `columns` the next elements are; fewer at the end.

        Nothing ends it from outside: a batch takes so many rows at once.
        """
        raise NotImplementedError

    def skip(self, count: int) -> int:
        """Passes over elements, as if they had been taken; returns over how many.

        Who is ended from outside calls it again with the same number before anything else.
        """
        while self.passed < count:
            try:
                self.next()
            except EndOfDataset:
                break
            except Exception as e:
                if goes_back(e):
                    raise
            self.passed += 1
        found, self.passed = self.passed, 0
        return found


#: Makes the pipeline of a dataset of one op.
Make = Callable[[ops.DatasetValue, Context], Pipeline]
#: By op; modules that have pipelines fill it.
makers: dict[type, Make] = {}


def pipeline_of(dataset: ops.DatasetValue, context: Context) -> Pipeline:
    """Returns a new pipeline of a dataset."""
    return makers[type(dataset.op)](dataset, context)


class Transformation(Pipeline):
    """A pipeline with one input, of the op's first one."""

    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        self.context = context
        self.control = context.control
        self.input = pipeline_of(dataset.inputs[0], context.of_input(0))
        self.is_fresh = self.input.is_fresh


def positive(what: str, value: Any) -> int:
    """Returns a number as int; raises InvalidArgumentError if it is not above 0."""
    if int(value) <= 0:
        raise expected(f"{what} above 0", int(value))
    return int(value)


__all__ = [
    "Context",
    "Element",
    "EndOfDataset",
    "Make",
    "Pipeline",
    "Transformation",
    "makers",
    "pipeline_of",
    "positive",
]
