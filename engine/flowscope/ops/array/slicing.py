"""Parts of tensors by position: slices as Python writes them, and blocks."""

from __future__ import annotations

import builtins
import functools
import operator
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import Convertible, convert_to_tensor, get_static_value
from flowscope.graph.op import FROM_1, Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.overloads import operators
from flowscope.graph.unsupported import refuse
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dimension, compatible, text
from flowscope.graph.values.string_values import boxed
from flowscope.ops.array.selection import boolean_mask
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.core.broadcasting import as_shape, as_sizes, check_shape_vector
from flowscope.ops.core.build import apply
from flowscope.ops.core.shape_rules import check_kind, check_rank

__all__ = [
    "newaxis",
    "slice",
    "strided_slice",
]


newaxis = None


#: Part of a key: ("int", i), ("slice", start, stop, step), ("new",) or ("rest",); "?" is an input.
Part = tuple[Any, ...]


@frozen
class StridedSlice(Op, views=(0,), grad_reads=("given",), host_inputs=FROM_1, keeps_finite=True):
    """A part of the input, by integers, slices, new axes and an ellipsis, with Python's meaning.

    Attributes: `key` has a part per index; a "?" in it is taken from the further inputs, in order.
    Shapes: as NumPy's basic indexing
    Raises: InvalidArgumentError if there are too many indices or an integer is out of range.
    """

    key: tuple[Part, ...]

    @functools.cached_property
    def _fixed(self) -> Any:
        """The index, if nothing in it comes from inputs."""
        return None if any("?" in part for part in self.key) else self.index(())

    def index(self, values: Any) -> tuple[Any, ...]:
        """Returns the Python index, its "?" taken from `values`."""
        rest = iter([int(v) for v in values])
        return tuple([_python(part, rest) for part in self.key])

    def infer(self, x: Spec, *given: Spec) -> Spec:
        for s in given:
            check_kind(s.dtype, "iu", "integer indices")
            check_rank(s, 0, "scalar indices")
        if x.shape is None:
            return Spec(x.dtype, None)
        known = iter([_Later if s.constant is None else int(s.constant) for s in given])
        parts = [_python(part, known) for part in self.key]
        dims = _sliced(x.shape, parts)
        if x.dtype.kind == "i" and len(x.shape) == 1 and len(dims) <= 1:
            return _value(x, dims, parts)
        return Spec(x.dtype, dims)

    def grad(self, g: Tensor, y: Tensor, x: Tensor, *given: Tensor) -> Any:
        whole = apply(StridedSliceGrad(self.key), g, shape_of(x), *given)
        return (whole, *[None] * len(given))

    def kernel(self, xp: ArrayModule, x: Array, *given: Array) -> Array:
        return part_of(x, self._fixed if not given else self.index(given))


@frozen
class StridedSliceGrad(
    Op, grad_reads=("given",), memory_order="C", host_inputs=FROM_1, keeps_finite=True
):
    """Zeros of a shape, with the input at the place that a `StridedSlice` takes.

    Shapes: g, shape [n], then scalars -> shape
    """

    key: tuple[Part, ...]

    def infer(self, g: Spec, shape: Spec, *given: Spec) -> Spec:
        return Spec(g.dtype, shape.shape_value())

    def grad(self, g: Tensor, y: Tensor, x: Tensor, shape: Tensor, *given: Tensor) -> Any:
        return (apply(StridedSlice(self.key), g, *given), *[None] * (1 + len(given)))

    def kernel(self, xp: ArrayModule, g: Array, shape: Array, *given: Array) -> Array:
        out = xp.zeros(as_sizes(shape), g.dtype)
        out[StridedSlice(self.key).index(given)] = g
        return out[()]


def part_of(x: Array, index: Any) -> Array:
    """Returns `x[index]`; raises InvalidArgumentError where the index does not fit."""
    try:
        if isinstance(x, bytes):
            x, index = boxed(x), index if Ellipsis in index else (..., *index)
        part = x[index]
    except IndexError:
        raise InvalidArgumentError(_complaint(np.shape(x), index)) from None
    if type(part) is np.ndarray and not part.ndim:
        return part[()]  # with an ellipsis, NumPy gives a view of rank 0
    return part


def _python(part: Part, given: Any) -> Any:
    """Returns the Python index that a part stands for; `given` has the values of its "?"."""
    kind, *values = part
    if kind == "new":
        return None
    if kind == "rest":
        return Ellipsis
    known = [next(given) if v == "?" else v for v in values]
    return known[0] if kind == "int" else builtins.slice(*known)


class _Later:
    """Stands for an index that is known only when the step runs."""


