"""Special functions: a line of a table each; the kernels are SciPy's, and CuPy's on GPUs.

What SciPy computes in double precision alone is rounded to the input's dtype, so that float16 and
bfloat16 get as many good digits as they have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.values.shapes import broadcast
from flowscope.graph.values.work import per_element
from flowscope.ops.core import builder
from flowscope.ops.core.broadcasting import unbroadcast
from flowscope.ops.core.build import apply
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind, check_same
from flowscope.ops.core.table import BinaryFunction, UnaryFunction, binary_op, unary_op
from flowscope.ops.kernels.erf import erf32
from flowscope.ops.kernels.incomplete_gamma import derivative_by_a
from flowscope.ops.kernels.scipy_modules import scipy_of
from flowscope.ops.math.elementwise import (
    add,
    cos,
    equal,
    exp,
    log,
    multiply,
    negative,
    realdiv,
    sign,
    sin,
    square,
    subtract,
    xdivy,
    xlogy,
)
from flowscope.ops.math.reductions import reduce_sum

__all__ = [
    "bessel_i0",
    "bessel_i0e",
    "bessel_i1",
    "bessel_i1e",
    "betainc",
    "digamma",
    "erf",
    "erfc",
    "erfcinv",
    "erfinv",
    "igamma",
    "igammac",
    "lbeta",
    "lgamma",
    "ndtri",
    "polygamma",
    "xlog1py",
    "zeta",
]

_CPU = ("CPU",)
#: From so many numbers on, vectorised functions are worth their calls.
_MANY = 1 << 10


def _wide(xp: ArrayModule, x: Array) -> Array:
    """Returns x as SciPy takes it: small floating-point numbers as float32."""
    return x if x.dtype.itemsize >= 4 else x.astype(xp.float32)


def _scipy(name: str, part: int | None = None) -> Callable[..., Array]:
    """Returns the kernel of SciPy's function `name`, or of one of the several that it returns."""

    def kernel(self: Any, xp: ArrayModule, *xs: Array) -> Array:
        out = getattr(scipy_of(xp, "special"), name)(*[_wide(xp, x) for x in xs])
        return (out if part is None else out[part]).astype(xs[0].dtype)

    return kernel


def _erf(self: Any, xp: ArrayModule, x: Array) -> Array:
    if xp is np and x.dtype == np.float32 and x.size >= _MANY and x.flags.c_contiguous:
        return erf32(x)
    return scipy_of(xp, "special").erf(_wide(xp, x)).astype(x.dtype)


def _lgamma(self: Any, xp: ArrayModule, x: Array) -> Array:
    out = scipy_of(xp, "special").gammaln(_wide(xp, x))
    return xp.where(xp.isinf(x), xp.inf, out).astype(x.dtype)[()]


def _polygamma(self: Any, xp: ArrayModule, n: Array, x: Array) -> Array:
    special, dtype = scipy_of(xp, "special"), x.dtype
    n, x = _wide(xp, n), _wide(xp, x)
    odd = 2 * (n % 2) - 1
    of_order = odd * special.gamma(n + 1) * special.zeta(n + 1, x)
    whole = (n >= 0) & (n == xp.floor(n))
    out = xp.where(n == 0, special.psi(x), xp.where(whole, of_order, xp.nan))
    return out.astype(dtype)[()]


def _xlog1py(self: Any, xp: ArrayModule, a: Array, b: Array) -> Array:
    return xp.where(a == 0, xp.zeros((), a.dtype), a * xp.log1p(b))[()]


def _igamma_grad_a(self: Any, xp: ArrayModule, a: Array, x: Array) -> Array:
    return derivative_by_a(xp, scipy_of(xp, "special"), a, x).astype(a.dtype)[()]


def _times(g: Tensor, derivative: Any) -> Tensor:
    return multiply(g, derivative)


def _at_zero(x: Tensor, value: float, elsewhere: Callable[[Tensor], Tensor]) -> Tensor:
    """Returns `elsewhere` of x, and a value where x is 0, which it never sees."""
    is_zero = equal(x, 0.0)
    safe = builder.where(is_zero, builder.ones_like(x), x)
    return builder.where(is_zero, multiply(builder.ones_like(x), value), elsewhere(safe))


