"""The program as lowered, as views see it: the five primitives in place of branches and loops.

It is the program of one plan, lowered in full, whatever the executor does with it. The user's
operations keep their numbers and names; each node tells which operations it was made of. What a
branch or loop became stands in the scope that shows it in the graph as written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from flowscope.graph.operation import Operation
from flowscope.live.graphs.nesting import parent_path
from flowscope.live.graphs.nodes import flops_of, made_at, output_of, short
from flowscope.live.graphs.raw_loops import Shown, shown
from flowscope.live.protocol import schema
from flowscope.live.protocol.schema import GraphChange
from flowscope.ops.core.send_recv import Crossing, Recv, Send
from flowscope.plan.ir.origins import OperationRef
from flowscope.plan.ir.program import Node, Value
from flowscope.plan.passes.lower import lower
from flowscope.plan.plan import Plan

#: Numbers of nodes that are no operation of the user's are above this: no graph grows so large.
FIRST_ID = 1 << 30
#: Seconds after which the program of a plan that is no longer run makes way for another's, while
#: steps follow each other quickly.
FOLLOW_S = 2.0

Tell = Callable[[Plan, dict[str, int]], tuple[schema.Node, ...]]


class LoweredWatcher:
    """Knows which program was told, and what of another one is new.

    It follows the latest plan: at once where steps are run one by one, and where steps of several
    plans follow each other quickly, when the plan that is shown was not seen for a while. A node
    keeps its number from program to program as long as it is called the same.

    Args:
        tell: The messages of a plan's nodes, whose numbers it adds.
    """

    def __init__(self, tell: Tell | None = None) -> None:
        self._tell = lowered_nodes if tell is None else tell
        #: The plan whose program is told.
        self.plan: Plan | None = None
        self._told: dict[int, schema.Node] = {}
        self._numbers: dict[str, int] = {}
        self._version = 0
        self._seen_s = 0.0
        self._steps = -1

    def whole(self, plan: Plan) -> GraphChange:
        """Returns all of a plan's program."""
        self._told = {}
        return self._show(plan)

    def all(self, plan: Plan) -> GraphChange:
        """Returns all that was told so far, of the program of `plan`."""
        return GraphChange(self._version, tuple(self._told.values()), (), fetches=_fetches(plan))

    def change(self, plan: Plan | None, steps: int, now_s: float) -> GraphChange | None:
        """The part of the program that views have not been sent yet; None if there is none.

        Args:
            plan: The plan of the latest step.
            steps: How many steps were run.
            now_s: The time.
        """
        is_still, self._steps = steps == self._steps, steps
        if plan is None or plan is self.plan:
            self._seen_s = now_s
            return None
        if not is_still and now_s - self._seen_s < FOLLOW_S:
            return None
        self._seen_s = now_s
        return self._show(plan)

    def _show(self, plan: Plan) -> GraphChange:
        self.plan = plan
        self._version += 1
        known, nodes = self._told, self._tell(plan, self._numbers)
        self._told = {n.id: n for n in nodes}
        return GraphChange(
            version=self._version,
            added=tuple([n for n in nodes if n.id not in known]),
            placed=(),
            changed=tuple([n for n in nodes if n.id in known and n != known[n.id]]),
            removed=tuple(sorted(known.keys() - self._told.keys())),
            fetches=_fetches(plan),
        )


def lowered_nodes(plan: Plan, numbers: dict[str, int] | None = None) -> tuple[schema.Node, ...]:
    """Returns the nodes of a plan's program, lowered in full.

    Args:
        plan: The plan.
        numbers: Numbers of nodes that are no operation of the user's, by name; new ones are added.
    """
    program = lower(plan.program).program
    feeds = list(zip(program.feeds, plan.request.feeds, strict=True))
    fed = {value: tensor.op for value, tensor in feeds}
    names = LoweredNames({} if numbers is None else numbers)
    return tuple(Teller(program.nodes, fed, names, plan.operations).nodes())


def _fetches(plan: Plan) -> tuple[str, ...]:
    """Returns the names of what a plan fetches."""
    tensors = [t.op.name if t.value_index == 0 else t.name for t in plan.request.fetches]
    return tuple(dict.fromkeys([*tensors, *[op.name for op in plan.request.targets]]))


class LoweredNames:
    """The names and numbers of nodes that are told together: none is given twice.

    Args:
        numbers: Numbers of nodes that are no operation of the user's, by name; new ones are added.
    """

    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers = numbers
        self._taken: set[str | int] = set()

    def is_taken(self, name: str) -> bool:
        """Whether a node is called so."""
        return name in self._taken

    def name(self, name: str, lane: str) -> str:
        """Returns a name for a node; in a lane, what is called so in another one says its own."""
        found = f"{name} ({lane})" if lane and name in self._taken else name
        self._taken.add(found)
        return found

    def number(self, name: str, found: int | None) -> int:
        """Returns the number of a node: that of the user's operation, if no other node has it."""
        if found is None or found in self._taken:
            found = self._numbers.setdefault(name, FIRST_ID + len(self._numbers))
        self._taken.add(found)
        return found


