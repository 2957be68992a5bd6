"""Checks that run with the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.dtypes import bool_
from flowscope.graph.op import Array, ArrayModule, Op, Spec
from flowscope.graph.operation import Operation
from flowscope.ops.build import apply_none

__all__ = ["Assert"]


@dataclass(frozen=True)
class AssertTrue(Op):
    """An error with the values of the other inputs, unless the first is true everywhere."""

    summarize: int
    is_stateful: ClassVar[bool] = True
    is_differentiable: ClassVar[bool] = False

    def infer(self, condition: Spec, *data: Spec) -> Any:
        if condition.dtype is not bool_:
            raise DTypeError(f"expected a bool as condition, got {condition}")
        return ()

    def kernel(self, xp: ArrayModule, condition: Array, *data: Array) -> None:
        if bool(condition.all() if getattr(condition, "ndim", 0) else condition):
            return
        shown = [self._text(v) for v in data]
        raise InvalidArgumentError(f"assertion failed: {' '.join(shown)}")

    def _text(self, value: Any) -> str:
        if isinstance(value, bytes):
            return value.decode(errors="replace")
        get = getattr(value, "get", None)
        flat = np.asarray(value if get is None else get()).reshape(-1)
        if flat.dtype == object:
            return " ".join(v.decode(errors="replace") for v in flat[: self.summarize])
        dots = " ..." if len(flat) > self.summarize else ""
        return f"[{' '.join(map(str, flat[: self.summarize].tolist()))}{dots}]"


def Assert(
    condition: Any, data: Any, summarize: int | None = None, name: str | None = None
) -> Operation:
    """Returns an operation that is an error when it runs and `condition` is not true everywhere.

    Args:
        condition: A bool tensor.
        data: What the error shows: a list of tensors, strings and numbers.
        summarize: How many elements of each are shown, 3 by default.
        name: Name of the operation.
    """
    tensors = [convert_to_tensor(v) for v in data]
    op = AssertTrue(3 if summarize is None else summarize)
    return apply_none(op, convert_to_tensor(condition), *tensors, name=name or "Assert")
