"""Mirrored variables: a copy per replica, which all begin with the value of replica 0's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

import flowscope as fs
from flowscope.errors import InvalidArgumentError
from flowscope.replicator.building import ReplicaContext, replica_or_none
from flowscope.replicator.primitives import all_reduce

if TYPE_CHECKING:
    from flowscope.replicator.replicator import Replicator

_AGGREGATIONS = {
    fs.VariableAggregation.SUM: "sum",
    fs.VariableAggregation.MEAN: "mean",
    fs.VariableAggregation.ONLY_FIRST_REPLICA: "only_first",
}


class MirroredVariable(fs.Variable):
    """A variable of which each replica has a copy.

    While a replica is built it is that replica's copy. Elsewhere reads see replica 0's copy, writes
    go to all copies, and checkpoints hold one value under the name that one device has.

    Args:
        replicator: Whose replicas have the copies.
        copies: The copies, in the order of the replicas.
        trainable: Whether it is trained.
        arguments: Those of `fs.Variable`, by name.

    Attributes:
        copies: See above.
    """

    def __init__(
        self,
        replicator: Replicator,
        copies: Sequence[fs.Variable],
        trainable: bool,
        arguments: dict[str, Any],
    ) -> None:
        self._replicator = replicator
        self.copies = tuple(copies)
        self.trainable = trainable
        self.constraint = arguments.get("constraint")
        self.synchronization = arguments["synchronization"]
        self.aggregation = arguments["aggregation"]
        with fs.init_scope(), fs.name_scope(None):
            initializers = [v.initializer for v in copies]
            one = len(copies) == 1
            self.initializer = initializers[0] if one else _group(self.copies[0], initializers)

    def _replica(self) -> ReplicaContext | None:
        """The replica whose copy it is now; None outside of all."""
        found = replica_or_none()
        return found if found is not None and found.replicator is self._replicator else None

    @property
    def _copy(self) -> fs.Variable:
        found = self._replica()
        return self.copies[found.index if found is not None else 0]

    @property
    def handle(self) -> fs.Tensor:  # type: ignore[override]
        """The handle of the copy."""
        return self._copy.handle

    @property
    def initial_value(self) -> fs.Tensor:  # type: ignore[override]
        """The tensor of the initial value: of replica 0's copy, which the others follow."""
        return self.copies[0].initial_value

    def value(self) -> fs.Tensor:
        """Returns the copy's value at this place in program order."""
        return self._copy.value()

    def initialized_value(self) -> fs.Tensor:
        """Returns the copy's value, or the initial value where it has none yet."""
        return self._copy.initialized_value()

    def is_initialized(self, name: str | None = None) -> fs.Tensor:
        """Returns a bool scalar: whether the copy has a value; outside of replicas: all copies."""
        if self._replica() is not None or len(self.copies) == 1:
            return self._copy.is_initialized(name)
        return fs.reduce_all([v.is_initialized() for v in self.copies], name=name)

    def eval(self, session: Any = None) -> Any:
        """Returns the copy's value as an array."""
        return self._copy.eval(session)

    def set_shape(self, shape: Any) -> None:
        """Adds what is known of the shape of all copies."""
        for v in self.copies:
            v.set_shape(shape)

    def _as_graph_element(self) -> fs.Tensor:
        return self._copy._as_graph_element()

    def _write(self, op: Any, value: Any, name: str, read_value: bool) -> Any:
        replica = self._replica()
        if replica is not None:
            how = _AGGREGATIONS.get(self.aggregation)
            if how is not None and not op.type.startswith("Count"):
                value = all_reduce(fs.convert_to_tensor(value, self.dtype), how)
            return super()._write(op, value, name, read_value)
        if len(self.copies) == 1:
            return self.copies[0]._write(op, value, name, read_value)
        taken = fs.convert_to_tensor(value, self.dtype)
        written = [v._write(op, taken, name, False) for v in self.copies]
        if not read_value:
            return fs.group(*written)
        with fs.control_dependencies(written):
            return self.copies[0].read_value()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, MirroredVariable):
            return self.copies[0].handle is other.copies[0].handle
        return False

    def __hash__(self) -> int:
        return hash(self.copies[0].handle)


def _group(first: fs.Variable, initializers: list[fs.Operation]) -> fs.Operation:
    with fs.name_scope(first.op.name + "/"):
        return fs.group(*initializers, name="init_copies")


