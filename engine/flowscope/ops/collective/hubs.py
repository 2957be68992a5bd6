"""Collectives: operations that all ranks of a group share, with an input and an output per rank.

A graph has one operation for all ranks, so there is one order, one dtype and one shape, known when
it is built; and a step cannot wait for a rank that comes late to the call, for no rank calls. A
plan puts pieces in its place, each on the device of a rank, by `Collective.expand`.

Each element is reduced in the order of the ranks: the first with the second, that with the third.
So its bits depend on no device, transfer or algorithm. Which pieces there are depends on where the
ranks are and on the size:

- one process: one fold of all, which every rank takes, for devices of a process share its memory
  or copy from one;
- several processes and few bytes: each collects what all have and folds it: one hop;
- several processes and many bytes: each folds a slice of all and collects the others' folds: two
  hops, in which a process sends 2K(N-1)/N bytes of K to N - 1 others.

A ring sends as many bytes in 2(N-1) hops: every worker reaches every other directly here.

Source: reduce-scatter and all-gather, Thakur, Rabenseifner and Gropp 2005, "Optimization of
collective communication operations in MPICH".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from flowscope.graph.devices import DeviceSpec
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen, kernel_of
from flowscope.graph.operation import Tensor
from flowscope.graph.scopes import device
from flowscope.graph.values.dtypes import as_dtype, resource, variant
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import is_known
from flowscope.ops.array.arrays import ones_like, zeros_like
from flowscope.ops.array.joining import Concat, concat
from flowscope.ops.collective.pieces import (
    CollectiveFold,
    CollectiveJoin,
    CollectivePart,
    check_reduction,
    one_shape,
)
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.core.casting import cast
from flowscope.ops.core.flow import Identity
from flowscope.ops.math.elementwise import equal, multiply
from flowscope.ops.math.reductions import reduce_prod

#: Up to so many bytes of all ranks together each process collects all, and folds them itself.
EXCHANGE_BYTES = 1 << 18

#: Adds a piece to a plan; see `Op.expand`.
AddPiece = Callable[[Op, Sequence[Any], str], Any]


@frozen
class Collective(Op, abstract=True, is_expanded=True, views=(0,)):
    """Base of collectives. Plans run their pieces; the kernel runs all of these at once.

    Attributes:
        places: The device that each rank asks for, "" for none.
    """

    places: tuple[str, ...]

    def kernel(self, xp: ArrayModule, *xs: Array) -> Any:
        specs = [_spec_of(x) for x in xs]
        found = self.expand(xs, specs, range(self._outputs), _adding_values(xp))
        values = tuple([found[i] for i in range(self._outputs)])
        return values if len(values) > 1 else values[0]

    @property
    def _outputs(self) -> int:
        """How many outputs there are: one per rank, but for what only one of them gets."""
        return len(self.places)

    def _check_group(self, count: int) -> None:
        """Raises InvalidArgumentError if there is not one place for each of `count` inputs."""
        if len(self.places) != count or not count:
            raise expected("one place per tensor, and one tensor at least", len(self.places), count)

    def algorithm(self, specs: Sequence[Spec]) -> str:
        """Returns in a few words how the bytes go.

        Args:
            specs: What is known of the inputs.
        """
        return "one process" if len(tasks_of(self.places)) == 1 else "each rank gets its parts"

    def sent_bytes(self, specs: Sequence[Spec]) -> int | None:
        """Returns how many bytes go from one process to another, all together; None: unknown.

        Args:
            specs: What is known of the inputs.
        """
        sizes = [x.nbytes for x in specs]
        known = [n for n in sizes if n is not None]
        return self._sent(known) if len(known) == len(sizes) else None

    def _sent(self, sizes: Sequence[int]) -> int:
        """The same, for inputs of so many bytes: each part goes from its rank to another one."""
        total = 0
        for ranks in tasks_of(self.places).values():
            for rank, size in enumerate(sizes):
                total += 0 if rank in ranks else size * len(ranks) // len(self.places)
        return total

    def facts(self, inputs: tuple[Spec, ...]) -> Mapping[str, str]:
        sent = self.sent_bytes(inputs)
        return {
            "ranks": str(len(self.places)),
            "algorithm": self.algorithm(inputs),
            "bytes between processes": "not known" if sent is None else str(sent),
        }


def _spec_of(x: Array) -> Spec:
    return Spec(as_dtype(x.dtype), x.shape)


def _adding_values(xp: ArrayModule) -> AddPiece:
    """The function that computes a piece at once."""

    def add(op: Op, xs: Sequence[Array], place: str) -> Array:
        specs = [_spec_of(x) for x in xs]
        spec: Any = op.infer(*specs)
        return kernel_of(op, "CPU", specs, [spec])(xp, *xs)

    return add


def tasks_of(places: Sequence[str]) -> dict[Any, list[int]]:
    """Returns the ranks by the process that they are on, as far as their devices tell."""
    found: dict[Any, list[int]] = {}
    for rank, place in enumerate(places):
        found.setdefault(task_of(place), []).append(rank)
    return found


def task_of(place: str) -> Any:
    """Returns the process that a device is of, as far as its name tells."""
    spec = DeviceSpec.from_string(place)
    return spec.job, spec.replica, spec.task


def _several(found: Any) -> tuple[Any, ...]:
    """One value per output; gradients get it bare where there is one output."""
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def _whole(g: Any, y: Any) -> list[Tensor]:
    """Returns the cotangents of all outputs, zeros where none arrives."""
    pairs = zip(_several(g), _several(y), strict=True)
    return [zeros_like(y) if g is None else g for g, y in pairs]


def _all_reduced(reduction: str, xs: Sequence[Tensor], places: tuple[str, ...]) -> Any:
    return apply_many(AllReduce(places, reduction), *xs)


def _all_gathered(xs: Sequence[Tensor], places: tuple[str, ...]) -> Any:
    return apply_many(AllGather(places), *xs)


def _reduction_grads(
    reduction: str,
    places: tuple[str, ...],
    gs: Sequence[Tensor],
    ys: Sequence[Tensor],
    xs: Sequence[Tensor],
) -> tuple[Tensor, ...]:
    """Returns the cotangents of reduced tensors.

    Args:
        reduction: How they were reduced.
        places: Of the ranks.
        gs: Per rank the cotangent of the whole reduction.
        ys: Per rank the whole reduction.
        xs: The tensors.
    """
    if reduction == "sum":
        return tuple(gs)
    if reduction == "mean":
        count = float(len(xs))
        return _on_each(places, lambda g: g / count, gs)
    if reduction == "prod":
        return _prod_grads(places, gs, xs)
    masks = _on_each(places, lambda x, y: cast(equal(x, y), x.dtype), xs, ys)
    counts = _all_reduced("sum", masks, places)
    return _on_each(places, lambda g, mask, count: g * mask / count, gs, masks, counts)


def _prod_grads(
    places: tuple[str, ...], gs: Sequence[Tensor], xs: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    rows = _on_each(places, lambda x: x[None], xs)
    wholes = _all_gathered(rows, places)
    found = []
    for rank, (name, g, whole) in enumerate(zip(places, gs, wholes, strict=True)):
        with device(name or None):
            if len(xs) == 1:
                found.append(multiply(g, ones_like(xs[0])))
            else:
                others = concat([whole[:rank], whole[rank + 1 :]], 0)
                found.append(multiply(g, reduce_prod(others, 0)))
    return tuple(found)


def _on_each(
    places: Sequence[str], build: Callable[..., Tensor], *tensors: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Returns per rank a function of its tensors, built on its device."""
    found = []
    for place, *own in zip(places, *tensors, strict=True):
        with device(place or None):
            found.append(build(*own))
    return tuple(found)


