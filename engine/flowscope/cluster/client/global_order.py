"""Steps of several tasks, one operation at a time, in the order of the whole plan.

A step that is stepped through, slowed down or has breakpoints is one program, which the client
interprets. It holds the turn: an operation of another task runs there when its turn comes. So
nothing waits at a Recv, a stop finds every living value, and one move is one operation of the
whole step.
"""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from flowscope.cluster.membership.devices import task_of
from flowscope.cluster.shipping.plans import Shipment
from flowscope.cluster.shipping.remote_values import (
    RemoteArray,
    RemoteGenerator,
    brought_here,
    packed,
)
from flowscope.cluster.watch.state_book import keys_of
from flowscope.cluster.worker.doubts import HELD
from flowscope.cluster.worker.sessions import as_bytes
from flowscope.errors import CancelledError, InvalidArgumentError
from flowscope.graph.current_step import current_step
from flowscope.ops.core.send_recv import Transfer
from flowscope.ops.state.update_groups import BeginUpdate, EndUpdate
from flowscope.plan.analysis.updates import unsafe_positions
from flowscope.plan.executables.back_ends import CodeTarget, Executable
from flowscope.plan.executables.interpret import Interpreter
from flowscope.plan.ir.invocation import Probe
from flowscope.plan.ir.modules import Modules
from flowscope.plan.ir.program import Node, Program
from flowscope.plan.partition.partitions import Partition
from flowscope.plan.passes.regions import Region
from flowscope.runtime.step.step import Step

if TYPE_CHECKING:
    from flowscope.cluster.client.session import ClusterSession


class HeldStep:
    """A step whose operations run one at a time, on whichever task.

    Args:
        session: The session's part in the cluster.
        step: The step.
        tasks: The other tasks that take part.

    Attributes:
        step, tasks: As above.
        number: Its number among all steps, updates and clients of the cluster.
    """

    def __init__(self, session: ClusterSession, step: Step, tasks: frozenset[str]) -> None:
        self.step, self.tasks = step, tasks
        self.number = next(session.cluster.step_numbers)
        self._session = session
        self._error: BaseException | None = None
        #: The numbers of the updates that keep variables of tasks, by these and what they know it
        #: by. Each update is prepared by its `keep`, and committed or not by this client.
        self._kept: dict[tuple[str, tuple[str, str]], int] = {}

    def keep(self, task: str, key: tuple[str, str], header: dict[str, Any]) -> bool:
        """Has a task keep the value of a variable; returns whether it does not do so already.

        Args:
            task: The task.
            key: What that knows the variable by.
            header: What a message about the variable says.
        """
        if (task, key) in self._kept:
            return False
        cluster = self._session.cluster
        number = next(cluster.step_numbers)
        life = {task: cluster.task(task).incarnation}
        cluster.outcomes.begin(number, {task: frozenset({HELD})}, life)
        self._kept[task, key] = number
        about = {"kind": "variable.keep", "client": cluster.uid, "update": number}
        self._session.ask(task, {**header, **about, "held": self.number})
        return True

    def settle(self, task: str, key: tuple[str, str]) -> None:
        """Has a variable have what was written, whatever becomes of the step or of its task."""
        number = self._kept.pop((task, key))
        self._session.cluster.outcomes.commit(number, [task], is_urgent=True)

    def undo(self) -> None:
        """Has all that is kept be put back: on a task that does not hear it, when it does."""
        for (task, _), number in self._kept.items():
            none = {task: {HELD: 0}}
            self._session.cluster.outcomes.decide(number, none, [task])
        self._kept.clear()

    def updates(self, task: str) -> list[int]:
        """Returns the numbers of the updates that keep variables of a task."""
        return [number for (where, _), number in self._kept.items() if where == task]

    def lost(self, task: str, error: BaseException) -> None:
        """Ends it because a task is lost: it may stand where nothing asks that task."""
        self._error = error
        self.step.gate.stop_step(self.step)

    def cause(self, error: BaseException) -> BaseException:
        """Returns why it ends."""
        return self._error if self._error and isinstance(error, CancelledError) else error


class TurnModules(Modules):
    """What the nodes of a program compute with: those of other tasks run there.

    Args:
        own: The array modules of the nodes of this process.
        turns: What runs the others.
    """

    def __init__(self, own: Modules, turns: Turns) -> None:
        super().__init__(None)
        self.current = own.current
        self._own = own
        self._turns = turns

    def of(self, node: Node) -> Any:
        """Returns the array module of a node's device."""
        return self._own.of(node)

    def function(self, node: Node) -> Callable[..., Any]:
        """Returns the function (xp, *inputs) of a node."""
        if self._turns.is_here(node):
            return partial(_computed_here, self._own.function(node))
        return self._turns.elsewhere(node)


def _computed_here(kernel: Callable[..., Any], xp: Any, *arguments: Any) -> Any:
    return kernel(xp, *[brought_here(a) for a in arguments])


