"""Explaining an operation: what the graph, the plan, the debugger and a recording say of it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from flowscope.control.cond import Cond
from flowscope.control.loop import Loop
from flowscope.debug.explanation import ExplainedTensor, Explanation, Sentence, Source, Topic
from flowscope.debug.statistics import picture, statistics
from flowscope.errors import FailedPreconditionError
from flowscope.graph.constant import Const
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.summary import counted, duration
from flowscope.graph.values.dtypes import resource, variant
from flowscope.ops.core.send_recv import Transfer
from flowscope.ops.state.variable_ops import ReadVariableOp
from flowscope.plan.analysis.costs import Costs
from flowscope.plan.analysis.locations import LoopAt
from flowscope.plan.ir.program import Node
from flowscope.plan.ir.structured import LoopNode
from flowscope.plan.ir.tensor_map import TensorAt
from flowscope.plan.plan import Plan
from flowscope.runtime.state.resources import VariableState
from flowscope.runtime.step.frames import RunningFrame, running

if TYPE_CHECKING:
    from flowscope.debug.stops import Stop
    from flowscope.runtime.session.session import Session
    from flowscope.tracing.recording import Totals, TracedNode

#: Inputs and outputs that are told, at most.
MOST_TENSORS = 16
#: Names that are listed in a sentence, at most.
MOST_NAMES = 3
RUN_A_STEP = "Run a step to see what becomes of it."
HOLD_A_STEP = (
    "To see its values, hold a step there: pause, or set a breakpoint; or record before a step."
)

#: Measured: how often the node of an operation ran, and its own nanoseconds, by the operation's id.
Measured = Mapping[int, tuple[int, int]]


def explain(session: Session, op: Operation, measured: Measured | None = None) -> Explanation:
    """Explains an operation with the values of the step that is held.

    Args:
        session: The session whose steps are told of.
        op: An operation of its graph.
        measured: What was measured of traced steps.
    """
    return _Explaining(session, op, measured or {}).explanation()


def measured(nodes: Sequence[TracedNode], totals: Totals) -> Measured:
    """Measured times by operation; operations of one node share one."""
    found: dict[int, tuple[int, int]] = {}
    for i, node in enumerate(nodes):
        one = int(totals.count[i]), int(totals.self_ns[i])
        for op in node.operations if one[0] else ():
            found[op] = one
    return found


class _Explaining:
    def __init__(self, session: Session, op: Operation, measured: Measured) -> None:
        self._session = session
        self._op = op
        self._measured = measured
        debug = session.debug if session.is_debugged or session.gate.state == "paused" else None
        stops = () if debug is None else debug.stops
        self._stop: Stop | None = stops[-1] if stops else None
        self._history = None if debug is None else debug.history
        self._plan = session.latest_plan if self._stop is None else self._stop.plan
        self._sentences: list[Sentence] = []

    def _say(self, topic: Topic, *texts: str) -> None:
        self._sentences += [Sentence(topic, text) for text in texts if text]

    def explanation(self) -> Explanation:
        op, plan = self._op, self._plan
        self._say("computes", f'"{op.name}" has the op type {op.type}: {summary_of(op)}')
        places = plan.locate(op.outputs[0]) if plan is not None and op.outputs else ()
        node = None if plan is None else _node_of(plan, op, places)
        self._say("step", *self._became(plan, node, places))
        is_run = node is not None and not isinstance(node.op, Const) and not node.op.is_handle
        is_run = is_run and not op.definition.is_parameter
        seconds, is_measured = None, False
        if plan is not None and node is not None and is_run:
            self._say("device", f"It runs on {node.device}: {node.reason or 'it may run there'}.")
            seconds, is_measured = self._cost(plan, node)
        iteration = self._around()
        tensors = self._tensors()
        is_seen = any(t.source for t in tensors if t.role == "output") or not op.outputs
        if plan is not None and self._stop is None and not is_seen:
            self._say("values", HOLD_A_STEP)
        self._say("made", _made(op))
        gradients = tuple([o.name for o in op.graph.get_operations() if o.forward is op])
        of = "" if op.forward is None else op.forward.name
        self._say("gradient", *_gradient(of, gradients))
        device = "" if node is None or not is_run else node.device
        return Explanation(
            op.name, op.type, tuple(self._sentences), tensors, places[0].kind if places else "",
            device, seconds, is_measured, iteration, of, gradients,
        )  # fmt: skip

    # -- what became of it ----------------------------------------------------------------------

    def _became(
        self, plan: Plan | None, node: Node | None, places: Sequence[TensorAt]
    ) -> tuple[str, ...]:
        if plan is None:
            return (f"No step has run yet. {RUN_A_STEP}",)
        step = "The latest step"
        if self._stop is not None:
            step = f"Step {self._stop.step}, " + (
                "computed again," if self._stop.is_past else "which is held,"
            )
        if not places:
            why = "no fetch or target of this plan needs it"
            return (f"{step} runs it.",) if node else (f"{step} does not run it: {why}.",)
        at = places[0]
        others = f", once in each of {len(places)} calls" if len(places) > 1 else ""
        if at.kind == "constant" and isinstance(self._op.definition, Const):
            return ("Its value is known before the step: nothing computes it.",)
        definition = self._op.definition
        if (definition.is_handle or definition.is_parameter) and at.kind == "value":
            return (f"{step} uses it.",)
        told = {
            "value": f"{step} computes it{others}{_with(node, self._op)}.",
            "same": f"{step} does not compute it by itself: {at.why}.",
            "constant": f"{step} does not compute it: it was folded to a constant when the plan "
            "was made.",
            "fed": f"{step} does not compute it: its value is fed.",
            "absent": f"{step} does not compute it: {at.why}.",
        }
        return (told[at.kind],)

    def _cost(self, plan: Plan, node: Node) -> tuple[float, bool]:
        """Tells what one run of its node takes."""
        costs = self._session.planner.costs(plan.request.feeds, plan.program)
        self._bytes(costs, node)
        count, own_ns = self._measured.get(self._op.id, (0, 0))
        if count:
            seconds, runs = own_ns * 1e-9 / count, counted(count, "run")
            self._say("cost", f"It takes {duration(seconds)} each time, as measured in {runs}.")
            return seconds, True
        seconds, is_measured = costs.seconds(node), costs.is_measured(node)
        how = "as was measured" if is_measured else "estimated from shapes: trace a step to measure"
        what = "One iteration" if isinstance(node, LoopNode) else "It"
        self._say("cost", f"{what} takes about {duration(seconds)}, {how}.")
        return seconds, is_measured

    def _bytes(self, costs: Costs, node: Node) -> None:
        """Tells how large values of open dimensions are taken to be, and why."""
        values = [v for v in node.outputs if v.spec.shape is None or None in v.spec.shape]
        if not values or values[0].spec.dtype in (resource, variant):
            return
        nbytes = sum(costs.nbytes(v) for v in values)
        if not all(costs.has_known_bytes(v) for v in values):
            how = "a guess, for nothing tells the open dimensions: measure a step"
        elif any(costs.is_size_measured(v) for v in values):
            how = "as was measured last"
        else:
            how = "as follows from what was fed last"
        self._say(
            "cost", f"Its values have open dimensions: they count as {nbytes:,} bytes, {how}."
        )

    # -- where it stands ------------------------------------------------------------------------

    def _around(self) -> int | None:
        """Tells of the loops, branches and functions around; returns the iteration."""
        op = self._op
        definition = op.definition
        if isinstance(definition, Loop):
            frame = self._frame(op)
            variables = counted(definition.variables, "loop variable")
            self._say("block", f"It carries {variables} from one iteration to the next.")
            self._say("block", _iteration_text("It", frame))
            return None if frame is None else frame.iteration
        owner, function = _owner(op)
        if owner is None or function is None:
            if op.block.name:
                self._say("block", f'It is in the function "{op.block.name}".')
            return None
        if isinstance(owner.definition, Cond):
            side = "true" if function is owner.definition.then else "false"
            pred = owner.inputs[0].name
            self._say("block", f'It is in a branch of "{owner.name}": it runs where "{pred}" is '
                               f"{side}.")  # fmt: skip
            return None
        if not isinstance(owner.definition, Loop):
            self._say("block", f'It is in the function "{function.name}", which "{owner.name}" '
                               "runs.")  # fmt: skip
            return None
        self._say("block", *_loop_roles(op, owner, owner.definition, function))
        frame = self._frame(owner)
        self._say("block", _iteration_text("The loop", frame))
        return None if frame is None else frame.iteration

    def _frame(self, loop: Operation) -> RunningFrame | LoopAt | None:
        """Returns where a loop is; None where it does not run."""
        at: Sequence[RunningFrame | LoopAt]
        if self._stop is not None:
            at = self._stop.loops
        else:
            at = running(self._session.gate.report()[0].values())
        found = [f for f in at if any(o.operation is loop for o in f.node.origins)]
        return found[-1] if found else None

    # -- values ---------------------------------------------------------------------------------

    def _tensors(self) -> tuple[ExplainedTensor, ...]:
        op = self._op
        told = [self._tensor("input", t) for t in op.inputs[:MOST_TENSORS]]
        told += [self._tensor("output", t) for t in op.outputs[:MOST_TENSORS]]
        left = sum(max(0, len(ts) - MOST_TENSORS) for ts in (op.inputs, op.outputs))
        self._say("values", f"{counted(left, 'tensor')} more are not shown." if left else "")
        return tuple(told)

    def _tensor(self, role: Literal["input", "output"], tensor: Tensor) -> ExplainedTensor:
        facts = role, tensor.name, tensor.dtype.name, tensor.spec.shape
        source, why, array = self._value(tensor)
        if array is None:
            return ExplainedTensor(*facts, "", why)
        return ExplainedTensor(*facts, source, why, statistics(array), picture(array))

    def _value(self, tensor: Tensor) -> tuple[Source, str, Any]:
        """Returns a tensor's value, where it is from, and what is to be said of it."""
        if tensor.spec.constant is not None:
            return "constant", "a constant", tensor.spec.constant
        why = ""
        if self._stop is not None:
            try:
                look = self._stop.look(tensor)
                if look.state == "alive":
                    return "held", look.why, self._stop.value(tensor)
                why = look.why if look.state in look.why else f"{look.state}: {look.why}"
            except FailedPreconditionError:
                why = "the step has gone on"
        recorded = self._recorded(tensor)
        if recorded is not None:
            return recorded
        found = self._variable(tensor)
        return found if found is not None else ("", why, None)

    def _recorded(self, tensor: Tensor) -> tuple[Source, str, Any] | None:
        if self._history is None or tensor not in self._history.tensors:
            return None
        kept = self._history.newest(tensor)
        if kept is None:
            return None
        path = "".join(f", iteration {i}" for i in kept.iterations)
        return "recorded", f"as in step {kept.step}{path}", kept.value

    def _variable(self, tensor: Tensor) -> tuple[Source, str, Any] | None:
        """The present state of a variable, for its handle and for its reads."""
        op = tensor.op
        handle = tensor if op.definition.is_handle else None
        if isinstance(op.definition, ReadVariableOp):
            handle = op.inputs[0]
        if handle is None or not handle.op.definition.is_handle or self._session.cluster:
            return None
        try:
            state: Any = self._session.variable_state(handle)  # or of a queue, a table
            if isinstance(state, VariableState):
                return "variable", "as the variable is now", state.current()
        except FailedPreconditionError:
            return "", "the variable has no value yet", None
        return None


