"""Where a session's operations run, why, and what it would cost elsewhere; and moving them.

A move is a wish: it is written on the operation (`Operation.device`), as `fs.device` writes it, so
that all later plans agree. Plans that have the operation are made anew; steps that run finish on
the plan that they have. Values of variables go along.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from flowscope.errors import InvalidArgumentError, OpError, UnavailableError
from flowscope.graph.devices import DeviceSpec
from flowscope.graph.lazy import frozen
from flowscope.graph.op import has_kernel
from flowscope.graph.operation import Operation, Tensor, where
from flowscope.graph.summary import duration
from flowscope.graph.values.dtypes import resource
from flowscope.ops.state.variable_ops import VarHandleOp
from flowscope.plan.ir.program import Node, Program
from flowscope.plan.passes.place import place
from flowscope.plan.placement.choices import is_plain
from flowscope.plan.placement.simulation import Greedy, Prediction
from flowscope.plan.plan import Plan
from flowscope.runtime.state.resources import VariableState
from flowscope.runtime.waits.waiting import acquire

if TYPE_CHECKING:
    from flowscope.runtime.planning.planner import Planner
    from flowscope.runtime.session.session import Session


@frozen
class Candidate:
    """A device that an operation could have, or why it cannot.

    Attributes:
        device: The device's full name.
        seconds: When the operation would be done there, from the begin of a step, all others being
            where they are; None where that is not possible.
        reason: Why it is not possible, "" where it is.
    """

    device: str
    seconds: float | None
    reason: str = ""


@frozen
class OpPlacement:
    """Where one operation of a plan runs.

    Attributes:
        name: The operation's name.
        type: Its op type.
        requested: The device that was asked for, "" for none.
        device: Full name of its device.
        reason: Why it is there.
        candidates: All devices of the session.
    """

    name: str
    type: str
    requested: str
    device: str
    reason: str
    candidates: tuple[Candidate, ...]

    @property
    def is_moved(self) -> bool:
        """Whether it runs on a device that was not asked for."""
        return not _allows(self.requested, self.device)


class Placement(tuple[OpPlacement, ...]):
    """Where the operations of a plan run, in the order in which they run; its text is a table.

    Attributes:
        predicted_s: Seconds that a step takes, as costs say now.
    """

    predicted_s: float = 0.0

    @property
    def moved(self) -> tuple[OpPlacement, ...]:
        """The operations that run on another device than was asked for."""
        return tuple([one for one in self if one.is_moved])

    def text(self) -> str:
        """Returns a line per operation: name, type, device, what was asked for, reason."""
        rows = [(p.name, p.type, _short(p.device), p.requested or "-", p.reason) for p in self]
        wide = [max((len(r[i]) for r in rows), default=0) for i in range(4)]
        lines = [
            "  ".join([*(c.ljust(w) for c, w in zip(row, wide, strict=False)), row[4]])
            for row in rows
        ]
        lines.append(f"predicted: {duration(self.predicted_s)} a step")
        if self.moved:
            lines.append("moved: " + ", ".join(f'"{p.name}"' for p in self.moved))
        return "\n".join(lines)

    __repr__ = text


@frozen
class Move:
    """What a move changes.

    Attributes:
        before_s, after_s: Predicted seconds of a step; None where no plan has the operations, and
            after it where it is refused.
        moved_bytes: Bytes of variables' values that go along.
        refused: Why it cannot be; None where it can.
    """

    before_s: float | None
    after_s: float | None
    moved_bytes: int
    refused: str | None = None


# -- what is so ------------------------------------------------------------------------------------


def placement(session: Session, fetches: Any, feeds: Any = (), anew: bool = False) -> Placement:
    """Returns where operations run; see `Session.placement`."""
    planner = session.planner
    call = session._call(fetches, feeds, session.config.mode)
    if isinstance(feeds, Mapping):
        planner.note_fed(call.plan.request.feeds, list(feeds.values()))
    if anew and session.config.placement == "simulated":
        planner.unsettle(call.plan)
        call = session._call(fetches, feeds, session.config.mode)
    return placement_of(session, call.plan)


def placement_of(session: Session, plan: Plan) -> Placement:
    """Returns where the operations of a plan run, and what the costs of now say of it."""
    planner = session.planner
    program, machine = plan.placed, planner.machine()
    costs = planner.costs(plan.request.feeds, program)
    groups, able = _fixed(program, machine.numbers)
    explained = Greedy(program, machine, costs, groups, able, True, True)
    explained.run()
    found = Placement([_told(node, explained, machine.names) for node in program.walk()])
    found.predicted_s = Prediction(program, machine, costs).run()
    return found


def _fixed(
    program: Program, numbers: Mapping[str, int]
) -> tuple[list[tuple[list[Node], list[int]]], dict[int, int]]:
    """Returns the nodes of a placed program with all devices, and the devices that they have."""
    nodes = [n for n in program.walk() if not n.blocks]
    anywhere = list(numbers.values())
    groups = [([n], anywhere) for n in nodes]
    return groups, {i: numbers[n.device] for i, n in enumerate(nodes)}


def _told(node: Node, explained: Greedy, names: Sequence[str]) -> OpPlacement:
    requested = "" if node.blocks else node.requested
    devices = () if node.blocks else names
    candidates = tuple([_candidate(node, explained, i, d) for i, d in enumerate(devices)])
    return OpPlacement(node.name, node.op.type, requested, node.device, node.reason, candidates)


def _candidate(node: Node, explained: Greedy, number: int, name: str) -> Candidate:
    kind = DeviceSpec.from_string(name).device_type or ""
    if not has_kernel(node.op, kind):
        return Candidate(name, None, f"{node.op.type} has no kernel for {kind}")
    if kind != "CPU" and not is_plain(node):
        return Candidate(name, None, f"a {kind} cannot hold its values")
    if not _allows(node.requested, name):
        return Candidate(name, None, f"asked for {node.requested}")
    if node not in explained.tried:
        return Candidate(name, 0.0)
    seconds = explained.tried[node].get(number)
    return Candidate(name, seconds, "" if seconds is not None else "its memory is full")


# -- moving ----------------------------------------------------------------------------------------


def predict_move(
    session: Session, op_or_scope: Any, device: Any, fetches: Any, feeds: Any = ()
) -> Move:
    """Predicts a move; see `Session.predict_move`."""
    call = session._call(fetches, feeds, session.config.mode)
    if isinstance(feeds, Mapping):
        session.planner.note_fed(call.plan.request.feeds, list(feeds.values()))
    return predict_move_of(session, call.plan, op_or_scope, device)


def predict_move_of(session: Session, plan: Plan, op_or_scope: Any, device: Any) -> Move:
    """Predicts how a move changes the steps of a plan."""
    wishes, operations = _wishes(session, op_or_scope, device)
    found = _predicted(session, plan, wishes)[0]
    refused = _without_kernel(operations, next(iter(wishes.values())))
    return found if refused is None else Move(found.before_s, None, 0, refused)


def move(session: Session, op_or_scope: Any, device: Any) -> Move:
    """Moves operations to a device; see `Session.move`."""
    planner = session.planner
    acquire(planner.lock, "for a plan of the session")
    try:
        wishes, operations = _wishes(session, op_or_scope, device)
        found = Move(None, None, 0, _without_kernel(operations, next(iter(wishes.values()))))
        if found.refused is not None:
            raise InvalidArgumentError(found.refused)
        going: dict[Operation, str] = {}
        for call in planner.calls.all():
            if call.is_current(session.graph) and wishes.keys() & call.plan.operations.keys():
                found, handles = _predicted(session, call.plan, wishes)
                if found.refused is not None:
                    raise InvalidArgumentError(found.refused)
                going.update(handles)
        _check_queues_stay(planner, going)
        left = [_brought(planner, handle, name) for handle, name in going.items()]
        for op in operations:
            op.device = wishes[op.id]
            session.graph.edited(op)
            planner.moves.add(session.graph.edits)
        for state in left:
            if state is not None:
                with suppress(UnavailableError):  # it hangs or is lost: with it goes what it has
                    state.drop()
    finally:
        planner.lock.release()
    return found


def _brought(planner: Planner, handle: Operation, name: str) -> Any:
    """Brings the value of a variable to another device; returns the state that it leaves, if any.

    That keeps the value until the operations have moved: so a move that fails has moved nothing.
    """
    op, before = handle.definition, planner.placements.get(handle.id, "")
    state = planner.state_at(op, before)
    if not planner.is_elsewhere(before) and not planner.is_elsewhere(name):
        if isinstance(state, VariableState):
            state.relocate(planner.device_named(name).put)
    elif isinstance(op, VarHandleOp) and state.is_initialized:
        planner.state_at(op, name).assign(state.read())
        return state
    return None


def _predicted(
    session: Session, plan: Plan, wishes: Mapping[int, str]
) -> tuple[Move, dict[Operation, str]]:
    """The plan's changes by wishes, and the handles whose device changes."""
    planner, request = session.planner, plan.request
    before, machine = plan.placed, planner.machine()
    costs = planner.costs(request.feeds, before)
    before_s = Prediction(before, machine, costs).run()
    try:
        devices, soft = request.devices, request.soft_placement
        after = place(before, devices, soft, request.by_cost, wishes)
    except InvalidArgumentError as e:
        return Move(before_s, None, 0, str(e)), {}
    for node in after.walk():
        wish = wishes.get(node.origins[0].id) if node.origins else None
        if wish and not node.blocks and not _allows(wish, node.device):
            return Move(before_s, None, 0, f'"{node.name}": {node.reason}'), {}
    costs = planner.costs(request.feeds, after)
    after_s = Prediction(after, machine, costs).run()
    was = {n.origins[0].id: n.device for n in before.walk() if n.origins}
    going = {
        op: n.device
        for n in after.walk()
        if n.op.is_handle and n.device != was.get(n.origins[0].id, n.device)
        if (op := n.origins[0].operation) is not None
    }
    return Move(before_s, after_s, sum(_value_bytes(session, op) for op in going)), going


