"""Values of a program, as users write it: arguments, stages, and the pipeline of them.

A stage is checked when it is written: dtypes, shapes, layouts and groups of its operands go
together, or the line that writes it raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowscope as fs
from flowscope.coconet.layouts import (
    Layout,
    RankGroup,
    Replicated,
    checked_shape,
)
from flowscope.coconet.stage_ops import (
    AllGatherStage,
    ElementwiseStage,
    SliceStage,
    StageOp,
    UpdateStage,
    covers,
    sliced_from_right,
)
from flowscope.coconet.values import Number, ValueType, assigned_variable, refused
from flowscope.errors import InvalidArgumentError, OpError
from flowscope.graph.origins.origin import capture


class ProgramValue:
    """Base of what a program computes with. Operators and functions of `fs.coconet` take it.

    Attributes:
        name: Its name; "" for a stage that gets one from its pipeline.
        type: Dtype, shape, layout and group.
        origin: Where the user wrote it.
    """

    __slots__ = ("name", "origin", "type")
    __array_ufunc__ = None

    def __init__(self, name: str, type: ValueType) -> None:
        self.name = name
        self.type = type
        self.origin = capture()

    @property
    def dtype(self) -> fs.DType:
        """The dtype."""
        return self.type.dtype

    @property
    def layout(self) -> Layout:
        """How the values lie over the ranks."""
        return self.type.layout

    def __repr__(self) -> str:
        return f"<{self.name or 'stage'}: {self.type}>"

    def __bool__(self) -> bool:
        raise InvalidArgumentError(
            "expected ite(condition, a, b): a value of a program is not known while it is written"
        )

    def __add__(self, other: Any) -> ProgramStage:
        return elementwise("add", self, other)

    def __radd__(self, other: Any) -> ProgramStage:
        return elementwise("add", other, self)

    def __sub__(self, other: Any) -> ProgramStage:
        return elementwise("subtract", self, other)

    def __rsub__(self, other: Any) -> ProgramStage:
        return elementwise("subtract", other, self)

    def __mul__(self, other: Any) -> ProgramStage:
        return elementwise("multiply", self, other)

    def __rmul__(self, other: Any) -> ProgramStage:
        return elementwise("multiply", other, self)

    def __truediv__(self, other: Any) -> ProgramStage:
        return elementwise("divide", self, other)

    def __rtruediv__(self, other: Any) -> ProgramStage:
        return elementwise("divide", other, self)

    def __pow__(self, other: Any) -> ProgramStage:
        return elementwise("pow", self, other)

    def __rpow__(self, other: Any) -> ProgramStage:
        return elementwise("pow", other, self)

    def __gt__(self, other: Any) -> ProgramStage:
        return elementwise("greater", self, other)

    def __lt__(self, other: Any) -> ProgramStage:
        return elementwise("less", self, other)

    def __neg__(self) -> ProgramStage:
        return elementwise("negative", self)


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise InvalidArgumentError(f"expected a name that is an identifier, got {name!r}")
    return name


class ProgramArgument(ProgramValue):
    """Base of what is given to a program when it is built: tensors and numbers."""

    __slots__ = ()


class ProgramTensor(ProgramArgument):
    """A tensor that is given to a program.

    Args:
        name: Its name in the program.
        dtype: The element type.
        shape: Lengths and symbolic sizes.
        layout: `Local`, `Replicated` or `Sliced(dim)`.
        group: The ranks that have it; those of the group "world" by default.

    Raises:
        InvalidArgumentError: if the name is no identifier, or the layout slices what is not there.
    """

    __slots__ = ()

    def __init__(
        self,
        name: str,
        dtype: Any,
        shape: Any,
        layout: Layout = Replicated,
        group: RankGroup | None = None,
    ) -> None:
        dims, group = checked_shape(shape), RankGroup() if group is None else group
        if not isinstance(layout, Layout):
            raise InvalidArgumentError(
                f"expected Local, Replicated or Sliced(dim) as layout, got {layout!r}"
            )
        if not isinstance(group, RankGroup):
            raise InvalidArgumentError(f"expected a Group, got {group!r}")
        if layout.dim is not None and layout.dim >= len(dims):
            raise InvalidArgumentError(
                f"expected a dimension below {len(dims)} to slice, got {layout}"
            )
        super().__init__(_checked_name(name), ValueType(fs.as_dtype(dtype), dims, layout, group))


class ProgramScalar(ProgramArgument):
    """A number that is given to a program, the same on all ranks of all groups.

    Args:
        name: Its name in the program.
        dtype: The element type.

    Raises:
        InvalidArgumentError: if the name is no identifier.
    """

    __slots__ = ()

    def __init__(self, name: str, dtype: Any = fs.float32) -> None:
        spec = ValueType(fs.as_dtype(dtype), (), Replicated, None)
        super().__init__(_checked_name(name), spec)


class ProgramVariable(ProgramArgument):
    """A number that each rank of a group keeps, and that `update` can change.

    Args:
        name: Its name in the program.
        dtype: The element type.
        group: The ranks that keep it; those of the group "world" by default.

    Raises:
        InvalidArgumentError: if the name is no identifier.
    """

    __slots__ = ()

    def __init__(
        self,
        name: str,
        dtype: Any = fs.float32,
        group: RankGroup | None = None,
    ) -> None:
        spec = ValueType(fs.as_dtype(dtype), (), Replicated, group or RankGroup())
        super().__init__(_checked_name(name), spec)


class ProgramStage(ProgramValue):
    """A computation or a communication of a program.

    Attributes:
        op: What it computes.
        operands: Values of the program, and Python numbers.
        variable: The Python variable of the user's that takes it; "" for none.
    """

    __slots__ = ("op", "operands", "variable")

    def __init__(
        self,
        op: StageOp,
        operands: Sequence[ProgramValue | Number],
        type: ValueType,
        name: str | None = None,
    ) -> None:
        super().__init__("" if name is None else _checked_name(name), type)
        self.variable = assigned_variable(self.origin)
        self.op = op
        self.operands = tuple(operands)


def made_stage(op: StageOp, *operands: Any, name: str | None = None) -> ProgramStage:
    """Returns the stage of an op on operands; raises at the user's line if they do not fit."""
    for x in operands:
        if not isinstance(x, ProgramValue | int | float):
            raise InvalidArgumentError(
                f"{op.label}: expected values of the program and numbers, got {x!r}"
            )
    try:
        found = op.infer(*[x.type if isinstance(x, ProgramValue) else None for x in operands])
    except OpError as error:
        told = refused(f"{op.label}: {error.message}", operands)
        raise type(error)(told.message, inputs=told.inputs) from None
    return ProgramStage(op, operands, found, name)


