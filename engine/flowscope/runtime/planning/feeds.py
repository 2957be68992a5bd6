"""Feeds: checking and converting what the user gives, one converter per fed tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from flowscope.errors import DTypeError, InvalidArgumentError, OpError
from flowscope.graph.constant import is_in_range, to_array
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.op import Spec
from flowscope.graph.operation import Tensor, where
from flowscope.graph.values.dtypes import DType, string
from flowscope.graph.values.host_values import on_host
from flowscope.graph.values.shapes import compatible, is_known, text
from flowscope.nest import flatten
from flowscope.ops.core.flow import Placeholder
from flowscope.ops.sparse.sparse_tensor import SparseTensor
from flowscope.runtime.config import FeedStats
from flowscope.runtime.devices.device import Device

Converter = Callable[[Any], Any]


def converter(tensor: Tensor, devices: Sequence[Device] = (), stays: bool = True) -> Converter:
    """Returns the function that makes a value fed for `tensor` an array of its dtype and shape.

    An array of the right dtype is taken as it is, without a copy, whatever its strides and flags;
    so is what shows one through NumPy's array interface or DLPack. Other numbers are converted as
    `numpy.ndarray.astype` does, as far as that is defined: integers take floats without their
    fractions, bools take whether a number is not 0. A Python int must keep its value.

    Args:
        tensor: What is fed.
        devices: Devices whose arrays are taken, too.
        stays: Whether these are taken as they are; else they are brought to the host.
    """
    convert = _host_converter(tensor)
    if not devices:
        return convert
    spec = _spec(tensor)

    def convert_any(value: Any) -> Any:
        if not any(d.holds(value) for d in devices):
            return convert(value)
        if value.dtype != spec.dtype.np_dtype:
            raise _refusal(
                tensor, DTypeError(f"expected {spec.dtype}, got {value.dtype}, on a device")
            )
        _check_shape(tensor, spec, tuple(value.shape))
        return value if stays else on_host(value)

    return convert_any


def _spec(tensor: Tensor) -> Spec:
    """The Specs of the fed values; for a handle, that of its variable."""
    return tensor.spec.variable or tensor.spec


def _host_converter(tensor: Tensor) -> Converter:
    spec = _spec(tensor)
    if spec.dtype is not string and spec.shape == ():
        return _scalar(tensor, spec)
    if spec.dtype is not string and is_known(spec.shape):
        return _static(tensor, spec)
    return lambda value: _checked(tensor, spec, value)


def flatten_feeds(feed_dict: Any) -> dict[Any, Any] | None:
    """Returns the feeds with each tensor's value by itself; None if they are given so.

    Structures of tensors (a recurrent cell's state), slices and sparse tensors are taken apart.
    """
    if not feed_dict or not any(isinstance(key, _COMPOSITE) for key in feed_dict):
        return None
    out: dict[Any, Any] = {}
    for key, value in feed_dict.items():
        for tensor, part in _parts(key, value):
            if tensor in out:
                raise InvalidArgumentError(f'"{_named(tensor)}" is fed twice')
            out[tensor] = part
    return out


_COMPOSITE = (tuple, IndexedSlices, SparseTensor)


def _parts(key: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    """Yields the tensors that a key stands for, each with its part of the value."""
    if isinstance(key, SparseTensor):
        wanted: list[Any] = [key.indices, key.values, key.dense_shape]
        if isinstance(value, tuple) and not isinstance(key.dense_shape.op.definition, Placeholder):
            wanted = wanted[: max(2, len(value))]
        yield from _composite(key, value, wanted, "sparse tensor", "SparseTensorValue")
    elif isinstance(key, IndexedSlices):
        wanted = [key.values, key.indices, key.dense_shape]
        yield from _composite(key, value, wanted, "slices", "IndexedSlicesValue")
    elif isinstance(key, tuple):
        if not isinstance(value, list | tuple) or len(value) != len(key):
            got = type(value).__name__
            if isinstance(value, list | tuple):
                got += f" of {len(value)}"
            names = ", ".join(f'"{_named(k)}"' for k in flatten(key))
            raise InvalidArgumentError(
                f"cannot feed the {type(key).__name__} of {names}: expected {len(key)} values in a "
                f"tuple or list, got {got}"
            )
        for inner, part in zip(key, value, strict=True):
            yield from _parts(inner, part)
    else:
        yield key, value


def _named(key: Any) -> str:
    return str(getattr(key, "name", None) or key)


def _composite(
    key: Any, value: Any, parts: list[Any], what: str, value_type: str
) -> Iterator[tuple[Any, Any]]:
    """Yields a composite tensor's parts with the values fed for them."""
    wanted = parts if key.dense_shape is not None else parts[:2]
    if not isinstance(value, tuple) or not len(wanted) <= len(value) <= 3:
        raise InvalidArgumentError(
            f'cannot feed the {what} "{key.name}": expected fs.{value_type} or a tuple of '
            f"{len(wanted)} arrays, got {type(value).__name__}"
        )
    yield from zip(wanted, value, strict=False)


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


def _checked(tensor: Tensor, spec: Spec, value: Any) -> Any:
    if isinstance(value, Tensor):
        raise _refusal(
            tensor, DTypeError("the value fed is a tensor: run it first and feed its value")
        )
    try:
        if isinstance(value, int):
            _check_kept(value, spec.dtype)
        array = _converted(value, spec.dtype)
    except (DTypeError, InvalidArgumentError) as e:
        raise _refusal(tensor, e) from None
    _check_shape(tensor, spec, np.shape(array))
    return array


def _converted(value: Any, dtype: DType) -> Any:
    if not isinstance(value, _PLAIN):
        value = _shown(value)
    if isinstance(value, np.ndarray) and value.dtype == dtype.np_dtype and dtype is not string:
        return value if value.ndim else value[()]
    try:
        return to_array(value, dtype)
    except DTypeError:
        numbers = _as_numbers(value, dtype)
        if numbers is None:
            raise
        return to_array(numbers, dtype)


#: What NumPy converts by itself, at once.
_PLAIN = (int, float, complex, str, bytes, list, tuple, np.generic)


def _shown(value: Any) -> Any:
    """Returns the plain array that an object shows, without a copy where it can; else the object.

    Subclasses of NumPy's array compute otherwise: their plain array is taken.
    """
    if type(value) is np.ndarray:
        return value
    try:
        if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
            return np.asarray(value)
        if hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as e:
        raise DTypeError(f"{type(value).__name__} shows no array: {e}") from None
    return value


def _as_numbers(value: Any, dtype: DType) -> Any:
    """Returns numbers of another kind as an array of the dtype; None if it cannot hold them.

    Source: `numpy.ndarray.astype`, as far as C defines it: no number that is not finite or is out
    of range becomes an integer, and no imaginary part is dropped.
    """
    try:
        found = np.asarray(value)
    except ValueError:
        return None
    kind = found.dtype.kind
    if kind == "b" and dtype.is_numeric:
        return found.astype(dtype.np_dtype)
    if kind in "iuf" and dtype.is_bool:
        return found != 0
    if kind == "f" and dtype.is_integer and is_in_range(found, dtype):
        return found.astype(dtype.np_dtype)
    return None


def _check_kept(value: int, dtype: DType) -> None:
    """Raises DTypeError if a Python int is another number in the dtype, as TensorFlow does."""
    if dtype.kind not in "fcb":
        return  # `to_array` has looked at the range of integers
    with np.errstate(all="ignore"):
        try:
            is_kept = dtype.np_dtype.type(value).item() == value
        except OverflowError:
            is_kept = False
    if not is_kept:
        raise DTypeError(
            f"expected an int that is a {dtype}, got {value}: feed a float or an array, which is "
            "rounded, or make the placeholder of a wider dtype"
        )


def _check_shape(tensor: Tensor, spec: Spec, shape: tuple[int, ...]) -> None:
    if not compatible(spec.shape, shape):
        raise _refusal(
            tensor, InvalidArgumentError(f"expected shape {text(spec.shape)}, got {text(shape)}")
        )


def _refusal(tensor: Tensor, why: OpError) -> OpError:
    """Returns the error for a value that does not fit `tensor`, which it names with its line."""
    facts: dict[str, Any] = {"op": tensor.op.name, **where(tensor.op)}
    return type(why)(f'cannot feed "{tensor.name}": {why.message}', **facts)


def stats(
    tensors: Sequence[Tensor], given: Sequence[Any], used: Sequence[Any]
) -> tuple[FeedStats, ...]:
    """Returns how each feed came into a run: its bytes, and why it was copied."""
    rows = zip(tensors, given, used, strict=True)
    return tuple(FeedStats(t.name, nbytes(u), _why_copied(g, u)) for t, g, u in rows)


def nbytes(value: Any) -> int:
    """Returns how many bytes a value takes; of strings in an array, its references."""
    return len(value) if isinstance(value, bytes) else int(value.nbytes)


def _why_copied(given: Any, used: Any) -> str:
    if given is used or not getattr(used, "ndim", 0):
        return ""  # a number is nothing to copy
    if isinstance(given, list | tuple | int | float | complex | str | bytes):
        return f"{type(given).__name__} made an array"
    shown = _shown(given)
    if isinstance(shown, np.ndarray) and isinstance(used, np.ndarray):
        if shown.dtype != used.dtype:
            return f"{shown.dtype} converted to {used.dtype}"
        if np.may_share_memory(shown, used):
            return ""
    return f"{type(given).__name__} converted to an array"
