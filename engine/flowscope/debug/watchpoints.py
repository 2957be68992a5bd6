"""Watchpoints: values that have to be finite, in a range, of a shape, wherever they are made.

A watchpoint is a breakpoint after many operations, asked of each one's outputs. A condition or a
function of the user's is asked of every one. For what is not finite less is done. NumPy raises
flags of floating-point errors, which are heeded where one of its own functions has run on the
step's thread: without a flag nothing is made there that is not finite. What is fed and what is read
of variables is looked at, and after a flag what was made; so is all else: products, kernels of
libraries, what several threads compute, numbers of Python's. One product of an array with itself
tells whether it is finite; only where that overflows its elements are looked at one by one. What
only moves, chooses or compares elements makes nothing that is not finite, and is not asked.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.debug.breakpoints import Breakpoint, Conditions, When
from flowscope.debug.targets import BreakpointTarget
from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import Const
from flowscope.graph.current_step import current_step
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation, Tensor, where
from flowscope.graph.values.expression import into_buffer, is_ufunc
from flowscope.graph.values.shapes import size_of
from flowscope.ops.core.send_recv import Crossing
from flowscope.ops.kernels.sharing import WORTH
from flowscope.ops.linalg.products import MatMul
from flowscope.ops.math.arithmetic import AddN
from flowscope.ops.math.reductions import Sum
from flowscope.plan.analysis.locations import iterations_in
from flowscope.plan.codegen.parallel_for import LARGE
from flowscope.plan.ir.breakpoints import BreakTest
from flowscope.plan.ir.kernels import inlined_expression
from flowscope.plan.ir.memories import is_host
from flowscope.plan.ir.program import Node
from flowscope.plan.plan import Plan
from flowscope.runtime.session.remote import RemoteValue, asked

if TYPE_CHECKING:
    from flowscope.debug.debugger import Debugger
    from flowscope.debug.history import History


@frozen
class WatchedValue:
    """What was found.

    Attributes:
        op: The operation that has made it; None where it is not known.
        iterations: Of the loops around, from the outermost.
        what: "nan" or "inf", or the condition that was met.
        already: The names of fed tensors, variables and constants that it follows from and that
            held such a value before: it was not made there then.
        path: From the first of these to the operation, each an input of the next; the operation
            alone where there is none.
    """

    op: Operation | None
    iterations: tuple[int, ...]
    what: str
    already: tuple[str, ...]
    path: tuple[Operation, ...]

    def __str__(self) -> str:
        name = "an operation" if self.op is None else f'"{self.op.name}" ({self.op.type})'
        text = f"{self.what} in the output of {name}"
        if self.op is not None and self.op.inputs:
            text += " of " + ", ".join(f'"{t.name}"' for t in self.op.inputs)
        if self.already:
            text += "; it was there before in " + ", ".join(self.already)
        return text


def is_finite(array: Any) -> bool:
    """Whether all elements of an array are finite."""
    if type(array) is not np.ndarray:
        if isinstance(array, RemoteValue) or hasattr(array, "get"):
            return bool(asked(is_finite, array))
        return not (isinstance(array, np.inexact) and not np.isfinite(array))
    kind = array.dtype.char
    if kind in "fd":
        return math.isfinite(np.vdot(array, array)) or bool(np.isfinite(array).all())
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def _not_finite(array: Any) -> str:
    """The kind of an array's values that are not finite: "nan", "inf", or "" for none."""
    return "" if is_finite(array) else "nan" if np.isnan(array).any() else "inf"


#: Of so many steps what was found is kept.
MOST_FOUND = 16


