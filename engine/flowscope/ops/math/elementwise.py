"""Element-wise arithmetic and functions, comparisons and logic: one line of a table each.

Gradients of complex tensors follow TensorFlow: the cotangent times the conjugate of the derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import Convertible, constant, convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.op import Array, ArrayModule
from flowscope.graph.operation import Tensor
from flowscope.graph.overloads import operators
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expected import expected
from flowscope.graph.values.host_values import on_host
from flowscope.graph.values.work import per_element
from flowscope.ops.core import builder
from flowscope.ops.core.build import apply, on_values
from flowscope.ops.core.casting import ComplexAbs, cast, conj
from flowscope.ops.core.table import BinaryFunction, UnaryFunction, binary_op, bool_, unary_op

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "div",
    "div_no_nan",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floordiv",
    "floormod",
    "greater",
    "greater_equal",
    "is_finite",
    "is_inf",
    "is_nan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log_sigmoid",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "negative",
    "not_equal",
    "pow",
    "realdiv",
    "reciprocal",
    "rint",
    "round",
    "rsqrt",
    "scalar_mul",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softplus",
    "sqrt",
    "square",
    "squared_difference",
    "subtract",
    "tan",
    "tanh",
    "truediv",
    "xdivy",
    "xlogy",
]


def _times(g: Tensor, derivative: Any) -> Tensor:
    """Returns the cotangent times the derivative's conjugate (a real derivative is its own)."""
    return multiply(g, conj(derivative) if isinstance(derivative, Tensor) else derivative)


# -- kernels that no expression says --------------------------------------------------------------


def _check_divisor(divisor: Array) -> None:
    if not on_host(divisor.all() if divisor.ndim else divisor):
        raise InvalidArgumentError(
            "integer division by zero: expected a divisor without zeros, got one"
        )


def _floor_div(self: Any, xp: ArrayModule, a: Array, b: Array) -> Array:
    if b.dtype.kind in "iu":
        _check_divisor(b)
        return a // b
    return xp.floor(a / b)


def _floor_mod(self: Any, xp: ArrayModule, a: Array, b: Array) -> Array:
    if b.dtype.kind in "iu":
        _check_divisor(b)
    return a % b


def _pow(self: Any, xp: ArrayModule, a: Array, b: Array) -> Array:
    if b.dtype.kind == "i" and on_host((b < 0).any()):
        raise expected("non-negative exponents for integers", "a negative one")
    return xp.power(a, b)


def _div_no_nan(self: Any, xp: ArrayModule, a: Array, b: Array) -> Array:
    return xp.where(b == 0, 0, a / b)[()]


def _xlogy(self: Any, xp: ArrayModule, a: Array, b: Array) -> Array:
    return xp.where(a == 0, 0, a * xp.log(b))[()]


def _xdivy(self: Any, xp: ArrayModule, a: Array, b: Array) -> Array:
    return xp.where(a == 0, 0, a / b)[()]


def _where_some(xp: ArrayModule, dy: Array, dx: Array) -> Array:
    """Returns dx, but 0 where dy is 0: a derivative that is infinite there does not matter."""
    is_zero = dy == 0
    if xp is np and not is_zero.any():
        return dx
    return xp.where(is_zero, dx.dtype.type(0), dx)[()]


def _sqrt_grad(self: Any, xp: ArrayModule, y: Array, dy: Array) -> Array:
    return _where_some(xp, dy, dy * dy.dtype.type(0.5) / y)


def _rsqrt_grad(self: Any, xp: ArrayModule, y: Array, dy: Array) -> Array:
    return _where_some(xp, dy, dy * dy.dtype.type(-0.5) * (y * y * y))


def _reciprocal_grad(self: Any, xp: ArrayModule, y: Array, dy: Array) -> Array:
    return _where_some(xp, dy, -dy * (y * y))


# -- arithmetic -----------------------------------------------------------------------------------

