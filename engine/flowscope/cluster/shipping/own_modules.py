"""Modules that are the user's own: files beside a notebook or a script, which workers lack.

A module is *own* if it is neither Python's, nor flowscope's, nor lies where distributions are
installed (`site-packages`). An editable install is own, too: whether a worker can import the same
is what the worker says (`cluster.shipping.sent_modules`). A module is sent as its source, with the
own modules that it imports, in functions, too, and the worker imports it as it would from a file.
The source is read when the module is first needed after it was imported or reloaded.
"""

from __future__ import annotations

import ast
import hashlib
import os
import site
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import decode_source, resolve_name
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

#: These are installed wherever flowscope runs, in the same version.
_EVERYWHERE = ("flowscope", "flowscope_kernel", "flowscope_widgets")
_INSTALLED = ("site-packages", "dist-packages")


class OwnModule(NamedTuple):
    """A module of the user's, as it is sent.

    Attributes:
        name: Its name.
        source: Its text; "" of what has none.
        path: Its file; "" of what has none.
        is_package: Whether it may have submodules.
        digest: Tells sources apart.
        imports: The names of what it may import, modules or not.
        problem: Why it cannot be sent; "" if it can.
    """

    name: str
    source: str
    path: str
    is_package: bool
    digest: str
    imports: tuple[str, ...]
    problem: str


class _Known:
    """The modules that were read, each as long as it is not loaded anew."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: With the spec that `importlib.reload` replaces.
        self._modules: dict[str, tuple[ModuleSpec | None, OwnModule]] = {}

    def module(self, name: str, spec: ModuleSpec | None) -> OwnModule:
        """Returns an own module as it is sent."""
        loaded = sys.modules.get(name)
        with self._lock:
            known = self._modules.get(name)
            if known is not None and known[0] is spec and loaded is not None:
                return known[1]
            made = _read(name, spec, loaded)
            self._modules[name] = spec, made
            return made


_known = _Known()


def is_own(name: str) -> bool:
    """Whether a module is the user's own; it need not have been imported."""
    if not name or name in ("__main__", "__mp_main__"):
        return False
    top = name.partition(".")[0]
    if top in _EVERYWHERE or top in sys.builtin_module_names:
        return False
    spec = _spec(name)
    if spec is None:  # made in this process; parts of what is installed are such, too
        return name in sys.modules and (top == name or is_own(top)) and not _has_file(name)
    if spec.origin in ("built-in", "frozen"):
        return False
    where = [spec.origin] if spec.origin is not None else [*(spec.submodule_search_locations or ())]
    return not any(_is_installed(path) for path in where)


def needed(names: Iterable[str]) -> dict[str, OwnModule]:
    """Returns the own modules among some, those that they import, and their packages, by names."""
    found: dict[str, OwnModule] = {}
    todo = [n for n in names if is_own(n)]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found[name] = one = _known.module(name, _spec(name))
        parent = name.rpartition(".")[0]
        todo += [n for n in (parent, *one.imports) if n not in found and is_own(n)]
        if one.is_package:
            todo += [n for n in _loaded_below(name) if n not in found]
    return found


def imports_of(one: OwnModule, among: Mapping[str, OwnModule]) -> list[str]:
    """Returns which of some own modules are imported by one of them, its packages among them."""
    parent = one.name.rpartition(".")[0]
    below = _loaded_below(one.name) if one.is_package else ()
    return [n for n in dict.fromkeys([parent, *one.imports, *below]) if n in among]


def _loaded_below(package: str) -> list[str]:
    """Returns the own modules of a package that this process has imported, and that have a text."""
    below = [n for n in list(sys.modules) if n.startswith(f"{package}.") and is_own(n)]
    return [n for n in below if not _known.module(n, _spec(n)).problem]


def _has_file(name: str) -> bool:
    return getattr(sys.modules[name], "__file__", None) is not None


def _spec(name: str) -> ModuleSpec | None:
    """Returns how a module is, or would be, imported; imports nothing."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        return getattr(loaded, "__spec__", None)
    parent, _, _ = name.rpartition(".")
    if not parent:
        return PathFinder.find_spec(name)
    above = _spec(parent)
    if above is None or above.submodule_search_locations is None:
        return None
    try:
        return PathFinder.find_spec(name, above.submodule_search_locations)
    except KeyError:  # a folder without `__init__.py` in another one, which is not imported
        return None


@cache
def _site_folders() -> tuple[str, ...]:
    """Returns where Python's own modules and distributions lie."""
    paths = sysconfig.get_paths()
    found = [paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    found += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple(os.path.join(os.path.realpath(path), "") for path in found)


@cache
def _is_installed(path: str) -> bool:
    real = os.path.realpath(path)
    return real.startswith(_site_folders()) or any(p in _INSTALLED for p in Path(real).parts)


def _read(name: str, spec: ModuleSpec | None, loaded: ModuleType | None) -> OwnModule:
    if spec is None:
        return _without_text(name, "", "it was made in this process and has no file")
    is_package = spec.submodule_search_locations is not None
    path = spec.origin or ""
    if is_package and spec.origin is None:  # a folder without `__init__.py`
        return OwnModule(name, "", "", True, _digest(""), (), "")
    source = _source(name, spec)
    if source is None:
        return _without_text(name, path, "it has no source text that could be sent")
    try:
        tree = ast.parse(source)
        imports = tuple(dict.fromkeys(_imported(tree, name, is_package)))
        is_changed = loaded is not None and _is_changed(loaded, source, spec)
    except (SyntaxError, ValueError):
        imports, is_changed = (), True
    if is_changed:
        problem = "its file has been changed since it was imported: importlib.reload it"
        return OwnModule(name, source, path, is_package, "", imports, problem)
    return OwnModule(name, source, path, is_package, _digest(source), imports, "")


def _without_text(name: str, path: str, problem: str) -> OwnModule:
    digest = ""
    if os.path.isfile(path):
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    return OwnModule(name, "", path, False, digest, (), problem)


def _source(name: str, spec: ModuleSpec) -> str | None:
    """Returns the text of a module; None if there is none."""
    get: Any = getattr(spec.loader, "get_source", None)
    try:
        if get is not None:
            found: str | None = get(name)
            return found
        if spec.origin is not None and spec.origin.endswith(".py"):
            with open(spec.origin, "rb") as file:
                return decode_source(file.read())
    except (ImportError, OSError, SyntaxError, UnicodeDecodeError):
        return None
    return None


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def _imported(tree: ast.AST, name: str, is_package: bool) -> Iterator[str]:
    """Yields the names of modules that a text may import, and of what it takes out of them."""
    package = name if is_package else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            try:
                base = resolve_name(base, package) if node.level else base
            except ImportError:
                continue
            yield base
            for alias in node.names:
                yield f"{base}.{alias.name}"


def _is_changed(module: ModuleType, source: str, spec: ModuleSpec) -> bool:
    """Whether a module has functions that its file does not define (any more).

    Only where Python itself has loaded it: others may have changed the code that they made.
    """
    if type(spec.loader) is not SourceFileLoader or spec.origin is None:
        return False
    made = set(_codes(compile(source, spec.origin, "exec", dont_inherit=True)))
    return any(
        f.__code__ not in made
        for f in _functions(module)
        if f.__module__ == spec.name and f.__code__.co_filename == spec.origin
    )


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yields the code of all functions of a text."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Yields the functions of a module, and those of its classes."""
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield from [f for f in vars(value).values() if isinstance(f, FunctionType)]
        elif isinstance(value, FunctionType):
            yield value


__all__ = ["OwnModule", "imports_of", "is_own", "needed"]
