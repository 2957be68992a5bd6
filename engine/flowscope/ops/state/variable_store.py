"""Variables by their full names: each made once and then shared, whole or in parts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.values.dtypes import DType, as_dtype, float32
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import Dims, as_dims, compatible, is_known, text
from flowscope.ops.array.slicing import slice as slice_of
from flowscope.ops.state.initializers import GlorotUniform, Zeros
from flowscope.ops.state.partitioned_variable import (
    PartitionedVariable,
    PartitionInfo,
    partitions_of,
    slice_infos,
)
from flowscope.ops.state.variables import (
    GraphKeys,
    SaveSliceInfo,
    Variable,
    VariableAggregation,
    VariableSynchronization,
)


def get(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    reuse: Any = None,
    trainable: bool | None = None,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    constraint: Any = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """Returns the variable of the full name, made or shared: what a custom getter gets.

    Args: as of `fs.get_variable`; `reuse` is the scope's.

    Raises:
        InvalidArgumentError: if it exists and may not be shared, does not exist and must, or exists
            otherwise than it is asked for.
    """
    more = {
        "trainable": trainable,
        "collections": collections,
        "caching_device": caching_device,
        "use_resource": use_resource,
        "validate_shape": validate_shape,
        "constraint": constraint,
        "synchronization": synchronization,
        "aggregation": aggregation,
    }
    wished = None if dtype is None else as_dtype(dtype)
    dims = as_dims(shape)
    if partitioner is not None and dims != ():
        whole = _partitioned(name, dims, wished, initializer, regularizer, reuse, partitioner, more)
        if whole is not None:
            return whole
    in_parts = get_default_graph().extras.get("partitioned_variables", {}).get(name)
    if in_parts is not None:
        return _shared_parts(in_parts, reuse, dims, wished)
    return _single(name, dims, wished, initializer, regularizer, reuse, more)


def _single(
    name: str,
    dims: Dims,
    wished: DType | None,
    initializer: Any,
    regularizer: Any,
    reuse: Any,
    more: dict[str, Any],
    part: SaveSliceInfo | None = None,
) -> Variable:
    graph = get_default_graph()
    store: dict[str, Variable] = graph.extras.setdefault("variables", {})
    found = store.get(name)
    if found is not None:
        return _shared(found, reuse, dims, wished)
    _check_may_be_made(name, reuse)
    with graph.name_scope(None), graph.control_dependencies(None):
        initial, kind = _initial(initializer, dims, wished, part)
        variable = Variable(initial, name=name, dtype=kind, **more)
    variable._set_save_slice_info(part)
    store[name] = variable
    _regularize(graph, variable, regularizer)
    return variable


def _partitioned(
    name: str,
    dims: Dims,
    wished: DType | None,
    initializer: Any,
    regularizer: Any,
    reuse: Any,
    partitioner: Any,
    more: dict[str, Any],
) -> PartitionedVariable | None:
    """Returns the variable in parts; None for a scalar, which has none."""
    graph = get_default_graph()
    store: dict[str, PartitionedVariable] = graph.extras.setdefault("partitioned_variables", {})
    found = store.get(name)
    if dims is None:
        dims = found._dims if found is not None else _dims_of(initializer)
    if dims == ():
        return None
    if not callable(partitioner):
        raise expected("a function as partitioner", repr(partitioner))
    dtype = wished or _default_dtype(graph)
    partitions = partitions_of(partitioner, dims, dtype)
    if found is not None:
        return _shared_parts(found, reuse, dims, wished, partitions)
    if name in graph.extras.get("variables", {}):
        raise InvalidArgumentError(f"variable {name} exists in one part, asked for several")
    _check_may_be_made(name, reuse)
    parts = [
        _single(
            f"{name}/part_{i}",
            tuple(info.var_shape),
            wished,
            initializer,
            regularizer,
            reuse,
            more,
            info,
        )
        for i, info in enumerate(slice_infos(name, _numbers(dims), partitions))
    ]
    store[name] = PartitionedVariable(name, dims, parts[0].dtype, parts, partitions)
    return store[name]


def _check_may_be_made(name: str, reuse: Any) -> None:
    if reuse is True:
        raise InvalidArgumentError(
            f"variable {name} does not exist: reuse=True shares what get_variable made before; "
            "reuse=fs.AUTO_REUSE makes it where it is missing"
        )


def _shared(found: Variable, reuse: Any, dims: Dims, dtype: DType | None) -> Variable:
    name = found.op.name
    _check_may_be_shared(name, found, reuse)
    _check_like(name, found.shape._dims, found.dtype, dims, dtype)
    return found


def _shared_parts(
    found: PartitionedVariable,
    reuse: Any,
    dims: Dims,
    dtype: DType | None,
    partitions: Sequence[int] | None = None,
) -> PartitionedVariable:
    _check_may_be_shared(found.name, next(iter(found)), reuse)
    _check_like(found.name, found._dims, found.dtype, dims, dtype)
    if partitions is not None and list(partitions) != found._get_partitions():
        raise InvalidArgumentError(
            f"variable {found.name} has {found._get_partitions()} parts along its axes, "
            f"asked for {list(partitions)}"
        )
    return found


def _check_may_be_shared(name: str, found: Variable, reuse: Any) -> None:
    if not reuse:
        made = f", made in {found.op.origin.place}" if found.op.origin.place else ""
        raise InvalidArgumentError(
            f"variable {name} already exists{made}: reuse=True or reuse=fs.AUTO_REUSE in "
            "variable_scope shares it"
        )


def _check_like(name: str, has: Dims, has_dtype: DType, dims: Dims, dtype: DType | None) -> None:
    if dims is not None and not compatible(dims, has):
        raise InvalidArgumentError(f"variable {name} has shape {text(has)}, asked for {text(dims)}")
    if dtype is not None and dtype is not has_dtype:
        raise InvalidArgumentError(f"variable {name} has dtype {has_dtype}, asked for {dtype}")


# -- initial values ---------------------------------------------------------------------


def _initial(
    initializer: Any, dims: Dims, wished: DType | None, part: SaveSliceInfo | None
) -> tuple[Any, DType | None]:
    """Returns (initial value or function that makes it, dtype)."""
    dtype = wished or _default_dtype(get_default_graph())
    if initializer is None:
        initializer = _default_initializer(dtype)
    if isinstance(initializer, type):
        initializer = initializer()
    if not callable(initializer):
        return _value(initializer, dims, wished, part), wished
    if not is_known(dims):
        if _takes_nothing(initializer):
            return initializer, wished
        raise InvalidArgumentError(
            "a new variable needs a fully known shape, or an initializer without arguments, got "
            f"{text(dims)}"
        )
    make = _of_part(initializer, part)
    return (lambda: make(list(dims or ()), dtype=dtype)), dtype


def _value(value: Any, dims: Dims, wished: DType | None, part: SaveSliceInfo | None) -> Any:
    if part is not None:
        # Made in the variable's name scope.
        return lambda: slice_of(convert_to_tensor(value, wished), part.var_offset, part.var_shape)
    if dims is not None:
        raise InvalidArgumentError(
            "the shape of a new variable follows from an initializer that is a value: pass no shape"
        )
    return value


def _of_part(initializer: Callable[..., Any], part: SaveSliceInfo | None) -> Callable[..., Any]:
    """Returns the initializer, told which part it makes if it wants to know."""
    if not _knows_parts(initializer):
        return initializer
    info = part and PartitionInfo(list(part.full_shape), list(part.var_offset))
    return lambda shape, dtype: initializer(shape, dtype=dtype, partition_info=info)


def _default_initializer(dtype: DType) -> Callable[..., Any]:
    if dtype.is_floating:
        return GlorotUniform()
    if dtype.is_complex:
        raise InvalidArgumentError(f"a new variable of {dtype} needs an initializer")
    return Zeros()


def _takes_nothing(initializer: Callable[..., Any]) -> bool:
    """Whether the function can be called without arguments."""
    try:
        inspect.signature(initializer).bind()
    except (TypeError, ValueError):
        return False
    return True


def _knows_parts(initializer: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(initializer).parameters
    except (TypeError, ValueError):
        return False
    return "partition_info" in parameters


def _dims_of(initializer: Any) -> Dims:
    if initializer is None or callable(initializer):
        raise InvalidArgumentError("a new variable in parts needs a shape, got none")
    shape = getattr(initializer, "shape", None)
    return as_dims(np.shape(initializer) if shape is None else shape)


def _numbers(dims: Dims) -> list[int]:
    return [int(d) for d in dims or () if d is not None]


def _default_dtype(graph: Graph) -> DType:
    scope = graph.thread_extras.get("variable_scope")
    return float32 if scope is None else scope.dtype


def _regularize(graph: Graph, variable: Variable, regularizer: Any) -> None:
    if regularizer is None:
        return
    with graph.name_scope(f"{variable.op.name}/Regularizer/"):
        loss = regularizer(variable)
    if loss is not None:
        graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
