"""Errors of steps on their way between processes: class, message, operation and the user's line.

What is told of an error is plain text and numbers, so that it arrives whatever its class is. Its
cause goes along as an object, too, with its own causes and the members of a group: where the other
side cannot make it - its module is not there, its class asks for more arguments, it holds a lock -
an `UnknownError` with its type and text stands for it. Objects are pickled: a client reads what
comes from workers of its own cluster.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from flowscope import errors
from flowscope.cluster.shipping.plans import at_user_of
from flowscope.cluster.shipping.sent_objects import LackError
from flowscope.errors import OpError, UnknownError, public_class, said
from flowscope.plan.ir.invocation import InvocationError
from flowscope.plan.ir.origins import named
from flowscope.plan.ir.program import Node
from flowscope.runtime.step.failures import located
from flowscope.runtime.step.split import DerivedError
from flowscope.runtime.threads.interrupt import HandlerError
from flowscope.runtime.waits.rendezvous import EndedWait

#: So many causes of causes are told.
_MOST_CAUSES = 20


class _Told(NamedTuple):
    """An exception as plain data.

    Attributes:
        name: The name of its type.
        text: What it says.
        notes: What was added to it.
        data: The exception, pickled; None if it cannot be.
        cause: What `__cause__` is, or `__context__` where that is not suppressed.
        is_cause: Whether that is its cause.
        members: Those of a group; None of what is no group.
    """

    name: str
    text: str
    notes: tuple[str, ...]
    data: bytes | None
    cause: tuple[Any, ...] | None
    is_cause: bool
    members: tuple[tuple[Any, ...], ...] | None


def told(error: BaseException, task: str, feeds: Sequence[str] = ()) -> OpError:
    """Returns an error of a step as it is told to the client.

    Args:
        error: What the step has raised.
        task: The task on which it did.
        feeds: The names of the step's feeds.
    """
    cause: BaseException | None
    if isinstance(error, HandlerError | EndedWait):  # they carry what has ended the step
        error = error.error
    if isinstance(error, InvocationError):
        found, cause = located(error, feeds)
    elif isinstance(error, OpError):
        found, cause = error, error.__cause__
    else:
        found, cause = UnknownError(f"{type(error).__name__}: {said(error)}"), error
    lacked = _module_not_found(cause)
    if lacked is not None and not isinstance(found, LackError):
        words = f"{found.message}\n  {_install(lacked)}"
        found = public_class(type(found))(words, **found.facts())
    if not found.device and not isinstance(error, DerivedError):
        found = found.located(device=task)
    found = found.as_public()
    found.__cause__ = cause
    return found


def answer(error: BaseException, task: str, feeds: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the answer to a run that has failed; `of_answer` reads it."""
    lacks = {"lacks": error.module} if isinstance(error, LackError) else {}
    told_error = told(error, task, feeds)
    return {"error": dumps(told_error), "derived": isinstance(error, DerivedError), **lacks}


def of_answer(answer: Mapping[str, Any], nodes: Iterable[Node]) -> OpError:
    """Returns the error that a task has answered, with the operation of the client's graph.

    Args:
        answer: The answer.
        nodes: The nodes of the client's plan.
    """
    nodes = list(nodes)
    error = loads(answer["error"], nodes)
    if "lacks" not in answer:
        return error
    found = at_user_of(answer["lacks"], error, nodes)
    found.__cause__ = error.__cause__
    return found


def dumps(error: OpError) -> bytes:
    """Returns an error as bytes."""
    cls = public_class(type(error)).__name__
    cause = None if error.__cause__ is None else _as_data(error.__cause__)
    notes = tuple(getattr(error, "__notes__", ()))
    return pickle.dumps((cls, error.message, error.facts(), notes, cause))


def loads(data: bytes, nodes: Iterable[Node]) -> OpError:
    """Returns the error that `dumps` has written, with the operation of the client's graph.

    Args:
        data: The bytes.
        nodes: The nodes of the client's plan.
    """
    cls, message, facts, notes, cause = pickle.loads(data)
    name = facts["op"]
    if name is not None:
        refs = [ref for n in nodes for ref in n.origins if ref.name == name]
        facts["op"] = named(name, refs)
    error: OpError = getattr(errors, cls)(message, **facts)
    for note in notes:
        error.add_note(note)
    error.__cause__ = None if cause is None else _of_data(_Told(*cause))
    return error


def _as_data(error: BaseException, depth: int = 0) -> tuple[Any, ...]:
    """Returns an exception as plain data, with its causes."""
    above = error.__cause__
    is_cause = above is not None
    if above is None and not error.__suppress_context__:
        above = error.__context__
    cause = None if above is None or depth == _MOST_CAUSES else _as_data(above, depth + 1)
    members = None
    if isinstance(error, BaseExceptionGroup):
        members = tuple([_as_data(e, depth) for e in error.exceptions])
    notes = tuple([str(n) for n in getattr(error, "__notes__", ())])
    text = said(error) if members is None else str(error.message)  # type: ignore[attr-defined]
    return tuple(
        _Told(type(error).__name__, text, notes, _pickled(error), cause, is_cause, members)
    )


def _pickled(error: BaseException) -> bytes | None:
    try:
        import cloudpickle  # servers of one process work without Dask
    except ImportError:
        return None
    with suppress(Exception):  # a class of the user's, or what it holds
        data: bytes = cloudpickle.dumps(error)
        return data
    return None


def _of_data(told: _Told) -> BaseException:
    """Returns an exception, or what stands for it."""
    error = _unpickled(told)
    if told.members is not None:
        members = [_of_data(_Told(*m)) for m in told.members]
        error = _with_members(error, told, members)
    if error is None:
        error = UnknownError(f"{told.name}: {told.text}")
    for note in told.notes:
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
    if told.cause is not None:
        cause = _of_data(_Told(*told.cause))
        if told.is_cause:
            error.__cause__ = cause
        else:
            error.__context__ = cause
    return error


def _unpickled(told: _Told) -> BaseException | None:
    if told.data is None:
        return None
    with suppress(Exception):  # its module is not here, or its class asks for more
        found = pickle.loads(told.data)
        # Some classes come without what they say, as Dask has exceptions pickled.
        if isinstance(found, BaseException) and (
            told.members is not None or said(found) == told.text
        ):
            return found
    return None


def _with_members(
    error: BaseException | None, told: _Told, members: list[BaseException]
) -> BaseException:
    """Returns a group with members, which have their causes."""
    if isinstance(error, BaseExceptionGroup):
        with suppress(Exception):  # `derive` is the user's
            return error.derive(members)
    is_plain = told.name in ("BaseExceptionGroup", "ExceptionGroup")
    return BaseExceptionGroup(told.text if is_plain else f"{told.name}: {told.text}", members)


def _module_not_found(error: BaseException | None) -> str | None:
    """Returns the module that an exception, or one of its causes, has not found."""
    for _ in range(_MOST_CAUSES):
        if error is None:
            return None
        if isinstance(error, ModuleNotFoundError) and error.name:
            return error.name
        error = error.__cause__ or error.__context__
    return None


def _install(module: str) -> str:
    return (
        f"the worker has no module {module!r}: install it there; a module of your own goes along "
        "where a function, or a module that goes along, imports it by name"
    )


__all__ = ["answer", "dumps", "loads", "of_answer", "told"]
