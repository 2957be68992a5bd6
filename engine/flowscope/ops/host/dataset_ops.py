"""Datasets as ops: what gives one dataset out of others, and what runs through one.

The value of a dataset is a `DatasetValue`: the op with the values of its inputs. Nothing is read or
computed for it. An iterator goes through it (`runtime.datasets.dataset_pipelines`), element by
element; an element is a tuple of arrays, one per component.

Ops that apply a function to elements have it as an attribute, `function`: in a graph it is a
function of that, in a plan the program that was planned of it (`plan.partition.element_functions`).
What the function takes from outside stands behind the other inputs.
"""

from __future__ import annotations

from typing import Any, ClassVar

from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.providers import load
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, compatible, text
from flowscope.ops.host.py_functions import HoldsFunction, new_token

#: Runs through a dataset: `reduce` of `runtime.datasets.dataset_reduction`, which fills it.
reducers: list[Any] = []


class DatasetValue:
    """A dataset in a step: immutable.

    Attributes:
        op: What it was made by.
        inputs: The values of the op's inputs: datasets, arrays, and what handles stand for.
    """

    __slots__ = ("inputs", "op")

    def __init__(self, op: Any, inputs: tuple[Any, ...]) -> None:
        self.op = op
        self.inputs = inputs

    def __repr__(self) -> str:
        return f"<dataset of {self.op.type}>"


class DatasetOp(
    Op,
    abstract=True,
    is_stateful=True,
    reads_state=True,
    accepts_empty=True,
    is_differentiable=False,
    devices=("CPU",),
):
    """Base of the ops that give a dataset.

    Class attributes:
        datasets: How many of the inputs are datasets, from the first; None: all.
        scalars: The dtypes of the inputs behind them, which are scalars, up to what a function
            captures.
    """

    datasets: ClassVar[int | None] = 1
    scalars: ClassVar[tuple[DType, ...]] = ()

    def infer(self, *inputs: Spec) -> Spec:
        """A dataset."""
        count = len(inputs) if self.datasets is None else self.datasets
        for i, spec in enumerate(inputs[:count]):
            if spec.dtype is not dtypes.variant:
                raise expected_dtype(f"a dataset as input {i}", spec.dtype)
        for i, (spec, dtype) in enumerate(zip(inputs[count:], self.scalars)):
            if spec.dtype is not dtype:
                raise expected_dtype(f"{dtype} as input {count + i}", spec.dtype)
            self._check_rank(count + i, spec)
        return Spec(dtypes.variant, ())

    def _check_rank(self, index: int, spec: Spec) -> None:
        if not compatible((), spec.shape):
            raise expected(f"a scalar as input {index}", f"shape {text(spec.shape)}")

    def kernel(self, xp: ArrayModule, *inputs: Array) -> Any:
        """Returns the dataset."""
        return DatasetValue(self, inputs)


class _Source(DatasetOp, abstract=True, datasets=0):
    pass


@frozen
class TensorDataset(_Source):
    """A dataset of one element: the inputs."""


@frozen
class TensorSliceDataset(_Source):
    """A dataset of the slices of the inputs along their first axes.

    Shapes: [n, ...] per input
    Raises: InvalidArgumentError if an input is a scalar, or the n differ.
    """

    def infer(self, *inputs: Spec) -> Spec:
        for i, spec in enumerate(inputs):
            if spec.shape == ():
                raise expected(f"component {i} with a first axis of elements", "a scalar")
        counts = {s.shape[0] for s in inputs if s.shape and s.shape[0] is not None}
        if len(counts) > 1:
            raise expected("components with as many slices each", sorted(counts))
        return super().infer()


@frozen
class RangeDataset(_Source, scalars=(dtypes.int64,) * 3):
    """A dataset of the integers from start to stop, exclusive, by step.

    Shapes: start [], stop [], step []
    Raises: InvalidArgumentError if step is 0.
    """


@frozen
class GeneratorDataset(
    HoldsFunction,
    is_stateful=True,
    reads_state=True,
    accepts_empty=True,
    is_differentiable=False,
):
    """A dataset of the elements of a Python generator, which a function makes for each pass.

    Attributes: `token` names the function, `dtypes` are those of the components, `shapes` theirs.
    Raises: InvalidArgumentError if what it yields does not fit.
    """

    token: str
    dtypes: tuple[DType, ...]
    shapes: tuple[Dims, ...]

    def infer(self, *inputs: Spec) -> Spec:
        return Spec(dtypes.variant, ())

    def kernel(self, xp: ArrayModule, *inputs: Array) -> Any:
        return DatasetValue(self, inputs)