# -- what the graph says ---------------------------------------------------------------------------


def summary_of(op: Operation) -> str:
    """The first sentences of an op type's documentation."""
    return " ".join(
        inspect.cleandoc(type(op.definition).__doc__ or "").partition("\n\n")[0].split()
    )


def _made(op: Operation) -> str:
    place = op.origin.place
    if place is None:
        return ""
    return f"It was made at {place}" + (f": {place.text}" if place.text else ".")


def _gradient(of: str, gradients: Sequence[str]) -> list[str]:
    told = [f'It is part of the gradient of "{of}".'] if of else []
    if gradients:
        count = counted(len(gradients), "operation")
        told.append(f"Its own gradient is made of {count}: {_names(gradients)}.")
    return told


def _names(names: Sequence[str]) -> str:
    told = ", ".join(f'"{name}"' for name in names[:MOST_NAMES])
    left = len(names) - MOST_NAMES
    return told + (f" and {left} more" if left > 0 else "")


def _with(node: Node | None, op: Operation) -> str:
    """Tells with which others it was merged: neither with what runs blocks nor their parameters."""
    found = [] if node is None else [o.operation for o in node.origins]
    others = [
        one.name
        for one in found
        if one is not None
        and one is not op
        and not one.definition.is_parameter
        and not getattr(one.definition, "functions", ())
    ]
    return f", together with {_names(others)}" if others else ""


