"""Questions and answers: each is declared once, and Python and TypeScript follow from that.

A question is a frozen dataclass and a `Question`; its answer is one and an `Answer` to it. From
these the bus knows what it may be asked, the JSON form is read and written, and the front end gets
its types and its table (`flowscope.live.protocol.typescript`). A module of `flowscope.live.answers`
answers it: see `flowscope.live.answers.asking`.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from inspect import getsourcelines
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

#: The answer's class by the question's.
_answers: dict[type[Question], type[Answer]] = {}


class Question:
    """What a view asks; one message answers it.

    Args:
        recorded: Whether a recording can answer it: nothing need run for that.
    """

    if TYPE_CHECKING:

        @property
        def view(self) -> int:
            """The view that asks."""

        @property
        def request_id(self) -> int:
            """The number that the answer bears."""

        @property
        def kind(self) -> str:
            """The name of the class in messages."""

    #: As above.
    recorded = False

    def __init_subclass__(cls, *, recorded: bool = False, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.recorded = recorded


class Answer:
    """The answer to a question.

    Args:
        to: The question's class.
    """

    if TYPE_CHECKING:

        @property
        def view(self) -> int:
            """The view that it is for."""

        @property
        def request_id(self) -> int:
            """The question's number."""

        @property
        def kind(self) -> str:
            """The name of the class in messages."""

    def __init_subclass__(cls, *, to: type[Question], **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        _answers[to] = cls


def answer_types() -> dict[type[Question], type[Answer]]:
    """The classes of all answers by those of their questions, in the order of their kinds."""
    message_types()
    return dict(sorted(_answers.items(), key=lambda pair: str(pair[0].kind)))


@cache
def message_types() -> tuple[type, ...]:
    """The classes of messages and of their parts, in the order of their modules and lines."""
    package = __name__.rpartition(".")[0]
    names = [m.name for m in iter_modules(import_module(package).__path__)]
    modules = [import_module(f"{package}.{n}") for n in names if n.endswith("schema")]
    found = {c for m in modules for c in vars(m).values() if isinstance(c, type)}
    told = [c for c in found if is_dataclass(c)]
    return tuple(sorted(told, key=lambda c: (c.__module__, getsourcelines(c)[1])))


__all__ = ["Answer", "Question", "answer_types", "message_types"]
