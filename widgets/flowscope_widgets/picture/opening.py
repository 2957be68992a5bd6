"""Which scopes a picture shows open."""

from __future__ import annotations

from collections.abc import Collection

from flowscope.live.schema import Node
from flowscope.live.text import Scope

#: A top level with fewer boxes than this is opened further.
FEW = 12
#: Boxes that opening by itself may lead to.
SOME = 40
#: Boxes that a picture has at most.
MOST = 400

#: Op types that make a variable.
VARIABLES = frozenset({"VarHandleOp", "Variable", "VariableV2"})


def is_variable(scope: Scope) -> bool:
    """Whether the scope holds one variable and what belongs to it; it is drawn as the variable."""
    return scope.own is not None and scope.own.type in VARIABLES


def open_scopes(root: Scope, asked: Collection[str]) -> set[Scope]:
    """Returns the scopes to show open: the root, those asked for, and where there is room, more.

    Args:
        root: The root of the scopes.
        asked: Paths; the scopes around them are opened too.
    """
    opened = _asked(root, asked)
    shown = sum(len(scope.children) for scope in opened) - len(opened) + 1
    if len(root.children) < FEW:
        _open_more(opened, shown)
    return opened


def _asked(root: Scope, asked: Collection[str]) -> set[Scope]:
    around = {path[:end] for path in asked for end in _ends(path)}
    opened, queue, shown = {root}, [root], len(root.children)
    for scope in queue:
        for inner in _scopes_in(scope):
            if inner.path in around and shown + len(inner.children) <= MOST:
                shown += len(inner.children)
                opened.add(inner)
                queue.append(inner)
    return opened


def _ends(path: str) -> list[int]:
    return [k for k, c in enumerate(path) if c == "/"] + [len(path)]


def _open_more(opened: set[Scope], shown: int) -> None:
    """Opens level by level, the biggest scopes first, while the boxes stay few."""
    level = list(opened)
    while level:
        inside = [s for scope in level for s in _scopes_in(scope) if s not in opened]
        level = []
        for scope in sorted(inside, key=lambda s: (-s.size, s.path)):
            is_shut = is_variable(scope) or scope.is_gradient
            if not is_shut and shown + len(scope.children) < SOME:
                shown += len(scope.children)
                opened.add(scope)
                level.append(scope)


def _scopes_in(scope: Scope) -> list[Scope]:
    return [child for child in scope.children if not isinstance(child, Node)]
