"""Batches of examples, put together ahead by threads.

Each function makes a queue and a queue runner that fills it; `start_queue_runners`, or a monitored
session, starts the runner's threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowscope.control.branches import cond
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import DType, bool_, float32
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import TensorShape
from flowscope.ops.array.selection import boolean_mask
from flowscope.ops.core.casting import cast
from flowscope.ops.core.flow import no_op
from flowscope.ops.host.summaries import scalar
from flowscope.ops.input.tensor_strings import (
    deserialize_many_sparse,
    serialize_many_sparse,
    serialize_sparse,
)
from flowscope.ops.math.elementwise import maximum
from flowscope.ops.sparse.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from flowscope.ops.state.containers.queues import (
    FIFOQueue,
    PaddingFIFOQueue,
    QueueBase,
    RandomShuffleQueue,
)
from flowscope.train.input.queue_runner import QueueRunner, add_queue_runner

__all__ = [
    "batch",
    "batch_join",
    "maybe_batch",
    "maybe_batch_join",
    "maybe_shuffle_batch",
    "maybe_shuffle_batch_join",
    "shuffle_batch",
    "shuffle_batch_join",
]


def batch(
    tensors: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of what tensors give step by step, put together ahead by threads.

    Args:
        tensors: A list or a dict of tensors, dense or sparse: one example, or with `enqueue_many`
            several.
        batch_size: Examples of a batch.
        num_threads: Threads that run `tensors`; with several the order is any.
        capacity: Examples that are kept ahead.
        enqueue_many: True: the first axis of `tensors` counts examples.
        shapes: Of an example's tensors, where they do not tell it; None for a sparse one.
        dynamic_pad: True: dimensions may be unknown, and are filled up within a batch.
        allow_smaller_final_batch: True: what is left at the end is a smaller batch.
        shared_name: Name of the queue in its container.
        name: Name of the scope.

    Returns:
        As `tensors`, with a first axis more: batch_size; the tensor itself for a list of one. A
        sparse tensor becomes one whose other sizes are the largest ones of the batch.

    Raises:
        InvalidArgumentError: if shapes are not known as far as is needed.
        OutOfRangeError: when it runs, once the input is at its end and fewer are left.
    """
    return maybe_batch(
        tensors, True, batch_size, num_threads, capacity, enqueue_many, shapes, dynamic_pad,
        allow_smaller_final_batch, shared_name, name or "batch",
    )  # fmt: skip