class Watchpoint(Breakpoint):
    """Holds steps where a value is not what it has to be, or ends them. Made by `Debugger.watch`.

    Attributes:
        found: What was found last; None for nothing yet.
        raises: Whether it ends the step with an error there; else it holds it.
        history: What is recorded as long as it stands; None for nothing.
    """

    def __init__(
        self,
        debugger: Debugger,
        number: int,
        target: BreakpointTarget | None,
        exceptions: Sequence[str],
        raises: bool,
        when: When | None = None,
    ) -> None:
        super().__init__(debugger, number, target or BreakpointTarget(), True, Conditions(when))
        self._exceptions = tuple(exceptions)
        self.raises = raises
        self.found: WatchedValue | None = None
        self.history: History | None = None
        self._found_by_step: dict[int | None, WatchedValue] = {}

    @property
    def stops_at_nan(self) -> bool:
        """Whether it holds steps wherever a value is not finite."""
        return not self.has_target and self.conditions.when is None and not self.raises

    def found_in(self, step: int | None) -> WatchedValue | None:
        """The last finding in a step, by the step's number; None if there is none."""
        return self._found_by_step.get(step)

    def tests(self, plan: Plan, meant: Sequence[Node]) -> list[tuple[str, BreakTest]]:
        """The tests that code makes, by the names of the nodes."""
        chosen = set(meant)
        return [
            (n.name, self._test(n))
            for n in plan.program.walk()
            if self._heeds(n) and (n in chosen or not self.has_target) and not self._excepts(n.name)
        ]

    def finds_fed(self, step: Any) -> bool:
        """Whether a fed value is not finite: the step is held before its first operation then."""
        for tensor, value in zip(step.call.plan.request.feeds, step.feeds, strict=False):
            is_meant = not self.has_target or self.target.means(tensor.op)
            if not is_meant or self._excepts(tensor.op.name):
                continue
            what = self._found_in(value, ())
            if what:
                already = () if self.conditions.when else (f'"{tensor.name}", which is fed',)
                found = WatchedValue(tensor.op, (), what, already, (tensor.op,))
                return self._is_violated(tensor.op, found)
        return False

    def _heeds(self, node: Node) -> bool:
        if self.conditions.when is None:
            return _makes(node)
        return not (
            node.blocks
            or node.op.is_handle
            or isinstance(node.op, Const | Crossing)
            or node.op.writes_state
        )

    def _found_in(self, value: Any, iterations: tuple[int, ...]) -> str:
        """The condition that a value breaks, as text; "" for none.

        A condition that raises is told, and does not hold.
        """
        when = self.conditions.when
        if when is None:
            return str(asked(_not_finite, value))
        is_met = self._asks(when, value, iterations, current_step())
        return str(self.conditions) if is_met else ""

    def _excepts(self, name: str) -> bool:
        return any(name == e or name.startswith(f"{e}/") for e in self._exceptions)

    def _test(self, node: Node) -> BreakTest:
        """The test that code makes after a node."""
        is_plain = self.conditions.when is None

        def test(run: Any, counts: tuple[int, ...], values: Sequence[Any]) -> bool:
            for value in values:
                if is_plain and (value is None or is_finite(value)):
                    continue  # what most values are: nothing else is worked out for them
                what = value is not None and self._found_in(value, iterations_in(run, counts))
                if what:
                    op = node.origins[0].operation if node.origins else None
                    already: tuple[str, ...] = ()
                    path: tuple[Operation, ...] = () if op is None else (op,)
                    if op is not None and is_plain:
                        already, path = _already(op, current_step())
                    found = WatchedValue(op, iterations_in(run, counts), what, already, path)
                    return self._is_violated(node, found)
            return False

        if not is_plain or not _has_flags(node):
            return test
        return FlagTest(test, self._debugger.flagged, _is_small_array(node))

    def _is_violated(self, node: Node | Operation, found: WatchedValue) -> bool:
        if not self.is_enabled:
            return False
        step, op, iterations = current_step(), found.op, found.iterations
        self.hits += 1
        self.found = self._found_by_step[step.number] = found
        while len(self._found_by_step) > MOST_FOUND:
            del self._found_by_step[next(iter(self._found_by_step))]
        step.met = self
        if self.raises:
            at = f" in iteration {'/'.join(map(str, iterations))}" if iterations else ""
            facts = where(op) if op is not None else {}
            kind = node.op.type if isinstance(node, Node) else node.type
            name = "not finite" if self.conditions.when is None else "watchpoint"
            raise InvalidArgumentError(f"{name}: {found}{at}, step {step.number}").located(
                op=op or node.name, op_type=kind, device=node.device, **facts
            )
        return True

    def __repr__(self) -> str:
        of = str(self.target) if self.has_target else "everything"
        found = f": {self.found}" if self.found is not None else ""
        what = "not finite" if self.conditions.when is None else str(self.conditions)
        return f"<Watchpoint {self.number} {what}, of {of}{found}>"


class FlagTest:
    """Asks a test only where a flag was raised, or an array is so large that several threads work.

    A flag does not tell which operation has raised it: inside of an update group, several have run
    before anything is asked. So it stays until the step ends.

    Args:
        test: The test.
        flagged: The threads on which a flag was raised.
        is_small: Whether it is known that a value is an array, and a small one: nothing has to be
            asked then without a flag.
    """

    __slots__ = ("_flagged", "_test", "is_small")

    def __init__(self, test: BreakTest, flagged: set[int], is_small: bool) -> None:
        self._test = test
        self._flagged = flagged
        self.is_small = is_small

    def __call__(self, run: Any, counts: tuple[int, ...], values: Sequence[Any]) -> object:
        """Runs the test if it is due and gives its result."""
        flagged = self._flagged
        if not flagged and type(values[0]) is np.ndarray and values[0].size < LARGE:
            return False
        return self._test(run, counts, values)


