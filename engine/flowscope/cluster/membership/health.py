"""Health: whether tasks answer; of one that does not, whether it hangs or computes.

Each task is told "ping" four times a second, and connections with it that nobody reads are looked
at. One that is silent for a second is looked at from outside, by the operating system of its
machine: a process that is stopped hangs, and so does one that sleeps; one that uses its processor
is busy, for a kernel may hold the interpreter.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Literal

from flowscope.errors import OpError, UnavailableError
from flowscope.runtime.waits.rendezvous import Waiter
from flowscope.runtime.waits.waiting import ENDS_S, join, wait_for

if TYPE_CHECKING:
    from flowscope.cluster.client.membership import Cluster
    from flowscope.cluster.membership.tasks import Task

#: How a task that was not lost is.
Health = Literal["ok", "busy", "hung"]

#: So often tasks are told "ping".
PING_S = 0.25
#: After so long a silence the operating system is asked.
SILENCE_S = 1.0
#: A machine that does not say how a process is within that counts as not answering.
_ASK_S = 2.0
#: So often, and so many times, a process is looked at.
_LOOK_S = 0.02
_LOOKS = 8
#: A process that has used so much of that time computes.
_USED_S = 0.01


class Heartbeat:
    """Follows the health of a cluster's tasks, on a thread.

    Args:
        cluster: The cluster.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._heard: dict[str, float] = {}
        self._states: dict[str, tuple[Health, str]] = {}
        self._asking: set[str] = set()
        self._is_closed = False
        self._waiter = Waiter()
        self._thread = threading.Thread(target=self._beat, name="cluster heartbeat", daemon=True)
        cluster.handlers["pong"] = self._pong

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        self._is_closed = True
        self._waiter.wake()
        join(self._thread, ENDS_S)

    def health(self, task: str) -> tuple[Health, str]:
        """Returns how a task is, and why it is not well."""
        return self._states.get(task, ("ok", ""))

    def silent_s(self, task: str) -> float:
        """Returns for how many seconds nothing has come from a task."""
        return time.monotonic() - self._heard.get(task, time.monotonic())

    def hear(self, task: str) -> None:
        """Notes that something has come from a task."""
        self._heard[task] = time.monotonic()
        self._states.pop(task, None)

    def _pong(self, peer: str, message: dict[str, Any]) -> None:
        self.hear(peer)

    def _beat(self) -> None:
        last = time.monotonic()
        while not self._is_to_end():
            now = time.monotonic()
            if now - last > SILENCE_S / 2:  # this process was held up: the others may be well
                self._heard = dict.fromkeys(self._heard, now)
            last = now
            for task in self._cluster.tasks:
                try:
                    news = self._cluster.outcomes.news(task.name)
                    self._cluster.endpoint.tell(task.name, {"kind": "ping", **news})
                except UnavailableError:  # `on_lost` tells of it
                    continue
                self._cluster.endpoint.look_at(task.name)
                if now - self._heard.setdefault(task.name, now) > SILENCE_S:
                    self._ask(task)

    def _is_to_end(self) -> bool:
        """Waits until the next beat is due; returns whether there is to be none."""
        return wait_for(
            lambda: self._is_closed,
            self._waiter,
            what="for the next beat",
            until=time.monotonic() + PING_S,
            owned_by=None,
            look_s=PING_S,
        )

    def _ask(self, task: Task) -> None:
        if task.name not in self._asking:
            self._asking.add(task.name)
            name = f"health of {task.name}"
            threading.Thread(target=self._judge, args=(task,), name=name, daemon=True).start()

    def _judge(self, task: Task) -> None:
        """Asks how a silent task's process is, and notes what follows."""
        try:
            asked = time.monotonic()
            state, reason = self._look(task)
            if self._heard.get(task.name, asked) > asked:  # it has answered meanwhile
                return
            if state == "lost":
                self._cluster.lose(task.name, task.incarnation, reason)
                return
            was, _ = self.health(task.name)
            self._states[task.name] = state, reason
            if state == "hung" and was != "hung":
                self._cluster.tell_lost(task.name, reason)
        finally:
            self._asking.discard(task.name)

    def _look(self, task: Task) -> tuple[Any, str]:
        silent = f"it has not answered for {self.silent_s(task.name):.1f} s"
        found = look(task.pid, task.started)
        if found == "gone":  # not on this machine
            try:
                found = self._cluster.dask.ask_beside(
                    task.dask_address, look, task.pid, task.started, timeout_s=_ASK_S
                )
            except (OpError, OSError) as e:
                return "hung", f"{silent}, and nobody on its machine says how it is ({e})"
        match found:
            case "busy":
                return "busy", f"{silent}, and computes: a kernel may hold the interpreter"
            case "stopped":
                return "hung", f"{silent}: its process is stopped (SIGSTOP)"
            case "gone":
                return "lost", f"{silent}: its process has ended"
        return "hung", f"{silent}, and its process does nothing"


def look(pid: int, started: float) -> str:
    """Returns how a process of this machine is: "busy", "idle", "stopped" or "gone".

    Args:
        pid: Its number.
        started: When it was started: another one may have its number.
    """
    import psutil  # Dask brings it

    try:
        process = psutil.Process(pid)
        if abs(process.create_time() - started) > 1.0:
            return "gone"
        before = sum(process.cpu_times()[:2])
        for _ in range(_LOOKS):
            status = process.status()
            if status in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP):
                return "stopped"
            if status in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                return "gone"
            if sum(process.cpu_times()[:2]) - before >= _USED_S:
                return "busy"
            time.sleep(_LOOK_S)
    except psutil.NoSuchProcess:
        return "gone"
    return "busy" if status == psutil.STATUS_RUNNING else "idle"


__all__ = ["PING_S", "SILENCE_S", "Health", "Heartbeat", "look"]
