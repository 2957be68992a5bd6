"""What fills a registry of a lower floor is loaded when it is first asked for.

A registry that a higher floor fills (`overloads.operators`, the op types, ...) may be asked before
anything has imported that floor. The package says here which module provides what.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

#: Names of modules by the op type that they define.
op_types: dict[str, str] = {}
#: Names of modules by the registry, or the entry of a registry, that they fill.
registries: dict[str, tuple[str, ...]] = {}
#: What writes graphs and reads them, which `flowscope.graph.serialization` fills: "graph_def_of",
#: "graph_of", "text_of", "read_text", "json_of", "read_json", "default_values"; "read_tensorflow"
#: is filled by `flowscope.tensorflow`.
serializers: dict[str, Callable[..., Any]] = {}


def load(registry: str) -> None:
    """Loads the modules that fill a registry."""
    for module in registries.get(registry, ()):
        import_module(module)


def load_op_type(name: str) -> None:
    """Loads the module that defines an op type, if there is one."""
    if name in op_types:
        import_module(op_types[name])


def load_op_types() -> None:
    """Loads all modules that define op types."""
    for module in dict.fromkeys(op_types.values()):
        import_module(module)


def serializer(name: str) -> Callable[..., Any]:
    """The function of `serializers` with this name; its module is loaded if it was not."""
    if name not in serializers:
        load(f"serializer {name}")
    return serializers[name]
