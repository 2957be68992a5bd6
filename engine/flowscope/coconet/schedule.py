"""Schedules: how a program is computed. They are values; transformations make others of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flowscope.coconet.build import CHUNKS, BuiltSchedule, build
from flowscope.coconet.cost import PredictedCost, RankMachine, predicted
from flowscope.coconet.pipeline import StagePipeline
from flowscope.coconet.reference import evaluate
from flowscope.coconet.stage_graph import StageGraph, StageNode, units
from flowscope.coconet.transformations.fusing import FuseStages
from flowscope.coconet.transformations.overlapping import OverlapStages
from flowscope.coconet.transformations.reordering import ReorderAllGather
from flowscope.coconet.transformations.slicing import DropDeadGather, KeepAsSlice
from flowscope.coconet.transformations.splitting import SplitAllReduce
from flowscope.coconet.transformations.transformation import ScheduleTransformation
from flowscope.errors import InvalidArgumentError, NotFoundError
from flowscope.graph.lazy import frozen

#: Transformations by their names.
TRANSFORMATIONS: Mapping[str, ScheduleTransformation] = {
    t.name: t
    for t in (
        SplitAllReduce(),
        ReorderAllGather(),
        KeepAsSlice(),
        DropDeadGather(),
        FuseStages(),
        OverlapStages(),
    )
}


@frozen
class AppliedTransformation:
    """A transformation with its arguments.

    Attributes:
        name: "split", "reorder", "as_slice", "dead", "fuse" or "overlap".
        arguments: Names of stages, and what else its method takes.
    """

    name: str
    arguments: tuple[Any, ...]

    @property
    def text(self) -> str:
        """How it reads as Python, e.g. `split("avg", "slices", 0)`."""
        return f"{self.name}({', '.join([_quoted(x) for x in self.arguments])})"

    def __str__(self) -> str:
        return self.text


def _quoted(x: Any) -> str:
    return f'"{x}"' if isinstance(x, str) else repr(x)


@frozen
class Schedule:
    """One way to compute a program.

    A transformation returns another schedule that computes the same, and leaves this one as it is.
    Each names stages by their names or, where they are stages of the pipeline, by themselves.

    Attributes:
        pipeline: The program.
        graph: The stages as they are now.
        parent: The schedule that this one was made of; None for that of the program as it is.
        step: What made it of its parent.
    """

    pipeline: StagePipeline
    graph: StageGraph
    parent: Schedule | None = None
    step: AppliedTransformation | None = None

    def split(self, all_reduce: Any, into: str = "slices", at: int = 0) -> Schedule:
        """An all-reduce becomes two stages.

        Args:
            all_reduce: The stage.
            into: "slices" for reduce_scatter and all_gather, which are named `rs_...` and
                `ag_...`; "root" for reduce and broadcast, `r_...` and `b_...`.
            at: The dimension that is cut, or the rank that gets the reduction.

        Raises:
            InvalidArgumentError: if it is not legal; it says why, and the nearest legal one.
        """
        return self._applied("split", all_reduce, into, at)

    def reorder(self, all_gather: Any, *computations: Any) -> Schedule:
        """Computations behind an all-gather compute slices before it.

        They keep their names. What other stages use of a computation `x` is gathered by `ag_x`.

        Args:
            all_gather: The stage.
            computations: The stages that move.

        Raises:
            InvalidArgumentError: if it is not legal; it says why, and the nearest legal one.
        """
        return self._applied("reorder", all_gather, *computations)

    def as_slice(self, argument: Any) -> Schedule:
        """An argument of which each rank uses one slice is kept in slices.

        Args:
            argument: A Replicated tensor that is given to the program.

        Raises:
            InvalidArgumentError: if it is not legal; it says why, and the nearest legal one.
        """
        return self._applied("as_slice", argument)

    def dead(self, all_gather: Any) -> Schedule:
        """An all-gather whose result nobody uses is left out.

        Args:
            all_gather: The stage.

        Raises:
            InvalidArgumentError: if it is not legal; it says why, and the nearest legal one.
        """
        return self._applied("dead", all_gather)

    def fuse(self, *stages: Any) -> Schedule:
        """Stages run as one: computations, a whole all-reduce with computations, or a send.

        Args:
            stages: The stages and fused groups.

        Raises:
            InvalidArgumentError: if it is not legal; it says why, and the nearest legal one.
        """
        return self._applied("fuse", *stages)

    def overlap(self, *stages: Any) -> Schedule:
        """Stages and fused groups that follow each other run in chunks, in the ring's order.

        Args:
            stages: The producer, what uses it, and so on.

        Raises:
            InvalidArgumentError: if it is not legal; it says why, and the nearest legal one.
        """
        return self._applied("overlap", *stages)

    def apply(self, step: AppliedTransformation) -> Schedule:
        """Applies a transformation that `legal` or `steps` has named."""
        return self._applied(step.name, *step.arguments)

    def _applied(self, name: str, *given: Any) -> Schedule:
        how = TRANSFORMATIONS[name]
        arguments = tuple([self.pipeline.name_of(x) for x in given])
        try:
            graph = how.apply(self.graph, *arguments)
        except InvalidArgumentError as error:
            raise self._refusal(how, arguments, error) from None
        return Schedule(self.pipeline, graph, self, AppliedTransformation(name, arguments))

    def _refusal(
        self, how: ScheduleTransformation, arguments: tuple[Any, ...], error: InvalidArgumentError
    ) -> InvalidArgumentError:
        asked = AppliedTransformation(how.name, arguments).text
        near = self._nearest(how, arguments)
        legal = f"Legal is {near}." if near else f"No {how.name} is legal here."
        return InvalidArgumentError(f"{asked}: {error.message}. {how.condition} {legal}")

    def _nearest(self, how: ScheduleTransformation, arguments: tuple[Any, ...]) -> str:
        """The legal one of the same kind that has most arguments in common, as text."""
        wanted = {x for x in arguments if isinstance(x, str)}
        found, best = "", -1.0
        for given, _ in how.legal(self.graph):
            names = {x for x in given if isinstance(x, str)}
            text = AppliedTransformation(how.name, given).text
            near = difflib.SequenceMatcher(None, text, str(arguments)).ratio()
            score = len(wanted & names) / max(1, len(wanted | names)) + near / 100
            if score > best:
                found, best = text, score
        return found

    def legal(self) -> dict[AppliedTransformation, Schedule]:
        """Legal next transformations, and the schedules that they make.

        Of the many sets of stages that can be moved or fused those are listed that are as large as
        they can be, and those of a stage and one that uses it.
        """
        found = {}
        for how in TRANSFORMATIONS.values():
            for arguments, graph in how.legal(self.graph):
                step = AppliedTransformation(how.name, arguments)
                found[step] = Schedule(self.pipeline, graph, self, step)
        return found

    def undo(self) -> Schedule:
        """The schedule before the last transformation.

        Raises:
            NotFoundError: if there was none.
        """
        if self.parent is None:
            raise NotFoundError(
                "expected a schedule that was transformed, got the program as it is"
            )
        return self.parent

    @property
    def steps(self) -> tuple[AppliedTransformation, ...]:
        """The transformations that made it, in order."""
        before = () if self.parent is None else self.parent.steps
        return before if self.step is None else (*before, self.step)

    def python(self) -> str:
        """The transformations as Python: a program that makes it of `pipeline`."""
        lines = ["schedule = fs.coconet.schedule(pipeline)"]
        return "\n".join([*lines, *[f"schedule = schedule.{s.text}" for s in self.steps]])

    def text(self) -> str:
        """The stages as a program: a line each, with the layout; what runs as one is indented."""
        given = ", ".join([f"{a.name}: {a.type}" for a in self.graph.arguments])
        lines = [f"{self.pipeline.name}({given})"]
        width = max([len(f"{s.name} = {s.text}") for s in self.graph.stages])
        for unit in units(self.graph):
            lines += self._unit_lines(unit, min(width, 56))
        outputs = [k if k == v else f"{k}={v}" for k, v in self.graph.outputs]
        return "\n".join([*lines, f"  return {', '.join(outputs)}"])

    def _unit_lines(self, unit: Sequence[StageNode], width: int) -> Iterator[str]:
        chain = self.graph.chain_of.get(unit[0].name)
        if chain is not None:
            yield f"  overlap({', '.join(chain)}):"
        before = None
        for stage in unit:
            group = self.graph.group_of.get(stage.name)
            if group is not before and group is not None:
                yield f"{'    ' if chain else '  '}{group.name} = fuse {group.kind}:"
            before = group
            deep = 2 + 2 * (chain is not None) + 2 * (group is not None)
            yield f"{' ' * deep}{f'{stage.name} = {stage.text}':{width + 6 - deep}}  {stage.type}"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return (
            f"<Schedule of {self.pipeline.name}: {', '.join(map(str, self.steps)) or 'as it is'}>"
        )

    def build(
        self,
        values: Mapping[Any, Any],
        devices: Any = None,
        chunks: int = CHUNKS,
        name: str | None = None,
    ) -> BuiltSchedule:
        """Adds its operations to the default graph: per rank, on its device.

        Args:
            values: Per argument, by itself or its name, a tensor, array or variable for each rank
                of its group; one for a Scalar. Of what is Sliced or kept in slices each rank gets
                its part. A variable that is updated gets its new value when the result's `update`
                runs. Shapes are static.
            devices: The device of each rank, as `fs.device` takes it; a dict with a list per group
                where there are several groups. None for where the tensors are.
            chunks: Into how many chunks an overlap cuts each rank's part.
            name: The name scope.

        Raises:
            InvalidArgumentError: if an argument is missing, or shapes, sizes or numbers of ranks do
                not fit.
            DTypeError: if a tensor has another dtype than its argument.
        """
        return build(self.pipeline, self.graph, values, devices, chunks, name)

    def predicted(
        self,
        lengths: Mapping[Any, int],
        ranks: int | Mapping[Any, int],
        machine: RankMachine | None = None,
    ) -> PredictedCost:
        """What it costs, by a model of the machine.

        Args:
            lengths: Per symbolic size, by itself or its name, its length.
            ranks: The number of ranks, or a number per group.
            machine: How quick machines and links are.

        Raises:
            InvalidArgumentError: if a length is missing.
        """
        named = {str(k): v for k, v in lengths.items()}
        counts = rank_counts(self.graph, ranks)
        return predicted(self.graph, named, counts, machine or RankMachine())[0]

    def evaluate(
        self,
        values: Mapping[Any, Sequence[Any]],
        ranks: int | Mapping[Any, int],
        keys: Mapping[int, int] | None = None,
    ) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        """Runs it by NumPy, stage by stage and rank by rank: slowly, to compare with.

        Args:
            values: Per argument an array for each rank of its group; one for a Scalar. What is
                kept in slices is given in slices.
            ranks: The number of ranks, or a number per group.
            keys: Per seed of dropout the key of the chances; 0 by default.

        Returns:
            The outputs by their names, and the new values of arguments that were updated; each an
            array per rank.

        Raises:
            InvalidArgumentError: if arrays do not fit.
        """
        named = {self.pipeline.name_of(k): v for k, v in values.items()}
        missing = [a.name for a in self.graph.arguments if a.name not in named]
        if missing:
            raise InvalidArgumentError(f"expected values of {', '.join(missing)}, got none")
        return evaluate(self.graph, named, rank_counts(self.graph, ranks), keys or {})


def rank_counts(graph: StageGraph, ranks: int | Mapping[Any, int]) -> dict[str, int]:
    """The number of ranks of each group by its name."""
    types = [x.type for x in graph.by_name.values()]
    groups = dict.fromkeys([t.group.name for t in types if t.group is not None])
    if isinstance(ranks, int):
        return dict.fromkeys(groups, ranks)
    named = {str(g): n for g, n in ranks.items()}
    return {g: named[g] for g in groups}


def schedule(pipeline: StagePipeline) -> Schedule:
    """The schedule of a program as it is written.

    Args:
        pipeline: The program.
    """
    if not isinstance(pipeline, StagePipeline):
        raise InvalidArgumentError(f"expected a Pipeline, got {pipeline!r}")
    return Schedule(pipeline, pipeline.graph)


__all__ = ["AppliedTransformation", "Schedule", "schedule"]
