"""Layers of neural networks, and what goes with them: bias, dropout, normalisation, ranking."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph import dtypes
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.shapes import compatible, merge_dims, text
from flowscope.ops.array.arrays import range as range_, size, zeros_like
from flowscope.ops.array.gathering import scatter_nd
from flowscope.ops.array.shaping import reshape, shape_of
from flowscope.ops.core.build import apply, apply_many, unary
from flowscope.ops.core.casting import cast
from flowscope.ops.core.table import check_kind, check_same, orderable
from flowscope.ops.kernels.sums import sum_along
from flowscope.ops.linalg.products import matmul
from flowscope.ops.math.elementwise import (
    add,
    equal,
    log_sigmoid,
    maximum,
    multiply,
    sigmoid,
    softplus,
    tanh,
)
from flowscope.ops.math.reductions import reduce_mean
from flowscope.ops.nn.activations import (
    crelu,
    elu,
    leaky_relu,
    relu,
    relu6,
    selu,
    silu,
    softsign,
    swish,
)
from flowscope.ops.nn.softmax import (
    log_poisson_loss,
    log_softmax,
    sigmoid_cross_entropy_with_logits,
    softmax,
    softmax_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits,
)

__all__ = [
    "bias_add",
    "crelu",
    "elu",
    "in_top_k",
    "l2_loss",
    "leaky_relu",
    "log_poisson_loss",
    "log_sigmoid",
    "log_softmax",
    "relu",
    "relu6",
    "relu_layer",
    "selu",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy_with_logits",
    "swish",
    "tanh",
    "top_k",
    "weighted_cross_entropy_with_logits",
    "xw_plus_b",
    "zero_fraction",
]


#: Elements of one piece of a sum of squares.
_LONG = 1 << 12
#: Up to so many of the largest are found one after the other.
_FEW = 8


@frozen
class BiasAdd(Op):
    """x plus a vector along its last axis (or, "NCHW", its second).

    Shapes: x [..., n], bias [n] -> [..., n]
    """

    data_format: str = "NHWC"
    memory_order: ClassVar[str | None] = "K"

    def infer(self, x: Spec, bias: Spec) -> Spec:
        check_same(x, bias)
        check_kind(x.dtype, "fiuc")
        if bias.rank not in (None, 1):
            raise InvalidArgumentError(f"expected a bias of rank 1, got {text(bias.shape)}")
        if x.shape is None:
            return x.like()
        if len(x.shape) < 2:
            raise InvalidArgumentError(f"expected rank 2 at least, got {text(x.shape)}")
        axis = self._axis(len(x.shape))
        if not compatible(bias.shape, x.shape[axis : axis + 1]):
            raise InvalidArgumentError(
                f"expected a bias of shape [{x.shape[axis]}], got {text(bias.shape)} "
                f"for {text(x.shape)}"
            )
        n = x.shape[axis] if bias.shape is None or x.shape[axis] is not None else bias.shape[0]
        return Spec(x.dtype, (*x.shape[:axis], n, *x.shape[axis + 1 :]))

    def _axis(self, rank: int) -> int:
        return 1 if self.data_format == "NCHW" else rank - 1

    def grad(self, g: Tensor, y: Tensor, x: Tensor, bias: Tensor) -> Any:
        return g, apply(BiasAddGrad(self.data_format), g)

    def kernel(self, xp: ArrayModule, x: Array, bias: Array) -> Array:
        if x.ndim < 2 or bias.shape != (x.shape[self._axis(x.ndim)],):
            raise InvalidArgumentError(
                f"expected a bias that fits {text(x.shape)}, got {text(bias.shape)}"
            )
        if self.data_format == "NCHW":
            bias = bias.reshape((-1,) + (1,) * (x.ndim - 2))
        return x + bias


@frozen
class BiasAddGrad(Op):
    """The sum over all axes but the one of the bias.

    Shapes: [..., n] -> [n]
    """

    data_format: str = "NHWC"
    memory_order: ClassVar[str | None] = "C"
    accumulates: ClassVar[bool] = True

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


def bias_add(
    value: Any, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Returns `value` plus a vector along its last axis.

    Args:
        value: A tensor of rank 2 at least.
        bias: A vector.
        data_format: "NHWC", or "NCHW" for a bias along the second axis.
        name: Name of the operation.
    """
    x = convert_to_tensor(value)
    if data_format not in (None, "NHWC", "NCHW"):
        raise InvalidArgumentError(f"expected data_format NHWC or NCHW, got {data_format!r}")
    return apply(BiasAdd(data_format or "NHWC"), x, convert_to_tensor(bias), name=name)


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


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Returns half the sum of the squares of all elements."""
    return unary(_L2_LOSS, t, name)


@frozen
class L2Loss(Op):
    """Half the sum of the squares of all elements.

    Shapes: any -> []
    """

    grad_reads: ClassVar[Any] = ("x",)
    accumulates: ClassVar[bool] = True

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "f")
        return Spec(x.dtype, ())

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (multiply(x, g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        if xp is np and x.size >= _LONG and x.flags.c_contiguous and x.dtype.itemsize >= 4:
            # Squares and sums in one pass, piece by piece, which is as exact as pairwise.
            whole = x.size // _LONG * _LONG
            flat = x.reshape(-1)
            pieces = np.einsum("ij,ij->i", *[flat[:whole].reshape(-1, _LONG)] * 2)
            rest = np.square(flat[whole:]).sum(dtype=x.dtype)
            return (pieces.sum(dtype=x.dtype) + rest) / 2
        return (xp.square(x).sum(dtype=x.dtype) / 2)[()]


_L2_LOSS = L2Loss()


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """Returns which part of the elements is 0, as float32."""
    x = convert_to_tensor(value)
    with x.graph.name_scope(name or "zero_fraction"):
        return reduce_mean(cast(equal(x, 0), dtypes.float32))


@frozen
class InTopK(Op):
    """Whether each target is among its row's k largest predictions; those equal to the k-th count.

    No target is in a row that holds NaN or infinity.

    Shapes: predictions [batch, classes], targets [batch] -> [batch]
    """

    k: int
    is_differentiable: ClassVar[bool] = False

    def infer(self, predictions: Spec, targets: Spec) -> Spec:
        check_kind(predictions.dtype, "f")
        check_kind(targets.dtype, "i")
        if predictions.rank not in (None, 2) or targets.rank not in (None, 1):
            raise InvalidArgumentError(
                "expected predictions of rank 2 and targets of rank 1, got "
                f"{predictions} and {targets}"
            )
        rows = None if predictions.shape is None else predictions.shape[:1]
        return Spec(dtypes.bool_, merge_dims(merge_dims(rows, targets.shape), (None,)))

    def kernel(self, xp: ArrayModule, predictions: Array, targets: Array) -> Array:
        if predictions.ndim != 2 or targets.shape != predictions.shape[:1]:
            raise InvalidArgumentError(
                "expected predictions of rank 2 and one target for each row, got "
                f"{text(predictions.shape)} and {text(targets.shape)}"
            )
        inside = (targets >= 0) & (targets < predictions.shape[1])
        own = predictions[xp.arange(targets.size), xp.where(inside, targets, 0)]
        above = (predictions > own[:, None]).sum(axis=1)
        return inside & xp.isfinite(predictions).all(axis=1) & (above < self.k)


def in_top_k(predictions: Any, targets: Any, k: int, name: str | None = None) -> Tensor:
    """Returns whether each target is among its row's k largest predictions.

    It is among them if fewer than k are larger, and never in a row that holds NaN or infinity.
    """
    return apply(
        InTopK(int(k)),
        convert_to_tensor(predictions),
        convert_to_tensor(targets, None, None, dtypes.int32),
        name=name,
    )


@frozen
class TopK(Op):
    """The k largest of each row, in falling order, and their positions; the first one at ties.

    NaN counts as largest.

    Shapes: [..., n] -> values [..., k], indices [..., k]
    """

    k: int
    grad_reads: ClassVar[Any] = ("y",)

    def infer(self, x: Spec) -> Any:
        check_kind(x.dtype, "fiu")
        if x.shape == () or (x.shape and x.shape[-1] is not None and x.shape[-1] < self.k):
            raise InvalidArgumentError(
                f"expected a last axis of {self.k} at least, got {text(x.shape)}"
            )
        dims = None if x.shape is None else (*x.shape[:-1], self.k)
        return Spec(x.dtype, dims), Spec(dtypes.int32, dims)

    def grad(self, g: Any, y: Any, x: Tensor) -> Any:
        if self.k == 0:
            return (zeros_like(x),)
        whole = cast(shape_of(x), dtypes.int64)
        width = whole[-1]
        count = cast(size(x), dtypes.int64)
        # Where the rows of x begin in all its elements, one after the other.
        starts = reshape(range_(0, count, maximum(width, 1)), [-1, 1])
        places = add(starts, reshape(cast(y[1], dtypes.int64), [-1, self.k]))
        flat = scatter_nd(reshape(places, [-1, 1]), reshape(g[0], [-1]), reshape(count, [1]))
        return (reshape(flat, whole),)

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        if x.ndim == 0 or x.shape[-1] < self.k:
            raise InvalidArgumentError(
                f"expected a last axis of {self.k} at least, got {text(x.shape)}"
            )
        values, places = self._found(xp, orderable(xp, x))
        return values.astype(x.dtype, copy=False), places

    def _found(self, xp: ArrayModule, x: Array) -> Any:
        if self.k <= _FEW < x.shape[-1] and x.size:
            found = self._by_maxima(xp, x)
            if found is not None:
                return found
        # Sorting the mirrored row keeps the first of equal ones in front.
        order = xp.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1][..., : self.k]
        places = x.shape[-1] - 1 - order
        return xp.take_along_axis(x, places, axis=-1), places.astype(xp.int32)

    def _by_maxima(self, xp: ArrayModule, x: Array) -> Any:
        """Takes out the largest k times; None where the lowest number there is turned up."""
        lowest = -float("inf") if x.dtype.kind == "f" else xp.iinfo(x.dtype).min
        rest = x.reshape(-1, x.shape[-1]).copy()
        rows = xp.arange(len(rest))
        values, places = [], []
        for _ in range(self.k):
            place = rest.argmax(axis=1)
            values.append(rest[rows, place])
            places.append(place)
            rest[rows, place] = lowest
        if (values[-1] == lowest).any():
            return None  # it may stand for what was taken out
        dims = (*x.shape[:-1], self.k)
        order = xp.stack(places, 1).astype(xp.int32).reshape(dims)
        return xp.stack(values, 1).reshape(dims), order


class TopKValues(NamedTuple):
    """What `top_k` returns."""

    values: Tensor
    indices: Tensor


def top_k(input: Any, k: int = 1, sorted: bool = True, name: str | None = None) -> TopKValues:
    """Returns the k largest along the last axis and their positions; NaN counts as largest.

    Args:
        input: A tensor of real numbers.
        k: How many.
        sorted: True or False: they always come in falling order.
        name: Name of the operation.
    """
    return TopKValues(*apply_many(TopK(int(k)), convert_to_tensor(input), name=name or "TopKV2"))
