"""Variables: what users make, read, assign and train."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.default import get_default_graph, get_default_session
from flowscope.graph.dtypes import DType, as_dtype
from flowscope.graph.graph import Graph
from flowscope.graph.indexed_slices import IndexedSlices, IndexedSlicesValue
from flowscope.graph.op import Spec
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.shapes import Dims, TensorShape, as_dims, compatible, is_known, text
from flowscope.ops import scatters, state
from flowscope.ops.build import apply
from flowscope.ops.flow import group
from flowscope.ops.gathering import gather, gather_nd
from flowscope.ops.variable_facts import (
    GraphKeys,
    SaveSliceInfo as SaveSliceInfo,
    VariableAggregation,
    VariableSynchronization,
)

__all__ = [
    "GraphKeys",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "all_variables",
    "assert_variables_initialized",
    "assign",
    "assign_add",
    "assign_sub",
    "count_up_to",
    "global_variables",
    "global_variables_initializer",
    "initialize_all_variables",
    "initialize_local_variables",
    "initialize_variables",
    "is_variable_initialized",
    "local_variables",
    "local_variables_initializer",
    "model_variables",
    "report_uninitialized_variables",
    "trainable_variables",
    "variables_initializer",
]


#: Inside `Variable` the other name is an attribute.
_SliceInfo = SaveSliceInfo


class Variable(Convertible):
    """A tensor that keeps its value between steps; every op takes it as it takes a tensor.

    A read sees the value at its place in program order: what the last write made before it.

    Args:
        initial_value: A tensor, a value, or a function without arguments that returns one.
        trainable: Whether it is listed in the trainable variables (by default yes).
        collections: Collections to list it in; the global variables by default.
        validate_shape: Whether its shape is fixed to the initial value's, which must be known.
        name: Name, made unique.
        dtype: Element type; the initial value's by default.
        expected_shape: Shape, if it is not the initial value's.
        constraint: Function of the updated value that optimizers apply after an update.
        shape: As `expected_shape`.

    Attributes:
        handle: The handle tensor, of dtype resource.
        initializer: The operation that sets the initial value.
        initial_value: The tensor of it.
    """

    SaveSliceInfo = SaveSliceInfo
    #: Which part of a larger tensor it is, for savers; None: a whole one.
    _save_slice_info: _SliceInfo | None = None

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Sequence[str] | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: str | None = None,
        constraint: Callable[[Tensor], Tensor] | None = None,
        use_resource: bool | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: Any = None,
    ) -> None:
        del caching_device, variable_def, import_scope, use_resource
        if initial_value is None:
            raise InvalidArgumentError("a variable needs an initial_value")
        self.trainable = trainable is not False
        self.constraint = constraint
        self.synchronization = synchronization
        self.aggregation = aggregation
        graph = get_default_graph()
        full = graph.unique_name(name or "Variable")
        with graph.name_scope(full + "/"), graph.enter_block(graph.root):
            if callable(initial_value):
                initial_value = initial_value()
            value = convert_to_tensor(
                initial_value, dtype and as_dtype(dtype), name="initial_value"
            )
            dims = _variable_dims(
                value, as_dims(shape if shape is not None else expected_shape), validate_shape
            )
            definition = state.VarHandleOp(
                value.dtype, dims, graph.extras.get("container", ""), full
            )
            self.handle = graph.add(definition, (), full + "/").outputs[0]
            self.initial_value = value
            self._reads: dict[Any, Tensor] = {}
            self.initializer = apply(state.AssignVariableOp(), self.handle, value, name="Assign").op
            self._snapshot = self.value()
        if collections is None:
            collections = [GraphKeys.GLOBAL_VARIABLES]
        if self.trainable:
            collections = [*collections, GraphKeys.TRAINABLE_VARIABLES]
        graph.add_to_collections(list(collections), self)
        graph.cells.note_owner(self.op, self)

    # -- what it is -----------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The handle's name, e.g. "layer1/w:0"."""
        return self.handle.name

    @property
    def op(self) -> Operation:
        """The operation that makes the handle."""
        return self.handle.op

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self.handle.graph

    @property
    def device(self) -> str:
        """The device that was asked for."""
        return self.handle.device

    @property
    def dtype(self) -> DType:
        """Element type."""
        return state.variable_spec(self.handle.spec).dtype

    @property
    def shape(self) -> TensorShape:
        """Static shape."""
        return TensorShape(state.variable_spec(self.handle.spec).shape)

    def get_shape(self) -> TensorShape:
        """Returns the static shape."""
        return self.shape

    def __repr__(self) -> str:
        dims = state.variable_spec(self.handle.spec).shape
        place = self.op.origin.place
        made = f", {place}" if place else ""
        kind = "" if self.trainable else ", not trainable"
        return f"<fs.Variable '{self.name}' {self.dtype}{text(dims)}{kind}{made}>"

    def _get_save_slice_info(self) -> _SliceInfo | None:
        return self._save_slice_info

    def _set_save_slice_info(self, info: _SliceInfo | None) -> None:
        self._save_slice_info = info

    # -- reading --------------------------------------------------------------------------------

    def value(self) -> Tensor:
        """Returns the value at this place in program order."""
        graph = self.graph
        graph.cells.hold(self.op)
        key = graph.building_context()
        found = self._reads.get(key)
        if found is None or not graph.cells.is_current(found.op, self.handle):
            if graph.cells.has_rerun:  # bodies that a re-run has dropped are let go
                self._reads = {k: t for k, t in self._reads.items() if t.op.stale is None}
            found = self._reads[key] = self.read_value()
        return found

    def read_value(self) -> Tensor:
        """Returns the value at this place in program order, by a read of its own."""
        with self.graph.name_scope(self.op.name + "/"):
            return self.graph.add(state.ReadVariableOp(), (self.handle,), "read").outputs[0]

    def initialized_value(self) -> Tensor:
        """Returns the value, or the initial value where it was not initialised yet."""
        return apply(state.InitializedValue(), self.handle, self.initial_value)

    def is_initialized(self, name: str | None = None) -> Tensor:
        """Returns a bool scalar: whether it has a value."""
        return apply(state.VarIsInitializedOp(), self.handle, name=name)

    def eval(self, session: Any = None) -> Any:
        """Returns the value as an array."""
        return self._snapshot.eval(session=session)

    def __eq__(self, other: object) -> bool:
        # The cell that made it was run again: then another object stands for the same variable.
        return self is other or (isinstance(other, Variable) and self.handle is other.handle)

    def __hash__(self) -> int:
        return hash(self.handle)

    def ref(self) -> Variable:
        """Returns something hashable that stands for it: itself."""
        return self

    def _as_tensor(self) -> Tensor:
        return self.value()

    def _as_graph_element(self) -> Tensor:
        return self._snapshot

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Returns the slices along the first axis that `indices` name."""
        return gather(self.value(), indices, name=name)

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """Returns the elements or slices at positions, see `fs.gather_nd`."""
        return gather_nd(self.value(), indices, name=name)

    # -- writing --------------------------------------------------------------------------------

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Returns the new value; running it sets the variable.

        Args:
            value: The new value, of the variable's dtype and shape.
            use_locking: Writes are always atomic.
            name: Name of the operation.
            read_value: False returns the operation instead.
        """
        return self._write(state.AssignVariableOp(), value, name or "Assign", read_value)

    def assign_add(self, delta: Any, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Any:  # fmt: skip
        """Returns the new value; running it adds `delta` to the variable, atomically."""
        return self._write(state.AssignAddVariableOp(), delta, name or "AssignAdd", read_value)

    def assign_sub(self, delta: Any, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Any:  # fmt: skip
        """Returns the new value; running it subtracts `delta` from the variable, atomically."""
        return self._write(state.AssignSubVariableOp(), delta, name or "AssignSub", read_value)

    def _write(self, op: Any, value: Any, name: str, read_value: bool) -> Any:
        out = apply(op, self.handle, convert_to_tensor(value, self.dtype), name=name)
        return out if read_value else out.op

    def count_up_to(self, limit: int) -> Tensor:
        """Returns the value, and adds one; OutOfRangeError once it has reached `limit`."""
        return apply(state.CountUpTo(limit), self.handle)

    # -- parts ----------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        """Returns a part of the value; `v[key].assign(x)` sets it."""
        return scatters.part_of_variable(super().__getitem__(key))

    def scatter_update(self, sparse_delta: IndexedSlices, use_locking: bool = False,
                       name: str | None = None) -> Tensor:  # fmt: skip
        """Returns the new value; running it sets the slices, see `fs.scatter_update`."""
        return self._scattered(scatters.scatter_update, sparse_delta, name)

    def scatter_add(self, sparse_delta: IndexedSlices, use_locking: bool = False,
                    name: str | None = None) -> Tensor:  # fmt: skip
        """Returns the new value; running it adds the slices, see `fs.scatter_add`."""
        return self._scattered(scatters.scatter_add, sparse_delta, name)

    def scatter_sub(self, sparse_delta: IndexedSlices, use_locking: bool = False,
                    name: str | None = None) -> Tensor:  # fmt: skip
        """Returns the new value; running it subtracts the slices, see `fs.scatter_sub`."""
        return self._scattered(scatters.scatter_sub, sparse_delta, name)

    def scatter_mul(self, sparse_delta: IndexedSlices, use_locking: bool = False,
                    name: str | None = None) -> Tensor:  # fmt: skip
        """Returns the new value; running it multiplies by the slices, see `fs.scatter_mul`."""
        return self._scattered(scatters.scatter_mul, sparse_delta, name)

    def scatter_div(self, sparse_delta: IndexedSlices, use_locking: bool = False,
                    name: str | None = None) -> Tensor:  # fmt: skip
        """Returns the new value; running it divides by the slices, see `fs.scatter_div`."""
        return self._scattered(scatters.scatter_div, sparse_delta, name)

    def scatter_min(self, sparse_delta: IndexedSlices, use_locking: bool = False,
                    name: str | None = None) -> Tensor:  # fmt: skip
        """Returns the new value; running it takes the lower numbers, see `fs.scatter_min`."""
        return self._scattered(scatters.scatter_min, sparse_delta, name)

    def scatter_max(self, sparse_delta: IndexedSlices, use_locking: bool = False,
                    name: str | None = None) -> Tensor:  # fmt: skip
        """Returns the new value; running it takes the higher numbers, see `fs.scatter_max`."""
        return self._scattered(scatters.scatter_max, sparse_delta, name)

    def batch_scatter_update(self, sparse_delta: IndexedSlices | IndexedSlicesValue,
                             use_locking: bool = False,
                             name: str | None = None) -> Tensor:  # fmt: skip
        """Returns the new value; running it sets slices, see `fs.batch_scatter_update`.

        Indices of rank 2 or more come in an `fs.IndexedSlicesValue`.
        """
        return self._scattered(scatters.batch_scatter_update, sparse_delta, name)

    def _scattered(self, scatter: Any, delta: Any, name: str | None) -> Tensor:
        if not isinstance(delta, IndexedSlices | IndexedSlicesValue):
            raise DTypeError(
                f"expected fs.IndexedSlices(values, indices), got {delta!r}: "
                "fs.scatter_add and its kin take indices and updates apart"
            )
        return scatter(self, delta.indices, delta.values, name=name)  # type: ignore[no-any-return]

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """See `fs.scatter_nd_add`."""
        return scatters.scatter_nd_add(self, indices, updates, name=name)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """See `fs.scatter_nd_sub`."""
        return scatters.scatter_nd_sub(self, indices, updates, name=name)

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """See `fs.scatter_nd_update`."""
        return scatters.scatter_nd_update(self, indices, updates, name=name)

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """Returns the new value; running it lowers parts to at most the updates."""
        return scatters.scatter_nd_min(self, indices, updates, name=name)

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """Returns the new value; running it raises parts to at least the updates."""
        return scatters.scatter_nd_max(self, indices, updates, name=name)

    # -- the rest -------------------------------------------------------------------------------

    def load(self, value: Any, session: Any = None) -> None:
        """Sets the value in `session` (by default the default session) at once."""
        session = session or get_default_session()
        if session is None:
            raise InvalidArgumentError("no default session: pass session=")
        session.run(self.initializer, {self.initial_value: value})

    def set_shape(self, shape: Any) -> None:
        """Adds what is known of the value's shape; raises ValueError if it contradicts."""
        self._snapshot.set_shape(shape)
        known = Spec(self.dtype, self._snapshot.spec.shape)
        self.handle.spec = Spec(self.handle.spec.dtype, (), variable=known)

    def __iter__(self) -> Any:
        return iter(self.value())

    def __bool__(self) -> bool:
        return bool(self.value())

    def __len__(self) -> int:
        return len(self.value())


def _variable_dims(value: Tensor, wished: Dims, validate: bool) -> Dims:
    dims = value.spec.shape
    if wished is not None and validate and not compatible(dims, wished):
        raise InvalidArgumentError(
            f"expected an initial value of shape {text(wished)}, got {text(dims)}"
        )
    if not validate:
        return wished
    known = wished if is_known(wished) else dims
    if not is_known(known):
        raise InvalidArgumentError(
            f"the initial value's shape must be known, got {text(dims)}; "
            "validate_shape=False leaves it open"
        )
    return known


def assign(ref: Variable, value: Any, validate_shape: bool | None = None, use_locking: bool = True,
           name: str | None = None) -> Tensor:  # fmt: skip
    """Returns the new value of `ref`; running it sets the variable to `value`."""
    return ref.assign(value, name=name)  # type: ignore[no-any-return]


def assign_add(
    ref: Variable, value: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Returns the new value of `ref`; running it adds `value` to it, atomically."""
    return ref.assign_add(value, name=name)  # type: ignore[no-any-return]


def assign_sub(
    ref: Variable, value: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Returns the new value of `ref`; running it subtracts `value` from it, atomically."""
    return ref.assign_sub(value, name=name)  # type: ignore[no-any-return]


def count_up_to(ref: Variable, limit: int, name: str | None = None) -> Tensor:
    """Returns the value of `ref`, and adds one; OutOfRangeError once it has reached `limit`."""
    return apply(state.CountUpTo(limit), ref.handle, name=name)


def _collected(key: str, scope: str | None) -> list[Any]:
    return get_default_graph().get_collection(key, scope)


def global_variables(scope: str | None = None) -> list[Variable]:
    """Returns the default graph's variables but local ones; with `scope`, those that match."""
    return _collected(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Variable]:
    """Returns the default graph's local variables."""
    return _collected(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Variable]:
    """Returns the variables in the collection of model variables."""
    return _collected(GraphKeys.MODEL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Variable]:
    """Returns the variables that optimizers train."""
    return _collected(GraphKeys.TRAINABLE_VARIABLES, scope)


def variables_initializer(var_list: Sequence[Variable], name: str = "init") -> Operation:
    """Returns an operation that sets the initial values of `var_list`."""
    return group(*[v.initializer for v in var_list], name=name)


def global_variables_initializer() -> Operation:
    """Returns an operation that sets the initial values of all global variables made so far."""
    return variables_initializer(global_variables())


def local_variables_initializer() -> Operation:
    """Returns an operation that sets the initial values of all local variables made so far."""
    return variables_initializer(local_variables(), "init_1")


def is_variable_initialized(variable: Variable) -> Tensor:
    """Returns a bool scalar: whether the variable has a value."""
    return variable.is_initialized()


def assert_variables_initialized(
    var_list: Sequence[Variable] | None = None,
) -> Operation | None:
    """Returns an operation that fails unless all variables (by default: all) have values.

    Raises:
        FailedPreconditionError: when it runs, naming all variables without a value.
    """
    wanted = [*global_variables(), *local_variables()] if var_list is None else list(var_list)
    if not wanted:
        return None
    return group(*[v.read_value() for v in wanted], name="assert_variables_initialized")


def report_uninitialized_variables(
    var_list: Sequence[Variable] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """Returns a string vector: names of the variables (all by default) that have no value."""
    from flowscope.graph.constant import constant
    from flowscope.ops.arrays import boolean_mask, stack
    from flowscope.ops.elementwise import logical_not

    wanted = [*global_variables(), *local_variables()] if var_list is None else list(var_list)
    with get_default_graph().name_scope(name):
        if not wanted:
            return constant([], "string")
        missing = logical_not(stack([v.is_initialized() for v in wanted]))
        return boolean_mask(constant([v.op.name for v in wanted]), missing)


all_variables = global_variables
initialize_all_variables = global_variables_initializer
initialize_local_variables = local_variables_initializer
initialize_variables = variables_initializer
