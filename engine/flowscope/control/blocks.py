"""Functions: blocks of operations with parameters and results, closed against what is outside.

A `Function` owns a block with `Parameter` operations for its inputs and some of its tensors as
results. A tensor of another block that is used inside becomes one more parameter, its *capture*,
and whoever uses the function hands it in. Calls, branches and loops are operations that use
functions.

A `GradientBody` is a function that is built from another one, the forward function. What it reads
of that one's tensors is among its captures too, until the operation that uses it says where their
values come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from flowscope.control.lists import EmptyList, Head, ListOf, PackLists, UnpackList, list_of_zeros
from flowscope.control.specs import flows, value_spec
from flowscope.control.trampoline import Work
from flowscope.errors import InvalidArgumentError
from flowscope.graph.block import Block, misplaced
from flowscope.graph.constant import Const, convert_to_tensor
from flowscope.graph.graph import Graph
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.op import Op, Spec, frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.providers import load
from flowscope.graph.values.dtypes import resource
from flowscope.ops.array.arrays import shape, zeros

if TYPE_CHECKING:
    from flowscope.control.calls import CallGradient
    from flowscope.control.record import Record

#: Computes gradients inside a function's block; the differentiator fills it with a function
#: `(ys, xs, grad_ys) -> gradients`.
differentiator: list[Callable[[list[Tensor], list[Tensor], list[Tensor]], Work[list[Any]]]] = []
#: How cotangents are summed (`fs.AggregationMethod`), in the call of `gradients` that runs.
aggregation_method: ContextVar[int] = ContextVar("aggregation method", default=0)
#: Whether cotangents can flow through an operation; the differentiator fills it.
differentiable: list[Callable[[Operation], bool]] = []


#: The op that calls a function, and what differentiates calls; `flowscope.control.calls` fills it.
call_types: list[tuple[type[Op], type[CallGradient]]] = []


def _call_types() -> tuple[Any, type[CallGradient]]:
    if not call_types:
        load("call_types")
    return call_types[0]


@frozen
class Parameter(Op):
    """An input of a function, a branch or a loop: its value comes from what runs that."""

    spec: Spec = field(compare=False)
    index: int
    is_stateful: ClassVar[bool] = True
    is_parameter: ClassVar[bool] = True

    def infer(self) -> Spec:
        return self.spec

    def grad(self, g: Tensor, y: Tensor) -> Any:
        return ()


class Function:
    """A block of operations with parameters and results, callable any number of times.

    Attributes:
        name: Unique in the graph.
        graph: The graph.
        block: The operations.
        parameters: Tensors that stand for the inputs.
        captures: Tensors outside that the last parameters stand for.
        results: Tensors of the block that calls return.
        kept: Further tensors of the block that gradients read: outputs of calls behind the results.
        records: Records of tensors of the block, see `flowscope.control.record`.
    """

    def __init__(
        self, graph: Graph, name: str, parent: Block | None = None, what: str = "a function"
    ) -> None:
        self.name = name
        self.graph = graph
        self.block = Block(parent or graph.root, capture=self.inside, name=name)
        self.block.captured = self.pairs
        self.block.what = what
        self.parameters: list[Tensor] = []
        self.captures: list[Tensor] = []
        self.results: list[Tensor] = []
        self.kept: list[Tensor] = []
        self.records: list[Record] = []
        self._inside: dict[Tensor, Tensor] = {}
        self._gradients: dict[Any, CallGradient] = {}
        #: What holds of an operation of the block, and with how many operations that was found.
        self._flags: dict[str, tuple[int, bool]] = {}
        graph.functions[name] = self

    def add_parameter(self, spec: Spec, name: str) -> Tensor:
        """Adds a parameter and returns the tensor that stands for it in the block."""
        with self.graph.enter_block(self.block), self.graph.name_scope(self.name + "/"):
            op = Parameter(spec, len(self.parameters))
            self.parameters.append(self.graph.add(op, (), name).outputs[0])
        return self.parameters[-1]

    def inside(self, tensor: Tensor) -> Tensor:
        """The tensor in the block of a tensor of another: a parameter, made at need.

        Raises:
            GraphError: if the tensor stands in a block that does not enclose this one.
        """
        found = self._inside.get(tensor)
        if found is not None:
            return found
        if not tensor.op.block.encloses(self.block):
            raise misplaced(tensor)
        return self.bind(tensor)

    def bind(self, tensor: Tensor) -> Tensor:
        """Adds a parameter that stands for a tensor outside, wherever that is."""
        name = tensor.op.name.rpartition("/")[2]
        found = self._inside[tensor] = self.add_parameter(tensor.spec, name)
        self.captures.append(tensor)
        return found

    def pairs(self) -> list[tuple[Tensor, Tensor]]:
        """Returns the parameters that stand for tensors outside, with these."""
        first = len(self.parameters) - len(self.captures)
        return list(zip(self.parameters[first:], self.captures, strict=True))

    def own(self, tensor: Tensor) -> Tensor:
        """Returns the tensor itself where it stands in the block, else what stands for it there."""
        return tensor if tensor.op.block is self.block else self.inside(tensor)

    def arrange(self, parameters: list[Tensor], captures: list[Tensor]) -> None:
        """Puts the parameters into another order, the captures' at the end."""
        for i, t in enumerate(parameters):
            t.op.definition = Parameter(t.spec, i)
        self.parameters, self.captures = parameters, captures

    @property
    def inputs(self) -> list[Tensor]:
        """The parameters that a caller gives: without the captured ones."""
        return self.parameters[: len(self.parameters) - len(self.captures)]

    @property
    def outputs(self) -> list[Tensor]:
        """Tensors of the block that a call has outputs for."""
        return [*self.results, *self.kept]

    @property
    def is_listed(self) -> bool:
        """Whether the graph has it: not if a cell that made it does not, or not yet, this time."""
        found = self.graph.functions.get(self.name)
        return found is not None and found.block is self.block

    @property
    def writes_state(self) -> bool:
        """Whether an operation of the body writes a variable."""
        return self._any("writes_state")

    @property
    def reads_state(self) -> bool:
        """Whether an operation of the body reads a variable."""
        return self._any("reads_state")

    @property
    def has_effect(self) -> bool:
        """Whether running the body does something beyond its results."""
        return self._any("has_effect")

    def _any(self, flag: str) -> bool:
        """Whether an operation of the body has a flag; looks at what was added since it was asked.

        So functions in functions are not walked again and again.
        """
        operations = self.block.operations
        seen, found = self._flags.get(flag, (0, False))
        if seen > len(operations):
            seen, found = 0, False
        added = [op.definition for op in operations[seen:]] if not found else []
        found = found or any(getattr(d, flag) for d in added if not isinstance(d, Parameter))
        self._flags[flag] = len(operations), found
        return found

    def reach(
        self, wanted: Iterable[Tensor], enter: Callable[[Operation], bool] | None = None
    ) -> set[Tensor]:
        """Returns the parameters whose cotangents follow from those of tensors of the block.

        Args:
            wanted: The tensors of the block.
            enter: Whether cotangents pass an operation; by default, where it is differentiable.
        """
        if enter is None:
            if not differentiable:
                load("differentiator")
            enter = differentiable[0]
        found = {t for t in wanted if flows(t.spec)}
        stack = list(found)
        while stack:
            op = stack.pop().op
            if op.inputs and enter(op):
                new = {t for t in op.inputs if t not in found and flows(t.spec)}
                found |= new
                stack += new
        return found.intersection(self.parameters)

    def __call__(self, *args: Tensor, name: str | None = None) -> tuple[Tensor, ...]:
        """Adds a call to the graph and returns the results.

        Raises:
            InvalidArgumentError: if the number, dtypes or shapes of the arguments do not fit.
        """
        if len(args) != len(self.inputs):
            raise InvalidArgumentError(
                f'"{self.name}" takes {len(self.inputs)} tensors, got {len(args)}'
            )
        call, _ = _call_types()
        op = self.graph.add(call(self), (*args, *self.captures), name or self.name)
        return tuple(op.outputs[: len(self.results)])

    def gradient(self, wanted: tuple[int, ...]) -> Work[CallGradient]:
        """Returns the function that turns cotangents of the results `wanted` into the inputs'."""
        key = wanted, aggregation_method.get()
        found = self._gradients.get(key)
        if found is None or not found.function.is_listed:
            _, call_gradient = _call_types()
            found = call_gradient(self, wanted)
            yield from found.build()
            self._gradients[key] = found
        return found

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        takes = ", ".join(str(t.spec) for t in self.inputs)
        gives = ", ".join(str(t.spec) for t in self.results)
        size = len(self.block.operations)
        return f"<fs.Function '{self.name}' ({takes}) -> ({gives}), {size} operations>"


