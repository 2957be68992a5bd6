"""Element-wise arithmetic beside the common, sums of several tensors, angles and polynomials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Cost, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import as_dims, compatible, merge_dims, text
from flowscope.ops.core import builder
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import complex, conj, imag, real
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.flow import identity
from flowscope.ops.core.shape_rules import check_kind
from flowscope.ops.core.table import BinaryFunction, binary_op
from flowscope.ops.math.elementwise import (
    _check_divisor,
    abs,
    add,
    atan2,
    div_no_nan,
    floordiv,
    less,
    less_equal,
    multiply,
    negative,
    realdiv,
    square,
    subtract,
)
from flowscope.ops.math.reductions import reduce_all

__all__ = [
    "accumulate_n",
    "add_n",
    "angle",
    "approximate_equal",
    "divide_no_nan",
    "floor_div",
    "is_non_decreasing",
    "is_strictly_increasing",
    "multiply_no_nan",
    "nextafter",
    "polyval",
    "reciprocal_no_nan",
    "truncatediv",
    "truncatemod",
]


def _truncate_div(self: Any, xp: ArrayModule, a: Array, b: Array) -> Array:
    if b.dtype.kind == "f":
        return xp.trunc(a / b)
    _check_divisor(b)
    if b.dtype.kind == "u":
        return a // b
    down = a // b
    return down + ((a % b != 0) & (down < 0)).astype(a.dtype)


def _truncate_mod(self: Any, xp: ArrayModule, a: Array, b: Array) -> Array:
    if b.dtype.kind != "f":
        _check_divisor(b)
    return xp.fmod(a, b)


def _multiply_no_nan(self: Any, xp: ArrayModule, a: Array, b: Array) -> Array:
    return xp.where(b == 0, xp.zeros((), a.dtype), a * b)[()]


# fmt: off
truncatediv: BinaryFunction = binary_op(
    "truncatediv", "TruncateDiv", "x / y cut off towards 0; an error where integers are divided by "
    "zero.", "", "fiu", folds=True, kernel=_truncate_div)
truncatemod: BinaryFunction = binary_op(
    "truncatemod", "TruncateMod", "x - y * truncatediv(x, y): it has x's sign; an error where "
    "integers are divided by zero.", "", "fiu",
    lambda g, y, a, b: (g, negative(multiply(g, truncatediv(a, b)))), "ab", folds=True,
    kernel=_truncate_mod)
multiply_no_nan: BinaryFunction = binary_op(
    "multiply_no_nan", "MulNoNan", "x * y, and 0 where y is 0, whatever x is.", "", "fc",
    lambda g, y, a, b: (multiply_no_nan(g, conj(b)), multiply_no_nan(conj(a), g)), "ab",
    kernel=_multiply_no_nan, name="multiply_no_nan")
nextafter: BinaryFunction = binary_op(
    "nextafter", "NextAfter", "The number next to x1 in the direction of x2.",
    "xp.nextafter({0}, {1})", "f", lambda g, y, a, b: (g, builder.zeros_like(g)),
    parameters=("x1", "x2"))
# fmt: on

floor_div = floordiv
divide_no_nan = div_no_nan


def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """Returns 1 / x, and 0 where x is 0."""
    return div_no_nan(1.0, x, name or "reciprocal_no_nan")


class Angle(Op, grad_reads=("x",)):
    """The angle of complex numbers in their plane, in (-pi, pi]."""

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "c", "complex64 or complex128")
        return x.like(x.dtype.real_dtype)

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        re, im = real(x), imag(x)
        scaled = realdiv(g, add(square(re), square(im)))
        return (complex(negative(multiply(scaled, im)), multiply(scaled, re)),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return xp.angle(x)[()]


def angle(input: Any, name: str | None = None) -> Tensor:
    """Returns the angle of complex numbers; that of real ones is 0, or pi below 0."""
    x = convert_to_tensor(input)
    if x.dtype.is_complex:
        return apply(Angle(), x, name=name)
    if not x.dtype.is_floating:
        raise expected_dtype("floating-point or complex numbers", x.dtype)
    with x.graph.name_scope(name or "Angle"):
        return atan2(builder.zeros_like(x), x)


@op_function("x", scope="ApproximateEqual")
def approximate_equal(x: Any, y: Any, tolerance: float = 1e-5, name: str | None = None) -> Tensor:
    """Returns whether x and y differ by less than `tolerance`, element by element."""
    return less(abs(subtract(x, y)), convert_to_tensor(tolerance, x.dtype.real_dtype))


@op_function("x", scope="polyval")
def polyval(coeffs: Any, x: Any, name: str | None = None) -> Tensor:
    """Returns the value of a polynomial at x, by Horner's rule.

    Args:
        coeffs: A list of coefficients, that of the highest power first.
        x: A tensor.
    """
    if not isinstance(coeffs, list):
        raise expected_dtype("a list of coefficients", type(coeffs).__name__)
    if not coeffs:
        return builder.zeros_like(x)
    terms = [c if isinstance(c, Tensor) else convert_to_tensor(c, x.dtype) for c in coeffs]
    total = terms[0]
    for term in terms[1:]:
        total = add(term, multiply(total, x))
    return total


def accumulate_n(
    inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None
) -> Tensor:
    """Returns the sum of a list of tensors of one dtype and shape.

    Args:
        inputs: A list of tensors.
        shape: The shape that they must fit; None for any.
        tensor_dtype: The dtype that they must have; None for any.
        name: Name of the operation.
    """
    tensors = [convert_to_tensor(t, tensor_dtype) for t in inputs]
    wanted = as_dims(shape)
    for t in tensors:
        if not compatible(t.spec.shape, wanted):
            raise expected(f"tensors of shape {shape}", t.spec)
    return add_n(tensors, name)


def _steps(x: Tensor, compare: Any, name: str) -> Tensor:
    with x.graph.name_scope(name):
        flat = builder.reshape(x, [-1])
        return reduce_all(compare(flat[:-1], flat[1:]))


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Returns whether no element is below the one before it, row by row; true of one or none."""
    return _steps(convert_to_tensor(x), less_equal, name or "is_non_decreasing")


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Returns whether every element is above the one before it, row by row; true of one or none."""
    return _steps(convert_to_tensor(x), less, name or "is_strictly_increasing")


@frozen
class AddN(Op, memory_order="K", accumulates=True, native="sum"):
    """Sum of n tensors of one dtype and shape, from the first to the last.

    Shapes: n times s -> s
    Raises: InvalidArgumentError if the shapes differ; DTypeError if the dtypes do.
    """

    def infer(self, *xs: Spec) -> Spec:
        first = xs[0]
        dims = first.shape
        if not first.dtype.is_numeric:
            raise expected_dtype("a numeric dtype", first.dtype)
        for x in xs:
            if x.dtype is not first.dtype:
                raise expected_dtype("all of one dtype", first.dtype, x.dtype)
            if x.shape != dims:
                if not compatible(x.shape, dims):
                    raise expected("all of one shape", dims, x.shape)
                dims = merge_dims(dims, x.shape)
        return Spec(first.dtype, dims)

    def forwards(self, inputs: Any, output: Spec) -> int | None:
        return 0 if len(inputs) == 1 else None

    def grad(self, g: Tensor, y: Tensor, *xs: Tensor) -> Any:
        return (g,) * len(xs)

    def kernel(self, xp: ArrayModule, *xs: Array) -> Array:
        if len(xs) == 1:
            return +xs[0]
        if len(xs) == 2 and xs[0].shape == xs[1].shape:
            return xs[0] + xs[1]
        if any(x.shape != xs[0].shape for x in xs):
            shapes = ", ".join(text(x.shape) for x in xs)
            raise expected("all of one shape", shapes)
        total = xs[0] + xs[1]
        for x in xs[2:]:
            # `total` is ours; NumPy scalars are immutable and come back as new ones.
            total += x
        return total

    def cost(self, inputs: Any, outputs: Any) -> Any:
        one = super().cost(inputs, outputs)
        return Cost(None if one.flops is None else one.flops * (len(inputs) - 1), one.nbytes)


_ADD_N = AddN()


def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """Returns the sum of a list of tensors of one dtype and shape (nothing is broadcast).

    Args:
        inputs: A list of tensors, or one tensor.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if the list is empty or the shapes differ.

    Example:
        >>> fs.Session().run(fs.add_n([fs.constant(1.0), fs.constant(2.0), fs.constant(3.0)]))
        np.float32(6.0)
    """
    if isinstance(inputs, Tensor | Convertible):
        inputs = [inputs]
    if not isinstance(inputs, list | Iterator | type(())) or not (inputs := list(inputs)):
        raise expected("a list of one tensor at least", "none")
    tensors = [convert_to_tensor(x) for x in inputs]
    if len(tensors) == 1:
        return identity(tensors[0], name) if name else tensors[0]
    return apply(_ADD_N, *tensors, name=name)
