"""Bodies: which operations stand in a function's, a branch's or a loop's block, and which run it.

A body is a scope of its name, and closed: no edge leads into it or out of it. What joins a function
to the graph are the operations that call it, so views name both alike, with a sign before the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from flowscope.live.protocol.schema import Node

#: Stands before a function's name, at its body and at its calls.
SIGN = "\u0192 "

_OF_GRADIENT = re.compile(r"(.+)_grad(_\d+)?")


@dataclass(eq=False)
class Body:
    """What belongs to a body."""

    name: str
    #: Operations that stand for its inputs.
    parameters: list[Node] = field(default_factory=list)
    results: list[Node] = field(default_factory=list)
    #: Operations anywhere that call it, or run it as a branch or in a loop.
    calls: list[Node] = field(default_factory=list)

    @property
    def is_function(self) -> bool:
        """Whether it is a function's, which any operation may call: not a branch's or a loop's."""
        return not any(node.runs for node in self.calls)


def bodies_of(nodes: Iterable[Node]) -> dict[str, Body]:
    """Returns the bodies of a graph by name."""
    found: dict[str, Body] = {}
    nodes = tuple(nodes)
    for node in nodes:
        if not node.body:
            continue
        body = found.setdefault(node.body, Body(node.body))
        if node.type == "Parameter":
            body.parameters.append(node)
        if node.is_result:
            body.results.append(node)
    for node in nodes:
        for name in (node.calls, *node.runs):
            if name in found:
                found[name].calls.append(node)
    return found


def is_of_gradient(name: str, names: Iterable[str]) -> bool:
    """Whether a body is a gradient's: it is named after another body."""
    match = _OF_GRADIENT.fullmatch(name)
    return match is not None and match[1] in names


def kind_of(node: Node) -> str:
    """The kind of an operation in a word or two: its type, or the function that it calls."""
    return SIGN + node.calls if node.calls else node.type
