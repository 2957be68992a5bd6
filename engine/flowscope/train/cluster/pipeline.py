"""`fs.train.pipeline`: stages on devices of their own, each at another part of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from flowscope import nest
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.scopes import control_dependencies, device
from flowscope.graph.values.expected import expected
from flowscope.ops.array.joining import concat, split
from flowscope.ops.math.arithmetic import add_n
from flowscope.ops.math.elementwise import divide
from flowscope.ops.state.template import make_template
from flowscope.ops.state.variable_scope import variable_scope


def pipeline(
    stages: Sequence[Callable[..., Any]],
    inputs: Any,
    microbatches: int,
    devices: Sequence[Any] | None = None,
    name: str = "pipeline",
) -> Any:
    """Computes stages one after the other, each for a part of the batch at a time.

    While a stage computes a part, the stage before it computes the next one, where they are on
    devices that compute at the same time: on workers of a cluster. The way back is taken in the
    same manner by `minimize(loss, colocate_gradients_with_ops=True)`; gradients of a variable are
    added over the parts. With S stages and m parts of equal duration each device has nothing to do
    for (S - 1) / (m + S - 1) of a step.

    A stage's variables are made at its first call, by `fs.get_variable` or layers, and shared by
    all calls. What it computes from several examples together, such as the mean of batch
    normalisation, it computes from those of a part. The results of all parts are kept until the way
    back has come to them; `fs.recompute_grad` of a stage keeps its inputs alone.

    Args:
        stages: Functions. The first is called with a part of the inputs, each other with what the
            one before has returned (the items of a tuple or list are arguments of their own).
        inputs: A tensor [batch, ...], or a nest of such.
        microbatches: Into how many parts of equal size the batch is split.
        devices: The device of each stage, as `fs.device` takes it; None for where they would be.
        name: The variable scope, made unique, in which the stages have theirs: `stage_0`, ...

    Returns:
        What the last stage returns, for the whole batch: tensors [part, ...] are joined to
        [batch, ...]; scalars become their mean, which for a mean over examples is the batch's.

    Raises:
        InvalidArgumentError: if the batch is no multiple of the parts (in the step, where its size
            is known then), or a later part makes another variable than the first.

    Source: Huang et al. 2019, "GPipe: Efficient Training of Giant Neural Networks using Pipeline
    Parallelism".
    """
    where = _checked(stages, microbatches, devices)
    with variable_scope(None, default_name=name):
        leaves = [convert_to_tensor(leaf) for leaf in nest.flatten(inputs)]
        if not leaves:
            raise expected("inputs to split into parts", repr(inputs))
        columns = [split(leaf, microbatches, name="parts") for leaf in leaves]
        parts = [nest.pack_sequence_as(inputs, row) for row in zip(*columns, strict=True)]
        for i, (stage, at) in enumerate(zip(stages, where, strict=True)):
            parts = _through(make_template(f"stage_{i}", stage), parts, at)
        found = [[convert_to_tensor(leaf) for leaf in nest.flatten(part)] for part in parts]
        with _on(where[-1]):
            whole = [_joined(list(column)) for column in zip(*found, strict=True)]
    return nest.pack_sequence_as(parts[0], whole)


def _checked(stages: Any, microbatches: Any, devices: Any) -> list[Any]:
    """Returns the device of each stage."""
    if not isinstance(stages, Sequence) or not stages:
        raise expected("a list of functions, one for each stage", repr(stages))
    if isinstance(microbatches, bool) or not isinstance(microbatches, int) or microbatches < 1:
        raise expected("a number of parts of at least 1", repr(microbatches))
    if devices is None:
        return [None] * len(stages)
    if isinstance(devices, str) or len(devices) != len(stages):
        raise expected(f"a device for each of {len(stages)} stages", repr(devices))
    return list(devices)


def _through(stage: Callable[..., Any], parts: Sequence[Any], at: Any) -> list[Any]:
    """The results of a stage for the parts, which it starts with in their order."""
    made: list[Any] = []
    for part in parts:
        before = nest.flatten(made[-1]) if made else []
        arguments = part if isinstance(part, list | tuple) else (part,)
        with _on(at), control_dependencies(before):
            made.append(stage(*arguments))
        nest.assert_same_structure(made[0], made[-1])
    return made


def _on(at: Any) -> AbstractContextManager[None]:
    return nullcontext() if at is None else device(at)


def _joined(parts: list[Tensor]) -> Tensor:
    if parts[0].spec.shape == ():
        return divide(add_n(parts), len(parts))
    return concat(parts, 0)


__all__ = ["pipeline"]
