"""Variable scopes: variables that are made once and shared by name."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from flowscope.errors import DTypeError, InvalidArgumentError, NestingError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Tensor
from flowscope.graph.scopes import graph_of
from flowscope.graph.values.dtypes import as_dtype, float32
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.state.variable_store import get
from flowscope.ops.state.variables import (
    GraphKeys,
    Variable,
    VariableAggregation,
    VariableSynchronization,
)

__all__ = [
    "AUTO_REUSE",
    "VariableScope",
    "create_partitioned_variables",
    "get_local_variable",
    "get_variable",
    "get_variable_scope",
    "no_regularizer",
    "variable_op_scope",
    "variable_scope",
]


class _AutoReuse:
    """Makes a variable where there is none, and shares it where there is one."""

    def __repr__(self) -> str:
        return "fs.AUTO_REUSE"


AUTO_REUSE = _AutoReuse()


class VariableScope:
    """Defaults for the variables that `get_variable` makes in a scope.

    Attributes:
        name: Prefix of variables' names, "" at the top.
        original_name_scope: The name scope in which it was opened, with a "/" behind it.
        reuse: Whether variables are shared: True (they must exist), `AUTO_REUSE` or False.
    """

    def __init__(
        self,
        reuse: Any = False,
        name: str = "",
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        name_scope: str = "",
        dtype: Any = float32,
        use_resource: Any = None,
        constraint: Any = None,
    ) -> None:
        self.reuse = reuse
        self.name = name
        self.initializer = initializer
        self.regularizer = regularizer
        self.caching_device = caching_device
        self.partitioner = partitioner
        self.dtype = as_dtype(dtype)
        self.use_resource = use_resource
        self.original_name_scope = name_scope
        self.custom_getter = custom_getter
        self.constraint = constraint

    def reuse_variables(self) -> None:
        """Shares variables from now on."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Sets the default initializer."""
        self.initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        """Sets the default regularizer."""
        self.regularizer = regularizer

    def set_partitioner(self, partitioner: Any) -> None:
        """Sets the default partitioner, see `fs.variable_scope`."""
        self.partitioner = partitioner

    def set_dtype(self, dtype: Any) -> None:
        """Sets the default element type."""
        self.dtype = as_dtype(dtype)

    def set_use_resource(self, use_resource: bool) -> None:
        """Sets what `use_resource` says; each variable has a handle, see `fs.Variable`."""
        self.use_resource = use_resource

    def set_custom_getter(self, custom_getter: Any) -> None:
        """Sets the function that `get_variable` calls, see `fs.variable_scope`."""
        self.custom_getter = custom_getter

    def set_caching_device(self, caching_device: Any) -> None:
        """Sets the default caching device, see `fs.Variable`."""
        self.caching_device = caching_device

    def get_collection(self, name: Any) -> list[Any]:
        """Returns the entries of a collection that lie in the scope."""
        pattern = f"{re.escape(self.name)}/" if self.name else ""
        return get_default_graph().get_collection(name, pattern)

    def global_variables(self) -> list[Variable]:
        """Returns the global variables in the scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Variable]:
        """Returns the local variables in the scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def trainable_variables(self) -> list[Variable]:
        """Returns the trainable variables in the scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def get_variable(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Returns a variable of the scope, see `fs.get_variable`."""
        with variable_scope(self, auxiliary_name_scope=False):
            return get_variable(name, *args, **kwargs)


def _scope(graph: Graph) -> VariableScope:
    return graph.thread_extras.setdefault("variable_scope", VariableScope())  # type: ignore[no-any-return]


def get_variable_scope() -> VariableScope:
    """Returns the current variable scope."""
    return _scope(get_default_graph())


