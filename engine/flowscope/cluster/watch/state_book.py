"""What a client's sessions have on tasks - variables, queues, tables - and what of it was lost.

A container makes a queue when it is first asked for. So a worker that was started again, or that
has dropped what a silent client had, would give a new and empty one, and say nothing. The client
knows better: it notes what its plans use on which task. When a task is lost, all of that is *in
question*. The next plan that uses some of it says so; the task refuses what is not there, before it
makes anything. What is there - the task had only been cut off, or another session has made it anew
in a named container - is in question no more.

A variable that was lost has a value again once it is written, and a table or an iterator is there
again once it is initialised or restored. A queue or a lock is made anew for a session that has
begun anew: a new one, or one that has restored a checkpoint or run the initializers of all its
global variables.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

from flowscope.cluster.watch.status import Kind
from flowscope.errors import FailedPreconditionError
from flowscope.ops.state.variable_ops import VarIsInitializedOp
from flowscope.plan.ir.program import Node
from flowscope.runtime.state.containers import Container

#: The session of what lies in a named container and whose session was closed.
_NOBODY = -1
_VARIABLE_LOST = (
    "attempting to use uninitialized value: {what} was lost with {task}: {why}. Restore a "
    "checkpoint (Saver.restore), or run its initializer"
)
_TABLE_LOST = (
    "{what} was lost with {task}, and all that it had: {why}. Restore a checkpoint "
    "(Saver.restore), or run fs.tables_initializer(), or begin anew with "
    "fs.global_variables_initializer() and fill it again"
)
_LOST = (
    "{what} was lost with {task}, and all that it had: {why}. It is made anew, and empty, for a "
    "session that begins anew: restore a checkpoint (Saver.restore), or run "
    "fs.global_variables_initializer(), or make a new session. Then fill it again; an iterator is "
    "there again once its initializer has run"
)


class StateKey(NamedTuple):
    """What a container knows state by.

    Attributes:
        container: The container's name; "" for the session's own.
        kind: The family of what it is, such as "queue".
        name: The name.
    """

    container: str
    kind: Kind
    name: str

    def __str__(self) -> str:
        return f'{self.kind} "{self.name}"'


class _Entry:
    """One thing that a session has on a task.

    Attributes:
        is_used: Whether a plan that uses it has arrived.
        why: Why it is in question; "" while it is not.
    """

    __slots__ = ("is_used", "why")

    def __init__(self) -> None:
        self.is_used = False
        self.why = ""


class Use:
    """What a plan uses on a task, while it is on its way there.

    Args:
        entries: By what is used.
        task: The task.
    """

    def __init__(self, entries: dict[StateKey, _Entry], task: str) -> None:
        self._entries = entries
        self._why = {key: entry.why for key, entry in entries.items()}
        #: What is in question.
        self._asked = [key for key, e in entries.items() if e.is_used and e.why]
        self._task = task

    def header(self) -> dict[str, Any]:
        """Items of the header of the message that brings the plan."""
        asked = [[*key, lost_text(key, self._task, self._why[key])] for key in self._asked]
        return {"had": asked} if asked else {}

    def arrived(self, answer: dict[str, Any]) -> None:
        """Notes that the plan has arrived; the answer says what of that in question is there."""
        gone = {self._asked[i] for i in answer.get("gone", ())}
        for key, entry in self._entries.items():
            entry.is_used = True
            if key not in gone and entry.why is self._why[key]:
                entry.why = ""


class StateBook:
    """What the sessions of one client have on tasks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: dict[str, dict[tuple[int, StateKey], _Entry]] = {}

    def use(self, session: int, task: str, keys: Iterable[StateKey]) -> Use:
        """Notes that a plan is on its way to a task.

        Args:
            session: The session's number.
            task: The task.
            keys: What the plan uses there.
        """
        with self._lock:
            found = self._tasks.setdefault(task, {})
            return Use({k: found.setdefault((session, k), _Entry()) for k in keys}, task)

    def lose(self, task: str, why: str) -> None:
        """Notes that a task was lost: all that is there is in question."""
        with self._lock:
            for entry in self._tasks.get(task, {}).values():
                entry.why = why

    def refusal(self, session: int, task: str, key: StateKey) -> str:
        """The text of an error about state that is in question; "" where it is not."""
        entry = self._tasks.get(task, {}).get((session, key))
        return lost_text(key, task, entry.why) if entry and entry.is_used and entry.why else ""

    def in_question(self, task: str) -> list[tuple[int, StateKey]]:
        """The state in question on a task, each with its session's number."""
        with self._lock:
            found = self._tasks.get(task, {})
            return [key for key, entry in found.items() if entry.is_used and entry.why]

    def look(self, task: str, asked: Sequence[tuple[int, StateKey]], gone: Iterable[int]) -> None:
        """Notes what a task has said of what was in question.

        Args:
            task: The task.
            asked: What it was asked about.
            gone: The positions in it of what the task does not have.
        """
        is_gone = set(gone)
        with self._lock:
            found = self._tasks.get(task, {})
            for i, key in enumerate(asked):
                if key in found and i not in is_gone:
                    found[key].why = ""

    def begin_anew(self, session: int) -> None:
        """Notes that a session was restored or initialised: what it lost is made anew."""
        with self._lock:
            for found in self._tasks.values():
                for key in [k for k, e in found.items() if e.why and k[0] == session]:
                    if key[1].kind != "variable":
                        del found[key]

    def forget(self, session: int) -> None:
        """Forgets what a session had that was closed; named containers outlive it."""
        with self._lock:
            for found in self._tasks.values():
                for number, key in [k for k in found if k[0] == session]:
                    entry = found.pop((number, key))
                    if key.container:
                        found[_NOBODY, key] = entry


