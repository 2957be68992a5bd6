"""Replays: a step of the past computed again, to look at any of its values and to step back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.debug.history import first_reader
from flowscope.debug.stops import Stop, tensor_of
from flowscope.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from flowscope.graph.constant import Const
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.host_values import on_host
from flowscope.ops.core.send_recv import Crossing
from flowscope.plan.analysis.locations import iterations_in
from flowscope.plan.ir.breakpoints import NO_TESTS, BreakTest, BreakTests
from flowscope.plan.ir.invocation import Probe
from flowscope.plan.ir.program import Node
from flowscope.runtime.session.replayer import Replayer, ReplayPosition
from flowscope.runtime.session.session import debuggers

if TYPE_CHECKING:
    from flowscope.debug.debugger import Debugger

#: Takes a value: (iterations of the loops around, array).
Take = Callable[[tuple[int, ...], Any], None]


class Replay(Replayer):
    """A step that is computed again, bit-equal; made by `Debugger.replay`.

        with sess.debug.replay(12) as past:
            print(past.value("cell/h", iteration=3))
            stop = past.before("loss")

    Each operation runs by itself, so that each tensor of the program has its values. The session
    and its variables do not change. Prints print again.
    """

    @property
    def step(self) -> int:
        """The number of the run in its session."""
        return self.inputs.number

    @property
    def variables(self) -> dict[str, Any]:
        """Copies of the values that variables had before the step, by their names.

        Of those that the step uses; None for one that had no value.
        """
        found = self.inputs.variables.values()
        return {
            name: None if value is None else np.array(on_host(value))[()]
            for name, _, value in found
        }

    @cached_property
    def debug(self) -> Debugger:
        """Breakpoints and stops of the replay: `on_stop` is called while `run` computes it."""
        found: Debugger = debuggers[-1](self)
        return found

    def run(self) -> dict[str, Any]:
        """Computes the step to its end; returns the fetched values by the names of the tensors."""
        __tracebackhide__ = True
        self.let_go()
        values = self._from_begin(self.call)
        names = [t.name for t in self.call.plan.request.fetches]
        return dict(zip(names, values, strict=True))

    # -- values -----------------------------------------------------------------------------------

    def value(
        self, tensor: Tensor | Operation | str, iteration: int | tuple[int, ...] | None = None
    ) -> Any:
        """Returns a tensor's value in the step.

        Args:
            tensor: A tensor of the program, or its name; an operation stands for its first output.
            iteration: The iteration of the innermost loop, from 0; a tuple for all loops around,
                from the outermost. None for the last one.

        Raises:
            FailedPreconditionError: if the tensor has no value in the step, or not in that
                iteration.
        """
        found: list[Any] = []

        def take(iterations: tuple[int, ...], array: Any) -> None:
            if iteration is None or _is_at(iterations, iteration):
                found[:] = [np.array(on_host(array))[()]]

        tensor = tensor_of(self.graph, tensor)
        self._collect(tensor, take)
        if not found:
            at = "" if iteration is None else f" in iteration {iteration}"
            raise FailedPreconditionError(
                f'"{tensor.name}" has no value{at} in step {self.step}: it was not run there'
            )
        return found[-1]

    def values(
        self, tensor: Tensor | Operation | str, max_bytes: int = 1 << 28
    ) -> dict[tuple[int, ...], Any]:
        """Returns a tensor's values by the iterations of the loops around, `()` outside of loops.

        Args:
            tensor: As for `value`.
            max_bytes: So much they may take.

        Raises:
            InvalidArgumentError: if they take more.
        """
        found: dict[tuple[int, ...], Any] = {}
        left = max_bytes

        def take(iterations: tuple[int, ...], array: Any) -> None:
            nonlocal left
            made = found[iterations] = np.array(on_host(array))[()]
            left -= made.nbytes if isinstance(made, np.ndarray | np.generic) else len(made)
            if left < 0:
                raise InvalidArgumentError(
                    f"the values take more than {max_bytes} bytes: ask for one iteration, or give "
                    "a larger max_bytes"
                )

        self._collect(tensor_of(self.graph, tensor), take)
        return found

    def _collect(self, tensor: Tensor, take: Take) -> None:
        """Computes the step, and has each value of a tensor taken."""
        answers = self.call.plan.locate(tensor)
        if all(at.kind == "absent" for at in answers):
            raise FailedPreconditionError(
                f'"{tensor.name}" has no value in step {self.step}: {answers[0].why}'
            )
        made: dict[str, int] = {}
        before: dict[str, BreakTest] = {}
        for at in answers:
            if at.kind == "constant":
                take((), at.constant)
            elif at.kind == "fed":
                take((), self.inputs.feeds[self.call.plan.request.feeds.index(tensor)])
            elif at.value is not None and at.value.node is not None:
                made[at.value.node.name] = at.value.index
            else:
                before.update(_reads(first_reader(self.call.plan, at), take))

        def probe(node: Node, iterations: tuple[int, ...], outputs: Sequence[Any]) -> None:
            if node.name in made:
                take(iterations, outputs[made[node.name]])

        if made or before:
            self.compute(probe, BreakTests(before, {}) if before else NO_TESTS)

    # -- standing in it ---------------------------------------------------------------------------

    def before(
        self,
        op: Operation | Tensor | str,
        iteration: int | tuple[int, ...] | None = None,
    ) -> Stop:
        """Computes the step up to an operation; returns where it stands: before the operation.

        It stands there until `close`, or until it is computed up to somewhere else.

        Args:
            op: The operation, a tensor of it, or the name of one.
            iteration: As for `value`; None for the first time.

        Raises:
            NotFoundError: if the operation is not run there.
        """
        return self.before_operation(self._tensor_or_op(op), iteration, None)

    def before_operation(
        self, op: Operation, iteration: int | tuple[int, ...] | None, probe: Probe | None
    ) -> Stop:
        """Returns where the step stands, as `before`.

        Args:
            op: The operation.
            iteration: As for `before`.
            probe: Is told of each invocation before that; None for nobody.
        """
        nodes = [
            n
            for n in self.call.plan.program.walk()
            if any(o.id == op.id for o in n.origins) and not isinstance(n.op, Crossing)
        ]
        at = "" if iteration is None else f" in iteration {iteration}"
        why_not = f'"{op.name}" does not run by itself{at} in step {self.step}'
        return self._stop_before([n.name for n in nodes], iteration, why_not, probe)

    def _tensor_or_op(self, op: Operation | Tensor | str) -> Operation:
        found: Tensor | Operation = self.graph.as_graph_element(op)
        return found.op if isinstance(found, Tensor) else found

    def _stop_before(
        self,
        names: Sequence[str],
        iteration: int | tuple[int, ...] | None,
        why_not: str,
        probe: Probe | None = None,
    ) -> Stop:
        """Returns a stop before the first of some nodes that runs, in an iteration."""
        is_met = False

        def test(run: Any, counts: tuple[int, ...], values: Sequence[Any]) -> bool:
            nonlocal is_met
            here = iteration is None or _is_at(iterations_in(run, counts), iteration)
            is_met, is_first = is_met or here, not is_met
            return here and is_first

        step = self.held(None, BreakTests(dict.fromkeys(names, test), {}), probe)
        if step is None:
            raise NotFoundError(why_not)
        return Stop(self, step)

    def step_back(self, position: ReplayPosition | None) -> Stop:
        """Computes the step up to the operation that ran before a position; returns where it is.

        Args:
            position: Where the step, or this replay, stands; None for the end of the step.

        Raises:
            NotFoundError: if nothing ran before.
        """
        last: tuple[str, tuple[int, ...]] | None = None

        def probe(node: Node, iterations: tuple[int, ...], outputs: Sequence[Any]) -> None:
            nonlocal last
            if not node.blocks and not isinstance(node.op, Const | Crossing):
                last = node.name, iterations

        if position is None or position.op is None:
            is_met = None if position is None else position.is_at
            self.held(is_met, BreakTests({}, {}), probe)
        else:
            path = tuple([count for _, count in position.loops])
            names = [n.name for n in self.call.plan.program.walk() if position.is_of(n)]
            tests = {name: partial(_is_there, path) for name in names}
            self.held(None, BreakTests(tests, {}), probe)
        found = last
        self.let_go()
        if found is None:
            raise NotFoundError(f"nothing runs before that in step {self.step}")
        return self._stop_before([found[0]], found[1], "the step has come to its end")

    # -- its end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends it: what stands is let go."""
        self.let_go()

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        stops = "".join(f", {Stop(self, s)!r}" for s in self.gate.held_steps())
        return f"<fs.Replay of step {self.step}{stops}>"


def _is_at(iterations: tuple[int, ...], wanted: int | tuple[int, ...]) -> bool:
    return iterations == wanted if isinstance(wanted, tuple) else iterations[-1:] == (wanted,)


def _is_there(path: tuple[int, ...], run: Any, counts: tuple[int, ...], values: Any) -> bool:
    """Whether a step is in these iterations."""
    return iterations_in(run, counts) == path


def _reads(reader: tuple[Node | None, int], take: Take) -> Iterator[tuple[str, BreakTest]]:
    """Yields what is asked before the node that reads a value, which takes it and never holds."""
    node, index = reader
    if node is None:
        return

    def test(run: Any, counts: tuple[int, ...], values: Sequence[Any]) -> bool:
        take(iterations_in(run, counts), values[index])
        return False

    yield node.name, test


__all__ = ["Replay"]
