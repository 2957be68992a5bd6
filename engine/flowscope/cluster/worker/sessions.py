"""What clients run on a host: their sessions' plans, made to code here, and the steps of these.

A run connection's thread receives a step and runs it: there is no hand-over. Each session of a
client has a gate of its own, which does what is asked of the client's.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from flowscope.cluster.debug.held_partitions import STANDS_S, HeldParts
from flowscope.cluster.shipping import failures
from flowscope.cluster.shipping.plans import Shipment, loads
from flowscope.cluster.shipping.sent_objects import answer_offer
from flowscope.cluster.transport.channel import StepId
from flowscope.cluster.transport.peers import Way
from flowscope.cluster.watch.links import link_runs
from flowscope.cluster.worker.doubts import WorkerDoubts
from flowscope.cluster.worker.operations import HeldValues, WorkerOps, applied, whole_of
from flowscope.cluster.worker.owners import HostOwner
from flowscope.cluster.worker.plan import WorkerPlan
from flowscope.cluster.worker.step import WorkerStep
from flowscope.cluster.worker.taken_elements import TakenElements
from flowscope.errors import FailedPreconditionError, UnavailableError
from flowscope.graph.values.host_values import on_host
from flowscope.plan.ir.program import Program
from flowscope.plan.partition.partitions import Partition
from flowscope.runtime.state.containers import Container
from flowscope.runtime.state.queue_state import QueueState
from flowscope.runtime.step.split import DerivedError
from flowscope.runtime.step.step import Step
from flowscope.runtime.waits.gate import Gate
from flowscope.runtime.waits.rendezvous import Waiter
from flowscope.runtime.waits.waiting import wait_for

#: The answer of a run.
Answer = tuple[dict[str, Any], list[Any]]
#: Steps that were ended before they came: so many are remembered.
_MOST_ENDED = 1000


class WorkerSession:
    """A client's session, as far as it is on this host.

    Attributes:
        gate: Holds and stops its steps.
        plans: Its plans by their numbers.
        ops: The operations of plans that the client runs one at a time, by the same numbers.
        held: What these have made.
        wholes: What the operations of held steps are parts of here, by the steps' numbers.
    """

    def __init__(self, host: HostOwner, client: str, number: int) -> None:
        self.gate = Gate()
        self.plans: dict[int, WorkerPlan] = {}
        self.ops: dict[int, WorkerOps] = {}
        self.held = HeldValues()
        self.wholes: dict[int, Step] = {}
        self._host = host
        self._key = client, number

    def container(self, name: str) -> Container:
        """Returns the container of this name; "" is the session's own."""
        return self._host.container(*self._key, name)