def _is_small_array(node: Node) -> bool:
    """Whether an output is known to be an array that one thread computes.

    Those of rank 0 may be numbers of Python's, which raise no flags.
    """
    shape = node.outputs[0].spec.shape
    return shape not in (None, ()) and (size_of(shape) or LARGE) < LARGE


def _has_flags(node: Node) -> bool:
    """Whether NumPy raises a flag on the step's thread where a node makes what is not finite.

    So it is with ufuncs of its own floats, which templates are written with; not in most kernels,
    which may use libraries and threads, and may have the flags ignored. Products that are too small
    for several threads are a ufunc's, too, and NumPy looks at the flags that BLAS has raised.
    """
    values = (*node.inputs, *node.outputs)
    if not is_host(node.device):
        return False
    if any(v.spec.dtype.name not in ("float32", "float64") for v in values):
        return False
    if _takes_constants(node):
        return False  # no flag tells of what was not finite before
    if isinstance(node.op, AddN | Sum):  # their kernels call nothing but ufuncs, on this thread
        return True
    if isinstance(node.op, MatMul):
        return _is_small_product(node)
    expression = inlined_expression(node)
    if expression is None or into_buffer(expression) is None:
        return False
    functions = expression.functions()
    return "matmul" not in functions and all(map(is_ufunc, functions))


def _takes_constants(node: Node) -> bool:
    """Whether a node takes constants that are not finite, as they are or moved about."""
    stack, seen = [node], {node}
    while stack:
        for before in [v.node for v in stack.pop().inputs if v.node is not None]:
            if isinstance(before.op, Const):
                if not is_finite(np.asarray(before.op.value.array)):
                    return True
            elif before not in seen and not before.blocks and not _makes(before):
                seen.add(before)
                stack.append(before)
    return False


def _is_small_product(node: Node) -> bool:
    """Whether one thread is known to compute a product of matrices."""
    op, (a, _), out = node.op, [v.spec.shape for v in node.inputs], node.outputs[0].spec.shape
    if not isinstance(op, MatMul) or a is None or out is None or (len(a), len(out)) != (2, 2):
        return False
    work = size_of((*out, a[0] if op.transpose_a else a[1]))
    return work is not None and work < WORTH


def _makes(node: Node) -> bool:
    """Whether a node can make a value that is not finite of finite ones."""
    op = node.op
    if node.blocks or op.is_handle or isinstance(op, Const) or op.writes_state:
        return False  # what is written was made before, or is what a later step reads
    if op.views or op.keeps_finite:
        return False
    return any(v.spec.dtype.kind in "fc" for v in node.outputs)


def _already(op: Operation, step: Any) -> tuple[tuple[str, ...], tuple[Operation, ...]]:
    """Feeds and variables before an operation that were not finite already, and the path to one."""
    call = step.call
    fed = {
        t: a for t, a in zip(call.plan.request.feeds, step.feeds, strict=False) if not is_finite(a)
    }
    states = dict(zip([h.origins[0].id for h in call.plan.handles], call.resources, strict=False))
    found: dict[str, Tensor] = {}
    waiting: deque[Tensor] = deque(op.inputs)
    #: The operation by which each tensor was come upon.
    taker = dict.fromkeys(waiting, op)
    while waiting:
        t = waiting.popleft()
        if t in fed:
            found[f'"{t.name}", which is fed'] = t
        elif isinstance(t.op.definition, Const):
            if not is_finite(np.asarray(t.op.definition.value.array)):
                found[f'"{t.name}", a constant'] = t
        elif t.op.id in states and not is_finite(_value_of(states[t.op.id])):
            found[f'"{t.op.name}", a variable'] = t
        for before in t.op.inputs:
            if before not in taker:
                taker[before] = t.op
                waiting.append(before)
    path: list[Operation] = []
    at = next(iter(found.values()), None)
    while at is not None:
        path.append(at.op)
        after = taker[at]
        at = next((t for t in after.outputs if t in taker), None) if after is not op else None
    return tuple(found), (*path, op)


def _value_of(state: Any) -> Any:
    return state.read() if getattr(state, "is_initialized", False) else None


__all__ = ["FlagTest", "WatchedValue", "Watchpoint", "is_finite"]
