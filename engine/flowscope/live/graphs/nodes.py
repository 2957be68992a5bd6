"""What views are told of operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from flowscope.control.calls import Call
from flowscope.control.cond import Cond
from flowscope.control.loop import Loop
from flowscope.graph.op import Op, Spec
from flowscope.graph.operation import Made, Operation
from flowscope.graph.values.work import PRODUCT
from flowscope.live.graphs.blocks import blocks_of
from flowscope.live.graphs.raw_loops import has_frames, shown
from flowscope.live.protocol.schema import Node, Origin, Output

#: Longest text of an attribute that is sent.
ATTRIBUTE_CHARS = 80


def node_of(op: Operation, placed: str | None) -> Node:
    """Returns an operation as a view sees it."""
    definition = op.definition
    scope, frame = shown(op)
    return Node(
        id=op.id,
        name=op.name,
        type=op.type,
        inputs=_inputs_of(op),
        control=tuple(c.id for c in op.control_inputs),
        outputs=tuple(output_of(t.spec.variable or t.spec) for t in op.outputs),
        attributes=attributes_of(op),
        device=op.device,
        placed=placed,
        summary=summary_of(definition),
        origin=made_at(op),
        stale=None if op.stale is None else op.graph.observer.refusal(op).message,
        body=op.block.name,
        is_result=_is_result(op),
        calls=definition.function.name if isinstance(definition, Call) else "",
        scope=scope,
        frame=frame,
        flops=flops_of(definition, [t.spec for t in op.inputs], [t.spec for t in op.outputs]),
        **blocks_of(op),
    )


def flops_of(definition: Op, inputs: Iterable[Spec], outputs: Iterable[Spec]) -> float:
    """The flops of a product or a convolution, an unknown dimension counted as one; else 0."""
    if definition.work is not PRODUCT:
        return 0.0
    found = definition.cost(tuple(map(_least, inputs)), tuple(map(_least, outputs)))
    return found.flops or 0.0


def _least(spec: Spec) -> Spec:
    """A spec whose unknown dimensions are one."""
    return spec if spec.is_static or spec.shape is None else Spec(spec.dtype, _known(spec.shape))


def _known(shape: tuple[int | None, ...]) -> tuple[int, ...]:
    return tuple([1 if n is None else n for n in shape])


def _inputs_of(op: Operation) -> tuple[tuple[int, int], ...]:
    return tuple([(t.op.id, t.value_index) for t in op.inputs])


def attributes_of(op: Operation) -> dict[str, str]:
    """Returns the attributes of an operation, and the facts that its op tells, as texts."""
    definition = op.definition
    told = {**definition.attributes(), **definition.facts(tuple([t.spec for t in op.inputs]))}
    return {k: short(v) for k, v in told.items()}


def summary_of(definition: Op) -> str:
    """Returns one sentence about an op."""
    return (type(definition).__doc__ or "").strip().partition("\n")[0]


def _is_result(op: Operation) -> bool:
    function = op.graph.functions.get(op.block.name)
    return function is not None and any(t.op is op for t in function.results)


def output_of(spec: object) -> Output:
    """The message of an output."""
    return Output(dtype=str(spec.dtype), shape=spec.shape)  # type: ignore[attr-defined]


def short(value: object) -> str:
    """Returns an attribute as a text that is not too long."""
    text = str(value)
    return text if len(text) <= ATTRIBUTE_CHARS else text[: ATTRIBUTE_CHARS - 3] + "..."


def made_at(op: Made) -> Origin | None:
    """Returns the user's line that made an operation."""
    place = op.origin.place
    if place is None:
        return None
    file = None if place.cell is not None else place.filename
    return Origin(
        file=file,
        cell=place.cell,
        line=place.line,
        text=place.text,
        function=place.function,
        variable=op.origin.variable,
    )


class Outline(Node):
    """An operation of whose `Node` only what says where it stands is made at once.

    The text of a large graph shows few operations, and asks all of them for that alone. Inputs,
    outputs and the rest are made when they are first asked for.

    Args:
        op: The operation.
        is_framed: Whether its graph has loops made by hand.
    """

    _op: Operation
    # What most operations have.
    is_result = False
    calls = scope = frame = ""

    def __init__(self, op: Operation, is_framed: bool) -> None:
        definition, body = op.definition, op.block.name
        # In one go: a frozen dataclass takes no attributes one by one.
        own = vars(self)
        own.update(_op=op, id=op.id, name=op.name, type=op.type, body=body)
        if body:
            own["is_result"] = _is_result(op)
        if is_framed:
            own["scope"], own["frame"] = shown(op)
        if isinstance(definition, Call | Cond | Loop):
            own["calls"] = definition.function.name if isinstance(definition, Call) else ""
            own.update(blocks_of(op))

    def __getattr__(self, name: str) -> Any:
        if name == "inputs":
            found: Any = _inputs_of(self._op)
        elif name in Node.__dataclass_fields__:
            found = getattr(node_of(self._op, None), name)
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        vars(self)[name] = found
        return found

    @property
    def flops(self) -> float:
        """See `Node.flops`."""
        return node_of(self._op, None).flops

    __eq__ = object.__eq__
    __hash__ = object.__hash__


class Described(Sequence[Node]):
    """Operations as `Node`s, which are made when somebody looks at them one by one.

    Args:
        operations: The operations.
        placements: Device by operation id, as far as known.
    """

    def __init__(self, operations: Sequence[Operation], placements: Mapping[int, str]) -> None:
        self.operations = operations
        self.placements = placements
        self._nodes: tuple[Node, ...] | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All of them."""
        if self._nodes is None:
            placed = self.placements
            self._nodes = tuple([node_of(op, placed.get(op.id)) for op in self.operations])
        return self._nodes

    def outlines(self) -> tuple[Outline, ...]:
        """Returns all of them for a text, which shows few: they know where they stand."""
        operations = self.operations
        is_framed = bool(operations) and has_frames(operations[0].graph)
        return tuple([Outline(op, is_framed) for op in operations])

    def __len__(self) -> int:
        return len(self.operations)

    @overload
    def __getitem__(self, index: int) -> Node: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Node, ...]: ...
    def __getitem__(self, index: int | slice) -> Node | tuple[Node, ...]:
        return self.nodes[index]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.nodes == tuple(other)

    __hash__ = None  # type: ignore[assignment]


__all__ = [
    "Described",
    "Outline",
    "attributes_of",
    "flops_of",
    "made_at",
    "node_of",
    "output_of",
    "short",
    "summary_of",
]