# fmt: off
add: BinaryFunction = binary_op(
    "add", "Add", "x + y, element by element.", "{0} + {1}", "fiucs",
    lambda g, y, a, b: (g, g), folds=True, may_run_early=True, on_numbers=True)
subtract: BinaryFunction = binary_op(
    "subtract", "Sub", "x - y, element by element.", "{0} - {1}", "fiuc",
    lambda g, y, a, b: (g, negative(g)), folds=True, unit=0,
    may_run_early=True, on_numbers=True)
multiply: BinaryFunction = binary_op(
    "multiply", "Mul", "x * y, element by element.", "{0} * {1}", "fiuc",
    lambda g, y, a, b: (_times(g, b), _times(g, a)), "ab", folds=True, unit=1, commutes=True,
    may_run_early=True, on_numbers=True)
realdiv: BinaryFunction = binary_op(
    "realdiv", "RealDiv", "x / y of floating-point numbers.", "{0} / {1}", "fc",
    lambda g, y, a, b: (_over(g, b), negative(_times(g, realdiv(y, b)))), "by", unit=1)
_floordiv: BinaryFunction = binary_op(
    "floordiv", "FloorDiv",
    "The largest integer not above x / y; an error where integers are divided by zero.", "",
    "fiu", folds=True, kernel=_floor_div, native="floor_divide")
floormod: BinaryFunction = binary_op(
    "floormod", "FloorMod",
    "x - y * floor(x / y): it has y's sign; an error where integers are divided by zero.", "",
    "fiu", lambda g, y, a, b: (g, negative(multiply(g, _floordiv(a, b)))), "ab", folds=True,
    kernel=_floor_mod, native="floor_remainder")
pow: BinaryFunction = binary_op(
    "pow", "Pow", "x to the power of y, element by element.", "", "fiuc",
    lambda g, y, a, b: _pow_grad(g, y, a, b), "aby", kernel=_pow, work=per_element(15e-9),
    native="power")
maximum: BinaryFunction = binary_op(
    "maximum", "Maximum", "The larger of x and y; NaN if one is.", "xp.maximum({0}, {1})", "fiu",
    lambda g, y, a, b: _choice_grad(g, greater_equal(a, b)), "ab",
    "({0} if {0} >= {1} or {0} != {0} else {1})", folds=True, keeps_finite=True, on_numbers=True,
    native="maximum")
minimum: BinaryFunction = binary_op(
    "minimum", "Minimum", "The smaller of x and y; NaN if one is.", "xp.minimum({0}, {1})", "fiu",
    lambda g, y, a, b: _choice_grad(g, less_equal(a, b)), "ab",
    "({0} if {0} <= {1} or {0} != {0} else {1})", folds=True, keeps_finite=True, on_numbers=True,
    native="minimum")
_squared_difference: BinaryFunction = binary_op(
    "squared_difference", "SquaredDifference", "(x - y) * (x - y), element by element.",
    "xp.square({0} - {1})", "fi",
    lambda g, y, a, b: _opposite(multiply(multiply(2.0, g), subtract(a, b))), "ab")
atan2: BinaryFunction = binary_op(
    "atan2", "Atan2", "The angle of the point (y, x), in (-pi, pi]; x comes second.",
    "xp.arctan2({0}, {1})", "f",
    lambda g, y, a, b: _atan2_grad(g, a, b), "ab", parameters=("y", "x"), work=per_element(15e-9))
div_no_nan: BinaryFunction = binary_op(
    "div_no_nan", "DivNoNan", "x / y, and 0 where y is 0.", "", "f",
    lambda g, y, a, b: (div_no_nan(g, b), multiply(g, div_no_nan(negative(y), b))), "by",
    kernel=_div_no_nan, name="div_no_nan", native="div_no_nan")
