"""`frozen` and `mutable`: make a dataclass of a class when it is first used.

To generate the methods of one dataclass takes half a millisecond and more, for `dataclasses` writes
source and compiles it. There are hundreds of ops, and a program uses a few dozen. So these only
put a placeholder where each generated attribute will be. Whoever asks for one - a call of the
class, a look at its fields or its signature, a subclass - makes the dataclass then, and sees no
difference to `dataclass(frozen=True)` and `dataclass`.

Two threads may do so at the same time: the dataclass is made aside, of a twin of the class, and
what was generated is moved over, which changes nothing if it happens twice.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")

#: What is generated, in the order in which it is moved over: `__init__`, which lets instances come
#: to be, last.
_GENERATED: tuple[str, ...] = (
    "__match_args__",
    "__dataclass_params__",
    "__dataclass_fields__",
    "__init__",
)
#: What is generated before that, except in subclasses of `Immutable`, which inherit it.
_GENERATED_TOO = ("__repr__", "__eq__", "__hash__")
#: What of a class's body, besides its annotations and their values, the generated code depends on.
_DEFINING = ("__doc__", "__module__", "__post_init__", "__qualname__")


class Immutable:
    """Base of classes whose objects cannot be changed, and that bring equality, hash and repr."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen(cls: type[T]) -> type[T]:
    """Makes a frozen dataclass of a class, as late as it can be.

    In a subclass of `Immutable` equality, hash and repr are inherited.
    """
    if issubclass(cls, Immutable):
        return _later(cls, _GENERATED, frozen=True, eq=False, repr=False)
    for method in (Immutable.__setattr__, Immutable.__delattr__):
        setattr(cls, method.__name__, method)
    return _later(cls, _GENERATED_TOO + _GENERATED, frozen=True)


@dataclass_transform(field_specifiers=(dataclasses.field,))
def mutable(cls: type[T]) -> type[T]:
    """Makes a dataclass whose objects may be changed, as late as it can be."""
    return _later(cls, _GENERATED_TOO + _GENERATED)


def _later(cls: type[T], names: tuple[str, ...], **options: bool) -> type[T]:
    """Puts placeholders where `dataclass(**options)` would put what it generates."""
    annotations = inspect.get_annotations(cls)
    kept = {*annotations, *_DEFINING}
    body = {name: value for name, value in cls.__dict__.items() if name in kept}
    body["__annotations__"] = annotations
    for name, value in body.items():
        if isinstance(value, dataclasses.Field):
            if value.default is dataclasses.MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, value.default)
    plan = _Plan(cls, body, options)
    for name in names:
        if name not in cls.__dict__:
            setattr(cls, name, _Later(plan, name))
    return cls


class _Plan:
    """What is to be generated for one class."""

    __slots__ = ("body", "cls", "options")

    def __init__(self, cls: type, body: dict[str, Any], options: dict[str, bool]) -> None:
        self.cls = cls
        self.body = body
        self.options = options

    def carry_out(self) -> None:
        """Puts what a dataclass of this body has in the place of the placeholders."""
        cls = self.cls
        # Not a subclass of the real bases: they would list it until it is collected.
        twin = type(cls.__name__, (self._above(),), dict(self.body))
        made = vars(dataclasses.dataclass(**self.options)(twin))
        for name in _GENERATED_TOO + _GENERATED:
            if isinstance(vars(cls).get(name), _Later):
                setattr(cls, name, made[name])

    def _above(self) -> type:
        """Returns a class with what a dataclass takes of its bases."""
        bases = self.cls.__mro__[1:]
        found: dict[str, Any] = {}
        for base in reversed(bases):
            taken = vars(base).keys() & {*self.body["__annotations__"], "__post_init__"}
            found.update((name, vars(base)[name]) for name in taken)
        made: list[Any] = [base for base in bases if hasattr(base, "__dataclass_fields__")]
        if made:
            fields = [base.__dataclass_fields__ for base in reversed(made)]
            found["__dataclass_fields__"] = {k: f for some in fields for k, f in some.items()}
            found["__dataclass_params__"] = made[0].__dataclass_params__
        return type("Above", (), found)


class _Later:
    """Stands for an attribute that is generated when somebody asks for it."""

    __slots__ = ("name", "plan")

    def __init__(self, plan: _Plan, name: str) -> None:
        self.plan = plan
        self.name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self.plan.carry_out()
        value = vars(self.plan.cls)[self.name]
        return value.__get__(instance, owner) if hasattr(value, "__get__") else value
