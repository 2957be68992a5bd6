"""`fs.train.Supervisor`: sessions that are restored or initialised, beside threads that save.

Programs of TensorFlow 1 use it; `fs.train.MonitoredTrainingSession` does the same by hooks, and
recovers when workers were lost.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from flowscope.errors import AbortedError, GraphError
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.messages.event_messages import SessionLog, Summary
from flowscope.ops.host.summaries import merge_all
from flowscope.ops.state.graph_keys import GraphKeys
from flowscope.ops.state.variable_lists import (
    global_variables,
    global_variables_initializer,
    report_uninitialized_variables,
)
from flowscope.runtime.config import ConfigProto, RunOptions
from flowscope.runtime.session.remote import SessionTarget
from flowscope.runtime.session.session import Session
from flowscope.train.checkpoint.saver import Saver
from flowscope.train.events.summary_writer import FileWriter
from flowscope.train.input.coordinator import Coordinator, Failure, LooperThread
from flowscope.train.input.queue_runner import QueueRunner
from flowscope.train.optimizers.global_step import get_global_step
from flowscope.train.session.scaffold import Scaffold
from flowscope.train.session.session_manager import MAX_WAIT_SECS, SessionManager

__all__ = ["Supervisor", "basic_train_loop"]

_LOGGER = logging.getLogger("flowscope")


class Supervisor:
    """Prepares sessions, and writes checkpoints and summaries beside the training.

        sv = fs.train.Supervisor(logdir=folder)
        with sv.managed_session() as sess:
            while not sv.should_stop():
                sess.run(train_op)

    The graph is read-only from then on. Pieces that are not given are taken from the graph's
    collections, or made.

    Args:
        graph: The graph; the default graph by default.
        ready_op: A string vector of what is not ready; None checks nothing.
        ready_for_local_init_op: Likewise: what `local_init_op` needs.
        is_chief: True: it restores or initialises, and runs the services; others wait for it.
        init_op: Run where no checkpoint was restored.
        init_feed_dict: Values that it is fed.
        local_init_op: Run in each new session.
        logdir: Where checkpoints and summaries are written, and where the latest is restored from.
        summary_op: Run by the service of summaries; None: there is none.
        saver: Saves and restores; None: there is none.
        global_step: Numbers checkpoints and summaries; None: there is none.
        save_summaries_secs: Seconds between two summaries; 0: none.
        save_model_secs: Seconds between two checkpoints; 0: none.
        recovery_wait_secs: So often it is looked whether the model is ready.
        stop_grace_secs: So long threads are waited for at the end.
        checkpoint_basename: What the checkpoints' names begin with.
        session_manager: Makes the sessions.
        summary_writer: Writes; by default one of `logdir`; None: there is none.
        init_fn: Called with the session after `init_op`.
        local_init_run_options: Options of the run of `local_init_op`.

    Attributes:
        coord: The `Coordinator` of all threads.
        session_manager, saver, summary_op, summary_writer, global_step, init_op, init_feed_dict,
        ready_op, ready_for_local_init_op, is_chief, save_model_secs, save_summaries_secs,
        save_path: As given or found.
    """

    USE_DEFAULT: ClassVar[int] = 0

    def __init__(
        self,
        graph: Graph | None = None,
        ready_op: Any = USE_DEFAULT,
        ready_for_local_init_op: Any = USE_DEFAULT,
        is_chief: bool = True,
        init_op: Any = USE_DEFAULT,
        init_feed_dict: Mapping[Any, Any] | None = None,
        local_init_op: Any = USE_DEFAULT,
        logdir: str | None = None,
        summary_op: Any = USE_DEFAULT,
        saver: Any = USE_DEFAULT,
        global_step: Any = USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: SessionManager | None = None,
        summary_writer: Any = USE_DEFAULT,
        init_fn: Callable[[Session], None] | None = None,
        local_init_run_options: RunOptions | None = None,
    ) -> None:
        self._graph = get_default_graph() if graph is None else graph
        keys = GraphKeys
        with self._graph.as_default():
            self.ready_op = _piece(ready_op, keys.READY_OP, report_uninitialized_variables)
            self.ready_for_local_init_op = _piece(
                ready_for_local_init_op,
                keys.READY_FOR_LOCAL_INIT_OP,
                lambda: report_uninitialized_variables(global_variables()),
            )
            self.init_op = _piece(init_op, keys.INIT_OP, global_variables_initializer)
            local = _piece(local_init_op, keys.LOCAL_INIT_OP, Scaffold.default_local_init_op)
            self.saver = _piece(saver, keys.SAVERS, _saver_if_there_are_variables)
            self.summary_op = _piece(summary_op, keys.SUMMARY_OP, merge_all)
            found: Any = get_global_step() if _is_default(global_step) else global_step
        self.global_step = found
        self.init_feed_dict = init_feed_dict
        self.is_chief = is_chief
        self.coord = Coordinator()
        self.save_summaries_secs = save_summaries_secs if is_chief else None
        self.save_model_secs = save_model_secs if is_chief else None
        self._logdir = logdir if is_chief else None
        self.save_path = os.path.join(self._logdir, checkpoint_basename) if self._logdir else None
        self.summary_writer: FileWriter | None = None
        if is_chief and _is_default(summary_writer):
            self.summary_writer = FileWriter(self._logdir) if self._logdir else None
        elif is_chief:
            self.summary_writer = summary_writer
        self._stop_grace_s = stop_grace_secs
        self._init_fn = init_fn
        self.session_manager = session_manager or SessionManager(
            local,
            self.ready_op,
            None if local is None else self.ready_for_local_init_op,
            self._graph,
            recovery_wait_secs,
            local_init_run_options,
        )
        self._graph.finalize()

    # -- sessions -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def managed_session(
        self,
        master: str | SessionTarget = "",
        config: ConfigProto | None = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Session]:
        """A context with a session: made at its beginning, ended with all threads at its end.

        What its body raises is raised again, or what a thread has raised before that;
        OutOfRangeError ends the training and is no error.

        Args:
            master: "" for this process; else a cluster, or its `target`.
            config: The session's options.
            start_standard_services: True: services and queue runners are started.
            close_summary_writer: True: the writer is closed at the end.
        """
        sess = None
        try:
            sess = self.prepare_or_wait_for_session(
                master, config, start_standard_services=start_standard_services
            )
            yield sess
        except Exception as error:
            self.request_stop(error)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if sess is not None:
                    sess.close()

    def prepare_or_wait_for_session(
        self,
        master: str | SessionTarget = "",
        config: ConfigProto | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = MAX_WAIT_SECS,
        start_standard_services: bool = True,
    ) -> Session:
        """Makes a session that is ready; see `SessionManager.prepare_session` for errors.

        Args:
            master: "" for this process; else a cluster, or its `target`.
            config: The session's options.
            wait_for_checkpoint: True: the chief waits for a checkpoint.
            max_wait_secs: How long a checkpoint, the chief, or lost workers are waited for.
            start_standard_services: True: services and queue runners are started.
        """
        self.coord.clear_stop()
        if self.summary_writer is not None:
            self.summary_writer.reopen()
        if self.is_chief:
            sess = self.session_manager.prepare_session(
                master,
                self.init_op,
                self.saver,
                self._logdir,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs,
                config=config,
                init_feed_dict=self.init_feed_dict,
                init_fn=self._init_fn,
            )
            if self.summary_writer is not None:
                self.summary_writer.add_graph(self._graph)
            if start_standard_services:
                self.start_standard_services(sess)
        else:
            sess = self.session_manager.wait_for_session(master, config, max_wait_secs)
        if start_standard_services:
            self.start_queue_runners(sess)
        return sess

    # -- threads --------------------------------------------------------------------------------

    def start_standard_services(self, sess: Session) -> list[LooperThread]:
        """Starts the threads that write checkpoints, summaries and steps a second.

        Args:
            sess: The session.

        Raises:
            GraphError: if this is no chief's.
        """
        if not self.is_chief:
            raise GraphError("only the chief's supervisor starts the standard services")
        if self._logdir is None:
            _LOGGER.warning("Standard services need a logdir: give Supervisor(logdir=...).")
            return []
        threads: list[LooperThread] = []
        writer = self.summary_writer
        if writer is not None and self.global_step is not None:
            writer.add_session_log(SessionLog(status=SessionLog.START), self._step(sess))
        if writer is not None and self.save_summaries_secs:
            if self.summary_op is not None:
                threads.append(_Summaries(self, sess, self.save_summaries_secs))
            if self.global_step is not None:
                threads.append(_StepCounts(self, sess, self.save_summaries_secs))
        if self.saver is not None and self.save_model_secs:
            threads.append(_Checkpoints(self, sess, self.save_model_secs))
        for thread in threads:
            thread.start()
        return threads

    def start_queue_runners(
        self, sess: Session, queue_runners: Iterable[QueueRunner] | None = None
    ) -> list[threading.Thread]:
        """Starts the threads of queue runners.

        Args:
            sess: The session.
            queue_runners: The runners; by default those of the collection `QUEUE_RUNNERS`.
        """
        if queue_runners is None:
            queue_runners = self._graph.get_collection(GraphKeys.QUEUE_RUNNERS)
        return [
            thread
            for runner in queue_runners
            for thread in runner.create_threads(sess, self.coord, daemon=True, start=True)
        ]

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """Starts a thread that calls a function until the end; see `LooperThread.loop`."""
        return LooperThread.loop(self.coord, timer_interval_secs, target, args, kwargs)

    def summary_computed(
        self, sess: Session, summary: bytes | Summary, global_step: int | None = None
    ) -> None:
        """Writes a summary.

        Args:
            sess: The session, which is asked for the global step where that is not given.
            summary: The summary.
            global_step: Its step.

        Raises:
            GraphError: if there is no summary writer.
        """
        if self.summary_writer is None:
            raise GraphError("writing a summary needs a summary writer: give logdir")
        if global_step is None and self.global_step is not None:
            global_step = self._step(sess)
        self.summary_writer.add_summary(summary, global_step)

    def request_stop(self, ex: Failure = None) -> None:
        """Asks all threads to stop; see `Coordinator.request_stop`."""
        self.coord.request_stop(ex)

    def should_stop(self) -> bool:
        """True once a stop was asked for."""
        return self.coord.should_stop()

    def stop_on_exception(self) -> contextlib.AbstractContextManager[None]:
        """A context that asks for a stop where its body raises."""
        return self.coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Waits until a stop is asked for."""
        self.coord.wait_for_stop()

    def stop(
        self,
        threads: Iterable[threading.Thread] | None = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = False,
    ) -> None:
        """Stops all threads, and closes the summary writer.

        Args:
            threads: Threads that are waited for, beside the supervisor's own.
            close_summary_writer: True: the writer is closed.
            ignore_live_threads: True: threads that still run after the grace are no error.

        Raises:
            Exception: what the first thread that failed has raised.
        """
        self.coord.request_stop()
        try:
            self.coord.join(threads, self._stop_grace_s, ignore_live_threads)
        finally:
            if close_summary_writer and self.summary_writer is not None:
                self.summary_writer.add_session_log(SessionLog(status=SessionLog.STOP))
                self.summary_writer.close()

    def _step(self, sess: Session) -> int:
        return int(sess.run(self.global_step))