def _node_of(plan: Plan, op: Operation, places: Sequence[TensorAt]) -> Node | None:
    """Returns the node that does what an operation does; None where none does."""
    for at in places:
        if at.kind == "value" and at.value is not None and at.value.node is not None:
            return at.value.node
    for node in plan.program.walk():
        own = not isinstance(node.op, Transfer) and node.op.type == op.type
        if own and any(origin.operation is op for origin in node.origins):
            return node
    return None


def _owner(op: Operation) -> tuple[Operation | None, Any]:
    """Returns the operation that runs the block that an operation is in, and the function."""
    if not op.block.name:
        return None, None
    for one in op.graph.get_operations():
        for function in getattr(one.definition, "functions", ()):
            if function.block is op.block:
                return one, function
    return None, None


def _loop_roles(op: Operation, owner: Operation, loop: Loop, function: Any) -> list[str]:
    """Sentences on the part that an operation has in its loop."""
    part = "body" if function is loop.body else "condition"
    told = [f'It is in the {part} of the loop "{owner.name}": it runs in every iteration.']
    for i, parameter in enumerate(function.parameters):
        if parameter.op is not op:
            continue
        if i < loop.variables:
            start = owner.inputs[loop.first + i].name
            after = loop.body.results[i].name
            told.append(f'It is loop variable {i}: it begins as "{start}", and each iteration '
                        f'makes its next value, "{after}".')  # fmt: skip
        elif part == "body" and i < loop.carried:
            told.append("It is an element of a list that the forward loop has kept.")
        else:
            told.append(f"It is a loop invariant{_outside(function, parameter)}.")
    for i, result in enumerate(loop.body.results[: loop.variables] if part == "body" else ()):
        if result.op is op and not op.definition.is_parameter:
            told.append(f"It makes the next value of loop variable {i}.")
    if part == "condition" and any(t.op is op for t in function.results):
        told.append("It decides whether there is another iteration.")
    return told


def _outside(function: Any, parameter: Tensor) -> str:
    found = [outer for inner, outer in function.pairs() if inner is parameter]
    return f': the value of "{found[0].name}", the same in every iteration' if found else ""


def _iteration_text(what: str, frame: RunningFrame | LoopAt | None) -> str:
    if frame is None:
        return ""
    limit = "" if frame.limit is None else f" of {frame.limit} at most"
    return f"{what} is in iteration {frame.iteration}{limit}, counted from 0."


__all__ = ["HOLD_A_STEP", "MOST_TENSORS", "Measured", "explain", "measured", "summary_of"]