# fmt: off
erf: UnaryFunction = unary_op(
    "erf", "Erf", "The error function: 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x.",
    "", "f", lambda g, y, x: _times(g, multiply(exp(negative(square(x))), 2 / math.sqrt(math.pi))),
    "x", kernel=_erf, takes_sparse=True, work=per_element(5e-9))
erfc: UnaryFunction = unary_op(
    "erfc", "Erfc", "1 - erf(x), exact where erf(x) is close to 1.", "", "f",
    lambda g, y, x: _times(g, multiply(exp(negative(square(x))), -2 / math.sqrt(math.pi))), "x",
    kernel=_scipy("erfc"), work=per_element(15e-9))
erfinv: UnaryFunction = unary_op(
    "erfinv", "Erfinv", "The inverse of erf.", "", "f",
    lambda g, y, x: _times(g, multiply(exp(square(y)), math.sqrt(math.pi) / 2)), "y",
    kernel=_scipy("erfinv"), name="erfinv")
ndtri: UnaryFunction = unary_op(
    "ndtri", "Ndtri", "The quantile function of the normal distribution.", "", "f",
    lambda g, y, x: _times(g, multiply(exp(multiply(square(y), 0.5)), math.sqrt(2 * math.pi))), "y",
    kernel=_scipy("ndtri"), name="ndtri")
lgamma: UnaryFunction = unary_op(
    "lgamma", "Lgamma", "The logarithm of the absolute value of the gamma function.", "", "f",
    lambda g, y, x: _times(g, digamma(x)), "x", kernel=_lgamma, work=per_element(15e-9))
digamma: UnaryFunction = unary_op(
    "digamma", "Digamma", "The derivative of lgamma.", "", "f",
    lambda g, y, x: _times(g, polygamma(builder.ones_like(x), x)), "x", kernel=_scipy("psi"),
    work=per_element(15e-9))
polygamma: BinaryFunction = binary_op(
    "polygamma", "Polygamma", "The derivative of order a of digamma, at x.", "", "f",
    lambda g, y, n, x: (None, _times(g, polygamma(add(n, 1.0), x))), "ab", kernel=_polygamma,
    parameters=("a", "x"))
zeta: BinaryFunction = binary_op(
    "zeta", "Zeta", "Hurwitz' zeta function: the sum of (n + q) to the power of -x, for n from 0.",
    "", "f", lambda g, y, x, q: (None, _times(g, multiply(negative(x), zeta(add(x, 1.0), q)))),
    "ab", kernel=_scipy("zeta"), parameters=("x", "q"))
igamma: BinaryFunction = binary_op(
    "igamma", "Igamma", "The lower incomplete gamma function of a at x, divided by gamma(a).", "",
    "f", lambda g, y, a, x: (
        _times(g, igamma_grad_a(a, x)), _times(g, _gamma_density(a, x))), "ab",
    kernel=_scipy("gammainc"), parameters=("a", "x"))
igammac: BinaryFunction = binary_op(
    "igammac", "Igammac", "The upper incomplete gamma function of a at x, divided by gamma(a).", "",
    "f", lambda g, y, a, x: (
        negative(_times(g, igamma_grad_a(a, x))), negative(_times(g, _gamma_density(a, x)))), "ab",
    kernel=_scipy("gammaincc"), parameters=("a", "x"))
igamma_grad_a: BinaryFunction = binary_op(
    "igamma_grad_a", "IgammaGradA", "The derivative of igamma(a, x) by a.", "", "f",
    kernel=_igamma_grad_a, parameters=("a", "x"))
xlog1py: BinaryFunction = binary_op(
    "xlog1py", "Xlog1py", "x * log(1 + y), and 0 where x is 0.", "", "f",
    lambda g, y, a, b: (
        _times(g, xlog1py(_nonzero(a), b)), _times(g, xdivy(a, add(b, 1.0)))), "ab",
    kernel=_xlog1py, name="xlog1py")

# -- Bessel functions -----------------------------------------------------------------------------

bessel_i0: UnaryFunction = unary_op(
    "bessel_i0", "BesselI0", "The modified Bessel function of order 0.", "", "f",
    lambda g, y, x: _times(g, bessel_i1(x)), "x", kernel=_scipy("i0"), name="bessel_i0")
