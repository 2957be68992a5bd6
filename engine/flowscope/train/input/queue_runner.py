"""Queue runners: threads that fill queues by running their enqueue operations.

A thread runs its operation in rounds, as one lasting step where nothing forbids it: see
`flowscope.runtime.session.rounds`.
"""

from __future__ import annotations

import json
import logging
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from flowscope.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from flowscope.graph.current_step import steps_of_threads
from flowscope.graph.default import get_default_graph, get_default_session
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation
from flowscope.graph.serialization.meta import CollectionKind, register_kind
from flowscope.graph.summary import counted
from flowscope.ops.state.containers.queues import QueueBase
from flowscope.ops.state.graph_keys import GraphKeys
from flowscope.runtime.session.helpers import Helper
from flowscope.runtime.session.rounds import Rounds
from flowscope.runtime.session.session import Session
from flowscope.train.input.coordinator import Coordinator

__all__ = ["QueueRunner", "QueueRunnerDef", "add_queue_runner", "start_queue_runners"]

#: So often it is looked whether a thread that is to end has begun another round.
_LOOK_S = 0.02
_LOGGER = logging.getLogger("flowscope")
#: Errors that may mean the end of the input, by the codes that data tells them by.
_CODES: dict[type[Exception], int] = {
    OutOfRangeError: OutOfRangeError.code,
    CancelledError: CancelledError.code,
}


@frozen
class QueueRunnerDef:
    """A queue runner as data: the names of its operations.

    Attributes:
        queue_name: The operation that makes the queue's handle.
        enqueue_op_name: Run again and again, each by a thread.
        close_op_name: Run when all of them are at their end.
        cancel_op_name: Run when a coordinator asks for a stop.
        queue_closed_exception_types: Codes of the errors that mean the end.
    """

    queue_name: str = ""
    enqueue_op_name: tuple[str, ...] = ()
    close_op_name: str = ""
    cancel_op_name: str = ""
    queue_closed_exception_types: tuple[int, ...] = (OutOfRangeError.code,)


class Worker:
    """What a thread of a queue runner does.

    Args:
        operation: What it runs again and again.
        session: A weak reference to where.

    Attributes:
        operation, session: As above.
        thread: The thread.
        why_single: Why each round is a step of its own; None while it is not.
        outcome: How it has ended; "" before.
        has_failed: Whether it has ended with an error that is neither the end nor a stop.
    """

    def __init__(self, operation: Operation, session: weakref.ref[Session]) -> None:
        self.operation = operation
        self.session = session
        self.thread: threading.Thread | None = None
        self.why_single: str | None = None
        self.outcome = ""
        self.has_failed = False


