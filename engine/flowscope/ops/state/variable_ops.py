"""Variables as ops: a handle, and what reads and writes the state behind it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from flowscope.errors import InvalidArgumentError, NotFoundError, OutOfRangeError
from flowscope.graph.op import MAX_OUTPUTS, Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.host_values import on_host
from flowscope.graph.values.shapes import Dims, compatible, text
from flowscope.graph.values.string_values import boxed
from flowscope.ops.array.gathering import check_range, positions
from flowscope.ops.array.slicing import Part, StridedSlice, part_of
from flowscope.ops.core.shape_rules import check_kind


def variable_spec(handle: Spec) -> Spec:
    """Returns the Spec of the value behind a handle; raises DTypeError for anything else."""
    if handle.variable is None:
        raise expected_dtype("a variable", handle)
    return handle.variable


def like_variable(handle: Spec, value: Spec, what: str) -> Spec:
    """Returns the Spec of the variable behind a handle, for a value that must fit it."""
    variable = variable_spec(handle)
    if value.dtype is not variable.dtype:
        raise expected_dtype(f"{what} of dtype {variable.dtype}, the variable's", value.dtype)
    if not compatible(variable.shape, value.shape):
        raise expected(f"{what} of shape {text(variable.shape)}, the variable's", value.shape)
    return variable.like()


@frozen
class VarHandleOp(Op, is_stateful=True, is_handle=True, family="variable"):
    """The handle of a variable, whose value lives in a container under `shared_name`."""

    dtype: DType
    shape: Dims
    container: str
    shared_name: str

    def opened(self) -> VarHandleOp:
        """Returns the handle of the same variable without a static shape."""
        return dataclasses.replace(self, shape=None)

    def infer(self) -> Spec:
        return Spec(dtypes.resource, (), variable=Spec(self.dtype, self.shape))


class _Read(Op, abstract=True, is_stateful=True, reads_state=True):
    """Base of ops that read a variable."""


@frozen
class ReadVariableOp(_Read, template="{0}.read()", memory_order="C", passes_slices=True):
    """A variable's value as it is at this place in program order."""

    def infer(self, handle: Spec) -> Spec:
        return variable_spec(handle).like()

    def grad(self, g: Tensor, y: Tensor, handle: Tensor) -> tuple[Tensor | None, ...]:
        return (g,)

    def kernel(self, xp: ArrayModule, state: Any) -> Array:
        return state.read()


@frozen
class VarIsInitializedOp(_Read, accepts_empty=True, is_differentiable=False, host_outputs=(0,)):
    """Whether a variable has a value."""

    def infer(self, handle: Spec) -> Spec:
        variable_spec(handle)
        return Spec(dtypes.bool_, ())

    def kernel(self, xp: ArrayModule, state: Any) -> Array:
        return np.bool_(state.is_initialized)


@frozen
class InitializedValue(_Read, accepts_empty=True, passes_slices=True):
    """A variable's value if it has one, else the value given."""

    def infer(self, handle: Spec, otherwise: Spec) -> Spec:
        return like_variable(handle, otherwise, "a value")

    def grad(
        self, g: Tensor, y: Tensor, handle: Tensor, otherwise: Tensor
    ) -> tuple[Tensor | None, ...]:
        return g, None

    def kernel(self, xp: ArrayModule, state: Any, otherwise: Array) -> Array:
        return state.read() if state.is_initialized else otherwise


class Write(Op, abstract=True, is_stateful=True, writes_state=True, is_differentiable=False):
    """Base of ops that write a variable; the output is the new value.

    Writes of one non-empty `group` (an optimizer's update) become visible together: a step that is
    stopped, or that fails in one of them, has done all of them or none.
    """

    #: Whether `check` finds all that can make the kernel fail.
    is_checkable: ClassVar[bool] = False

    def check(self, state: Any, *inputs: Array) -> None:
        """Raises what the kernel would raise for these inputs; changes nothing."""

    def always_fits(self, handle: Spec, *inputs: Spec) -> bool:
        """Whether the Specs say that the kernel does not fail where the variable has a value."""
        return False