bessel_i0e: UnaryFunction = unary_op(
    "bessel_i0e", "BesselI0e", "exp(-abs(x)) * bessel_i0(x).", "", "f",
    lambda g, y, x: _times(g, subtract(bessel_i1e(x), multiply(sign(x), y))), "xy",
    kernel=_scipy("i0e"), name="bessel_i0e")
bessel_i1: UnaryFunction = unary_op(
    "bessel_i1", "BesselI1", "The modified Bessel function of order 1.", "", "f",
    lambda g, y, x: _times(
        g, _at_zero(x, 0.5, lambda v: subtract(bessel_i0(v), realdiv(bessel_i1(v), v)))), "x",
    kernel=_scipy("i1"), name="bessel_i1")
bessel_i1e: UnaryFunction = unary_op(
    "bessel_i1e", "BesselI1e", "exp(-abs(x)) * bessel_i1(x).", "", "f",
    lambda g, y, x: _times(g, _at_zero(x, 0.5, lambda v: subtract(
        bessel_i0e(v), multiply(bessel_i1e(v), add(sign(v), realdiv(1.0, v)))))), "x",
    kernel=_scipy("i1e"), name="bessel_i1e")
bessel_j0: UnaryFunction = unary_op(
    "bessel_j0", "BesselJ0", "The Bessel function of the first kind of order 0.", "", "f",
    lambda g, y, x: negative(_times(g, bessel_j1(x))), "x", kernel=_scipy("j0"), name="bessel_j0")
bessel_j1: UnaryFunction = unary_op(
    "bessel_j1", "BesselJ1", "The Bessel function of the first kind of order 1.", "", "f",
    lambda g, y, x: _times(
        g, _at_zero(x, 0.5, lambda v: subtract(bessel_j0(v), realdiv(bessel_j1(v), v)))), "x",
    kernel=_scipy("j1"), name="bessel_j1")
bessel_y0: UnaryFunction = unary_op(
    "bessel_y0", "BesselY0", "The Bessel function of the second kind of order 0.", "", "f",
    lambda g, y, x: negative(_times(g, bessel_y1(x))), "x", kernel=_scipy("y0"), name="bessel_y0")
bessel_y1: UnaryFunction = unary_op(
    "bessel_y1", "BesselY1", "The Bessel function of the second kind of order 1.", "", "f",
    lambda g, y, x: _times(g, subtract(bessel_y0(x), realdiv(y, x))), "xy",
    kernel=_scipy("y1"), name="bessel_y1")
bessel_k0: UnaryFunction = unary_op(
    "bessel_k0", "BesselK0", "The modified Bessel function of the second kind of order 0.", "", "f",
    lambda g, y, x: negative(_times(g, bessel_k1(x))), "x", kernel=_scipy("k0"), name="bessel_k0",
    devices=_CPU)
bessel_k0e: UnaryFunction = unary_op(
    "bessel_k0e", "BesselK0e", "exp(x) * bessel_k0(x).", "", "f",
    lambda g, y, x: _times(g, subtract(y, bessel_k1e(x))), "xy", kernel=_scipy("k0e"),
    name="bessel_k0e", devices=_CPU)
bessel_k1: UnaryFunction = unary_op(
    "bessel_k1", "BesselK1", "The modified Bessel function of the second kind of order 1.", "", "f",
    lambda g, y, x: negative(_times(g, add(bessel_k0(x), realdiv(y, x)))), "xy",
    kernel=_scipy("k1"), name="bessel_k1", devices=_CPU)
bessel_k1e: UnaryFunction = unary_op(
    "bessel_k1e", "BesselK1e", "exp(x) * bessel_k1(x).", "", "f",
    lambda g, y, x: _times(
        g, subtract(multiply(y, subtract(1.0, realdiv(1.0, x))), bessel_k0e(x))), "xy",
    kernel=_scipy("k1e"), name="bessel_k1e", devices=_CPU)

# -- integrals ------------------------------------------------------------------------------------

dawsn: UnaryFunction = unary_op(
    "dawsn", "Dawsn", "Dawson's integral: exp(-x * x) times that of exp(t * t) from 0 to x.", "",
    "f", lambda g, y, x: _times(g, subtract(1.0, multiply(2.0, multiply(x, y)))), "xy",
    kernel=_scipy("dawsn"), name="dawsn", devices=_CPU)
