"""Calls at which something happens: a process is killed, or the call raises as if one had gone."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest


class Strike:
    """Makes something happen at one call of a function, once or each time.

    Args:
        patch: Undoes it at the end of the test.
        owner: The class that has the function.
        name: Its name.
        does: What happens; it takes what calls the function itself, and gives the call's result.
        call: At which call it happens, from 0.
        again: Whether it happens at all later calls, too.

    Attributes:
        struck: How often it has happened.
    """

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        owner: Any,
        name: str,
        does: Callable[[Callable[[], Any]], Any],
        call: int = 0,
        again: bool = False,
    ) -> None:
        self.struck = self._calls = 0
        function = getattr(owner, name)

        def called(*arguments: Any, **options: Any) -> Any:
            number, self._calls = self._calls, self._calls + 1
            if number == call or (again and number > call):
                self.struck += 1
                return does(lambda: function(*arguments, **options))
            return function(*arguments, **options)

        is_static = isinstance(inspect.getattr_static(owner, name), staticmethod)
        patch.setattr(owner, name, staticmethod(called) if is_static else called)


def raises(error: BaseException) -> Callable[[Callable[[], Any]], Any]:
    """What raises an error in the place of a call."""

    def does(call: Callable[[], Any]) -> Any:
        raise error

    return does


def after(first: Callable[[], Any]) -> Callable[[Callable[[], Any]], Any]:
    """What does something, and then the call."""

    def does(call: Callable[[], Any]) -> Any:
        first()
        return call()

    return does


def before(last: Callable[[], Any]) -> Callable[[Callable[[], Any]], Any]:
    """What does the call, and then something."""

    def does(call: Callable[[], Any]) -> Any:
        found = call()
        last()
        return found

    return does
