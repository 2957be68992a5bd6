"""What replicas do together, called in step functions: sums, gathers, broadcasts and maps.

All take and return nests of tensors. All replicas call the same ones, in the same order, with the
same structures, dtypes and shapes; otherwise the building of the step fails, and names both lines.
Gradients flow through: that of a sum is the sum of the replicas' cotangents, and so on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import flowscope as fs
from flowscope.errors import InvalidArgumentError, UnimplementedError
from flowscope.replicator.building import PrimitiveCall, ReplicatedBuild, current_replica
from flowscope.replicator.values import PerReplica, ReduceOp, as_reduce_op, map_values


def current_replica_id() -> int:
    """Returns the number of the replica that is being built, from 0.

    Raises:
        FailedPreconditionError: outside of step functions.
    """
    return current_replica().replica_id


def num_replicas_in_sync() -> int:
    """Returns how many replicas meet in the primitives of the step that is being built.

    Raises:
        FailedPreconditionError: outside of step functions.
    """
    return current_replica().replicator.num_replicas_in_sync


@dataclasses.dataclass(frozen=True)
class _Leafwise:
    """Base of primitives that treat each leaf for itself."""

    is_mirrored = True

    def join(self, build: ReplicatedBuild, calls: Sequence[PrimitiveCall]) -> list[list[fs.Tensor]]:
        columns = zip(*[call.leaves for call in calls], strict=True)
        joined = [self.join_leaf(build, list(xs), i) for i, xs in enumerate(columns)]
        return [[column[replica] for column in joined] for replica in range(len(calls))]

    def join_leaf(
        self, build: ReplicatedBuild, xs: list[fs.Tensor], leaf: int
    ) -> Sequence[fs.Tensor]:
        """Returns each replica's result for one leaf."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class ReducePrimitive(_Leafwise):
    """The elementwise reduction of the replicas' tensors, in the order of the replicas."""

    reduction: str

    @property
    def name(self) -> str:
        return f"all_{self.reduction}"

    def join_leaf(
        self, build: ReplicatedBuild, xs: list[fs.Tensor], leaf: int
    ) -> Sequence[fs.Tensor]:
        return build.replicator.exchange_reduced(xs, self.reduction)

    def gradient(self, x: fs.Tensor, y: fs.Tensor, g: fs.Tensor, leaf: int) -> Any:
        if self.reduction in ("sum", "mean"):
            return _called(ReducePrimitive(self.reduction), g)
        if self.reduction == "prod":
            whole = _gathered(x)
            rank = current_replica_id()
            others = fs.concat([whole[:rank], whole[rank + 1 :]], 0)
            return all_sum(g) * fs.reduce_prod(others, 0)
        mask = fs.cast(fs.equal(x, y), x.dtype)
        return all_sum(g) * mask / all_sum(mask)


@dataclasses.dataclass(frozen=True)
class GatherPrimitive(_Leafwise):
    """The replicas' tensors, one behind the other on a new first axis."""

    name = "all_gather"

    def join_leaf(
        self, build: ReplicatedBuild, xs: list[fs.Tensor], leaf: int
    ) -> Sequence[fs.Tensor]:
        rows = []
        for replica, x in enumerate(xs):
            with fs.device(build.replicator.device_of(replica)):
                rows.append(fs.expand_dims(x, 0))
        return build.replicator.exchange_gathered(rows)

    def gradient(self, x: fs.Tensor, y: fs.Tensor, g: fs.Tensor, leaf: int) -> Any:
        return all_sum(g)[current_replica_id()]


@dataclasses.dataclass(frozen=True)
class RowsPrimitive(_Leafwise):
    """The rows of the replicas' tensors, one replica's after the other's."""

    name = "all_rows"

    def join_leaf(
        self, build: ReplicatedBuild, xs: list[fs.Tensor], leaf: int
    ) -> Sequence[fs.Tensor]:
        return build.replicator.exchange_gathered(xs)

    def gradient(self, x: fs.Tensor, y: fs.Tensor, g: fs.Tensor, leaf: int) -> Any:
        raise UnimplementedError("no gradient flows through the gathered rows of sparse gradients")


@dataclasses.dataclass(frozen=True)
class BroadcastPrimitive(_Leafwise):
    """The tensor of one replica, for all; each leaf may have a source of its own."""

    sources: tuple[int, ...]
    name: str = "broadcast"

    def _source(self, leaf: int) -> int:
        return self.sources[leaf % len(self.sources)]

    def join_leaf(
        self, build: ReplicatedBuild, xs: list[fs.Tensor], leaf: int
    ) -> Sequence[fs.Tensor]:
        return build.replicator.exchange_broadcast(xs, self._source(leaf))

    def gradient(self, x: fs.Tensor, y: fs.Tensor, g: fs.Tensor, leaf: int) -> Any:
        total = all_sum(g)
        return total if current_replica_id() == self._source(leaf) else fs.zeros_like(x)