def maybe_batch(
    tensors: Any,
    keep_input: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of the examples for which `keep_input` is True; see `batch`.

    Args:
        tensors: As of `batch`.
        keep_input: A bool scalar; with `enqueue_many` also a vector, for each example.
        batch_size: As of `batch`, like all that follow.
        num_threads: See `batch`.
        capacity: See `batch`.
        enqueue_many: See `batch`.
        shapes: See `batch`.
        dynamic_pad: See `batch`.
        allow_smaller_final_batch: See `batch`.
        shared_name: See `batch`.
        name: See `batch`.
    """
    make = PaddingFIFOQueue if dynamic_pad else FIFOQueue
    return _batches(
        [tensors], num_threads, keep_input, batch_size, functools.partial(make, capacity),
        enqueue_many, shapes, allow_smaller_final_batch, shared_name, name or "maybe_batch",
        _fullness(capacity),
    )  # fmt: skip


def batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of what several lists of tensors give, each run by a thread of its own.

    Args:
        tensors_list: Lists or dicts of tensors, of the same dtypes.
        batch_size: As of `batch`, like all that follow.
        capacity: See `batch`.
        enqueue_many: See `batch`.
        shapes: See `batch`; where lists differ in a dimension, it is unknown.
        dynamic_pad: See `batch`.
        allow_smaller_final_batch: See `batch`.
        shared_name: See `batch`.
        name: See `batch`.
    """
    return maybe_batch_join(
        tensors_list, True, batch_size, capacity, enqueue_many, shapes, dynamic_pad,
        allow_smaller_final_batch, shared_name, name or "batch_join",
    )  # fmt: skip


def maybe_batch_join(
    tensors_list: Sequence[Any],
    keep_input: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`batch_join` of the examples for which `keep_input` is True.

    Args:
        tensors_list: As of `batch_join`.
        keep_input: A bool scalar; with `enqueue_many` also a vector, for each example.
        batch_size: As of `batch`, like all that follow.
        capacity: See `batch`.
        enqueue_many: See `batch`.
        shapes: See `batch_join`.
        dynamic_pad: See `batch`.
        allow_smaller_final_batch: See `batch`.
        shared_name: See `batch`.
        name: See `batch`.
    """
    make = PaddingFIFOQueue if dynamic_pad else FIFOQueue
    return _batches(
        tensors_list, 1, keep_input, batch_size, functools.partial(make, capacity), enqueue_many,
        shapes, allow_smaller_final_batch, shared_name, name or "maybe_batch_join",
        _fullness(capacity),
    )  # fmt: skip


def shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of examples in random order, put together ahead by threads; see `batch`.

    Args:
        tensors: As of `batch`.
        batch_size: See `batch`.
        capacity: Examples that are kept ahead, more than `min_after_dequeue`.
        min_after_dequeue: Examples that stay in to be mixed with, see `fs.RandomShuffleQueue`.
        num_threads: See `batch`.
        seed: Of the shuffling.
        enqueue_many: See `batch`.
        shapes: See `batch`.
        allow_smaller_final_batch: See `batch`.
        shared_name: See `batch`.
        name: See `batch`.
    """
    return maybe_shuffle_batch(
        tensors, batch_size, capacity, min_after_dequeue, True, num_threads, seed, enqueue_many,
        shapes, allow_smaller_final_batch, shared_name, name or "shuffle_batch",
    )  # fmt: skip


def maybe_shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`shuffle_batch` of the examples for which `keep_input` is True.

    Args:
        tensors: As of `batch`.
        batch_size: See `batch`.
        capacity: See `shuffle_batch`.
        min_after_dequeue: See `shuffle_batch`.
        keep_input: A bool scalar; with `enqueue_many` also a vector, for each example.
        num_threads: See `batch`.
        seed: Of the shuffling.
        enqueue_many: See `batch`.
        shapes: See `batch`.
        allow_smaller_final_batch: See `batch`.
        shared_name: See `batch`.
        name: See `batch`.
    """
    return _batches(
        [tensors], num_threads, keep_input, batch_size,
        functools.partial(RandomShuffleQueue, capacity, min_after_dequeue, seed=seed),
        enqueue_many, shapes, allow_smaller_final_batch, shared_name,
        name or "maybe_shuffle_batch", _fullness(capacity, min_after_dequeue),
    )  # fmt: skip


def shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`batch_join` in random order.

    Args:
        tensors_list: As of `batch_join`.
        batch_size: See `batch`.
        capacity: See `shuffle_batch`.
        min_after_dequeue: See `shuffle_batch`.
        seed: Of the shuffling.
        enqueue_many: See `batch`.
        shapes: See `batch_join`.
        allow_smaller_final_batch: See `batch`.
        shared_name: See `batch`.
        name: See `batch`.
    """
    return maybe_shuffle_batch_join(
        tensors_list, batch_size, capacity, min_after_dequeue, True, seed, enqueue_many, shapes,
        allow_smaller_final_batch, shared_name, name or "shuffle_batch_join",
    )  # fmt: skip


def maybe_shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`shuffle_batch_join` of the examples for which `keep_input` is True.

    Args:
        tensors_list: As of `batch_join`.
        batch_size: See `batch`.
        capacity: See `shuffle_batch`.
        min_after_dequeue: See `shuffle_batch`.
        keep_input: A bool scalar; with `enqueue_many` also a vector, for each example.
        seed: Of the shuffling.
        enqueue_many: See `batch`.
        shapes: See `batch_join`.
        allow_smaller_final_batch: See `batch`.
        shared_name: See `batch`.
        name: See `batch`.
    """
    return _batches(
        tensors_list, 1, keep_input, batch_size,
        functools.partial(RandomShuffleQueue, capacity, min_after_dequeue, seed=seed),
        enqueue_many, shapes, allow_smaller_final_batch, shared_name,
        name or "maybe_shuffle_batch_join", _fullness(capacity, min_after_dequeue),
    )  # fmt: skip


# -- how they are made ----------------------------------------------------------------------------


def _batches(
    tensors_list: Sequence[Any],
    num_threads: int,
    keep_input: Any,
    batch_size: Any,
    make_queue: Callable[..., QueueBase],
    enqueue_many: bool,
    shapes: Any,
    is_smaller_allowed: bool,
    shared_name: str | None,
    name: str,
    tell_fullness: Callable[[QueueBase], None],
) -> Any:
    """What all functions of batches do: a queue, threads that fill it, and what takes from it."""
    first = tensors_list[0] if len(tensors_list) else ()
    with get_default_graph().name_scope(name) as scope:
        given = [_listed(tensors, first) for tensors in tensors_list]
        if not given or not given[0]:
            raise expected("tensors to be batched", "none")
        sparse = _sparse_kinds(given, enqueue_many)
        lists = [_stored(values, enqueue_many) for values in given]
        keeps = _keeps(keep_input, enqueue_many)
        dtypes = [t.dtype for t in lists[0]]
        for tensors in lists:
            if [t.dtype for t in tensors] != dtypes:
                found = ", ".join(str(t.dtype) for t in tensors)
                raise expected(f"lists of the same dtypes, {', '.join(map(str, dtypes))}", found)
        of_example = _example_shapes(lists, enqueue_many) if shapes is None else shapes
        if sparse and shapes is not None:
            of_example = _with_stored(list(shapes), sparse, len(dtypes))
        queue = make_queue(dtypes=dtypes, shapes=of_example, shared_name=shared_name)
        puts = [_put(queue, tensors, enqueue_many, keeps) for tensors in lists]
        add_queue_runner(QueueRunner(queue, puts * num_threads))
        tell_fullness(queue)
        take = queue.dequeue_up_to if is_smaller_allowed else queue.dequeue_many
        taken = take(batch_size, name=scope)
        batches = taken if len(dtypes) > 1 else [taken]
        for i, (dtype, rank) in sparse.items():
            rank = None if rank is None else rank + 1
            batches[i] = deserialize_many_sparse(batches[i], dtype, rank)
    if isinstance(first, Mapping):
        return dict(zip(sorted(first), batches))
    return batches if len(batches) > 1 else batches[0]


def _listed(tensors: Any, first: Any) -> list[Any]:
    """The tensors, dense and sparse, of a list, or of a dict by the order of its keys."""
    if isinstance(tensors, Mapping):
        if not isinstance(first, Mapping) or sorted(tensors) != sorted(first):
            raise expected("dicts with the same keys", tensors)
        tensors = [tensors[key] for key in sorted(tensors)]
    elif isinstance(first, Mapping):
        raise expected("dicts with the same keys", tensors)
    if not isinstance(tensors, list | tuple):
        raise expected("a list or a dict of tensors", repr(tensors))
    return [convert_to_tensor_or_sparse_tensor(t) for t in tensors]


def _sparse_kinds(
    lists: Sequence[Sequence[Any]], enqueue_many: bool
) -> dict[int, tuple[DType, int | None]]:
    """By position, the dtype of sparse tensors and an example's rank, None for an unknown one.

    Raises:
        InvalidArgumentError: if only some lists have a sparse tensor in a place, ranks differ, or
            there is no axis that counts examples.
        DTypeError: if dtypes differ.
    """
    found: dict[int, tuple[DType, int | None]] = {}
    for i, column in enumerate(zip(*lists)):
        sparse = [t for t in column if isinstance(t, SparseTensor)]
        if not sparse:
            continue
        if len(sparse) < len(column):
            raise expected("lists with sparse tensors in the same places", repr(column))
        if len({t.dtype for t in sparse}) > 1:
            raise expected_dtype("sparse tensors of one dtype", [t.dtype for t in sparse])
        ranks = {t.rank for t in sparse}
        if len(ranks) > 1 and None not in ranks:
            raise expected("sparse tensors of one rank", [t.shape for t in sparse])
        rank = next(iter(ranks)) if len(ranks) == 1 else None
        if rank is not None and enqueue_many:
            rank -= 1
        found[i] = sparse[0].dtype, rank
    return found


def _stored(tensors: Sequence[Any], enqueue_many: bool) -> list[Tensor]:
    """The tensors as queues take them: a sparse one as three strings per example."""
    write = serialize_many_sparse if enqueue_many else serialize_sparse
    return [write(t) if isinstance(t, SparseTensor) else t for t in tensors]


def _with_stored(shapes: list[Any], sparse: Mapping[int, Any], count: int) -> list[Any]:
    """Shapes that were given, with those of what stands for sparse tensors."""
    if len(shapes) != count:
        raise expected(f"a shape for each of the {count} tensors", len(shapes))
    for i in sparse:
        if shapes[i] is not None and TensorShape(shapes[i]).ndims != 0:
            raise expected(f"None or [] as the shape of the sparse tensor {i}", shapes[i])
        shapes[i] = [3]
    return shapes


def _keeps(keep_input: Any, enqueue_many: bool) -> Tensor | None:
    """Which examples are kept; None for all."""
    if keep_input is True:
        return None
    keeps = convert_to_tensor(keep_input, bool_)
    rank = keeps.shape.ndims
    if rank is None or rank > (1 if enqueue_many else 0):
        most = "0 or 1" if enqueue_many else "0 where enqueue_many is False"
        raise expected(f"keep_input of rank {most}", f"shape {keeps.shape}")
    return keeps


def _example_shapes(lists: Sequence[Sequence[Tensor]], enqueue_many: bool) -> list[TensorShape]:
    """The shapes of an example's tensors; a dimension in which lists differ is unknown."""
    out = []
    for column in zip(*lists, strict=True):
        ranks = {t.shape.ndims for t in column}
        if len(ranks) > 1 or None in ranks:
            raise expected("tensors of one known rank; give shapes=", [t.shape for t in column])
        dims = [set(d) for d in zip(*[t.shape.as_list() for t in column])]
        merged = [next(iter(d)) if len(d) == 1 else None for d in dims]
        out.append(TensorShape(merged[1:] if enqueue_many else merged))
    return out


def _put(
    queue: QueueBase, tensors: Sequence[Tensor], enqueue_many: bool, keeps: Tensor | None
) -> Operation:
    enqueue = queue.enqueue_many if enqueue_many else queue.enqueue
    if keeps is None:
        return enqueue(list(tensors))
    if keeps.shape.ndims == 1:
        return enqueue([boolean_mask(t, keeps) for t in tensors])
    found = cond(keeps, lambda: enqueue(list(tensors)), no_op)
    return found if isinstance(found, Operation) else found.op


def _fullness(capacity: int, least: int | None = None) -> Callable[[QueueBase], None]:
    """Adds the summary of how full a queue is, above the elements that stay in."""

    def tell(queue: QueueBase) -> None:
        if least is None:
            scalar(f"fraction_of_{capacity}_full", cast(queue.size(), float32) * (1.0 / capacity))
            return
        room = capacity - least
        above = cast(maximum(0, queue.size() - least), float32)
        scalar(f"fraction_over_{least}_of_{room}_full", above * (1.0 / room))

    return tell
