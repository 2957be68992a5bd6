"""Has steps on a real cluster meet faults at random points, and looks at what is left of them.

    python tests/helpers/random_faults.py 1000
    python tests/helpers/random_faults.py 10000 --kinds kernel client deadline stop interrupt

A step must end, by an error of its fault's class, within two seconds of it. Then nothing of it may
run anywhere, a group of variables on all workers must be whole on those that live, also where one
was stopped or cut off meanwhile, and the next step must work: where a worker was killed, after a
restore. At the end threads, handles and bytes held are compared with those of the
beginning.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
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

import psutil
from local_clusters import local_cluster, wait_until
from own_threads import own_threads

import flowscope as fs
from flowscope import errors
from flowscope.cluster.membership.tasks import Task, task_name

WORKERS = 3
#: A step ends so soon after its fault.
ENDS_S = 2.0
#: Iterations of a step that is to meet its fault while it runs, and of one that is to end.
ENDLESS, FEW = 10**9, 5
#: Before the fault comes, in seconds at most: some meet the beginning of their step.
SOON_S = 0.05

_LOST = (errors.UnavailableError, errors.AbortedError, errors.FailedPreconditionError)
#: What may be raised, by kinds of faults.
RAISED: dict[str, Any] = {
    "kernel": errors.InvalidArgumentError,
    "client": errors.InvalidArgumentError,
    "deadline": errors.DeadlineExceededError,
    "stop": errors.CancelledError,
    "interrupt": KeyboardInterrupt,
    "cut": _LOST,
    "hang": _LOST,
    "kill": _LOST,
}
#: Kinds that leave all workers alone.
GENTLE = ("kernel", "client", "deadline", "stop", "interrupt")


class Model:
    """A loop over all workers that counts variables up, one on each, as one group."""

    def __init__(self) -> None:
        self.graph = fs.Graph()
        with self.graph.as_default():
            self.trips = fs.placeholder(fs.int32, [], name="trips")
            #: In which iteration an operation fails: one of each worker, and one of the client.
            self.fails = [fs.placeholder(fs.int32, [], name=f"fails_{i}") for i in range(4)]
            self.counts = [self._count(i) for i in range(WORKERS)]
            _, self.total = fs.while_loop(
                lambda i, _: i < self.trips, self._body, [0, fs.constant(0.0, fs.float64)]
            )
            self.initializer = fs.global_variables_initializer()
            self.saver = fs.train.Saver()

    def _count(self, worker: int) -> Any:
        with fs.device(task_name("worker", worker)):
            return fs.Variable(0.0, name=f"count_{worker}", dtype=fs.float64)

    def _body(self, i: Any, total: Any) -> tuple[Any, Any]:
        for worker in range(WORKERS):
            with fs.device(task_name("worker", worker)):
                total = self._failing(worker, i, total) + 1.0
        total = self._failing(WORKERS, i, total)
        group = fs.group(*[count.assign_add(1.0) for count in self.counts])
        with fs.control_dependencies([group]):
            return i + 1, fs.identity(total)

    def _failing(self, which: int, i: Any, total: Any) -> Any:
        """Returns the total; fails in the iteration that is fed."""
        with fs.control_dependencies([fs.floordiv(1, self.fails[which] - i)]):
            return fs.identity(total)

    def feeds(self, trips: int, failing: int | None = None, at: int = -1) -> dict[Any, int]:
        """Returns the feeds of a step, of which one operation fails or none."""
        never = dict.fromkeys(self.fails, -1)
        if failing is not None:
            never[self.fails[failing]] = at
        return {self.trips: trips, **never}


class Faults:
    """Steps of one session that meet faults."""

    def __init__(self, cluster: fs.cluster.Cluster, draw: random.Random, folder: str) -> None:
        self.cluster, self.draw = cluster, draw
        self.model = Model()
        self.path = str(Path(folder) / "model")
        #: Of each kind, for how long the longest of its steps went on after it.
        self.took: dict[str, float] = {}
        self.session = fs.Session(cluster, self.model.graph)
        self.session.run(self.model.initializer)
        self.check()
        #: flowscope's threads in this process.
        self.threads = own_threads()

    def meet(self, kind: str) -> None:
        """Has a step meet a fault, and looks at what is left."""
        victim = self.draw.choice(self.cluster.tasks)
        if kind == "kill":
            self.model.saver.save(self.session, self.path, write_meta_graph=False)
        ended = self._ended(kind, victim)
        assert ended < ENDS_S, f"{kind}: the step ended {ended:.2f} s after it"
        self.took[kind] = max(ended, self.took.get(kind, 0.0))
        if kind == "hang":
            os.kill(victim.pid, signal.SIGCONT)
        dead = victim.index if kind == "kill" else None
        if dead is None:
            wait_until(self.is_whole)
        living = [t for t in self.cluster.tasks if t.index != dead]
        wait_until(lambda: self.running(living) == 0, ENDS_S)
        self._check_groups(kind, victim)
        if kind == "kill":
            wait_until(lambda: self.is_whole() and victim not in self.cluster.tasks)
            self.model.saver.restore(self.session, self.path)
        self.check()

    def _check_groups(self, kind: str, victim: Task) -> None:
        """Looks whether the groups of a step that has ended are whole."""
        has_died = kind == "kill"
        counts = {
            i: c for i, c in enumerate(self.model.counts) if not (has_died and i == victim.index)
        }
        values = {i: float(v) for i, v in self.session.run(counts).items()}
        assert len(set(values.values())) == 1, f"{kind}: a group is half written: {values}"

    def is_well(self, tasks: Any) -> bool:
        """Whether tasks answer."""
        return all(self.cluster.health(t.name)[0] == "ok" for t in tasks)

    def is_whole(self) -> bool:
        """Whether all tasks are there and answer."""
        return len(self.cluster.tasks) == WORKERS and self.is_well(self.cluster.tasks)

    def running(self, tasks: Any) -> int:
        """Returns how many steps run on tasks."""
        return sum(self.cluster.call(t.name, {"kind": "status"})["running"] for t in tasks)

    def check(self) -> None:
        """Runs a step that ends, and compares what it gives."""
        before = self.session.run(self.model.counts)
        total = self.session.run(self.model.total, self.model.feeds(FEW))
        assert total == FEW * WORKERS, total
        assert self.session.run(self.model.counts) == [b + FEW for b in before]

    def _ended(self, kind: str, victim: Task) -> float:
        """Runs a step that meets a fault; returns how many seconds after it the step had ended."""
        feeds, options = self.model.feeds(ENDLESS), None
        delay, faulted = self.draw.random() * SOON_S, []
        timer = None
        if kind in ("kernel", "client"):
            failing = WORKERS if kind == "client" else victim.index
            feeds = self.model.feeds(ENDLESS, failing, self.draw.randrange(FEW))
            faulted.append(time.monotonic())
        elif kind == "deadline":
            options = fs.RunOptions(timeout_in_ms=1 + int(delay * 1000))
            faulted.append(time.monotonic() + delay)
        else:
            timer = threading.Timer(delay, self._strike, (kind, victim, faulted))
        try:
            if timer is not None:
                timer.start()  # an interrupt may come before the step
            self.session.run(self.model.total, feeds, options=options)
        except RAISED[kind] as e:
            ended = time.monotonic()
            if type(e).__module__ not in ("builtins", "flowscope.errors"):
                raise AssertionError(f"{kind}: {type(e)} is none of flowscope.errors") from e
        else:
            raise AssertionError(f"{kind}: the step came to an end by itself")
        if timer is not None:
            timer.join()
        return ended - faulted[0]

    def _strike(self, kind: str, victim: Task, faulted: list[float]) -> None:
        """Does what the fault is, at its time, which is noted."""
        if kind == "stop":
            wait_until(lambda: bool(self.session._remote.steps))  # a stop ends what runs
        faulted.append(time.monotonic())
        strikes: dict[str, Callable[[], Any]] = {
            "stop": self.session.stop,
            "interrupt": lambda: os.kill(os.getpid(), signal.SIGINT),
            "cut": lambda: cut_connection(victim.address[1], self.draw),
            "hang": lambda: os.kill(victim.pid, signal.SIGSTOP),
            "kill": lambda: os.kill(victim.pid, signal.SIGKILL),
        }
        strikes[kind]()


def cut_connection(port: int, draw: random.Random) -> None:
    """Cuts one of this process' connections with a port."""
    found = [c for c in psutil.Process().net_connections("tcp") if c.raddr and c.raddr.port == port]
    with socket.socket(fileno=os.dup(draw.choice(found).fd)) as one:
        one.shutdown(socket.SHUT_RDWR)