xlogy: BinaryFunction = binary_op(
    "xlogy", "Xlogy", "x * log(y), and 0 where x is 0.", "", "f",
    lambda g, y, a, b: (multiply(g, xlogy(_nonzero(a), b)), multiply(g, xdivy(a, b))), "ab",
    kernel=_xlogy, native="xlogy")
xdivy: BinaryFunction = binary_op(
    "xdivy", "Xdivy", "x / y, and 0 where x is 0.", "", "f",
    lambda g, y, a, b: (
        multiply(g, xdivy(_nonzero(a), b)), multiply(g, negative(xdivy(a, square(b))))), "ab",
    kernel=_xdivy, native="xdivy")

negative: UnaryFunction = unary_op(
    "negative", "Neg", "-x, element by element.", "-{0}", "fiuc",
    lambda g, y, x: negative(g), folds=True, takes_sparse=True, keeps_finite=True, on_numbers=True)
_abs: UnaryFunction = unary_op(
    "abs", "Abs", "The absolute value, element by element.", "xp.abs({0})", "fiu",
    lambda g, y, x: multiply(g, sign(x)), "x", "abs({0})", keeps_finite=True)
sign: UnaryFunction = unary_op(
    "sign", "Sign", "-1, 0 or 1 by x's sign; x / |x| for complex numbers.", "xp.sign({0})", "fiuc",
    lambda g, y, x: _filled_like(g, 0.0), takes_sparse=True, keeps_finite=True)
square: UnaryFunction = unary_op(
    "square", "Square", "x * x, element by element.", "xp.square({0})", "fiuc",
    lambda g, y, x: _times(g, multiply(2.0, x)), "x", "{0} * {0}", takes_sparse=True)
sqrt: UnaryFunction = unary_op(
    "sqrt", "Sqrt", "The square root, element by element.", "xp.sqrt({0})", "fc",
    lambda g, y, x: sqrt_grad(conj(y), g), "y", takes_sparse=True)
rsqrt: UnaryFunction = unary_op(
    "rsqrt", "Rsqrt", "1 / sqrt(x), element by element.", "xp.reciprocal(xp.sqrt({0}))", "fc",
    lambda g, y, x: rsqrt_grad(conj(y), g), "y", work=per_element(1e-9))
reciprocal: UnaryFunction = unary_op(
    "reciprocal", "Reciprocal", "1 / x, element by element.", "xp.reciprocal({0})", "fc",
    lambda g, y, x: reciprocal_grad(conj(y), g), "y")
floor: UnaryFunction = unary_op(
    "floor", "Floor", "The largest integer not above x.", "xp.floor({0})", "f", keeps_finite=True)
ceil: UnaryFunction = unary_op(
    "ceil", "Ceil", "The smallest integer not below x.", "xp.ceil({0})", "f", keeps_finite=True)
rint: UnaryFunction = unary_op(
    "rint", "Rint", "The nearest integer; halves to the even one.", "xp.rint({0})", "f",
    keeps_finite=True)

# -- functions ------------------------------------------------------------------------------------

exp: UnaryFunction = unary_op(
    "exp", "Exp", "e to the power of x.", "xp.exp({0})", "fc",
    lambda g, y, x: _times(g, y), "y", work=per_element(1e-9))
expm1: UnaryFunction = unary_op(
    "expm1", "Expm1", "exp(x) - 1, exact near 0.", "xp.expm1({0})", "fc",
    lambda g, y, x: _times(g, exp(x)), "x", work=per_element(1e-9))
log: UnaryFunction = unary_op(
    "log", "Log", "The natural logarithm.", "xp.log({0})", "fc",
    lambda g, y, x: _times(g, reciprocal(x)), "x", work=per_element(1e-9))
log1p: UnaryFunction = unary_op(
    "log1p", "Log1p", "log(1 + x), exact near 0.", "xp.log1p({0})", "fc",
    lambda g, y, x: _times(g, reciprocal(add(1.0, x))), "x", work=per_element(1e-9))
