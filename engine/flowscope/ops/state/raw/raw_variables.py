"""Operations of variables as TensorFlow's `raw_ops` name them.

Those that take a `resource` take a handle, and return the operation where TensorFlow's have no
output; those that take a `ref` return the variable's new value. Both take an `fs.Variable`, too.

Source: names, arguments and meaning are TensorFlow's.
"""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import Convertible, convert_to_tensor, get_static_value
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.unsupported import refuse
from flowscope.graph.values.dtypes import as_dtype, int32
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import as_dims
from flowscope.ops.array.arrays import shape as shape_of
from flowscope.ops.array.gathering import gather, gather_nd
from flowscope.ops.array.slicing import Part
from flowscope.ops.core.build import apply
from flowscope.ops.state import variable_ops as state
from flowscope.ops.state.variables import (
    Variable as _Variable,
    VariableAggregation,
    VariableSynchronization,
)


def handle_of(value: Any) -> Tensor:
    """Returns the handle that `value`, a variable or a handle, stands for.

    Raises:
        DTypeError: if it stands for none.
    """
    found = value.handle if isinstance(value, _Variable) else value
    if not isinstance(found, Tensor) or found.spec.variable is None or found.dtype != "resource":
        raise expected_dtype("a variable or its handle", repr(value))
    return found


def _like(value: Any, handle: Tensor) -> Tensor:
    if isinstance(value, Tensor | Convertible):
        return convert_to_tensor(value)
    return convert_to_tensor(value, state.variable_spec(handle.spec).dtype)


def _check_dtype(handle: Tensor, dtype: Any) -> None:
    found = state.variable_spec(handle.spec).dtype
    if as_dtype(dtype) is not found:
        raise expected_dtype(f"the variable's dtype {found}", as_dtype(dtype))


# -- variables ------------------------------------------------------------------------------------


def VarHandleOp(
    *,
    dtype: Any,
    shape: Any,
    container: str = "",
    shared_name: str = "",
    debug_name: str = "",
    allowed_devices: Any = (),
    name: str | None = None,
) -> Tensor:
    """Returns the handle of a variable without a value, an operation of its own each time.

    Args:
        dtype: Element type of the value.
        shape: Shape of the value, as far as it is known.
        container: Container of the value; the one that is open by default.
        shared_name: Name in the container: handles of one name stand for one variable; the
            operation's name by default.
        debug_name: Of variables without a name, which there are not here; not used.
        allowed_devices: Has to be empty: see `fs.device`.
        name: Name of the operation.
    """
    del debug_name
    refuse("raw_ops.VarHandleOp", allowed_devices=allowed_devices)
    graph = get_default_graph()
    full = graph.unique_name(name or "VarHandleOp")
    definition = state.VarHandleOp(
        as_dtype(dtype),
        as_dims(shape),
        container or graph.extras.get("container", ""),
        shared_name or full,
    )
    with graph.enter_block(graph.root):
        return graph.add(definition, (), full + "/").outputs[0]


def VariableV2(
    *, shape: Any, dtype: Any, container: str = "", shared_name: str = "", name: str | None = None
) -> _Variable:
    """Returns a variable without a value, in no collection, to be set by `Assign`."""
    variable = _Variable.__new__(_Variable)
    variable.handle = VarHandleOp(
        dtype=dtype,
        shape=shape,
        container=container,
        shared_name=shared_name,
        name=name or "VariableV2",
    )
    variable._reads = {}
    variable.trainable, variable.constraint = False, None
    variable.synchronization = VariableSynchronization.AUTO
    variable.aggregation = VariableAggregation.NONE
    variable._snapshot = variable.value()
    return variable


Variable = VariableV2


