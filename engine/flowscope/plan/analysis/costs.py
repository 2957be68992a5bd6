"""Costs: an estimate of the seconds that one invocation of a node takes.

The contract: (node, device type, shapes) -> seconds.

- What was measured wins: a `CostTable` knows the seconds of invocations by op, input dtypes and
  shapes, and device type.
- Else the op's work (`Op.work`) follows from shapes, and its calls (`Op.calls`) are added. Where
  shapes are not known statically, those count that follow from the fed arrays of the step for which
  the plan is made.
- Where shapes are not known even then, an invocation takes `UNKNOWN_S`.

A plan is made with the costs of that moment and keeps what it has decided by them: figures that are
measured later count for plans that are made later. So nothing moves while a model runs, and
results, which no decision changes by a bit, come in the same time.

The rates are constants: one core of a Xeon at 2.8 GHz, NumPy 2.4, measured op by op with
`runtime.trace.cost_learning` on the programs of `tests/plan/test_costs.py`, which compares the
orders of estimates and measurements. For decisions their ratios count, and these differ little
between processors.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flowscope.graph.op import Spec
from flowscope.graph.values.dtypes import resource, variant
from flowscope.graph.values.shapes import Dims, compatible, is_known, size_of
from flowscope.graph.values.work import PRODUCT
from flowscope.plan.analysis.device_profile import CPU_PROFILE, DeviceProfile
from flowscope.plan.analysis.saved_for_backward import trips
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import CondNode, LoopNode

#: Seconds of an invocation whose shapes are unknown.
UNKNOWN_S = 50e-6
#: Bytes of a value whose shape is unknown.
UNKNOWN_BYTES = 4096
#: How often a loop runs of which nothing is known.
UNKNOWN_TRIPS = 10.0
#: Seconds of a call of NumPy's, and of a line of Python on a number.
CALL_S = 1e-6
SCALAR_S = 0.05e-6
#: Bytes that are read and written in a second.
BYTES_PER_S = 10e9
#: Multiplications and additions of float32 that a product does in a second; of float64 half.
PRODUCT_FLOPS_PER_S = 60e9
#: What other ops do in a second: they are bound by memory more often.
FLOPS_PER_S = 4e9


def estimate(node: Node, inputs: Sequence[Spec] = (), outputs: Sequence[Spec] = ()) -> float:
    """Returns the seconds of one invocation on a CPU as they follow from shapes.

    Args:
        node: The node. One with blocks takes as long as one run of each of them.
        inputs, outputs: What is known of them; the node's own specs by default.
    """
    if node.blocks:
        return sum((estimate(n) for block in node.blocks for n in block.nodes), CALL_S)
    found = estimate_on(CPU_PROFILE, node, inputs, outputs)
    return UNKNOWN_S if found is None else found


def estimate_on(
    profile: DeviceProfile, node: Node, inputs: Sequence[Spec] = (), outputs: Sequence[Spec] = ()
) -> float | None:
    """Returns the seconds of one invocation on a device; None where shapes are unknown.

    Args:
        profile: How quick the device is.
        node: A node without blocks.
        inputs, outputs: What is known of them; the node's own specs by default.
    """
    ins = tuple(inputs) or tuple([v.spec for v in node.inputs])
    outs = tuple(outputs) or tuple([v.spec for v in node.outputs])
    for spec in (*outs, *ins):
        if spec.shape != () or spec.dtype is resource:
            break
    else:
        is_line = node.op.expression and profile.link is None
        return SCALAR_S / profile.speed if is_line else profile.seconds(0.0)
    work_s = _work(node, ins, outs)
    return None if work_s is None else profile.seconds(work_s, node.op.calls)


def _work(node: Node, ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> float | None:
    """The seconds of an invocation's work on a CPU, without those of the calls."""
    op = node.op
    if op.views or (op.reads_state and not op.writes_state):
        return 0.0  # nothing is copied
    if op.work is not None and op.work is not PRODUCT:
        return op.work.seconds_of(ins, outs)
    cost = op.cost(ins, outs)
    if cost.flops is None or cost.nbytes is None:
        return None
    rate = FLOPS_PER_S
    if op.work is PRODUCT:
        rate = PRODUCT_FLOPS_PER_S / (2 if outs[0].dtype.size > 4 else 1)
    return cost.flops / rate + cost.nbytes / BYTES_PER_S


#: An op, the dtypes and shapes of its inputs, the type of its device.
_Key = tuple[Any, ...]


@dataclass
class _Measured:
    seconds: float
    count: int