@frozen
class AllReduce(Collective, grad_reads=("y", "xs")):
    """The elementwise reduction of all ranks' tensors, for each rank.

    Attributes:
        places: The device that each rank asks for, "" for none.
        reduction: "sum", "mean", "min", "max" or "prod", in the order of the ranks.

    Shapes: n times s -> n times s
    Raises: InvalidArgumentError if shapes differ; DTypeError if dtypes differ or do not fit.
    """

    reduction: str

    def infer(self, *xs: Spec) -> Any:
        self._check_group(len(xs))
        check_reduction(self.reduction, xs[0].dtype)
        return (Spec(xs[0].dtype, one_shape(xs)),) * len(xs)

    def grad(self, g: Any, y: Any, *xs: Tensor) -> Any:
        how = "mean" if self.reduction == "mean" else "sum"
        gs = _all_reduced(how, _whole(g, y), self.places)
        if how == "mean":
            return gs
        return _reduction_grads(self.reduction, self.places, gs, _several(y), xs)

    def expand(
        self, xs: Sequence[Any], specs: Sequence[Spec], wanted: Collection[int], add: AddPiece
    ) -> Mapping[int, Any]:
        if len(xs) == 1:
            return {0: add(Identity(), xs, self.places[0])}
        tasks = tasks_of(self.places)
        homes = {task: self.places[ranks[0]] for task, ranks in tasks.items()}
        shape = one_shape(specs)
        if self._is_sliced(specs):
            assert shape is not None
            by_task = self._in_slices(xs, homes, shape, add)
        else:
            fold = CollectiveFold(self.reduction)
            needing = [t for t, ranks in tasks.items() if not set(wanted).isdisjoint(ranks)]
            by_task = {t: add(fold, xs, homes[t]) for t in needing}
        return {r: by_task[t] for t, ranks in tasks.items() for r in ranks if r in wanted}

    def _is_sliced(self, specs: Sequence[Spec]) -> bool:
        """Whether each process folds a slice, and collects the others'."""
        if len(tasks_of(self.places)) == 1 or not is_known(one_shape(specs)):
            return False
        return sum(x.nbytes or 0 for x in specs) > EXCHANGE_BYTES

    def _in_slices(
        self, xs: Sequence[Any], homes: Mapping[Any, str], shape: Any, add: AddPiece
    ) -> dict[Any, Any]:
        """Adds a fold of a slice per process, and the whole of them on each."""
        fold, folds = CollectiveFold(self.reduction), []
        for i, home in enumerate(homes.values()):
            part = CollectivePart(i, len(homes), is_flat=True)
            slices = [add(part, [x], p) for x, p in zip(xs, self.places, strict=True)]
            folds.append(add(fold, slices, home))
        return {task: add(CollectiveJoin(shape), folds, home) for task, home in homes.items()}

    def algorithm(self, specs: Sequence[Spec]) -> str:
        if len(tasks_of(self.places)) == 1:
            return "one fold, in one process"
        sliced = "reduce-scatter, then all-gather"
        return sliced if self._is_sliced(specs) else "exchange: each process folds all"

    def _sent(self, sizes: Sequence[int]) -> int:
        tasks = tasks_of(self.places)
        per_rank = len(tasks) - 1
        if len(tasks) == 1 or sum(sizes) <= EXCHANGE_BYTES:
            return sum(sizes) * per_rank
        return sum(sizes) * per_rank // len(tasks) + sizes[0] * per_rank


