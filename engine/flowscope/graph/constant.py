"""Constants, and the conversion of Python and NumPy values to tensors."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.overloads import Overloads
from flowscope.graph.providers import load
from flowscope.graph.values.dtypes import DType, as_dtype, float32, int32, int64, of_numpy, string
from flowscope.graph.values.shapes import Dimension, TensorShape, as_dims, is_known, text
from flowscope.graph.values.string_values import as_bytes, boxed

#: Packs a list that holds tensors into one tensor; the op library fills it.
packer: list[Callable[[Any, DType | None, str | None], Tensor]] = []
#: Makes a tensor of a shape with one value everywhere when it runs; the op library fills it.
filler: list[Callable[[list[Any], Tensor, str], Tensor]] = []

#: One value that fills more bytes than this is not stored in the graph: it is filled when it runs.
FILL_BYTES = 1 << 16


class Literal:
    """An immutable array with value semantics: equal and hashed by dtype, shape and bytes."""

    __slots__ = ("_hash", "array")

    def __init__(self, array: Any) -> None:
        if isinstance(array, np.ndarray):
            array.setflags(write=False)
            array = array if array.ndim else array[()]
        self.array = array
        self._hash: int | None = None

    def _key(self) -> Any:
        a = np.asarray(boxed(self.array))
        return (
            a.dtype,
            a.shape,
            tuple(a.reshape(-1).tolist()) if a.dtype.kind == "O" else a.tobytes(),
        )

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Literal) and self._key() == other._key())

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._key())
        return self._hash

    def __repr__(self) -> str:
        array = np.asarray(boxed(self.array))
        if array.ndim == 0 and not array.dtype.hasobject:
            return _scalar_text(array.dtype, array.tobytes())
        return _shown(array)


def _shown(array: Any) -> str:
    return " ".join(np.array2string(array, threshold=6, edgeitems=2, precision=4).split())


@functools.lru_cache(maxsize=4096)
def _scalar_text(dtype: Any, value: bytes) -> str:
    """The text of a number, cached: NumPy takes a while, and graphs are full of ones."""
    return _shown(np.frombuffer(value, dtype)[0])


@frozen
class Const(Op, may_run_early=True):
    """A value that is fixed when the graph is built."""

    value: Literal
    dtype: DType

    def infer(self) -> Spec:
        array = self.value.array
        return Spec(self.dtype, array.shape if isinstance(array, np.ndarray) else (), array)

    def grad(self, g: Tensor, y: Tensor) -> tuple[Tensor | None, ...]:
        return ()

    def kernel(self, xp: ArrayModule) -> Array:
        array = self.value.array
        return array if xp is np else xp.asarray(array)


def constant(
    value: Any,
    dtype: Any = None,
    shape: Any = None,
    name: str = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """Returns a constant tensor.

    Args:
        value: A number, a (nested) list of numbers, an array, a string or bytes.
        dtype: Element type; by default float32 for Python floats, int32 for Python integers, and
            the array's own for arrays.
        shape: Shape; a single value fills it, a shorter list is filled up with its last element.
            The graph keeps a single value as it is where it fills more than 64 KiB: the operation
            is then a `Fill`.
        name: Name of the operation.
        verify_shape: Whether `value` must have exactly `shape`.

    Raises:
        DTypeError: if the value cannot have this dtype, or is a tensor.
        InvalidArgumentError: if the value does not fit the shape.

    Example:
        >>> fs.Session().run(fs.constant([[1, 2], [3, 4]], fs.float32))
        array([[1., 2.],
               [3., 4.]], dtype=float32)
    """
    if isinstance(value, Tensor):
        raise DTypeError(f'expected a value, got the tensor "{value.name}": use fs.identity')
    if dtype is None and getattr(getattr(value, "dtype", None), "names", None) is not None:
        dtype = value.dtype  # a quantised type in NumPy's form: its array alone does not tell
    want = None if dtype is None else as_dtype(dtype)
    array = to_array(value, want)
    if shape is not None:
        dims = as_dims(shape)
        if not verify_shape and _is_large_fill(array, dims):
            return _filled_at_run(array, want, list(dims or ()), name)
        array = _filled(array, dims, verify_shape)
    return add_constant(get_default_graph(), array, want, name)


def add_constant(graph: Graph, array: Any, dtype: DType | None, name: str) -> Tensor:
    """Adds a Const of an array (or NumPy scalar) that nobody else will change."""
    if dtype is None:
        dtype = string if isinstance(array, bytes) else of_numpy(array.dtype)
    return graph.add(Const(Literal(array), dtype), (), name).outputs[0]


def _is_large_fill(array: Any, dims: Any) -> bool:
    """Whether one value is to fill a shape of more than `FILL_BYTES` bytes."""
    boxed_array = np.asarray(boxed(array))
    is_one = boxed_array.size == 1 and is_known(dims)
    return is_one and math.prod(dims) * boxed_array.itemsize > FILL_BYTES


def _filled_at_run(array: Any, dtype: DType | None, dims: list[Any], name: str) -> Tensor:
    """Returns a tensor that is filled with the one element of an array when it runs."""
    if not filler:
        load("filler")
    one = np.asarray(boxed(array)).reshape(())[()]
    value = add_constant(get_default_graph(), one, dtype, f"{name}/Const")
    return filler[0](dims, value, name)


def _filled(array: Any, dims: Any, verify: bool) -> Any:
    if not is_known(dims):
        raise InvalidArgumentError(f"a constant needs a fully known shape, got {text(dims)}")
    array = np.asarray(boxed(array))
    if array.shape == dims:
        return array
    size = int(np.prod(dims, dtype=np.int64))
    if size == 0 and not verify:
        return np.empty(dims, array.dtype)
    if verify or array.size > size or array.size == 0:
        raise DTypeError(f"a value of shape {text(array.shape)} does not fit shape {text(dims)}")
    flat = array.reshape(-1)
    return np.concatenate([flat, np.repeat(flat[-1:], size - flat.size)]).reshape(dims)


def to_array(value: Any, dtype: DType | None) -> Any:
    """Returns `value` as an array that the user does not share; rank 0: a NumPy scalar or bytes.

    Raises:
        DTypeError: if the value cannot have this dtype without changing its kind.
        InvalidArgumentError: if a list is ragged, or UTF-8 cannot hold a text.
    """
    if isinstance(value, Literal):
        value = value.array
    is_array = isinstance(value, np.ndarray | np.generic)
    found = _found(value, dtype)
    if dtype is string and found.size == 0:
        return np.empty(found.shape, object)
    if found.dtype.kind == "O" and _all_text(found):
        return _strings(found, value, dtype)
    if found.dtype.kind == "O":
        found, is_array = _plain_numbers(value, dtype), False
    if dtype is None:
        dtype = _default_dtype(found, is_array)
    elif not _fits(found, dtype, is_array):
        raise DTypeError(f"expected {dtype}, got {_short(value)} of {found.dtype}")
    if found.dtype.names is not None:
        found = found[found.dtype.names[0]]  # a quantised type in NumPy's form
    out = np.array(found, dtype.np_dtype)
    return out if out.ndim else out[()]


def _found(value: Any, dtype: DType | None) -> Any:
    """Returns the array that NumPy makes of `value`; of strings an array of objects.

    NumPy's own arrays of strings drop the NULs at their ends, and cannot hold `str` beside bytes.
    """
    if isinstance(value, str | bytes):
        return np.array(value, object)
    try:
        found = np.asarray(value)
    except UnicodeDecodeError:  # bytes beside a str
        return np.asarray(value, object)
    except (ValueError, TypeError) as e:
        raise InvalidArgumentError(
            f"expected {_wanted(dtype)} in a regular shape, got {_short(value)}: {e}"
        ) from None
    return np.asarray(value, object) if found.dtype.kind in "SUT" else found


def _plain_numbers(value: Any, dtype: DType | None) -> Any:
    """An array of numbers from values that NumPy takes for objects.

    Raises:
        DTypeError: if it is none, or an integer is larger than the largest of 64 bits.
    """
    numbers = _numbers(value)
    if numbers is None:
        raise DTypeError(f"expected {_wanted(dtype)}, got {_short(value)}")
    is_real = dtype is not None and (dtype.is_floating or dtype.is_complex)
    try:
        found = np.asarray(numbers, np.float64 if is_real else None)
    except OverflowError:
        found = np.empty((), object)
    if found.dtype.kind == "O":
        kind = dtype or "an integer dtype"
        raise DTypeError(f"expected numbers that fit {kind}, got {_short(value)}")
    return found


def _wanted(dtype: DType | None) -> str:
    return "strings" if dtype is string else "numbers, strings or tensors"


def _numbers(value: Any) -> Any:
    """Returns shapes and dimensions, alone or in lists, as integers; None if there are others."""
    if isinstance(value, TensorShape):
        return [_numbers(d) for d in value]
    if isinstance(value, Dimension):
        return int(value)
    if isinstance(value, list | tuple):
        numbers = [_numbers(v) for v in value]
        return None if any(n is None for n in numbers) else numbers
    return value if isinstance(value, int | float | np.generic) else None


def _all_text(array: Any) -> bool:
    kinds = set(map(type, array.reshape(-1).tolist()))
    return all(issubclass(kind, str | bytes) for kind in kinds)


def _strings(found: Any, value: Any, dtype: DType | None) -> Any:
    if dtype is not None and dtype is not string:
        raise DTypeError(f"expected {dtype}, got {_short(value)} of type string")
    flat = found.reshape(-1).tolist()
    if set(map(type, flat)) == {bytes}:
        return np.array(found, object)[()]
    out = np.empty(found.shape, object)
    out.reshape(-1)[:] = [as_bytes(v) for v in flat]
    return out[()]


def _default_dtype(found: Any, is_array: bool) -> DType:
    if is_array:
        return of_numpy(found.dtype)
    if found.dtype == np.float64:
        return float32
    if found.dtype == np.int64:
        return int32 if _is_within(found, int32) else int64
    return of_numpy(found.dtype)


def _fits(found: Any, dtype: DType, is_array: bool) -> bool:
    kind = found.dtype.kind
    if dtype is string or dtype.kind in "rv":
        return False
    if dtype.is_bool or kind == "b":
        return bool(dtype.is_bool and kind == "b") or found.size == 0
    if dtype.is_complex:
        return True
    if kind == "c":
        return False
    if dtype.is_floating:
        return True
    if kind == "f" and found.size:
        return is_array and bool((found == np.trunc(found)).all()) and is_in_range(found, dtype)
    if found.dtype.names is not None:
        return of_numpy(found.dtype) is dtype
    if is_array or not found.size:
        return True
    return _is_within(found, of_numpy(dtype.np_dtype))


def is_in_range(found: Any, dtype: DType) -> bool:
    """Whether all floats of an array, without their fractions, are integers of a dtype.

    The others have no defined result when they are cast: C leaves it open.
    """
    lowest, beyond = float(dtype.min), float(int(dtype.max) + 1)  # powers of two: exact
    whole = np.trunc(found.astype(np.float64))
    return bool(((whole >= lowest) & (whole < beyond)).all())


def _is_within(found: Any, dtype: DType) -> bool:
    """Whether all integers of an array are among those of a dtype."""
    if found.ndim == 0:
        return bool(dtype.min <= found.item() <= dtype.max)
    return found.size == 0 or bool(found.min() >= dtype.min and found.max() <= dtype.max)


def _short(value: Any) -> str:
    shown = " ".join(repr(value).split())
    return shown if len(shown) <= 60 else shown[:57] + "..."


class Convertible(Overloads):
    """Base of what is not a tensor but stands for one in every op: variables, for example."""

    def _as_tensor(self) -> Tensor:
        raise NotImplementedError


def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    preferred_dtype: Any = None,
    dtype_hint: Any = None,
) -> Tensor:
    """Returns `value` as a tensor of the default graph.

    Args:
        value: A tensor, a variable, a number, a (nested) list of numbers and tensors, an array.
        dtype: The dtype it must have; None for its own.
        name: Name of a constant that is made.
        preferred_dtype: Used where `dtype` is None and the value leaves the choice open.
        dtype_hint: The same by its later name.

    Raises:
        DTypeError: if a tensor has another dtype, or a value cannot have it.

    Example:
        >>> fs.convert_to_tensor([1.0, 2.0]).dtype
        fs.float32
    """
    if dtype is not None:
        dtype = as_dtype(dtype)
    if isinstance(value, Convertible):
        value = value._as_tensor()
    if isinstance(value, Tensor):
        if dtype is not None and value.spec.dtype is not dtype:
            raise DTypeError(
                f'expected {dtype}, got {value.spec.dtype} from "{value.name}": use fs.cast',
            )
        return value
    if isinstance(value, list | tuple) and holds_tensor(value):
        if not packer:
            load("packer")
        return packer[0](value, dtype, name)
    if isinstance(value, TensorShape | Dimension) and dtype not in (None, int32, int64):
        raise DTypeError(f"a shape becomes int32 or int64, not {dtype}")
    preferred = dtype_hint if preferred_dtype is None else preferred_dtype
    if dtype is None and preferred is not None:
        try:
            return constant(value, preferred, name=name or "Const")
        except DTypeError:
            pass
    return constant(value, dtype, name=name or "Const")


def holds_tensor(value: Any) -> bool:
    """Whether a (nested) list or tuple holds a tensor or what stands for one."""
    return any(
        isinstance(v, Tensor | Convertible) or (isinstance(v, list | tuple) and holds_tensor(v))
        for v in value
    )


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Returns the tensor's value as an array if it is known while the graph is built, else None.

    Args:
        tensor: A tensor, or a value.
        partial: Whether a vector of sizes, some of them known, is an array with None for others.
    """
    if isinstance(tensor, Tensor):
        tensor.graph.observer.note_value_read(tensor)
        spec = tensor.spec
        if partial and spec.constant is None and spec.dims is not None and spec.rank == 1:
            return np.array(spec.dims, object)
        if spec.constant is None and spec.is_static:
            return _static_fill(tensor)
        return spec.constant
    return to_array(tensor, None)


def _static_fill(tensor: Tensor) -> Any:
    """Returns the array of a shape filled with one known value, which it holds once; else None."""
    number = tensor.op.definition.fills_with
    value = None if number is None else tensor.op.inputs[number].spec.constant
    dims: Any = tensor.spec.shape
    return None if value is None else np.broadcast_to(boxed(value), dims)
