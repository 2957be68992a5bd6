"""Variables: what users make, read, assign and train."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flowscope.errors import DTypeError, InvalidArgumentError, UnimplementedError
from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.default import get_default_graph, get_default_session
from flowscope.graph.graph import Graph
from flowscope.graph.indexed_slices import IndexedSlices, IndexedSlicesValue
from flowscope.graph.op import Spec
from flowscope.graph.operation import Operation, Reference, Tensor, where
from flowscope.graph.scopes import own_graph
from flowscope.graph.unsupported import refuse
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, TensorShape, as_dims, compatible, is_known, text
from flowscope.ops.array.gathering import gather, gather_nd
from flowscope.ops.core.build import apply
from flowscope.ops.core.flow import identity
from flowscope.ops.state import scatters, variable_ops as state
from flowscope.ops.state.graph_keys import GraphKeys
from flowscope.ops.state.variable_attributes import (
    SaveSliceInfo as SaveSliceInfo,
    VariableAggregation,
    VariableSynchronization,
    initial_tensor,
)
from flowscope.ops.state.variable_def import ToAndFromProto, VariableDef as VariableDef

__all__ = [
    "GraphKeys",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "assign",
    "assign_add",
    "assign_sub",
    "count_up_to",
    "variable_creator_scope",
]


#: Inside `Variable` the other name is an attribute.
_SliceInfo = SaveSliceInfo


class _VariableType(type):
    """Has `Variable(...)` go through the functions of `variable_creator_scope`."""

    @property
    def __signature__(cls) -> inspect.Signature:
        found = inspect.signature(cls.__init__)  # type: ignore[misc]
        return found.replace(parameters=list(found.parameters.values())[1:])

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        creators = get_default_graph().thread_extras.get("variable_creators", ())
        make = super().__call__
        if not creators or cls is not Variable:
            return make(*args, **kwargs)
        given = inspect.signature(Variable.__init__).bind(None, *args, **kwargs)
        given.apply_defaults()
        arguments = dict(given.arguments)
        del arguments["self"]
        for creator in creators:
            make = functools.partial(creator, make)
        return make(**arguments)


@contextmanager
def variable_creator_scope(variable_creator: Callable[..., Any]) -> Iterator[None]:
    """Has a function make the variables of the block.

    Args:
        variable_creator: `(next_creator, **kwargs) -> variable`: gets the arguments of `Variable`
            by keyword, and what makes the variable of them; it may change them, or return another
            object. Those of outer scopes are called first by the `next_creator` of inner ones.

    Raises:
        DTypeError: if it is no function.
    """
    if not callable(variable_creator):
        raise expected_dtype("a function (next_creator, **kwargs)", repr(variable_creator))
    extras = get_default_graph().thread_extras
    before = extras.get("variable_creators", ())
    extras["variable_creators"] = (*before, variable_creator)
    try:
        yield
    finally:
        extras["variable_creators"] = before


class Variable(ToAndFromProto, Convertible, metaclass=_VariableType):
    """A tensor that keeps its value between steps; every op takes it as it takes a tensor.

    A read sees the value at its place in program order: what the last write made before it.

    Args:
        initial_value: A tensor, a value, or a function without arguments that returns one.
        trainable: Whether it is listed in the trainable variables (by default yes).
        collections: Collections to list it in; the global variables by default.
        validate_shape: Whether its shape is fixed to the initial value's, which must be known.
        caching_device: Device (or function of the operation that returns one) on which values are
            copied once for all who read them there; None for none.
        name: Name, made unique.
        variable_def: What `to_proto` of a variable returned, in place of all else: the same
            operations are used.
        dtype: Element type; the initial value's by default.
        expected_shape: Shape, if it is not the initial value's.
        import_scope: The name scope into which the graph of `variable_def` was imported since.
        constraint: Function of the updated value that optimizers apply after an update.
        use_resource: True or False: each variable has a handle, and a read sees the writes before
            it in program order.
        synchronization: For replicas: when copies are brought together. A variable that is brought
            together `ON_READ` is not trained.
        aggregation: For replicas: how copies are brought together.
        shape: The variable's static shape, if it is not the initial value's; None inside leaves a
            dimension open, `fs.TensorShape(None)` all of it.

    Raises:
        InvalidArgumentError: if there is no initial value, or an argument does not fit.

    Attributes:
        handle: The handle tensor, of dtype resource.
        initializer: The operation that sets the initial value.
        initial_value: The tensor of it.

    Example:
        >>> w = fs.Variable([1.0, 2.0], name="w")
        >>> sess = fs.Session()
        >>> sess.run(w.initializer)
        >>> sess.run(fs.assign_add(w, [1.0, 1.0]))
        array([2., 3.], dtype=float32)
    """

    SaveSliceInfo = SaveSliceInfo
    #: Which part of a larger tensor it is, for savers; None: a whole one.
    _save_slice_info: _SliceInfo | None = None
    #: Where values are copied once for all who read them there; None for none.
    _caching_device: Any = None
    #: The variable that it accompanies, as an optimizer's running average does; None for none.
    _primary: Variable | None = None

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
        # There is one kind of variable: with a handle, as `use_resource` asks for.
        del use_resource
        if variable_def is not None:
            self._take(variable_def, initial_value, import_scope)
            return
        refuse("Variable", import_scope=import_scope)
        if initial_value is None:
            raise InvalidArgumentError("a variable needs an initial_value")
        _check(collections, constraint, synchronization, aggregation)
        self.trainable = is_trained(trainable, synchronization)
        self.constraint = constraint
        if caching_device is not None:
            self._caching_device = caching_device
        self.synchronization = synchronization
        self.aggregation = aggregation
        graph = get_default_graph()
        full = graph.unique_name(name or "Variable")
        with graph.name_scope(full + "/"), graph.enter_block(graph.root):
            value = initial_tensor(graph, full, initial_value, dtype and as_dtype(dtype))
            if shape is not None:
                dims = _fitting(value, as_dims(shape))
            else:
                dims = _variable_dims(value, as_dims(expected_shape), validate_shape)
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
        graph.observer.note_owner(self.op, self)

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
        """Returns the value at this place in program order.

        One read serves a block, whatever devices are asked for: so gradients are the same sums.
        """
        graph = self.graph
        graph.observer.hold(self.op)
        key = graph.building_context()
        found = self._reads.get(key)
        if found is None or not graph.observer.is_current(found.op, self.handle):
            if graph.observer.has_rerun:  # bodies that a re-run has dropped are let go
                self._reads = {k: t for k, t in self._reads.items() if t.op.stale is None}
            found = self._reads[key] = self._cached(self.read_value())
        return found

    def _cached(self, read: Tensor) -> Tensor:
        """Returns the value on the caching device, or itself where there is none."""
        if self._caching_device is None:
            return read
        graph, on = self.graph, self._caching_device
        with graph.name_scope(self.op.name + "/"), graph.device(None), graph.device(on):
            return identity(read, "cached")

    def read_value(self) -> Tensor:
        """Returns the value at this place in program order, by a read of its own.

        It is read where it lies, also in a `colocate_with` block.
        """
        graph = self.graph
        with graph.name_scope(self.op.name + "/"), graph.colocate_with(None, True):
            return graph.add(state.ReadVariableOp(), (self.handle,), "read").outputs[0]

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

    def ref(self) -> Reference:
        """Returns something hashable that stands for it; `ref().deref()` is the variable."""
        return Reference(self)

    def __deepcopy__(self, memo: Any) -> Any:
        raise UnimplementedError(
            "a variable belongs to its graph and cannot be copied: make another fs.Variable with "
            "variable.initialized_value()"
        )

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
        """Returns the new value, or the operation; running it sets the variable, atomically."""
        return self._assign(value, True, name, read_value)

    def _assign(self, value: Any, validate_shape: bool, name: str | None, read_value: bool) -> Any:
        op = state.AssignVariableOp(validate_shape=validate_shape or self.shape.rank is None)
        return self._write(op, value, name or "Assign", read_value)

    def assign_add(self, delta: Any, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Any:  # fmt: skip
        """Returns the new value; running it adds `delta` to the variable, atomically."""
        return self._write(state.AssignAddVariableOp(), delta, name or "AssignAdd", read_value)

    def assign_sub(self, delta: Any, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Any:  # fmt: skip
        """Returns the new value; running it subtracts `delta` from the variable, atomically."""
        return self._write(state.AssignSubVariableOp(), delta, name or "AssignSub", read_value)

    def _write(self, op: Any, value: Any, name: str, read_value: bool) -> Any:
        with own_graph(self.graph):
            out = apply(op, self.handle, convert_to_tensor(value, self.dtype), name=name)
        return assigned(out, self) if read_value else out.op

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
            raise expected_dtype(
                "fs.IndexedSlices(values, indices)",
                f"{delta!r}: fs.scatter_add and its kin take indices and updates apart",
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
        raise DTypeError(
            "a variable cannot be iterated over: fs.unstack(variable) gives its parts"
        ).located(op=self.op, **where(self.op))

    def __bool__(self) -> bool:
        return bool(self.value())

    def __len__(self) -> int:
        return len(self.value())


class Assigned(Tensor):
    """A variable's new value, which is read and written as the variable is, after the write."""

    __slots__ = ("_variable",)

    _variable: Variable

    def read_value(self) -> Tensor:
        """Returns the variable's value after this write."""
        return self._after(self._variable.read_value)  # type: ignore[no-any-return]

    def value(self) -> Tensor:
        """Returns the variable's value after this write."""
        return self.read_value()

    @property
    def initializer(self) -> Operation:
        """The operation that sets the variable's initial value."""
        return self._variable.initializer

    def __getattr__(self, name: str) -> Any:
        if name not in _AFTER:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return functools.partial(self._after, getattr(self._variable, name))

    def _after(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with self.graph.control_dependencies([self.op]):
            return method(*args, **kwargs)


#: What an assigned variable does as the variable does it, after the write.
_AFTER = frozenset(
    name
    for name in vars(Variable)
    if name.startswith(("assign", "scatter_", "batch_scatter_", "count_up_to", "sparse_read"))
    or name in ("gather_nd", "is_initialized", "_assign")
)


def assigned(new: Tensor, variable: Variable) -> Tensor:
    """Returns a write's output as one that can be read and written as the variable."""
    op = new.op
    if type(new) is not Assigned:
        found = Assigned(op, new.value_index, new.spec)
        found._variable = variable
        op.outputs = [found]
    return op.outputs[0]


def is_trained(trainable: bool | None, synchronization: VariableSynchronization) -> bool:
    """Whether a variable is trained: by default yes, unless replicas sum it up when it is read."""
    if trainable is None:
        return synchronization is not VariableSynchronization.ON_READ
    return bool(trainable)


def _check(collections: Any, constraint: Any, synchronization: Any, aggregation: Any) -> None:
    """Raises InvalidArgumentError unless these are arguments of a variable."""
    if collections is not None and not isinstance(collections, list | tuple | set | frozenset):
        raise expected("collections to be a list, tuple or set of names", repr(collections))
    if constraint is not None and not callable(constraint):
        raise expected("constraint to be a function of the new value", repr(constraint))
    if not isinstance(synchronization, VariableSynchronization):
        raise expected("a fs.VariableSynchronization as synchronization", repr(synchronization))
    if not isinstance(aggregation, VariableAggregation):
        raise expected("a fs.VariableAggregation as aggregation", repr(aggregation))


def _fitting(value: Tensor, wished: Dims) -> Dims:
    if not compatible(value.spec.shape, wished):
        raise expected(f"an initial value of shape {text(wished)}", value.spec.shape)
    return wished


def _variable_dims(value: Tensor, wished: Dims, validate: bool) -> Dims:
    dims = value.spec.shape
    if wished is not None and validate and not compatible(dims, wished):
        raise expected(f"an initial value of shape {text(wished)}", dims)
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
    """Returns the new value of `ref`; running it sets the variable to `value`.

    Args:
        ref: The variable.
        value: The new value.
        validate_shape: Whether the value must fit the variable's static shape. False gives the
            variable the value's shape. Static shapes stay what they were, also of what was made of
            it; steps compute with the shape that it has.
        use_locking: True or False: writes are always atomic.
        name: Name of the operation.

    Raises:
        DTypeError: if `validate_shape` is False and `ref` is in parts.
    """
    if validate_shape is not False:
        return ref.assign(value, name=name)  # type: ignore[no-any-return]
    if not isinstance(ref, Variable | Assigned):
        raise expected_dtype("a variable that is not in parts for validate_shape=False", repr(ref))
    return ref._assign(value, False, name, True)  # type: ignore[no-any-return]


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
