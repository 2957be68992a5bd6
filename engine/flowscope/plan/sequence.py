"""Partitions with different code back ends: their regions run one after the other.

A region ends before a Recv, so what it takes is there when it begins: feeds, values of earlier
regions, and what others have sent. They run on the thread of the step, in the global order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from flowscope.errors import InternalError, UnimplementedError
from flowscope.ops.core.send_recv import Recv, Send
from flowscope.plan.back_ends import Executable
from flowscope.plan.invocation import Invocation
from flowscope.plan.partitions import Partition
from flowscope.plan.passes.regions import Region
from flowscope.plan.program import Node, Value

#: Makes something to run of a region of a partition.
Compile = Callable[[Partition, Region], Executable]


class _Stage(NamedTuple):
    """A region, with the numbers of what it takes and gives among the values of the step."""

    executable: Executable
    takes: tuple[int, ...]
    gives: tuple[int, ...]
    handles: tuple[int, ...]
    #: Values that nothing takes afterwards.
    dying: tuple[int, ...]


class RegionSequence(Executable):
    """Runs the regions of several partitions.

    Args:
        partitions: The partitions.
        handles: The handles of the step's resources, in the order in which they are passed.
        compile_region: Makes something to run of each region.

    Raises:
        UnimplementedError: if a branch or a loop lies in several of them.
    """

    __slots__ = ("_fetched", "_number_of", "_stages")

    def __init__(
        self,
        partitions: Sequence[Partition],
        handles: Sequence[Node],
        compile_region: Compile,
    ) -> None:
        _check(partitions)
        self._number_of: dict[Any, int] = {}
        order = list(_in_order(partitions))
        sent = _sent(partitions)
        fetched = {i: v for p in partitions for i, v in zip(p.fetched, p.program.fetches)}
        self._fetched = tuple([self._number(_source(fetched[i], sent)) for i in sorted(fetched)])
        positions = {h.name: i for i, h in enumerate(handles)}
        stages: list[_Stage] = []
        needed = set(self._fetched)
        for partition, region in reversed(order):
            takes = tuple([self._number(_source(v, sent)) for v in region.inputs])
            gives = tuple([self._number(v) for v in region.outputs])
            own = tuple([positions[h.name] for h in region.handles])
            dying = tuple(sorted({*takes, *gives} - needed))
            needed.update(takes)
            stages.insert(0, _Stage(compile_region(partition, region), takes, gives, own, dying))
        self._stages = stages
        function = self._runner([s.executable.function for s in stages])
        super().__init__(
            function,
            lambda probe: self._runner([s.executable.probed(probe) for s in stages]),
            self._runner([s.executable.by_op for s in stages]),
        )

    def _number(self, value: Value) -> int:
        key = ("feed", value.index) if value.node is None else value
        return self._number_of.setdefault(key, len(self._number_of))

    def _runner(self, functions: Sequence[Callable[..., Any]]) -> Callable[..., tuple[Any, ...]]:
        stages = list(zip(functions, self._stages, strict=True))
        fed = {n: key[1] for key, n in self._number_of.items() if isinstance(key, tuple)}
        count, fetched = len(self._number_of), self._fetched

        def run(gate: Any, run: Any, feeds: tuple[Any, ...], resources: Any) -> tuple[Any, ...]:
            values: list[Any] = [None] * count
            for number, index in fed.items():
                values[number] = feeds[index]
            for function, stage in stages:
                taken = tuple([values[i] for i in stage.takes])
                states = tuple([resources[i] for i in stage.handles])
                for i, value in zip(stage.gives, function(gate, run, taken, states), strict=True):
                    values[i] = value
                for i in stage.dying:
                    values[i] = None
            return tuple([values[i] for i in fetched])

        return run

    @property
    def text(self) -> str:
        """The sources of the regions that have one."""
        return "\n".join([s.executable.text for s in self._stages if s.executable.text])

    def failed(self, error: BaseException) -> Invocation | None:
        """Returns the invocation that raised an error of the function; None if none did."""
        found = [s.executable.failed(error) for s in self._stages]
        return next((f for f in found if f is not None), None)


def _check(partitions: Sequence[Partition]) -> None:
    for node in (n for p in partitions for n in p.program.nodes if n.blocks):
        if any(isinstance(n.op, Recv | Send) for b in node.blocks for n in b.walk()):
            names = " and ".join(f'"{p.back_end}"' for p in partitions)
            raise UnimplementedError(
                f'"{node.name}" runs on several devices, whose code back ends are {names}: give '
                "these partitions the same one, so that they become one function"
            )


def _sent(partitions: Sequence[Partition]) -> dict[str, Value]:
    """Returns what is sent, by its key."""
    nodes = [n for p in partitions for n in p.program.nodes]
    return {n.op.key: n.inputs[0] for n in nodes if isinstance(n.op, Send)}


def _source(value: Value, sent: Mapping[str, Value]) -> Value:
    """Returns what a value is that may have been sent, perhaps on and on."""
    while value.node is not None and isinstance(value.node.op, Recv):
        value = sent[value.node.op.key]
    return value


def _in_order(partitions: Sequence[Partition]) -> Iterator[tuple[Partition, Region]]:
    """Yields all regions; each behind those that send what it takes."""
    waiting = [(p, list(p.regions)) for p in partitions]
    made = {v for p in partitions for v in p.program.feeds}
    sent = _sent(partitions)
    while any(regions for _, regions in waiting):
        ready = [
            (p, regions) for p, regions in waiting
            if regions and all(_is_made(_source(v, sent), made) for v in regions[0].inputs)
        ]  # fmt: skip
        if not ready:
            raise InternalError("the partitions have no common order: all wait for each other")
        partition, regions = ready[0]
        region = regions.pop(0)
        made.update(region.outputs)
        yield partition, region


def _is_made(value: Value, made: set[Value]) -> bool:
    return value.node is None or value in made


__all__ = ["RegionSequence"]