@dataclasses.dataclass(frozen=True)
class MergePrimitive:
    """A function of all replicas' values, called once for all."""

    function: Callable[..., Any] = dataclasses.field(compare=False)
    name = "merge_call"
    is_mirrored = False

    def join(self, build: ReplicatedBuild, calls: Sequence[PrimitiveCall]) -> list[list[fs.Tensor]]:
        given = [fs.nest.flatten(call.arguments) for call in calls]
        columns = [PerReplica(xs) for xs in zip(*given, strict=True)]
        arguments = fs.nest.pack_sequence_as(calls[0].arguments, columns)
        build.replicator.check_merges(calls[0].place)
        found = self.function(build.replicator, *arguments)
        leaves: list[Any] = []
        map_values(leaves.append, found)
        count = len(calls[0].references)
        if len(leaves) != count:
            raise InvalidArgumentError(
                f"expected {count} values of the function of merge_call, as many as what they are "
                f"like{calls[0].place}, got {len(leaves)}"
            )
        rows = [_for_all(leaf, len(calls)) for leaf in leaves]
        return [[row[replica] for row in rows] for replica in range(len(calls))]

    def gradient(self, x: fs.Tensor, y: fs.Tensor, g: fs.Tensor, leaf: int) -> Any:
        raise UnimplementedError("no gradient flows through merge_call: its function is not known")


def _for_all(value: Any, count: int) -> tuple[fs.Tensor, ...]:
    values = value if isinstance(value, PerReplica) else (value,) * count
    return tuple([fs.convert_to_tensor(v) for v in values])


def _called(primitive: Any, nest: Any, shapes: Any = None) -> Any:
    __tracebackhide__ = True
    return current_replica().build.call(primitive, nest, shapes)


def all_reduce(nest: Any, op: ReduceOp | str = ReduceOp.SUM) -> Any:
    """Returns the elementwise reduction of the replicas' tensors, for each replica.

    Args:
        nest: This replica's tensors.
        op: SUM, MEAN, MIN or MAX; also "prod".

    Raises:
        FailedPreconditionError: outside of step functions.
        InvalidArgumentError: if replicas differ in what they call, or in structure, dtype or shape.
    """
    __tracebackhide__ = True
    if op == "prod":
        return _called(ReducePrimitive("prod"), nest)
    found = as_reduce_op(op)
    if found is ReduceOp.ONLY_FIRST:
        return broadcast(nest, 0)
    return _called(ReducePrimitive(found.value), nest)


def all_sum(nest: Any) -> Any:
    """Returns the sum of the replicas' tensors, added in the order of the replicas.

    Raises:
        FailedPreconditionError, InvalidArgumentError: see `all_reduce`.
    """
    __tracebackhide__ = True
    return _called(ReducePrimitive("sum"), nest)


def all_min(nest: Any) -> Any:
    """Returns the least elements of the replicas' tensors; raises as `all_reduce` does."""
    __tracebackhide__ = True
    return _called(ReducePrimitive("min"), nest)


def all_max(nest: Any) -> Any:
    """Returns the greatest elements of the replicas' tensors; raises as `all_reduce` does."""
    __tracebackhide__ = True
    return _called(ReducePrimitive("max"), nest)


def all_gather(nest: Any) -> Any:
    """Returns the replicas' tensors on a new first axis, in the order of the replicas.

    Shapes: s -> [number of replicas, *s]
    Raises: see `all_reduce`.
    """
    __tracebackhide__ = True
    return _gathered(nest)


def _gathered(nest: Any) -> Any:
    __tracebackhide__ = True
    count = num_replicas_in_sync()
    shapes = []
    for leaf in fs.nest.flatten(nest):
        dims = fs.convert_to_tensor(leaf).shape
        shapes.append(fs.TensorShape([count]).concatenate(dims))
    return _called(GatherPrimitive(), nest, shapes)


def gather_rows(nest: Any) -> Any:
    """Returns the rows of the replicas' tensors; how many there are may differ among replicas."""
    shapes = []
    for leaf in fs.nest.flatten(nest):
        dims = fs.convert_to_tensor(leaf).shape
        shapes.append(fs.TensorShape([None]).concatenate(dims[1:]))
    return _called(RowsPrimitive(), nest, shapes)


def broadcast(nest: Any, source: int = 0) -> Any:
    """Returns the tensors of one replica, for each replica; all replicas build theirs.

    Args:
        nest: This replica's tensors.
        source: The number of the replica whose tensors all get.

    Raises:
        InvalidArgumentError: if there is no such replica; else see `all_reduce`.
    """
    __tracebackhide__ = True
    count = num_replicas_in_sync()
    if isinstance(source, bool) or not isinstance(source, int) or not 0 <= source < count:
        raise InvalidArgumentError(
            f"expected the number of one of {count} replicas as the source, got {source!r}"
        )
    return _called(BroadcastPrimitive((source,)), nest)