class VariableMirror:
    """Makes the variables of a replicator, as `fs.variable_creator_scope` has it.

    What replica 0 makes is made for all replicas at once; when another replica asks for a variable
    of the same name in the same scope, it gets that one.

    Args:
        replicator: The replicator.
    """

    def __init__(self, replicator: Replicator) -> None:
        self._replicator = replicator
        #: What replica 0 of the step that is built has made, by relative scope and name.
        self._made: dict[tuple[str, str], list[MirroredVariable]] = {}
        self._taken: dict[tuple[str, str], int] = {}
        #: All that was made, by graph.
        self._all: list[MirroredVariable] = []

    def variables(self, graph: fs.Graph) -> list[MirroredVariable]:
        """Returns the variables of a graph, as they were made."""
        live = [v for v in self._all if v.graph is graph and v.copies[0].op.stale is None]
        return list(dict.fromkeys(live))

    def begin_step(self) -> None:
        """Forgets what another step has made: a new one is built."""
        self._made = {}

    def begin_replica(self) -> None:
        """Another replica is built, which has asked for nothing yet."""
        self._taken = {}

    def create(self, next_creator: Callable[..., fs.Variable], **arguments: Any) -> Any:
        """Returns the variable of these arguments, which are those of `fs.Variable`."""
        if arguments.get("variable_def") is not None:
            return next_creator(**arguments)
        replica = replica_or_none()
        if replica is not None and replica.replicator is not self._replicator:
            return next_creator(**arguments)
        key = _relative_scope(replica), arguments.get("name") or "Variable"
        if replica is not None and replica.index:
            return self._shared(key, replica.index, arguments)
        made = self._new(next_creator, arguments)
        self._made.setdefault(key, []).append(made)
        self._all.append(made)
        return made

    def _shared(
        self, key: tuple[str, str], replica: int, arguments: dict[str, Any]
    ) -> MirroredVariable:
        """The variable that replica 0 has made at this place."""
        found, number = self._made.get(key, []), self._taken.get(key, 0)
        if number >= len(found):
            raise InvalidArgumentError(
                f"replica {replica} makes a variable {key[1]!r} that replica 0 does not make: all "
                "replicas make the same variables in the same order"
            )
        self._taken[key] = number + 1
        return found[number]

    def _new(
        self, next_creator: Callable[..., fs.Variable], arguments: dict[str, Any]
    ) -> MirroredVariable:
        trainable = arguments.get("trainable")
        if trainable is None:
            on_read = fs.VariableSynchronization.ON_READ
            trainable = arguments["synchronization"] is not on_read
        collections = arguments.get("collections")
        own = {**arguments, "collections": [], "trainable": False}
        graph = fs.get_default_graph()
        with self._device_of_variables(0):
            first = next_creator(**own)
        others = range(1, self._replicator.num_replicas)
        copies = [first, *[self._copy(next_creator, own, first, i) for i in others]]
        made = MirroredVariable(self._replicator, copies, trainable, arguments)
        if collections is None:
            collections = [fs.GraphKeys.GLOBAL_VARIABLES]
        if trainable:
            collections = [*collections, fs.GraphKeys.TRAINABLE_VARIABLES]
        graph.add_to_collections(list(collections), made)
        return made

    def _copy(
        self,
        next_creator: Callable[..., fs.Variable],
        arguments: dict[str, Any],
        first: fs.Variable,
        replica: int,
    ) -> fs.Variable:
        """The copy of a replica, whose initial value is what replica 0's copy has."""
        graph, place = fs.get_default_graph(), self._replicator.device_of_variables(replica)
        own = {**arguments, "name": f"{first.op.name}/replica_{replica}"}
        own |= {"dtype": None, "shape": None, "expected_shape": None}
        with (
            graph.colocate_with(None, ignore_existing=True),
            graph.device(None),
            fs.init_scope(),
            fs.name_scope(None),
        ):
            with fs.name_scope(first.op.name + "/"):
                own["initial_value"] = first.initialized_value()
            with graph.device(place or None):
                return next_creator(**own)

    def _device_of_variables(self, replica: int) -> AbstractContextManager[Any]:
        place = self._replicator.chosen_device_of_variables(replica)
        return fs.device(place) if place is not None else ExitStack()


def _relative_scope(replica: ReplicaContext | None) -> str:
    """The name scope below that of the replica that is built."""
    scope = fs.get_default_graph().get_name_scope()
    return scope.removeprefix(replica.scope) if replica is not None else scope


__all__ = ["MirroredVariable", "VariableMirror"]
