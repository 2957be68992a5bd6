"""Activation functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import compatible, text
from flowscope.graph.values.work import per_element
from flowscope.ops.array.joining import concat
from flowscope.ops.core.build import apply, unary
from flowscope.ops.core.casting import cast
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind, check_same
from flowscope.ops.core.table import BinaryFunction, UnaryFunction, binary_op, unary_op
from flowscope.ops.kernels.blocking import stretches
from flowscope.ops.kernels.select import choose
from flowscope.ops.math.elementwise import (
    abs,
    add,
    equal,
    log_sigmoid,
    multiply,
    negative,
    realdiv,
    sigmoid,
    softplus,
    square,
    tanh,
)
from flowscope.ops.math.reductions import reduce_mean
from flowscope.ops.nn.softmax import log_softmax, softmax

__all__ = [
    "crelu",
    "elu",
    "leaky_relu",
    "relu",
    "relu6",
    "selu",
    "silu",
    "softsign",
    "swish",
    "zero_fraction",
]


_relu: UnaryFunction = unary_op(
    "relu",
    "Relu",
    "max(x, 0), element by element.",
    "xp.maximum({0}, 0)",
    "fiu",
    lambda g, y, x: relu_grad(g, y),
    "y",
    keeps_finite=True,
)


_relu6: UnaryFunction = unary_op(
    "relu6",
    "Relu6",
    "min(max(x, 0), 6), element by element.",
    "xp.minimum(xp.maximum({0}, 0), 6)",
    "fiu",
    lambda g, y, x: relu6_grad(g, y),
    "y",
    keeps_finite=True,
)


_elu: UnaryFunction = unary_op(
    "elu",
    "Elu",
    "x where it is positive, else exp(x) - 1.",
    "xp.maximum({0}, 0) + xp.expm1(xp.minimum({0}, 0))",
    "f",
    lambda g, y, x: elu_grad(g, y),
    "y",
    work=per_element(5e-9),
)


_softsign: UnaryFunction = unary_op(
    "softsign",
    "Softsign",
    "x / (|x| + 1), element by element.",
    "{0} / (xp.abs({0}) + 1)",
    "f",
    lambda g, y, x: realdiv(g, square(add(1.0, abs(x)))),
    "x",
)


relu_grad: BinaryFunction = binary_op(
    "relu_grad",
    "ReluGrad",
    "g where relu's output y is positive, else 0 times g.",
    "{0} * ({1} > 0)",
    "fiu",
    lambda g, dx, dy, y: (relu_grad(g, y), None),
    "b",
    keeps_finite=True,
)


relu6_grad: BinaryFunction = binary_op(
    "relu6_grad",
    "Relu6Grad",
    "g where relu6's output y is between 0 and 6, else 0 times g.",
    "{0} * (({1} > 0) & ({1} < 6))",
    "fiu",
    lambda g, dx, dy, y: (relu6_grad(g, y), None),
    "b",
)


elu_grad: BinaryFunction = binary_op(
    "elu_grad",
    "EluGrad",
    "g where elu's output y is positive, else g * (y + 1).",
    "{0} * (xp.minimum({1}, 0) + 1)",
    "f",
    lambda g, dx, dy, y: (
        elu_grad(g, y),
        multiply(multiply(g, dy), cast(negative(y) > 0.0, g.dtype)),
    ),
    "ab",
)


SELU_SCALE = 1.0507009873554804934193349852946


SELU_ALPHA = 1.6732632423543772848170429916717


def _selu_kernel(self: Any, xp: ArrayModule, x: Array) -> Array:
    slope, depth = x.dtype.type(SELU_SCALE), x.dtype.type(SELU_SCALE * SELU_ALPHA)
    return slope * xp.maximum(x, 0) + depth * xp.expm1(xp.minimum(x, 0))


def _selu_grad_kernel(self: Any, xp: ArrayModule, dy: Array, y: Array) -> Array:
    slope, depth = y.dtype.type(SELU_SCALE), y.dtype.type(SELU_SCALE * SELU_ALPHA)
    return (dy * xp.where(y < 0, y + depth, slope))[()]


_selu: UnaryFunction = unary_op(
    "selu",
    "Selu",
    "Where x is positive scale * x, else scale * alpha * (exp(x) - 1).",
    "",
    "f",
    lambda g, y, x: selu_grad(g, y),
    "y",
    kernel=_selu_kernel,
    work=per_element(5e-9),
)


selu_grad: BinaryFunction = binary_op(
    "selu_grad",
    "SeluGrad",
    "g * scale where selu's output y is not negative, else g * (y + scale * alpha).",
    "",
    "f",
    lambda g, dx, dy, y: (
        selu_grad(g, y),
        multiply(multiply(g, dy), cast(negative(y) > 0.0, g.dtype)),
    ),
    "ab",
    kernel=_selu_grad_kernel,
)


@frozen
class LeakyRelu(Op, grad_reads=("x",)):
    """x where it is positive, else alpha * x."""

    alpha: float = 0.2

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "f")
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(LeakyReluGrad(self.alpha), g, x),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        if not self.alpha:
            return xp.maximum(x, 0)
        slope, extreme = x.dtype.type(self.alpha), xp.minimum if self.alpha > 1 else xp.maximum
        if not x.ndim:
            return extreme(x, x * slope)
        out = xp.empty(x.shape, x.dtype)
        for given, part in stretches(xp, (x, out), 0):
            extreme(given, xp.multiply(given, slope, out=part), out=part)
        return out


@frozen
class LeakyReluGrad(Op, grad_reads=("x",)):
    """g where x is positive, else alpha * g."""

    alpha: float

    def infer(self, dy: Spec, x: Spec) -> Spec:
        check_kind(x.dtype, "f")
        check_same(dy, x)
        if not compatible(dy.shape, x.shape):
            raise expected(f"a gradient of shape {text(x.shape)}", dy.shape)
        return x.like()

    def grad(self, g: Tensor, y: Tensor, dy: Tensor, x: Tensor) -> Any:
        return apply(self, g, x), None

    def kernel(self, xp: ArrayModule, dy: Array, x: Array) -> Array:
        return choose(xp, x > 0, dy, dy * dy.dtype.type(self.alpha))[()]


def relu(features: Any, name: str | None = None) -> Tensor:
    """Returns max(features, 0), element by element."""
    return _relu(features, name)


def relu6(features: Any, name: str | None = None) -> Tensor:
    """Returns min(max(features, 0), 6), element by element."""
    return _relu6(features, name)


def elu(features: Any, name: str | None = None) -> Tensor:
    """Returns features where they are positive, else exp(features) - 1."""
    return _elu(features, name)


def selu(features: Any, name: str | None = None) -> Tensor:
    """Returns the scaled elu that keeps mean 0 and variance 1.

    Source: Klambauer et al. 2017.
    """
    return _selu(features, name)


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """Returns features where they are positive, else alpha * features."""
    return unary(LeakyRelu(float(alpha)), features, name)


def softsign(features: Any, name: str | None = None) -> Tensor:
    """Returns features / (|features| + 1)."""
    return _softsign(features, name)


def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """Returns relu(features) and relu(-features), joined along an axis.

    Source: Shang et al. 2016, "Understanding and improving convolutional neural networks via
    concatenated rectified linear units".
    """
    x = convert_to_tensor(features)
    with x.graph.name_scope(name or "CRelu") as scope:
        return _relu(concat([x, negative(x)], axis), scope)


def swish(features: Any, beta: Any = 1.0, name: str | None = None) -> Tensor:
    """Returns features * sigmoid(beta * features)."""
    x = convert_to_tensor(features)
    if isinstance(beta, str):
        raise expected("a number for beta", f"{beta!r}: give the name by name")
    with x.graph.name_scope(name or "swish") as scope:
        inner = x if isinstance(beta, int | float) and beta == 1 else multiply(beta, x)
        return multiply(x, sigmoid(inner), scope)


silu = swish


@op_function("value", scope="zero_fraction")
def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """Returns which part of the elements is 0, as float32."""
    return reduce_mean(cast(equal(value, 0), dtypes.float32))


#: What layers take as `activation` by name, too.
BY_NAME: dict[str, Callable[..., Tensor]] = {
    function.__name__: function
    for function in (
        crelu,
        elu,
        leaky_relu,
        log_sigmoid,
        log_softmax,
        relu,
        relu6,
        selu,
        sigmoid,
        softmax,
        softplus,
        softsign,
        swish,
        tanh,
    )
} | {"silu": silu}
