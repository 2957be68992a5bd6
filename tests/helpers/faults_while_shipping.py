"""Freezes a worker at a random moment of what goes before and after steps, and looks when it ends.

    python tests/helpers/faults_while_shipping.py 100

A plan is shipped that the workers do not know, a session is made and closed, links are measured for
a placement by cost, a variable is moved, variables are asked for, values are saved and restored.
Meanwhile a worker is stopped (SIGSTOP). Nothing else, a deadline, a stop of the session or an
interrupt has it end: within the limit of each. Some of it ends well, for it came before, or needs
nothing of that worker. When the worker goes on, the next step must be right, and nothing may be
left of what was ended.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(ROOT / "engine"), str(ROOT / "tests" / "helpers")]

from local_clusters import local_cluster, wait_until
from own_threads import own_threads

import flowscope as fs
from flowscope import errors
from flowscope.cluster.membership.tasks import Task, task_name

WORKERS = 3
#: A stopped worker is found after a second, and what waits for it ends within two.
HANGS_S = 2.0
#: A deadline, a stop and an interrupt are heard so soon, but by a step that is under way: that
#: waits for all of its workers to come to rest, and for one that does not as long as above.
HEARD_S = 0.5
#: Before the worker is stopped, in seconds at most; and from then to a deadline, stop or interrupt.
BEFORE_S, AFTER_S = 0.03, 0.6

#: What happens after the worker was stopped.
ENDS = ("nothing", "deadline", "stop", "interrupt")
_LOST = (errors.UnavailableError, errors.AbortedError, errors.FailedPreconditionError)
_RAISED: dict[str, Any] = {
    "nothing": _LOST,
    "deadline": (errors.DeadlineExceededError, *_LOST),
    "stop": (errors.CancelledError, *_LOST),
    "interrupt": (KeyboardInterrupt, *_LOST),
}


class Shipping:
    """What sessions of a cluster do besides steps, while a worker is frozen.

    Attributes:
        took: By what was done and what ended it, the longest that it lasted after it was to end.
    """

    def __init__(self, cluster: fs.cluster.Cluster, draw: random.Random, folder: str) -> None:
        self.cluster, self.draw = cluster, draw
        self.took: dict[tuple[str, str], float] = {}
        self._path = str(Path(folder) / "values")
        self._does: dict[str, Callable[[fs.Session], Any]] = {
            "ship": self._ship,
            "place": self._place,
            "session": self._make_session,
            "close": self._close_session,
            "move": self._move,
            "variables": lambda sess: sess.variables(),
            "devices": lambda sess: sess.list_devices(),
            "save": lambda sess: self._saver.save(sess, self._path, write_meta_graph=False),
            "restore": lambda sess: self._saver.restore(sess, self._path),
        }
        self.threads = 0
        #: Whether a step was under way when something was to end.
        self._was_in_step = False

    @property
    def kinds(self) -> list[str]:
        """What can be done."""
        return list(self._does)

    def meet(self, kind: str, end: str) -> None:
        """Does something while a worker is frozen; looks when it ends, and what is left."""
        victim = self.draw.choice(self.cluster.tasks)
        with fs.Graph().as_default():
            self._build()
            timeout_ms = int(1000 * (BEFORE_S + AFTER_S)) if end == "deadline" else 0
            placement = "simulated" if kind == "place" else "default"
            config = fs.ConfigProto(placement=placement, operation_timeout_in_ms=timeout_ms)
            with fs.Session(self.cluster, config=config) as sess:
                self._prepare(sess)
                late = self._ended(sess, kind, end, victim)
            self.took[kind, end] = max(late, self.took.get((kind, end), 0.0))
            limit = HANGS_S if end == "nothing" or self._was_in_step else HEARD_S
            assert late < limit, f"{kind}, {end}: it ended {late:.2f} s too late"
            wait_until(self._is_whole)
            with fs.Session(self.cluster) as sess:
                sess.run(self._initializer)
                assert sess.run(self._total) == 3.0 * WORKERS
        self.threads = own_threads()

    # -- what is done ---------------------------------------------------------------------------

    def _build(self) -> None:
        self._counts, results = [], []
        for worker in range(WORKERS):
            with fs.device(task_name("worker", worker)):
                self._counts.append(fs.Variable(1.0, name=f"count_{worker}"))
                results.append(self._counts[-1] + 2.0)
        self._total = fs.add_n(results)
        self._initializer = fs.global_variables_initializer()
        self._saver = fs.train.Saver()

    def _prepare(self, sess: fs.Session) -> None:
        """Has the worker know the variables, and nothing of the plan that follows."""
        self._other = fs.Session(self.cluster, sess.graph)
        self._other.run(self._initializer)
        self._saver.save(self._other, self._path, write_meta_graph=False)
        sess.run(self._initializer, options=fs.RunOptions(timeout_in_ms=60_000))

    def _ship(self, sess: fs.Session) -> None:
        value = sess.run(self._total)
        assert value == 3.0 * WORKERS, value

    def _place(self, sess: fs.Session) -> None:
        self.cluster.watch.links._found.clear()  # measured once in the lives of both ends
        sess.placement(fs.reduce_sum(fs.ones([100]) * 2.0))

    def _make_session(self, sess: fs.Session) -> None:
        with fs.Session(self.cluster, sess.graph, sess.config) as other:
            other.run(self._initializer)

    def _close_session(self, sess: fs.Session) -> None:
        self._other.close()

    def _move(self, sess: fs.Session) -> None:
        sess.move(self._counts[0], task_name("worker", 1) + "/device:CPU:0")

    # -- the fault --------------------------------------------------------------------------------

    def _ended(self, sess: fs.Session, kind: str, end: str, victim: Task) -> float:
        """Does it; returns how many seconds after it was to end it has ended, 0 if before."""
        due: list[float] = []
        before_s, after_s = self.draw.random() * BEFORE_S, self.draw.random() * AFTER_S
        is_over = threading.Event()

        def strike() -> None:
            is_over.wait(before_s)
            os.kill(victim.pid, signal.SIGSTOP)
            begun = time.monotonic()
            if end in ("stop", "interrupt") and not is_over.wait(after_s):
                due.append(time.monotonic())
                self._was_in_step = any(s.steps for s in list(self.cluster.sessions))
                sess.stop() if end == "stop" else os.kill(os.getpid(), signal.SIGINT)
            elif end == "deadline":
                due.append(begun + AFTER_S + BEFORE_S - before_s)
                is_over.wait(due[0] - begun)
            else:
                due.append(begun)
            if end == "deadline":
                self._was_in_step = any(s.steps for s in list(self.cluster.sessions))

        striking = threading.Thread(target=strike)
        try:
            striking.start()
            self._does[kind](sess)
        except _RAISED[end]:
            pass
        finally:
            ended = time.monotonic()
            is_over.set()
            self._settle(striking)
            os.kill(victim.pid, signal.SIGCONT)
        sess.gate.clear_stop()  # one that came too late is for the next step
        # A worker that is found to hang may end it before that.
        return max(0.0, ended - due[0])

    def _settle(self, striking: threading.Thread) -> None:
        """Waits for the thread; an interrupt that comes too late is none of what was done."""
        try:
            striking.join()
            time.sleep(0)
        except KeyboardInterrupt:
            striking.join()

    def _is_whole(self) -> bool:
        """Whether all tasks are there and answer."""
        tasks = self.cluster.tasks
        return len(tasks) == WORKERS and all(self.cluster.health(t.name)[0] == "ok" for t in tasks)


def main() -> None:
    parser = argparse.ArgumentParser(description="Random freezes besides steps on a cluster.")
    parser.add_argument("count", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments = parser.parse_args()
    draw, done = random.Random(arguments.seed), Counter[tuple[str, str]]()
    path = os.pathsep.join([str(ROOT / "engine"), os.environ.get("PYTHONPATH", "")])
    begin = time.monotonic()
    with local_cluster({"PYTHONPATH": path}, WORKERS) as dask, tempfile.TemporaryDirectory() as to:
        with fs.cluster.connect(dask) as cluster:
            wait_until(lambda: len(cluster.tasks) == WORKERS)
            faults = Shipping(cluster, draw, to)
            for _ in range(arguments.count):
                kind, end = draw.choice(faults.kinds), draw.choice(ENDS)
                faults.meet(kind, end)
                done[kind, end] += 1
    print(f"{arguments.count} freezes, seed {arguments.seed}, {time.monotonic() - begin:.0f} s")
    for (kind, end), count in sorted(done.items()):
        print(f"{count} x {kind}, {end}: {faults.took[kind, end]:.3f} s after it at most")


if __name__ == "__main__":
    main()
