"""How the update groups of a client's steps have ended, where several processes write for them.

The client decides and remembers it. A step that has succeeded has written all. Of one that has
failed, a group is written as often as it has ended in the process that came furthest of those that
said so; if none could be asked, the first one that comes back decides
(`runtime.state.shared_updates` says why that is right). Only steps that have failed are kept.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from flowscope.cluster.transport.endpoint import Endpoint
from flowscope.errors import UnavailableError

#: The outcomes of so many steps that have failed are kept.
_MOST = 10_000


class _Groups:
    """The update groups of a step.

    Attributes:
        names: Their names, by the tasks that write for them.
        incarnations: Which life of these tasks takes part.
        written: How many of each are written, of those whose outcome is decided.
        askers: Who wants to know it.
        is_over: Whether the step has ended, and failed.
    """

    def __init__(
        self, names: Mapping[str, frozenset[str]], incarnations: Mapping[str, int]
    ) -> None:
        self.names, self.incarnations = names, incarnations
        self.written: dict[str, int] = {}
        self.askers: set[str] = set()
        self.is_over = False

    def decide(self, reports: Mapping[str, Mapping[str, int]]) -> None:
        """Decides what is not decided, and of which a task has said how far it came."""
        found: dict[str, int] = {}
        for task, counts in reports.items():
            for group in self.names.get(task, frozenset()) - self.written.keys():
                found[group] = max(counts.get(group, 0), found.get(group, 0))
        self.written |= found


class Outcomes:
    """What a client knows of its steps' update groups.

    Args:
        endpoint: Its end of the connections.
        uid: The client's number.
    """

    def __init__(self, endpoint: Endpoint, uid: int) -> None:
        self._endpoint = endpoint
        self._uid = uid
        self._lock = threading.Lock()
        self._open: dict[int, _Groups] = {}
        #: All steps that have failed up to this one may be forgotten.
        self._forgotten = 0
        #: What tasks are to be told with the next message.
        self._news: dict[str, list[list[Any]]] = {}

    def begin(
        self, number: int, names: Mapping[str, frozenset[str]], incarnations: Mapping[str, int]
    ) -> None:
        """Notes that a step begins.

        Args:
            number: Its number.
            names: Its update groups, by the tasks that write for them.
            incarnations: Which life of these tasks takes part.
        """
        with self._lock:
            self._open[number] = _Groups(names, incarnations)

    def commit(self, number: int, tasks: Iterable[str], is_urgent: bool) -> None:
        """Notes that a step has succeeded: all is written.

        Args:
            number: Its number.
            tasks: The other tasks that write for its groups.
            is_urgent: Whether others may want the variables before this client's next message.
        """
        with self._lock:
            askers = self._open.pop(number).askers
            told = set(tasks) if is_urgent else askers
            for task in set(tasks) - told:
                self._news.setdefault(task, []).append([self._uid, number, None])
        self._tell(number, told, None)

    def decide(
        self, number: int, reports: Mapping[str, Mapping[str, int]], tasks: Iterable[str]
    ) -> dict[str, int]:
        """Returns how many of each group of a step that has failed are written; tells the tasks.

        Args:
            number: The step.
            reports: How many are known to be written, by the tasks that could be asked.
            tasks: The other tasks that write for its groups.
        """
        with self._lock:
            groups = self._open[number]
            groups.is_over = True
            groups.decide(reports)
            written = dict(groups.written)
            for task in tasks:
                self._news.setdefault(task, []).append([self._uid, number, written])
            self._drop_oldest()
        self._tell(number, tasks, written)
        return written

    def asked(self, task: str, message: Mapping[str, Any]) -> None:
        """Answers a task that asks for a step's outcome, now or when it is known."""
        number = message["step"]
        with self._lock:
            groups = self._open.get(number)
            if groups is not None and not groups.is_over:
                groups.askers.add(task)
                return
            if groups is not None:
                if groups.incarnations.get(task) == message["incarnation"]:
                    groups.decide({task: message["ended"]})
                written: dict[str, int] | None = dict(groups.written)
            else:
                written = None
            is_forgotten = groups is None and number <= self._forgotten
        self._tell(number, [task], written, is_forgotten)

    def news(self, task: str) -> dict[str, Any]:
        """The outcomes that the next message to a task is to tell, as items of its header."""
        if task not in self._news:
            return {}
        with self._lock:
            found = self._news.pop(task, None)
        return {} if found is None else {"settled": found}

    def flush(self) -> None:
        """Tells all tasks what they have not been told."""
        for task in list(self._news):
            if found := self.news(task):
                with suppress(UnavailableError):  # it asks, when it comes back
                    self._endpoint.tell(task, {"kind": "steps.settled", **found})

    def _tell(
        self,
        number: int,
        tasks: Iterable[str],
        written: Mapping[str, int] | None,
        is_forgotten: bool = False,
    ) -> None:
        message = {
            "kind": "step.agreed",
            "client": self._uid,
            "step": number,
            "ended": written,
            "is_forgotten": is_forgotten,
        }
        for task in tasks:
            with suppress(UnavailableError):  # it asks, when it comes back
                self._endpoint.tell(task, message)

    def _drop_oldest(self) -> None:
        over = [number for number, groups in self._open.items() if groups.is_over]
        for number in sorted(over)[: max(0, len(over) - _MOST)]:
            del self._open[number]
            self._forgotten = max(self._forgotten, number)


__all__ = ["Outcomes"]