@contextmanager
def variable_scope(
    name_or_scope: str | VariableScope | None,
    default_name: str | None = None,
    values: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    reuse: Any = None,
    dtype: Any = None,
    use_resource: Any = None,
    constraint: Any = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:
    """Opens a variable scope, and a name scope of the same name.

    Args:
        name_or_scope: A name inside the current scope, a scope to open again, or None for
            `default_name`, made unique.
        default_name: See above.
        values: Tensors and what else the operations of the block are to take: it is built in the
            graph of these.
        initializer: Default initializer.
        regularizer: Default regularizer: a function of the variable that returns a loss.
        caching_device: Default device on which values are copied once, see `fs.Variable`.
        partitioner: Default partitioner: a function of shape and dtype that says how many parts a
            variable has along each axis, such as `fs.fixed_size_partitioner(2)`.
        custom_getter: Function called in place of `get_variable`, with the function that makes the
            variable (`getter`) and its arguments, by keyword; what it returns is returned. Those of
            outer scopes stand behind it.
        reuse: True: variables must exist; `AUTO_REUSE`: made where missing; None: inherited.
        dtype: Default element type.
        use_resource: True or False, see `fs.Variable`.
        constraint: Default constraint.
        auxiliary_name_scope: Whether the name scope is opened too.

    Raises:
        InvalidArgumentError: if there is no name, or `reuse` is set without one.

    Example:
        >>> with fs.variable_scope("encoder"):
        ...     w = fs.get_variable("w", [2])
        >>> w.name
        'encoder/w:0'
    """
    _check_scope(name_or_scope, default_name, reuse, auxiliary_name_scope)
    with graph_of(values) as graph:
        before = _scope(graph)
        if isinstance(name_or_scope, VariableScope):
            parent, full = name_or_scope, name_or_scope.name
            short = full.rpartition("/")[2]
        else:
            parent = before
            if name_or_scope is None:
                short = _fresh_name(graph, before, str(default_name))
            else:
                short = name_or_scope
            full = f"{before.name}/{short}" if before.name else short
        scope = VariableScope(
            reuse or parent.reuse,
            full,
            parent.initializer if initializer is None else initializer,
            regularizer or parent.regularizer,
            caching_device or parent.caching_device,
            partitioner or parent.partitioner,
            _chained(custom_getter, parent.custom_getter),
            dtype=dtype or parent.dtype,
            use_resource=parent.use_resource if use_resource is None else use_resource,
            constraint=constraint or parent.constraint,
        )
        is_again = parent is name_or_scope
        with _current(graph, scope, is_again):
            outer = graph.get_name_scope()
            if auxiliary_name_scope and short:
                names: AbstractContextManager[str] = graph.name_scope(short)
            else:
                names = nullcontext(outer and f"{outer}/")
            with names as name_scope:
                scope.original_name_scope = parent.original_name_scope if is_again else name_scope
                yield scope


@contextmanager
def _current(graph: Graph, scope: VariableScope, is_again: bool) -> Iterator[None]:
    """Makes a scope the current one; `is_again` says that it was open before."""
    before, opened = _scope(graph), _opened(graph)
    opened[scope.name] = opened.get(scope.name, 0) + 1
    counts = dict(opened)
    graph.thread_extras["variable_scope"] = scope

    def leave() -> None:
        graph.thread_extras["variable_scope"] = before
        if is_again:
            opened.clear()
            opened.update(counts)
        else:
            opened.update({n: 0 for n in opened if n.startswith(f"{scope.name}/")})

    try:
        yield
    except BaseException:
        leave()
        raise
    if _scope(graph) is not scope:
        raise NestingError(f"variable scope {scope.name!r} ends inside another one")
    leave()


def _check_scope(name_or_scope: Any, default_name: Any, reuse: Any, auxiliary: Any) -> None:
    """Raises InvalidArgumentError unless these are arguments of a variable scope."""
    if name_or_scope is None and default_name is None:
        raise DTypeError("a variable scope needs a name or a default_name")
    if name_or_scope is None and reuse:
        raise InvalidArgumentError("reuse needs the name of a scope, got only default_name")
    if not isinstance(name_or_scope, str | VariableScope | None):
        raise expected_dtype("a string or a fs.VariableScope", repr(name_or_scope))
    if not isinstance(default_name, str | None):
        raise expected_dtype("default_name as a string", repr(default_name))
    if reuse not in (True, False, None, AUTO_REUSE):
        raise expected("reuse to be True, False, None or fs.AUTO_REUSE", repr(reuse))
    if not isinstance(auxiliary, bool):
        raise expected_dtype("auxiliary_name_scope to be True or False", repr(auxiliary))


def _opened(graph: Graph) -> dict[str, int]:
    """Returns how often each scope was opened since the one around it was: for default names."""
    return graph.thread_extras.setdefault("variable_scope_names", {})  # type: ignore[no-any-return]


def _chained(inner: Any, outer: Any) -> Any:
    """Returns the custom getter that calls `inner`, which calls `outer`."""
    if inner is None or outer is None:
        return inner or outer

    def chained(getter: Any, *args: Any, **kwargs: Any) -> Any:
        return inner(functools.partial(outer, getter), *args, **kwargs)

    return chained


def _fresh_name(graph: Graph, scope: VariableScope, default_name: str) -> str:
    opened = _opened(graph)
    prefix = f"{scope.name}/" if scope.name else ""
    name, count = default_name, 0
    while opened.get(prefix + name):
        count += 1
        name = f"{default_name}_{count}"
    return name


@contextmanager
def variable_op_scope(
    values: Any, name_or_scope: Any, default_name: str | None = None, **kwargs: Any
) -> Iterator[Any]:
    """Opens a variable scope (older argument order)."""
    with variable_scope(name_or_scope, default_name, values, **kwargs) as scope:
        yield scope


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Callable[[Tensor], Tensor | None] | None = None,
    trainable: bool | None = None,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Callable[[Tensor], Tensor] | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """Returns the variable `name` of the current variable scope, made or shared as `reuse` says.

    With a partitioner it is a `fs.PartitionedVariable`, whose parts are variables.

    Args:
        name: Name inside the scope.
        shape: Shape; not needed where the initializer is a tensor or an array.
        dtype: Element type; the scope's by default.
        initializer: A function of (shape, dtype), a tensor or an array; by default the scope's, or
            uniform Glorot for floats and zeros for all else.
        regularizer: Function of the variable that returns a loss for the regularization losses.
        trainable: Whether it is trained (by default yes).
        collections: Collections to list it in; the global variables by default.
        caching_device: Device on which values are copied once, see `fs.Variable`.
        partitioner: See `fs.variable_scope`; scalars are never cut.
        validate_shape: Whether the shape is fixed.
        use_resource: True or False, see `fs.Variable`.
        custom_getter: See `fs.variable_scope`.
        constraint: Function of the updated value that optimizers apply.
        synchronization: For replicas.
        aggregation: For replicas.

    Raises:
        InvalidArgumentError: if it exists and may not be shared, does not exist and must, or exists
            with another shape or dtype.

    Example:
        >>> with fs.variable_scope("layer", reuse=fs.AUTO_REUSE):
        ...     w = fs.get_variable("w", [2], initializer=fs.ones_initializer())
        ...     again = fs.get_variable("w", [2])
        >>> w.name, again is w
        ('layer/w:0', True)
    """
    if not isinstance(name, str | bytes):
        raise expected_dtype("a variable's name as a string", repr(name))
    if custom_getter is not None and not callable(custom_getter):
        raise expected("custom_getter to be a function (getter, name, ...)", repr(custom_getter))
    scope = get_variable_scope()
    short = name if isinstance(name, str) else name.decode()
    arguments: dict[str, Any] = {
        "name": f"{scope.name}/{short}" if scope.name else short,
        "shape": shape,
        "dtype": None if dtype is None else as_dtype(dtype),
        "initializer": scope.initializer if initializer is None else initializer,
        "regularizer": regularizer or scope.regularizer,
        "reuse": scope.reuse,
        "trainable": trainable,
        "collections": collections,
        "caching_device": scope.caching_device if caching_device is None else caching_device,
        "partitioner": partitioner or scope.partitioner,
        "validate_shape": validate_shape,
        "use_resource": scope.use_resource if use_resource is None else use_resource,
        "constraint": constraint or scope.constraint,
        "synchronization": synchronization,
        "aggregation": aggregation,
    }
    getter = _chained(custom_getter, scope.custom_getter)
    with get_default_graph().name_scope(None):
        return get(**arguments) if getter is None else getter(get, **arguments)


def get_local_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Callable[[Tensor], Tensor | None] | None = None,
    trainable: bool | None = False,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Callable[[Tensor], Tensor] | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """Returns a local variable, which is neither trained nor saved.

    Arguments are those of `get_variable`; True as `trainable` is refused.
    """
    if trainable:
        raise InvalidArgumentError("a local variable is not trained: use fs.get_variable")
    return get_variable(
        name,
        shape,
        dtype,
        initializer,
        regularizer,
        False,
        [*(collections or ()), GraphKeys.LOCAL_VARIABLES],
        caching_device,
        partitioner,
        validate_shape,
        use_resource,
        custom_getter,
        constraint,
        synchronization,
        aggregation,
    )


def create_partitioned_variables(
    shape: Any,
    slicing: Sequence[int],
    initializer: Any,
    dtype: Any = float32,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    name: str | None = None,
    reuse: bool | None = None,
) -> list[Variable]:
    """Returns the parts of a variable, made (or shared) in a variable scope of their own.

    Args:
        shape: Shape of the whole.
        slicing: How many parts along each axis; one axis may have several.
        initializer: As for `get_variable`.
        dtype: Element type; that of `initializer` where this is a tensor or an array.
        trainable: Whether the parts are trained.
        collections: Collections to list them in.
        name: Name of the scope; "PartitionedVariable" by default.
        reuse: See `fs.variable_scope`.

    Raises:
        InvalidArgumentError: if `slicing` does not fit the shape.
    """
    if not callable(initializer) and initializer is not None:
        dtype = convert_to_tensor(initializer).dtype
    with variable_scope(name, "PartitionedVariable", reuse=reuse) as scope:
        whole = get(
            scope.name,
            shape,
            as_dtype(dtype),
            initializer,
            reuse=scope.reuse,
            trainable=trainable,
            collections=collections,
            partitioner=lambda **_: list(slicing),
        )
    return list(whole)


def no_regularizer(_: Any) -> None:
    """The regularizer that adds no loss."""