expint: UnaryFunction = unary_op(
    "expint", "Expint", "The integral of exp(t) / t from minus infinity to x.", "", "f",
    lambda g, y, x: _times(g, realdiv(exp(x), x)), "x", kernel=_scipy("expi"), name="expint",
    devices=_CPU)
fresnel_cos: UnaryFunction = unary_op(
    "fresnel_cos", "FresnelCos", "The integral of cos(pi / 2 * t * t) from 0 to x.", "", "f",
    lambda g, y, x: _times(g, cos(multiply(square(x), math.pi / 2))), "x",
    kernel=_scipy("fresnel", 1), name="fresnel_cos", devices=_CPU)
fresnel_sin: UnaryFunction = unary_op(
    "fresnel_sin", "FresnelSin", "The integral of sin(pi / 2 * t * t) from 0 to x.", "", "f",
    lambda g, y, x: _times(g, sin(multiply(square(x), math.pi / 2))), "x",
    kernel=_scipy("fresnel", 0), name="fresnel_sin", devices=_CPU)
spence: UnaryFunction = unary_op(
    "spence", "Spence", "Spence's integral: that of -log(t) / (t - 1) from 1 to x.", "", "f",
    lambda g, y, x: _times(g, _at_one(x)), "x", kernel=_scipy("spence"), name="spence",
    devices=_CPU)
# fmt: on


def _at_one(x: Tensor) -> Tensor:
    """Returns the derivative of Spence's integral, log(x) / (1 - x), and its limit at 1."""
    is_one = equal(x, 1.0)
    safe = builder.where(is_one, multiply(builder.ones_like(x), 2.0), x)
    return builder.where(
        is_one, negative(builder.ones_like(x)), realdiv(log(safe), subtract(1.0, safe))
    )


def _nonzero(a: Tensor) -> Tensor:
    return builder.where(equal(a, 0.0), builder.zeros_like(a), builder.ones_like(a))


def _gamma_density(a: Tensor, x: Tensor) -> Tensor:
    """Returns x ** (a - 1) * exp(-x) / gamma(a), by logarithms."""
    return exp(subtract(subtract(xlogy(subtract(a, 1.0), x), x), lgamma(a)))


class Betainc(Op, grad_reads=("a", "b", "x")):
    """The incomplete beta function of a and b at x, divided by the complete one.

    Shapes: a, b, x are broadcast
    """

    def infer(self, a: Spec, b: Spec, x: Spec) -> Spec:
        check_same(a, b)
        check_same(a, x)
        check_kind(a.dtype, "f")
        return Spec(a.dtype, broadcast(broadcast(a.shape, b.shape), x.shape))

    def grad(self, g: Tensor, y: Tensor, a: Tensor, b: Tensor, x: Tensor) -> Any:
        """There is none by a and b."""
        log_beta = subtract(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
        logs = add(xlog1py(subtract(b, 1.0), negative(x)), xlogy(subtract(a, 1.0), x))
        return None, None, unbroadcast(multiply(g, exp(subtract(logs, log_beta))), x, y)

    def kernel(self, xp: ArrayModule, a: Array, b: Array, x: Array) -> Array:
        return _scipy("betainc")(self, xp, a, b, x)


def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor:
    """Returns the regularised incomplete beta function.

    Args:
        a: Positive numbers.
        b: Positive numbers of the same dtype.
        x: Where, numbers in [0, 1] of the same dtype.
        name: Name of the operation.
    """
    typed = next((convert_to_tensor(v).dtype for v in (a, b, x) if isinstance(v, Tensor)), None)
    first = convert_to_tensor(a, None if isinstance(a, Tensor) else typed)
    others = [convert_to_tensor(v, None if isinstance(v, Tensor) else first.dtype) for v in (b, x)]
    return apply(Betainc(), first, *others, name=name)


@op_function("x", scope="erfcinv")
def erfcinv(x: Any, name: str | None = None) -> Tensor:
    """Returns the inverse of erfc."""
    return multiply(ndtri(multiply(x, 0.5)), -math.sqrt(0.5))


@op_function("x", scope="lbeta")
def lbeta(x: Any, name: str | None = None) -> Tensor:
    """Returns the logarithm of the beta function of the numbers along the last axis."""
    check_kind(x.dtype, "f", "floating-point numbers")
    return subtract(reduce_sum(lgamma(x), -1), lgamma(reduce_sum(x, -1)), "sub")
