"""What a stage computes: element-wise functions, products, norms, collectives, updates.

Each says which layout follows from those of its operands (`infer`), and raises where they do not
go together. `StageOp.text` is how a stage reads in a schedule.

Source: layouts and their rules, Jangda et al. 2022, "Breaking the Computation and Communication
Abstraction Barrier in Distributed Machine Learning Workloads", section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import flowscope as fs
from flowscope.coconet.layouts import Dim, Layout, Local, RankGroup, Replicated, shape_text
from flowscope.coconet.values import ValueType, scalar_of
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.lazy import frozen

#: Element-wise functions by their names, with the number of operands.
FUNCTIONS = {
    "add": 2, "subtract": 2, "multiply": 2, "divide": 2, "pow": 2, "maximum": 2, "minimum": 2,
    "greater": 2, "less": 2, "ite": 3, "sqrt": 1, "square": 1, "tanh": 1, "relu": 1, "exp": 1,
    "log": 1, "negative": 1, "abs": 1,
}  # fmt: skip
SYMBOLS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "pow": "**", "greater": ">",
    "less": "<",
}  # fmt: skip
_COMPARISONS = ("greater", "less")

#: The type of an operand, None for a Python number.
Operand = ValueType | None


@frozen
class StageOp:
    """Base of what a stage computes."""

    #: Whether each element of the result follows from the operands' elements at its place.
    is_elementwise: ClassVar[bool] = False
    #: Whether ranks exchange values.
    communicates: ClassVar[bool] = False

    def infer(self, *xs: Any) -> ValueType:
        """The type of the result.

        Raises:
            InvalidArgumentError: if the operands do not fit.
        """
        raise NotImplementedError

    def text(self, operands: Sequence[str]) -> str:
        """How a stage with operands of these names reads."""
        return f"{self.label}({', '.join(operands)})"

    @property
    def label(self) -> str:
        """The name of the function that makes such a stage."""
        raise NotImplementedError


def _of_tensors(xs: Sequence[Operand]) -> list[ValueType]:
    found = [x for x in xs if x is not None]
    if not found:
        raise InvalidArgumentError("expected a tensor or a scalar of the program, got numbers")
    return found


def one_group(xs: Sequence[ValueType]) -> RankGroup | None:
    """The group of operands; raises if they are of several."""
    groups = list(dict.fromkeys(x.group for x in xs if x.group is not None))
    if len(groups) > 1:
        raise InvalidArgumentError(
            f"expected operands of one group, got {' and '.join(map(str, groups))}; "
            "send moves a value to another group"
        )
    return groups[0] if groups else None


def _one_dtype(xs: Sequence[ValueType]) -> fs.DType:
    for x in xs:
        if x.dtype is not xs[0].dtype:
            raise DTypeError(
                f"expected operands of one dtype, got {xs[0].dtype.name} and {x.dtype.name}; "
                "cast one of them"
            )
    return xs[0].dtype


def broadcast(xs: Sequence[ValueType]) -> tuple[Dim, ...]:
    """The shape that operands have together: trailing dimensions are equal, or one of them is 1."""
    found: list[Dim] = []
    for at in range(1, max(x.rank for x in xs) + 1):
        dims = [x.shape[-at] for x in xs if x.rank >= at]
        wide = [d for d in dims if d != 1] or [1]
        if any(d != wide[0] for d in wide):
            shapes = " and ".join(shape_text(x.shape) for x in xs)
            raise InvalidArgumentError(
                f"expected shapes whose trailing dimensions agree, got {shapes}"
            )
        found.append(wide[0])
    return tuple(reversed(found))


def sliced_from_right(x: ValueType) -> int | None:
    """Which dimension a value is sliced in, counted from the last one, which is 1."""
    return None if x.layout.dim is None else x.rank - x.layout.dim


def covers(x: ValueType, right: int) -> bool:
    """Whether a value has a dimension, counted from the last one, in its whole length."""
    return x.rank >= right and x.shape[-right] != 1


def _pointwise_layout(xs: Sequence[ValueType], rank: int) -> Layout:
    tensors = [x for x in xs if x.layout != Replicated]
    if not tensors:
        return Replicated
    sliced = [x for x in tensors if x.layout.is_sliced]
    if not sliced:
        return Local
    if len(sliced) < len(tensors):
        raise InvalidArgumentError(
            "expected no Local operand beside a Sliced one, for each rank has whole values of its "
            "own of the one and a part of the other; reduce_scatter or all_reduce the Local one"
        )
    right = sliced_from_right(sliced[0])
    assert right is not None
    for x in sliced:
        if sliced_from_right(x) != right or not covers(x, right):
            raise InvalidArgumentError(
                f"expected operands that are sliced in the same dimension, got {sliced[0].layout} "
                f"of {shape_text(sliced[0].shape)} and {x.layout} of {shape_text(x.shape)}"
            )
    for x in xs:
        if x.layout == Replicated and covers(x, right):
            raise InvalidArgumentError(
                f"expected a slice of what has the sliced dimension, got Replicated "
                f"{shape_text(x.shape)}"
            )
    return Layout("Sliced", rank - right)


@frozen
class ElementwiseStage(StageOp):
    """An element-wise function of operands whose trailing dimensions agree.

    Attributes:
        function: One of `FUNCTIONS`.
    """

    function: str
    is_elementwise: ClassVar[bool] = True

    def infer(self, *xs: Operand) -> ValueType:
        tensors = _of_tensors(xs)
        group = one_group(tensors)
        if self.function == "ite":
            dtype = self._chosen_dtype(xs)
        else:
            dtype = _one_dtype(tensors)
            if dtype is fs.bool:
                raise DTypeError(f"expected numbers for {self.label}, got bool")
        shape = broadcast(tensors)
        layout = _pointwise_layout(tensors, len(shape))
        return ValueType(fs.bool if self.function in _COMPARISONS else dtype, shape, layout, group)

    @staticmethod
    def _chosen_dtype(xs: Sequence[Operand]) -> fs.DType:
        condition, *values = xs
        if condition is None or condition.dtype is not fs.bool:
            got = "a number" if condition is None else condition.dtype.name
            raise DTypeError(f"expected a condition of dtype bool, got {got}")
        if tensors := [x for x in values if x is not None]:
            return _one_dtype(tensors)
        raise InvalidArgumentError("expected a tensor among the values of ite, got two numbers")

    @property
    def label(self) -> str:
        return self.function

    def text(self, operands: Sequence[str]) -> str:
        symbol = SYMBOLS.get(self.function)
        return f" {symbol} ".join(operands) if symbol else super().text(operands)


@frozen
class CastStage(StageOp):
    """The same values in another dtype.

    Attributes:
        dtype: The dtype.
    """

    dtype: fs.DType
    is_elementwise: ClassVar[bool] = True

    def infer(self, x: ValueType) -> ValueType:
        return ValueType(self.dtype, x.shape, x.layout, x.group)

    @property
    def label(self) -> str:
        return "cast"

    def text(self, operands: Sequence[str]) -> str:
        return f"cast({operands[0]}, {self.dtype.name})"


@frozen
class DropoutStage(StageOp):
    """Elements set to 0 at random, the others scaled up.

    An element's chance follows from seed, run and its place in the whole tensor: the mask is the
    same however the tensor is cut. In a Local tensor all ranks have one mask.

    Attributes:
        rate: The probability that an element is set to 0.
        seed: Seed of the chances.
    """

    rate: float
    seed: int
    is_elementwise: ClassVar[bool] = True

    def infer(self, x: ValueType) -> ValueType:
        if not x.dtype.is_floating:
            raise DTypeError(f"expected a floating-point tensor for dropout, got {x.dtype.name}")
        return x

    @property
    def label(self) -> str:
        return "dropout"

    def text(self, operands: Sequence[str]) -> str:
        return f"dropout({operands[0]}, {self.rate}, seed={self.seed})"


@frozen
class MatMulStage(StageOp):
    """The matrix product of a [..., m, k] and b [k, n]."""

    def infer(self, a: ValueType, b: ValueType) -> ValueType:
        group = one_group([a, b])
        dtype = _one_dtype([a, b])
        if not dtype.is_floating:
            raise DTypeError(f"expected floating-point matrices, got {dtype.name}")
        if a.rank < 2 or b.rank != 2 or a.shape[-1] != b.shape[0]:
            raise InvalidArgumentError(
                "expected matrices [..., m, k] and [k, n], got "
                f"{shape_text(a.shape)} and {shape_text(b.shape)}"
            )
        shape = (*a.shape[:-1], b.shape[-1])
        return ValueType(dtype, shape, self._layout(a, b), group)

    @staticmethod
    def _layout(a: ValueType, b: ValueType) -> Layout:
        layouts, inner = (a.layout, b.layout), a.rank - 1
        if a.layout.dim == inner and b.layout.dim == 0:
            return Local  # partial sums
        if not any(x.is_sliced for x in layouts):
            return Local if Local in layouts else Replicated
        if b.layout == Replicated and a.layout.dim != inner:
            return a.layout
        if a.layout == Replicated and b.layout.dim == 1:
            return Layout("Sliced", inner)
        raise InvalidArgumentError(
            "expected a product of Sliced and Replicated that is sliced in an outer dimension, or "
            f"of both Sliced in the inner one, got {a.layout} @ {b.layout}"
        )

    @property
    def label(self) -> str:
        return "matmul"


@frozen
class TotalStage(StageOp):
    """A number of all elements: their sum, or their Euclidean norm.

    Of a Sliced tensor each rank computes its part, and the ranks reduce one number.

    Attributes:
        how: "sum" or "norm".
    """

    how: str

    def infer(self, x: ValueType) -> ValueType:
        if not x.dtype.is_floating:
            raise DTypeError(f"expected a floating-point tensor, got {x.dtype.name}")
        return scalar_of(x)

    @property
    def label(self) -> str:
        return "norm" if self.how == "norm" else "reduce_sum"


@frozen
class AllReduceStage(StageOp):
    """The elementwise reduction of all ranks' tensors, for each rank.

    Attributes:
        reduction: "sum", "mean", "min", "max" or "prod".
    """

    reduction: str
    communicates: ClassVar[bool] = True

    def infer(self, x: ValueType) -> ValueType:
        return _local(self, x).with_layout(Replicated)

    @property
    def label(self) -> str:
        return "all_reduce"

    def text(self, operands: Sequence[str]) -> str:
        return f'all_reduce({operands[0]}, "{self.reduction}")'


def _local(op: StageOp, x: ValueType) -> ValueType:
    if x.layout != Local:
        raise InvalidArgumentError(f"expected a Local tensor for {op.label}, got {x.layout}")
    return x


def _checked_dim(x: ValueType, dim: int) -> int:
    if not 0 <= dim < x.rank:
        raise InvalidArgumentError(
            f"expected a dimension of {shape_text(x.shape)} to slice, got {dim}"
        )
    return dim


@frozen
class ReduceScatterStage(StageOp):
    """The elementwise reduction of all ranks' tensors, of which each rank gets a part.

    Attributes:
        reduction: "sum", "mean", "min", "max" or "prod".
        dim: The dimension of which each rank gets a part.
    """

    reduction: str
    dim: int
    communicates: ClassVar[bool] = True

    def infer(self, x: ValueType) -> ValueType:
        return _local(self, x).with_layout(Layout("Sliced", _checked_dim(x, self.dim)))

    @property
    def label(self) -> str:
        return "reduce_scatter"

    def text(self, operands: Sequence[str]) -> str:
        return f'reduce_scatter({operands[0]}, "{self.reduction}", dim={self.dim})'


@frozen
class AllGatherStage(StageOp):
    """The parts of all ranks, joined for each rank.

    Attributes:
        updates: The replicated argument that takes the value; "" for none.
    """

    updates: str = ""
    communicates: ClassVar[bool] = True

    def infer(self, x: ValueType) -> ValueType:
        if not x.layout.is_sliced:
            raise InvalidArgumentError(f"expected a Sliced tensor for all_gather, got {x.layout}")
        return x.with_layout(Replicated)

    @property
    def label(self) -> str:
        return "all_gather"

    def text(self, operands: Sequence[str]) -> str:
        into = f", into={self.updates}" if self.updates else ""
        return f"all_gather({operands[0]}{into})"


@frozen
class SliceStage(StageOp):
    """Of a replicated tensor each rank takes its part.

    Attributes:
        dim: The dimension of which each rank takes a part.
    """

    dim: int

    def infer(self, x: ValueType) -> ValueType:
        if x.layout != Replicated:
            raise InvalidArgumentError(f"expected a Replicated tensor for slice, got {x.layout}")
        return x.with_layout(Layout("Sliced", _checked_dim(x, self.dim)))

    @property
    def label(self) -> str:
        return "slice"

    def text(self, operands: Sequence[str]) -> str:
        return f"slice({operands[0]}, dim={self.dim})"


@frozen
class ReduceStage(StageOp):
    """The elementwise reduction of all ranks' tensors, on one rank; zeros on the others.

    Attributes:
        reduction: "sum", "mean", "min", "max" or "prod".
        root: The rank that gets it.
    """

    reduction: str
    root: int
    communicates: ClassVar[bool] = True

    def infer(self, x: ValueType) -> ValueType:
        return _local(self, x)

    @property
    def label(self) -> str:
        return "reduce"

    def text(self, operands: Sequence[str]) -> str:
        return f'reduce({operands[0]}, "{self.reduction}", root={self.root})'


@frozen
class BroadcastStage(StageOp):
    """The tensor of one rank, for each rank.

    Attributes:
        root: The rank whose tensor it is.
    """

    root: int
    communicates: ClassVar[bool] = True

    def infer(self, x: ValueType) -> ValueType:
        return _local(self, x).with_layout(Replicated)

    @property
    def label(self) -> str:
        return "broadcast"

    def text(self, operands: Sequence[str]) -> str:
        return f"broadcast({operands[0]}, root={self.root})"


@frozen
class SendStage(StageOp):
    """Each rank hands its values to the rank of the same number in another group.

    Attributes:
        group: The group that gets them.
    """

    group: RankGroup
    communicates: ClassVar[bool] = True

    def infer(self, x: ValueType) -> ValueType:
        if x.group == self.group or x.group is None:
            raise InvalidArgumentError(
                f"expected a tensor of another group than {self.group} to send there"
            )
        return ValueType(x.dtype, x.shape, x.layout, self.group)

    @property
    def label(self) -> str:
        return "send"

    def text(self, operands: Sequence[str]) -> str:
        return f"send({operands[0]}, to={self.group})"


@frozen
class UpdateStage(StageOp):
    """A new value for an argument; its operands are the old value and the new one.

    Where the argument is Replicated and the operands are parts of it, an `all_gather` with
    `updates` gives it the whole; elsewhere it gets the value here.

    Attributes:
        target: Name of the argument.
    """

    target: str
    is_elementwise: ClassVar[bool] = True

    def infer(self, t: ValueType, x: Operand) -> ValueType:
        if x is None:
            raise InvalidArgumentError(
                "expected a tensor of the program as new value, got a number"
            )
        if t.dtype is not x.dtype:
            raise DTypeError(f"expected {t.dtype.name} to update with, got {x.dtype.name}")
        if t.shape != x.shape:
            raise InvalidArgumentError(
                f"expected {shape_text(t.shape)} to update with, got {shape_text(x.shape)}"
            )
        if t.layout != x.layout:
            raise InvalidArgumentError(
                f"expected the layout {t.layout} of {self.target} to update with, got {x.layout}"
            )
        one_group([t, x])
        return t

    @property
    def label(self) -> str:
        return "update"

    def text(self, operands: Sequence[str]) -> str:
        return f"update({self.target}, {operands[1]})"


__all__ = ["FUNCTIONS", "StageOp"]
