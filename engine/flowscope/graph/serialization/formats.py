"""Which form a graph in a file has, by its first bytes."""

from __future__ import annotations

import re

#: Bytes that no text has; TensorFlow's binary form has them in each node.
_CONTROL = frozenset(range(32)) - frozenset(b"\t\n\r\f")
_MESSAGE = re.compile(r"\s*(#[^\n]*\s*)*(node|library|versions|version)\s*[:{<]")
_LOOKED_AT = 4096


def is_binary(data: str | bytes) -> bool:
    """Whether bytes are no text: TensorFlow's binary form."""
    return isinstance(data, bytes) and not _CONTROL.isdisjoint(data[:_LOOKED_AT])


def is_tensorflow(data: str | bytes) -> bool:
    """Whether a graph is written in TensorFlow's binary or text form."""
    if is_binary(data):
        return True
    head = data[:_LOOKED_AT]
    text = head.decode(errors="replace") if isinstance(head, bytes) else head
    return isinstance(text, str) and _MESSAGE.match(text) is not None
