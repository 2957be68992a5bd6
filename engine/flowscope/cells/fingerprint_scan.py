"""Takes down what a Python function is made of: see `fingerprint`."""

from __future__ import annotations

import builtins
import dis
import functools
import struct
import sys
from abc import ABCMeta
from collections.abc import Callable, Iterable, Iterator
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from flowscope.cells.fingerprint import Seen
from flowscope.cells.installed import (
    is_installed,
    is_installed_file,
    is_installed_module,
)
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.origins.origin import is_ours
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.shapes import TensorShape

#: So many objects are looked at per function, and so many bytes of arrays and strings.
MOST_THINGS = 10_000
MOST_BYTES = 1 << 24

#: Built-in functions with which code reaches what its names do not tell.
_REACHES_ALL = frozenset({"eval", "exec", "globals", "__import__"})
_READS_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_WRITES_CELL = frozenset({"STORE_DEREF", "DELETE_DEREF"})
#: Entries of classes that say nothing about what they do.
_ASIDE = {
    *("__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__annotations__"),
    *("__firstlineno__", "__static_attributes__", "__dataclass_fields__", "__dataclass_params__"),
    "_abc_impl",
}
#: The size of an object that has nothing but its dict.
_PLAIN_SIZE = type("Plain", (), {}).__basicsize__

#: What is told of an object, and its parts; None where it cannot be looked at.
_Found = tuple[Seen, Iterable[Any]] | None


def fingerprint(function: Any) -> Seen:
    """The fingerprint of a callable, to be compared by `Comparison`."""
    return _Reader().see(function)


class _Reader:
    """Looks at an object and at all that it leads to, until it has seen too much."""

    def __init__(self) -> None:
        #: By id; the objects are held, so that no id is used twice.
        self._known: dict[int, tuple[Any, Seen]] = {}
        self._things = MOST_THINGS
        self._bytes = MOST_BYTES
        self._open: list[tuple[Seen, Iterable[Any]]] = []

    def see(self, thing: Any) -> Seen:
        first = self._look(thing)
        while self._open:
            seen, parts = self._open.pop()
            seen.parts = [self._look(part) for part in parts]
        return first

    def _look(self, thing: Any) -> Seen:
        known = self._known.get(id(thing))
        if known is None:
            self._things -= 1
            self._bytes -= _size(thing)
            is_too_much = self._things < 0 or self._bytes < 0
            seen, parts = (None if is_too_much else _found(thing)) or (Seen("opaque", thing), ())
            known = self._known[id(thing)] = thing, seen
            self._open.append((seen, parts))
        return known[1]


def _size(thing: Any) -> int:
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    return len(thing) if type(thing) in (str, bytes) else 0


def _found(thing: Any) -> _Found:
    look = _LOOKS.get(type(thing))
    if look is not None:
        return look(thing)
    if isinstance(thing, Tensor | Operation):
        return Seen("symbol", thing), ()
    if isinstance(thing, np.generic):
        return _scalar(thing)
    if isinstance(thing, np.dtype):
        return None if thing.hasobject else (Seen("value", thing, (np.dtype, thing)), ())
    if isinstance(thing, type):
        return _class(thing)
    if is_installed(type(thing)) and is_installed(thing):
        return _itself(thing)
    return _instance(thing)


# -- values ---------------------------------------------------------------------------------------


def _value(thing: Any) -> _Found:
    return Seen("value", thing, (type(thing), thing)), ()


def _itself(thing: Any) -> _Found:
    return Seen("itself", thing), ()


def _number(thing: Any) -> _Found:
    """Zeros of either sign differ, and a NaN is like itself."""
    bits = struct.pack("<dd", thing.real, thing.imag)
    return Seen("value", thing, (type(thing), bits)), ()


def _scalar(thing: np.generic) -> _Found:
    if thing.dtype.hasobject:
        return None
    return Seen("value", thing, (type(thing), thing.dtype, thing.tobytes())), ()