def with_slices(operands: Sequence[Any]) -> list[Any]:
    """Returns operands in which replicated ones are cut as a sliced one beside them is."""
    values = [x for x in operands if isinstance(x, ProgramValue)]
    rights = [r for x in values if (r := sliced_from_right(x.type)) is not None]
    if not rights:
        return list(operands)
    return [_sliced(x, rights[0]) if isinstance(x, ProgramValue) else x for x in operands]


def _sliced(x: ProgramValue, right: int) -> ProgramValue:
    if x.layout == Replicated and covers(x.type, right):
        return made_stage(SliceStage(x.type.rank - right), x)
    return x


def elementwise(function: str, *operands: Any, name: str | None = None) -> ProgramStage:
    """Returns the stage of an element-wise function, one of `stage_ops.FUNCTIONS`."""
    return made_stage(ElementwiseStage(function), *with_slices(operands), name=name)


def update(target: ProgramArgument, value: Any, name: str | None = None) -> ProgramStage:
    """Gives an argument a new value.

    Where the argument is Replicated and the value Sliced, each rank's part is computed there, and
    all parts are gathered. Stages that use the argument itself see its value before the run, those
    that use the result the new one.

    Args:
        target: A tensor or variable that is given to the program.
        value: Its new value, of the same dtype and shape, and in its layout.
        name: Name of the stage.

    Raises:
        InvalidArgumentError: if shapes or layouts do not fit.
        DTypeError: if dtypes differ.
    """
    if not isinstance(target, ProgramArgument):
        raise InvalidArgumentError(f"update: expected an argument of the program, got {target!r}")
    if isinstance(target, ProgramScalar):
        raise InvalidArgumentError(
            f"update: expected a Tensor or a Variable, got the Scalar {target.name}"
        )
    is_part = (
        isinstance(value, ProgramValue)
        and value.layout.dim is not None
        and target.layout == Replicated
        and value.layout.dim < target.type.rank
    )
    if not is_part:
        return made_stage(UpdateStage(target.name), target, value, name=name)
    old = made_stage(SliceStage(value.layout.dim), target)
    part = made_stage(UpdateStage(target.name), old, value)
    return made_stage(AllGatherStage(updates=target.name), part, name=name)


__all__ = ["ProgramScalar", "ProgramStage", "ProgramTensor", "ProgramVariable"]
