"""Nested work without nested calls: bodies in bodies to any depth, for all of Python's limits.

Work is a generator. Where it needs the result of other work, it yields that, and is sent the
result. `driven` keeps the works that wait for each other in a list.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

_Result = TypeVar("_Result")

#: Yields other work, is sent its results, and returns its own.
Work = Generator["Work[Any]", Any, _Result]


def driven(work: Work[_Result]) -> _Result:
    """The result of a work; its error, or that of a nested one, is raised."""
    waiting: list[Work[Any]] = [work]
    value: Any = None
    error: BaseException | None = None
    try:
        while waiting:
            top = waiting[-1]
            try:
                waiting.append(top.send(value) if error is None else top.throw(error))
                value = error = None
            except StopIteration as end:
                waiting.pop()
                value, error = end.value, None
            except BaseException as e:
                waiting.pop()
                value, error = None, e
    finally:
        for work_left in reversed(waiting):
            work_left.close()
    if error is not None:
        raise error
    return value  # type: ignore[no-any-return]


__all__ = ["Work", "driven"]