class Teller:
    """Numbers and names the nodes of a program, and tells them.

    Args:
        nodes: The nodes, lowered.
        feeds: The operations of what is fed, by their values.
        names: The names and numbers that were given.
        operations: The user's operations, by their numbers.
        lane: The scope that shows the program; "" where it is the only one.

    Attributes:
        sends: The numbers of the Sends, by their keys.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        feeds: dict[Value, Operation],
        names: LoweredNames,
        operations: Mapping[int, Operation],
        lane: str = "",
    ) -> None:
        self._operations = operations
        self._nodes = tuple(nodes)
        self._feeds = feeds
        self._lane = lane
        self._given = names
        self._names: dict[Node, str] = {n: self._name(n) for n in self._nodes}
        own = [n for n in self._nodes if not isinstance(n.op, Crossing)]
        self._scopes = {parent_path(self._names[n]) for n in own}
        self._fed = {v: names.name(op.name, lane) for v, op in feeds.items()}
        self._ids: dict[Node | Value, int] = {
            v: names.number(self._fed[v], op.id) for v, op in feeds.items()
        }
        self._ids |= {n: names.number(self._names[n], _users_id(n)) for n in self._nodes}
        sent = [(n.op, i) for n, i in self._ids.items() if isinstance(n, Node)]
        self.sends = {op.key: i for op, i in sent if isinstance(op, Send)}

    def nodes(self, sends: Mapping[str, int] | None = None) -> Iterator[schema.Node]:
        """The messages of all nodes.

        Args:
            sends: The numbers of all Sends, by their keys: each is the input of its Recv.
        """
        yield from [self._feed(value, op) for value, op in self._feeds.items()]
        for node in self._nodes:
            told = self._node(node)
            sender = (sends or {}).get(node.op.key) if isinstance(node.op, Recv) else None
            yield told if sender is None else replace(told, inputs=((sender, 0),))

    def _name(self, node: Node) -> str:
        """Returns the name; a part of "loop/Loop" is called "loop/Switch", not "loop/Loop/Switch".

        So it stands in the scope of the loop.
        """
        name = node.name
        owner = part_of(node)
        if owner is not None and owner.name.endswith(f"/{owner.type}"):
            scope, what = parent_path(owner.name), name[len(owner.name) :]
            if name == owner.name + what and not self._given.is_taken(f"{scope}{what}"):
                name = f"{scope}{what}"
        return self._given.name(name, self._lane)

    def _feed(self, value: Value, op: Operation) -> schema.Node:
        return schema.Node(
            id=self._ids[value],
            name=self._fed[value],
            type="Placeholder",
            inputs=(),
            control=(),
            outputs=(output_of(value.spec),),
            attributes={},
            device=op.device,
            placed=None,
            summary="A value that is fed.",
            origin=made_at(op),
            made_from=(_source(op),),
            scope=self._in_lane("", op.name),
        )

    def _node(self, node: Node) -> schema.Node:
        scope, frame = self._shown(node)
        # What crosses stands beside what it brings.
        at = parent_path(self._names[node]) if isinstance(node.op, Crossing) else self._names[node]
        inputs = [(self._ids[v if v.node is None else v.node], self._index(v)) for v in node.inputs]
        return schema.Node(
            id=self._ids[node],
            name=self._names[node],
            type=node.op.type,
            inputs=tuple(inputs),
            control=tuple(self._ids[c] for c in node.control if c in self._ids),
            outputs=tuple(output_of(v.spec.variable or v.spec) for v in _given(node)),
            attributes={k: short(v) for k, v in node.op.attributes().items()},
            device=node.requested,
            placed=node.device or None,
            summary=(type(node.op).__doc__ or "").strip().partition("\n")[0],
            origin=made_at(node.origins[0]) if node.origins else None,
            made_from=tuple([_source(op) for op in node.origins]),
            scope=self._in_lane(scope, at),
            frame=self._in_lane(frame, "") if frame else "",
            flops=flops_of(node.op, [v.spec for v in node.inputs], [v.spec for v in _given(node)]),
        )

    def _in_lane(self, scope: str, name: str) -> str:
        """Returns the scope that shows a node, which lies in the lane's if there is one.

        An operation that is called as a scope lies in it, as in the graph.
        """
        if not self._lane:
            return scope
        inner = scope or (name if name in self._scopes else parent_path(name))
        return f"{self._lane}/{inner}" if inner else self._lane

    def _shown(self, node: Node) -> Shown:
        """Returns where a node is shown: a loop's primitives in the scope that shows the loop."""
        owner = part_of(node)
        if owner is not None:
            is_entry = node.op.type == "Enter" and owner.type == "Loop"
            return Shown(frame=parent_path(self._names[node]) if is_entry else "")
        op = self._operations.get(node.origins[0].id) if node.origins else None
        return shown(op) if op is not None and op.name == node.name else Shown()

    def _index(self, value: Value) -> int:
        return 0 if value.node is None else value.index


def _users_id(node: Node) -> int | None:
    """Returns the id of the user's operation that a node is; None for a part of one."""
    is_own = node.origins and not part_of(node) and not isinstance(node.op, Crossing)
    return node.origins[0].id if is_own else None


def _given(node: Node) -> tuple[Value, ...]:
    """The outputs of a node; a Send's is its input, on another device."""
    return node.inputs[:1] if isinstance(node.op, Send) else node.outputs


def part_of(node: Node) -> OperationRef | None:
    """Returns the branch or loop that a node was made for; None for a user's own operation."""
    if node.origins and not node.blocks and node.origins[0].type in ("Cond", "Loop"):
        return node.origins[0]
    return None


def _source(op: Operation | OperationRef) -> schema.Source:
    return schema.Source(op.id, op.name, op.type)


__all__ = ["LoweredNames", "LoweredWatcher", "Teller", "lowered_nodes", "part_of"]
