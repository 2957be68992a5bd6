"""Apart: the partitions of a plan compiled one by one, each to run on a thread of its own.

Where nothing in a partition waits but for what other partitions send, it becomes one function, in
which a Recv waits in place. If in any of them something else waits - a queue, a lock - the machine
of tokens runs the regions of all, so that waiting delays nobody. Why none of them waits for ever:
see `flowscope.plan.partition.wait_order`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from flowscope.errors import InternalError
from flowscope.graph.lazy import frozen
from flowscope.ops.core.send_recv import Recv, Send
from flowscope.plan.executables.back_ends import Executable
from flowscope.plan.executables.units import PRIMITIVES
from flowscope.plan.ir.program import Node, Program
from flowscope.plan.partition.partitions import Partition
from flowscope.plan.partition.wait_order import waits_in_circle
from flowscope.plan.passes.regions import Region, whole_region

#: Makes something to run of a region, by the name of a code back end.
Compile = Callable[[str, Region], Executable]

#: Code back ends in which a Recv waits in place, and what takes their place where more waits.
_IN_PLACE: Mapping[str, str] = {"python": "regions", "op": "tokens"}


@frozen
class CompiledPartition:
    """A partition that runs apart.

    Attributes:
        device: Its device.
        executable: Runs it.
        takes: The numbers of the step's feeds that it takes.
        handles: The positions of what its handles stand for among those of the step.
        gives: The numbers of the step's fetches that it gives.
        again: The names of the branches and loops that a partition before it runs, too.
    """

    device: str
    executable: Executable
    takes: tuple[int, ...]
    handles: tuple[int, ...]
    gives: tuple[int, ...]
    again: frozenset[str] = frozenset()


def compile_apart(
    partitions: Sequence[Partition],
    handles: Sequence[Node],
    compile_region: Compile,
    is_handed_out: bool = True,
) -> tuple[CompiledPartition, ...]:
    """Returns the partitions, compiled one by one.

    Args:
        partitions: The partitions.
        handles: The handles of the step's resources, in the order in which they are passed.
        compile_region: Makes something to run of a region by a code back end.
        is_handed_out: Whether the fetches go to the user.

    Raises:
        InternalError: if two partitions send or receive by one key.
    """
    partitions = reconcile_back_ends(partitions)
    positions = {h.name: i for i, h in enumerate(handles)}
    made: list[CompiledPartition] = []
    before: frozenset[str] = frozenset()
    for one in partitions:
        own = frozenset([n.name for n in one.program.walk() if n.blocks])
        part = _part(one, positions, compile_region, is_handed_out)
        made.append(replace(part, again=own & before))
        before |= own
    return tuple(made)


def reconcile_back_ends(partitions: Sequence[Partition]) -> Sequence[Partition]:
    """Returns partitions with code back ends that can meet: if one waits, none waits in place.

    None does either if they would wait for each other so for ever.

    Raises:
        InternalError: if two partitions send or receive by one key.
    """
    _check_keys(partitions)
    names = {p.back_end for p in partitions}
    programs = [p.program for p in partitions]
    if names <= _IN_PLACE.keys() and not any(map(_waits, programs)):
        if not waits_in_circle(programs):
            return partitions
    return [replace(p, back_end=_IN_PLACE.get(p.back_end, p.back_end)) for p in partitions]


def takes_turns(partitions: Sequence[Partition]) -> bool:
    """Whether partitions that are held can go on one operation at a time, each when its turn comes.

    They can where a Recv waits in place. What the machine of tokens runs has no order of its own.
    """
    return all(p.back_end in _IN_PLACE for p in partitions)


def _part(
    partition: Partition, positions: Mapping[str, int], compile_region: Compile, is_handed_out: bool
) -> CompiledPartition:
    region = whole_region(partition.program, is_handed_out)
    return CompiledPartition(
        partition.device,
        compile_region(partition.back_end, region),
        tuple([v.index for v in region.inputs]),
        tuple([positions[h.name] for h in region.handles]),
        partition.fetched,
    )


def _waits(program: Program) -> bool:
    """Whether something waits for others than the partitions of the step."""
    return any(
        (n.op.is_blocking and not isinstance(n.op, Recv)) or n.op.type in PRIMITIVES
        for n in program.walk()
    )


def _check_keys(partitions: Sequence[Partition]) -> None:
    for kind in (Send, Recv):
        seen: set[str] = set()
        for node in (n for p in partitions for n in p.program.walk()):
            if isinstance(node.op, kind):
                if node.op.key in seen:
                    raise InternalError(f"two of {kind.__name__} have the key {node.op.key!r}")
                seen.add(node.op.key)


__all__ = ["CompiledPartition", "compile_apart", "reconcile_back_ends", "takes_turns"]
