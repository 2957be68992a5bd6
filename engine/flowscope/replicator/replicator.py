"""`fs.replicator.Replicator`: a step function is written for one device, and runs on one.

Subclasses run it on several, by a change of the line that makes the replicator.

Source: names and semantics of Buchlovsky et al. 2019, "TF-Replicator: Distributed Machine Learning
for Researchers".
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import flowscope as fs
from flowscope.errors import FailedPreconditionError, InvalidArgumentError
from flowscope.replicator.building import (
    ReplicaContext,
    ReplicatedBuild,
    built_replica,
    current_replica,
    replica_or_none,
)
from flowscope.replicator.collection_views import CollectionViews
from flowscope.replicator.inputs import InputContext, InputMode, pipelines
from flowscope.replicator.optimizer import ReplicatedOptimizer
from flowscope.replicator.values import (
    Mirrored,
    PerReplica,
    ReduceOp,
    as_reduce_op,
    map_values,
)
from flowscope.replicator.variables import VariableMirror

#: Under this name the scopes of replicators that are open are kept in a graph's `thread_extras`.
_SCOPES = "replicator_scopes"


class Replicator:
    """Runs step functions on one device.

        replicator = fs.replicator.Replicator()

        def train_step(batch):
            loss = fs.reduce_mean(model(batch))
            return loss, optimizer.minimize(loss)

        optimizer = replicator.wrap_optimizer(fs.train.AdamOptimizer(1e-3))
        losses, train_op = replicator.run(train_step, input_fn)
        with replicator.session() as session:
            while training:
                session.run([replicator.reduce(losses, "mean"), train_op])

    Args:
        device: The device, as `fs.device` takes it; None for any.
        input_mode: How many input pipelines there are.

    Attributes:
        num_replicas: How many replicas this program builds.
        num_replicas_in_sync: How many replicas meet in the primitives of a step.

    Example:
        >>> replicator = fs.replicator.Replicator()
        >>> def step():
        ...     w = fs.get_variable("w", [], initializer=fs.ones_initializer())
        ...     return w + fs.replicator.all_sum(2.0)
        >>> y = replicator.run(step)
        >>> with replicator.session() as sess:
        ...     print(sess.run(replicator.reduce(y, "mean")))
        3.0
    """

    def __init__(self, device: Any = None, *, input_mode: InputMode = InputMode.PER_WORKER) -> None:
        self._begin([[device]], input_mode)

    def _begin(
        self, devices: Sequence[Sequence[Any]], input_mode: InputMode, target: Any = ""
    ) -> None:
        """Sets what all kinds have.

        Args:
            devices: Per replica its logical devices.
            input_mode: How many input pipelines there are.
            target: What sessions connect with.
        """
        if not isinstance(input_mode, InputMode):
            raise InvalidArgumentError(f"expected an InputMode, got {input_mode!r}")
        self._devices = [[_name(device) for device in row] for row in devices]
        self._input_mode = input_mode
        self._target = target
        self._mirror = VariableMirror(self)
        self._logical_for_variables: int | None = None
        self._views: weakref.WeakKeyDictionary[fs.Graph, CollectionViews] = (
            weakref.WeakKeyDictionary()
        )

    @property
    def num_replicas(self) -> int:
        """How many replicas this program builds."""
        return len(self._devices)

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas meet in the primitives of a step."""
        return self.num_replicas

    # -- building -------------------------------------------------------------------------------

    def run(
        self,
        step_fn: Callable[..., Any],
        input_fn: Callable[[InputContext], Any] | None = None,
        name: str | None = None,
    ) -> Any:
        """Builds a step for all replicas; may be called with several step functions.

        Args:
            step_fn: Builds the step of one replica, and returns a nest of tensors and operations.
                It gets one element of the input; nothing where there is no `input_fn`.
            input_fn: Returns the dataset, or a generator, of one input pipeline, whose
                `InputContext` it gets. The batches that it makes are those of one replica.
            name: Name scope; the name of `step_fn` by default.

        Returns:
            The nest of `step_fn`, with a `PerReplica` of the replicas' tensors in the place of each
            tensor; a `Mirrored` where they are equal by how they were made. In the place of an
            operation stands one that runs all replicas' operations.

        Raises:
            InvalidArgumentError: if replicas differ in what they return, in the variables that they
                make, or in the primitives that they call. An exception in `step_fn` notes which
                replica was built.
        """
        if replica_or_none() is not None:
            raise FailedPreconditionError("Replicator.run is called while a replica is built")
        takes = self._inputs(input_fn)
        with fs.name_scope(_scope_name(step_fn) if name is None else name), self.scope():
            return self._build(step_fn, takes)

    def _build(self, step_fn: Callable[..., Any], takes: list[Callable[[], Any]] | None) -> Any:
        """The results of a step that is built for all replicas in turn, and joined."""
        build = ReplicatedBuild.begin(self)
        self._mirror.begin_step()
        outputs: list[Any] = []
        rewind = _VariableScopeNames()
        for replica in range(self.num_replicas):
            with rewind.replica(replica):
                outputs.append(self._built(build, replica, step_fn, takes))
        rewind.end()
        for replica, found in enumerate(outputs[1:], 1):
            _check_returned(outputs[0], found, replica)
        _join_updates(f"{build.graph.get_name_scope()}/replica_")
        build.join()
        columns = zip(*map(fs.nest.flatten, outputs), strict=True)
        leaves = [self._returned(build, values) for values in columns]
        return fs.nest.pack_sequence_as(outputs[0], leaves)

    def _built(
        self,
        build: ReplicatedBuild,
        replica: int,
        step_fn: Callable[..., Any],
        takes: list[Callable[[], Any]] | None,
    ) -> Any:
        """What the step function returns for a replica."""
        views = self._views.setdefault(build.graph, CollectionViews())
        self._mirror.begin_replica()
        number = self._replica_id(replica)
        step_scope = build.graph.get_name_scope()
        try:
            with (
                fs.name_scope(f"replica_{self.scope_number(replica)}") as scope,
                views.view(replica, step_scope),
                built_replica(ReplicaContext(replica, number, build, scope.rstrip("/"))),
                fs.device(self.device_of(replica) or None),
                fs.random.fold_seeds(number),
            ):
                arguments = [] if takes is None else [takes[replica]()]
                found = step_fn(*arguments)
                leaves = [_as_result(leaf) for leaf in fs.nest.flatten(found)]
                return fs.nest.pack_sequence_as(found, leaves)
        except Exception as e:
            e.add_note(f"while replica {replica} of {self.num_replicas} was built")
            raise

    def _replica_id(self, replica: int) -> int:
        """The number that a replica of this program has among all in sync."""
        return replica

    def scope_number(self, replica: int) -> int:
        """Returns the number by which the name scope of a replica of this program is called."""
        return self._replica_id(replica)

    def _inputs(self, input_fn: Callable[[InputContext], Any] | None) -> Any:
        if input_fn is None:
            return None
        places = [self.device_of(replica) for replica in range(self.num_replicas)]
        with fs.name_scope("input"):
            return pipelines(input_fn, places, self._input_mode, self._input_context)

    def _input_context(self, number: int, count: int) -> InputContext:
        """What the pipeline of a number is told, of so many of this program."""
        return InputContext(count, number, self.num_replicas_in_sync)

    def _returned(self, build: ReplicatedBuild, values: Sequence[Any]) -> Any:
        """What stands in the results for the replicas' values."""
        if isinstance(values[0], fs.Operation):
            return values[0] if len(values) == 1 else fs.group(*values, name="all_replicas")
        if all(v is None for v in values):
            return None
        kind = Mirrored if build.is_mirrored(values) else PerReplica
        return kind(values)

    # -- values ---------------------------------------------------------------------------------

    def reduce(self, values: Any, op: ReduceOp | str) -> Any:
        """Returns one tensor on the current device for the replicas' values.

        Args:
            values: A nest of `PerReplica` values.
            op: SUM, MEAN, MIN, MAX or ONLY_FIRST, or its name.

        Raises:
            InvalidArgumentError: if a leaf is no `PerReplica`, or there is no such reduction.
        """
        found = as_reduce_op(op)

        def reduced(value: Any) -> fs.Tensor:
            if not isinstance(value, PerReplica):
                raise InvalidArgumentError(f"expected PerReplica values to reduce, got {value!r}")
            if found is ReduceOp.ONLY_FIRST:
                return fs.identity(value[0])
            return fs.collectives.reduce(list(value), found.value)

        return map_values(reduced, values)

    def broadcast(self, values: Any) -> Any:
        """Returns tensors once for each replica: a nest of `Mirrored` values.

        Args:
            values: A nest of tensors.
        """
        places = [self.device_of(replica) for replica in range(self.num_replicas)]
        return map_values(lambda x: Mirrored(fs.collectives.broadcast(x, places)), values)

    # -- scopes ---------------------------------------------------------------------------------

    @contextmanager
    def scope(self) -> Iterator[Replicator]:
        """Variables that are made in the block have a copy per replica.

        `run` opens it for step functions. Within itself it changes nothing.

        Raises:
            FailedPreconditionError: within the scope of another replicator.
        """
        extras = fs.get_default_graph().thread_extras
        open_scopes = extras.get(_SCOPES, ())
        if open_scopes and open_scopes[-1] is not self:
            raise FailedPreconditionError("the scope of another replicator is open")
        with ExitStack() as stack:
            if not open_scopes:
                extras[_SCOPES] = (self,)
                stack.callback(extras.__setitem__, _SCOPES, ())
                stack.enter_context(fs.variable_creator_scope(self._mirror.create))
                stack.enter_context(fs.device(self.device_of(0) or None))
            yield self

    def context(self) -> Any:
        """Returns `scope()`, by its other name."""
        return self.scope()

    def wrap_optimizer(
        self, optimizer: fs.train.Optimizer, op: ReduceOp | str = ReduceOp.MEAN
    ) -> fs.train.Optimizer:
        """Returns an optimizer that applies the mean, or the sum, of the replicas' gradients.

        Args:
            optimizer: What applies them. Use the result in step functions.
            op: MEAN or SUM.

        Raises:
            DTypeError: if that is no optimizer.
            InvalidArgumentError: for another reduction.
        """
        return ReplicatedOptimizer(optimizer, as_reduce_op(op))

    def apply(
        self,
        optimizer: fs.train.Optimizer,
        grads_and_vars: list[tuple[Any, fs.Variable]],
        global_step: fs.Variable | None,
        name: str | None,
    ) -> fs.Operation:
        """Returns the update of a replica by what all replicas' gradients have become."""
        return optimizer.apply_gradients(grads_and_vars, global_step, name)

    @contextmanager
    def logical_device(self, number: int) -> Iterator[None]:
        """Places operations of a step function on one of the devices of their replica.

        Args:
            number: Of the replica's devices, from 0; the input arrives on number 0.

        Raises:
            FailedPreconditionError: outside of step functions.
            InvalidArgumentError: if there is no such device.
        """
        replica = current_replica().index
        with fs.device(self._device(replica, number) or None):
            yield

    @contextmanager
    def logical_device_for_variables(self, number: int) -> Iterator[None]:
        """Places the variables that are made in the block on one of the devices of each replica.

        Args:
            number: See `logical_device`.

        Raises:
            InvalidArgumentError: if there is no such device.
        """
        self._device(0, number)
        before, self._logical_for_variables = self._logical_for_variables, number
        try:
            yield
        finally:
            self._logical_for_variables = before

    def _device(self, replica: int, number: int) -> str:
        row = self._devices[replica]
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(row):
            raise InvalidArgumentError(
                f"expected the number of one of {len(row)} logical devices, got {number!r}"
            )
        return row[number]

    def device_of(self, replica: int) -> str:
        """Returns the first device of a replica, "" for any."""
        return self._devices[replica][0]

    def device_of_variables(self, replica: int) -> str:
        """Returns the device on which variables of a replica are made now, "" for any."""
        return self.chosen_device_of_variables(replica) or self.device_of(replica)

    def chosen_device_of_variables(self, replica: int) -> Any:
        """Returns the device that `logical_device_for_variables` asks for, None outside of it."""
        number = self._logical_for_variables
        return None if number is None else self._device(replica, number)

    # -- sessions -------------------------------------------------------------------------------

    @contextmanager
    def session(self, config: fs.ConfigProto | None = None) -> Iterator[fs.Session]:
        """Opens a session where the replicas are; variables, tables and inputs are initialised.

        Args:
            config: Of the session.
        """
        with fs.Session(self._target, config=config) as session:
            self.initialize(session)
            yield session
            self.finalize(session)

    def initialize(self, session: fs.Session) -> None:
        """Gives variables their initial values, fills tables, and begins with the inputs."""
        session.run(fs.global_variables_initializer())
        session.run(fs.local_variables_initializer())
        session.run(fs.tables_initializer())

    def finalize(self, session: fs.Session) -> None:
        """Ends what a session of the replicator has running: nothing, in this kind."""

    def check_copies(self, session: fs.Session) -> None:
        """Checks that the copies of each variable of the default graph have the same bits.

        Args:
            session: A session in which they have values.

        Raises:
            FailedPreconditionError: if copies differ; it names the variables and the replicas.
        """
        found = self._mirror.variables(fs.get_default_graph())
        values = session.run([list(v.copies) for v in found])
        wrong = []
        for variable, copies in zip(found, values, strict=True):
            first = copies[0].tobytes()
            differing = [i for i, x in enumerate(copies) if x.tobytes() != first]
            if differing:
                wrong.append(f"{variable.copies[0].op.name} (replicas {differing})")
        if wrong:
            raise FailedPreconditionError(
                f"copies differ from that of replica 0: {', '.join(wrong)}"
            )

    # -- what primitives exchange ---------------------------------------------------------------

    def exchange_reduced(self, xs: list[fs.Tensor], reduction: str) -> Sequence[fs.Tensor]:
        """Returns the reduction of the replicas' tensors, for each replica of this program."""
        return fs.collectives.all_reduce(xs, reduction, self._places())

    def exchange_gathered(self, xs: list[fs.Tensor]) -> Sequence[fs.Tensor]:
        """Returns the rows of the replicas' tensors, for each replica of this program."""
        return fs.collectives.all_gather(xs, self._places())

    def exchange_broadcast(self, xs: list[fs.Tensor], source: int) -> Sequence[fs.Tensor]:
        """Returns the tensor of the replica `source`, for each replica of this program."""
        return fs.collectives.broadcast(xs[source], self._places())

    def check_merges(self, place: str) -> None:
        """Raises UnimplementedError if `merge_call` cannot see all replicas; here it can.

        Args:
            place: Where it is called, as a sentence goes on.
        """

    def _places(self) -> list[str]:
        return [self.device_of(replica) for replica in range(self.num_replicas)]


