"""Where a step stands: the blocks and iterations around it, to be told and to go on from.

A step that stands at a safepoint is in a block of its program, which may be the body of a loop in
the body of another, and so on: one `BlockLocation` per block from the outermost. With the values
that are alive this is all that is needed to run the rest of the step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol

from flowscope.graph.constant import Const
from flowscope.graph.lazy import frozen
from flowscope.graph.values.dtypes import resource
from flowscope.graph.values.host_values import beside
from flowscope.plan.analysis.saved_for_backward import trips
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import LoopNode

#: What a block is to the node that runs it. "back" is a loop's between two iterations.
Part = Literal["region", "branch", "test", "body", "back"]
#: What happens between two messages to a view is told from here; older moves are forgotten.
MOVES = 1000


class LoopState:
    """A loop that is running.

    Attributes:
        node: The loop.
        count: Iterations that are done; also the number of the one that runs or comes next.
        limit: The count that ends it, None without one.
        variables: Its variables between two iterations.
        lists: What is left of the lists whose elements it takes.
        pushed: The lists that it has kept so far.
    """

    __slots__ = ("count", "limit", "lists", "node", "pushed", "variables")

    def __init__(
        self,
        node: LoopNode,
        count: int,
        limit: int | None,
        variables: list[Any],
        lists: list[Any],
        pushed: list[Any],
    ) -> None:
        self.node = node
        self.count = count
        self.limit = limit
        self.variables = variables
        self.lists = lists
        self.pushed = pushed


@frozen
class BlockLocation:
    """A block that a step is in.

    Attributes:
        program: The block.
        index: The node that runs next, or that is running if a block of it follows.
        part: What the block is.
        loop: The loop whose test or body it is, else None.
    """

    program: Program
    index: int
    part: Part
    loop: LoopState | None = None


@frozen
class DeoptState:
    """Code was left at a safepoint: what is needed to go on.

    Attributes:
        locations: From the outermost block.
        values: What is alive.
        is_breakpoint: Whether it was left at a breakpoint: it need not be asked there again.
    """

    locations: tuple[BlockLocation, ...]
    values: dict[Value, Any]
    is_breakpoint: bool = False


@frozen
class NestedRun:
    """The run of a loop's own code, inside of other loops.

    Attributes:
        run: The run of the step.
        around: The loops around, from the outermost.
        node: The loop.
        values: What is alive around it.
    """

    run: Any
    around: tuple[LoopState, ...]
    node: Node
    values: dict[Value, Any]

    @property
    def iterations(self) -> tuple[int, ...]:
        """Numbers of the iterations of the loops around."""
        return tuple(s.count for s in self.around)

    def loops(self) -> tuple[LoopAt, ...]:
        """Returns the loops around as seen from outside."""
        return loops_at(self.around, self.node, self.values)


def nested_generator(generator: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the generator for code whose `run` is an `NestedRun`: it is told the iterations."""

    def made(run: NestedRun, seed: int, *path: int) -> Any:
        counts = (path[0], *run.iterations, *path[1:]) if path else ()
        return generator(run.run, seed, *counts)

    return made


class RegionRun:
    """The run of regions that were cut out of a program, one after the other.

    Args:
        run: The run of the step.
        iterations: Returns the numbers of the iterations around the region that runs now.
        look: Returns where the step is.
    """

    __slots__ = ("_iterations", "look", "run")

    def __init__(
        self, run: Any, iterations: Callable[[], tuple[int, ...]], look: Callable[[], StepLocation]
    ) -> None:
        self.run = run
        self.look = look
        self._iterations = iterations

    @property
    def iterations(self) -> tuple[int, ...]:
        """Numbers of the iterations around, from the outermost."""
        return self._iterations()


@frozen
class IterationAt:
    """One of several iterations of a loop that are on their way, by how many operations are where.

    Attributes:
        number: From 0.
        waiting: Operations that wait for a value.
        running: Those that run or could.
        done: Those that have run.
        dead: Those that are not to run.
        is_busy: Whether anything of it runs or could, loops in it included.
    """

    number: int
    waiting: int
    running: int
    done: int
    dead: int
    is_busy: bool = False


@frozen
class LoopAt:
    """A running loop, for those who look.

    Attributes:
        node: The loop; of one made by hand an Enter.
        iteration: Number of the iteration that runs or comes next.
        limit: How many iterations there will be at most, None where that is not known.
        finished: How many of its block's nodes are done in this iteration.
        kept: The first elements of the lists that it has kept, None for an empty one.
        window: Its iterations on their way, the oldest first; () where there is only one.
        held: Why the next iteration has not begun; "" if nothing holds it.
        kept_bytes: Bytes of all that it has kept so far; None where `kept` is all that is known.
    """

    node: Node
    iteration: int
    limit: int | None
    finished: int
    kept: tuple[Any, ...] = ()
    window: tuple[IterationAt, ...] = ()
    held: str = ""
    kept_bytes: int | None = None


@frozen
class StepLocation:
    """Where a step is, for those who look.

    Attributes:
        mode: How it runs.
        loops: The loops around, from the outermost.
        node: The node that runs next, None between two iterations.
        running: All loops that are running, each with the loops around it as they were when it
            began; () where `loops` are all.
        is_stepped: Whether it is a step of generated code that runs one operation at a time now.
    """

    mode: Literal["compiled", "op", "tokens"]
    loops: tuple[LoopAt, ...]
    node: Node | None
    running: tuple[tuple[LoopAt, ...], ...] = ()
    is_stepped: bool = False