class CostTable:
    """What was measured, of a session's graph.

    The quickest of several measurements counts: what others do on the machine adds to the rest.
    """

    def __init__(self) -> None:
        self._measured: dict[_Key, _Measured] = {}
        #: How often loops ran that planning cannot count, and how often predicates were true, each
        #: with how often that was seen.
        self._often: dict[_Identity, tuple[float, int]] = {}
        #: The shapes of the newest outputs of nodes for which planning does not know them all.
        self._made: dict[_Identity, tuple[Dims, ...]] = {}

    def learn_often(self, node: Node, often: float) -> None:
        """Notes how often a loop ran, or whether (1 or 0) a branch's predicate was true."""
        key = _identity(node)
        seen, count = self._often.get(key, (0.0, 0))
        if isinstance(node, LoopNode):
            self._often[key] = float(often), count + 1
        else:
            self._often[key] = (seen * count + often) / (count + 1), count + 1

    def often(self, node: Node) -> float | None:
        """The last count of a loop, or a predicate's share of true values; None if not learned."""
        found = self._often.get(_identity(node))
        return None if found is None else found[0]

    def learn_made(self, node: Node, outputs: Sequence[Any]) -> None:
        """Notes the shapes of what a node has made, where planning does not know them."""
        if not all(is_known(v.spec.shape) for v in node.outputs):
            self._made[_identity(node)] = tuple(getattr(x, "shape", None) for x in outputs)

    def made(self, value: Value) -> Dims:
        """Returns the shape that a value had when it was measured last; None where it was not."""
        if not self._made or value.node is None:
            return None
        shapes = self._made.get(_identity(value.node), ())
        found = shapes[value.index] if value.index < len(shapes) else None
        return found if compatible(value.spec.shape, found) else None

    def forget(self, edited: Collection[int]) -> None:
        """Forgets what belongs to operations that are others now, by their numbers.

        Seconds stay: they belong to ops and shapes.
        """
        for known in (self._often, self._made):
            for key in [k for k in known if not set(k[1]).isdisjoint(edited)]:
                del known[key]

    def learn(self, node: Node, inputs: Sequence[Any], seconds: float) -> None:
        """Notes what one invocation took.

        Args:
            node: The node.
            inputs: The arrays that it was given.
            seconds: What it took.
        """
        shapes = [tuple(getattr(x, "shape", ())) for x in inputs]
        key = _key(node, shapes)
        if key is None:
            return
        known = self._measured.get(key)
        if known is None:
            self._measured[key] = _Measured(seconds, 1)
        else:
            known.seconds, known.count = min(known.seconds, seconds), known.count + 1

    def find(
        self, node: Node, shapes: Sequence[Dims], device_type: str | None = None
    ) -> float | None:
        """Returns the seconds of invocations with inputs of these shapes; None if not measured.

        Args:
            node: The node.
            shapes: The shapes of its inputs.
            device_type: Where it would run; where the node was placed by default.
        """
        if not self._measured or any(s is None or None in s for s in shapes):
            return None
        key = _key(node, shapes, device_type)
        found = None if key is None else self._measured.get(key)
        return None if found is None else found.seconds

    def __len__(self) -> int:
        return len(self._measured)


#: What tells a node of a graph from all others, in whichever plan: its name, and the numbers of the
#: operations that it was made of.
_Identity = tuple[str, tuple[int, ...]]


def _identity(node: Node) -> _Identity:
    return node.name, tuple([o.id for o in node.origins])


def _key(node: Node, shapes: Sequence[Any], device_type: str | None = None) -> _Key | None:
    if node.blocks or node.op.is_handle or node.op.is_blocking:
        return None
    dtypes = tuple([v.spec.dtype for v in node.inputs])
    device = device_type or node.device.rpartition("device:")[2].partition(":")[0]
    return node.op, dtypes, tuple([tuple(s) for s in shapes]), device


