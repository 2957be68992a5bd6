"""Operations of a step that its client runs one at a time, as they run on a host."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.cluster.shipping.plans import Shipment
from flowscope.cluster.shipping.remote_values import unpacked
from flowscope.cluster.shipping.sent_objects import loads
from flowscope.cluster.watch.state_book import check_there
from flowscope.cluster.worker.owners import HostOwner
from flowscope.cluster.worker.plan import placed_state
from flowscope.graph.current_step import steps_of_threads
from flowscope.graph.values.host_values import on_host
from flowscope.plan.ir.breakpoints import NO_TESTS
from flowscope.plan.ir.invocation import Invocation, InvocationError
from flowscope.plan.ir.modules import Modules
from flowscope.runtime.step.step import Step
from flowscope.runtime.threads.blas import one_thread

if TYPE_CHECKING:
    from flowscope.cluster.worker.sessions import WorkerSession


class HeldValues:
    """What the operations of a session's held steps have made here, by the client's numbers."""

    def __init__(self) -> None:
        self.values: dict[int, Any] = {}
        self._late: set[int] = set()
        self._lock = Lock()

    def put(self, number: int, value: Any) -> None:
        """Keeps a value, unless the client has dropped its number before it was there."""
        with self._lock:
            if number in self._late:
                self._late.discard(number)
            else:
                self.values[number] = value

    def drop(self, numbers: Iterable[int]) -> None:
        """Lets go of values."""
        with self._lock:
            for number in numbers:
                if number in self.values:
                    del self.values[number]
                else:
                    self._late.add(number)


class WorkerOps:
    """The operations of a plan that are on this host; steps know it as their call.

    Attributes:
        nodes: Their nodes; a client tells which one by its position.
        feeds: The names of the step's feeds.
        gone: The positions in `had` of variables that have no value.
    """

    trace = queues = None
    tests = NO_TESTS
    resources = ()

    def __init__(
        self,
        host: HostOwner,
        session: WorkerSession,
        shipment: Shipment,
        had: Sequence[Sequence[str]] = (),
    ) -> None:
        self._host = host
        self._session = session
        self.feeds = shipment.feeds
        self.nodes = shipment.partitions[0].program.nodes
        devices: dict[str, Any] = {d.name: d for d in host.devices} | {"": host.devices[0]}
        self._modules = Modules(host.devices[0].xp, devices, self.nodes)
        handles = [n for n in self.nodes if n.op.is_handle]
        ops: list[Any] = [n.op for n in handles]
        refusals, self.gone = check_there(session.container, ops, had)
        self._states = {
            (op.container, op.shared_name): placed_state(
                host, session, n, devices, shipment.restarted, refusals
            )
            for n, op in zip(handles, ops, strict=True)
        }

    @property
    def plan(self) -> WorkerOps:
        """Itself: what a step runs."""
        return self

    def run(self, header: dict[str, Any], values: list[Any], whole: Step) -> dict[str, Any]:
        """Runs one operation; what it makes is held here. Returns the outputs' shapes.

        Args:
            header, values: What the client has sent.
            whole: What the step's operations are parts of here.
        """
        node = self.nodes[header["node"]]
        held = self._session.held
        arguments = unpacked(values, held.values, self._states)
        current = self._modules.current
        try:
            with nullcontext() if current is None else current.active(), np.errstate(all="ignore"):
                result = self._invoked(node, arguments, header["run"], whole)
        except Exception as e:
            raise InvocationError(Invocation(node, arguments, ()), e) from e
        count = len(node.outputs)
        outputs = (result,) if count == 1 else result if count else ()
        for number, output in enumerate(outputs, header["out"]):
            held.put(number, output)
        return {"shapes": [_shape(o) for o in outputs]}

    def _invoked(self, node: Any, arguments: tuple[Any, ...], run: int, whole: Step) -> Any:
        me = get_ident()
        engine = self._host.engine
        call: Any = self
        step = steps_of_threads[me] = Step(call, whole, self._session.gate, engine.host_threads, me)
        step.number = run
        uses_blas = node.op.uses_blas
        try:
            if uses_blas:
                one_thread.enter()
                step.pool = engine.pool
            return self._modules.function(node)(self._modules.of(node), *arguments)
        finally:
            step.has_ended = True
            if uses_blas:
                one_thread.leave()
                engine.pool.products.settle()
            del steps_of_threads[me]


def _shape(value: Any) -> list[int] | None:
    """Returns the shape of an array, or of a number; None of what is neither."""
    if isinstance(value, tuple | list) or value is None:
        return None
    return list(getattr(value, "shape", ()))


def applied(function: bytes, value: Any) -> Any:
    """Calls a client's function with a value; the pickled result, as uint8[n]."""
    found = loads(function)(on_host(value))
    return np.frombuffer(pickle.dumps(found), np.uint8)


class _NoCall:
    """What stands for the call of a step of which single operations run here."""

    queues = trace = None
    tests = NO_TESTS
    resources = ()


def whole_of(host: HostOwner, session: WorkerSession) -> Step:
    """The step that contains the operations of a held step on a host."""
    call: Any = _NoCall()
    return Step(call, None, session.gate, host.engine.host_threads, get_ident())


__all__ = ["HeldValues", "WorkerOps", "applied", "whole_of"]