def left(cluster: fs.cluster.Cluster) -> dict[str, int]:
    """Counts what this process and the workers have: own threads, handles, bytes held, steps."""
    me, tasks = psutil.Process(), cluster.tasks
    reports = [cluster.call(t.name, {"kind": "status"}) for t in tasks]
    processes = [psutil.Process(t.pid) for t in tasks]
    return {
        "threads here": own_threads(),
        "handles here": me.num_fds(),
        "open steps here": len(cluster.endpoint.open_steps()),
        "threads of workers": sum(p.num_threads() for p in processes),
        "handles of workers": sum(p.num_fds() for p in processes),
        "bytes held by workers": sum(r["held"] for r in reports),
        "steps running on workers": sum(r["running"] for r in reports),
        "MB of workers": sum(p.memory_info().rss for p in processes) >> 20,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Random faults of steps on a cluster.")
    parser.add_argument("count", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--kinds", nargs="+", choices=list(RAISED), default=list(RAISED))
    arguments = parser.parse_args()
    draw, done = random.Random(arguments.seed), Counter[str]()
    path = os.pathsep.join([str(ROOT / "engine"), os.environ.get("PYTHONPATH", "")])
    begin = time.monotonic()
    with local_cluster({"PYTHONPATH": path}, WORKERS) as dask, tempfile.TemporaryDirectory() as to:
        with fs.cluster.connect(dask) as cluster:
            faults = Faults(cluster, draw, to)
            for i in range(arguments.count):
                kind = draw.choice(arguments.kinds)
                faults.meet(kind)
                done[kind] += 1
                if i == min(50, arguments.count // 2):
                    before = left(cluster)
            after = left(cluster)
    print(f"{arguments.count} faults, seed {arguments.seed}, {time.monotonic() - begin:.0f} s")
    for kind, count in done.items():
        print(f"{count} x {kind}: steps ended within {faults.took[kind]:.3f} s")
    for what, number in after.items():
        print(f"{what}: {before[what]}, at the end {number}")


if __name__ == "__main__":
    main()