class _Files(_Source, abstract=True):
    def _check_rank(self, index: int, spec: Spec) -> None:
        if index:
            super()._check_rank(index, spec)
        elif spec.shape is not None and len(spec.shape) > 1:
            raise expected("a file name, or a vector of them", f"shape {text(spec.shape)}")


@frozen
class TextLineDataset(_Files, scalars=(dtypes.string, dtypes.string, dtypes.int64)):
    """A dataset of the lines of files, without their ends.

    Shapes: filenames [n] or [], compression_type [], buffer_size []
    Raises: NotFoundError if there is no such file.
    """


@frozen
class TFRecordDataset(_Files, scalars=(dtypes.string, dtypes.string)):
    """A dataset of the records of files in TensorFlow's format of records.

    Shapes: filenames [n] or [], compression_type []
    Raises: NotFoundError if there is no such file; DataLossError if a record is damaged.
    """


@frozen
class FixedLengthRecordDataset(
    _Files,
    scalars=(dtypes.string, dtypes.int64, dtypes.int64, dtypes.int64, dtypes.int64, dtypes.string),
):
    """A dataset of the records of one length in files.

    Shapes: filenames [n] or [], header_bytes [], record_bytes [], footer_bytes [], buffer_size [],
        compression_type []
    Raises: NotFoundError if there is no such file; InvalidArgumentError if the bytes of one are no
        multiple of the record's.
    """


class _Applies(DatasetOp, abstract=True):
    #: A function of the graph, or the program that was planned of it.
    function: Any
    #: What plans make a program of `function` for.
    plans_function: ClassVar[bool] = True


@frozen
class MapDataset(_Applies):
    """A dataset of the results of a function for each element.

    Attributes: `parallel` elements are computed at a time; 0: one, by who asks for it; -1: as many
        as there are cores.
    """

    function: Any
    parallel: int = 0
    plans_function: ClassVar[bool] = True


@frozen
class FilterDataset(_Applies):
    """A dataset of the elements for which a function is true."""

    function: Any
    plans_function: ClassVar[bool] = True


@frozen
class FlatMapDataset(_Applies):
    """The datasets that a function makes of each element, one after the other."""

    function: Any
    plans_function: ClassVar[bool] = True


@frozen
class InterleaveDataset(_Applies, scalars=(dtypes.int64, dtypes.int64)):
    """The datasets that a function makes of each element, some at a time, in turns.

    Attributes: `parallel` of them are read ahead at a time; 0: none; -1: as many as there are
        cores.
    Shapes: dataset [], cycle_length [], block_length []
    Raises: InvalidArgumentError if a length is not positive.
    """

    function: Any
    parallel: int = 0
    plans_function: ClassVar[bool] = True


@frozen
class BatchDataset(DatasetOp, scalars=(dtypes.int64, dtypes.bool_)):
    """A dataset of elements stacked up, so many at a time.

    Shapes: dataset [], batch_size [], drop_remainder []
    Raises: InvalidArgumentError if batch_size is not positive, or elements differ in shape.
    """


@frozen
class PaddedBatchDataset(DatasetOp, scalars=(dtypes.int64, dtypes.bool_)):
    """A dataset of elements stacked up, so many at a time, each filled up to a common shape.

    Attributes: `count` is the number of components.
    Shapes: dataset [], batch_size [], drop_remainder []; then a shape [rank] per component, -1 for
        the longest; then a value [] per component to fill with
    Raises: InvalidArgumentError if batch_size is not positive, or an element is larger.
    """

    count: int


@frozen
class UnbatchDataset(DatasetOp):
    """A dataset of the slices of elements along their first axes.

    Raises: InvalidArgumentError if components differ in length.
    """


@frozen
class ShuffleDataset(DatasetOp, scalars=(dtypes.int64,)):
    """A dataset of the same elements in random order: each is drawn from a buffer.

    Attributes: `seed` is (graph seed, op seed), None: another order for each iterator; with
        `reshuffles` repetitions have orders of their own.
    Shapes: dataset [], buffer_size []
    Raises: InvalidArgumentError if buffer_size is not positive.
    """

    seed: tuple[int, int] | None
    reshuffles: bool = True


