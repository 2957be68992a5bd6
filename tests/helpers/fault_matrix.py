"""Has all that clients of a real cluster do meet each kind of fault, and looks at what is left.

    python tests/helpers/fault_matrix.py 50 --seed 7

A fault is a kill, a freeze, a freeze that thaws early, a silent cut (a proxy swallows the bytes) or
a slow link; it strikes a client, a worker, its nanny or the scheduler, in a step, a loop, an
update, a save, a restore, while a plan is shipped or a client connects. What dies ends what runs
on it within two seconds, what stands still or is cut off within the heartbeat's second and two
more, by an error of a class that says so; what thaws earlier, or does not matter, goes on. Then
groups of variables are whole, and the next step is right, after a restore where values were lost.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    _HERE = Path(__file__).resolve().parent
    sys.path[:0] = [str(_HERE.parents[1] / "engine"), str(_HERE)]

import psutil
from local_clusters import wait_until

import flowscope as fs
from flowscope import errors
from flowscope.cluster.membership.tasks import Task, task_name
from flowscope.runtime.session.engine import Engine

ROOT = Path(__file__).resolve().parents[2]
WORKERS = 3
#: After that a silent worker is asked about, and a silent client is given up, in seconds.
SILENCE_S = 1.0
#: What dies ends steps within that, and what is silent so much later.
ENDS_S = 2.0
#: So long something stands still that is to go on, and a link is slow.
SHORT_S = 0.3
#: Before a fault comes, in seconds at most.
SOON_S = 0.1
LOST = (errors.UnavailableError, errors.AbortedError, errors.FailedPreconditionError)
#: Who connects may also be late, or find no worker of a name.
LATE = (*LOST, errors.DeadlineExceededError, errors.InvalidArgumentError)

MOMENTS = ("step", "loop", "update", "save", "restore", "ship", "connect")
#: Faults by their victims, and whether what meets one goes on. None: either is right.
FAULTS: dict[tuple[str, str], bool | None] = {
    ("kill", "worker"): False,
    ("freeze", "worker"): False,
    ("thaw", "worker"): True,
    ("cut", "worker"): False,
    ("slow", "worker"): True,
    ("kill", "nanny"): None,
    ("thaw", "nanny"): True,
    ("thaw", "scheduler"): True,
    ("kill", "client"): False,
    ("freeze", "client"): False,
    ("thaw", "client"): True,
}


class Proxy:
    """Leads to an address; can swallow all bytes, or let them wait."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.mode = "pass"
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self._rest = threading.Event()
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def heal(self) -> None:
        """Passes bytes on again; connections that have lost some end, as on a network."""
        for one in list(self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self.mode = "pass"

    def close(self) -> None:
        """Ends all that it leads, and its threads."""
        self.heal()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for one in [self._listener, *self._sockets]:
            one.close()

    def _start(self, function: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self._sockets.append(near)
                try:
                    far = socket.create_connection(self._target)
                except OSError:
                    near.shutdown(socket.SHUT_RDWR)
                    continue
                self._sockets.append(far)
                for pair in ((near, far), (far, near)):
                    self._start(self._forward, *pair)

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if self.mode == "slow":
                    self._rest.wait(0.02)
                if self.mode != "swallow":
                    target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


class Processes:
    """A scheduler, and workers with a nanny each, as processes of their own."""

    def __init__(self, folder: str) -> None:
        self._file = str(Path(folder) / "scheduler.json")
        path = os.pathsep.join([str(ROOT / "engine"), os.environ.get("PYTHONPATH", "")])
        self._env = {
            **os.environ,
            "PYTHONPATH": path,
            "DASK_FLOWSCOPE__CLIENT_SILENCE": str(SILENCE_S),
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1000",
        }
        #: Nannies that have ended: their workers may be there yet.
        self._ended: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0")
        wait_until(lambda: Path(self._file).exists())
        self.nannies = {i: self._worker(i) for i in range(WORKERS)}

    @property
    def file(self) -> str:
        """Where the scheduler has written its address."""
        return self._file

    def _start(self, role: str, *arguments: str) -> subprocess.Popen[bytes]:
        line = [
            sys.executable,
            "-m",
            "dask",
            role,
            "--scheduler-file",
            self._file,
            "--no-dashboard",
        ]
        return subprocess.Popen(
            [*line, *arguments], env=self._env, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def _worker(self, number: int) -> subprocess.Popen[bytes]:
        return self._start("worker", "--nthreads", "1", "--name", str(number))

    def start_again(self) -> None:
        """Starts the nannies that have ended."""
        for number, nanny in self.nannies.items():
            if nanny.poll() is not None:
                self._ended.append(nanny)
                self.nannies[number] = self._worker(number)

    def client(self, session: str) -> subprocess.Popen[bytes]:
        """Starts a client that counts up all variables, again and again."""
        line = [sys.executable, __file__, "--count-up", self._file, "--session", session]
        return subprocess.Popen(line, env=self._env, stdout=subprocess.PIPE)

    def close(self) -> None:
        """Ends all of them."""
        for one in [*self.nannies.values(), *self._ended, self.scheduler]:
            for child in [*children(one.pid), one.pid]:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            one.wait()


def children(pid: int) -> list[int]:
    """Returns the processes that a process has started."""
    with suppress(psutil.NoSuchProcess):
        return [p.pid for p in psutil.Process(pid).children(recursive=True)]
    return []


class Model:
    """Variables on all workers, which are counted up together."""

    def __init__(self) -> None:
        self.graph = fs.Graph()
        with self.graph.as_default(), fs.container("matrix"):
            self.counts = []
            for worker in range(WORKERS):
                with fs.device(task_name("worker", worker)):
                    self.counts.append(fs.Variable(0.0, name=f"count_{worker}", dtype=fs.float64))
            self.update = fs.group(*[count.assign_add(1.0) for count in self.counts])
            self.trips = fs.placeholder(fs.int32, [])
            self.loop = fs.while_loop(
                lambda i, _: i < self.trips, self._body, [0, fs.constant(0.0, fs.float64)]
            )[1]
            self.x = fs.placeholder(fs.float64, [])
            self.step = self._body(self.trips, self.x)[1]
            self._parts = [self._body(self.trips, self.x * float(i))[1] for i in range(16)]
            self.initializer = fs.global_variables_initializer()
            self.saver = fs.train.Saver(max_to_keep=2)

    @staticmethod
    def _body(i: Any, total: Any) -> tuple[Any, Any]:
        for worker in range(WORKERS):
            with fs.device(task_name("worker", worker)):
                total = total + 1.0
        return i + 1, total

    def shipped(self) -> Any:
        """Returns fetches on all workers of which hardly ever a plan is there."""
        return random.sample(self._parts, random.randrange(1, len(self._parts)))


class Matrix:
    """One client of the processes, and what it does while they meet faults."""

    def __init__(self, processes: Processes, draw: random.Random, folder: str) -> None:
        self.processes, self.draw, self.folder = processes, draw, folder
        self.proxies: dict[tuple[str, int], Proxy] = {}
        self.model = Model()
        self.took: dict[str, float] = {}
        with self._led_by_proxies():
            self.cluster = fs.cluster.connect(scheduler_file(processes.file))
        wait_until(self.is_whole)
        self.session = fs.Session(self.cluster, self.model.graph)
        self.session.run(self.model.initializer)
        self.path = self._save()

    @contextmanager
    def _led_by_proxies(self) -> Iterator[None]:
        """Has this process, and whom it tells of workers, reach these through proxies."""
        ways = Task.ways

        def led(task: Task, transport: Any) -> Any:
            (host, port), instead = ways(task, transport)
            if (task.name, port) not in self.proxies:
                self.proxies[task.name, port] = Proxy((host, port))
            return self.proxies[task.name, port].address, instead

        Task.ways = led  # type: ignore[method-assign]
        self._undo = lambda: setattr(Task, "ways", ways)
        yield

    def close(self) -> None:
        self.session.close()
        self.cluster.close()
        self._undo()
        for proxy in self.proxies.values():
            proxy.close()

    def is_whole(self) -> bool:
        """Whether all workers are there and well."""
        tasks = self.cluster.tasks
        return len(tasks) == WORKERS and all(self.cluster.health(t.name)[0] == "ok" for t in tasks)

    def _save(self) -> str:
        return self.model.saver.save(
            self.session, Path(self.folder) / "model", write_meta_graph=False
        )

    # -- what meets a fault -----------------------------------------------------------------------

    def act(self, moment: str) -> None:
        """Does something that a fault may strike."""
        sess, model = self.session, self.model
        match moment:
            case "step":
                assert sess.run(model.step, {model.trips: 0, model.x: 1.0}) == 1.0 + WORKERS
            case "loop":
                assert sess.run(model.loop, {model.trips: 50}) == 50 * WORKERS
            case "update":
                sess.run(model.update)
            case "save":
                self.path = self._save()
            case "restore":
                model.saver.restore(sess, self.path)
            case "ship":
                sess.run(model.shipped(), {model.trips: 0, model.x: 1.0})
            case "connect":
                address = scheduler_file(self.processes.file)
                with Engine().as_default(), fs.cluster.connect(address, timeout_s=10) as other:
                    with fs.Session(other, model.graph) as own:
                        own.run(model.counts)

    def meet(self, fault: str, victim: str, moment: str) -> None:
        """Has a moment meet a fault, and looks at what is left.

        Raises:
            AssertionError: if anything is not as the module says.
        """
        if victim == "client":
            self._meet_of_client(fault)
            return
        goes_on = FAULTS[fault, victim]
        task = self.draw.choice(self.cluster.tasks)
        heal: list[Callable[[], Any]] = []
        struck: list[float] = []
        timer = threading.Timer(
            self.draw.random() * SOON_S, self._strike, (fault, victim, task, struck, heal)
        )
        timer.start()
        limit = ENDS_S + (SILENCE_S if fault in ("freeze", "cut") else 0.0)
        error, is_over = None, False
        while error is None and not is_over:
            is_over = bool(struck) and time.monotonic() > struck[0] + limit
            try:
                self.act(moment)
            except LATE as e:
                error = e
        ended = time.monotonic()
        timer.join()
        for each in heal:
            each()
        where = f"{fault} of {victim} in {moment}"
        assert moment == "connect" or error is None or isinstance(error, LOST), f"{where}: {error}"
        if goes_on:
            assert error is None, f"{where}: {error!r}"
        elif goes_on is False and moment != "connect":
            assert error is not None, f"{where}: nothing has ended"
            assert ended < struck[0] + limit, f"{where}: it ended after {ended - struck[0]:.2f} s"
            self.took[fault] = max(self.took.get(fault, 0.0), ended - struck[0])
        self._recover(where, task.name if fault == "kill" else None)

    def _strike(
        self, fault: str, victim: str, task: Task, struck: list[float], heal: list[Any]
    ) -> None:
        nanny = self.processes.nannies[int(task.worker)]
        pids = {"worker": task.pid, "nanny": nanny.pid, "scheduler": self.processes.scheduler.pid}
        pid = pids[victim]
        proxies = [p for (name, _), p in self.proxies.items() if name == task.name]
        struck.append(time.monotonic())
        if fault == "kill":
            os.kill(pid, signal.SIGKILL)
        elif fault in ("cut", "slow"):
            set_mode(proxies, {"cut": "swallow", "slow": "slow"}[fault])
            if fault == "slow":
                threading.Event().wait(SHORT_S)
                set_mode(proxies, "pass")
            else:
                heal.extend(proxy.heal for proxy in proxies)
        else:
            os.kill(pid, signal.SIGSTOP)
            if fault == "thaw":
                threading.Event().wait(SHORT_S)
                os.kill(pid, signal.SIGCONT)
            else:
                heal.append(lambda: os.kill(pid, signal.SIGCONT))

    def _meet_of_client(self, fault: str) -> None:
        """Has a client of its own process, which counts up, meet a fault."""
        client = self.processes.client("own")
        assert client.stdout is not None
        try:
            client.stdout.readline()  # it counts
            time_of = time.monotonic()
            os.kill(client.pid, signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
            limit = ENDS_S + (0.0 if fault == "kill" else SILENCE_S)
            if fault == "thaw":
                threading.Event().wait(SHORT_S)
                os.kill(client.pid, signal.SIGCONT)
                assert client.stdout.readline() and client.stdout.readline(), "it has not gone on"
                client.kill()
            else:
                wait_until(lambda: self._running() == 0, limit)
                self.took[f"{fault} of client"] = time.monotonic() - time_of
        finally:
            with suppress(ProcessLookupError):
                client.kill()
            client.wait()
            client.stdout.close()
        wait_until(lambda: self._running() == 0, ENDS_S + SILENCE_S)
        self._recover(f"{fault} of client", None)

    def _running(self) -> int:
        tasks = [t.name for t in self.cluster.tasks]
        return sum(self.cluster.call(name, {"kind": "status"})["running"] for name in tasks)

    # -- what is left -----------------------------------------------------------------------------

    def _recover(self, where: str, dead: str | None) -> None:
        """Looks whether groups are whole, restores what was lost, and looks at the next step."""
        self.processes.start_again()
        try:
            wait_until(self.is_whole)
        except AssertionError:
            health = {t.name: self.cluster.health(t.name) for t in self.cluster.tasks}
            raise AssertionError(f"{where}: {health}, {self.cluster.lost_tasks}") from None
        alive = [c for i, c in enumerate(self.model.counts) if task_name("worker", i) != dead]
        refused, values = "", set[float]()
        try:
            values = {float(v) for v in self.session.run(alive)}
            self.session.run(self.model.counts)
        except LOST as e:
            refused = e.message
        assert len(values) <= 1, f"{where}: a group is half written: {values}"
        if refused:
            assert "Saver.restore" in refused or "restore the" in refused, f"{where}: {refused}"
            self.model.saver.restore(self.session, self.path)
        before = self.session.run(self.model.counts)
        assert len(set(before)) == 1, f"{where}: {before}"
        self.session.run(self.model.update)
        assert self.session.run(self.model.counts) == [b + 1 for b in before], where
        self.act("step")
        self.act("loop")


def set_mode(proxies: list[Proxy], mode: str) -> None:
    """Has proxies pass bytes on, swallow them, or let them wait."""
    for one in proxies:
        one.mode = mode


def scheduler_file(path: str) -> str:
    """Returns the scheduler's address that a file tells."""
    import json

    return str(json.loads(Path(path).read_text())["address"])


def count_up(path: str) -> None:
    """Counts up all variables, again and again, and says so."""
    model = Model()
    with fs.cluster.connect(scheduler_file(path)) as cluster:
        with fs.Session(cluster, model.graph) as sess:
            while True:
                sess.run(model.update)
                print("counted", flush=True)


def check(count: int, seed: int, until: float = math.inf) -> tuple[Counter[str], dict[str, float]]:
    """Has so many moments meet faults; returns how often which, and how long the longest took.

    Args:
        count, seed: How many, and what they follow from.
        until: No fault begins after this time, by the monotonic clock.

    Raises:
        AssertionError: if anything is not as the module says.
    """
    draw, done = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        processes = Processes(folder)
        matrix = None
        try:
            matrix = Matrix(processes, draw, folder)
            while done.total() < count and time.monotonic() < until:
                fault, victim = draw.choice(list(FAULTS))
                moment = draw.choice(MOMENTS)
                try:
                    matrix.meet(fault, victim, moment)
                except BaseException as e:
                    e.add_note(f"fault {done.total()} of seed {seed}: {fault} {victim} {moment}")
                    raise
                done[f"{fault} {victim}"] += 1
            return done, matrix.took
        finally:
            if matrix is not None:
                matrix.close()
            processes.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=math.inf, help="no longer than that")
    parser.add_argument("--count-up", default="")
    parser.add_argument("--session", default="")
    arguments = parser.parse_args()
    if arguments.count_up:
        count_up(arguments.count_up)
        return
    begin = time.monotonic()
    done, took = check(arguments.count, arguments.seed, begin + arguments.seconds)
    print(f"{done.total()} faults, seed {arguments.seed}, {time.monotonic() - begin:.0f} s")
    print(", ".join(f"{n} x {what}" for what, n in sorted(done.items())))
    print(", ".join(f"{what}: within {s:.2f} s" for what, s in sorted(took.items())))


if __name__ == "__main__":
    main()
