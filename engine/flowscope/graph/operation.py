"""Operations and tensors: the graph's nodes and the values that flow between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from flowscope.errors import DTypeError, InvalidArgumentError, UnimplementedError
from flowscope.graph.op import Op, Spec
from flowscope.graph.origins.origin import Origin
from flowscope.graph.overloads import Overloads
from flowscope.graph.providers import load
from flowscope.graph.values.dtypes import DType, resource
from flowscope.graph.values.shapes import TensorShape, as_dims, merge_dims, text

if TYPE_CHECKING:
    from flowscope.graph.block import Block
    from flowscope.graph.graph import Graph
    from flowscope.graph.origins.observer import Stale

#: How `Tensor.eval` and `Operation.run` run; the runtime fills it with a function
#: `(fetch, feed_dict, session) -> value`.
runner: list[Callable[[Any, Any, Any], Any]] = []


#: What `Operation._update_input` does; the floor that has loops fills it.
input_replacer: list[Callable[[Operation, int, Tensor], None]] = []


def is_back_edge(tensor: Tensor, op: Operation) -> bool:
    """Whether a loop made by hand hands its next iteration a value here: where cycles close."""
    return op.definition.takes_back_edge and tensor.op.definition.makes_back_edge


def _run(fetch: Any, feed_dict: Any, session: Any) -> Any:
    if not runner:
        load("runner")
    return runner[0](fetch, feed_dict, session)


class Reference:
    """What `x.ref()` returns: hashable, equal for the same tensor or variable only."""

    __slots__ = ("_target",)

    def __init__(self, target: Any) -> None:
        self._target = target

    def deref(self) -> Any:
        """Returns the tensor or variable."""
        return self._target

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._target is other._target

    def __hash__(self) -> int:
        return id(self._target)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._target!r}>"


class Tensor(Overloads):
    """A value that flows along an edge: output `value_index` of operation `op`.

    Attributes:
        op: The operation that makes it.
        value_index: Which of its outputs.
        spec: Dtype, static shape and what else is known.
    """

    __slots__ = ("__weakref__", "op", "spec", "value_index")

    def __init__(self, op: Operation, value_index: int, spec: Spec) -> None:
        self.op = op
        self.value_index = value_index
        self.spec = spec

    @property
    def name(self) -> str:
        """The operation's name, a colon and the output's index."""
        return f"{self.op.name}:{self.value_index}"

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.spec.dtype

    @property
    def shape(self) -> TensorShape:
        """Static shape."""
        return TensorShape(self.spec.shape)

    @property
    def graph(self) -> Graph:
        """The graph that it belongs to."""
        return self.op.graph

    @property
    def device(self) -> str:
        """The device that was asked for, "" for none."""
        return self.op.device

    def get_shape(self) -> TensorShape:
        """Returns the static shape."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Adds what is known of the shape; raises ValueError if it contradicts."""
        s = self.spec
        self.graph.observer.note_shape(self)
        dims = merge_dims(s.shape, as_dims(shape))
        self.spec = Spec(s.dtype, dims, s.constant, s.dims, s.variable)
        if dims != s.shape:
            self.graph.edited(self.op)  # plans check what is fed for it

    def consumers(self) -> list[Operation]:
        """Returns the operations that take it as an input, in order of creation."""
        return [op for op in self.graph.get_operations() if self in op.inputs]

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Runs it in `session` (by default the default session) and returns its value."""
        return _run(self, feed_dict, session)

    def ref(self) -> Reference:
        """Returns something hashable that stands for it; `ref().deref()` is the tensor."""
        return Reference(self)

    def experimental_ref(self) -> Reference:
        """Returns `ref()`, by its older name."""
        return self.ref()

    @property
    def ndim(self) -> int | None:
        """The rank, None if it is not known."""
        return self.spec.rank

    def __repr__(self) -> str:
        place = self.op.origin.place
        made = f", {place}" if place else ""
        device = f", device={self.device}" if self.device else ""
        return f"<fs.Tensor '{self.name}' {self.dtype}{text(self.spec.shape)}{device}{made}>"

    def __bool__(self) -> bool:
        raise _misuse(
            self, "has no truth value while the graph is built: use fs.where or run it first"
        )

    def __iter__(self) -> Any:
        shape = self.spec.shape
        if not shape or shape[0] is None:
            raise _misuse(
                self, "cannot be iterated over: its first dimension is not known, use fs.unstack"
            )
        return iter([self[i] for i in range(shape[0])])

    def __len__(self) -> int:
        raise _misuse(self, "has no len(): use fs.shape(x)[0] or x.shape[0]")

    def __array__(self, *_: Any, **__: Any) -> Any:
        text = "is not an array: run it in a session to get one"
        raise _misuse(self, text, NotImplementedError)

    def __float__(self) -> float:
        raise _misuse(self, "is not a number: run it in a session to get one")

    def __int__(self) -> int:
        raise _misuse(self, "is not a number: run it in a session to get one")

    __index__ = __int__


def _misuse(tensor: Tensor, message: str, *kinds: type[Exception]) -> InvalidArgumentError:
    bases = (InvalidArgumentError, TypeError, *kinds)
    error = type("TensorUseError", bases, {})(f"a tensor {message}")
    return error.located(op=tensor.op, op_type=None, **where(tensor.op))  # type: ignore[no-any-return]


class Made(Protocol):
    """An operation, or a reference to one, that knows where it was made."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def origin(self) -> Any:
        """The user's lines that made it."""

    @property
    def forward(self) -> Made | None:
        """What it is the gradient of."""


