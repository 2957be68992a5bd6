"""The table of operators: what each is converted by. Families of operators fill it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from flowscope.onnx.node import OnnxNode

#: Returns a node's output, a tuple of them, or a list: a sequence.
Converter = Callable[[OnnxNode], Any]

_FAMILIES = (
    *("arrays", "casting", "control", "convolution", "elementwise", "images", "indexing"),
    *("linalg", "normalization", "pooling", "quantized", "random", "recurrent", "reductions"),
    *("resizing", "sequences", "shaping", "signal", "strings", "training"),
)

_converters: dict[str, Converter] = {}
#: Operators whose converter names its operation after the node; others get a scope of that name.
_alone: set[str] = set()


def converts(*types: str) -> Callable[[Converter], Converter]:
    """Enters a function as the converter of operators; what it makes stands in the node's scope."""

    def enter(function: Converter) -> Converter:
        for name in types:
            _converters[name] = function
        return function

    return enter


def single(name: str, converter: Converter) -> None:
    """Enters the converter of an operator that becomes one operation, of the node's name."""
    _converters[name] = converter
    _alone.add(name)


@cache
def table() -> dict[str, Converter]:
    """Converters of the default domain's operators."""
    for family in _FAMILIES:
        import_module(f"flowscope.onnx.ops.{family}")
    return _converters


def is_alone(name: str) -> bool:
    """Whether an operator becomes one operation."""
    return name in _alone


__all__ = ["Converter", "converts", "is_alone", "single", "table"]