@frozen
class RankReduce(Collective, grad_reads=("y", "xs")):
    """The elementwise reduction of all ranks' tensors, on one device.

    Attributes:
        places: The device that each rank asks for, "" for none.
        reduction: "sum", "mean", "min", "max" or "prod", in the order of the ranks.
        place: The device that the result asks for.

    Shapes: n times s -> s
    Raises: InvalidArgumentError if shapes differ; DTypeError if dtypes differ or do not fit.
    """

    reduction: str
    place: str

    def infer(self, *xs: Spec) -> Any:
        self._check_group(len(xs))
        check_reduction(self.reduction, xs[0].dtype)
        return Spec(xs[0].dtype, one_shape(xs))

    def grad(self, g: Tensor, y: Tensor, *xs: Tensor) -> Any:
        spread = RankBroadcast(self.places)
        gs = apply_many(spread, g)
        ys = gs if self.reduction in ("sum", "mean", "prod") else apply_many(spread, y)
        return _reduction_grads(self.reduction, self.places, gs, ys, xs)

    def expand(
        self, xs: Sequence[Any], specs: Sequence[Spec], wanted: Collection[int], add: AddPiece
    ) -> Mapping[int, Any]:
        fold = Identity() if len(xs) == 1 else CollectiveFold(self.reduction)
        return {0: add(fold, xs, self.place)}

    @property
    def _outputs(self) -> int:
        return 1

    def algorithm(self, specs: Sequence[Spec]) -> str:
        return "one fold, on the device of the result"

    def _sent(self, sizes: Sequence[int]) -> int:
        pairs = zip(self.places, sizes, strict=True)
        return sum(n for p, n in pairs if task_of(p) != task_of(self.place))