def _check_queues_stay(planner: Planner, going: Mapping[Operation, str]) -> None:
    for handle, name in going.items():
        before = planner.placements.get(handle.id, "")
        is_far = planner.is_elsewhere(before) or planner.is_elsewhere(name)
        if is_far and not isinstance(handle.definition, VarHandleOp):
            raise InvalidArgumentError(
                f'"{handle.name}" is on {before}, and what is in it stays in that process: close '
                "the session, ask for the other device and make it anew"
            )


def _value_bytes(session: Session, handle: Operation) -> int:
    planner = session.planner
    state = planner.state_at(handle.definition, planner.placements.get(handle.id, ""))
    if isinstance(state, VariableState):
        return int(getattr(state.value, "nbytes", 0))
    return int(getattr(state, "nbytes", 0))


def _wishes(
    session: Session, op_or_scope: Any, device: Any
) -> tuple[dict[int, str], list[Operation]]:
    """The wishes of a move by the operations' ids, and the operations."""
    name = _device(session, device)
    chosen = [op for op in _operations(session, op_or_scope) if not op.definition.is_parameter]
    if not chosen:
        raise InvalidArgumentError(
            f"a parameter of a body is wherever the value is that it stands for: expected an "
            f"operation that computes something, got {op_or_scope!r}"
        )
    found = dict.fromkeys(chosen)
    for handle in [op for op in chosen if op.definition.is_handle]:
        found.update(dict.fromkeys(_followers(session, handle)))
    return {op.id: name for op in found}, list(found)


