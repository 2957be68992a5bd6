"""One op for the operators that no ops of ours make up: computed by NumPy on the host."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError, NotFoundError
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.shapes import Dims
from flowscope.graph.values.string_values import boxed
from flowscope.ops.core.build import apply_many

_FAMILIES = ("arrays", "images", "resizing", "texts")

_functions: dict[str, Callable[..., Any]] = {}


def computes(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters the function of an operator: arrays and settings to an array, or a tuple of them."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        _functions[name] = function
        return function

    return enter


@cache
def _table() -> dict[str, Callable[..., Any]]:
    for family in _FAMILIES:
        import_module(f"flowscope.onnx.kernels.{family}")
    return _functions


@frozen
class OnnxOperator(Op, devices=("CPU",), is_differentiable=False):
    """An operator of ONNX's that is computed by NumPy, of any shapes.

    Attributes:
        operator: Its name in the table of `flowscope.onnx.kernels`.
        settings: What else it takes, by name, as JSON.
        dtypes: The outputs' element types.
        dims: What is known of the outputs' shapes.

    Raises: InvalidArgumentError if values do not fit.
    """

    operator: str
    settings: str
    dtypes: tuple[DType, ...]
    dims: tuple[Dims, ...]

    def infer(self, *inputs: Spec) -> Any:
        if self.operator not in _table():
            raise NotFoundError(f"expected an operator that NumPy computes, got {self.operator!r}")
        found = tuple(Spec(t, d) for t, d in zip(self.dtypes, self.dims, strict=True))
        return found[0] if len(found) == 1 else found

    def kernel(self, xp: ArrayModule, *inputs: Array) -> Any:
        arrays = [np.asarray(boxed(x)) for x in inputs]
        try:
            found = _table()[self.operator](*arrays, **json.loads(self.settings))
        except (ArithmeticError, LookupError, TypeError, ValueError) as e:
            raise InvalidArgumentError(f"{self.operator}: the inputs do not fit: {e}") from e
        values = found if isinstance(found, tuple) else (found,)
        made = [_as(v, t, d) for v, t, d in zip(values, self.dtypes, self.dims, strict=True)]
        return made[0] if len(made) == 1 else tuple(made)


def _as(value: Any, dtype: DType, dims: Dims) -> Any:
    found = np.asarray(value, object if dtype is dtypes.string else dtype.np_dtype)
    if dims is not None and (
        found.ndim != len(dims) or any(d not in (None, s) for d, s in zip(dims, found.shape))
    ):
        raise InvalidArgumentError(f"expected a shape like {dims}, got {found.shape}")
    return np.ascontiguousarray(found) if found.ndim else found[()]


def operator(
    name: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[tuple[DType, Dims]],
    **settings: Any,
) -> tuple[Tensor, ...]:
    """Adds an operator that NumPy computes; returns its outputs.

    Args:
        name: The operator's.
        inputs: What it takes.
        outputs: Per output the element type and what is known of the shape.
        settings: What its function takes by name.
    """
    op = OnnxOperator(
        name,
        json.dumps(settings, sort_keys=True),
        tuple([t for t, _ in outputs]),
        tuple([d if d is None else tuple(d) for _, d in outputs]),
    )
    return apply_many(op, *inputs, name=name)


__all__ = ["OnnxOperator", "computes", "operator"]