class _VariableScopeNames:
    """Has each replica find the names of variable scopes as replica 0 has found them."""

    _COUNTS = "variable_scope_names"

    def __init__(self) -> None:
        self._extras = fs.get_default_graph().thread_extras
        self._before = dict(self._extras.get(self._COUNTS, {}))
        self._after: dict[str, int] = {}
        #: The variables that were there before, and those of the replica with a loss.
        self._known = {v.op.name for v in _variables()}
        self._regular: set[str] = set()

    @contextmanager
    def replica(self, number: int) -> Iterator[None]:
        """The scopes of a replica; all but the first one share the variables of the first one."""
        counts = self._extras.setdefault(self._COUNTS, {})
        if not number:
            yield
            self._after = dict(counts)
            return
        self._set(self._before)
        self._regular = set()
        own = fs.get_variable_scope()
        with fs.variable_scope(
            own, reuse=True, auxiliary_name_scope=False, custom_getter=self._regularized
        ):
            yield

    def _regularized(self, getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        """A shared variable, with the loss of its regularizer as replica 0 has it."""
        found = getter(name, *args, **kwargs)
        regularizer = kwargs.get("regularizer")
        if regularizer is not None and name not in self._known and name not in self._regular:
            self._regular.add(name)
            loss = regularizer(found)
            if loss is not None:
                fs.add_to_collection(fs.GraphKeys.REGULARIZATION_LOSSES, loss)
        return found

    def end(self) -> None:
        """All replicas are built."""
        self._set(self._after)

    def _set(self, wanted: dict[str, int]) -> None:
        counts = self._extras.setdefault(self._COUNTS, {})
        counts.clear()
        counts.update(wanted)


def _variables() -> list[fs.Variable]:
    graph = fs.get_default_graph()
    keys = fs.GraphKeys.GLOBAL_VARIABLES, fs.GraphKeys.LOCAL_VARIABLES
    return [v for key in keys for v in graph.get_collection(key)]


def _name(device: Any) -> str:
    return str(fs.DeviceSpec.from_string(str(device)).to_string()) if device else ""


def _scope_name(step_fn: Callable[..., Any]) -> str:
    name = getattr(step_fn, "__name__", type(step_fn).__name__)
    return name.strip("_") if name.isidentifier() and name.strip("_") else "step"


def _join_updates(prefix: str) -> None:
    """Makes one update group of those of the replicas, so that all copies are updated or none.

    Args:
        prefix: What the names of the replicas' groups begin with, without their numbers.
    """
    first: str | None = None
    for op in fs.get_default_graph().get_operations():
        group = getattr(op.definition, "group", "")
        if not isinstance(group, str) or not group.startswith(prefix):
            continue
        number, _, rest = group[len(prefix) :].partition("/")
        first = number if first is None else first
        if number != first:
            changes: dict[str, Any] = {"group": f"{prefix}{first}/{rest}"}
            op.definition = dataclasses.replace(op.definition, **changes)


def _as_result(leaf: Any) -> Any:
    if leaf is None or isinstance(leaf, fs.Tensor | fs.Operation):
        return leaf
    return fs.convert_to_tensor(leaf)


def _check_returned(first: Any, other: Any, replica: int) -> None:
    try:
        fs.nest.assert_same_structure(first, other)
    except (InvalidArgumentError, TypeError) as e:
        raise InvalidArgumentError(
            f"replica {replica} returns another structure than replica 0: {e}"
        ) from e


__all__ = ["Replicator"]
