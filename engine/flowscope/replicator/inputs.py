"""Input pipelines of replicators: what `input_fn` is told, and where its elements go."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import numpy as np

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError


class InputMode(Enum):
    """How many input pipelines feed the replicas.

    SINGLE: one, from which all replicas take their elements. PER_WORKER: one on each worker, for
    the worker's replicas. PER_REPLICA: one for each replica, with elements that wait on its device.
    """

    SINGLE = "single"
    PER_WORKER = "per_worker"
    PER_REPLICA = "per_replica"


@dataclass(frozen=True)
class InputContext:
    """What `input_fn` is told of the pipeline that it makes.

    Attributes:
        num_input_pipelines: How many pipelines there are.
        input_pipeline_id: The number of this one, from 0.
        num_replicas_in_sync: How many replicas there are.
    """

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1

    def per_replica_batch_size(self, global_batch_size: int) -> int:
        """Returns the batch of one replica.

        Args:
            global_batch_size: The batch of all replicas.

        Raises:
            InvalidArgumentError: if that is no multiple of the number of replicas.
        """
        size, rest = divmod(global_batch_size, self.num_replicas_in_sync)
        if rest:
            raise InvalidArgumentError(
                f"expected a batch that is a multiple of {self.num_replicas_in_sync} replicas, got "
                f"{global_batch_size}"
            )
        return size


def pipelines(
    input_fn: Callable[[InputContext], Any],
    devices: list[str],
    mode: InputMode,
    context: Callable[[int, int], InputContext],
) -> list[Callable[[], Any]]:
    """Makes the pipelines; returns one function per replica that takes an element.

    Args:
        input_fn: Returns the dataset or the generator of a pipeline.
        devices: Of the replicas, "" for any.
        mode: How many pipelines there are.
        context: Function of a pipeline's number and of their count; makes its context.
    """
    hosts = [_host(device) for device in devices]
    keys: list[Any]
    if mode is InputMode.SINGLE:
        keys = [0] * len(devices)
    elif mode is InputMode.PER_WORKER:
        keys = list(hosts)
    else:
        keys = list(range(len(devices)))
    places = list(dict.fromkeys(keys))
    iterators = []
    for number, key in enumerate(places):
        replica = keys.index(key)
        with fs.device(hosts[replica] or None):
            dataset = _dataset(input_fn(context(number, len(places))))
            if mode is InputMode.PER_REPLICA and devices[replica]:
                dataset = dataset.apply(fs.data.experimental.prefetch_to_device(devices[replica]))
            iterators.append(dataset.make_initializable_iterator())
        fs.add_to_collection(fs.GraphKeys.TABLE_INITIALIZERS, iterators[-1].initializer)
    taken = [iterators[places.index(key)] for key in keys]
    return [partial(_next, x, host) for x, host in zip(taken, hosts, strict=True)]


def _next(iterator: Any, host: str) -> Any:
    """An element, taken where the iterator is, whatever device the replica is built for."""
    with fs.device(None), fs.device(host or None):
        return iterator.get_next()


def _host(device: str) -> str:
    """The CPU of the process that a device is of, "" where the device is any."""
    spec = fs.DeviceSpec.from_string(device)
    if not device:
        return ""
    spec = fs.DeviceSpec(spec.job, spec.replica, spec.task, "CPU", 0)
    return str(spec.to_string())


def _dataset(made: Any) -> Any:
    """The dataset that an `input_fn` has returned, or that of its generator."""
    if isinstance(made, fs.data.Dataset):
        return made
    elements = made() if callable(made) else made
    if not isinstance(elements, Iterator):
        raise DTypeError(
            f"expected a dataset or a generator from input_fn, got {type(made).__name__}"
        )
    try:
        first = next(elements)
    except StopIteration:
        raise InvalidArgumentError("the generator of input_fn has no elements") from None
    arrays = [np.asarray(leaf) for leaf in fs.nest.flatten(first)]
    types = fs.nest.pack_sequence_as(first, [fs.as_dtype(a.dtype) for a in arrays])
    shapes = fs.nest.pack_sequence_as(first, [fs.TensorShape(a.shape) for a in arrays])
    rest = itertools.chain([first], elements)
    return fs.data.Dataset.from_generator(lambda: rest, types, shapes)


__all__ = ["InputContext", "InputMode", "pipelines"]
