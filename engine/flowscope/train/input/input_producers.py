"""Input by queues: producers of names, numbers and slices.

Each function makes a queue and a queue runner that fills it; `start_queue_runners`, or a monitored
session, starts the runner's threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import float32, int64, string
from flowscope.graph.values.expected import expected
from flowscope.ops.array.arrays import range as range_of, shape, size
from flowscope.ops.array.gathering import gather
from flowscope.ops.core.casting import cast
from flowscope.ops.core.flow import identity
from flowscope.ops.host.checks import Assert
from flowscope.ops.host.files import matching_files
from flowscope.ops.host.summaries import scalar
from flowscope.ops.random.shuffling import random_shuffle
from flowscope.ops.state.containers.queues import FIFOQueue
from flowscope.ops.state.graph_keys import GraphKeys
from flowscope.ops.state.variables import Variable
from flowscope.train.input.queue_runner import QueueRunner, add_queue_runner

__all__ = [
    "input_producer",
    "limit_epochs",
    "match_filenames_once",
    "range_input_producer",
    "slice_input_producer",
    "string_input_producer",
]


def match_filenames_once(pattern: Any, name: str | None = None) -> Variable:
    """The names of the files that match patterns: a local variable, which looks once.

    Run `fs.local_variables_initializer()` first.

    Args:
        pattern: A pattern, or a vector of them, see `fs.matching_files`.
        name: Name of the variable.
    """
    with get_default_graph().name_scope(name or "matching_filenames") as scope:
        return Variable(
            matching_files(pattern),
            trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
            validate_shape=False,
            name=scope,
        )


def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Any:
    """A tensor that can be read `num_epochs` times.

    The count is a local variable: run `fs.local_variables_initializer()` first.

    Args:
        tensor: The tensor.
        num_epochs: How often it can be read; None: for ever.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if `num_epochs` is not positive.
        OutOfRangeError: when it is read once more.
    """
    if num_epochs is None:
        return tensor
    if not num_epochs > 0:
        raise expected("num_epochs above 0", num_epochs)
    with get_default_graph().name_scope(name or "limit_epochs") as scope:
        epochs = Variable(
            0, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES], name="epochs", dtype=int64
        )
        counted = epochs.count_up_to(int(num_epochs))
        with get_default_graph().control_dependencies([counted]):
            return identity(tensor, name=scope)


def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: Operation | None = None,
) -> FIFOQueue:
    """A queue that is filled with the rows of a tensor, again and again.

    Args:
        input_tensor: The rows, of rank 1 or more.
        element_shape: The shape of a row, where the tensor does not tell it.
        num_epochs: How often all rows come, before the queue is closed; None: for ever. The count
            is a local variable.
        shuffle: True: the rows are shuffled in each epoch.
        seed: Of the shuffling. An epoch's order follows from it, from the graph's seed and from the
            number of the epoch, not from what else runs.
        capacity: Of the queue.
        shared_name: Name of the queue in its container.
        summary_name: Name of a summary of how full the queue is; None: there is none.
        name: Name of the scope.
        cancel_op: Run when the runner is stopped, see `QueueRunner`.

    Raises:
        InvalidArgumentError: if the shape of a row is not fully known.
    """
    with get_default_graph().name_scope(name or "input_producer") as scope:
        rows = convert_to_tensor(input_tensor, name="input_tensor")
        if rows.shape.ndims == 0:
            raise expected("an input_tensor of rank 1 or more", "a scalar")
        of_row = rows.shape[1:].merge_with(element_shape)
        if not of_row.is_fully_defined():
            raise expected("rows whose shape is fully known; give element_shape=", of_row)
        if shuffle:
            rows = random_shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = FIFOQueue(capacity, [rows.dtype], [of_row], shared_name=shared_name, name=scope)
        add_queue_runner(QueueRunner(queue, [queue.enqueue_many([rows])], cancel_op=cancel_op))
        if summary_name is not None:
            scalar(summary_name, cast(queue.size(), float32) * (1.0 / capacity))
        return queue


def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Operation | None = None,
) -> FIFOQueue:
    """A queue that is filled with strings, such as names of files, again and again.

    Args:
        string_tensor: The strings, of rank 1.
        num_epochs: How often all come, before the queue is closed; None: for ever.
        shuffle: True: they are shuffled in each epoch.
        seed: Of the shuffling.
        capacity: Of the queue.
        shared_name: Name of the queue in its container.
        name: Name of the scope.
        cancel_op: Run when the runner is stopped, see `QueueRunner`.

    Raises:
        InvalidArgumentError: if there are none: at once where that is known, else when it runs.
    """
    told = "string_input_producer needs one string or more"
    if isinstance(string_tensor, list | tuple) and not string_tensor:
        raise InvalidArgumentError(told)
    with get_default_graph().name_scope(name or "input_producer") as scope:
        strings = convert_to_tensor(string_tensor, string)
        with get_default_graph().control_dependencies([Assert(size(strings) > 0, [told])]):
            strings = identity(strings)
        return input_producer(
            strings, [], num_epochs, shuffle, seed, capacity, shared_name,
            f"fraction_of_{capacity}_full", scope, cancel_op,
        )  # fmt: skip


def range_input_producer(
    limit: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> FIFOQueue:
    """A queue that is filled with the numbers from 0 to `limit` - 1, again and again.

    Args:
        limit: An int32 scalar.
        num_epochs: How often all come, before the queue is closed; None: for ever.
        shuffle: True: they are shuffled in each epoch.
        seed: Of the shuffling.
        capacity: Of the queue.
        shared_name: Name of the queue in its container.
        name: Name of the scope.
    """
    with get_default_graph().name_scope(name or "input_producer") as scope:
        return input_producer(
            range_of(limit), [], num_epochs, shuffle, seed, capacity, shared_name,
            f"fraction_of_{capacity}_full", scope,
        )  # fmt: skip


def slice_input_producer(
    tensor_list: Sequence[Any],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """One row of each of several tensors, the same row of all, another one in each step.

    Args:
        tensor_list: Tensors with equally many rows.
        num_epochs: How often all rows come, before OutOfRangeError; None: for ever.
        shuffle: True: they are shuffled in each epoch.
        seed: Of the shuffling.
        capacity: Of the queue of row numbers.
        shared_name: Name of that queue in its container.
        name: Name of the scope.

    Raises:
        InvalidArgumentError: if there are no tensors.
    """
    if not tensor_list:
        raise expected("one tensor or more for slice_input_producer", "none")
    with get_default_graph().name_scope(name or "input_producer"):
        tensors = [convert_to_tensor(t) for t in tensor_list]
        rows = shape(tensors[0])[0]
        queue = range_input_producer(rows, num_epochs, shuffle, seed, capacity, shared_name)
        index = queue.dequeue()
        return [gather(t, index) for t in tensors]
