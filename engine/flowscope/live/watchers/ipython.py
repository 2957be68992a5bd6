"""`%load_ext flowscope`: hands over to the IPython extension, wherever that is installed."""

from __future__ import annotations

from typing import Any

#: Entry point group in which the extension's module says where it is.
EXTENSIONS = "flowscope.ipython"


def load_ipython_extension(ipython: Any) -> None:
    """Called by `%load_ext flowscope` with the IPython shell."""
    for module in _modules():
        module.load_ipython_extension(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """Called by `%unload_ext flowscope` with the IPython shell."""
    for module in _modules():
        module.unload_ipython_extension(ipython)


def _modules() -> list[Any]:
    from importlib.metadata import entry_points  # a tenth of the import time of flowscope

    return [entry.load() for entry in entry_points(group=EXTENSIONS)]
