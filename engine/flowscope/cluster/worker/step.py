"""One step of a client's, as far as it runs on this host."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any

from flowscope.cluster.debug.held_partitions import HeldParts
from flowscope.cluster.transport.channel import ProcessChannel, StepId
from flowscope.cluster.worker.doubts import WorkerDoubts
from flowscope.cluster.worker.owners import HostOwner
from flowscope.cluster.worker.plan import WorkerPlan
from flowscope.errors import UnavailableError
from flowscope.graph.current_step import steps_of_threads
from flowscope.runtime.state.queue_transactions import QueueTransaction, goes_back
from flowscope.runtime.state.shared_updates import SharedUpdates
from flowscope.runtime.step.split import DerivedError, SplitStep
from flowscope.runtime.step.step import Step
from flowscope.runtime.threads.blas import one_thread
from flowscope.runtime.trace.part_trace import PartRecorder, packed
from flowscope.runtime.waits.rendezvous import Rendezvous

if TYPE_CHECKING:
    from flowscope.cluster.worker.sessions import WorkerSession


class WorkerStep:
    """Runs the partitions of this host; the thread that has received the step runs the first.

    Args:
        host: The host.
        session: The client's session.
        doubts: Where it leaves what is in doubt when it ends here.
        plan: What is run.
        client: The client's name.
        number: The step's number.
        header: What the client has sent with it.
    """

    def __init__(
        self,
        host: HostOwner,
        session: WorkerSession,
        doubts: WorkerDoubts,
        plan: WorkerPlan,
        client: str,
        number: StepId,
        header: dict[str, Any],
    ) -> None:
        self.client = client
        self._host = host
        self._session = session
        self._doubts = doubts
        self._plan = plan
        self._number = number
        self._run = tuple(header["run"])
        #: What traces its partitions; None where nobody wants that.
        self._recorders: list[PartRecorder] | None = [] if header.get("is_traced") else None
        self._lock = threading.Lock()
        #: What its partitions are parts of; None before it begins.
        self.whole: Step | None = None
        self._split: SplitStep | None = None
        self._error: BaseException | None = None
        self._parts: HeldParts | None = None
        #: What it took, where it has failed and others may have written.
        self.held_back: QueueTransaction | None = None
        #: Whether its partitions go on by turns alone.
        self.keeps_turns = False

    @property
    def parts(self) -> HeldParts | None:
        """Its partitions where they stand while it is held; None before it begins."""
        whole = self.whole
        with self._lock:
            if self._parts is None and whole is not None:
                programs = self._plan.programs
                self._parts = HeldParts(whole.gate, whole, programs, lambda: self._split)
            return self._parts

    def end(self, error: BaseException) -> None:
        """Ends it from outside; it is not told as an error of its own."""
        with self._lock:
            self._error = error
            split = self._split
        if split is not None:
            split.end(error)

    def keep_turns(self, keeps: bool) -> None:
        """Has its partitions go on by turns alone, or when nobody holds them, too."""
        self.keeps_turns = keeps
        whole = self.whole
        if whole is not None and whole.keeps_turns is not keeps:
            whole.gate.keep_turns(whole, keeps)

    def _stop(self) -> None:
        self.end(DerivedError("the step has failed elsewhere"))

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Returns the values of its fetches.

        Args:
            values: What is fed of what it takes.
        """
        plan, gate = self._plan, self._session.gate
        me = get_ident()
        call: Any = plan
        step = Step(call, None, gate, self._host.engine.host_threads, me)
        step.number = self._run[2]
        step.takes_turns = plan.takes_turns and self._recorders is None
        if plan.shared_groups:
            step.updates = SharedUpdates(step, plan.shared_groups)
            self._doubts.begin(self._number, self.client, step.updates, self._stop)
        self.whole = step
        steps_of_threads[me] = step
        try:
            if self.keeps_turns:
                self.keep_turns(True)
            if plan.uses_blas:
                one_thread.enter()
                step.pool = self._host.engine.pool
            if gate.raised:
                gate.hold(-1)
            return self._computed(step, values)
        except BaseException as e:
            self._hold_back(step, e)
            step.failed(e)
            raise
        finally:
            step.has_ended = True
            if step.pool is not None:
                one_thread.leave()
                step.pool.products.settle()
            del steps_of_threads[me]
            if gate.raised:
                gate.left(step)

    def _hold_back(self, step: Step, error: BaseException) -> None:
        """Keeps what it took, where others are to be asked first whether they have written."""
        queues = step.queues
        if self.writers and queues is not None and goes_back(error) and queues.can_give_back:
            step.queues, self.held_back = None, queues

    @property
    def writers(self) -> Sequence[str]:
        """The other workers that may write in it, where it takes from queues."""
        return self._plan.writers

    def writes(self) -> int:
        """Returns how often what it writes was written so far, by anyone."""
        return sum(v.writes for v in self._plan.written)

    def taken(self) -> QueueTransaction | None:
        """The elements to give back should the step fail elsewhere; None if it took none."""
        whole = self.whole
        queues = None if whole is None else whole.queues
        return queues if queues is not None and queues.can_give_back else None

    @property
    def is_ended(self) -> bool:
        """Whether it was ended from outside, be it that it had its values by then."""
        return self._error is not None

    def traces(self) -> tuple[dict[str, Any], list[Any]]:
        """The trace of the step for the answer: plain data, and arrays."""
        if not self._recorders:
            return {}, []
        told = [packed(one.taken()) for one in self._recorders]
        return {"traces": [data for data, _ in told]}, [a for _, arrays in told for a in arrays]

    def _computed(self, step: Step, values: Sequence[Any]) -> list[Any]:
        plan = self._plan
        endpoint = self._host.endpoint
        # What meets nobody needs nothing of the transport.
        is_alone = not plan.table.routes
        channel = Rendezvous() if is_alone else endpoint.open_step(self._number, plan.table)
        try:
            split = SplitStep(
                step,
                channel,
                self._session.gate,
                self._run,
                self._tell,
                takes_turns=step.takes_turns,
            )
            given = dict(zip(plan.takes, values, strict=True))
            functions = plan.functions if not self._session.gate.is_by_op else plan.by_op
            if self._recorders is not None:
                self._recorders, functions = plan.traced()
            for part, function in zip(plan.parts, functions, strict=True):
                feeds = tuple([given[i] for i in part.takes])
                states = tuple([plan.resources[i] for i in part.handles])
                split.add(part, function, feeds, states)
            with self._lock:
                self._split, error = split, self._error
            if error is not None:
                split.end(error)
            split.begin()
            if isinstance(channel, ProcessChannel):
                channel.flush()
            fetched = split.finish()
            return [fetched[i] for i in plan.gives]
        finally:
            self._split = None
            if step.updates is not None:
                self._doubts.end(self._number)
            if not is_alone:
                endpoint.close_step(self._number)

    def _tell(self, error: BaseException) -> None:
        """Tells the client that the step fails here, before its threads have come to rest."""
        if self._error is not None:
            return
        message = {"kind": "step.failed", "step": self._number.number}
        with suppress(UnavailableError):  # it is gone; nobody wants to know
            self._host.endpoint.tell(self.client, message)


__all__ = ["WorkerStep"]