AnyFunction = TypeVar("AnyFunction", bound=Function)


class GradientBody(Function):
    """A function that is built by differentiating another one.

    Attributes:
        forward: The other one. What is read of its tensors becomes a capture, but for constants,
            which are copied, and for what is asked about shapes, which is computed there.
        recomputes: Whether what follows from captures without effect or chance is copied too.
    """

    def __init__(self, forward: Function, name: str, recomputes: bool = False) -> None:
        graph = forward.graph
        super().__init__(graph, free_name(graph, name), graph.block)
        self.block.forward = forward.block
        self.block.what = f"the gradient of {forward.block.what.partition(' ')[2]}"
        self.block.hoists = True
        self.forward = forward
        self.recomputes = recomputes
        self._copies: dict[Operation, Operation] = {}

    def inside(self, tensor: Tensor) -> Tensor:
        """The tensor in the block of a tensor of another."""
        found = self._inside.get(tensor)
        if found is None and self._is_copied(tensor.op):
            for op in self._missing(tensor.op):
                self._copy(op)
            found = self._inside[tensor] = self._copied(tensor)
        return super().inside(tensor) if found is None else found

    def _is_copied(self, op: Operation) -> bool:
        if op.block is not self.forward.block:
            return False
        return isinstance(op.definition, Const) or (self.recomputes and is_repeatable(op))

    def _missing(self, op: Operation) -> list[Operation]:
        """The operations to copy for an operation, itself the last."""
        found, stack = set(), [op]
        while stack:
            op = stack.pop()
            if op not in found and op not in self._copies:
                found.add(op)
                stack += [t.op for t in op.inputs if self._is_copied(t.op)]
        return sorted(found, key=lambda op: op.order)

    def _copy(self, op: Operation) -> None:
        inputs = tuple([self.inside(t) for t in op.inputs])
        graph = self.graph
        with graph.control_dependencies(None), graph.enter_block(self.block):
            made = graph.add(op.definition, inputs, op.name.rpartition("/")[2])
        self._copies[op] = made

    def _copied(self, tensor: Tensor) -> Tensor:
        """Returns the copy of a tensor; a loop may have got further lists since it was copied."""
        copy = self._copies[tensor.op]
        for missing in tensor.op.outputs[len(copy.outputs) : tensor.value_index + 1]:
            copy.add_output(missing.spec)
        return copy.outputs[tensor.value_index]

    def differentiate(
        self, ys: list[Tensor], xs: list[Tensor], cotangents: list[Tensor]
    ) -> Work[list[Tensor | IndexedSlices | None]]:
        """Adds the gradient of tensors of the forward function; returns a cotangent per x.

        What it returns may stand in another block, see `own`.
        """
        if not differentiator:
            load("differentiator")
        return (yield differentiator[0](ys, xs, cotangents))  # type: ignore[no-any-return]

    def dense(self, cotangent: Tensor | IndexedSlices) -> Tensor:
        """Returns a cotangent as one tensor of the block."""
        return self.own(convert_to_tensor(cotangent))


