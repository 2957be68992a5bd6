"""`fs.data.Dataset`: input described as a dataset, and taken from an iterator in steps.

A dataset is a tensor that stands for what is to be done; elements are read and computed when steps
take them from an iterator, where that is placed, on its device or worker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.data.arguments import (
    AUTOTUNE,
    Yielded,
    as_number,
    as_parallel,
    as_structure,
    batch_inputs,
    padded_shape,
)
from flowscope.data.structure import Leaf, Structure, flatten, mapped, tensors_of
from flowscope.data.tracing import traced
from flowscope.errors import DTypeError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.op import Op
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import bool_, int64, string, variant
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import compatible
from flowscope.ops.array.arrays import size
from flowscope.ops.core.casting import cast
from flowscope.ops.core.flow import identity
from flowscope.ops.core.static_values import get_static_value
from flowscope.ops.host import dataset_ops as ops
from flowscope.ops.host.checks import Assert
from flowscope.ops.host.files import matching_files
from flowscope.ops.math.elementwise import maximum
from flowscope.ops.random.seeds import get_seed, seed_of
from flowscope.runtime.threads.cores import available_cores

if TYPE_CHECKING:
    from flowscope.data.iterator import Iterator


class Dataset:
    """A sequence of elements, each a tensor or a nested structure: tuples and dicts of tensors.

    It is made by `from_tensors`, `from_tensor_slices`, `from_generator`, `range`, `list_files` and
    the classes for files; each method gives another one.

    Attributes:
        output_types: Dtypes, in the structure of elements.
        output_shapes: Static shapes, in the same structure.
        output_classes: `fs.Tensor` or `fs.SparseTensor`, in the same structure.

    Example:
        >>> d = fs.data.Dataset.range(4).map(lambda v: v * v).batch(2).prefetch(1)
        >>> fs.Session().run(d.make_one_shot_iterator().get_next())
        array([0, 1])
    """

    def __init__(self, tensor: Tensor, structure: Structure, device: str = "") -> None:
        self._variant = tensor
        self._structure = structure
        self._device = device

    @property
    def output_types(self) -> Any:
        """Dtypes, in the structure of elements."""
        return self._structure.types

    @property
    def output_shapes(self) -> Any:
        """Static shapes, in the structure of elements."""
        return self._structure.shapes

    @property
    def output_classes(self) -> Any:
        """`fs.Tensor` or `fs.SparseTensor`, in the structure of elements."""
        return self._structure.classes

    def __repr__(self) -> str:
        return f"<fs.data.Dataset '{self._variant.op.name}' of {self._structure}>"

    # -- what it is made of -----------------------------------------------------------------------

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """Returns a dataset of one element.

        Args:
            tensors: The element: a tensor, a sparse tensor, or tuples and dicts of them.
        """
        structure, components = tensors_of(tensors, "tensors")
        return _made(ops.TensorDataset(), components, structure)

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """Returns a dataset of the slices of tensors along their first axes.

        Args:
            tensors: A tensor, or tuples and dicts of them, of one length.

        Shapes: [n, ...] each -> n elements of [...]

        Raises:
            InvalidArgumentError: if one is a scalar, or lengths differ.
        """
        structure, components = tensors_of(tensors, "tensors")
        if structure.is_sparse:
            raise DTypeError(
                "expected dense tensors, got a SparseTensor: fs.sparse.to_dense makes it one"
            )
        made = ops.TensorSliceDataset()
        slices = structure.with_dims(lambda dims: None if dims is None else dims[1:])
        return _made(made, components, slices)

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any,
        output_shapes: Any = None,
        args: Sequence[Any] | None = None,
    ) -> Dataset:
        """Returns a dataset of what a Python generator yields.

        Each pass calls `generator` anew. It runs in the process in which the iterator is placed; a
        worker gets the function sent. Ctrl-C and stops are heeded between two elements, so that a
        generator is never ended in its middle.

        Args:
            generator: A function that returns an iterable of elements.
            output_types: Dtypes, in the structure of elements.
            output_shapes: Shapes, in the same structure; None: nothing is known.
            args: Tensors, whose values the function gets as arguments.

        Raises:
            DTypeError: if `generator` cannot be called.
            InvalidArgumentError: when it runs, if an element has another structure, dtype or shape.
        """
        if not callable(generator):
            raise expected_dtype("a function as generator", repr(generator))
        structure = Structure.of(output_types, output_shapes)
        tensors = [convert_to_tensor(a, name="args") for a in args or ()]
        op = ops.GeneratorDataset(ops.new_token(), structure.dtypes, structure.dims)
        op.hold(get_default_graph(), Yielded(generator, structure), generator)
        return _made(op, tensors, structure)

    @staticmethod
    def range(*args: Any) -> Dataset:
        """Returns a dataset of int64 scalars: as Python's `range`, with the same arguments.

        Raises:
            InvalidArgumentError: if there are not 1 to 3 arguments; when it runs, if the step is 0.
        """
        if not 1 <= len(args) <= 3:
            raise expected("1 to 3 arguments of range", len(args))
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        inputs = [as_number(v, n) for v, n in ((start, "start"), (stop, "stop"), (step, "step"))]
        return _made(ops.RangeDataset(), inputs, Structure(Leaf(int64, ())))

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: int | None = None
    ) -> Dataset:
        """Returns a dataset of the names of the files that match patterns, as strings.

        Args:
            file_pattern: A pattern such as "data/*.csv", or a vector of them.
            shuffle: Whether they come in random order, another one in each repetition; None: yes.
            seed: Of the order, see `fs.set_random_seed`.

        Raises:
            InvalidArgumentError: when it runs, if no file matches.
        """
        with get_default_graph().name_scope("list_files"):
            pattern = convert_to_tensor(file_pattern, string, name="file_pattern")
            names = matching_files(pattern)
            count = cast(size(names), int64)
            check = Assert(count > 0, ["No files matched pattern: ", pattern])
            with get_default_graph().control_dependencies([check]):
                names = identity(names)
            found = Dataset.from_tensor_slices(names)
            if shuffle is None or shuffle:
                found = found.shuffle(maximum(count, 1), seed)
            return found

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """Returns a dataset of elements that have one of each dataset, in their structure.

        It ends with the shortest of them.

        Args:
            datasets: Tuples and dicts of datasets.

        Raises:
            DTypeError: if something in them is no dataset.
        """
        flat = flatten(datasets)
        for one in flat:
            _check_dataset(one, "datasets to zip")
        leaves = mapped(lambda one: one._structure.leaves, datasets)
        return _made(ops.ZipDataset(), [d._variant for d in flat], Structure(leaves))

    # -- functions of elements --------------------------------------------------------------------

    def map(self, map_func: Callable[..., Any], num_parallel_calls: int | None = None) -> Dataset:
        """Returns a dataset of what a function makes of each element.

        The function is called once, with tensors, and becomes a function of the graph. Its random
        operations draw other numbers for each element, which follow from the element's number
        alone.

        Args:
            map_func: Takes an element - a tuple as several arguments - and returns tensors, sparse
                tensors, or tuples and dicts of them.
            num_parallel_calls: So many elements are computed at a time, on threads; the order of
                elements stays. None: one, when it is asked for. `fs.data.experimental.AUTOTUNE`: as
                many as there are cores.

        Raises:
            DTypeError: if the function returns something else.
            InvalidArgumentError: if it has operations that may wait for other steps.
        """
        function, structure = traced(
            map_func, "map_func", [self._structure], True, _described_result
        )
        op = ops.MapDataset(function, as_parallel(num_parallel_calls))
        return self._then(op, function.captures, structure)

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """Returns a dataset of the elements for which a function is true.

        Args:
            predicate: Takes an element as in `map`, and returns a bool scalar.

        Raises:
            DTypeError: if it returns something else.
        """

        def describe(found: Any) -> tuple[None, list[Tensor]]:
            tensor = convert_to_tensor(found)
            if tensor.dtype is not bool_ or not compatible((), tensor.spec.shape):
                raise expected_dtype("a bool scalar from predicate", tensor.spec)
            return None, [tensor]

        function, _ = traced(predicate, "predicate", [self._structure], True, describe)
        return self._then(ops.FilterDataset(function), function.captures, self._structure)

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """Returns the datasets that a function makes of each element, one after the other.

        Args:
            map_func: Takes an element as in `map`, and returns a dataset.

        Raises:
            DTypeError: if it returns something else.
        """
        function, structure = traced(
            map_func, "map_func", [self._structure], True, _described_dataset
        )
        return self._then(ops.FlatMapDataset(function), function.captures, structure)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: int = AUTOTUNE,
        block_length: int = 1,
        num_parallel_calls: int | None = None,
    ) -> Dataset:
        """Returns the datasets that a function makes of each element, some at a time, in turns.

        Args:
            map_func: Takes an element as in `map`, and returns a dataset.
            cycle_length: So many of them are open at a time; -1: as many as there are cores.
            block_length: So many elements come from each before it is the next one's turn.
            num_parallel_calls: So many of them are read a block ahead, on threads; the order of
                elements stays. None: none.

        Raises:
            DTypeError: if the function returns something else.
            InvalidArgumentError: when it runs, if a length is not positive.
        """
        function, structure = traced(
            map_func, "map_func", [self._structure], True, _described_dataset
        )
        cycle = available_cores() if cycle_length == AUTOTUNE else cycle_length
        numbers_ = [as_number(cycle, "cycle_length"), as_number(block_length, "block_length")]
        op = ops.InterleaveDataset(function, as_parallel(num_parallel_calls))
        return self._then(op, [*numbers_, *function.captures], structure)

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
        """Folds a function over the elements: the last state, as tensors.

        A step that fetches it runs through the whole dataset.

        Args:
            initial_state: Tensors, or tuples and dicts of them.
            reduce_func: Takes the state and an element, and returns the next state.

        Raises:
            DTypeError: if it returns another structure or other dtypes.
        """
        state, components = tensors_of(initial_state, "initial_state")

        def describe(found: Any) -> tuple[Structure, list[Tensor]]:
            structure, tensors = tensors_of(as_structure(found), "state")
            state.with_dims(lambda dims: None).check_fits(structure, "reduce_func returns")
            return structure, tensors

        open_state = state.with_dims(lambda dims: None)
        function, after = traced(
            reduce_func, "reduce_func", [open_state, self._structure], False, describe
        )
        found = state.merged(after, "reduce_func returns")
        op = ops.DatasetReduce(function, seed_of(None, "ReduceDataset"), found.dtypes, found.dims)
        inputs = (self._variant, *components, *function.captures)
        made = get_default_graph().add(op, inputs, "ReduceDataset")
        return found.packed(made.outputs)

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Applies a function of datasets, such as those of `fs.data.experimental`.

        Raises:
            DTypeError: if that is no dataset.
        """
        found = transformation_func(self)
        _check_dataset(found, "what transformation_func returns")
        return found

    # -- batches ----------------------------------------------------------------------------------

    def batch(self, batch_size: Any, drop_remainder: Any = False) -> Dataset:
        """Returns a dataset of elements stacked up, so many at a time.

        Args:
            batch_size: How many, an int64 scalar.
            drop_remainder: Whether a last batch that is smaller is left out.

        Shapes: [...] -> [batch_size, ...]

        Raises:
            InvalidArgumentError: when it runs, if elements differ in shape, or batch_size is not
                positive.
        """
        self._check_dense("batch")
        inputs, first = batch_inputs(batch_size, drop_remainder)
        stacked = self._structure.with_dims(lambda dims: None if dims is None else (first, *dims))
        return self._then(ops.BatchDataset(), inputs, stacked)

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any,
        padding_values: Any = None,
        drop_remainder: Any = False,
    ) -> Dataset:
        """Returns a dataset of elements stacked up, each filled up to a common shape.

        Args:
            batch_size: How many, an int64 scalar.
            padded_shapes: A shape for each component, in the structure of elements; None or -1 for
                the size of the largest element of the batch.
            padding_values: A scalar for each component, in the same structure; None: zeros and
                empty strings.
            drop_remainder: Whether a last batch that is smaller is left out.

        Raises:
            InvalidArgumentError: if a shape does not fit; when it runs, if an element is larger.
        """
        self._check_dense("padded_batch")
        inputs, first = batch_inputs(batch_size, drop_remainder)
        shapes: list[Tensor] = []
        fills: list[Tensor] = []

        def pad(leaf: Leaf, shape: Any, *fill: Any) -> Leaf:
            tensor, dims = padded_shape(shape, leaf)
            shapes.append(tensor)
            default = b"" if leaf.dtype is string else np.zeros((), leaf.dtype.np_dtype)
            fills.append(convert_to_tensor(fill[0] if fill else default, leaf.dtype))
            return Leaf(leaf.dtype, None if dims is None else (first, *dims))

        others = [padded_shapes] if padding_values is None else [padded_shapes, padding_values]
        padded = Structure(mapped(pad, self._structure.leaves, *others))
        op = ops.PaddedBatchDataset(len(shapes))
        return self._then(op, [*inputs, *shapes, *fills], padded)

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: Any = False
    ) -> Dataset:
        """Returns a dataset of windows: datasets of neighbouring elements.

            pairs = fs.data.Dataset.range(5).window(2, shift=1, drop_remainder=True)
            pairs = pairs.flat_map(lambda window: window.batch(2))       # [0, 1], [1, 2], ...

        Args:
            size: Elements of a window, an int64 scalar.
            shift: By how many elements the next window begins later; None: `size`.
            stride: A window has every `stride`-th element.
            drop_remainder: Whether last windows that are smaller are left out.

        Returns:
            A dataset whose elements have a dataset in the place of each tensor.

        Raises:
            InvalidArgumentError: when it runs, if size, shift or stride is not positive.
        """
        self._check_dense("window")
        inputs = [
            as_number(size, "size"),
            as_number(size if shift is None else shift, "shift"),
            as_number(stride, "stride"),
            convert_to_tensor(drop_remainder, bool_, name="drop_remainder"),
        ]
        windows = Structure(mapped(_windowed, self._structure.leaves))
        return self._then(ops.WindowDataset(), inputs, windows)

    def unbatch(self) -> Dataset:
        """Returns a dataset of the slices of elements along their first axes.

        Shapes: [n, ...] -> n elements of [...]

        Raises:
            InvalidArgumentError: when it runs, if components differ in length.
        """
        self._check_dense("unbatch")
        if any(leaf.dims == () for leaf in self._structure.flat):
            raise expected("components with a first axis to unbatch", str(self._structure))
        slices = self._structure.with_dims(lambda dims: None if dims is None else dims[1:])
        return self._then(ops.UnbatchDataset(), [], slices)

    # -- order and number -------------------------------------------------------------------------

    def shuffle(
        self,
        buffer_size: Any,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
    ) -> Dataset:
        """Returns a dataset of the same elements in random order: each is drawn from a buffer.

        The order follows from the seed, and from nothing else: not from threads, or other runs.

        Args:
            buffer_size: Elements in the buffer, an int64 scalar: the more, the better they are
                mixed.
            seed: Of the order, together with the graph's (see `fs.set_random_seed`). With neither,
                each iterator has another order.
            reshuffle_each_iteration: Whether each repetition has another order; None: yes.

        Raises:
            InvalidArgumentError: when it runs, if buffer_size is not positive.
        """
        found = get_seed(seed)
        both = None if found[0] is None or found[1] is None else (found[0], found[1])
        reshuffles = reshuffle_each_iteration is None or bool(reshuffle_each_iteration)
        op = ops.ShuffleDataset(both, reshuffles)
        return self._then(op, [as_number(buffer_size, "buffer_size")], self._structure)

    def shard(self, num_shards: Any, index: Any) -> Dataset:
        """Returns a dataset of every `num_shards`-th element, from number `index`.

        Args:
            num_shards: Of how many parts it is one, an int64 scalar.
            index: Which one, from 0.

        Raises:
            InvalidArgumentError: if not 0 <= index < num_shards; when it runs, if that is not known
                before.
        """
        inputs = [as_number(num_shards, "num_shards"), as_number(index, "index")]
        known = [get_static_value(t) for t in inputs]
        if None not in known and not 0 <= known[1] < known[0]:
            raise expected("0 <= index < num_shards", f"index {known[1]} of {known[0]}")
        return self._then(ops.ShardDataset(), inputs, self._structure)

    def repeat(self, count: Any = None) -> Dataset:
        """Returns a dataset's elements, `count` times over; None or -1: for ever."""
        number = as_number(-1 if count is None else count, "count")
        return self._then(ops.RepeatDataset(), [number], self._structure)

    def take(self, count: Any) -> Dataset:
        """Returns a dataset of the first `count` elements; of all for -1."""
        return self._then(ops.TakeDataset(), [as_number(count, "count")], self._structure)

    def skip(self, count: Any) -> Dataset:
        """Returns a dataset of the elements behind the first `count`; of none for -1."""
        return self._then(ops.SkipDataset(), [as_number(count, "count")], self._structure)

    def concatenate(self, dataset: Dataset) -> Dataset:
        """Returns a dataset of these elements, and then those of another one.

        Raises:
            DTypeError: if its elements have another structure or other dtypes.
        """
        _check_dataset(dataset, "a dataset to concatenate")
        structure = self._structure.merged(dataset._structure, "a dataset to concatenate")
        return self._then(ops.ConcatenateDataset(), [dataset._variant], structure)

    def enumerate(self, start: Any = 0) -> Dataset:
        """Returns a dataset of pairs: the number of an element as int64, and the element.

        Args:
            start: The number of the first one.
        """
        return Dataset.zip((Dataset.range(start, np.iinfo(np.int64).max), self))

    # -- what is kept, and computed ahead ---------------------------------------------------------

    def cache(self, filename: Any = "") -> Dataset:
        """Returns a dataset whose elements are kept from the first pass that comes to its end.

        Args:
            filename: The file that keeps them, for later iterators and processes too; "": memory
                does, as long as the iterator is not set on a dataset again.
        """
        name = convert_to_tensor(filename, string, name="filename")
        return self._then(ops.CacheDataset(), [name], self._structure)

    def prefetch(self, buffer_size: Any) -> Dataset:
        """Returns the same dataset, whose elements are computed ahead, by a thread.

        Args:
            buffer_size: How many, an int64 scalar; `fs.data.experimental.AUTOTUNE`: as many as
                there are cores.
        """
        number = as_number(-1 if buffer_size is None else buffer_size, "buffer_size")
        found = self._then(ops.PrefetchDataset(), [number], self._structure)
        found._device = self._device
        return found

    # -- iterators --------------------------------------------------------------------------------

    def make_one_shot_iterator(self) -> Iterator:
        """Returns an iterator through the dataset that needs no initialisation.

        The dataset may use no placeholders and no variables.

        Raises:
            InvalidArgumentError: if it does.
        """
        from flowscope.data.iterator import one_shot

        return one_shot(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Iterator:
        """Returns an iterator through the dataset that begins when its `initializer` is run.

        Args:
            shared_name: Name of the iterator in its container (see `fs.container`), by which other
                sessions can use it; the operation's by default.
        """
        from flowscope.data.iterator import initializable

        return initializable(self, shared_name)

    # -- inside -----------------------------------------------------------------------------------

    def _then(self, op: Op, inputs: Sequence[Tensor], structure: Structure) -> Dataset:
        return _made(op, [self._variant, *inputs], structure)

    def _check_dense(self, what: str) -> None:
        if self._structure.is_sparse:
            raise DTypeError(
                f"expected dense tensors to {what}, got {self._structure}: fs.sparse.to_dense "
                "makes a sparse one dense, in a map"
            )


def _made(op: Op, inputs: Sequence[Tensor], structure: Structure) -> Dataset:
    made = get_default_graph().add(op, tuple(inputs), op.type).outputs[0]
    return Dataset(made, structure)


def _windowed(leaf: Leaf) -> Leaf:
    inner = Structure(leaf)
    return Leaf(variant, (), False, lambda tensor: Dataset(tensor, inner))


def _check_dataset(value: Any, what: str) -> None:
    if not isinstance(value, Dataset):
        raise expected_dtype(f"{what} as fs.data.Dataset", repr(value))


def _described_result(found: Any) -> tuple[Structure, list[Tensor]]:
    if isinstance(found, Dataset):
        raise DTypeError("expected tensors from map_func, got a dataset: flat_map takes those")
    return tensors_of(as_structure(found), "result")


def _described_dataset(found: Any) -> tuple[Structure, list[Tensor]]:
    _check_dataset(found, "what map_func returns")
    return found._structure, [found._variant]


__all__ = ["Dataset"]