def _sliced(dims: Any, parts: list[Any]) -> Any:
    """Returns the static shape of a part, and raises if an index is out of range."""
    used = sum(p is not None and p is not Ellipsis for p in parts)
    if used > len(dims):
        raise expected(f"at most {len(dims)} indices for {text(dims)}", used)
    if Ellipsis not in parts:
        parts = [*parts, Ellipsis]
    out: list[int | None] = []
    rest = iter(dims)
    for p in parts:
        if p is None:
            out.append(1)
        elif p is Ellipsis:
            out += [next(rest) for _ in range(len(dims) - used)]
        elif isinstance(p, builtins.slice):
            out.append(_length(next(rest), p))
        else:
            d = next(rest)
            if p is not _Later and d is not None and not -d <= p < d:
                raise expected(f"an index in [{-d}, {d})", f"{p} for {text(dims)}")
    return tuple(out)


def _length(d: int | None, s: builtins.slice) -> int | None:
    if s.step == 0:
        raise expected("a step that is not 0", "0")
    if _Later in (s.start, s.stop, s.step):
        return None
    if d is None:
        whole = s.start in (None, 0) and s.stop is None and s.step in (None, 1)
        empty = whole is False and s.stop == 0 and s.step in (None, 1)
        return 0 if empty else None
    return len(range(*s.indices(d)))


def _value(x: Spec, dims: Any, parts: list[Any]) -> Spec:
    """Returns the Spec of a part of an integer vector, with what is known of its value."""
    later = any(
        p is _Later or (isinstance(p, builtins.slice) and _Later in (p.start, p.stop, p.step))
        for p in parts
    )
    if later:
        return Spec(x.dtype, dims)
    if x.constant is not None:
        return Spec(x.dtype, dims, np.asarray(x.constant)[tuple(parts)][()])
    values = x.shape_value()
    if values is None:
        return Spec(x.dtype, dims)
    picked = np.asarray(np.array(values, object)[tuple(parts)], object).reshape(-1).tolist()
    if dims != ():
        return Spec(x.dtype, dims, None, tuple(picked))
    constant = None if picked[0] is None else x.dtype.np_dtype.type(picked[0])
    return Spec(x.dtype, (), constant, tuple(picked))


def _complaint(shape: Any, index: Any) -> str:
    try:
        _sliced(shape, list(index))
    except InvalidArgumentError as e:
        return e.message
    return f"expected indices that fit {text(shape)}, got {index}"


def getitem(x: Any, key: Any, name: str = "strided_slice") -> Tensor:
    """Returns `x[key]`: integers, slices, `fs.newaxis`, `...`, and scalar tensors as indices.

    A bool tensor or array alone is a mask, see `fs.boolean_mask`.

    Raises:
        InvalidArgumentError: if an index is out of range, or there are too many.
        DTypeError: if an index is something else; a vector needs `fs.gather`.
    """
    if getattr(key, "dtype", None) == "bool":
        return boolean_mask(x, key)
    x = convert_to_tensor(x)
    parts: list[Part] = []
    inputs: list[Tensor] = []

    def number(v: Any) -> Any:
        if v is None or isinstance(v, int):
            if isinstance(v, bool):
                raise expected_dtype("integers, slices, None and ... as indices", repr(v))
            return v
        if isinstance(v, Tensor | Convertible):
            inputs.append(convert_to_tensor(v))
            return "?"
        if isinstance(v, Dimension):
            return v.value
        try:
            return operator.index(v)
        except TypeError:
            raise expected_dtype("integers, slices, None and ... as indices", repr(v)) from None

    for k in key if isinstance(key, tuple) else (key,):
        if k is None:
            parts.append(("new",))
        elif k is Ellipsis:
            parts.append(("rest",))
        elif isinstance(k, builtins.slice):
            parts.append(("slice", number(k.start), number(k.stop), number(k.step)))
        else:
            if isinstance(k, Tensor) and k.dtype.is_bool:
                raise expected_dtype("integer indices", "bools: use fs.boolean_mask")
            parts.append(("int", number(k)))
    if parts.count(("rest",)) > 1:
        raise expected("at most one ...", "several")
    return apply(StridedSlice(tuple(parts)), x, *inputs, name=name)


operators["__getitem__"] = getitem


