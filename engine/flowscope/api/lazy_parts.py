"""Parts of the package whose names are loaded when they are first used: `fs.nn.relu`.

`exports` says what a part shows, and writes the table (`part_names`) and the part's stub.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from flowscope.api.absent import refusal
from flowscope.api.part_names import PART_NAMES


def part(
    module: str, namespace: dict[str, Any]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The parts of a lazy module: its `__getattr__`, its `__dir__` and its `__all__`.

    Args:
        module: The part's name, "flowscope.nn".
        namespace: Its attributes, to which each name is added when it is loaded.
    """
    found = {}
    for source, words in PART_NAMES.get(module.rpartition(".")[2], {}).items():
        for word in words.split():
            theirs, _, ours = word.partition("=")
            found[ours or theirs] = (source, theirs)
    refuse = refusal(module, found)

    def load(name: str) -> Any:
        if name not in found:
            return refuse(name)
        namespace[name] = _member(*found[name])
        return namespace[name]

    return load, lambda: sorted({*namespace, *found}), sorted(found)


def _member(module: str, name: str) -> Any:
    """The attribute of a module under a name; in a package that may be a module."""
    loaded = import_module(module)
    return getattr(loaded, name) if hasattr(loaded, name) else import_module(f"{module}.{name}")
