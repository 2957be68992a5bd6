"""Python's operators on whatever stands for a tensor: tensors and variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowscope.graph.providers import load

#: What `a + b`, `a[i]`, ... do; the op library fills it. Keys are special methods' names.
operators: dict[str, Callable[..., Any]] = {}


def operate(method: str, *args: Any) -> Any:
    """The result of an operator of the table."""
    function = operators.get(method)
    if function is None:
        load(f"operator {method}")
        function = operators[method]
    return function(*args)


class Overloads:
    """The operators, by op functions; `==` and `!=` compare identity, as in TensorFlow 1."""

    __slots__ = ()

    #: NumPy must not take over `array + tensor`.
    __array_priority__ = 100

    def __getitem__(self, key: Any) -> Any:
        return operate("__getitem__", self, key)

    def __add__(self, other: Any) -> Any:
        return operate("__add__", self, other)

    def __radd__(self, other: Any) -> Any:
        return operate("__add__", other, self)

    def __sub__(self, other: Any) -> Any:
        return operate("__sub__", self, other)

    def __rsub__(self, other: Any) -> Any:
        return operate("__sub__", other, self)

    def __mul__(self, other: Any) -> Any:
        return operate("__mul__", self, other)

    def __rmul__(self, other: Any) -> Any:
        return operate("__mul__", other, self)

    def __truediv__(self, other: Any) -> Any:
        return operate("__truediv__", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return operate("__truediv__", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return operate("__floordiv__", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return operate("__floordiv__", other, self)

    def __mod__(self, other: Any) -> Any:
        return operate("__mod__", self, other)

    def __rmod__(self, other: Any) -> Any:
        return operate("__mod__", other, self)

    def __pow__(self, other: Any) -> Any:
        return operate("__pow__", self, other)

    def __rpow__(self, other: Any) -> Any:
        return operate("__pow__", other, self)

    def __matmul__(self, other: Any) -> Any:
        return operate("__matmul__", self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return operate("__matmul__", other, self)

    def __and__(self, other: Any) -> Any:
        return operate("__and__", self, other)

    def __rand__(self, other: Any) -> Any:
        return operate("__and__", other, self)

    def __or__(self, other: Any) -> Any:
        return operate("__or__", self, other)

    def __ror__(self, other: Any) -> Any:
        return operate("__or__", other, self)

    def __xor__(self, other: Any) -> Any:
        return operate("__xor__", self, other)

    def __rxor__(self, other: Any) -> Any:
        return operate("__xor__", other, self)

    def __lt__(self, other: Any) -> Any:
        return operate("__lt__", self, other)

    def __le__(self, other: Any) -> Any:
        return operate("__le__", self, other)

    def __gt__(self, other: Any) -> Any:
        return operate("__gt__", self, other)

    def __ge__(self, other: Any) -> Any:
        return operate("__ge__", self, other)

    def __neg__(self) -> Any:
        return operate("__neg__", self)

    def __abs__(self) -> Any:
        return operate("__abs__", self)

    def __invert__(self) -> Any:
        return operate("__invert__", self)
