"""Frames: the scopes of loops and branching operations, and where data enters and leaves them.

A loop or a branching operation is shown as a scope that holds the bodies that it runs. In it the
operation's own box is what decides; data enters at the bodies' parameters, comes out of their
results, and in a loop returns from results to parameters.
"""

from __future__ import annotations

from collections.abc import Iterable

from flowscope.live.protocol.schema import Node

#: An output of an operation: its id, and which one.
End = tuple[int, int]

#: Bodies that run, or do not, as is decided; a loop's condition always runs.
DECIDED = ("body", "then", "else")


def is_frame(node: Node) -> bool:
    """Whether an operation runs bodies of its own."""
    return bool(node.runs)


def is_loop(node: Node) -> bool:
    """Whether it runs a body again and again, or leads into a loop that was made by hand."""
    return "body" in node.roles or bool(node.frame)


def parent_path(path: str) -> str:
    """Returns "a/b" of "a/b/c", and "" of "c"."""
    return path[: max(path.rfind("/"), 0)]


def frame_path(node: Node) -> str:
    """Returns the path of the scope that shows a loop or branching operation with its bodies.

    The scope "while" of an operation "while/Loop" whose bodies are named "while/...", else one of
    the operation's own name.
    """
    scope = parent_path(node.name)
    is_made_for_it = node.name == f"{scope}/{node.type}" and scope != node.body
    is_inside = not node.body or scope.startswith(node.body + "/")
    if is_made_for_it and is_inside and all(r.startswith(scope + "/") for r in node.runs):
        return scope
    return node.name


def around(nodes: Iterable[Node]) -> dict[str, str]:
    """Returns the path of the scope around a scope, where its name does not say it."""
    found: dict[str, str] = {}
    for node in filter(is_frame, nodes):
        path = frame_path(node)
        found.update((body, path) for body in node.runs)
        outer = node.scope or node.body
        if outer and not path.startswith(outer + "/"):
            found[path] = outer
    return found


def takers(node: Node, position: int) -> list[int]:
    """Returns the ids of the operations that take an input of a frame: parameters, or itself."""
    found = [i for c in node.carried if c.input == position for i in (c.test, c.parameter)]
    found += [parameter for parameter, k in node.enters if k == position]
    return [i for i in found if i is not None] or [node.id]


def givers(node: Node, output: int) -> list[End]:
    """The sources of an output of a frame: results of its bodies, or the frame itself."""
    found = [c.result for c in node.carried if c.output == output]
    found += [(result, which) for result, which, k in node.leaves if k == output]
    return found or [(node.id, output)]


def returns(node: Node) -> list[tuple[End, int]]:
    """Returns where a loop's results go in the next iteration: (result, id of a parameter)."""
    return [
        (c.result, parameter)
        for c in node.carried
        for parameter in (c.test, c.parameter)
        if parameter is not None
    ]


def is_back(source: Node | None, node: Node) -> bool:
    """Whether a value returns here to the start of a loop of primitives."""
    return source is not None and source.type == "NextIteration" and node.type == "Merge"


def decision_text(node: Node) -> str:
    """The label of the box that decides in a frame, e.g. "while true"."""
    if not is_loop(node):
        return "if true"
    return "while true" if node.predicate else "n times"
