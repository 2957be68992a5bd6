"""Dilation of any operation on windows: space to batch, the operation, batch to space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowscope.graph.constant import convert_to_tensor, get_static_value
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected
from flowscope.ops.array.joining import stack
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.array.space_to_batch import (
    batch_to_space_nd,
    required_space_to_batch_paddings,
    space_to_batch_nd,
)

__all__ = ["with_space_to_batch"]


def with_space_to_batch(
    input: Any,
    dilation_rate: Any,
    padding: str,
    op: Callable[[Tensor, int, str], Any],
    filter_shape: Any = None,
    spatial_dims: Sequence[int] | None = None,
    data_format: str | None = None,
) -> Tensor:
    """The result of an operation on windows whose elements lie so far apart.

    Args:
        input: A tensor of rank 2 at least, the batch first.
        dilation_rate: The distance along each of the axes, known while the graph is built.
        padding: "SAME" or "VALID".
        op: Function of a tensor, the number of axes, and a padding; it must work on each example
            by itself, and where elements lie apart it is called with "VALID".
        filter_shape: The windows' sizes along the axes first; needed for "SAME".
        spatial_dims: The axes, counted up from 1; those behind the batch (and behind the channels,
            where `data_format` begins with "NC") by default.
        data_format: See above.

    Raises:
        InvalidArgumentError: if the arguments do not fit together.
    """
    x, rates = convert_to_tensor(input), get_static_value(dilation_rate)
    if rates is None or np.ndim(rates) != 1 or not len(rates) or min(rates) < 1:
        raise expected("known dilations from 1 on", repr(dilation_rate))
    first = 2 if data_format is not None and data_format.startswith("NC") else 1
    axes = list(range(first, first + len(rates))) if spatial_dims is None else list(spatial_dims)
    if axes != sorted(set(axes)) or len(axes) != len(rates) or axes[0] < 1:
        raise expected("one rising axis from 1 on per dilation", f"{axes} for {list(rates)}")
    rank = x.spec.rank
    if rank is not None and axes[-1] >= rank:
        raise expected(f"an input of rank {axes[-1] + 1}", x.spec)
    if max(rates) == 1:
        return convert_to_tensor(op(x, len(axes), padding))
    base = _margins(padding, filter_shape, rates)
    paddings, crops = required_space_to_batch_paddings(_sizes(x, axes), np.array(rates), base)
    blocks, wide_paddings, wide_crops = _every_axis(axes, rates, paddings, crops)
    apart = space_to_batch_nd(x, blocks, wide_paddings)
    return batch_to_space_nd(op(apart, len(axes), "VALID"), blocks, wide_crops)


def _sizes(x: Tensor, axes: list[int]) -> Any:
    """Returns the lengths of some axes: numbers where they are known, else a tensor."""
    known = [x.spec.shape[i] if x.spec.shape else None for i in axes]
    if None not in known:
        return known
    sizes = shape_of(x)
    return stack([sizes[i] for i in axes])


def _margins(padding: str, filter_shape: Any, rates: Any) -> Any:
    """Returns the margins that make "VALID" of a padding."""
    if padding == "VALID":
        return np.zeros((len(rates), 2), np.int32)
    if padding != "SAME":
        raise expected('padding "SAME" or "VALID"', repr(padding))
    known = None if filter_shape is None else get_static_value(filter_shape)
    if known is None or np.ndim(known) != 1 or len(known) < len(rates):
        raise expected(
            f'a known filter_shape of {len(rates)} lengths at least for padding "SAME"',
            filter_shape,
        )
    extra = np.array(rates) * (np.array(known[: len(rates)]) - 1)
    return np.stack([extra // 2, extra - extra // 2], 1).astype(np.int32)


def _every_axis(axes: list[int], rates: Any, *pairs: Tensor) -> tuple[Any, ...]:
    """Returns blocks and pairs of margins for all axes from 1 to the last, with ones and zeros."""
    places = {axis: i for i, axis in enumerate(axes)}
    every = range(1, axes[-1] + 1)
    blocks = np.array([rates[places[a]] if a in places else 1 for a in every], np.int32)
    none = np.zeros(2, np.int32)
    wide = []
    for t in pairs:
        known = get_static_value(t)
        rows = t if known is None else known
        join = stack if known is None else np.stack
        wide.append(join([rows[places[a]] if a in places else none for a in every]))
    return blocks, *wide