sin: UnaryFunction = unary_op(
    "sin", "Sin", "The sine.", "xp.sin({0})", "fc",
    lambda g, y, x: _times(g, cos(x)), "x", work=per_element(5e-9), keeps_finite=True)
cos: UnaryFunction = unary_op(
    "cos", "Cos", "The cosine.", "xp.cos({0})", "fc",
    lambda g, y, x: negative(_times(g, sin(x))), "x", work=per_element(5e-9), keeps_finite=True)
tan: UnaryFunction = unary_op(
    "tan", "Tan", "The tangent.", "xp.tan({0})", "fc",
    lambda g, y, x: _times(g, add(1.0, square(y))), "y", work=per_element(5e-9))
asin: UnaryFunction = unary_op(
    "asin", "Asin", "The inverse sine.", "xp.arcsin({0})", "fc",
    lambda g, y, x: _times(g, reciprocal(sqrt(subtract(1.0, square(x))))), "x",
    work=per_element(5e-9))
acos: UnaryFunction = unary_op(
    "acos", "Acos", "The inverse cosine.", "xp.arccos({0})", "fc",
    lambda g, y, x: negative(_times(g, reciprocal(sqrt(subtract(1.0, square(x)))))), "x",
    work=per_element(5e-9))
atan: UnaryFunction = unary_op(
    "atan", "Atan", "The inverse tangent.", "xp.arctan({0})", "fc",
    lambda g, y, x: _times(g, reciprocal(add(1.0, square(x)))), "x", work=per_element(5e-9))
sinh: UnaryFunction = unary_op(
    "sinh", "Sinh", "The hyperbolic sine.", "xp.sinh({0})", "fc",
    lambda g, y, x: _times(g, cosh(x)), "x", work=per_element(15e-9))
cosh: UnaryFunction = unary_op(
    "cosh", "Cosh", "The hyperbolic cosine.", "xp.cosh({0})", "fc",
    lambda g, y, x: _times(g, sinh(x)), "x", work=per_element(15e-9))
tanh: UnaryFunction = unary_op(
    "tanh", "Tanh", "The hyperbolic tangent.", "xp.tanh({0})", "fc",
    lambda g, y, x: tanh_grad(conj(y), g), "y", takes_sparse=True,
    work=per_element(1e-9), keeps_finite=True)
asinh: UnaryFunction = unary_op(
    "asinh", "Asinh", "The inverse hyperbolic sine.", "xp.arcsinh({0})", "fc",
    lambda g, y, x: _over(g, cosh(y)), "y", takes_sparse=True)
acosh: UnaryFunction = unary_op(
    "acosh", "Acosh", "The inverse hyperbolic cosine.", "xp.arccosh({0})", "fc",
    lambda g, y, x: _over(g, sinh(y)), "y")
atanh: UnaryFunction = unary_op(
    "atanh", "Atanh", "The inverse hyperbolic tangent.", "xp.arctanh({0})", "fc",
    lambda g, y, x: _times(g, reciprocal(subtract(1.0, square(x)))), "x")
sigmoid: UnaryFunction = unary_op(
    "sigmoid", "Sigmoid", "1 / (1 + exp(-x)).", "xp.reciprocal(xp.exp(-{0}) + 1)", "fc",
    lambda g, y, x: sigmoid_grad(conj(y), g), "y", work=per_element(1e-9), keeps_finite=True)
softplus: UnaryFunction = unary_op(
    "softplus", "Softplus", "log(1 + exp(x)), without overflow.",
    "xp.log1p(xp.exp(-xp.abs({0}))) + xp.maximum({0}, 0)", "f",
    lambda g, y, x: multiply(g, sigmoid(x)), "x", parameter="features", work=per_element(1e-9))
