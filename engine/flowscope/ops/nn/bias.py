"""Vectors added along an axis, and the layers that this makes: xw + b, relu(xw + b)."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import compatible, text
from flowscope.ops.array.arrays import zeros_like
from flowscope.ops.core.build import apply
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind, check_rank, check_same
from flowscope.ops.kernels.sums import sum_along
from flowscope.ops.linalg.products import matmul
from flowscope.ops.nn.activations import (
    relu,
)

__all__ = ["bias_add", "relu_layer", "xw_plus_b"]


@frozen
class BiasAdd(Op, memory_order="K"):
    """x plus a vector along its last axis (or, "NCHW", its second).

    Shapes: x [..., n], bias [n] -> [..., n]
    """

    data_format: str = "NHWC"

    def infer(self, x: Spec, bias: Spec) -> Spec:
        check_same(x, bias)
        check_kind(x.dtype, "fiuc")
        check_rank(bias, 1, "a bias of rank 1")
        if x.shape is None:
            return x.like()
        if len(x.shape) < 2:
            raise expected("rank 2 at least", x.shape)
        axis = self._axis(len(x.shape))
        if not compatible(bias.shape, x.shape[axis : axis + 1]):
            raise expected(
                f"a bias of shape [{x.shape[axis]}]", f"{text(bias.shape)} for {text(x.shape)}"
            )
        n = x.shape[axis] if bias.shape is None or x.shape[axis] is not None else bias.shape[0]
        return Spec(x.dtype, (*x.shape[:axis], n, *x.shape[axis + 1 :]))

    def _axis(self, rank: int) -> int:
        return 1 if self.data_format == "NCHW" else rank - 1

    def grad(self, g: Tensor, y: Tensor, x: Tensor, bias: Tensor) -> Any:
        return g, apply(BiasAddGrad(self.data_format), g)

    def kernel(self, xp: ArrayModule, x: Array, bias: Array) -> Array:
        if x.ndim < 2 or bias.shape != (x.shape[self._axis(x.ndim)],):
            raise expected(f"a bias that fits {text(x.shape)}", bias.shape)
        if self.data_format == "NCHW":
            bias = bias.reshape((-1,) + (1,) * (x.ndim - 2))
        return x + bias


@frozen
class BiasAddGrad(Op, memory_order="C", accumulates=True):
    """The sum over all axes but the one of the bias.

    Shapes: [..., n] -> [n]
    """

    data_format: str = "NHWC"

    def infer(self, g: Spec) -> Spec:
        if g.shape is None:
            return Spec(g.dtype, (None,))
        return Spec(g.dtype, (g.shape[1 if self.data_format == "NCHW" else -1],))

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(BiasAdd(self.data_format), zeros_like(x), g),)

    def kernel(self, xp: ArrayModule, g: Array) -> Array:
        axis = 1 if self.data_format == "NCHW" else g.ndim - 1
        others = tuple([i for i in range(g.ndim) if i != axis])
        return sum_along(xp, g, others, False, g.dtype)


@op_function("value")
def bias_add(
    value: Any, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Returns `value` plus a vector along its last axis.

    Args:
        value: A tensor of rank 2 at least.
        bias: A vector.
        data_format: "NHWC", or "NCHW" for a bias along the second axis.
    """
    if data_format not in (None, "NHWC", "NCHW"):
        raise expected("data_format NHWC or NCHW", repr(data_format))
    return apply(BiasAdd(data_format or "NHWC"), value, convert_to_tensor(bias), name=name)


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """Returns matmul(x, weights) + biases."""
    x = convert_to_tensor(x)
    with x.graph.name_scope(name or "xw_plus_b") as scope:
        return bias_add(matmul(x, weights), biases, name=scope)


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """Returns relu(matmul(x, weights) + biases)."""
    x = convert_to_tensor(x)
    with x.graph.name_scope(name or "relu_layer") as scope:
        return relu(bias_add(matmul(x, weights), biases), name=scope)