@frozen
class AssignVariableOp(Write, template="{0}.assign({1})", is_checkable=True):
    """Sets a variable's value.

    Attributes:
        validate_shape: Whether the value must fit the variable's static shape; else the variable
            takes the value's shape, whatever it was.
    """

    group: str = ""
    validate_shape: bool = True

    @property
    def reshapes(self) -> bool:
        """Whether it may give the variable another shape than the static one."""
        return not self.validate_shape

    def infer(self, handle: Spec, value: Spec) -> Spec:
        if self.validate_shape:
            return like_variable(handle, value, "a value")
        variable = variable_spec(handle)
        if value.dtype is not variable.dtype:
            raise expected_dtype(f"a value of dtype {variable.dtype}, the variable's", value.dtype)
        return value.like()

    def kernel(self, xp: ArrayModule, state: Any, value: Array) -> Array:
        return state.assign(value)

    def check(self, state: Any, *inputs: Array) -> None:
        state.check_assign(inputs[0])

    def always_fits(self, handle: Spec, *inputs: Spec) -> bool:
        return has_shape(handle, inputs[0])


def has_shape(handle: Spec, value: Spec) -> bool:
    """Whether a value is known to have the shape of the variable behind a handle."""
    return value.is_static and value.shape == variable_spec(handle).shape


@frozen
class DestroyResourceOp(Write, accepts_empty=True):
    """Drops a variable's value.

    Raises: NotFoundError if there is none, unless that is to be ignored.
    """

    ignore_lookup_error: bool = True

    def infer(self, handle: Spec) -> tuple[Spec, ...]:
        variable_spec(handle)
        return ()

    def kernel(self, xp: ArrayModule, state: Any) -> None:
        if not state.drop() and not self.ignore_lookup_error:
            raise NotFoundError(f'"{state.name}" has no value to destroy')


class _Update(Write, abstract=True, reads_state=True, is_checkable=True):
    """A variable's value changed by a value of its shape."""

    def infer(self, handle: Spec, value: Spec) -> Spec:
        return like_variable(handle, value, "a value")

    def check(self, state: Any, *inputs: Array) -> None:
        state.check_update()
        _same_shape(inputs[0], state.current())

    def always_fits(self, handle: Spec, *inputs: Spec) -> bool:
        return has_shape(handle, inputs[0])


def _same_shape(value: Array, old: Array) -> Array:
    """Returns the value; raises InvalidArgumentError if it has another shape than the variable."""
    shape = getattr(value, "shape", ())
    if shape != getattr(old, "shape", ()):
        raise expected(f"a value of shape {text(old.shape)}, the variable's", shape)
    return value


@frozen
class AssignAddVariableOp(_Update):
    """Adds to a variable's value, atomically."""

    group: str = ""

    def kernel(self, xp: ArrayModule, state: Any, value: Array) -> Array:
        return state.update(
            lambda old: old + _same_shape(value, old),
            lambda old: xp.add(old, _same_shape(value, old), out=old),
        )


@frozen
class AssignSubVariableOp(_Update):
    """Subtracts from a variable's value, atomically."""

    group: str = ""

    def kernel(self, xp: ArrayModule, state: Any, value: Array) -> Array:
        return state.update(
            lambda old: old - _same_shape(value, old),
            lambda old: xp.subtract(old, _same_shape(value, old), out=old),
        )


@frozen
class CountUpTo(Write, reads_state=True, is_checkable=True):
    """Adds one to an integer scalar below a limit; the output is the value before.

    Raises: OutOfRangeError if the value has reached the limit.
    """

    limit: int

    def infer(self, handle: Spec) -> Spec:
        variable = variable_spec(handle)
        if variable.dtype.kind not in "iu" or variable.shape not in ((), None):
            raise expected_dtype("an integer scalar to count with", variable)
        return variable.like()

    def kernel(self, xp: ArrayModule, state: Any) -> Array:
        before = []

        def counted(old: Array) -> Array:
            self._check_limit(old)
            before.append(old + 0)
            return old + old.dtype.type(1)

        state.update(counted, lambda old: xp.copyto(old, counted(old)))
        return before[0]

    def check(self, state: Any, *inputs: Array) -> None:
        self._check_limit(state.current())

    def _check_limit(self, old: Array) -> None:
        if on_host(old >= self.limit):
            raise OutOfRangeError(f"the count has reached its limit {self.limit}")


#: What is done to the slices that a scatter names: NumPy's functions, for floats and for integers.
_SCATTERS = {
    "update": ("update", "update"),
    "add": ("add", "add"),
    "sub": ("subtract", "subtract"),
    "mul": ("multiply", "multiply"),
    "div": ("divide", "floor_divide"),
    "min": ("minimum", "minimum"),
    "max": ("maximum", "maximum"),
}