tanh_grad: BinaryFunction = binary_op(
    "tanh_grad", "TanhGrad", "dy * (1 - y * y): tanh's gradient from its output y.",
    "{1} * (1 - {0} * {0})", "fc",
    lambda g, dx, y, dy: (_times(multiply(g, -2.0), multiply(y, dy)), tanh_grad(conj(y), g)), "ab")
sigmoid_grad: BinaryFunction = binary_op(
    "sigmoid_grad", "SigmoidGrad", "dy * y * (1 - y): sigmoid's gradient from its output y.",
    "{1} * {0} * (1 - {0})", "fc",
    lambda g, dx, y, dy: (
        _times(g, multiply(dy, subtract(1.0, multiply(2.0, y)))), sigmoid_grad(conj(y), g)), "ab")

sqrt_grad: BinaryFunction = binary_op(
    "sqrt_grad", "SqrtGrad", "dy / (2 * y): sqrt's gradient from its output y; 0 where dy is.", "",
    "fc", lambda g, dx, y, dy: (
        negative(_times(_over(g, y), dx)), multiply(0.5, _over(g, y))), "ay", kernel=_sqrt_grad,
    native="sqrt_grad")
rsqrt_grad: BinaryFunction = binary_op(
    "rsqrt_grad", "RsqrtGrad", "-dy / 2 * y ** 3: rsqrt's gradient from its output y; 0 where dy "
    "is.", "", "fc", lambda g, dx, y, dy: (
        _times(multiply(-1.5, g), multiply(dy, square(y))), rsqrt_grad(conj(y), g)), "ab",
    kernel=_rsqrt_grad)
reciprocal_grad: BinaryFunction = binary_op(
    "reciprocal_grad", "ReciprocalGrad", "-dy * y * y: reciprocal's gradient from its output y; 0 "
    "where dy is.", "", "fc", lambda g, dx, y, dy: (
        _times(multiply(-2.0, g), multiply(dy, y)), reciprocal_grad(conj(y), g)), "ab",
    kernel=_reciprocal_grad, native="reciprocal_grad")

# -- comparisons and logic ------------------------------------------------------------------------

equal: BinaryFunction = binary_op(
    "equal", "Equal", "Whether x == y, element by element.", "xp.equal({0}, {1})", "fiucbs",
    scalar="{0} == {1}", out=bool_, may_run_early=True, on_numbers=True)
not_equal: BinaryFunction = binary_op(
    "not_equal", "NotEqual", "Whether x != y, element by element.", "xp.not_equal({0}, {1})",
    "fiucbs", scalar="{0} != {1}", out=bool_, may_run_early=True, on_numbers=True)
less: BinaryFunction = binary_op(
    "less", "Less", "Whether x < y, element by element.", "{0} < {1}", "fiu", out=bool_,
    may_run_early=True, on_numbers=True)
less_equal: BinaryFunction = binary_op(
    "less_equal", "LessEqual", "Whether x <= y, element by element.", "{0} <= {1}", "fiu",
    out=bool_, may_run_early=True, on_numbers=True)
greater: BinaryFunction = binary_op(
    "greater", "Greater", "Whether x > y, element by element.", "{0} > {1}", "fiu", out=bool_,
    may_run_early=True, on_numbers=True)
greater_equal: BinaryFunction = binary_op(
    "greater_equal", "GreaterEqual", "Whether x >= y, element by element.", "{0} >= {1}", "fiu",
    out=bool_, may_run_early=True, on_numbers=True)
logical_and: BinaryFunction = binary_op(
    "logical_and", "LogicalAnd", "x and y, element by element.", "{0} & {1}", "b",
    may_run_early=True, on_numbers=True)
logical_or: BinaryFunction = binary_op(
    "logical_or", "LogicalOr", "x or y, element by element.", "{0} | {1}", "b",
    may_run_early=True, on_numbers=True)
logical_xor: BinaryFunction = binary_op(
    "logical_xor", "LogicalXor", "Whether x and y differ, element by element.", "{0} ^ {1}", "b")