def _array(thing: np.ndarray[Any, Any]) -> _Found:
    flags = thing.flags
    facts = (thing.dtype, thing.shape, flags.c_contiguous, flags.f_contiguous)
    can_change = flags.writeable or thing.base is not None
    if thing.dtype == object:
        return Seen("array", thing, facts, can_change), thing.ravel().tolist()
    if thing.dtype.hasobject:
        return None
    import hashlib  # brings OpenSSL along: a thirtieth of the import time of flowscope

    digest = hashlib.blake2b(thing.tobytes()).digest()
    return Seen("array", thing, (*facts, digest), can_change), ()


def _tuple(thing: tuple[Any, ...]) -> _Found:
    return Seen("tuple", None), thing


def _list(thing: list[Any]) -> _Found:
    return Seen("list", thing, can_change=True), list(thing)


def _dict(thing: dict[Any, Any]) -> _Found:
    items = list(thing.items())
    return Seen("dict", thing, can_change=True), [one for item in items for one in item]


def _set(thing: set[Any] | frozenset[Any]) -> _Found:
    if all(isinstance(one, Operation) for one in thing):
        return Seen("set", thing, type(thing), type(thing) is set), sorted(thing, key=_order)
    if any(type(one) not in (str, int, bool, bytes, type(None)) for one in thing):
        return None
    members = frozenset((type(one), one) for one in thing)
    return Seen("value", thing, (type(thing), members), type(thing) is set), ()


def _order(op: Operation) -> int:
    return op.order


# -- functions and classes ------------------------------------------------------------------------


def _function(thing: FunctionType) -> _Found:
    code = thing.__code__
    keywords = thing.__kwdefaults__ or {}
    parts: list[Any] = [
        thing.__defaults__ or (),
        *(tuple(d.items()) for d in (keywords, vars(thing))),
    ]
    seen = Seen("function", thing, (thing.__name__, _code(code), len(thing.__closure__ or ())))
    cells = zip(code.co_freevars, thing.__closure__ or (), strict=True)
    written = {i.argval for c in _codes(code) for i in _steps(c) if i.opname in _WRITES_CELL}
    seen.can_change = any(name in written for name, _ in cells)
    parts += thing.__closure__ or ()
    if not is_installed_file(code.co_filename):
        named = _globals(thing)
        if named is None:
            return None
        parts.append(named)
    return seen, parts


def _globals(function: FunctionType) -> tuple[Any, ...] | None:
    """Returns the globals that a function reads and the modules that it imports."""
    found: list[Any] = []
    names = dict.fromkeys(
        (i.opname in _READS_GLOBAL, i.argval)
        for code in _codes(function.__code__)
        for i in _steps(code)
        if i.opname in _READS_GLOBAL or i.opname == "IMPORT_NAME"
    )
    for is_global, name in names:
        if not is_global:
            found.append((name, sys.modules.get(name, _Missing())))
        elif name in function.__globals__:
            found.append((name, function.__globals__[name]))
        elif name in _REACHES_ALL:
            return None
        else:
            found.append((name, "built-in", vars(builtins).get(name)))
    return tuple(found)


class _Missing:
    """Stands for a module that is not imported yet: nothing is known of it."""

    __slots__ = ("unknown",)


@functools.lru_cache(maxsize=1024)
def _steps(code: CodeType) -> tuple[dis.Instruction, ...]:
    return tuple(dis.get_instructions(code))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yields a code object and those inside."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _code(code: CodeType) -> tuple[Any, ...]:
    """The fingerprint of a code object: all but its lines and its file."""
    return (
        code.co_name,
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags),
        code.co_code,
        getattr(code, "co_exceptiontable", b""),
        (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        tuple([_constant(constant) for constant in code.co_consts]),
    )


