"""`fs.data.experimental`: further transformations, and iterators' positions in checkpoints."""

from __future__ import annotations

import typing as _typing
from collections.abc import Callable, Sequence
from typing import Any

from flowscope.api.absent import refusal as _refusal
from flowscope.data.arguments import AUTOTUNE
from flowscope.data.dataset import Dataset
from flowscope.data.iterator import Iterator
from flowscope.errors import InvalidArgumentError
from flowscope.graph.devices import DeviceSpec
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import string
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.core.build import apply, apply_none
from flowscope.ops.host import dataset_ops as ops
from flowscope.ops.state.iterator_ops import DeserializeIterator, SerializeIterator
from flowscope.train.checkpoint.saveables import SaveableObject

#: Takes a dataset and returns another one, for `Dataset.apply`.
Transformation = Callable[[Dataset], Dataset]


def Counter(start: Any = 0, step: Any = 1) -> Dataset:
    """A dataset of int64 scalars that counts for ever: start, start + step, and so on."""
    return Dataset.range(1).repeat().enumerate().map(lambda i, _: start + step * i)


def enumerate_dataset(start: Any = 0) -> Transformation:
    """A function for `Dataset.apply`: `Dataset.enumerate`."""
    return lambda dataset: dataset.enumerate(start)


def ignore_errors() -> Transformation:
    """A function for `Dataset.apply`: leaves out the elements that could not be computed."""
    return lambda dataset: dataset._then(ops.IgnoreErrorsDataset(), [], dataset._structure)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_calls: int | None = None,
    drop_remainder: Any = False,
) -> Transformation:
    """A function for `Dataset.apply`: `Dataset.map`, then `Dataset.batch`."""
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(
        batch_size, drop_remainder
    )


def copy_to_device(target_device: Any, source_device: Any = "/cpu:0") -> Transformation:
    """A function for `Dataset.apply`: iterators give their elements on a device.

    Followed by `Dataset.prefetch`, elements are there before a step takes them. It is the last
    transformation of a dataset, but for that. Strings stay where they are.

    Args:
        target_device: The device, as for `fs.device`.
        source_device: The CPU, where datasets compute.

    Raises:
        InvalidArgumentError: if that is another device.
    """
    if DeviceSpec.from_string(str(source_device)).device_type not in (None, "CPU"):
        raise expected("a CPU as source_device, where datasets compute", repr(source_device))
    return lambda dataset: _brought(dataset, str(target_device))


def prefetch_to_device(device: Any, buffer_size: Any = None) -> Transformation:
    """A function for `Dataset.apply`: elements are computed ahead, and brought to a device.

    It is the last transformation of a dataset. Strings stay where they are.

    Args:
        device: The device, as for `fs.device`.
        buffer_size: How many, an int64 scalar; None: as many as there are cores.
    """
    return lambda dataset: _brought(dataset, str(device)).prefetch(buffer_size)


def _brought(dataset: Dataset, device: str) -> Dataset:
    DeviceSpec.from_string(device)  # or it is no name of a device
    return Dataset(dataset._variant, dataset._structure, device)


def shuffle_and_repeat(
    buffer_size: Any, count: Any = None, seed: int | None = None
) -> Transformation:
    """A function for `Dataset.apply`: `Dataset.shuffle`, then `Dataset.repeat`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def unbatch() -> Transformation:
    """A function for `Dataset.apply`: `Dataset.unbatch`."""
    return lambda dataset: dataset.unbatch()


class _SaveableIterator(SaveableObject):
    """The position of an iterator.

    Args:
        iterator: The iterator.
    """

    def __init__(self, iterator: Iterator) -> None:
        handle = iterator._iterator_resource
        super().__init__(f"{handle.op.name}-position", handle, string, ())
        self._iterator = iterator

    def values(self) -> list[Tensor]:
        """Returns the position, alone in a list."""
        return [apply(SerializeIterator(self._iterator._factory), *self.parts)]

    def restored(self, values: Sequence[Tensor], reshape: bool) -> Operation:
        """Returns the operation that goes to a position."""
        return apply_none(DeserializeIterator(self._iterator._factory), *self.parts, *values)


def make_saveable_from_iterator(iterator: Iterator) -> SaveableObject:
    """An object by which savers save the position of an iterator, and restore it.

        saveable = fs.data.experimental.make_saveable_from_iterator(iterator)
        fs.add_to_collection(fs.GraphKeys.SAVEABLE_OBJECTS, saveable)
        saver = fs.train.Saver()

    After a restore the iterator gives the elements that it would have given, bit for bit, also with
    shuffles and random operations, if its dataset is the same. It passes over those before, without
    computing what has no effect; generators and Python functions run again. An iterator whose
    initializer has not run yet goes there once it does.

    Raises:
        DTypeError: if it is no iterator.
        InvalidArgumentError: if it stands for another one, by a string handle.
    """
    if not isinstance(iterator, Iterator):
        raise expected_dtype("an fs.data.Iterator", repr(iterator))
    if iterator._string_handle is not None:
        raise InvalidArgumentError(
            "this iterator stands for others: save the positions of those that it stands for"
        )
    return _SaveableIterator(iterator)


__all__ = [
    "AUTOTUNE",
    "Counter",
    "copy_to_device",
    "enumerate_dataset",
    "ignore_errors",
    "make_saveable_from_iterator",
    "map_and_batch",
    "prefetch_to_device",
    "shuffle_and_repeat",
    "unbatch",
]

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
