"""Values in recordings: what traced steps have fetched, and what sessions record of tensors.

The newest are kept, within a bound in bytes. Strings and handles are left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowscope.debug.history import History
from flowscope.errors import OpError
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.tracing.recording import KeptValue, TensorValues

#: So many bytes of values a recording has at most.
MAX_BYTES = 16 << 20
#: What a value takes besides its elements.
_OVERHEAD = 200


class _One(NamedTuple):
    name: str
    kept: KeptValue


class FetchedValues:
    """What steps have fetched: the newest values.

    Args:
        max_bytes: So much is kept at most; 0 for nothing.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: deque[_One] = deque()
        self._nbytes = 0
        self._dropped: dict[str, int] = {}

    def take(self, step: int | None, fetches: Sequence[Any], values: Sequence[Any]) -> None:
        """Keeps copies of what a step has fetched."""
        if not self._max_bytes or step is None:
            return
        for tensor, value in zip(fetches, values, strict=False):
            if isinstance(tensor, Tensor) and is_storable(value):
                self._add(tensor.name, step, value)
        while self._nbytes > self._max_bytes:
            oldest = self._kept.popleft()
            self._nbytes -= _size(oldest.kept.value)
            self._dropped[oldest.name] = self._dropped.get(oldest.name, 0) + 1

    def _add(self, name: str, step: int, value: Any) -> None:
        if _size(value) > self._max_bytes:
            self._dropped[name] = self._dropped.get(name, 0) + 1
            return
        self._kept.append(_One(name, KeptValue(step, (), np.array(value)[()])))
        self._nbytes += _size(value)

    def told(self) -> tuple[TensorValues, ...]:
        """The recorded values, by tensor."""
        return _by_name([*self._kept], self._dropped)


def recorded_values(histories: Iterable[History]) -> tuple[TensorValues, ...]:
    """The values of tensors that sessions have recorded."""
    found: list[_One] = []
    for history in histories:
        for tensor in history.tensors:
            try:
                kept = history.values(tensor)
            except OpError:
                continue  # it had no value in the steps that ran
            values = [
                KeptValue(k.step, k.iterations, k.value) for k in kept if is_storable(k.value)
            ]
            found += [_One(tensor.name, value) for value in values]
    return _by_name(found, {})


def merged(
    recorded: tuple[TensorValues, ...],
    fetched: tuple[TensorValues, ...],
    max_bytes: int = MAX_BYTES,
) -> tuple[TensorValues, ...]:
    """Returns both, the newest within the bound; of a tensor in both what was recorded."""
    known = {one.name for one in recorded}
    parts = [*recorded, *[one for one in fetched if one.name not in known]]
    dropped = {one.name: one.dropped for one in parts}
    found = [_One(one.name, kept) for one in parts for kept in one.kept]
    found.sort(key=lambda one: one.kept.step)  # what is of one step stays in order
    total = sum(_size(one.kept.value) for one in found)
    first = 0
    while total > max_bytes:
        oldest = found[first]
        total -= _size(oldest.kept.value)
        dropped[oldest.name] += 1
        first += 1
    return _by_name(found[first:], dropped)


def _by_name(found: Sequence[_One], dropped: dict[str, int]) -> tuple[TensorValues, ...]:
    kept: dict[str, list[KeptValue]] = {name: [] for name in dropped}
    for one in found:
        kept.setdefault(one.name, []).append(one.kept)
    return tuple([TensorValues(n, tuple(k), dropped.get(n, 0)) for n, k in kept.items()])


def is_storable(value: Any) -> bool:
    """Whether a value is an array or a scalar of numbers or bools."""
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.hasobject:
        return False
    try:
        return bool(dtypes.as_dtype(value.dtype).as_numpy_dtype == value.dtype)
    except OpError:
        return False


def _size(value: Any) -> int:
    return int(value.nbytes) + _OVERHEAD


__all__ = ["MAX_BYTES", "FetchedValues", "is_storable", "merged", "recorded_values"]