class WorkerSteps:
    """All that clients run on a host.

    Args:
        host: The host.

    Attributes:
        done: How many steps have ended.
        taken: What steps took out of queues that has not been confirmed.
    """

    def __init__(self, host: HostOwner) -> None:
        self.done = 0
        self._host = host
        self._lock = threading.Lock()
        self._sessions: dict[tuple[str, int], WorkerSession] = {}
        self._steps: dict[StepId, WorkerStep] = {}
        #: What steps have left in doubt.
        self.doubts = WorkerDoubts(host)
        self._ended: deque[StepId] = deque(maxlen=_MOST_ENDED)
        #: Steps that had not come when they were asked about: whether they keep to turns.
        self._keeps: dict[StepId, bool] = {}
        #: Steps that have run here to their end.
        self._over: deque[StepId] = deque(maxlen=_MOST_ENDED)
        self.taken = TakenElements(host.name, host.endpoint)
        #: Whether steps have written here about which others may ask.
        self._wrote: dict[StepId, bool] = {}
        #: Those who wait for a step to end.
        self._ends: set[Waiter] = set()
        self._runs: dict[str, Callable[[str, dict[str, Any], list[Any]], Answer]] = {
            "run": self._run,
            "step.confirm": self.taken.on_confirm,
            "plan.ship": self._ship,
            "variable.read": self._read,
            "variable.assign": self._assign,
            "variable.drop": self._drop,
            "variable.keep": self._keep,
            "modules.offer": self._offer,
            "op.ship": self._ship_ops,
            "op.run": self._run_op,
            "op.fetch": self._fetch_held,
            "op.apply": self._apply,
            "parts.stand": self._parts_stand,
            "parts.alive": self._parts_alive,
            "parts.fetch": self._parts_fetch,
            "parts.apply": self._parts_apply,
            "parts.replace": self._parts_replace,
            **link_runs(host.endpoint, host.name, lambda: host.devices),
        }
        host.endpoint.on_run = self.on_run
        host.handlers.update(
            {
                "plan.forget": self._forget,
                "session.close": self._close,
                "step.abort": self._abort,
                "step.agreed": self._agreed,
                "step.give_back": self.taken.on_give_back,
                "step.wrote": self._has_written,
                "step.settled": self.taken.on_settled,
                "steps.settled": self.doubts.heed,
                "gate": self._gate,
                "variables": self._variables,
                "op.drop": self._drop_held,
            }
        )
        self._warm_up()

    def _warm_up(self) -> None:
        """Makes code of a plan that does nothing.

        The first plan that a client sends then finds the classes made that all plans need
        (`flowscope.graph.lazy`), and takes a millisecond where it took eight.
        """
        nothing = Partition(self._host.devices[0].name, Program((), (), ()), "python", ())
        shipment = loads(Shipment((nothing,), (), (), (), {}).dumps())
        WorkerPlan(self._host, WorkerSession(self._host, "", 0), shipment)

    @property
    def running(self) -> int:
        """How many steps are on their way."""
        return len(self._steps)

    def queue_waits(self, queues: Iterable[QueueState]) -> list[tuple[StepId, str, str, float]]:
        """Returns which steps wait for queues: the step, its device, the queue, and for how long.

        Args:
            queues: The host's queues.
        """
        now = time.monotonic()
        numbers = {step.whole: number for number, step in list(self._steps.items())}
        return [
            (numbers[step.whole], step.device or self._host.devices[0].name, q.name, now - since)
            for q in queues
            for step, since in q.waiters
            if step is not None and step.whole in numbers
        ]

    def on_run(self, peer: str, header: dict[str, Any], values: list[Any]) -> Answer:
        """Does what a run connection has brought; answers with its values, or with its error."""
        try:
            self.doubts.wait_for_news(peer, header)
            return self._runs[header["kind"]](peer, header, values)
        except BaseException as e:
            self._tell_failed(peer, header, e)
            feeds = self._feeds(peer, header)
            return failures.answer(e, self._host.name, feeds), []

    def _tell_failed(self, peer: str, header: dict[str, Any], error: BaseException) -> None:
        """Tells the client of a step that has failed before it began here: others may wait for it.

        Of one that has begun, the step tells itself.
        """
        is_step = header["kind"] == "run" and not isinstance(error, DerivedError)
        if is_step and StepId(header["client"], header["step"]) not in self._over:
            message = {"kind": "step.failed", "step": header["step"]}
            with suppress(UnavailableError):  # it is gone; nobody wants to know
                self._host.endpoint.tell(peer, message)

    def client_lost(self, client: str) -> None:
        """Ends the steps of a client that is gone; drops its sessions."""
        error = DerivedError(f"{client}, whose step this was, is gone")
        for step in [s for s in list(self._steps.values()) if s.client == client]:
            step.end(error)
        self.taken.client_lost(client)
        self.doubts.client_lost(client)
        for key in [k for k in list(self._sessions) if k[0] == client]:
            self._sessions.pop(key, None)

    def _feeds(self, client: str, header: dict[str, Any]) -> Sequence[str]:
        session = self._sessions.get((client, header.get("session", -1)))
        number = header.get("plan", -1)
        plan = None if session is None else session.plans.get(number) or session.ops.get(number)
        return () if plan is None else plan.feeds

    # -- runs -----------------------------------------------------------------------------------

    def session(self, client: str, number: int) -> WorkerSession:
        """Returns a client's session, made when it first asks for something."""
        with self._lock:
            key = client, number
            found = self._sessions.get(key)
            if found is None:
                found = self._sessions[key] = WorkerSession(self._host, client, number)
            return found

    def _ship(self, peer: str, header: dict[str, Any], values: list[Any]) -> Answer:
        """Takes a plan: connects with the peers that it meets, and makes the code."""
        session = self.session(peer, header["session"])
        shipment = loads(values[0].tobytes())
        met = [o for o in shipment.peers if self._host.name < o.name]
        ways = [Way(o.name, o.address, o.incarnation, o.instead) for o in met]
        for error in self._host.endpoint.connect_all(ways).values():
            raise error
        plan = WorkerPlan(
            self._host,
            session,
            shipment,
            header.get("had", ()),
            header.get("writers", ()),
            header.get("is_asked", False),
        )
        session.plans[header["plan"]] = plan
        return {"shares_values": self._host.shares_values, "gone": plan.gone}, []

    def _run(self, peer: str, header: dict[str, Any], values: list[Any]) -> Answer:
        session = self.session(peer, header["session"])
        plan = session.plans.get(header["plan"])
        if plan is None:
            raise self._unknown_plan()
        number = StepId(header["client"], header["step"])
        step = WorkerStep(self._host, session, self.doubts, plan, peer, number, header)
        with self._lock:
            if number in self._ended:
                raise DerivedError("the step has ended before it began here")
            self._steps[number] = step
            step.keeps_turns = self._keeps.pop(number, False)
        has_failed, before = True, step.writes() if plan.is_asked else 0
        try:
            fetched = step.run(values)
            traces, arrays = step.traces()
            has_failed = False
            return traces | self._kept(number, step), [*fetched, *arrays]
        finally:
            with self._lock:
                if plan.is_asked:
                    self._note_writes(number, step.writes() != before or plan.is_worldly)
                self._over.append(number)
                del self._steps[number]
                self.done += 1
            for waiter in list(self._ends):
                waiter.wake()
            if step.held_back is not None:
                self.taken.keep(number, step.client, step.held_back, plan.writers)
                self.taken.give_back(number)
            if plan.shared_groups and (has_failed or number in self._ended):
                self._say_rest(peer, number)

    def _unknown_plan(self) -> UnavailableError:
        """Returns the error of a step whose plan went with the session that had it."""
        return UnavailableError(
            f"{self._host.name} does not know this plan any more: it was started again, or had "
            "given this client up"
        )

    def _kept(self, number: StepId, step: WorkerStep) -> dict[str, Any]:
        """Keeps what a step took that ends well here; returns what its answer says of that."""
        taken = step.taken()
        if taken is None:
            return {}
        with self._lock:
            self.taken.keep(number, step.client, taken, step.writers)
            is_over = step.is_ended or number in self._ended
        # Who was lost before it was kept is told of no more.
        if is_over or not self._host.endpoint.is_connected(step.client):
            self.taken.give_back(number)
        return {"took": True}

    def _offer(self, peer: str, header: dict[str, Any], values: list[Any]) -> Answer:
        return answer_offer(header), []

    def _note_writes(self, number: StepId, has_written: bool) -> None:
        self._wrote[number] = has_written
        while len(self._wrote) > _MOST_ENDED:
            del self._wrote[next(iter(self._wrote))]

    def _has_written(
        self, peer: str, message: dict[str, Any]
    ) -> dict[str, Any] | Callable[[], dict[str, Any]]:
        """Ends a step here that has failed elsewhere; says whether it has written something."""
        number, ends = StepId(message["client"], message["step"]), Waiter()
        with self._lock:
            self._ended.append(number)
            step = self._steps.get(number)
        if step is None:
            return {"wrote": self._wrote.get(number, False)}
        step.end(DerivedError("another part of the step has failed"))

        def wait() -> dict[str, Any]:
            self._ends.add(ends)
            is_over = lambda: number not in self._steps  # noqa: E731
            wait_for(is_over, ends, what="for a step to end", until=math.inf, owned_by=None)
            self._ends.discard(ends)
            return {"wrote": self._wrote.get(number, False)}

        return wait

    def _read(self, peer: str, header: dict[str, Any], values: list[Any]) -> Answer:
        return {}, [self._variable(peer, header).read()]

    def _assign(self, peer: str, header: dict[str, Any], values: list[Any]) -> Answer:
        self._variable(peer, header).adopt(values[0])
        return {}, []

    def _drop(self, peer: str, header: dict[str, Any], values: list[Any]) -> Answer:
        self._variable(peer, header).drop()
        return {}, []

    def _keep(self, peer: str, header: dict[str, Any], values: list[Any]) -> Answer:
        number = StepId(header["client"], header["update"])
        whole = self._whole(self.session(peer, header["session"]), header)
        self.doubts.keep(number, peer, whole, self._variable(peer, header))
        return {}, []

    def _variable(self, peer: str, header: dict[str, Any]) -> Any:
        container = self.session(peer, header["session"]).container(header["container"])
        dims = header["dims"]
        found = container.variable(header["name"], None if dims is None else tuple(dims))
        found.refusal = header.get("refusal", found.refusal)
        return found

    # -- operations of held steps ---------------------------------------------------------------

    def _ship_ops(self, peer: str, header: dict[str, Any], values: list[Any]) -> Answer:
        session = self.session(peer, header["session"])
        shipment = loads(values[0].tobytes())
        plan = WorkerOps(self._host, session, shipment, header.get("had", ()))
        session.ops[header["plan"]] = plan
        return {"gone": plan.gone}, []

    def _run_op(self, peer: str, header: dict[str, Any], values: list[Any]) -> Answer:
        session = self.session(peer, header["session"])
        session.held.drop(header["drops"])
        plan = session.ops.get(header["plan"])
        if plan is None:
            raise self._unknown_plan()
        updates = [StepId(header["client"], number) for number in header["updates"]]
        with self.doubts.operating(updates):
            return plan.run(header, values, self._whole(session, header)), []

    def _whole(self, session: WorkerSession, header: dict[str, Any]) -> Step:
        """The step that contains the operations of a held step here."""
        found = session.wholes.get(header["held"])
        return found or session.wholes.setdefault(header["held"], whole_of(self._host, session))

    def _fetch_held(self, peer: str, header: dict[str, Any], values: list[Any]) -> Answer:
        session = self.session(peer, header["session"])
        return {}, [on_host(session.held.values[header["number"]])]

    def _apply(self, peer: str, header: dict[str, Any], values: list[Any]) -> Answer:
        held = self.session(peer, header["session"]).held.values
        return {}, [applied(values[0].tobytes(), held[header["number"]])]

    def _drop_held(self, peer: str, message: dict[str, Any]) -> None:
        session = self.session(peer, message["session"])
        session.held.drop(message["numbers"])
        session.wholes.pop(message["held"], None)

    # -- partitions of steps that were paused while they ran ------------------------------------

    def _parts(self, header: dict[str, Any]) -> HeldParts:
        step = self._steps.get(StepId(header["client"], header["step"]))
        if step is None or step.parts is None:
            raise FailedPreconditionError("the step has gone on: the value is gone")
        return step.parts

    def _parts_stand(self, peer: str, header: dict[str, Any], values: list[Any]) -> Answer:
        """Gives turns; tells where all partitions stand then, or that the step is over here."""
        number = StepId(header["client"], header["step"])
        with self._lock:
            step = self._steps.get(number)
            if step is None:
                self._keeps[number] = header["keeps"]  # it may be on its way here
                while len(self._keeps) > _MOST_ENDED:
                    del self._keeps[next(iter(self._keeps))]
                return {"stands": [], "is_over": number in self._over}, []
        step.keep_turns(header["keeps"])
        if step.parts is None:
            return {"stands": [], "is_over": False}, []
        for part in header["turns"]:
            step.parts.turn(part, header["depth"])
        return {"stands": [list(one) for one in step.parts.stands(STANDS_S)]}, []

    def _parts_alive(self, peer: str, header: dict[str, Any], values: list[Any]) -> Answer:
        return {"values": self._parts(header).alive(header["part"])}, []

    def _parts_fetch(self, peer: str, header: dict[str, Any], values: list[Any]) -> Answer:
        value = self._parts(header).value(header["part"], header["number"])
        return {}, [np.array(on_host(value))]

    def _parts_apply(self, peer: str, header: dict[str, Any], values: list[Any]) -> Answer:
        value = self._parts(header).value(header["part"], header["number"])
        return {}, [applied(values[0].tobytes(), value)]

    def _parts_replace(self, peer: str, header: dict[str, Any], values: list[Any]) -> Answer:
        parts = self._parts(header)
        return {"is_there": parts.replace(header["part"], header["number"], values[0])}, []

    # -- control messages -----------------------------------------------------------------------

    def _forget(self, peer: str, message: dict[str, Any]) -> None:
        session = self.session(peer, message["session"])
        session.plans.pop(message["plan"], None)
        session.ops.pop(message["plan"], None)

    def _close(self, peer: str, message: dict[str, Any]) -> None:
        session = self._sessions.pop((peer, message["session"]), None)
        if session is not None:
            session.gate.request("close")
            self._host.forget_container(peer, message["session"])

    def _abort(self, peer: str, message: dict[str, Any]) -> None:
        """Ends a step because it has failed elsewhere."""
        number = StepId(message["client"], message["step"])
        with self._lock:
            self._ended.append(number)
            step = self._steps.get(number)
        if step is not None:
            step.end(DerivedError("another part of the step has failed"))
        self.taken.give_back(number)
        if step is None and message["agrees"]:
            self._say_rest(peer, number)

    def _say_rest(self, client: str, number: StepId) -> None:
        """Tells the client how far update groups have come here, where nothing of the step runs."""
        endpoint = self._host.endpoint
        message = {
            "kind": "step.rest",
            "step": number.number,
            "ended": self.doubts.written(number),
            "incarnation": endpoint.incarnation,
        }
        with suppress(UnavailableError):  # it is gone; when it is back it is asked
            endpoint.tell(client, message)

    def _agreed(self, peer: str, message: dict[str, Any]) -> None:
        number = StepId(message["client"], message["step"])
        self.doubts.told(number, message["ended"], message["is_forgotten"])

    def _gate(self, peer: str, message: dict[str, Any]) -> None:
        self.session(peer, message["session"]).gate.request(message["request"])

    def _variables(self, peer: str, message: dict[str, Any]) -> dict[str, Any]:
        """Returns facts of variables: see `runtime.session.remote.Remote.facts`."""
        self.doubts.heed(peer, message)
        session = self.session(peer, message["session"])
        told: list[list[Any]] = []
        for container, name in message["names"]:
            found = session.container(container).variables().get(name)
            is_there = found is not None and found.is_initialized
            nbytes = 0 if found is None else found.nbytes
            facts = (0, None) if found is None else (found.writes, found.written_in)
            told.append([is_there, facts[0], nbytes, facts[1]])
        return {"variables": told}


def as_bytes(data: bytes) -> Any:
    """Returns bytes as an array, as runs carry them."""
    return np.frombuffer(data, np.uint8)


__all__ = ["WorkerSession", "WorkerSteps", "as_bytes"]
