"""Folders with modules of a user's, which only this process can import."""

from __future__ import annotations

import importlib
import itertools
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

_seconds = itertools.count(1_700_000_000)


class Folder:
    """A folder with modules.

    Args:
        path: Where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._names: set[str] = set()

    def write(self, files: Mapping[str, str] | None = None, **modules: str) -> None:
        """Writes modules; "a/b" is the module b of the package a."""
        for name, text in {**(files or {}), **modules}.items():
            file = self.path.joinpath(f"{name}.py")
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
            second = next(_seconds)  # Python looks at the time to find what was edited
            os.utime(file, (second, second))
            self._names.add(name.partition("/")[0])

    def load(self, name: str) -> ModuleType:
        """Returns a module, imported or loaded anew; no other process finds it by our path."""
        with self.found():
            if name in sys.modules:
                return importlib.reload(sys.modules[name])
            return importlib.import_module(name)

    @contextmanager
    def found(self) -> Iterator[None]:
        """Meanwhile this process finds what is in the folder."""
        sys.path.insert(0, str(self.path))
        try:
            importlib.invalidate_caches()
            yield
        finally:
            sys.path.remove(str(self.path))

    def forget(self) -> None:
        """Has this process forget the modules."""
        for name in [n for n in sys.modules if n.partition(".")[0] in self._names]:
            del sys.modules[name]
