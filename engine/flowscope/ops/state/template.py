"""Templates: functions whose variables are made at the first call and shared by all later ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.default import get_default_graph
from flowscope.graph.values.expected import expected
from flowscope.ops.state.variable_scope import VariableScope, variable_scope
from flowscope.ops.state.variables import GraphKeys, Variable

__all__ = ["Template", "make_template"]


class Template:
    """A function whose variables are made once: what `fs.make_template` returns.

    Args:
        name: Name of the variable scope, made unique.
        func: The function; it gets its variables by `fs.get_variable`.
        create_scope_now: Whether the scope is opened now, and not at the first call.
        unique_name: Name of the scope as it is; it takes the place of `name`.
        custom_getter: See `fs.variable_scope`.
        kwargs: Arguments that every call passes to `func`.
    """

    def __init__(
        self,
        name: str,
        func: Callable[..., Any],
        create_scope_now: bool,
        unique_name: str | None,
        custom_getter: Any,
        kwargs: dict[str, Any],
    ) -> None:
        if not callable(func):
            raise expected(f"a function for template {name!r}", repr(func))
        self._name, self._func, self._kwargs = name, func, kwargs
        self._unique_name, self._custom_getter = unique_name, custom_getter
        self._scope: VariableScope | None = None
        self._is_made = False
        if create_scope_now:
            with self._opened() as scope:
                self._scope = scope

    def _opened(self) -> Any:
        if self._scope is not None:
            return variable_scope(self._scope, reuse=self._is_made)
        return variable_scope(
            self._unique_name, default_name=self._name, custom_getter=self._custom_getter
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function in its variable scope.

        Raises:
            InvalidArgumentError: if a later call makes a variable.
        """
        with self._opened() as scope:
            self._scope = self._scope or scope
            trained = get_default_graph().get_collection_ref(GraphKeys.TRAINABLE_VARIABLES)
            before = len(trained)
            result = self._func(*args, **{**self._kwargs, **kwargs})
            if self._is_made and len(trained) > before:
                names = ", ".join(v.name for v in trained[before:])
                raise InvalidArgumentError(
                    f"template {self.name!r} made variables at a later call: {names}; "
                    "use fs.get_variable in place of fs.Variable"
                )
            self._is_made = True
        return result

    @property
    def name(self) -> str:
        """The name that was given."""
        return self._name

    @property
    def func(self) -> Callable[..., Any]:
        """The function."""
        return self._func

    @property
    def variable_scope(self) -> VariableScope | None:
        """The variable scope, None before the first call."""
        return self._scope

    @property
    def variable_scope_name(self) -> str | None:
        """Name of the variable scope with a "/" behind it, None before the first call."""
        return None if self._scope is None else f"{self._scope.name}/"

    @property
    def global_variables(self) -> list[Variable]:
        """The function's global variables."""
        return self._collected(GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self) -> list[Variable]:
        """The function's local variables."""
        return self._collected(GraphKeys.LOCAL_VARIABLES)

    @property
    def trainable_variables(self) -> list[Variable]:
        """The function's variables that are trained."""
        return self._collected(GraphKeys.TRAINABLE_VARIABLES)

    @property
    def variables(self) -> list[Variable]:
        """The function's global and local variables."""
        return self.global_variables + self.local_variables

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """The function's variables that are not trained."""
        trained = self.trainable_variables
        return [v for v in self.variables if v not in trained]

    def _collected(self, key: str) -> list[Variable]:
        return [] if self._scope is None else self._scope.get_collection(key)

    def __repr__(self) -> str:
        return f"<fs.Template {self._name!r} of {getattr(self._func, '__name__', self._func)}>"


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Any = None,
    **kwargs: Any,
) -> Template:
    """Returns `func_` as a function whose variables are made at its first call and then shared.

    Args:
        name_: Name of the variable scope, made unique.
        func_: A function that gets its variables by `fs.get_variable`.
        create_scope_now_: Whether the scope is opened now, and not at the first call.
        unique_name_: Name of the scope as it is: a second template of this name is an error.
        custom_getter_: See `fs.variable_scope`.
        **kwargs: Arguments that every call passes to `func_`.

    Raises:
        InvalidArgumentError: if `func_` is no function, or a later call makes a variable.
    """
    return Template(name_, func_, create_scope_now_, unique_name_, custom_getter_, dict(kwargs))
