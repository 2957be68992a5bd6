"""Blocks: lists of operations, the graph's own or the body of a control-flow operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from flowscope.errors import GraphError
from flowscope.graph.operation import Operation, Tensor, outermost
from flowscope.graph.values.dtypes import resource, variant

if TYPE_CHECKING:
    from flowscope.graph.graph import Graph


class Block:
    """A list of operations: the graph itself, or the body of a control-flow operation.

    Attributes:
        parent: The enclosing block, None for the graph's own.
        owner: The operation whose body it is, None for the graph's own.
        operations: In order of creation.
        built: How many operations it had when the operation that owns it was made in a notebook's
            cell; what comes later, gradients have added.
        capture: The block's own tensor for one of another block; None where that is an
            error.
        captured: The block's own tensors for those outside, with these.
        name: Of the function whose body it is, "" for the graph's own: views tell bodies by it.
        what: What messages call it, e.g. "a function".
        forward: Another block that encloses it: the one that it is the gradient of.
        hoists: Whether an op that needs only the shape of a tensor outside is put beside that
            tensor, so that its value need not be handed in.
    """

    __slots__ = (
        "built",
        "capture",
        "captured",
        "forward",
        "hoists",
        "name",
        "operations",
        "owner",
        "parent",
        "what",
    )

    def __init__(
        self,
        parent: Block | None = None,
        owner: Operation | None = None,
        capture: Callable[[Tensor], Tensor] | None = None,
        name: str = "",
    ) -> None:
        self.name = name
        self.parent = parent
        self.owner = owner
        self.capture = capture
        self.captured: Callable[[], list[tuple[Tensor, Tensor]]] = list
        self.what = "a function"
        self.forward: Block | None = None
        self.hoists = False
        self.operations: list[Operation] = []
        self.built = 0

    def encloses(self, other: Block | None) -> bool:
        """Whether `other` is this block or lies in it: its operations may then use ours."""
        while other is not None and other is not self:
            if other.forward is not None and self.encloses(other.forward):
                return True
            other = other.parent
        return other is self

    def awaited(self, op: Operation) -> Operation:
        """The operation that operations of this block wait for in place of `op`.

        For an operation of a block around it that is what stands here for its value. Where it has
        none, or runs blocks of its own, that is itself: then all of this block waits.
        """
        if self.capture is None or op.block is self or not op.block._surrounds(self):
            return op
        if getattr(op.definition, "functions", ()):
            return op
        values = [t for t in op.outputs if t.spec.dtype not in (resource, variant)]
        return self.capture(values[0]).op if values else op

    def _surrounds(self, other: Block | None) -> bool:
        while other is not None and other is not self:
            other = other.parent
        return other is self

    def is_read_in(self, other: Block | None) -> bool:
        """Whether operations of `other` can take ours as they are: it lies in this block.

        Or a block around it, or itself, is the gradient of this one: then this one keeps the value.
        The gradient of a gradient takes what that one was given, not what its forward block has.
        """
        while other is not None and other is not self:
            if other.forward is self:
                return True
            other = other.parent
        return other is self


def outermost_read_in(tensor: Tensor, block: Block) -> Tensor:
    """The tensor that a parameter stands for, from as far outside as a block can take it."""
    found = at = tensor
    while at.op.definition.is_parameter:
        outer = dict(at.op.block.captured()).get(at)
        if outer is None:
            break
        at = outer
        if at.op.block.is_read_in(block):
            found = at
    return found


def misplaced(thing: Tensor | Operation, use: str = "used") -> GraphError:
    """Returns the error for using what stands in a body outside it.

    Args:
        thing: The tensor or operation.
        use: What was tried, e.g. "fetched".
    """
    block = (thing.op if isinstance(thing, Tensor) else thing).block
    owner = f' "{block.name.rpartition("/")[0] or block.name}"'
    why = "outside it" if use == "used" else "from there"
    return GraphError(
        f'"{thing.name}" stands inside {block.what}{owner} and cannot be {use} {why}: '
        f"{_way_out(thing, block)}"
    )


def _way_out(thing: Tensor | Operation, block: Block) -> str:
    """A hint how to use a value of a body outside."""
    if isinstance(thing, Operation):
        return "it runs with its body; have the body return a tensor, and ask for that"
    outer = outermost(thing)
    if outer is not thing:
        return f'it stands there for "{outer.name}": use that'
    if block.what.endswith("of a while_loop") and thing.op.definition.is_parameter:
        return "it is a loop variable: outside, use what while_loop returned for it"
    if "while_loop" in block.what:
        return (
            "it has a value in each iteration; make it a loop variable, write it into a "
            "fs.TensorArray that is one, or collect its values by fs.record"
        )
    if "cond" in block.what:
        return "it has a value only if that branch is taken; return it from both branches"
    return f"return it from the {block.what.partition(' ')[2]}"


def discard(graph: Graph, block: Block, names: dict[str, int]) -> None:
    """Takes back the operations of a block that nothing uses, with those of blocks inside.

    Args:
        graph: The graph.
        block: The block, the newest one.
        names: The graph's counters of names as they were before.
    """
    gone = {op for op in graph._operations if block.encloses(op.block)}
    first = min((op.order for op in gone), default=0)
    last = graph.run.made_operations if graph.run is not None else graph._operations
    is_all = all(op.order < first or op in gone for op in last)
    if graph.run is not None:
        graph.run.take_back(gone)
    else:
        graph._operations = [op for op in graph._operations if op not in gone]
        for op in gone:
            graph._by_name.pop(op.name, None)
    for name in [f.name for f in graph.functions.values() if block.encloses(f.block)]:
        del graph.functions[name]
    if is_all:
        graph._names = dict(names)
    graph.touch()
