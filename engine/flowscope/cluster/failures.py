"""Errors of steps on their way between processes: class, message, operation and the user's line.

The bytes are pickled: a client reads what comes from workers of its own cluster.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence

from flowscope.errors import OpError, UnknownError
from flowscope.plan.invocation import InvocationError
from flowscope.plan.origins import named
from flowscope.plan.program import Node
from flowscope.runtime.failures import located
from flowscope.runtime.split import DerivedError


def told(error: BaseException, task: str, feeds: Sequence[str] = ()) -> OpError:
    """Returns an error of a step as it is told to the client.

    Args:
        error: What the step has raised.
        task: The task on which it did.
        feeds: The names of the step's feeds.
    """
    cause: BaseException | None
    if isinstance(error, InvocationError):
        found, cause = located(error, feeds)
    elif isinstance(error, OpError):
        found, cause = error, error.__cause__
    else:
        found, cause = UnknownError(f"{type(error).__name__}: {error}"), error
    if not found.device and not isinstance(found, DerivedError):
        found = found.located(device=task)
    found.__cause__ = cause
    return found


def dumps(error: OpError) -> bytes:
    """Returns an error as bytes; a cause that cannot be pickled stays behind."""
    try:
        return pickle.dumps((error, error.__cause__))
    except Exception:  # a class of the user's, or what it holds
        cause = error.__cause__
        words = None if cause is None else UnknownError(f"{type(cause).__name__}: {cause}")
        return pickle.dumps((error, words))


def loads(data: bytes, nodes: Iterable[Node]) -> OpError:
    """Returns the error that `dumps` has written, with the operation of the client's graph.

    Args:
        data: The bytes.
        nodes: The nodes of the client's plan.
    """
    error: OpError
    error, cause = pickle.loads(data)
    if error.op_name is not None:
        refs = [ref for n in nodes for ref in n.origins if ref.name == error.op_name]
        op = named(error.op_name, refs)
        error = type(error)(error.message, **{**error._facts(), "op": op})
    error.__cause__ = cause
    return error


__all__ = ["dumps", "loads", "told"]
