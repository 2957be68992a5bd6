"""Lifetimes: how many bytes of values are alive behind each node of a program.

Planning knows when each value is made and when it is read last, and the shapes of most; what is fed
tells the others. So nothing is measured while a step runs: a level belongs to each node, and in a
loop what the iterations have kept comes on top. What a view shows counts once; constants, feeds and
the values of variables are there before the step and do not count. What kernels take for a moment,
and a few numbers per array, are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowscope.graph.constant import Const
from flowscope.graph.lazy import frozen
from flowscope.graph.op import Spec
from flowscope.graph.values.dtypes import resource, variant
from flowscope.graph.values.shapes import Dims
from flowscope.plan.analysis.saved_for_backward import base_of
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import LoopNode


@frozen
class Lists:
    """Lists that a loop keeps: all their elements are alive from its end on.

    Attributes:
        maker: The loop.
        taker: The loop that takes their elements one by one and frees them; None for none.
        until: The nodes of the block behind which they are alive.
        shared: Bytes of elements that are somebody else's: a variable before the first iteration.
    """

    maker: LoopNode
    taker: Node | None
    until: tuple[Node, ...]
    shared: int


@frozen
class Lifetime:
    """How long a value is alive that an operation makes.

    Attributes:
        value: The value.
        nbytes: Its bytes.
        readers: The nodes of its block that read its memory, in order, or its maker alone: it dies
            behind the last of them. Empty where it is a result of its block.
    """

    value: Value
    nbytes: int
    readers: tuple[Node, ...]


@frozen
class Lifetimes:
    """What is alive in a program.

    Attributes:
        level: Bytes behind each node, without what iterations have kept.
        kept: Bytes that each loop keeps in an iteration.
        lists: What is alive of that behind loops.
        values: What operations make, and until when it is alive; those whose size is known.
        unknown: How many values there are whose size is not known: they count for nothing.
    """

    level: dict[Node, int]
    kept: dict[Node, int]
    lists: tuple[Lists, ...]
    values: tuple[Lifetime, ...]
    unknown: int


def lifetimes(program: Program, shapes: Sequence[Dims], by_op: bool = False) -> Lifetimes:
    """The live ranges of a program's values.

    Args:
        program: The program.
        shapes: One per feed: what was fed.
        by_op: Whether operations run one by one: a loop's variables live as long as an iteration
            then; in code they die where they are read last.
    """
    found = _Finder(by_op)
    for value, shape in zip(program.feeds, shapes, strict=True):
        found.specs[value] = Spec(value.spec.dtype, shape)
    found.block(program, 0, frozenset())
    lists, values = tuple(found.lists), tuple(found.values)
    return Lifetimes(found.level, found.kept, lists, values, len(found.unknown))


class _Finder:
    def __init__(self, by_op: bool) -> None:
        self._by_op = by_op
        self.specs: dict[Value, Spec] = {}
        self.level: dict[Node, int] = {}
        self.kept: dict[Node, int] = {}
        self.shared: dict[Node, int] = {}
        self.lists: list[Lists] = []
        self.values: list[Lifetime] = []
        self.unknown: set[Value] = set()

    def block(self, program: Program, base: int, owned: frozenset[Value]) -> None:
        """Finds the levels in a block.

        Args:
            program: The block.
            base: Bytes that are alive when it begins.
            owned: Those of its parameters that count, and die in it.
        """
        reads = _reads(program)
        last = {value: at[-1] for value, at in reads.items()}
        dying: dict[int, list[Value]] = {}
        for value, at in last.items():
            dying.setdefault(at, []).append(value)
        alive, now = set(() if self._by_op else owned), base
        for i, node in enumerate(program.nodes):
            self._infer(node)
            if isinstance(node, LoopNode):
                self._loop(node, now, alive, [v for v in dying.get(i, ()) if v in alive])
                self._keep(node, program, i)
            else:
                for inner in node.blocks:
                    self.block(inner, now, frozenset())
            for value in node.outputs if _is_own(node) else ():
                if base_of(value) is value and value in last:
                    alive.add(value)
                    now += self._size(value)
                    self._note(value, program, reads[value])
            for value in dying.get(i, ()):
                if value in alive:
                    alive.discard(value)
                    now -= self._size(value)
            self.level[node] = now

    def _note(self, value: Value, program: Program, reads: list[int]) -> None:
        """Notes who reads a value that a node of a block makes."""
        if nbytes := self._size(value):
            is_result = reads[-1] == len(program.nodes)
            readers = () if is_result else tuple([program.nodes[i] for i in reads])
            self.values.append(Lifetime(value, nbytes, readers))

    def _loop(self, node: LoopNode, now: int, alive: set[Value], dying: list[Value]) -> None:
        """Finds the levels in a loop: its variables are its own, copies of what others have too."""
        owned = []
        bases = dict.fromkeys(base_of(v) for v in node.kept_values)
        self.shared[node] = 0
        starts = zip(node.starts, node.parameters, node.next_values, strict=True)
        for start, parameter, after in starts:
            if parameter is after or base_of(after) is parameter:
                continue
            owned.append(parameter)
            if base_of(start) not in dying:  # the first one is somebody else's
                if parameter in bases:
                    self.shared[node] += self._size(parameter)
                else:
                    now += self._size(parameter)
        for condition in node.conditions:
            self.block(condition, now, frozenset())
        self.block(node.body, now, frozenset(owned))
        made = {v for n in node.body.nodes if _is_own(n) for v in n.outputs} | set(owned)
        self.kept[node] = sum(self._size(v) for v in bases if v in made)

    def _keep(self, node: LoopNode, program: Program, at: int) -> None:
        """Notes until when the lists are alive that a loop keeps."""
        readers = [
            i
            for i, n in enumerate(program.nodes)
            if i > at and any(base_of(v) in node.kept for v in n.inputs)
        ]
        if readers:
            taker = program.nodes[readers[-1]]
            is_taken = isinstance(taker, LoopNode) and any(v in node.kept for v in taker.taken)
            until = program.nodes[at : readers[-1]]
            one = Lists(node, taker if is_taken else None, tuple(until), self.shared[node])
            self.lists.append(one)

    # -- shapes -----------------------------------------------------------------------------------

    def _spec(self, value: Value) -> Spec:
        return self.specs.get(value, value.spec)

    def _size(self, value: Value) -> int:
        spec = self._spec(value)
        if spec.dtype in (resource, variant):
            return 0
        found = spec.nbytes
        if found is None:
            self.unknown.add(value)
        return found or 0

    def _infer(self, node: Node) -> None:
        """Finds out the shapes of a node's outputs, where those of its inputs are known by now."""
        if isinstance(node, LoopNode):
            self._infer_loop(node)
        elif node.blocks:
            for block in node.blocks:
                for inner in block.nodes:
                    self._infer(inner)
            for i, value in enumerate(node.outputs):
                self.specs[value] = self._spec(node.blocks[0].fetches[i])
        elif any(v in self.specs for v in node.inputs):
            try:
                inferred = node.op.infer(*map(self._spec, node.inputs))
            except Exception:  # whatever is wrong with these shapes is told when the step runs
                return
            specs = (inferred,) if isinstance(inferred, Spec) else tuple(inferred)
            self.specs.update(zip(node.outputs, specs, strict=False))

    def _infer_loop(self, node: LoopNode) -> None:
        for start, parameter in zip(node.starts, node.parameters, strict=True):
            known, told = self._spec(start), parameter.spec
            if told.nbytes is None and known.shape is not None:
                self.specs[parameter] = Spec(told.dtype, known.shape)
        for inner in node.body.nodes:
            self._infer(inner)
        for value, after in zip(node.results, node.next_values, strict=True):
            self.specs[value] = self._spec(after)


def _is_own(node: Node) -> bool:
    """Whether a node's outputs are memory of the step's."""
    op = node.op
    if node.blocks:
        return True
    return not (isinstance(op, Const) or op.is_handle or op.reads_state or op.writes_state)


def _reads(program: Program) -> dict[Value, list[int]]:
    """Returns where each memory is made and read; the block's results are read at its end."""
    found: dict[Value, list[int]] = {}
    for i, node in enumerate(program.nodes):
        for value in (*node.outputs, *node.inputs):
            found.setdefault(base_of(value), []).append(i)
    for value in program.fetches:
        found.setdefault(base_of(value), []).append(len(program.nodes))
    return found


__all__ = ["Lifetime", "Lifetimes", "Lists", "lifetimes"]