def _without_kernel(operations: Sequence[Operation], device: str) -> str | None:
    """Says which of some operations has no kernel for a device; None if none has not."""
    kind = DeviceSpec.from_string(device).device_type or ""
    for op in operations:
        if not _has_functions(op) and not has_kernel(op.definition, kind):
            made = where(op)["origin"]
            place = f", made in {made}" if made else ""
            return f'"{op.name}"{place}, cannot run on {device}: {op.type} has no kernel for {kind}'
    return None


def _device(session: Session, device: Any) -> str:
    """Returns the name to ask for so that it is the session's device that is meant."""
    wish = DeviceSpec.from_string(str(device))
    found = [d.name for d in session.devices if wish.allows(d.spec)]
    if not found or (not wish.device_type and wish.device_index is None):
        names = ", ".join(d.name for d in session.devices)
        raise InvalidArgumentError(f"expected a device among {names}, got {str(device)!r}")
    spec = DeviceSpec.from_string(found[0])
    if session.cluster is not None:
        return str(spec)
    return DeviceSpec(device_type=spec.device_type, device_index=spec.device_index).to_string()


def _operations(session: Session, thing: Any) -> list[Operation]:
    """Returns the operation that is meant and those that it runs, or those of a scope."""
    if isinstance(thing, list | tuple):
        return list(dict.fromkeys([op for one in thing for op in _operations(session, one)]))
    graph = session.graph
    handle = getattr(thing, "handle", None)
    inside: list[Operation] = []
    if isinstance(thing, str):
        thing = thing.rstrip("/")
        inside = [op for op in graph.get_operations() if op.name.startswith(f"{thing}/")]
    try:
        element = handle if isinstance(handle, Tensor) else graph.as_graph_element(thing)
    except OpError:
        if inside:
            return inside  # a scope has no operation of its name
        raise
    own = element.op if isinstance(element, Tensor) else element
    return list(dict.fromkeys([*_whole(own), *inside]))


def _whole(op: Operation) -> Iterator[Operation]:
    """Yields an operation and those of the bodies that it runs."""
    yield op
    for function in getattr(op.definition, "functions", ()):
        for inner in function.block.operations:
            yield from _whole(inner)


def _has_functions(op: Operation) -> bool:
    return bool(getattr(op.definition, "functions", ()))


def _followers(session: Session, handle: Operation) -> Iterable[Operation]:
    """Returns the operations that asked for a variable's device because they touch it."""
    own = handle.outputs[0]
    for op in session.graph.get_operations():
        if own in op.inputs and op.device == handle.device and own.spec.dtype is resource:
            yield op


def _allows(wish: str, device: str) -> bool:
    return DeviceSpec.from_string(wish).allows(DeviceSpec.from_string(device))


def _short(device: str) -> str:
    return device.rpartition("/device:")[2]


__all__ = [
    "Candidate",
    "Move",
    "OpPlacement",
    "Placement",
    "move",
    "placement",
    "placement_of",
    "predict_move",
    "predict_move_of",
]