class Slice(
    Op, views=(0,), memory_order="R", grad_reads=("begin",), host_inputs=(1, 2), keeps_finite=True
):
    """A block of the input, by its first position and its size; -1 goes to the end.

    Shapes: x of rank n, begin [n], size [n] -> size
    """

    def infer(self, x: Spec, begin: Spec, size: Spec) -> Spec:
        for s in (begin, size):
            check_shape_vector(s)
            if not compatible(s.shape, (x.rank,)):
                raise expected(f"{x.rank} numbers, one per axis", s.shape)
        sizes = size.shape_value()
        if size.constant is None or begin.constant is None or x.shape is None:
            # A size from dims may stand for -1 where it is not known.
            return Spec(x.dtype, sizes)
        block = zip(x.shape, begin.constant.tolist(), size.constant.tolist())
        return Spec(x.dtype, tuple([_block(d, b, n) for d, b, n in block]))

    def grad(self, g: Tensor, y: Tensor, x: Tensor, begin: Tensor, size: Tensor) -> Any:
        return apply(SliceGrad(), g, shape_of(x), begin), None, None

    def kernel(self, xp: ArrayModule, x: Array, begin: Array, size: Array) -> Array:
        x = boxed(x)
        if begin.shape != (x.ndim,) or size.shape != (x.ndim,):
            raise expected(f"{x.ndim} numbers, one per axis", begin.shape, size.shape)
        starts, sizes = as_sizes(begin), as_sizes(size)
        ends = [b + (_block(d, b, n) or 0) for d, b, n in zip(x.shape, starts, sizes)]
        return x[tuple([builtins.slice(b, e) for b, e in zip(starts, ends)])]


def _block(d: int | None, begin: int, n: int) -> int | None:
    """Returns the length of a block from `begin`, `n` long (-1: to the end), of an axis d long."""
    if d is None:
        return None if n < 0 else n
    if not 0 <= begin <= d or n < -1 or begin + n > d:
        raise expected(f"a block inside an axis of {d}", f"{n} from {begin} on")
    return d - begin if n < 0 else n


class SliceGrad(Op, grad_reads=("begin",), host_inputs=(1, 2)):
    """Zeros of a shape, with the input as the block from `begin` on.

    Shapes: g, shape [n], begin [n] -> shape
    """

    def infer(self, g: Spec, shape: Spec, begin: Spec) -> Spec:
        return Spec(g.dtype, shape.shape_value())

    def grad(self, g: Tensor, y: Tensor, x: Tensor, shape: Tensor, begin: Tensor) -> Any:
        return slice(g, begin, shape_of(x)), None, None

    def kernel(self, xp: ArrayModule, g: Array, shape: Array, begin: Array) -> Array:
        out = xp.zeros(as_sizes(shape), g.dtype)
        out[tuple([builtins.slice(b, b + n) for b, n in zip(as_sizes(begin), g.shape)])] = g
        return out[()]


_SLICE = Slice()


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """Returns a block of a tensor.

    Args:
        input_: A tensor.
        begin: First position of the block, one number per axis.
        size: Its size, one number per axis; -1 goes to the end.
        name: Name of the operation.

    Example:
        >>> fs.Session().run(fs.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [2, 2]))
        array([[2, 3],
               [5, 6]], dtype=int32)
    """
    x = convert_to_tensor(input_)
    return apply(
        _SLICE,
        x,
        as_shape(begin, name or "Slice", "begin"),
        as_shape(size, name or "Slice", "size"),
        name=name,
    )


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """Returns a part of a tensor, as TensorFlow spells it; `x[...]` says the same in Python's way.

    Args:
        input_: A tensor.
        begin: First positions, a list of integers and scalar tensors.
        end: Positions behind the last.
        strides: Steps, 1 by default.
        begin_mask: Bit i: begin[i] does not count, the slice starts at its end of the axis.
        end_mask: Likewise for end[i].
        ellipsis_mask: Bit i: place i stands for all axes that no other place names.
        new_axis_mask: Bit i: place i is a new axis of length 1.
        shrink_axis_mask: Bit i: place i is the integer begin[i], whose axis goes away.
        var: Refused, if not None: `variable[...]` can be assigned to.
        name: Name of the operation.
    """
    refuse("strided_slice", var=var)
    begin, end = _entries(begin), _entries(end)
    steps = [1] * len(begin) if strides is None else _entries(strides)
    key: list[Any] = []
    for i, (b, e, s) in enumerate(zip(begin, end, steps)):
        bit = 1 << i
        if ellipsis_mask & bit:
            key.append(Ellipsis)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            key.append(b)
        else:
            first = None if begin_mask & bit else b
            key.append(builtins.slice(first, None if end_mask & bit else e, s))
    return getitem(input_, tuple(key), name or "StridedSlice")


def _entries(values: Any) -> list[Any]:
    if isinstance(values, Tensor):
        known = get_static_value(values)
        if known is not None:
            return list(known.tolist())
        n = values.spec.shape and values.spec.shape[0]
        if n is None:
            raise expected("a vector of known length", values.spec)
        return [values[i] for i in range(n or 0)]
    return list(values)
