"""Handles: the operations that name what lives in a container."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Tensor


def add_handle(op: Any, name: str, shared_name: str | None, **facts: Any) -> Tensor:
    """Adds the operation that makes a handle, outside of bodies, and returns the handle.

    Args:
        op: The class of the op.
        name: Name of the operation, made unique; one that ends in a slash is a whole one.
        shared_name: Name in the container; the operation's by default.
        facts: The op's other attributes.
    """
    graph = get_default_graph()
    full = name[:-1] if name.endswith("/") else graph.unique_name(name)
    definition = op(
        container=graph.extras.get("container", ""), shared_name=shared_name or full, **facts
    )
    with graph.enter_block(graph.root):
        return graph.add(definition, (), full + "/").outputs[0]


@contextlib.contextmanager
def in_container(name: str) -> Iterator[None]:
    """A context in which handles are made in a container; "": in the one that is open."""
    extras = get_default_graph().extras
    before = extras.get("container", "")
    extras["container"] = name or before
    try:
        yield
    finally:
        extras["container"] = before


__all__ = ["add_handle", "in_container"]