def settled(functions: Sequence[AnyFunction]) -> list[AnyFunction]:
    """Returns the functions that an operation is about to own: earlier ones if these are the same.

    To be called once they are whole. Where a notebook's cell that is run again has built what it
    had built before, the earlier functions stay, with what gradients elsewhere read of them.
    """
    graph = functions[0].graph
    if graph.run is None or any(f.block.parent is not graph.root for f in functions):
        return list(functions)
    likeness = graph.run.settle(functions)
    if likeness is None:
        return list(functions)
    found = [likeness.functions[f] for f in functions]
    for new, old in likeness.functions.items():
        for record in new.records:
            record.tensor = likeness.tensor(record.tensor)
        new.__dict__ = vars(old)  # Python code may hold it
    return found


def is_repeatable(op: Operation) -> bool:
    """Whether an operation of a body gives the same again, and is worth it: not what reads lists.

    What draws random numbers or reads state is not, nor what has a gradient of its own.
    """
    functions = getattr(op.definition, "functions", ())
    if functions:
        return all(
            is_repeatable(o) or isinstance(o.definition, (Parameter, Const))
            for f in functions
            for o in f.block.operations
        )
    if isinstance(op.definition, (EmptyList, Head, ListOf, PackLists, UnpackList)):
        return True
    has_lists = any(t.spec.dtype.kind == "v" for t in (*op.inputs, *op.outputs))
    is_own = op.gradient or op.definition.has_own_gradient
    return bool(op.inputs) and op.definition.is_pure and not has_lists and not is_own


def zeros_of(tensor: Tensor) -> Tensor:
    """Returns a cotangent of zeros for a tensor, of its shape; of a handle: of its variable's."""
    from flowscope.ops.state.variable_ops import ReadVariableOp

    spec = value_spec(tensor.spec)
    if spec.dtype.kind == "v":
        return list_of_zeros(tensor)
    if spec.is_static:
        return zeros(spec.shape, spec.dtype)
    if tensor.spec.dtype is resource:
        tensor = tensor.graph.add(ReadVariableOp(), (tensor,), "read").outputs[0]
    return zeros(shape(tensor), spec.dtype)


def free_name(graph: Graph, name: str) -> str:
    """Returns a name for a function, from the top of the graph: it belongs to no scope."""
    with graph.name_scope(None):
        return graph.unique_name(name)


__all__ = [
    "Function",
    "GradientBody",
    "Parameter",
    "call_types",
    "differentiable",
    "differentiator",
    "free_name",
    "settled",
    "zeros_of",
]
