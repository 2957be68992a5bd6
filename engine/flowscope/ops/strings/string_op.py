"""What all string ops share: checks, the kernel over elements, arguments as strings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from flowscope.graph.constant import convert_to_tensor, get_static_value
from flowscope.graph.op import Array, ArrayModule, Op, Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expected import expected_dtype
from flowscope.graph.values.shapes import broadcast
from flowscope.graph.values.string_values import boxed


def check_string(s: Spec) -> None:
    """Raises DTypeError unless these are strings."""
    if s.dtype is not dtypes.string:
        raise expected_dtype("strings", s.dtype)


def mapped(xp: ArrayModule, f: Callable[..., Any], dtype: Any, *xs: Array) -> Array:
    """Returns f of the elements of arrays, which are broadcast together.

    Args:
        xp: NumPy.
        f: Function of elements (bytes, or Python numbers).
        dtype: NumPy's dtype of the result, object for strings.
        xs: Arrays, or bytes objects and NumPy scalars.
    """
    arrays = xp.broadcast_arrays(*[xp.asarray(boxed(x)) for x in xs])
    values = [f(*v) for v in zip(*[a.reshape(-1).tolist() for a in arrays])]
    out = xp.empty(len(values), dtype)
    out[:] = values
    return out.reshape(arrays[0].shape)[()]


class StringOp(Op, abstract=True, devices=("CPU",), is_differentiable=False):
    """Base of ops on strings."""

    out: ClassVar[DType] = dtypes.string

    def infer(self, *xs: Any) -> Any:
        dims = xs[0].shape
        for x in xs:
            check_string(x)
            dims = broadcast(dims, x.shape)
        return Spec(self.out, dims)

    def one(self, *values: Any) -> Any:
        """The output's element for one element of each input."""
        raise NotImplementedError

    def kernel(self, xp: ArrayModule, *xs: Array) -> Array:
        return mapped(xp, self.one, self.out.np_dtype, *xs)


def as_text(value: Any, what: str) -> str:
    """Returns a text known while the graph is built; one character per byte."""
    known = value.encode() if isinstance(value, str) else value
    if not isinstance(known, bytes):
        known = get_static_value(known)
    if not isinstance(known, bytes):
        raise expected_dtype(f"a text known while the graph is built as {what}", repr(value))
    return known.decode("latin-1")


def as_strings(value: Any) -> Tensor:
    """Returns an argument as a tensor of strings."""
    return convert_to_tensor(value, None if isinstance(value, Tensor) else dtypes.string)
