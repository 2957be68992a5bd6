"""The graph: it owns operations, names them, and knows in which scopes new ones are made."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from operator import attrgetter
from typing import Any

from flowscope.errors import DTypeError, GraphError, InvalidArgumentError, NotFoundError, OpError
from flowscope.graph.block import misplaced, outermost_read_in
from flowscope.graph.building import NO_WISHES, Building, follow
from flowscope.graph.edits import Edits
from flowscope.graph.op import Op, Spec, op_class
from flowscope.graph.operation import Operation, Tensor, variable_of, where
from flowscope.graph.origins.observer import observers
from flowscope.graph.origins.origin import Origin, capture
from flowscope.graph.providers import load
from flowscope.graph.summary import summary
from flowscope.graph.values.dtypes import as_dtype
from flowscope.graph.written_forms import WrittenForms

#: Makes a graph the default one in a `with` block; `flowscope.graph.default` fills it.
default_setters: list[Callable[[Graph], AbstractContextManager[Graph]]] = []
_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")


class Graph(Building, Edits, WrittenForms):
    """A dataflow graph. Operations are added by the op functions while it is the default graph.

        with fs.Graph().as_default() as g:
            x = fs.placeholder(fs.float32, [None, 2])
            y = x * 2.0

    Attributes:
        seed: Seed of the random ops (see `fs.set_random_seed`), None if it was not set.
        root: The block of all operations that stand in no other.

    Example:
        >>> graph = fs.Graph()
        >>> with graph.as_default():
        ...     y = fs.constant(2.0) + 1.0
        >>> fs.Session(graph=graph).run(y)
        np.float32(3.0)
    """

    def __init__(self) -> None:
        super().__init__()
        self.seed: int | None = None
        self._operations: list[Operation] = []
        self._next_id = 0
        self._next_order = 0
        self._by_name: dict[str, Operation] = {}
        self._names: dict[str, int] = {}
        self._collections: dict[Any, list[Any]] = {}
        self._writes: dict[Tensor, int] = {}
        #: Handles of variables that may have another shape than the static one.
        self._reshaped: set[Operation] = set()
        self._finalized = False
        self._unfeedable: set[Tensor] = set()
        self._unfetchable: set[Operation] = set()
        #: State of builders above the graph (variable scopes, ...), by name.
        self.extras: dict[str, Any] = {}
        #: What looks at each operation that is added, and raises where it does not belong.
        self.checks: tuple[Callable[[Operation], None], ...] = ()
        #: Functions by name: see `flowscope.control.blocks.Function`.
        self.functions: dict[str, Any] = {}
        #: The run that is building it now, if the observer knows runs.
        self.run = None
        if len(observers) == 1:
            load("observers")
        self.observer = observers[-1](self)
        self.observer.attached()

    # -- adding ---------------------------------------------------------------------------------

    def add(
        self, definition: Op, inputs: tuple[Tensor, ...] = (), name: str | None = None
    ) -> Operation:
        """Adds one operation in the current scopes and returns it.

        Args:
            definition: The op with its attributes.
            inputs: Tensors of this graph.
            name: Wished name, made unique; the op type by default. "full/name/" is taken as it is.

        Raises:
            InvalidArgumentError: if the inputs do not fit the op; it points to the caller's line.
        """
        __tracebackhide__ = True
        with self._lock:
            here = self._threads.here
            block, run, origin = here.block, self.run, capture()
            if self._finalized:
                raise self._refusal(name or definition.type, definition.type, origin)
            if run is not None and run.is_again:
                run.uses(definition, (*[t.op for t in inputs], *here.control))
            given = inputs
            for t in inputs:
                if t.op.block is not block or t.op.stale is not None:
                    if block.hoists and definition.needs_shape_only and self._is_own(t):
                        beyond = outermost_read_in(t, block)
                        with self.enter_block(beyond.op.block):
                            return self.add(definition, (beyond,), name)
                    inputs = self._taken(definition, inputs, origin, name or definition.type)
                    break
            try:
                specs = definition.infer(*[t.spec for t in inputs])
            except OpError as e:
                facts = {"op": self._full(name or definition.type), "op_type": definition.type}
                raise e.located(inputs=describe(inputs), **facts, **_place(origin)) from None
            if name and name[-1] == "/":
                full = name[:-1]
            else:
                full = self._unique(name or definition.type, True, here.scope)
            control = self._control_for(definition, inputs) if here.controllers else ()
            op = Operation(
                self, self._next_id, definition, full, inputs, control, specs, origin, block
            )
            wishes = self._wished() if self._is_thread_local else self._wishes
            if wishes is not NO_WISHES:
                wishes.apply(op)
            for check in self.checks:
                check(op)
            op.order = self._next_order
            self._next_id += 1
            self._next_order += 1
            op.forward = here.forward
            if definition.is_stateful:
                self._note_state(op, given)
            if here.gradients:
                op.gradient = here.gradients.get(definition.type, "")
            self.version += 1
            if run is not None:
                earlier = run.made(op, self._full(name or definition.type))
                if earlier is not None:
                    for controller in here.controllers:
                        controller.made.add(earlier)
                    return earlier
            for controller in here.controllers:
                controller.made.add(op)
            self._by_name[full] = op
            block.operations.append(op)
            self._operations.append(op)
            return op

    def _is_own(self, tensor: Tensor) -> bool:
        return tensor.op.graph is self and tensor.op.stale is None

    def _taken(
        self, definition: Op, inputs: tuple[Tensor, ...], origin: Origin, name: str
    ) -> tuple[Tensor, ...]:
        """The inputs of a new operation, some of which stand outside its block.

        Raises:
            GraphError: if one belongs to another graph, or stands in a block that it cannot leave.
            StaleError: if one is stale.
        """
        for t in inputs:
            if t.op.graph is not self:
                raise GraphError(_of_another_graph(t)).located(
                    op=name, op_type=definition.type, **_place(origin)
                )
        for t in inputs:
            if t.op.stale is not None:
                raise self.observer.refusal(t)
        return self._captured(inputs, origin, name)

    def _note_state(self, op: Operation, given: tuple[Tensor, ...]) -> None:
        """Places an operation with its variable, and notes which variables it writes."""
        handle = None
        if op.inputs and (handle := variable_of(op.inputs[0])) is not None:
            follow(op, handle.device)  # what touches a variable stands where the variable stands
        if op.definition.writes_state:
            for t in given:
                self._writes[t] = op.order
            if op.definition.reshapes and handle is not None and not self.is_reshaped(handle):
                self._reshaped.add(handle)
                self.edited(handle)  # plans relied on the static shape

    def _refusal(self, name: str, kind: str, origin: Origin) -> GraphError:
        error = GraphError("the graph is finalized: nothing can be added to it")
        return error.located(op=self._full(name), op_type=kind, **_place(origin))

    def _captured(
        self, inputs: tuple[Tensor, ...], origin: Origin, name: str
    ) -> tuple[Tensor, ...]:
        """Returns the inputs, with what stands in the current block for those of other blocks."""
        try:
            return tuple([self.here(t) for t in inputs])
        except GraphError as e:
            raise e.located(op=self._full(name), op_type=None, **_place(origin)) from None

    def here(self, tensor: Tensor) -> Tensor:
        """The tensor in the block that is being built of a given one: itself, for most.

        Raises:
            GraphError: if it stands in a block that does not enclose this one.
        """
        block = self._here.block
        if tensor.op.block is block:
            return tensor
        if block.capture is None:
            raise misplaced(tensor)
        return block.capture(tensor)

    def create_op(
        self,
        op_type: str,
        inputs: Any,
        dtypes: Any = None,
        input_types: Any = None,
        name: str | None = None,
        attrs: Any = None,
        op_def: Any = None,
        compute_shapes: bool | None = None,
        compute_device: bool = True,
    ) -> Operation:
        """Adds an operation of the op type named `op_type` (TensorFlow 1's low-level call).

        Args:
            op_type: Name of the op type.
            inputs: Tensors of this graph.
            dtypes: Element types of the outputs, which follow from the op: checked if given.
            input_types: Element types of the inputs: checked if given.
            name: Wished name; the op type by default.
            attrs: The op's attributes by name.
            op_def: The op with its attributes, in place of `op_type` and `attrs`.
            compute_shapes: Shapes are always inferred; False is refused.
            compute_device: False passes over what `Graph.device` asks for.

        Raises:
            NotFoundError: if there is no such op type.
            DTypeError: if element types are not the ones given.
        """
        if compute_shapes is False:
            raise InvalidArgumentError(
                "compute_shapes=False is not supported: shapes are always inferred; "
                "fs.placeholder_with_default(x, None) forgets one"
            )
        tensors = tuple([self.as_graph_element(t, allow_operation=False) for t in inputs])
        _check_dtypes(op_type, "inputs", input_types, [t.spec for t in tensors])
        op = op_def if isinstance(op_def, Op) else _definition(op_type, attrs)
        if dtypes is not None:
            found = op.infer(*[t.spec for t in tensors])
            specs = list(found) if type(found) is tuple else [found]
            _check_dtypes(op_type, "outputs", dtypes, specs)
        if compute_device:
            return self.add(op, tensors, name)
        with self.device(None):
            return self.add(op, tensors, name)

    def add_control_input(self, op: Operation, before: Operation) -> None:
        """Makes `op` wait for `before`.

        Raises:
            InvalidArgumentError: if `before` waits for `op` already.
            GraphError: if they do not stand in the same block: a body is what it was when the
                operation that runs it was made.
        """
        if before.block is not op.block:
            raise _cannot_wait(op, before)
        if self.depends(before, op):
            raise InvalidArgumentError(f'"{before.name}" waits for "{op.name}" already').located(
                op=op, op_type=op.type, **where(op)
            )
        op.control_inputs = (*op.control_inputs, before)
        self.edited(op)

    def depends(self, op: Operation, on: Operation) -> bool:
        """Whether `op` is `on` or waits for it, directly or not."""
        seen, stack = {op}, [op]
        while stack:
            at = stack.pop()
            if at is on:
                return True
            for p in (*(t.op for t in at.inputs), *at.control_inputs):
                if p not in seen:
                    seen.add(p)
                    stack.append(p)
        return False

    def last_write(self, handle: Tensor) -> int:
        """Returns the order of the last operation that writes the variable of this handle.

        Of those that the running cell has made; -1 if there is none.
        """
        return self._writes.get(handle, -1)

    def is_reshaped(self, handle: Operation) -> bool:
        """Whether a variable may have another shape than the static one of its handle."""
        return handle in self._reshaped

    def finalize(self) -> None:
        """Makes the graph read-only."""
        self._finalized = True

    def _unsafe_unfinalize(self) -> None:
        """Lets the graph grow again: unsafe where other threads take it as finalized."""
        self._finalized = False

    def _check_not_finalized(self) -> None:
        if self._finalized:
            raise GraphError("the graph is finalized: nothing can be added to it")

    @property
    def building_function(self) -> bool:
        """Whether this is the graph of a function's body: bodies are blocks of one graph here."""
        return False

    @property
    def finalized(self) -> bool:
        """Whether it is read-only."""
        return self._finalized

    # -- names ----------------------------------------------------------------------------------

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """Returns `name` in the current name scope, with "_1", "_2", ... where it is taken."""
        scope = self._threads.here.scope
        if not mark_as_used:
            return self._unique(name, False, scope)  # it only looks
        with self._lock:
            return self._unique(name, True, scope)

    def _unique(self, name: str | bytes, mark_as_used: bool, scope: str) -> str:
        if not isinstance(name, str):
            name = name.decode()
        full = f"{scope}/{name}" if scope else name
        key = full.lower()
        count = self._names.get(key)
        if count is None:
            if not _NAME.fullmatch(full):
                raise InvalidArgumentError(
                    f"{name!r} cannot name an operation: letters, digits and '._-/' are allowed, "
                    "and it starts with a letter, a digit or a dot"
                )
            if mark_as_used:
                self._names[key] = 1
            return full
        unique = f"{key}_{count}"
        while unique in self._names:
            count += 1
            unique = f"{key}_{count}"
        if mark_as_used:
            self._names[key] = count + 1
            self._names[unique] = 1
        return f"{full}_{count}"

    def _full(self, name: str) -> str:
        scope = self._here.scope
        return f"{scope}/{name}" if scope else name

    # -- finding --------------------------------------------------------------------------------

    def get_operations(self) -> list[Operation]:
        """Returns all operations in program order: that of creation, unless a cell was re-run."""
        if self.observer.has_rerun:
            return sorted(self._operations, key=attrgetter("order"))
        return list(self._operations)

    def operations_since(self, count: int) -> list[Operation]:
        """Returns the operations after the first `count`."""
        return self._operations[count:]

    def __len__(self) -> int:
        return len(self._operations)

    def get_operation_by_name(self, name: str) -> Operation:
        """Returns the operation of this name; raises NotFoundError if there is none."""
        return self._by_text(name, allow_tensor=False)  # type: ignore[no-any-return]

    def get_tensor_by_name(self, name: str) -> Tensor:
        """Returns the tensor "op:index"; raises NotFoundError (a KeyError) if there is none."""
        return self._by_text(name, allow_operation=False)  # type: ignore[no-any-return]

    def _by_text(self, name: str, **allowed: bool) -> Any:
        if not isinstance(name, str):
            raise DTypeError(f"expected a name, a string, got {name!r}")
        return self.as_graph_element(name, **allowed)

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        """Returns the tensor or operation that `obj` (itself, a name, a variable) stands for.

        Raises:
            NotFoundError: if the graph has nothing of this name.
            DTypeError: if `obj` is something else.
        """
        if isinstance(obj, str):
            return self._named(obj, allow_tensor, allow_operation)
        if not (allow_tensor or allow_operation):
            raise InvalidArgumentError("expected allow_tensor or allow_operation to be true")
        element = getattr(obj, "_as_graph_element", None)
        if element is not None:
            obj = element()
        if isinstance(obj, Tensor | Operation):
            if obj.graph is not self:
                raise GraphError(
                    f"{obj!r} belongs to another graph; a session runs one graph, "
                    "fs.Session(graph=x.graph) that of x"
                )
            op = obj.op if isinstance(obj, Tensor) else obj
            if op.stale is not None:
                raise self.observer.refusal(obj)
            if isinstance(obj, Tensor) and allow_tensor:
                return obj
            if isinstance(obj, Operation) and allow_operation:
                return obj
        wanted = " or ".join(["a tensor"] * allow_tensor + ["an operation"] * allow_operation)
        raise DTypeError(f"expected {wanted} of the graph or its name, got {obj!r}")

    def _named(self, name: str, allow_tensor: bool, allow_operation: bool) -> Any:
        op_name, colon, index = name.partition(":")
        op = self._by_name.get(op_name)
        if op is None:
            raise NotFoundError(
                f"no operation is named {op_name!r} in the graph{self._similar(op_name)}"
            )
        if op.stale is not None:
            raise self.observer.refusal(op)
        if colon:
            if not allow_tensor:
                raise InvalidArgumentError(f"{name!r} names a tensor, expected an operation's name")
            if not index.isdigit():
                raise InvalidArgumentError(
                    f"expected a tensor's name like {op_name + ':0'!r}, got {name!r}"
                )
            if int(index) >= len(op.outputs):
                raise NotFoundError(
                    f"{op_name!r} has {len(op.outputs)} outputs, there is no {name!r}"
                )
            return op.outputs[int(index)]
        if not allow_operation:
            raise InvalidArgumentError(
                f"{name!r} names an operation, expected a tensor's name like {name + ':0'!r}"
            )
        return op

    def _similar(self, name: str) -> str:
        import difflib

        close = difflib.get_close_matches(name, self._by_name, 3)
        return f"; similar: {', '.join(close)}" if close else ""

    def is_feedable(self, tensor: Any) -> bool:
        """Whether the tensor may be fed: not in a control-flow body, nor where it is forbidden."""
        found = self.as_graph_element(tensor)
        return found not in self._unfeedable and self._as_operation(found).block is self.root

    def is_fetchable(self, tensor_or_op: Any) -> bool:
        """Whether it may be fetched: not in a control-flow body, nor where it is forbidden."""
        op = self._as_operation(tensor_or_op)
        return op not in self._unfetchable and op.block is self.root

    def prevent_feeding(self, tensor: Any) -> None:
        """Forbids to feed the tensor."""
        self._unfeedable.add(self.as_graph_element(tensor, allow_operation=False))

    def prevent_fetching(self, op: Any) -> None:
        """Forbids to fetch the operation and its tensors."""
        self._unfetchable.add(self.as_graph_element(op, allow_tensor=False))

    # -- collections ----------------------------------------------------------------------------

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Appends `value` to the collection `name`; raises GraphError if it is finalized."""
        self._check_not_finalized()
        if self.run is not None:
            self.run.collect(name, value)
        else:
            self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Appends `value` to each of the collections `names`, once."""
        for name in dict.fromkeys((names,) if isinstance(names, str) else names):
            self.add_to_collection(name, value)

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """Returns a copy of the collection; with `scope`, the entries whose name matches it."""
        entries = self._collections.get(name, [])
        if scope is None:
            return list(entries)
        pattern = re.compile(scope)
        return [e for e in entries if hasattr(e, "name") and pattern.match(e.name)]

    def get_collection_ref(self, name: Any) -> list[Any]:
        """Returns the collection itself: changes to the list change it."""
        return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[Any]:
        """Returns the names of all collections that are not empty, those that are strings."""
        return [k for k, v in self._collections.items() if v and isinstance(k, str)]

    @property
    def collections(self) -> list[Any]:
        """The names of all collections."""
        return list(self._collections)

    def clear_collection(self, name: Any) -> None:
        """Empties the collection; raises GraphError if the graph is finalized."""
        self._check_not_finalized()
        self._collections.pop(name, None)

    def as_default(self) -> AbstractContextManager[Graph]:
        """Returns a context manager that makes this the default graph."""
        if not default_setters:
            load("default_setters")
        return default_setters[0](self)

    def __repr__(self) -> str:
        trained = self._collections.get("trainable_variables", ())
        return f"<fs.Graph: {summary(self._operations, trained)}>"


def _definition(op_type: str, attrs: Any) -> Op:
    try:
        return op_class(op_type)(**dict(attrs or {}))
    except TypeError as e:
        raise InvalidArgumentError(f"the attributes do not fit {op_type}: {e}") from None


def _check_dtypes(op_type: str, what: str, wanted: Any, specs: list[Spec]) -> None:
    if wanted is None:
        return
    expected, got = [as_dtype(d) for d in wanted], [s.dtype for s in specs]
    if expected != got:
        raise DTypeError(
            f"{op_type}: expected {what} of {[d.name for d in expected]}, "
            f"got {[d.name for d in got]}"
        )


def _cannot_wait(op: Operation, before: Operation) -> GraphError:
    """Returns the error for a control input between blocks that comes when both are built."""
    if not before.block.encloses(op.block):
        return misplaced(before, "waited for")
    error = GraphError(
        f'"{op.name}" stands inside {op.block.what}, which is built: it cannot be made to wait for '
        f'"{before.name}" outside; use fs.control_dependencies in the body, or let the operation '
        "that runs the body wait"
    )
    return error.located(op=op, op_type=op.type, **where(op))


def _place(origin: Origin) -> dict[str, str | None]:
    place = origin.place
    return {"origin": str(place) if place else None, "source": place.text if place else None}


def _of_another_graph(tensor: Tensor) -> str:
    place = tensor.op.origin.place
    made = f"; it was made in {place}" if place else ""
    return (
        f'"{tensor.name}" belongs to another graph{made}: build what belongs together inside one '
        "`with graph.as_default():`"
    )


def describe(inputs: tuple[Tensor, ...]) -> list[str]:
    """Returns one line per input for an error: position, dtype, shape, name."""
    return [f'input {i}: {t.spec}   from "{t.name}"' for i, t in enumerate(inputs)]
