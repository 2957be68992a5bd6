"""What op functions have in common, declared in one line: tensors, name scope, `name`.

    @op_function("chol rhs=chol", scope="cholesky_solve")
    def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
        \"""Returns the solutions x of A @ x = rhs, where chol @ adjoint(chol) = A.\"""
        return matrix_triangular_solve(chol, matrix_triangular_solve(chol, rhs), adjoint=True)

The function's body gets tensors, in the name scope. The signature stays that of the function, and
its docstring gets the line on `name`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.operation import Tensor

F = TypeVar("F", bound=Callable[..., Any])

_NAME = {False: "Name of the operation.", True: "Name scope of the operations."}


class _Argument(NamedTuple):
    """An argument that becomes a tensor."""

    place: int
    name: str
    #: Name of the argument whose dtype it has, if there is one, or that a Python value takes on.
    like: str | None
    #: Whether a tensor keeps its own dtype, for the op's shape rule to say what is wrong.
    keeps: bool
    #: Dtype of a value that leaves the choice open.
    hint: str | None


def op_function(tensors: str, scope: str | None = None) -> Callable[[F], F]:
    """Declares an op function.

    Args:
        tensors: The arguments that become tensors, in this order; None stays None. "x=y": x has the
            dtype of y, which a Python value takes on. "x~y": likewise, but a tensor keeps its own.
            "x:int32": a Python value that leaves the choice open becomes int32.
        scope: Default name of the scope in which the body adds its operations, in the graph of the
            first tensor; without one the body gives `name` to its operation.
    """

    def declare(function: F) -> F:
        code = function.__code__
        parameters = code.co_varnames[: code.co_argcount]
        arguments = [_argument(word, parameters) for word in tensors.split()]
        name_at = parameters.index("name")

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = list(args)
            tensors = _converted(arguments, given, kwargs)
            if scope is None or not tensors:  # without tensors the call itself says what is missing
                return function(*given, **kwargs)
            name = given[name_at] if name_at < len(given) else kwargs.get("name")
            with tensors[0].graph.name_scope(name or scope):
                return function(*given, **kwargs)

        call.__doc__ = _with_name(function.__doc__, parameters, _NAME[scope is not None])
        return call  # type: ignore[return-value]

    return declare


def named(call: F, function: str, doc: str) -> F:
    """Returns the function that one of a family of op functions is made of, with name and help."""
    call.__name__ = call.__qualname__ = function
    call.__doc__ = doc
    return call


def bound(
    function: Callable[..., Any], signature: inspect.Signature, args: Any, kwargs: Any
) -> inspect.BoundArguments:
    """Returns a call's arguments by name, with defaults; raises Python's own error if they do not
    fit the function.
    """
    try:
        given = signature.bind(*args, **kwargs)
    except TypeError:
        function(*args, **kwargs)  # raises it with the function's name
        raise
    given.apply_defaults()
    return given


def _argument(word: str, parameters: tuple[str, ...]) -> _Argument:
    name, _, hint = word.partition(":")
    keeps = "~" in name
    name, _, like = name.partition("~" if keeps else "=")
    return _Argument(parameters.index(name), name, like or None, keeps, hint or None)


def _converted(
    arguments: list[_Argument], given: list[Any], by_name: dict[str, Any]
) -> list[Tensor]:
    """Returns the tensors that arguments become, and puts them in the arguments' place."""
    found: dict[str, Tensor] = {}
    for place, name, like, keeps, hint in arguments:
        is_by_name = place >= len(given)
        value = by_name.get(name) if is_by_name else given[place]
        if value is None:
            continue
        if like is not None and not (keeps and isinstance(value, Tensor | Convertible)):
            value = convert_to_tensor(value, found[like].dtype)
        elif type(value) is not Tensor:
            value = convert_to_tensor(value, None, None, hint)
        found[name] = value
        if is_by_name:
            by_name[name] = value
        else:
            given[place] = value
    return list(found.values())


def _with_name(doc: str | None, parameters: tuple[str, ...], what: str) -> str | None:
    """Returns a docstring whose arguments have a line on `name`, where that parameter stands."""
    head, section, arguments = inspect.cleandoc(doc or "").partition("\nArgs:\n")
    if not section or "\n    name: " in arguments:
        return doc
    later = parameters[parameters.index("name") + 1 :]
    lines = arguments.split("\n")
    end = next((i for i, line in enumerate(lines) if not line.startswith("    ")), len(lines))
    words = [line[4:].partition(":")[0].partition(",")[0] for line in lines[:end]]
    place = next((i for i, word in enumerate(words) if word in later), end)
    lines.insert(place, f"    name: {what}")
    return head + section + "\n".join(lines)