def where(op: Made) -> dict[str, str | None]:
    """Returns an error's `origin` and `source` for an operation, and what it is the gradient of."""
    place = op.origin.place
    facts = {"origin": str(place) if place else None, "source": place.text if place else None}
    return facts if op.forward is None else facts | forward_facts(op.forward)


def forward_facts(op: Made) -> dict[str, str | None]:
    """Returns an error's facts about the operation whose gradient (of any order) failed."""
    while op.forward is not None:
        op = op.forward
    return {"forward": op.name, **{f"forward_{k}": v for k, v in where(op).items()}}


class Operation:
    """One use of an op in a graph.

    Attributes:
        graph: The graph that owns it.
        id: Its number in the graph, in order of creation; never used twice.
        order: Its place in program order, a number: what runs first where effects meet.
        definition: The `Op` with its attributes.
        name: Unique in the graph.
        inputs: Tensors it takes.
        outputs: Tensors it makes.
        device: The device that was asked for, "" for none.
        origin: The user's lines that made it.
        block: The block that it stands in.
        forward: The operation whose gradient it was made for, None for most.
        stale: Why it cannot be used since a notebook cell was run again, None if it can.
        passed_over: The device that a scope asked for, where what the operation is colocated with
            or whose state it touches asks for another one, which counts; "" for most.
        gradient: Name of the registered gradient that takes the place of its op's own, or "".
    """

    __slots__ = (
        "__weakref__",
        "_control",
        "block",
        "colocation",
        "definition",
        "device",
        "forward",
        "gradient",
        "graph",
        "id",
        "inputs",
        "name",
        "order",
        "origin",
        "outputs",
        "passed_over",
        "stale",
    )

    def __init__(
        self,
        graph: Graph,
        id: int,
        definition: Op,
        name: str,
        inputs: tuple[Tensor, ...],
        control_inputs: tuple[Operation, ...],
        specs: Any,
        origin: Origin,
        block: Block,
    ) -> None:
        self.graph = graph
        self.id = id
        self.order = id
        self.definition = definition
        self.name = name
        self.inputs = inputs
        self._control = control_inputs
        self.device = ""
        self.origin = origin
        self.block = block
        self.colocation: tuple[str, ...] = ()
        self.passed_over = ""
        self.forward: Operation | None = None
        self.gradient = ""
        self.stale: Stale | None = None
        if type(specs) is tuple:
            self.outputs = [Tensor(self, i, s) for i, s in enumerate(specs)]
        else:
            self.outputs = [Tensor(self, 0, specs)]

    @property
    def control_inputs(self) -> list[Operation]:
        """Operations that must finish before it starts."""
        return list(self._control)

    @control_inputs.setter
    def control_inputs(self, operations: Iterable[Operation]) -> None:
        self._control = tuple(operations)

    @property
    def type(self) -> str:
        """The op type, e.g. "MatMul"."""
        return self.definition.type

    @property
    def node_def(self) -> Operation:
        """The operation itself: it has `name`, `device` and `attr` of its own."""
        return self

    @property
    def attr(self) -> dict[str, Any]:
        """Attributes by name."""
        return self.definition.attributes()

    @property
    def input(self) -> list[str]:
        """The names of what it takes, as a definition has them: "a", "a:1", "^waited_for"."""
        names = [t.op.name if t.value_index == 0 else t.name for t in self.inputs]
        return names + [f"^{op.name}" for op in self._control]

    @property
    def op_def(self) -> Op:
        """The op's definition."""
        return self.definition

    @property
    def traceback(self) -> tuple[Any, ...]:
        """The user's lines that made it, innermost first."""
        return self.origin.places

    @classmethod
    def from_node_def(cls, node_def: Any, g: Any, *args: Any, **kwargs: Any) -> Operation:
        """Raises UnimplementedError: operations are made by functions, or read with a graph."""
        raise UnimplementedError(
            "Operation.from_node_def is not supported: fs.raw_ops makes operations by op type, "
            "fs.import_graph_def those of a GraphDef"
        )

    def add_output(self, spec: Spec) -> Tensor:
        """Adds an output behind the others and returns it."""
        self.outputs.append(Tensor(self, len(self.outputs), spec))
        self.graph.touch()
        return self.outputs[-1]

    def values(self) -> tuple[Tensor, ...]:
        """Returns the outputs."""
        return tuple(self.outputs)

    def get_attr(self, name: str) -> Any:
        """Returns an attribute; raises ValueError if there is none of this name."""
        attributes = self.definition.attributes()
        if name == "_gradient_op_type" and self.gradient:
            return self.gradient
        if name == "_class" and self.colocation:
            return self.colocation_groups()
        if name not in attributes and name in _TYPES:
            return _TYPES[name](self)
        if name not in attributes:
            known = ", ".join(attributes) or "none"
            raise InvalidArgumentError(f"{self.type} has no attribute {name!r}; it has {known}")
        return attributes[name]

    def colocation_groups(self) -> list[bytes]:
        """Returns the names of operations it must share a device with (at least its own)."""
        names = self.colocation
        if not names and self.definition.is_stateful and self.inputs:
            variable = variable_of(self.inputs[0])
            names = () if variable is None else (variable.name,)
        return [f"loc:@{n}".encode() for n in names or (self.name,)]

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Runs it in `session` (by default the default session)."""
        _run(self, feed_dict, session)

    def _add_control_input(self, op: Operation) -> None:
        if not isinstance(op, Operation):
            raise DTypeError(f"expected an operation to wait for, got {op!r}")
        self.graph.add_control_input(self, op)

    def _add_control_inputs(self, ops: Iterable[Operation]) -> None:
        for op in dict.fromkeys(ops):
            self._add_control_input(op)

    def _remove_all_control_inputs(self) -> None:
        self._control = ()
        self.graph.edited(self)

    def _update_input(self, index: int, tensor: Tensor) -> None:
        if not input_replacer:
            load("input_replacer")
        input_replacer[0](self, index, tensor)

    def __repr__(self) -> str:
        place = self.origin.place
        made = f", {place}" if place else ""
        inputs = ", ".join(t.name for t in self.inputs)
        return f"<fs.Operation '{self.name}' {self.type}({inputs}){made}>"


def outermost(tensor: Tensor) -> Tensor:
    """Returns the tensor outside that a parameter stands for, as far outside as there is one."""
    while tensor.op.definition.is_parameter:
        outer = dict(tensor.op.block.captured()).get(tensor)
        if outer is None:
            break
        tensor = outer
    return tensor


def variable_of(tensor: Tensor) -> Operation | None:
    """Returns the operation of a variable's handle that a tensor is or stands for, or None."""
    if tensor.spec.variable is None or tensor.spec.dtype is not resource:
        return None
    op = outermost(tensor).op
    return op if op.definition.is_handle else None


#: TensorFlow's attributes for what follows from inputs and outputs here.
_TYPES: dict[str, Callable[[Operation], DType]] = {
    "T": lambda op: (*op.inputs, *op.outputs)[0].dtype,
    "SrcT": lambda op: op.inputs[0].dtype,
    "DstT": lambda op: op.outputs[0].dtype,
}