def _constant(constant: Any) -> Any:
    if isinstance(constant, CodeType):
        return _code(constant)
    if isinstance(constant, tuple | frozenset):
        return type(constant), type(constant)([_constant(one) for one in constant])
    if isinstance(constant, float | complex):
        return type(constant), struct.pack("<dd", constant.real, constant.imag)
    return type(constant), constant


def _cell(thing: CellType) -> _Found:
    try:
        return Seen("cell", thing), (thing.cell_contents,)
    except ValueError:  # it is still empty
        return None


def _method(thing: MethodType) -> _Found:
    return Seen("method", thing), (thing.__func__, thing.__self__)


def _built_in(thing: BuiltinFunctionType) -> _Found:
    owner = thing.__self__
    if owner is None or isinstance(owner, ModuleType):
        return Seen("itself", thing), ()
    return Seen("built-in method", thing, thing.__name__), (owner,)


def _module(thing: ModuleType) -> _Found:
    if is_installed_module(thing):
        return Seen("itself", thing), ()
    names = [(k, v) for k, v in vars(thing).items() if not (k[:2] == "__" == k[-2:])]
    return Seen("module", thing, thing.__name__, can_change=True), names


def _wrapper(thing: Any) -> _Found:
    return Seen(type(thing).__name__, thing), (thing.__func__,)


def _property(thing: property) -> _Found:
    return Seen("property", thing), (thing.fget, thing.fset, thing.fdel)


def _partial(thing: functools.partial[Any]) -> _Found:
    given = (tuple(thing.keywords.items()), tuple(vars(thing).items()))
    return Seen("partial", thing), (thing.func, thing.args, *given)


def _class(thing: type) -> _Found:
    if is_installed(thing):
        return Seen("itself", thing), ()
    if type(thing) not in (type, ABCMeta) or "__slots__" in vars(thing):
        return None
    names = [(k, v) for k, v in vars(thing).items() if k not in _ASIDE]
    return Seen("class", thing, thing.__name__, can_change=True), (thing.__bases__, *names)


def _instance(thing: Any) -> _Found:
    """Looks at an object that is nothing but its class and its dict."""
    kind = type(thing)
    make: Any = kind.__new__
    makes_itself = make is object.__new__ or isinstance(make, FunctionType)
    is_plain = kind.__basicsize__ == _PLAIN_SIZE and kind.__dictoffset__ != 0
    if is_ours(getattr(sys.modules.get(kind.__module__), "__file__", None) or ""):
        handle = getattr(thing, "handle", None)
        if isinstance(handle, Tensor):  # a variable is what its handle stands for
            return Seen("handle", thing, kind), (handle,)
    if not makes_itself or not is_plain:
        return None
    is_frozen = bool(getattr(getattr(kind, "__dataclass_params__", None), "frozen", False))
    return Seen("object", thing, can_change=not is_frozen), (kind, *vars(thing).items())


_LOOKS: dict[type, Callable[[Any], _Found]] = {
    **dict.fromkeys(
        (type(None), type(...), type(NotImplemented), bool, int, str, bytes, range), _value
    ),
    **dict.fromkeys((float, complex), _number),
    **dict.fromkeys(
        (GetSetDescriptorType, MethodDescriptorType, WrapperDescriptorType, np.ufunc, DType),
        _itself,
    ),
    TensorShape: lambda thing: (Seen("value", thing, (TensorShape, repr(thing))), ()),
    slice: lambda thing: (Seen("slice", thing), (thing.start, thing.stop, thing.step)),
    np.ndarray: _array,
    tuple: _tuple,
    list: _list,
    dict: _dict,
    set: _set,
    frozenset: _set,
    FunctionType: _function,
    CellType: _cell,
    MethodType: _method,
    BuiltinFunctionType: _built_in,
    ModuleType: _module,
    staticmethod: _wrapper,
    classmethod: _wrapper,
    property: _property,
    functools.partial: _partial,
}

__all__ = ["fingerprint"]