@frozen
class ReduceScatter(Collective, grad_reads=("y", "xs")):
    """The elementwise reduction of all ranks' tensors, of which each rank gets some rows.

    Attributes:
        places: The device that each rank asks for, "" for none.
        reduction: "sum", "mean", "min", "max" or "prod", in the order of the ranks.

    Shapes: n times [d, ...] -> for rank i [d * (i + 1) // n - d * i // n, ...]
    Raises: InvalidArgumentError if shapes differ or are scalars; DTypeError if dtypes differ or do
        not fit.
    """

    reduction: str

    def infer(self, *xs: Spec) -> Any:
        self._check_group(len(xs))
        check_reduction(self.reduction, xs[0].dtype)
        whole = Spec(xs[0].dtype, one_shape(xs))
        return tuple([CollectivePart(i, len(xs)).infer(whole) for i in range(len(xs))])

    def grad(self, g: Any, y: Any, *xs: Tensor) -> Any:
        gs = _all_gathered(_whole(g, y), self.places)
        needs_result = self.reduction in ("min", "max")
        ys = _all_gathered(_several(y), self.places) if needs_result else gs
        return _reduction_grads(self.reduction, self.places, gs, ys, xs)

    def expand(
        self, xs: Sequence[Any], specs: Sequence[Spec], wanted: Collection[int], add: AddPiece
    ) -> Mapping[int, Any]:
        fold = Identity() if len(xs) == 1 else CollectiveFold(self.reduction)
        found = {}
        for rank in wanted:
            part = CollectivePart(rank, len(xs))
            parts = [add(part, [x], p) for x, p in zip(xs, self.places, strict=True)]
            found[rank] = add(fold, parts, self.places[rank])
        return found


@frozen
class AllGather(Collective):
    """The rows of all ranks' tensors, one rank's after the other's, for each rank.

    Attributes:
        places: The device that each rank asks for, "" for none.

    Shapes: [di, ...] for each rank i -> n times [sum of di, ...]
    Raises: InvalidArgumentError if other dimensions than the first differ, or for scalars;
        DTypeError if dtypes differ.
    """

    def infer(self, *xs: Spec) -> Any:
        self._check_group(len(xs))
        _check_values(xs[0])
        return (CollectiveJoin().infer(*xs),) * len(xs)

    def grad(self, g: Any, y: Any, *xs: Tensor) -> Any:
        totals = _all_reduced("sum", _whole(g, y), self.places)
        found = []
        for rank, (place, total) in enumerate(zip(self.places, totals, strict=True)):
            with device(place or None):
                found.append(Concat(0).grad(total, total, *xs)[rank])
        return tuple(found)

    def expand(
        self, xs: Sequence[Any], specs: Sequence[Spec], wanted: Collection[int], add: AddPiece
    ) -> Mapping[int, Any]:
        join = Identity() if len(xs) == 1 else CollectiveJoin()
        found: dict[int, Any] = {}
        for ranks in tasks_of(self.places).values():
            if here := [r for r in ranks if r in wanted]:
                found |= dict.fromkeys(here, add(join, xs, self.places[ranks[0]]))
        return found

    def algorithm(self, specs: Sequence[Spec]) -> str:
        only = len(tasks_of(self.places)) == 1
        return "one join, in one process" if only else "exchange: each process joins all"

    def _sent(self, sizes: Sequence[int]) -> int:
        return sum(sizes) * (len(tasks_of(self.places)) - 1)


