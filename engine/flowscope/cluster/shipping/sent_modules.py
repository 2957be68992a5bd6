"""Modules that clients have sent, in a worker: Python imports them as if their files were here.

A client offers what a plan needs, as names and digests; the worker says what it wants. What it can
import itself, with the same text, it does not want. A module that comes with another text takes the
place of the earlier one, and what imports it is imported anew, too, when it is next needed.
Programs that were made before keep what they have.
"""

from __future__ import annotations

import hashlib
import importlib.abc
import os
import secrets
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import psutil

from flowscope.graph.op import arriving

#: Tells processes apart: clients and hosts of one process have the same modules.
PROCESS = secrets.token_hex(8)

#: What a client offers, by names: digests, and which others of the offer a module imports.
Offer = Mapping[str, Sequence[Any]]


class SentModule(NamedTuple):
    """A module as it comes.

    Attributes:
        source: Its text.
        path: Its file, where it comes from.
        is_package: Whether it may have submodules.
    """

    source: str
    path: str
    is_package: bool


class _Loader(importlib.abc.Loader):
    """Makes a module of a text."""

    def __init__(self, module: SentModule) -> None:
        self.module = module

    def exec_module(self, module: ModuleType) -> None:
        """Runs the text. What it registers by name is not refused."""
        code = compile(self.module.source, self.module.path or "<sent>", "exec", dont_inherit=True)
        with arriving():
            exec(code, vars(module))

    def get_source(self, fullname: str) -> str:
        """Returns the text: tracebacks show its lines."""
        return self.module.source


class SentModules(importlib.abc.MetaPathFinder):
    """Finds the modules that were sent; one for a process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._sent: dict[str, SentModule] = {}
        #: The digests of modules that this process imports itself, as they were when it said so.
        self._own: dict[str, str] = {}

    def find_spec(
        self, fullname: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns how a module that was sent is imported; None for others."""
        found = self._sent.get(fullname)
        if found is None:
            return None
        loader = _Loader(found)
        spec = spec_from_loader(
            fullname, loader, origin=found.path or None, is_package=found.is_package
        )
        if spec is not None and found.path:
            spec.has_location = True
            if found.is_package:  # what was not sent may lie on this machine
                spec.submodule_search_locations = [os.path.dirname(found.path)]
        return spec

    def wanted(self, offered: Offer, process: str) -> list[str]:
        """Returns the names of the modules that are to be sent.

        Args:
            offered: The modules.
            process: The `PROCESS` that offers them.
        """
        if process == PROCESS:
            return []
        with self._lock:
            found = {name for name, (digest, _) in offered.items() if not self._has(name, digest)}
            while more := {
                name
                for name, (_, imports) in offered.items()
                if name not in found and not found.isdisjoint(imports)
            }:
                found |= more
            return sorted(found)

    def install(self, modules: Mapping[str, SentModule]) -> None:
        """Takes modules, in the place of earlier ones of these names."""
        if not modules:
            return
        with self._lock:
            if self not in sys.meta_path:
                sys.meta_path.insert(0, self)
            self._sent.update(modules)
            self._forget(modules)

    def _has(self, name: str, digest: str) -> bool:
        """Whether importing a module gives this text."""
        sent = self._sent.get(name)
        if sent is not None and digest_of(sent.source) == digest:
            return True
        if self._imports_itself(name) != digest:
            return False
        if self._sent.pop(name, None) is not None:
            self._forget([name])
        self._own[name] = digest
        return True

    def _imports_itself(self, name: str) -> str | None:
        """Returns the digest of a module that this process can import without a client."""
        loaded = sys.modules.get(name)
        spec = getattr(loaded, "__spec__", None)
        is_here = spec is not None and not isinstance(spec.loader, _Loader)
        if is_here and name in self._own:
            return self._own[name]
        found = self._spec_here(name)
        if found is None:
            return None
        if found.origin is None:  # a folder without `__init__.py`
            return digest_of("")
        if is_here and not _is_older(found.origin):
            return None  # nobody knows what was imported
        return _digest_of_file(name, found)

    def _spec_here(self, name: str) -> ModuleSpec | None:
        parent = name.rpartition(".")[0]
        path = None
        if parent:
            above = self._spec_here(parent)
            path = None if above is None else above.submodule_search_locations
            if path is None:
                return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            try:
                spec = None if finder is self or find is None else find(name, path)
            except KeyError:  # a folder without `__init__.py` in another one, not imported
                continue
            if spec is not None:
                return spec  # type: ignore[no-any-return]
        return None

    @staticmethod
    def _forget(names: Iterable[str]) -> None:
        for name in names:
            gone = sys.modules.pop(name, None)
            parent, _, last = name.rpartition(".")
            above = sys.modules.get(parent)
            if gone is not None and above is not None and vars(above).get(last) is gone:
                delattr(above, last)


sent_modules = SentModules()


def digest_of(source: str) -> str:
    """The SHA-256 digest of a module's text, in hexadecimal digits."""
    return hashlib.sha256(source.encode()).hexdigest()


def _is_older(path: str) -> bool:
    """Whether a file has not been written since this process was started."""
    try:
        return bool(Path(path).stat().st_mtime < psutil.Process().create_time())
    except OSError:
        return False


def _digest_of_file(name: str, spec: ModuleSpec) -> str | None:
    get: Any = getattr(spec.loader, "get_source", None)
    try:
        source = None if get is None else get(name)
        if source is not None:
            return digest_of(source)
        with open(spec.origin or "", "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (ImportError, OSError, SyntaxError, UnicodeDecodeError):
        return None


__all__ = ["PROCESS", "Offer", "SentModule", "SentModules", "digest_of", "sent_modules"]
