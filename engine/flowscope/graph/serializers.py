"""What writes graphs and reads them, by name; `flowscope.graph.serialization` fills it.

A graph and a `GraphDef` have methods for their written forms, and the forms are made of both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowscope.graph.providers import load

#: "graph_def_of", "graph_of", "text_of", "read_text", "json_of", "read_json", "default_values".
serializers: dict[str, Callable[..., Any]] = {}


def serializer(name: str) -> Callable[..., Any]:
    """Returns the function of this name, whose module is loaded if it was not."""
    if name not in serializers:
        load(f"serializer {name}")
    return serializers[name]


__all__ = ["serializer", "serializers"]
