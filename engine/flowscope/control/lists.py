"""Lists: values of dtype variant that keep what gradients of branches and loops read.

A list is None where it is empty, else a pair of its last element and the list before it. So lists
are immutable, adding and taking an element costs the same however long they are, and an element is
freed when the last list that has it is. The elements' Spec is the `variable` of the list's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, ClassVar

from flowscope.control.specs import flows, outside
from flowscope.control.tensor_array_value import Items
from flowscope.errors import DTypeError
from flowscope.graph.op import Array, ArrayModule, Memory, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import variant
from flowscope.ops.core.build import apply


def list_spec(element: Spec) -> Spec:
    """Returns the Spec of a list of elements of this Spec."""
    return Spec(variant, (), variable=outside(element))


def element_spec(spec: Spec) -> Spec:
    """Returns the Spec of a list's elements; raises DTypeError if it is no list's."""
    if spec.dtype is not variant or spec.variable is None:
        raise DTypeError(f"expected a list, got {spec}")
    return spec.variable


@frozen
class ListOf(Op):
    """A list of one element."""

    views: ClassVar[Any] = (0,)
    follows_memory: ClassVar[bool] = True
    template: ClassVar[str | None] = "({0}, None)"

    def infer(self, x: Spec) -> Spec:
        return list_spec(x)

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(Head(), g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        return (x, None)


@frozen
class EmptyList(Op):
    """A list without elements, of a type that a list with some has elsewhere."""

    element: Spec = field(compare=False)
    is_stateful: ClassVar[bool] = False
    template: ClassVar[str | None] = "None"

    def infer(self) -> Spec:
        return list_spec(self.element)

    def grad(self, g: Tensor, y: Tensor) -> Any:
        return ()

    def kernel(self, xp: ArrayModule) -> Any:
        return None


@frozen
class Head(Op):
    """The last element of a list."""

    views: ClassVar[Any] = (0,)
    follows_memory: ClassVar[bool] = True
    template: ClassVar[str | None] = "{0}[0]"

    def infer(self, x: Spec) -> Spec:
        return outside(element_spec(x))

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(ListOf(), g),)

    def kernel(self, xp: ArrayModule, x: Any) -> Array:
        return x[0]


@frozen
class PackLists(Op):
    """A list of lists, the first in front: what a branch keeps of a branch inside of it, as one.

    The elements differ in type: its Spec tells that of one which a cotangent can arrive at, if any.
    """

    count: int
    follows_memory: ClassVar[bool] = True

    @property
    def views(self) -> tuple[int, ...]:  # type: ignore[override]
        """It holds all that it is made of."""
        return tuple(range(self.count))

    def output_memory(self, inputs: Sequence[Memory]) -> Memory:
        return tuple(inputs)

    def infer(self, *xs: Spec) -> Spec:
        return list_spec(next((x for x in xs if flows(x)), xs[0]))

    def grad(self, g: Tensor, y: Tensor, *xs: Tensor) -> Any:
        # Where none of the lists' readers has sent a cotangent there is an empty list: zeros.
        found = enumerate(xs)
        parts = [apply(UnpackList(i, self.count, element_spec(x.spec)), g) for i, x in found]
        return [
            sum_of_lists([part, list_of_zeros(x)]) if flows(x.spec) else part
            for part, x in zip(parts, xs, strict=True)
        ]

    def kernel(self, xp: ArrayModule, *xs: Any) -> Any:
        return listed(list(xs))


@frozen
class UnpackList(Op):
    """A list out of a `PackLists` of some."""

    index: int
    count: int
    element: Spec = field(compare=False)
    views: ClassVar[Any] = (0,)
    follows_memory: ClassVar[bool] = True

    def output_memory(self, inputs: Sequence[Memory]) -> Memory:
        (packed,) = inputs
        return packed[self.index] if isinstance(packed, tuple) else packed

    def infer(self, x: Spec) -> Spec:
        return list_spec(self.element)

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        none = apply(EmptyList(self.element))
        return (apply(PackLists(self.count), *[g if i == self.index else none
                                          for i in range(self.count)]),)  # fmt: skip

    def kernel(self, xp: ArrayModule, x: Any) -> Any:
        for _ in range(self.index if x is not None else 0):
            x = x[1]
        return None if x is None else x[0]


@frozen
class SumOfLists(Op):
    """The sum of lists, element by element; an empty one counts as zeros.

    Raises: DTypeError if one is no list.
    """

    count: int

    @property
    def views(self) -> tuple[int, ...]:  # type: ignore[override]
        """All: an element that the others count as zeros is handed on as it is."""
        return tuple(range(self.count))

    def infer(self, *xs: Spec) -> Spec:
        for x in xs:
            element_spec(x)
        return list_spec(element_spec(xs[0]))

    def grad(self, g: Tensor, y: Tensor, *xs: Tensor) -> Any:
        return (g,) * len(xs)

    def kernel(self, xp: ArrayModule, *xs: Any) -> Any:
        total = xs[0]
        for x in xs[1:]:
            total = _sum(total, x)
        return total


@frozen
class ListOfZeros(Op):
    """Zeros of the shapes of a list's elements."""

    is_differentiable: ClassVar[bool] = False

    def infer(self, x: Spec) -> Spec:
        return list_spec(element_spec(x))

    def kernel(self, xp: ArrayModule, x: Any) -> Any:
        return _zeros(xp, x)


def list_of_zeros(x: Tensor) -> Tensor:
    """Returns a list of zeros like the elements of a list."""
    return apply(ListOfZeros(), x)


def sum_of_lists(xs: list[Tensor]) -> Tensor:
    """Returns the sum of lists, element by element."""
    return apply(SumOfLists(len(xs)), *xs)


def _is_list(value: Any) -> bool:
    return value is None or isinstance(value, tuple)


def elements(value: Any) -> list[Any]:
    """Returns the elements of a list, the newest first."""
    found = []
    while value is not None:
        found.append(value[0])
        value = value[1]
    return found


def listed(values: list[Any]) -> Any:
    """Returns a list of elements, of which the newest comes first."""
    made: Any = None
    for one in reversed(values):
        made = (one, made)
    return made


def _sum(a: Any, b: Any) -> Any:
    if not (_is_list(a) and _is_list(b)):
        return b if a is None else a if b is None else a + b
    if a is None or b is None:
        return a if b is None else b
    return listed([_sum(x, y) for x, y in zip(elements(a), elements(b), strict=True)])


def _zeros(xp: ArrayModule, value: Any) -> Any:
    if isinstance(value, Items):
        return value.zeros()
    if _is_list(value):
        return listed([_zeros(xp, one) for one in elements(value)])
    return xp.zeros(value.shape, value.dtype)[()]


__all__ = [
    "EmptyList",
    "Head",
    "ListOf",
    "ListOfZeros",
    "PackLists",
    "SumOfLists",
    "UnpackList",
    "element_spec",
    "elements",
    "list_of_zeros",
    "list_spec",
    "listed",
    "sum_of_lists",
]
