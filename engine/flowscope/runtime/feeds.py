"""Feeds: checking and converting what the user gives, one converter per fed tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import to_array
from flowscope.graph.dtypes import DType, resource, string
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.op import Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.shapes import compatible, is_known, text

Converter = Callable[[Any], Any]


def converter(tensor: Tensor) -> Converter:
    """Returns the function that makes a value fed for `tensor` an array of its dtype and shape.

    An array of the right dtype is taken as it is, without a copy; other numbers are converted where
    that loses nothing but precision.
    """
    spec = tensor.spec
    if spec.dtype is resource:
        assert spec.variable is not None
        spec = spec.variable
    if spec.dtype is not string and spec.shape == ():
        return _scalar(tensor, spec)
    if spec.dtype is not string and is_known(spec.shape):
        return _static(tensor, spec)
    return lambda value: _checked(tensor, spec, value)


def without_slices(feed_dict: Any) -> dict[Any, Any] | None:
    """Returns the feeds with those for `IndexedSlices` taken apart; None if there are none."""
    if not feed_dict or not any(isinstance(key, IndexedSlices) for key in feed_dict):
        return None
    out: dict[Any, Any] = {}
    for key, value in feed_dict.items():
        if not isinstance(key, IndexedSlices):
            out[key] = value
            continue
        parts = [key.values, key.indices, key.dense_shape]
        wanted = parts if key.dense_shape is not None else parts[:2]
        if not isinstance(value, tuple) or not len(wanted) <= len(value) <= 3:
            raise InvalidArgumentError(
                f'cannot feed the slices "{key.name}": expected fs.IndexedSlicesValue or a tuple '
                f"of {len(wanted)} arrays, got {type(value).__name__}"
            )
        out.update(zip(wanted, value))
    return out


def _scalar(tensor: Tensor, spec: Spec) -> Converter:
    make = spec.dtype.np_dtype.type
    quick: type = {"f": float, "i": int, "b": bool}.get(spec.dtype.kind, make)

    def convert(value: Any) -> Any:
        kind = type(value)
        if kind is make:
            return value
        if kind is quick and quick is not int:
            return make(value)
        return _checked(tensor, spec, value)

    return convert


def _static(tensor: Tensor, spec: Spec) -> Converter:
    dtype, shape, ndarray = spec.dtype.np_dtype, spec.shape, np.ndarray

    def convert(value: Any) -> Any:
        if type(value) is ndarray and value.dtype == dtype and value.shape == shape:
            return value
        return _checked(tensor, spec, value)

    return convert


def _as_numbers(value: Any, dtype: DType) -> Any:
    """Returns bools as 0 and 1, and whole numbers with a point, fed as integers, as an array."""
    try:
        found = np.asarray(value)
    except ValueError:
        return value
    if found.dtype.kind == "b" and dtype.is_numeric:
        return found.astype(dtype.np_dtype)
    if found.dtype.kind == "f" and dtype.is_integer and (found == np.trunc(found)).all():
        return found
    return value


def _checked(tensor: Tensor, spec: Spec, value: Any) -> Any:
    if isinstance(value, Tensor):
        raise DTypeError(
            f'the value fed for "{tensor.name}" is a tensor: run it first and feed its value'
        )
    if (
        isinstance(value, np.ndarray)
        and value.dtype == spec.dtype.np_dtype
        and spec.dtype is not string
    ):
        array: Any = value if value.ndim else value[()]
    else:
        try:
            array = to_array(_as_numbers(value, spec.dtype), spec.dtype)
        except (DTypeError, InvalidArgumentError) as e:
            raise type(e)(f'cannot feed "{tensor.name}": {e.message}') from None
    shape = np.shape(array)
    if not compatible(spec.shape, shape):
        raise InvalidArgumentError(
            f'cannot feed "{tensor.name}": expected shape {text(spec.shape)}, got {text(shape)}'
        )
    return array