@frozen
class RankBroadcast(Collective):
    """One tensor, for each rank.

    Attributes:
        places: The device that each rank asks for, "" for none.

    Shapes: s -> n times s
    """

    def infer(self, x: Spec) -> Any:
        self._check_group(len(self.places))
        _check_values(x)
        return (x.like(),) * len(self.places)

    def grad(self, g: Any, y: Any, x: Tensor) -> Any:
        return (apply(RankReduce(self.places, "sum", x.device), *_whole(g, y)),)

    def expand(
        self, xs: Sequence[Any], specs: Sequence[Spec], wanted: Collection[int], add: AddPiece
    ) -> Mapping[int, Any]:
        return {rank: add(Identity(), xs, self.places[rank]) for rank in wanted}

    def algorithm(self, specs: Sequence[Spec]) -> str:
        return "one copy to each process"

    def _sent(self, sizes: Sequence[int]) -> int:
        return sizes[0] * (len(tasks_of(self.places)) - 1)


@frozen
class RankScatter(Collective):
    """The rows of one tensor, of which each rank gets some.

    Attributes:
        places: The device that each rank asks for, "" for none.

    Shapes: [d, ...] -> for rank i of n [d * (i + 1) // n - d * i // n, ...]
    Raises: InvalidArgumentError for a scalar.
    """

    def infer(self, x: Spec) -> Any:
        count = len(self.places)
        self._check_group(count)
        _check_values(x)
        return tuple([CollectivePart(i, count).infer(x) for i in range(count)])

    def grad(self, g: Any, y: Any, x: Tensor) -> Any:
        with device(x.device or None):
            return (concat(_whole(g, y), 0),)

    def expand(
        self, xs: Sequence[Any], specs: Sequence[Spec], wanted: Collection[int], add: AddPiece
    ) -> Mapping[int, Any]:
        count, found = len(self.places), {}
        for rank in wanted:
            part = add(CollectivePart(rank, count), xs, "")
            found[rank] = add(Identity(), [part], self.places[rank])
        return found

    def algorithm(self, specs: Sequence[Spec]) -> str:
        return "one part to each rank"

    def _sent(self, sizes: Sequence[int]) -> int:
        tasks = [len(ranks) for ranks in tasks_of(self.places).values()]
        return sizes[0] * (len(self.places) - tasks[0]) // len(self.places)


@frozen
class AllToAll(Collective):
    """For rank j part j of all ranks' rows, one rank's after the other's.

    Attributes:
        places: The device that each rank asks for, "" for none.

    Shapes: n times [d, ...] -> n times [d, ...], where d is a multiple of n
    Raises: InvalidArgumentError if shapes differ, or if d is no multiple of n; DTypeError if dtypes
        differ.
    """

    def infer(self, *xs: Spec) -> Any:
        self._check_group(len(xs))
        _check_values(xs[0])
        whole = Spec(xs[0].dtype, one_shape(xs))
        CollectivePart(0, len(xs), is_even=True).infer(whole)
        return (whole,) * len(xs)

    def grad(self, g: Any, y: Any, *xs: Tensor) -> Any:
        return apply_many(self, *_whole(g, y))

    def expand(
        self, xs: Sequence[Any], specs: Sequence[Spec], wanted: Collection[int], add: AddPiece
    ) -> Mapping[int, Any]:
        found = {}
        for rank in wanted:
            part = CollectivePart(rank, len(xs), is_even=True)
            parts = [add(part, [x], p) for x, p in zip(xs, self.places, strict=True)]
            found[rank] = add(CollectiveJoin(is_even=True), parts, self.places[rank])
        return found


def _check_values(x: Spec) -> None:
    if x.dtype in (resource, variant):
        raise expected_dtype("tensors with values", x.dtype)


__all__: list[str] = []