class QueueRunner:
    """Enqueue operations of one queue, each of which a thread runs again and again.

    What random operations draw for an element follows from the seeds and from how often the enqueue
    operation has run in its session's runners, not from what else runs.

    When the input of all threads is at its end, the queue is closed: who takes from it gets what is
    left, and then OutOfRangeError.

    Args:
        queue: The queue.
        enqueue_ops: One for each thread; the same operation may be given several times.
        close_op: Closes the queue; `queue.close()` by default.
        cancel_op: Closes it and ends what waits to put something in; by default
            `queue.close(cancel_pending_enqueues=True)`.
        queue_closed_exception_types: Exceptions that mean the end of a thread's input:
            OutOfRangeError by default.
        queue_runner_def: A runner as data, in place of all of these.
        import_scope: A name scope in which the operations of `queue_runner_def` are.

    Raises:
        InvalidArgumentError: if `queue` or `enqueue_ops` is missing, or given with
            `queue_runner_def`.

    Attributes:
        name: The queue's name.
        queue: The queue; None for a runner that was made of data.
        enqueue_ops, close_op, cancel_op: The operations.
    """

    def __init__(
        self,
        queue: QueueBase | None = None,
        enqueue_ops: Sequence[Operation] | None = None,
        close_op: Operation | None = None,
        cancel_op: Operation | None = None,
        queue_closed_exception_types: Sequence[type[Exception]] | None = None,
        queue_runner_def: QueueRunnerDef | None = None,
        import_scope: str | None = None,
    ) -> None:
        if queue_runner_def is not None:
            if queue is not None or enqueue_ops:
                raise InvalidArgumentError("expected queue_runner_def or queue, got both")
            graph, scope = get_default_graph(), f"{import_scope}/" if import_scope else ""
            self._fill(queue_runner_def, lambda name: graph.get_operation_by_name(scope + name))
        else:
            if queue is None or not enqueue_ops:
                raise InvalidArgumentError("expected a queue and enqueue_ops")
            self.queue: QueueBase | None = queue
            self.name = queue.name
            self.enqueue_ops = list(enqueue_ops)
            self.close_op = queue.close() if close_op is None else close_op
            self.cancel_op = (
                queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
            )
            self._ends = tuple(queue_closed_exception_types or (OutOfRangeError,))
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._running: weakref.WeakKeyDictionary[Session, int] = weakref.WeakKeyDictionary()
        self._exceptions: list[Exception] = []
        self._workers: list[Worker] = []

    def _fill(self, facts: QueueRunnerDef, found: Callable[[str], Operation]) -> None:
        """Takes its operations from data; `found` gives the operation of a name."""
        self.queue = None
        self.name = found(facts.queue_name).name
        self.enqueue_ops = [found(name) for name in facts.enqueue_op_name]
        self.close_op = found(facts.close_op_name)
        self.cancel_op = found(facts.cancel_op_name)
        by_code = {code: kind for kind, code in _CODES.items()}
        unknown = [c for c in facts.queue_closed_exception_types if c not in by_code]
        if unknown:
            raise InvalidArgumentError(
                f"expected codes of OutOfRangeError ({OutOfRangeError.code}) or CancelledError "
                f"({CancelledError.code}) as queue_closed_exception_types, got {unknown}"
            )
        self._ends = tuple(by_code[c] for c in facts.queue_closed_exception_types)

    @property
    def queue_closed_exception_types(self) -> tuple[type[Exception], ...]:
        """Exceptions that mean the end of a thread's input."""
        return self._ends

    @property
    def exceptions_raised(self) -> list[Exception]:
        """What threads without a coordinator have raised since they were made last."""
        return self._exceptions

    def create_threads(
        self, sess: Session, coord: Coordinator | None = None, daemon: bool = False,
        start: bool = False,
    ) -> list[threading.Thread]:  # fmt: skip
        """Makes the threads that run the enqueue operations in a session.

        Args:
            sess: The session.
            coord: Gets what they raise, has them stop, and waits for them; one more thread
                closes the queue then.
            daemon: True: the process may end before them.
            start: True: they are started.

        Returns:
            The threads; none while those of an earlier call run in the same session.
        """
        with self._lock:
            if self._running.get(sess, 0):
                return []
            self._running[sess] = len(self.enqueue_ops)
            self._exceptions = []
            self._workers = [Worker(op, weakref.ref(sess)) for op in self.enqueue_ops]
        sess.helpers.add(self)
        if coord is not None:
            sess.helpers.add(coord)
        threads = []
        for worker in self._workers:
            name = self._thread_name(worker.operation.name)
            thread = threading.Thread(target=self._run, args=(sess, worker, coord), name=name)
            worker.thread = thread
            threads.append(thread)
        if coord is not None:
            name = self._thread_name("close_on_stop")
            closing = threading.Thread(target=self._close_on_stop, args=(sess, coord), name=name)
            threads.append(closing)
        for thread in threads:
            if coord is not None:
                coord.register_thread(thread)
            thread.daemon = daemon
            if start:
                thread.start()
        return threads

    @property
    def workers(self) -> list[Worker]:
        """What its threads do, of those that were made last."""
        return list(self._workers)

    def helpers(self) -> list[Helper]:
        """Its threads, for views."""
        return [
            Helper(
                "runner",
                self.name,
                worker.outcome,
                worker.operation.id,
                None if worker.thread is None else worker.thread.ident,
                worker.has_failed,
            )
            for worker in self._workers
        ]

    def __repr__(self) -> str:
        parts = [f"<fs.train.QueueRunner {self.name!r}: {counted(len(self.enqueue_ops), 'thread')}"]
        why = dict.fromkeys(w.why_single for w in self._workers if w.why_single is not None)
        parts += [f"each round is a step of its own: {one}" for one in why]
        return "; ".join(parts) + ">"

    def _thread_name(self, of: str) -> str:
        return f"QueueRunnerThread-{self.name}-{of}"

    def _run(self, sess: Session, worker: Worker, coord: Coordinator | None) -> None:
        """What a thread does: runs an operation until the input, or the work, is at its end."""
        has_ended = False
        try:
            is_wanted = _always if coord is None else lambda: not coord.should_stop()
            rounds = Rounds(sess, worker.operation, is_wanted)
            while is_wanted():
                rounds.run()
                worker.why_single = rounds.why_single
            worker.outcome = "it was stopped"
        except self._ends:
            worker.outcome = "its input is at its end"
            has_ended = True
        except Exception as error:
            worker.outcome = f"{type(error).__name__}: {error}".partition("\n")[0]
            worker.has_failed = not isinstance(error, CancelledError)
            if coord is None:
                _LOGGER.error("Exception in a thread of the QueueRunner %s: %s", self.name, error)
                with self._lock:
                    self._exceptions.append(error)
                raise
            coord.request_stop(error)
        finally:
            worker.why_single = None
            with self._lock:
                self._running[sess] -= 1
                is_last = not self._running[sess]
        if has_ended and is_last:
            self._close(sess, self.close_op)

    def _close_on_stop(self, sess: Session, coord: Coordinator) -> None:
        """What a thread does: closes the queue at a stop, and ends what waits for something else.

        Nothing more can be put into the queue: a round that still waits, for another queue or for
        gradients, is stopped and gives back what it has taken.
        """
        coord.wait_for_stop()
        self._close(sess, self.cancel_op)
        for thread in [w.thread for w in self._workers if w.thread is not None]:
            while thread.is_alive():
                step = steps_of_threads.get(thread.ident or 0)
                if step is not None and step.gate is sess.gate:
                    sess.gate.stop_step(step)
                thread.join(_LOOK_S)

    def _close(self, sess: Session, op: Operation) -> None:
        try:
            sess.run(op)
        except Exception as error:  # the session may be closed, the queue too
            _LOGGER.debug("The queue %s was not closed: %s", self.name, error)

    def to_proto(self, export_scope: str | None = None) -> QueueRunnerDef | None:
        """The runner as data.

        Args:
            export_scope: A name scope, which is cut off the names; None is returned for a runner
                outside of it.
        """
        prefix = f"{export_scope}/" if export_scope else ""
        if not self.name.startswith(prefix):
            return None
        return QueueRunnerDef(
            self.name.removeprefix(prefix),
            tuple(op.name.removeprefix(prefix) for op in self.enqueue_ops),
            self.close_op.name.removeprefix(prefix),
            self.cancel_op.name.removeprefix(prefix),
            tuple(_CODES[kind] for kind in self._ends),
        )

    @staticmethod
    def from_proto(
        queue_runner_def: QueueRunnerDef, import_scope: str | None = None
    ) -> QueueRunner:
        """The runner that `to_proto` has made data of."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)


def _always() -> bool:
    return True


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Adds a queue runner to a collection of the default graph, for `start_queue_runners`."""
    get_default_graph().add_to_collection(collection, qr)