class Costs:
    """The costs of one program, as they are while its plan is made.

    Args:
        table: What was measured.
        specs: What is known of values beyond their own specs; see `fed_specs`.
    """

    def __init__(
        self, table: CostTable | None = None, specs: Mapping[Value, Spec] | None = None
    ) -> None:
        self._table = CostTable() if table is None else table
        self._specs = specs or {}
        #: What `seconds` has answered: several parts of planning ask for each node.
        self._seconds: dict[Node, float] = {}

    def spec(self, value: Value) -> Spec:
        """The known Spec of a value: its shape may be the one that was measured last."""
        found = self._specs.get(value, value.spec)
        if is_known(found.shape) or found.dtype in (variant, resource):
            return found
        measured = self._table.made(value)
        return found if measured is None else Spec(found.dtype, measured)

    def seconds(self, node: Node) -> float:
        """Returns the seconds of one invocation of a node of the program."""
        found = self._seconds.get(node)
        if found is None:
            found = self._seconds[node] = self._estimated(node)
        return found

    def _estimated(self, node: Node) -> float:
        if node.blocks:
            return sum((self.seconds(n) for b in node.blocks for n in b.nodes), CALL_S)
        inputs = [self.spec(v) for v in node.inputs]
        measured = self._table.find(node, [s.shape for s in inputs])
        if measured is not None:
            return measured
        return estimate(node, inputs, [self.spec(v) for v in node.outputs])

    def seconds_on(self, node: Node, device_type: str, profile: DeviceProfile) -> float:
        """Returns the seconds of one invocation of a node without blocks on a device.

        What was measured on devices of this type wins.
        """
        inputs = [self.spec(v) for v in node.inputs]
        measured = self._table.find(node, [s.shape for s in inputs], device_type)
        if measured is not None:
            return measured
        outputs = [self.spec(v) for v in node.outputs]
        found = estimate_on(profile, node, inputs, outputs)
        return UNKNOWN_S if found is None else found

    def is_known(self, node: Node) -> bool:
        """Whether the seconds of a node without blocks follow from shapes, or were measured."""
        inputs = [self.spec(v) for v in node.inputs]
        if self._table.find(node, [s.shape for s in inputs]) is not None:
            return True
        return (
            estimate_on(CPU_PROFILE, node, inputs, [self.spec(v) for v in node.outputs]) is not None
        )

    def is_measured(self, node: Node) -> bool:
        """Whether the seconds of a node without blocks were measured."""
        shapes = [self.spec(v).shape for v in node.inputs]
        return not node.blocks and self._table.find(node, shapes) is not None

    def nbytes(self, value: Value) -> int:
        """Returns the bytes of a value; an estimate where `has_known_bytes` is not true.

        Open dimensions count as they were measured last. Where they were not, the value has
        `UNKNOWN_BYTES`, or as many as its known dimensions alone ask for if these are more.
        """
        spec = self.spec(value)
        if spec.dtype is variant:
            return 0
        if spec.dtype is resource:
            spec = spec.variable or spec
        size = size_of(spec.shape)
        if size is not None:
            return size * spec.dtype.size
        known = math.prod([d for d in spec.shape or () if d is not None])
        return max(UNKNOWN_BYTES, known * spec.dtype.size)

    def has_known_bytes(self, value: Value) -> bool:
        """True if a value's bytes follow from shapes, or were measured."""
        spec = self.spec(value)
        if spec.dtype is resource:
            spec = spec.variable or spec
        return spec.dtype is variant or is_known(spec.shape)

    def is_size_measured(self, value: Value) -> bool:
        """True if a value's shape is the one that was measured last."""
        return not is_known(self._specs.get(value, value.spec).shape) and self.has_known_bytes(
            value
        )

    def trips(self, loop: LoopNode) -> float:
        """Returns how often a loop runs: as is known, as it ran last, else `UNKNOWN_TRIPS`."""
        found = trips(loop)
        if found is None:
            learned = self._table.often(loop)
            return UNKNOWN_TRIPS if learned is None else learned
        return found

    def share(self, branch: CondNode) -> float:
        """Returns how often a predicate is true, from 0 to 1: a half where nothing was seen."""
        found = self._table.often(branch)
        return 0.5 if found is None else found


def fed_specs(program: Program, shapes: Iterable[Dims]) -> dict[Value, Spec]:
    """The specs of values in a step whose feeds have these shapes.

    In loops they are what they are in the first iteration. Where the shapes fit no node that takes
    them, the step will fail there: nothing is known of it then.

    Args:
        program: The program, in order.
        shapes: One per feed.
    """
    found: dict[Value, Spec] = {}
    for value, shape in zip(program.feeds, shapes, strict=True):
        if shape is not None and not is_known(value.spec.shape):
            found[value] = Spec(value.spec.dtype, tuple(shape))
    try:
        if found:
            _infer(program, found)
    except Exception:  # whatever is wrong with these shapes is told when the step runs
        return {}
    return found


def _infer(program: Program, found: dict[Value, Spec]) -> None:
    """Adds what values of a block are like, as it follows from what is found already."""
    for node in program.nodes:
        if isinstance(node, LoopNode):
            _infer_loop(node, found)
        elif isinstance(node, CondNode):
            for block in node.blocks:
                _infer(block, found)
            for value, made in zip(node.outputs, node.then.fetches, strict=True):
                _take_over(value, made, found)
        elif any(v in found for v in node.inputs):
            inferred = node.op.infer(*[found.get(v, v.spec) for v in node.inputs])
            specs = (inferred,) if isinstance(inferred, Spec) else tuple(inferred)
            found.update(zip(node.outputs, specs, strict=False))


def _infer_loop(loop: LoopNode, found: dict[Value, Spec]) -> None:
    for block in loop.blocks:
        for value, start in zip(block.feeds, loop.starts, strict=False):
            _take_over(value, start, found)
    for element, taken in zip(loop.elements, loop.taken, strict=True):
        held = found.get(taken)
        if held is not None and held.variable is not None:
            found[element] = held.variable
    for block in loop.blocks:
        _infer(block, found)
    for value, after in zip(loop.results, loop.next_values, strict=True):
        _take_over(value, after, found)
    for kept, value in zip(loop.kept, loop.kept_values, strict=True):
        if value in found:
            found[kept] = Spec(kept.spec.dtype, kept.spec.shape, variable=found[value])


def _take_over(value: Value, like: Value, found: dict[Value, Spec]) -> None:
    """Has a value be like another one, where its own shape is not known."""
    if like in found and (value.spec.dtype is variant or not is_known(value.spec.shape)):
        found[value] = found[like]


__all__ = [
    "CALL_S",
    "SCALAR_S",
    "UNKNOWN_S",
    "CostTable",
    "Costs",
    "estimate",
    "estimate_on",
    "fed_specs",
]