@frozen
class ScatterVariable(Write, reads_state=True, is_checkable=True):
    """Changes slices of a variable, atomically: those that indices into its first axis name.

    Attributes:
        how: "update" sets the slices, "add", "sub", "mul", "div", "min" and "max" change them, once
            for each time that they are named.
        nd: Whether the indices' last axis spells out positions in several axes.

    Shapes: variable [n] + s, indices i, updates i + s or a scalar
        (nd: indices i + [k], updates i + variable's shape[k:])
    Raises: InvalidArgumentError if an index is out of range.
    """

    how: str
    nd: bool = False
    group: str = ""

    def infer(self, handle: Spec, indices: Spec, updates: Spec) -> Spec:
        variable = variable_spec(handle)
        check_kind(indices.dtype, "iu", "integer indices")
        if updates.dtype is not variable.dtype:
            raise expected_dtype(
                f"updates of dtype {variable.dtype}, the variable's", updates.dtype
            )
        wanted = self._updates_shape(variable.shape, indices.shape)
        if updates.shape != () and not compatible(updates.shape, wanted):
            raise expected(f"updates of shape {text(wanted)}", updates.shape)
        return variable.like()

    def _updates_shape(self, variable: Dims, indices: Dims) -> Dims:
        if variable is None or indices is None:
            return None
        k = indices[-1] if self.nd and indices else 1
        if k is None:
            return None
        if k > len(variable) or (self.nd and not indices):
            raise InvalidArgumentError(
                f"indices of shape {text(indices)} do not fit a variable of shape {text(variable)}"
            )
        return (*(indices[:-1] if self.nd else indices), *variable[k:])

    def kernel(self, xp: ArrayModule, state: Any, indices: Array, updates: Array) -> Array:
        def in_place(old: Array) -> None:
            where = self._where(old, indices, updates)
            name = _SCATTERS[self.how][old.dtype.kind in "iu"]
            if xp is not np:
                from flowscope.ops.kernels.device_scatter import scatter

                scatter(xp, name, old, where, updates)
            elif name == "update":
                old[where] = updates
            else:
                getattr(np, name).at(old, where, boxed(updates))

        return _changed(xp, state, in_place)

    def check(self, state: Any, *inputs: Array) -> None:
        state.check_update()
        self._where(state.current(), *inputs)

    def _where(self, old: Array, indices: Array, updates: Array) -> Any:
        """The index of the slices; raises InvalidArgumentError if it does not fit."""
        wanted = self._updates_shape(old.shape, indices.shape)
        if np.shape(updates) not in ((), wanted):
            raise expected(f"updates of shape {text(wanted)}", np.shape(updates))
        if self.nd:
            return positions(indices, old.shape)
        check_range(indices, old.shape[0])
        return indices


@frozen
class AssignStridedSlice(
    Write, reads_state=True, is_checkable=True, host_inputs=range(2, MAX_OUTPUTS)
):
    """Sets a part of a variable, by integers, slices and an ellipsis as in `StridedSlice`.

    Shapes: variable s, value: what broadcasts to the shape of variable[key]
    Raises: InvalidArgumentError if an index is out of range.
    """

    key: tuple[Part, ...]
    group: str = ""

    def infer(self, handle: Spec, value: Spec, *given: Spec) -> Spec:
        variable = variable_spec(handle)
        part = StridedSlice(self.key).infer(variable.like(), *given)
        if value.dtype is not variable.dtype:
            raise expected_dtype(f"a value of dtype {variable.dtype}, the variable's", value.dtype)
        _check_fills(part.shape, value.shape)
        return variable.like()

    def kernel(self, xp: ArrayModule, state: Any, value: Array, *given: Array) -> Array:
        index = StridedSlice(self.key).index(given)

        def in_place(old: Array) -> None:
            _check_fills(np.shape(part_of(old, index)), np.shape(value))
            old[index] = value

        return _changed(xp, state, in_place)

    def check(self, state: Any, *inputs: Array) -> None:
        value, *given = inputs
        state.check_update()
        part = part_of(state.current(), StridedSlice(self.key).index(given))
        _check_fills(np.shape(part), np.shape(value))


def _check_fills(part: Dims, value: Dims) -> None:
    """Raises InvalidArgumentError unless a value broadcasts to the part's shape."""
    if part is None or value is None:
        return
    if len(value) > len(part) or not all(
        v in (1, None) or p is None or v == p
        for v, p in zip(reversed(value), reversed(part), strict=False)
    ):
        raise expected(f"a value of shape {text(part)}, the part's", value)


def _changed(xp: ArrayModule, state: Any, in_place: Callable[[Array], None]) -> Array:
    """Changes a variable's buffer, or a copy of it where somebody reads the buffer."""

    def fresh(old: Array) -> Array:
        new = xp.array(boxed(old))
        in_place(new)
        return new if new.ndim else new[()]

    return state.update(fresh, in_place)