def ReadVariableOp(*, resource: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Returns the variable's value at this place in program order."""
    handle = handle_of(resource)
    _check_dtype(handle, dtype)
    return apply(state.ReadVariableOp(), handle, name=name)


def AssignVariableOp(
    *, resource: Any, value: Any, validate_shape: bool = False, name: str | None = None
) -> Operation:
    """Returns an operation that sets the variable's value, of the handle's shape in any case."""
    del validate_shape
    handle = handle_of(resource)
    return apply(state.AssignVariableOp(), handle, _like(value, handle), name=name).op


def AssignAddVariableOp(*, resource: Any, value: Any, name: str | None = None) -> Operation:
    """Returns an operation that adds to the variable, atomically."""
    handle = handle_of(resource)
    return apply(state.AssignAddVariableOp(), handle, _like(value, handle), name=name).op


def AssignSubVariableOp(*, resource: Any, value: Any, name: str | None = None) -> Operation:
    """Returns an operation that subtracts from the variable, atomically."""
    handle = handle_of(resource)
    return apply(state.AssignSubVariableOp(), handle, _like(value, handle), name=name).op


def VarIsInitializedOp(*, resource: Any, name: str | None = None) -> Tensor:
    """Returns a bool scalar: whether the variable has a value."""
    return apply(state.VarIsInitializedOp(), handle_of(resource), name=name)


def IsVariableInitialized(*, ref: Any, name: str | None = None) -> Tensor:
    """Returns a bool scalar: whether the variable has a value."""
    return VarIsInitializedOp(resource=ref, name=name or "IsVariableInitialized")


def VariableShape(*, input: Any, out_type: Any = int32, name: str | None = None) -> Tensor:
    """Returns the shape of the variable's value as a vector."""
    value = apply(state.ReadVariableOp(), handle_of(input))
    return shape_of(value, name or "VariableShape", as_dtype(out_type), optimize=False)


def DestroyResourceOp(
    *, resource: Any, ignore_lookup_error: bool = True, name: str | None = None
) -> Operation:
    """Returns an operation that drops the variable's value.

    Raises:
        NotFoundError: when it runs, if there is none and `ignore_lookup_error` is False.
    """
    op = state.DestroyResourceOp(bool(ignore_lookup_error))
    return get_default_graph().add(op, (handle_of(resource),), name)


def Assign(
    *,
    ref: Any,
    value: Any,
    validate_shape: bool = True,
    use_locking: bool = True,
    name: str | None = None,
) -> Tensor:
    """Returns the variable's new value; running it sets the variable, atomically.

    Args:
        ref: A variable.
        value: The value, of the variable's dtype and shape.
        validate_shape: Whether the value must fit the variable's static shape, see `fs.assign`.
        use_locking: Writes are always atomic.
        name: Name of the operation.
    """
    del use_locking
    handle = handle_of(ref)
    op = state.AssignVariableOp(validate_shape=validate_shape)
    return apply(op, handle, _like(value, handle), name=name or "Assign")


def AssignAdd(*, ref: Any, value: Any, use_locking: bool = False,
              name: str | None = None) -> Tensor:  # fmt: skip
    """Returns the variable's new value; running it adds to the variable, atomically."""
    del use_locking
    handle = handle_of(ref)
    return apply(
        state.AssignAddVariableOp(), handle, _like(value, handle), name=name or "AssignAdd"
    )


def AssignSub(*, ref: Any, value: Any, use_locking: bool = False,
              name: str | None = None) -> Tensor:  # fmt: skip
    """Returns the variable's new value; running it subtracts from the variable, atomically."""
    del use_locking
    handle = handle_of(ref)
    return apply(
        state.AssignSubVariableOp(), handle, _like(value, handle), name=name or "AssignSub"
    )


def CountUpTo(*, ref: Any, limit: int, name: str | None = None) -> Tensor:
    """Returns the value, and adds one; OutOfRangeError once it has reached `limit`."""
    return apply(state.CountUpTo(limit), handle_of(ref), name=name)


def ResourceCountUpTo(*, resource: Any, limit: int, T: Any, name: str | None = None) -> Tensor:
    """Returns the value, and adds one; OutOfRangeError once it has reached `limit`."""
    handle = handle_of(resource)
    _check_dtype(handle, T)
    return CountUpTo(ref=handle, limit=limit, name=name or "ResourceCountUpTo")


# -- parts of variables ---------------------------------------------------------------------------


def ResourceGather(
    *,
    resource: Any,
    indices: Any,
    dtype: Any,
    batch_dims: int = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """Returns slices of the variable's value, see `fs.gather`; indices are always checked."""
    del validate_indices
    value = ReadVariableOp(resource=resource, dtype=dtype)
    return gather(value, indices, axis=batch_dims, batch_dims=batch_dims,
                  name=name or "ResourceGather")  # fmt: skip


def ResourceGatherNd(*, resource: Any, indices: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Returns elements or slices of the variable's value at positions, see `fs.gather_nd`."""
    value = ReadVariableOp(resource=resource, dtype=dtype)
    return gather_nd(value, indices, name=name or "ResourceGatherNd")


def _scattered(how: str, nd: bool, target: Any, indices: Any, updates: Any, name: str) -> Tensor:
    handle = handle_of(target)
    places = convert_to_tensor(indices, preferred_dtype=int32)
    return apply(state.ScatterVariable(how, nd), handle, places, _like(updates, handle), name=name)


def _by_ref(how: str) -> Any:
    def scatter(
        *, ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        del use_locking
        return _scattered(how, False, ref, indices, updates, name or scatter.__name__)

    return _named(
        scatter, f"Scatter{how.title()}", f"Returns the new value; see `fs.scatter_{how}`."
    )


def _by_handle(how: str) -> Any:
    def scatter(*, resource: Any, indices: Any, updates: Any, name: str | None = None) -> Operation:
        return _scattered(how, False, resource, indices, updates, name or scatter.__name__).op

    doc = f"Returns an operation that changes slices of the variable, see `fs.scatter_{how}`."
    return _named(scatter, f"ResourceScatter{how.title()}", doc)


def _nd_by_ref(how: str) -> Any:
    def scatter(
        *,
        ref: Any,
        indices: Any,
        updates: Any,
        use_locking: bool = False,
        bad_indices_policy: str = "",
        name: str | None = None,
    ) -> Tensor:
        del use_locking
        refuse(f"raw_ops.{scatter.__name__}", bad_indices_policy=bad_indices_policy)
        return _scattered(how, True, ref, indices, updates, name or scatter.__name__)

    doc = f"Returns the new value; running it changes parts at positions: {how}."
    return _named(scatter, f"ScatterNd{how.title()}", doc)


def _nd_by_handle(how: str) -> Any:
    def scatter(
        *,
        ref: Any,
        indices: Any,
        updates: Any,
        use_locking: bool = True,
        bad_indices_policy: str = "",
        name: str | None = None,
    ) -> Operation:
        del use_locking
        refuse(f"raw_ops.{scatter.__name__}", bad_indices_policy=bad_indices_policy)
        return _scattered(how, True, ref, indices, updates, name or scatter.__name__).op

    doc = f"Returns an operation that changes parts of the variable at positions: {how}."
    return _named(scatter, f"ResourceScatterNd{how.title()}", doc)


def _named(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


ScatterUpdate, ScatterAdd, ScatterSub = _by_ref("update"), _by_ref("add"), _by_ref("sub")
ScatterMul, ScatterDiv = _by_ref("mul"), _by_ref("div")
ScatterMin, ScatterMax = _by_ref("min"), _by_ref("max")
ResourceScatterUpdate, ResourceScatterAdd = _by_handle("update"), _by_handle("add")
ResourceScatterSub, ResourceScatterMul = _by_handle("sub"), _by_handle("mul")
ResourceScatterDiv, ResourceScatterMin = _by_handle("div"), _by_handle("min")
ResourceScatterMax = _by_handle("max")
ScatterNdUpdate, ScatterNdAdd = _nd_by_ref("update"), _nd_by_ref("add")
ScatterNdSub, ScatterNdMin, ScatterNdMax = _nd_by_ref("sub"), _nd_by_ref("min"), _nd_by_ref("max")
ResourceScatterNdUpdate, ResourceScatterNdAdd = _nd_by_handle("update"), _nd_by_handle("add")
ResourceScatterNdSub, ResourceScatterNdMin = _nd_by_handle("sub"), _nd_by_handle("min")
ResourceScatterNdMax = _nd_by_handle("max")


def StridedSliceAssign(
    *,
    ref: Any,
    begin: Any,
    end: Any,
    strides: Any,
    value: Any,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    name: str | None = None,
) -> Tensor:
    """Returns the variable's new value; running it sets a part of it.

    Args:
        ref: A variable.
        begin: Where the part begins, per index; known while the graph is built, as are the next.
        end: Where it ends.
        strides: The steps.
        value: What broadcasts to the part's shape.
        begin_mask: Bit i: index i begins at the beginning.
        end_mask: Bit i: index i ends at the end.
        ellipsis_mask: Bit i: index i stands for all axes in between; one at most.
        new_axis_mask: Has to be 0: a new axis cannot be assigned to.
        shrink_axis_mask: Bit i: index i is `begin[i]` alone.
        name: Name of the operation.
    """
    refuse("raw_ops.StridedSliceAssign", new_axis_mask=new_axis_mask)
    handle = handle_of(ref)
    rows = [_known(v, what) for v, what in ((begin, "begin"), (end, "end"), (strides, "strides"))]
    key: list[Part] = []
    for i, (first, last, step) in enumerate(zip(*rows, strict=True)):
        bit = 1 << i
        if ellipsis_mask & bit:
            key.append(("rest",))
        elif shrink_axis_mask & bit:
            key.append(("int", first))
        else:
            bounds = None if begin_mask & bit else first, None if end_mask & bit else last
            key.append(("slice", *bounds, step))
    op = state.AssignStridedSlice(tuple(key))
    return apply(op, handle, _like(value, handle), name=name or "StridedSliceAssign")


def _known(value: Any, what: str) -> list[int]:
    found = get_static_value(value)
    if found is None:
        raise expected(f"{what} known while the graph is built", repr(value))
    return [int(v) for v in found]


def ResourceStridedSliceAssign(
    *,
    ref: Any,
    begin: Any,
    end: Any,
    strides: Any,
    value: Any,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    name: str | None = None,
) -> Operation:
    """Returns an operation that sets a part of the variable; see `StridedSliceAssign`."""
    return StridedSliceAssign(
        ref=ref, begin=begin, end=end, strides=strides, value=value, begin_mask=begin_mask,
        end_mask=end_mask, ellipsis_mask=ellipsis_mask, new_axis_mask=new_axis_mask,
        shrink_axis_mask=shrink_axis_mask, name=name or "ResourceStridedSliceAssign",
    ).op  # fmt: skip
