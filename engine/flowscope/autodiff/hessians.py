"""Second derivatives as a whole: `hessians`."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.autodiff.aggregation import UnconnectedGradients
from flowscope.autodiff.gradients import as_list, gradients, source
from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor, where
from flowscope.graph.values.shapes import is_known, text
from flowscope.ops.array.arrays import zeros
from flowscope.ops.array.joining import stack
from flowscope.ops.array.shaping import reshape

__all__ = ["hessians"]


def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
) -> list[Tensor]:
    """Returns the matrix of second derivatives of the sum of `ys`, for each of `xs` by itself.

    Args:
        ys: A tensor or a list of them.
        xs: A tensor or variable, or a list of them; their shapes must be known.
        name: Name scope of the operations.
        colocate_gradients_with_ops, gate_gradients, aggregation_method: See `gradients`.

    Shapes: x s -> s + s
    Raises: InvalidArgumentError if the shape of an x is not known.

    Example:
        >>> x = fs.constant([1.0, 2.0])
        >>> fs.Session().run(fs.hessians(fs.reduce_sum(x**3), x))
        [array([[ 6.,  0.],
               [ 0., 12.]], dtype=float32)]
    """
    __tracebackhide__ = True
    options: dict[str, Any] = {
        "colocate_gradients_with_ops": colocate_gradients_with_ops,
        "gate_gradients": gate_gradients,
        "aggregation_method": aggregation_method,
        "unconnected_gradients": UnconnectedGradients.ZERO,
    }
    sources = [source(x) for x in as_list(xs)]
    sizes = [_known_shape(x) for x in sources]
    if not sources:
        return []
    with sources[0].graph.name_scope(name):
        firsts = gradients(ys, as_list(xs), **options)
        pairs = zip(firsts, as_list(xs), sizes, strict=True)
        return [_hessian(convert_to_tensor(g), x, size, options) for g, x, size in pairs]


def _known_shape(x: Tensor) -> tuple[int, ...]:
    dims = (x.spec.variable or x.spec).shape
    if dims is None or not is_known(dims):
        raise InvalidArgumentError(
            f'expected an x of known shape, got "{x.name}" of shape {text(dims)}: '
            "a row of operations is made for each of its elements, so set_shape must say how many"
        ).located(op=x.op, op_type=x.op.type, **where(x.op))
    return tuple([d for d in dims if d is not None])


def _hessian(g: Tensor, x: Any, size: tuple[int, ...], options: dict[str, Any]) -> Tensor:
    basis = np.eye(int(np.prod(size)), dtype=g.dtype.np_dtype)
    if not len(basis):
        return zeros((*size, *size), g.dtype)
    rows = [gradients(g, x, grad_ys=e.reshape(size), **options)[0] for e in basis]
    return reshape(stack([convert_to_tensor(row) for row in rows]), (*size, *size))