def start_queue_runners(
    sess: Session | None = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Starts the threads of all queue runners of a collection.

    Args:
        sess: The session; the default session by default.
        coord: Has them stop, and gets what they raise.
        daemon: True: the process may end before them.
        start: False: they are made only.
        collection: The collection of the session's graph.

    Returns:
        The threads.

    Raises:
        InvalidArgumentError: if there is no session. (A monitored session starts its own: what it
            is given as `sess` starts nothing.)
    """
    if sess is None:
        sess = get_default_session()
        if sess is None:
            raise InvalidArgumentError(
                "start_queue_runners needs a session: give sess=, or call it in `with fs.Session()`"
            )
    if not isinstance(sess, Session):
        if hasattr(sess, "run_step_fn"):
            _LOGGER.warning("Monitored sessions start their queue runners themselves.")
            return []
        raise InvalidArgumentError(f"expected an fs.Session, got {sess!r}")
    runners = sess.graph.get_collection(collection)
    if not runners:
        _LOGGER.warning("start_queue_runners: the collection %r has no queue runners.", collection)
    return [t for qr in runners for t in qr.create_threads(sess, coord, daemon, start)]


def _write(runner: QueueRunner) -> dict[str, Any]:
    return dict(vars(runner.to_proto()))


def _read(facts: dict[str, Any], find: Callable[[str], Any]) -> QueueRunner:
    """The runner in a file's facts; InvalidArgumentError if they are not those of a runner."""
    texts = [facts.get(k) for k in ("queue_name", "close_op_name", "cancel_op_name")]
    lists = [facts.get(k) for k in ("enqueue_op_name", "queue_closed_exception_types")]
    if not (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(one, list | tuple) for one in lists)
        and all(isinstance(name, str) for name in lists[0] or ())
        and all(isinstance(code, int) for code in lists[1] or ())
    ):
        raise InvalidArgumentError(f"expected a queue runner, got {json.dumps(facts)}")
    runner = QueueRunner.__new__(QueueRunner)
    names, codes = [tuple(one or ()) for one in lists]
    runner._fill(QueueRunnerDef(texts[0], names, texts[1], texts[2], codes), find)  # type: ignore[arg-type]
    runner._begin()
    return runner


register_kind(CollectionKind("queue_runner", QueueRunner, _write, _read))