def lost_text(key: StateKey, task: str, why: str) -> str:
    """The text of an error about state that was lost with a task."""
    texts = {"variable": _VARIABLE_LOST, "table": _TABLE_LOST}
    return texts.get(key.kind, _LOST).format(what=f"the {key}", task=task, why=why)


def key_of(handle: Any) -> StateKey:
    """The key of a handle's state in its container."""
    return StateKey(handle.container, handle.family, handle.shared_name)


def keys_of(nodes: Iterable[Node]) -> list[StateKey]:
    """Returns the keys of the state that nodes use, blocks included.

    What only asks whether a variable has a value does not count, nor what makes state anew.
    """
    using = [n for n in nodes if not (isinstance(n.op, VarIsInitializedOp) or n.op.makes_anew)]
    used = [v.node for n in using for v in n.inputs]
    return list(dict.fromkeys(key_of(n.op) for n in used if n is not None and n.op.is_handle))


def check_there(
    container_of: Callable[[str], Container],
    handles: Iterable[Any],
    had: Sequence[Sequence[str]],
) -> tuple[dict[StateKey, str], list[int]]:
    """Looks, on a host, for what a client had there and that is in question.

    Args:
        container_of: Returns a container by its name.
        handles: The ops that make the handles of a plan.
        had: What is in question: containers, kinds, names, and what an error says of it.

    Returns:
        What errors say of variables that have no value, and the positions of these.

    Raises:
        FailedPreconditionError: if the plan uses queues or locks that are gone; none was made.
    """
    used = {key_of(handle) for handle in handles}
    refusals: dict[StateKey, str] = {}
    gone: list[int] = []
    lost: list[str] = []
    for i, (container, kind, name, text) in enumerate(had):
        found = StateKey(container, cast(Kind, kind), name)
        if found in used and not is_in(container_of(found.container), found):
            if found.kind == "variable":
                refusals[found] = text
                gone.append(i)
            else:
                lost.append(text)
    if lost:
        raise FailedPreconditionError("; ".join(lost))
    return refusals, gone


def gone_of(
    had: Iterable[tuple[int, Sequence[Any]]], container_of: Callable[[int, str], Container]
) -> list[int]:
    """Returns the positions of what a host does not have of what it is asked about.

    Args:
        had: Sessions' numbers, and what is asked about: a container, a kind and a name.
        container_of: Returns a session's container by its name.
    """
    keys = [(session, StateKey(*key)) for session, key in had]
    return [i for i, (s, key) in enumerate(keys) if not is_in(container_of(s, key.container), key)]


def is_in(container: Container, key: StateKey) -> bool:
    """Whether a container has a queue or a lock, or a variable that has a value."""
    if key.kind == "variable":
        variable = container.variables().get(key.name)
        return variable is not None and variable.is_initialized
    return container.has(key.kind, key.name)


__all__ = [
    "StateBook",
    "StateKey",
    "check_there",
    "gone_of",
    "is_in",
    "key_of",
    "keys_of",
    "lost_text",
]
