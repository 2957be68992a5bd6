"""Running through a whole dataset in one operation, and what makes the pipelines of all kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowscope.graph.current_step import current_step
from flowscope.ops.host import dataset_ops as ops
from flowscope.runtime.datasets import dataset_ahead, dataset_batches, dataset_files, dataset_order
from flowscope.runtime.datasets.dataset_functions import ElementFunction, PassControl
from flowscope.runtime.datasets.dataset_pipelines import Context, EndOfDataset, pipeline_of

#: The modules that have pipelines.
KINDS = (dataset_ahead, dataset_batches, dataset_files, dataset_order)


def _reduce(
    op: Any,
    generator: Any,
    dataset: ops.DatasetValue,
    state: Sequence[Any],
    captured: Sequence[Any],
) -> Sequence[Any]:
    """The last state of a `DatasetReduce`.

    Args:
        op: The op.
        generator: A random generator, from which the key of the pass is drawn.
        dataset: The dataset.
        state: The first state.
        captured: The values of what the function captures.
    """
    step = current_step()
    control = PassControl(None if step is None else step.host_threads)
    key = int(generator.integers(1 << 63))
    context = Context(control, key, {})
    pipeline = pipeline_of(dataset, context.of_input(0))
    function = ElementFunction(op.function, captured, control, key, context.path)
    number, found = 0, tuple(state)
    try:
        while True:
            control.check()
            try:
                element = pipeline.next()
            except EndOfDataset:
                return found
            found = function(number, found + element)
            number += 1
    finally:
        control.is_ended = True


ops.reducers.append(_reduce)

__all__ = ["KINDS"]