logical_not: UnaryFunction = unary_op(
    "logical_not", "LogicalNot", "Not x, element by element.", "~{0}", "b",
    may_run_early=True, on_numbers=True)
is_nan: UnaryFunction = unary_op(
    "is_nan", "IsNan", "Whether x is NaN.", "xp.isnan({0})", "f", out=bool_)
is_inf: UnaryFunction = unary_op(
    "is_inf", "IsInf", "Whether x is infinite.", "xp.isinf({0})", "f", out=bool_)
is_finite: UnaryFunction = unary_op(
    "is_finite", "IsFinite", "Whether x is neither infinite nor NaN.", "xp.isfinite({0})", "f",
    out=bool_)
# fmt: on


# -- gradients that need more than a line ---------------------------------------------------------


def _over(g: Tensor, divisor: Tensor) -> Tensor:
    return realdiv(g, conj(divisor))


def squared_difference(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Returns (x - y) * (x - y), element by element; of complex numbers |x - y|^2, complex too.

    Args:
        x: A tensor of numbers.
        y: Another of the same dtype; shapes are broadcast.
        name: Name of the operation.
    """
    if not _is_complex(x) and not _is_complex(y):
        return _squared_difference(x, y, name)
    distance = subtract(x, y)
    return multiply(conj(distance), distance, name or "SquaredDifference")


def _is_complex(x: Any) -> bool:
    if isinstance(x, list | tuple):
        return any(_is_complex(v) for v in x)
    dtype = getattr(x, "dtype", None)
    return dtype.is_complex if isinstance(dtype, DType) else np.iscomplexobj(x)


def _opposite(d: Tensor) -> tuple[Tensor, Tensor]:
    return d, negative(d)


def _nonzero(a: Tensor) -> Tensor:
    return cast(not_equal(a, 0.0), a.dtype)


def _choice_grad(g: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the cotangents where `first` says that the first input was taken; at ties it was.

    A product with 0 would not do: it is NaN where the cotangent is infinite.
    """
    zero = builder.zeros_like(g)
    return builder.where(first, g, zero), builder.where(first, zero, g)


def _atan2_grad(g: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    scaled = realdiv(g, add(square(a), square(b)))
    return multiply(scaled, b), negative(multiply(scaled, a))


def _pow_grad(g: Tensor, y: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor | None]:
    """Returns g * b * a ** (b - 1) and g * y * log(a), the latter 0 where a is not positive."""
    if b.spec.constant is not None:
        less_one = constant(np.asarray(b.spec.constant) - 1, b.dtype)
        return _times(g, multiply(b, pow(a, less_one))), None
    base = _times(g, multiply(b, pow(a, subtract(b, 1.0))))
    good = not_equal(a, 0.0) if a.dtype.is_complex else greater(a, 0.0)
    safe = builder.where(good, a, _filled_like(a, 1.0))
    logs = builder.where(good, log(safe), _filled_like(a, 0.0))
    return base, _times(g, multiply(y, logs))


def _filled_like(a: Tensor, value: float) -> Tensor:
    return builder.ones_like(a) if value else builder.zeros_like(a)


# -- functions on top of the tables ---------------------------------------------------------------


def abs(x: Any, name: str | None = None) -> Tensor:
    """Returns the absolute value; that of complex numbers is real.

    Args:
        x: A tensor of numbers.
        name: Name of the operation.
    """
    if not isinstance(x, Tensor):
        if hasattr(x, "with_values"):
            return on_values(x, lambda values: abs(values, name))  # type: ignore[no-any-return]
        x = convert_to_tensor(x, name=f"{name or 'Abs'}/x")
    if x.spec.dtype.is_complex:
        return apply(ComplexAbs(), x, name=name)
    return _abs(x, name=name)


def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Returns x / y as Python 3 divides: integers become floating-point numbers first.

    Args:
        x: A tensor.
        y: A tensor of the same dtype. int8, int16 and their unsigned kin become float32, wider
            integers float64.
        name: Name of the operation.
    """
    x, y = _operands(x, y, name or "truediv")
    if x.dtype.kind in "iu":
        wide = "float32" if x.dtype.size <= 2 else "float64"
        if y.dtype is x.dtype:
            x, y = cast(x, wide), cast(y, wide)
    return realdiv(x, y, name or "truediv")


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Returns x / y as Python 3 divides."""
    return truediv(x, y, name)


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Returns x / y as Python 2 divides: floating-point numbers exactly, integers rounded down."""
    x, y = _operands(x, y, name or "div")
    return (_floordiv if x.dtype.kind in "iu" else realdiv)(x, y, name or "div")


def floordiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Returns the largest integer not above x / y; an error where integers are divided by zero."""
    return _floordiv(x, y, name or "floordiv")


mod = floormod


def round(x: Any, name: str | None = None) -> Tensor:
    """Returns the nearest integers; halves go to the even one."""
    x = convert_to_tensor(x)
    return x if x.dtype.kind in "iu" else rint(x, name or "Round")


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Tensor:
    """Returns a scalar times a tensor, or times IndexedSlices.

    Raises:
        InvalidArgumentError: if the first argument is not of rank 0.
    """
    if isinstance(x, IndexedSlices):
        scaled = on_values(x, lambda values: scalar_mul(scalar, values, name))
        return scaled  # type: ignore[no-any-return]
    x = convert_to_tensor(x)
    scalar = convert_to_tensor(scalar, x.dtype)
    if scalar.spec.shape not in (None, ()):
        raise expected("a scalar", scalar.spec)
    return multiply(scalar, x, name)


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """Returns log(sigmoid(x)), without overflow."""
    return negative(softplus(negative(x)), name or "LogSigmoid")


def _operands(x: Any, y: Any, name: str) -> tuple[Tensor, Tensor]:
    if isinstance(x, Tensor | Convertible) and isinstance(y, Tensor | Convertible):
        return convert_to_tensor(x), convert_to_tensor(y)
    # What is made of a number stands in the scope that the operation is about to get.
    owner = get_default_graph().unique_name(name, mark_as_used=False)
    if isinstance(y, Tensor | Convertible):
        y = convert_to_tensor(y)
        return convert_to_tensor(x, y.dtype, f"{owner}/x/"), y
    x = convert_to_tensor(x, None, f"{owner}/x/")
    return x, convert_to_tensor(y, x.dtype, f"{owner}/y/")


def _operator(function: Any, name: str) -> Any:
    return lambda x, y: function(x, y, name)


def _bitwise(name: str, logical: Any, *others: Any) -> Any:
    """Returns the operator that is `logical` of bools and works on the bits of integers."""

    def operator(x: Any, *y: Any) -> Tensor:
        from flowscope.ops.math import bits

        typed = x if isinstance(getattr(x, "dtype", None), DType) else y[0]
        function = getattr(bits, name) if typed.dtype.is_integer else logical
        return function(x, *y, *others)  # type: ignore[no-any-return]

    return operator


operators.update(
    {
        "__add__": _operator(add, "add"),
        "__sub__": _operator(subtract, "sub"),
        "__mul__": _operator(multiply, "mul"),
        "__truediv__": truediv,
        "__floordiv__": floordiv,
        "__mod__": _operator(floormod, "mod"),
        "__pow__": _operator(pow, "pow"),
        "__and__": _bitwise("bitwise_and", logical_and, "and"),
        "__or__": _bitwise("bitwise_or", logical_or, "or"),
        "__xor__": _bitwise("bitwise_xor", logical_xor, "xor"),
        "__lt__": less,
        "__le__": less_equal,
        "__gt__": greater,
        "__ge__": greater_equal,
        "__neg__": negative,
        "__abs__": abs,
        "__invert__": _bitwise("invert", logical_not),
    }
)