def merge_call(function: Callable[..., Any], *args: Any, like: Any = None) -> Any:
    """Has a function see the values of all replicas at once; each replica gets its results.

    Args:
        function: `(replicator, *values) -> values`: called once, when all replicas are built, with
            a `PerReplica` in the place of each tensor of `args`. It returns a `PerReplica`, or one
            value for all, in the place of each tensor of `like`.
        args: Nests of this replica's tensors.
        like: A nest of tensors with the dtypes and shapes of the results; by default `args[0]`, or
            all of `args` where there are several.

    Raises:
        InvalidArgumentError: if the function returns something else; else see `all_reduce`.
    """
    __tracebackhide__ = True
    wanted = (args[0] if len(args) == 1 else args) if like is None else like
    taken = [fs.convert_to_tensor(leaf) for leaf in fs.nest.flatten(args)]
    arguments = fs.nest.pack_sequence_as(args, taken)
    return current_replica().build.call(MergePrimitive(function), wanted, None, arguments)


def map_gather(items: Sequence[Any], function: Callable[[Any], Any]) -> list[Any]:
    """Returns a function's results for a list, each computed by one replica: item i by i mod n.

    Args:
        items: The same on all replicas.
        function: Returns a nest of tensors, of the same structure, dtypes and shapes for all items.

    Raises:
        InvalidArgumentError: if there are no items, or results differ in structure, dtype or shape;
            else see `all_reduce`.
    """
    __tracebackhide__ = True
    values = list(items)
    if not values:
        raise InvalidArgumentError("expected items to map, got none")
    count, mine = num_replicas_in_sync(), current_replica_id()
    made = {i: function(values[i]) for i in range(mine, len(values), count)}
    # What another replica computes has the structure of an own result. A replica that computes
    # nothing builds one, which no step runs.
    example = made[mine] if made else function(values[0])
    for i, value in made.items():
        _check_alike(example, value, i)
    rows = [made.get(i, example) for i in range(len(values))]
    size = len(fs.nest.flatten(example))
    sources = tuple([i % count for i in range(len(values)) for _ in range(size)])
    return list(_called(BroadcastPrimitive(sources, "map_gather"), rows))


def _check_alike(example: Any, value: Any, item: int) -> None:
    """Raises InvalidArgumentError unless a function's results for two items are alike."""
    fs.nest.assert_same_structure(example, value)
    pairs = zip(fs.nest.flatten(example), fs.nest.flatten(value), strict=True)
    for a, b in ((fs.convert_to_tensor(x), fs.convert_to_tensor(y)) for x, y in pairs):
        if a.dtype is not b.dtype or a.shape.as_list() != b.shape.as_list():
            raise InvalidArgumentError(
                f"expected results of one dtype and shape for all items, {a.dtype.name}{a.shape}, "
                f"got {b.dtype.name}{b.shape} for item {item}"
            )


def map_reduce(
    items: Sequence[Any], function: Callable[[Any], Any], op: ReduceOp | str = ReduceOp.SUM
) -> Any:
    """Returns the reduction of a function's results for a list, computed as by `map_gather`.

    Each replica reduces what it has computed, in the order of the items, and then the replicas'
    results are reduced.

    Args:
        items: See `map_gather`.
        function: See `map_gather`.
        op: SUM, MEAN, MIN, MAX or ONLY_FIRST (that of the first item).

    Raises:
        InvalidArgumentError: see `map_gather`.
    """
    __tracebackhide__ = True
    found = as_reduce_op(op)
    values, count, mine = list(items), num_replicas_in_sync(), current_replica_id()
    if len(values) < count or found is ReduceOp.ONLY_FIRST:
        results = map_gather(values, function)
        if found is ReduceOp.ONLY_FIRST:
            return results[0]
        return _folded(found, results, len(values))
    made = [function(values[i]) for i in range(mine, len(values), count)]
    for i, value in enumerate(made):
        _check_alike(made[0], value, mine + i * count)
    is_mean = found is ReduceOp.MEAN
    own = _folded(ReduceOp.SUM if is_mean else found, made, 1)
    total = all_reduce(own, ReduceOp.SUM if is_mean else found)
    return _scaled(total, len(values)) if is_mean else total


def _folded(op: ReduceOp, results: Sequence[Any], count: int) -> Any:
    columns = zip(*[fs.nest.flatten(result) for result in results], strict=True)
    combine = {ReduceOp.MIN: fs.minimum, ReduceOp.MAX: fs.maximum}.get(op, fs.add)
    leaves = []
    for first, *others in columns:
        total = fs.convert_to_tensor(first)
        for other in others:
            total = combine(total, other)
        leaves.append(total)
    found = fs.nest.pack_sequence_as(results[0], leaves)
    return _scaled(found, count) if op is ReduceOp.MEAN else found


def _scaled(nest: Any, count: int) -> Any:
    return fs.nest.pack_sequence_as(nest, [x / count for x in fs.nest.flatten(nest)])


__all__ = [
    "all_gather",
    "all_max",
    "all_min",
    "all_reduce",
    "all_sum",
    "broadcast",
    "current_replica_id",
    "gather_rows",
    "map_gather",
    "map_reduce",
    "merge_call",
    "num_replicas_in_sync",
]