@frozen
class ShardDataset(DatasetOp, scalars=(dtypes.int64, dtypes.int64)):
    """A dataset of every num_shards-th element, from number index.

    Shapes: dataset [], num_shards [], index []
    Raises: InvalidArgumentError if not 0 <= index < num_shards.
    """


@frozen
class RepeatDataset(DatasetOp, scalars=(dtypes.int64,)):
    """A dataset's elements, count times over; for ever for -1.

    Shapes: dataset [], count []
    """


@frozen
class TakeDataset(DatasetOp, scalars=(dtypes.int64,)):
    """The first count elements of a dataset; all for -1.

    Shapes: dataset [], count []
    """


@frozen
class SkipDataset(DatasetOp, scalars=(dtypes.int64,)):
    """The elements of a dataset behind the first count; none for -1.

    Shapes: dataset [], count []
    """


@frozen
class CacheDataset(DatasetOp, scalars=(dtypes.string,)):
    """A dataset that is computed once, and kept: in memory, or in a file for a name that is not "".

    Shapes: dataset [], filename []
    """


@frozen
class PrefetchDataset(DatasetOp, scalars=(dtypes.int64,)):
    """A dataset whose elements are computed ahead, by another thread.

    Shapes: dataset [], buffer_size [] (-1: one per core)
    """


@frozen
class ZipDataset(DatasetOp, datasets=None):
    """A dataset of elements that have the components of one of each input; the shortest ends it."""


@frozen
class ConcatenateDataset(DatasetOp, datasets=2):
    """The elements of one dataset, then those of another."""


@frozen
class WindowDataset(DatasetOp, scalars=(dtypes.int64, dtypes.int64, dtypes.int64, dtypes.bool_)):
    """A dataset of windows: per component a dataset of some neighbouring elements.

    Shapes: dataset [], size [], shift [], stride [], drop_remainder []
    Raises: InvalidArgumentError if size, shift or stride is not positive.
    """


@frozen
class IgnoreErrorsDataset(DatasetOp):
    """A dataset without the elements that could not be computed."""


@frozen
class DatasetReduce(
    Op,
    is_stateful=True,
    reads_state=True,
    accepts_empty=True,
    is_random=True,
    is_differentiable=False,
    devices=("CPU",),
):
    """A function folded over the elements of a dataset: the last state.

    Attributes: `function` as of `MapDataset`; the components of the state have `dtypes`, `shapes`;
        what is random and has no seed follows from `seed` and the run.
    Shapes: dataset [], then the components of the first state
    """

    function: Any
    seed: int
    dtypes: tuple[DType, ...]
    shapes: tuple[Dims, ...]
    plans_function: ClassVar[bool] = True

    def infer(self, dataset: Spec, *inputs: Spec) -> Any:
        if dataset.dtype is not dtypes.variant:
            raise expected_dtype("a dataset as input 0", dataset.dtype)
        return tuple([Spec(d, s) for d, s in zip(self.dtypes, self.shapes, strict=True)])

    def kernel(self, xp: ArrayModule, generator: Any, dataset: Any, *inputs: Array) -> Any:
        if not reducers:
            load("dataset_reducers")
        count = len(self.dtypes)
        found = reducers[0](self, generator, dataset, inputs[:count], inputs[count:])
        return found[0] if count == 1 else tuple(found)


__all__ = [
    "BatchDataset",
    "CacheDataset",
    "ConcatenateDataset",
    "DatasetOp",
    "DatasetReduce",
    "DatasetValue",
    "FilterDataset",
    "FixedLengthRecordDataset",
    "FlatMapDataset",
    "GeneratorDataset",
    "IgnoreErrorsDataset",
    "InterleaveDataset",
    "MapDataset",
    "PaddedBatchDataset",
    "PrefetchDataset",
    "RangeDataset",
    "RepeatDataset",
    "ShardDataset",
    "ShuffleDataset",
    "SkipDataset",
    "TFRecordDataset",
    "TakeDataset",
    "TensorDataset",
    "TensorSliceDataset",
    "TextLineDataset",
    "UnbatchDataset",
    "WindowDataset",
    "ZipDataset",
    "new_token",
]
