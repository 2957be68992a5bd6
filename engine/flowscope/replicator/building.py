"""A step that is built once per replica, and the calls in which the replicas meet.

Replicas are built one after the other. A primitive such as `all_sum` needs all replicas' tensors,
of which it has one: so it returns a forward reference. When all replicas are built, the k-th calls
of all are joined to one collective, whose outputs take the references' places.

Source: Buchlovsky et al. 2019, "TF-Replicator: Distributed Machine Learning for Researchers",
section 4 (placeholders that are rewritten).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import flowscope as fs
from flowscope.errors import FailedPreconditionError, GraphError, InvalidArgumentError

if TYPE_CHECKING:
    from flowscope.replicator.replicator import Replicator

#: Under this name the current replica is kept in a graph's `thread_extras`.
_CURRENT = "replica"


class ReplicaPrimitive(Protocol):
    """What replicas do together. Calls of one kind are equal where their arguments are."""

    name: str
    is_mirrored: bool

    def join(self, build: ReplicatedBuild, calls: Sequence[PrimitiveCall]) -> list[list[fs.Tensor]]:
        """Returns each replica's results, one per leaf."""

    def gradient(self, x: fs.Tensor, y: fs.Tensor, g: fs.Tensor, leaf: int) -> fs.Tensor:
        """Returns the cotangent of a replica's tensor, built in this replica."""


@dataclass
class PrimitiveCall:
    """A replica's call of a primitive.

    Attributes:
        primitive: What is called.
        structure: The nest of the arguments.
        leaves: The replica's tensors.
        references: What stands for the results.
        arguments: What else the replica hands in, a nest of tensors.
    """

    primitive: ReplicaPrimitive
    structure: Any
    leaves: list[fs.Tensor]
    references: list[fs.Tensor]
    arguments: Any = None

    @property
    def place(self) -> str:
        """Where it was called, as a sentence goes on."""
        origin = self.references[0].op.origin.place if self.references else None
        return f" ({origin})" if origin else ""


@dataclass
class ReplicatedBuild:
    """The building of one step for all replicas.

    Attributes:
        replicator: Whose replicas.
        graph: The graph.
        block: The block in which the replicas are built.
        calls: Per replica the calls so far.
    """

    replicator: Replicator
    graph: fs.Graph
    block: Any
    calls: list[list[PrimitiveCall]]
    _pending: dict[fs.Operation, tuple[PrimitiveCall, int]] = field(default_factory=dict)
    _mirrored: set[fs.Tensor] = field(default_factory=set)

    @classmethod
    def begin(cls, replicator: Replicator) -> ReplicatedBuild:
        """Returns one in which no replica has been built, in the default graph."""
        graph = fs.get_default_graph()
        block = graph.building_context()[0]
        return cls(replicator, graph, block, [[] for _ in range(replicator.num_replicas)])

    def call(
        self, primitive: ReplicaPrimitive, nest: Any, shapes: Any = None, arguments: Any = None
    ) -> Any:
        """Adds a primitive to the replica that is built; returns references to the results.

        Args:
            primitive: What is called.
            nest: The replica's tensors.
            shapes: Static shapes of the results, one per leaf; those of the tensors by default.
            arguments: What else the replica hands in, a nest of tensors.

        Raises:
            GraphError: in the body of a branch, a loop or a function.
            InvalidArgumentError: if an earlier replica called something else at this place.
        """
        __tracebackhide__ = True
        replica = current_replica()
        leaves = [fs.convert_to_tensor(leaf) for leaf in fs.nest.flatten(nest)]
        mine = self.calls[replica.index]
        references = []
        with self.graph.gradient_override_map({"ForwardReference": "ReplicaPrimitive"}):
            for i, leaf in enumerate(leaves):
                shape = leaf.shape if shapes is None else shapes[i]
                references.append(
                    fs.collectives.forward_reference(leaf, shape, name=primitive.name)
                )
        call = PrimitiveCall(primitive, nest, leaves, references, arguments)
        if any(ref.op.block is not self.block for ref in references):
            raise GraphError(
                f"{primitive.name} is called in the body of a branch, a loop or a function"
                f"{call.place}: there the replicas cannot meet, for each may take its own way; "
                "call it outside"
            )
        if replica.index:
            self._check(call, len(mine), replica.index)
        mine.append(call)
        for i, ref in enumerate(references):
            self._pending[ref.op] = call, i
            if primitive.is_mirrored:
                self._mirrored.add(ref)
        return fs.nest.pack_sequence_as(nest, references)

    def _check(self, call: PrimitiveCall, number: int, replica: int) -> None:
        """Raises an error unless replica 0 has called the same at this place."""
        first = self.calls[0]
        mine = f"replica {replica} calls {call.primitive.name}{call.place}"
        if number >= len(first):
            raise InvalidArgumentError(
                f"{mine}, but replica 0 calls {len(first)} primitives only, and none here: all "
                "replicas call the same ones in the same order"
            )
        other = first[number]
        theirs = f"replica 0 calls {other.primitive.name}{other.place}"
        if call.primitive != other.primitive:
            raise InvalidArgumentError(
                f"{mine} where {theirs}: all replicas call the same primitives, with the same "
                "arguments, in the same order"
            )
        try:
            fs.nest.assert_same_structure(other.structure, call.structure)
        except (InvalidArgumentError, TypeError) as e:
            raise InvalidArgumentError(f"{mine} with another structure than {theirs}: {e}") from e
        for a, b in zip(other.leaves, call.leaves, strict=True):
            is_same = a.dtype is b.dtype and a.shape.is_compatible_with(b.shape)
            if not is_same and not call.primitive.name.endswith("_rows"):
                raise InvalidArgumentError(
                    f"{mine} with {b.dtype.name}{b.shape} where {theirs} with "
                    f"{a.dtype.name}{a.shape}"
                )

    def pending(self, op: fs.Operation) -> tuple[PrimitiveCall, int] | None:
        """Returns the call and the leaf of a reference that is not resolved yet."""
        return self._pending.get(op)

    def is_mirrored(self, values: Sequence[Any]) -> bool:
        """Whether the replicas' values are the same by how they were made."""
        return len(values) == 1 or all(
            isinstance(v, fs.Tensor) and v in self._mirrored for v in values
        )

    def join(self) -> None:
        """Puts collectives in the places of the references.

        Raises:
            InvalidArgumentError: if a replica has called fewer primitives than replica 0.
        """
        counts = [len(calls) for calls in self.calls]
        for replica, count in enumerate(counts):
            if count < counts[0]:
                missed = self.calls[0][count]
                raise InvalidArgumentError(
                    f"replica 0 calls {missed.primitive.name}{missed.place} where replica "
                    f"{replica} calls nothing more: all replicas call the same primitives"
                )
        pairs: list[tuple[fs.Tensor, fs.Tensor]] = []
        for calls in zip(*self.calls, strict=True):
            with fs.name_scope(calls[0].primitive.name):
                results = calls[0].primitive.join(self, calls)
            for call, found in zip(calls, results, strict=True):
                pairs += zip(call.references, found, strict=True)
        fs.collectives.resolve_references(pairs)
        self._pending.clear()