class Turns:
    """Runs the operations of a program's other tasks there, each when its turn comes.

    Args:
        session: The session's part in the cluster.
        nodes: The program.
    """

    def __init__(self, session: ClusterSession, nodes: Iterable[Node]) -> None:
        self._session = session
        self._number = next(session.plan_numbers)
        self._nodes: dict[str, list[Node]] = {}
        self._positions: dict[Node, int] = {}
        for node in Program(tuple(nodes), (), ()).walk():
            if not node.blocks and not self.is_here(node):
                found = self._nodes.setdefault(_task(node), [])
                self._positions[node] = len(found)
                found.append(node)
        self.tasks = frozenset(self._nodes)
        self._shipped: set[str] = set()
        self._lock = threading.Lock()
        weakref.finalize(self, session.forget_plan, self.tasks, self._number)

    def is_here(self, node: Node) -> bool:
        """Whether a node runs in this process; so do the ends of update groups, for all tasks."""
        if isinstance(node.op, BeginUpdate | EndUpdate):
            return True
        return _task(node) in ("", self._session.task)

    def elsewhere(self, node: Node) -> Callable[..., Any]:
        """A function that runs a node on its task, where its outputs stay."""
        session, task, position = self._session, _task(node), self._positions[node]
        dtypes = [v.spec.dtype.np_dtype for v in node.outputs]

        def run(xp: Any, *arguments: Any) -> Any:
            self._ship(task)
            first = session.take_numbers(len(dtypes))
            held = session.held_step()
            header = {
                "kind": "op.run",
                "plan": self._number,
                "node": position,
                "out": first,
                "drops": session.taken_drops(task),
                "run": current_step().number,
                "client": session.cluster.uid,
                "held": held.number,
                "updates": held.updates(task),
            }
            try:
                answer = session.ask_in_step(task, header, packed(arguments, task))
            except BaseException:
                session.drops(task).extend(range(first, first + len(dtypes)))
                raise
            made = [
                RemoteArray(session, task, first + i, dtype, shape)
                for i, (dtype, shape) in enumerate(zip(dtypes, answer["shapes"], strict=True))
            ]
            return made[0] if len(made) == 1 else tuple(made)

        return run

    def _ship(self, task: str) -> None:
        """Sends a task its operations, once."""
        with self._lock:
            if task in self._shipped:
                return
            session = self._session
            cluster, found = session.cluster, session.cluster.task(task)
            way, instead = cluster.ways(found.name)
            cluster.endpoint.connect(found.name, way, found.incarnation, instead=instead)
            session.used.add(task)
            partition = Partition(self._nodes[task][0].device, _listed(self._nodes[task]), "op", ())
            restarted = session.restarted(self._nodes[task])
            shipment = Shipment((partition,), (), (), (), {}, (), restarted)
            use = cluster.state_book.use(session.number, task, keys_of(self._nodes[task]))
            header = {"kind": "op.ship", "plan": self._number, **use.header()}
            data = as_bytes(shipment.dumps(session.asks(task)))
            use.arrived(session.ask_in_step(task, header, [data]))
            self._shipped.add(task)


def _task(node: Node) -> str:
    """Returns the task on which a node runs: a transfer where the value goes to."""
    return task_of(node.op.recv_device if isinstance(node.op, Transfer) else node.device)


def _listed(nodes: Iterable[Node]) -> Program:
    """Returns nodes of all blocks as one list; what they take of others is fed."""
    alone = [copy.copy(n) for n in nodes]
    for node in alone:
        node.control = ()
    made = {v for n in alone for v in n.outputs}
    feeds = dict.fromkeys(v for n in alone for v in n.inputs if v not in made)
    return Program(tuple(alone), tuple(feeds), ())


class OneByOne:
    """What runs a region of several tasks; same signature as generated code.

    Args:
        session: The session's part in the cluster.
        region: The region.
        target: For what it is made.
    """

    def __init__(self, session: ClusterSession, region: Region, target: CodeTarget) -> None:
        self._session = session
        self._turns = Turns(session, region.nodes)
        modules = TurnModules(target.modules, self._turns)
        unsafe = unsafe_positions(region.nodes)
        self._interpreter = Interpreter(region, modules, RemoteGenerator, unsafe)

    def __call__(
        self,
        gate: Any,
        run: Any,
        feeds: tuple[Any, ...],
        resources: tuple[Any, ...],
        probe: Probe | None = None,
    ) -> tuple[Any, ...]:
        """Runs one step; see `flowscope.plan.codegen.function` for the arguments."""
        held = HeldStep(self._session, current_step(), self._turns.tasks)
        self._session.held_steps.add(held)
        try:
            return self._fetched(gate, run, feeds, resources, probe)
        except BaseException as e:
            held.undo()
            cause = held.cause(e)
            if cause is e:
                raise
            raise cause from None
        finally:
            self._session.held_steps.discard(held)
            self._session.send_drops(held.number)

    def _fetched(self, *arguments: Any) -> tuple[Any, ...]:
        """Returns the outputs, brought here; those of other tasks are not needed there then."""
        return tuple([brought_here(o) for o in self._interpreter(*arguments)])


def executable(session: ClusterSession, region: Region, target: CodeTarget) -> Executable:
    """An executable of a region of several tasks, in the global order."""
    function = OneByOne(session, region, target)
    return Executable(function, lambda probe: partial(function, probe=probe))


def refused() -> Executable:
    """An executable that refuses a program whose operations wait for other programs."""

    def refuse(*arguments: Any, **keywords: Any) -> Any:
        raise InvalidArgumentError(
            "this program has queues, locks or primitives of control flow, and operations on "
            "workers of a cluster: it cannot be stepped through one by one. Take the breakpoints "
            "away and let it run on, or use a session of one process"
        )

    return Executable(refuse, lambda probe: refuse)


__all__ = ["HeldStep", "OneByOne", "executable", "refused"]