@frozen
class Moved:
    """A node has run and taken its inputs, or it never will: then what it would take is dead.

    Attributes:
        node: The node.
        loops: The loops around with the numbers of their iterations, from the outermost.
        is_dead: Whether it is in a branch that is not taken.
        is_back: Whether it is a loop whose variables went back to the start of its body, or the
            Merge of a loop made by hand, which took the value of the next iteration.
        variable: Which of them did, None for all.
    """

    node: Node
    loops: tuple[tuple[Node, int], ...]
    is_dead: bool = False
    is_back: bool = False
    variable: int | None = None


class Moves:
    """What has run one operation at a time, for any number of those who tell it."""

    def __init__(self) -> None:
        self._latest: deque[tuple[int, Moved]] = deque(maxlen=MOVES)
        self.count = 0

    def append(self, move: Moved) -> None:
        """Notes a move."""
        self.count += 1
        self._latest.append((self.count, move))

    def since(self, count: int) -> list[Moved]:
        """Returns the moves after the first `count`, as far as they are not forgotten."""
        return [move for number, move in list(self._latest) if number > count]


class StopPoint(Protocol):
    """A safepoint that a step has come to."""

    @property
    def is_op(self) -> bool:
        """Whether one operation runs until the next such point."""

    @property
    def is_back_edge(self) -> bool:
        """Whether an iteration of a loop has just ended."""

    @property
    def is_breakpoint(self) -> bool:
        """Whether the code stands here because the node that comes next was chosen."""

    @property
    def is_changed(self) -> bool:
        """Whether a value was replaced here."""

    @property
    def node(self) -> Node | None:
        """The node that comes next; None at the end of an iteration. `where` takes longer."""

    def where(self) -> StepLocation:
        """Returns where it is."""

    def sample(self, sample: Any) -> None:
        """Lets a `flowscope.runtime.step.samples.Sample` trace what comes next."""

    def values(self) -> dict[object, Any]:
        """The live arrays, by the identities of their values."""

    def replace(self, identity: object, array: Any) -> bool:
        """Puts an array into the place of a value; returns whether that is alive."""


def values_in(run: Any, values: Mapping[Value, Any]) -> dict[object, Any]:
    """The live arrays, also of nested runs, by the identities of their values.

    Args:
        run: The run of the part.
        values: What is alive in the part.
    """
    found: dict[object, Any] = {}
    around = [values]
    while isinstance(run, NestedRun):
        around.append(run.values)
        run = run.run
    for one in reversed(around):
        found.update((v.identity, a) for v, a in one.items() if v.spec.dtype is not resource)
    return found


def replace_in(
    run: Any, values: dict[Any, Any], own: Mapping[Any, Value], identity: object, array: Any
) -> bool:
    """Puts an array into the place of a value; returns whether that is alive.

    Not in a region of the executor's: others may take the value too, and would not see it.

    Args:
        run: The run of the part.
        values: What is alive in the part, by keys of its own.
        own: The values that these keys stand for.
        identity: The identity of the value.
        array: The array.
    """
    parts: list[tuple[dict[Any, Any], list[Any]]] = [
        (values, [key for key, v in own.items() if v.identity is identity])
    ]
    while isinstance(run, NestedRun):
        parts.append((run.values, [v for v in run.values if v.identity is identity]))
        run = run.run
    if isinstance(run, RegionRun):
        return False
    for place, keys in parts:
        place.update({key: beside(array, place[key]) for key in keys})
    return any(keys for _, keys in parts)


def iterations_in(run: Any, counts: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the numbers of all iterations around.

    Args:
        run: The run of the part.
        counts: Those of the part's own loops.
    """
    while isinstance(run, NestedRun):
        counts = (*run.iterations, *counts)
        run = run.run
    return (*run.iterations, *counts) if isinstance(run, RegionRun) else counts


def where_in(run: Any, where: StepLocation) -> StepLocation:
    """Returns where a step is of which a part tells where that is.

    Args:
        run: The run of the part.
        where: Where the part is.
    """
    loops = where.loops
    while isinstance(run, NestedRun):
        loops = (*run.loops(), *loops)
        run = run.run
    if not isinstance(run, RegionRun):
        return replace(where, loops=loops)
    around = run.look()
    first = len(around.loops)
    loops = (*around.loops, *loops)
    paths = [loops[: i + 1] for i in range(first, len(loops))]
    return replace(where, loops=loops, running=(*around.running, *paths))


def loops_at(
    states: Sequence[LoopState], node: Node | None, values: Mapping[Value, Any]
) -> tuple[LoopAt, ...]:
    """Returns running loops as seen from outside.

    Args:
        states: The loops, from the outermost.
        node: The node that runs next, None between two iterations of the innermost.
        values: What is alive.
    """
    inner = [*[s.node for s in states], node][1:]
    return tuple(
        LoopAt(
            s.node,
            s.count,
            _least(s.limit, trips(s.node, values)),
            _finished(s.node, at),
            tuple(x and x[0] for x in s.pushed),
        )
        for s, at in zip(states, inner, strict=True)
    )


def bytes_of(element: Any) -> int:
    """Returns the bytes of an element that was kept; one that is a list is a chain of pairs."""
    total, stack = 0, [element]
    while stack:
        at = stack.pop()
        if isinstance(at, tuple):
            stack.extend(at)
        else:
            total += getattr(at, "nbytes", 0)
    return total


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _finished(loop: Node, at: Node | None) -> int:
    if at is None:
        return 0
    nodes = [n for block in loop.blocks for n in block.nodes if not isinstance(n.op, Const)]
    for i, node in enumerate(nodes):
        if node is at or (node.blocks and any(at is n for b in node.blocks for n in b.walk())):
            return i
    return 0