@dataclass(frozen=True)
class ReplicaContext:
    """The replica that is being built.

    Attributes:
        index: Its number among the replicas that this program builds, from 0.
        replica_id: Its number among all in sync, from 0.
        build: Of which step.
        scope: Its name scope.
    """

    index: int
    replica_id: int
    build: ReplicatedBuild
    scope: str

    @property
    def replicator(self) -> Replicator:
        """The replicator that builds it."""
        return self.build.replicator


def replica_or_none() -> ReplicaContext | None:
    """Returns the replica that is being built in the default graph, None if none is."""
    found: ReplicaContext | None = fs.get_default_graph().thread_extras.get(_CURRENT)
    return found


def current_replica() -> ReplicaContext:
    """Returns the replica that is being built in the default graph.

    Raises:
        FailedPreconditionError: if none is.
    """
    found = replica_or_none()
    if found is None:
        raise FailedPreconditionError(
            "this is for step functions, while Replicator.run builds a replica"
        )
    return found


@contextmanager
def built_replica(replica: ReplicaContext | None) -> Iterator[None]:
    """Makes a replica the current one of the default graph; None: none is."""
    extras = fs.get_default_graph().thread_extras
    before = extras.get(_CURRENT)
    extras[_CURRENT] = replica
    try:
        yield
    finally:
        extras[_CURRENT] = before


@fs.RegisterGradient("ReplicaPrimitive")
def _gradient(op: fs.Operation, g: Any) -> Any:
    """Returns the cotangent of a reference's input; once it is resolved, this is the collective."""
    replica = replica_or_none()
    found = replica.build.pending(op) if replica else None
    if found is None:
        return g
    call, leaf = found
    cotangent = fs.convert_to_tensor(g)
    return call.primitive.gradient(call.leaves[leaf], op.outputs[0], cotangent, leaf)


__all__ = [
    "PrimitiveCall",
    "ReplicaContext",
    "ReplicaPrimitive",
    "ReplicatedBuild",
    "built_replica",
    "current_replica",
    "replica_or_none",
]