class _Service(LooperThread):
    """A thread of a supervisor that does something every so often."""

    def __init__(self, supervisor: Supervisor, sess: Session, every_s: float) -> None:
        super().__init__(supervisor.coord, every_s)
        self.supervisor = supervisor
        self.sess = sess


class _Checkpoints(_Service):
    def run_loop(self) -> None:
        """Writes a checkpoint."""
        step = self.supervisor.global_step
        self.supervisor.saver.save(self.sess, self.supervisor.save_path, global_step=step)


class _Summaries(_Service):
    def run_loop(self) -> None:
        """Runs the summaries and writes them."""
        step = self.supervisor.global_step
        fetches = [self.supervisor.summary_op] + ([] if step is None else [step])
        found, *steps = self.sess.run(fetches)
        self.supervisor.summary_computed(self.sess, found, int(steps[0]) if steps else None)


class _StepCounts(_Service):
    def start_loop(self) -> None:
        """Begins to count."""
        self._last = time.monotonic(), self.supervisor._step(self.sess)

    def run_loop(self) -> None:
        """Writes the steps a second since the last time."""
        now, step = time.monotonic(), self.supervisor._step(self.sess)
        (then, before), self._last = self._last, (now, step)
        rate = (step - before) / (now - then) if now > then else 0.0
        tag = f"{self.supervisor.global_step.op.name}/sec"
        _LOGGER.info("%s: %g", tag, rate)
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=rate)])
        self.supervisor.summary_computed(self.sess, summary, step)


def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    master: str | SessionTarget = "",
) -> None:
    """Trains until a stop is asked for: calls a function again and again, in a managed session.

    A session that ends with AbortedError is followed by another one.

    Args:
        supervisor: Makes the sessions.
        train_step_fn: Called as `train_step_fn(session, *args, **kwargs)`; it runs a step.
        args: Positional arguments.
        kwargs: Keyword arguments.
        master: "" for this process; else a cluster, or its `target`.
    """
    while True:
        try:
            with supervisor.managed_session(master) as sess:
                while not supervisor.should_stop():
                    train_step_fn(sess, *(args or ()), **(kwargs or {}))
        except AbortedError:
            continue
        return


def _is_default(given: Any) -> bool:
    return isinstance(given, int) and given == Supervisor.USE_DEFAULT


def _piece(given: Any, key: str, make: Callable[[], Any]) -> Any:
    """A piece as given; by default that of a collection, else a new one."""
    return Scaffold.get_or_default(key, key, make) if _is_default(given) else given


def _saver_if_there_are_variables() -> Saver | None:
    return Saver() if global_variables() else None
