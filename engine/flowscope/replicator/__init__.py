"""Replicators: a step for one device runs on many. Users enter by `fs.replicator`.

In: a step function and an input function. Out: what the step returns, once per replica, and one
operation for all replicas in the place of each operation.

    values            what replicas have: a value each
    building          a step that is built once per replica; calls that are joined
    primitives        all_sum and kin
    variables         a copy per replica
    collection_views  what a replica sees of collections
    inputs            pipelines
    optimizer         the mean of gradients
    replicator        one device; what all kinds share
    multi_device      several devices, in one graph
    many_steps        many steps in one run
    exchanges         what clients with graphs of their own exchange, over queues
    multi_worker      one replica per client
    multi_worker_async  clients that share variables on a parameter server

It stands on public names alone: nothing below imports it, and it imports nothing of the engine but
what users can.
"""

import typing as _typing

from flowscope.api.absent import refusal as _refusal
from flowscope.replicator.inputs import InputContext, InputMode
from flowscope.replicator.many_steps import ManySteps
from flowscope.replicator.multi_device import MultiDevice
from flowscope.replicator.multi_worker import MultiWorker
from flowscope.replicator.multi_worker_async import MultiWorkerAsync
from flowscope.replicator.primitives import (
    all_gather,
    all_max,
    all_min,
    all_reduce,
    all_sum,
    broadcast,
    current_replica_id,
    map_gather,
    map_reduce,
    merge_call,
    num_replicas_in_sync,
)
from flowscope.replicator.replicator import Replicator
from flowscope.replicator.values import Mirrored, PerReplica, ReduceOp
from flowscope.replicator.variables import MirroredVariable

__all__ = [
    "InputContext",
    "InputMode",
    "ManySteps",
    "Mirrored",
    "MirroredVariable",
    "MultiDevice",
    "MultiWorker",
    "MultiWorkerAsync",
    "PerReplica",
    "ReduceOp",
    "Replicator",
    "all_gather",
    "all_max",
    "all_min",
    "all_reduce",
    "all_sum",
    "broadcast",
    "current_replica_id",
    "map_gather",
    "map_reduce",
    "merge_call",
    "num_replicas_in_sync",
]


def __getattr__(name: str) -> _typing.Any:
    """Raises AttributeError that says which names there are."""
    return _refusal(__name__, globals())(name)
