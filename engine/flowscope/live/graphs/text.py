"""A graph as plain text: for where there is no notebook, and for a notebook read without pictures.

Also the home of the tree of scopes that operation names span, which every static view shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from flowscope.live.graphs.bodies import SIGN, Body, bodies_of, is_of_gradient, kind_of
from flowscope.live.graphs.nesting import around, frame_path, is_frame, is_loop, parent_path
from flowscope.live.protocol.schema import Node, Output

#: Most lines of a text.
LINES = 60
#: Like neighbours from which on all but the first are folded.
REPEATS = 4
#: Most inputs, and most outputs, that a line names.
NAMED = 4


@dataclass(eq=False)
class Scope:
    """A name scope: what lies in it, in the order of making."""

    #: "a/b"; "" for the whole graph.
    path: str
    parent: Scope | None
    depth: int
    children: list[Scope | Node] = field(default_factory=list)
    #: Operations here and in all scopes below.
    size: int = 0
    #: The operation that has the scope's own name, if there is one.
    own: Node | None = None
    #: The function whose body this is, if it is one.
    body: Body | None = None
    #: Whether it is the body of another function's gradient.
    is_gradient: bool = False
    #: What it is to the loop or branching operation whose body it is; "" if it is none.
    role: str = ""
    #: The loop or branching operation that it shows, with its bodies, if it is one's frame.
    frame: Node | None = None

    @property
    def name(self) -> str:
        """The last part of the path; a function's with a sign before it, a body's role."""
        return self.role or (SIGN if self.is_function else "") + short_name(self.path)

    @property
    def is_function(self) -> bool:
        """Whether this is the body of a function."""
        return self.body is not None and self.body.is_function


def short_name(name: str) -> str:
    """Returns the last part of a "/"-separated name."""
    return name[name.rfind("/") + 1 :]


def scope_tree(nodes: Iterable[Node]) -> tuple[Scope, dict[int, Scope]]:
    """Returns the root of the scopes, and each operation's scope by the operation's id.

    "a/b/c" lies in "a/b", which lies in "a"; an operation with a scope's name lies in that scope,
    and what stands in a function's body lies in that, whatever its name. A loop or branching
    operation lies in its frame, with the bodies that it runs; what runs in a loop that was made by
    hand, in the scope of that.
    """
    nodes = tuple(nodes)
    paths, outside = _scope_paths(nodes), around(nodes)
    root = Scope("", None, 0)
    scopes, homes = {"": root}, {}
    for node in nodes:
        path = node.name if node.name in paths else parent_path(node.name)
        if node.scope and not is_frame(node):
            path = node.scope
        elif is_frame(node):
            path = frame_path(node)
        elif _leaves_body(node):
            path = node.body
        scope = homes[node.id] = scopes.get(path) or _make_scope(path, scopes, outside)
        scope.children.append(node)
        if path and path == node.name:
            scope.own = node
        above: Scope | None = scope
        while above is not None:
            above.size += 1
            above = above.parent
    _note_bodies(nodes, scopes)
    _note_frames(nodes, homes, scopes)
    return root, homes


def _note_bodies(nodes: Sequence[Node], scopes: Mapping[str, Scope]) -> None:
    bodies = bodies_of(nodes)
    for name, body in bodies.items():
        if name in scopes:
            scopes[name].body = body
            scopes[name].is_gradient = is_of_gradient(name, bodies)


def _note_frames(
    nodes: Iterable[Node], homes: Mapping[int, Scope], scopes: Mapping[str, Scope]
) -> None:
    nodes = tuple(nodes)
    for node in nodes:
        if node.frame in scopes and node.frame and scopes[node.frame].frame is None:
            scopes[node.frame].frame = node
    for node in filter(is_frame, nodes):
        homes[node.id].frame = node
        for name, role in zip(node.runs, node.roles, strict=False):
            if name in scopes:
                scopes[name].role = role


def _leaves_body(node: Node) -> bool:
    return bool(node.body) and not node.name.startswith(node.body + "/")


def title_of(node: Node) -> str:
    """The name of an operation within its scope."""
    return node.name if _leaves_body(node) and not node.scope else short_name(node.name)


def _scope_paths(nodes: Iterable[Node]) -> set[str]:
    paths: set[str] = set()
    for node in nodes:
        path = parent_path(node.name)
        while path and path not in paths:
            paths.add(path)
            path = parent_path(path)
    return paths


def _make_scope(path: str, scopes: dict[str, Scope], outside: Mapping[str, str]) -> Scope:
    missing = []
    while path not in scopes:
        missing.append(path)
        path = outside.get(path, parent_path(path))
    scope = scopes[path]
    for inner in reversed(missing):
        scope.children.append(Scope(inner, scope, scope.depth + 1))
        scope = scopes[inner] = scope.children[-1]  # type: ignore[assignment]
    return scope


def tensor_text(output: Output) -> str:
    """Returns e.g. "float64[?,16]", or "float64[...]" where the rank is not known."""
    if output.shape is None:
        return f"{output.dtype}[...]"
    return f"{output.dtype}[{','.join('?' if d is None else str(d) for d in output.shape)}]"


def count_text(count: int, noun: str = "op") -> str:
    """Returns e.g. "1 op" or "36 000 ops"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}".replace(",", " ")


def size_text(scope: Scope) -> str:
    """Returns e.g. "4 ops", of a function "4 ops, 2 calls", and of a frame "loop, 4 ops"."""
    size = count_text(scope.size)
    if scope.frame is not None and (scope.frame.roles or scope.frame.frame):
        return f"{'loop' if is_loop(scope.frame) else 'branch'}, {size}"
    if scope.body is None or not scope.is_function:
        return size
    return f"{size}, {count_text(len(scope.body.calls), 'call')}"


def text(nodes: Sequence[Node]) -> str:
    """Returns an indented tree of the scopes and operations, of at most `LINES` lines.

    An operation's line is "name  Type  dtype[shape]  <- inputs", "^" marking operations that must
    merely finish first. Scopes are opened from the outside inwards while there is room; long runs
    of like operations or scopes are folded; functions' gradients stay closed. A function's body is
    marked as its calls are, and says how often it is called.
    """
    root, _ = scope_tree(nodes)
    by_id = {node.id: node for node in nodes}
    rows = {root: _rows(root)}
    for scope in _to_open(root, rows):
        rows[scope] = _rows(scope)
    lines = [f"graph: {count_text(root.size, 'operation')}"]
    hidden = _write(root, rows, by_id, lines)
    if hidden:
        lines.append(f"... {count_text(hidden, 'operation')} more, in closed scopes or further on")
    return "\n".join(lines)


@dataclass(frozen=True)
class _Row:
    """One line to be: a scope or an operation, or those like it that follow (`repeats`)."""

    shown: Scope | Node
    repeats: tuple[Scope | Node, ...] = ()


def _rows(scope: Scope) -> list[_Row]:
    """Folds runs of like neighbours: the first stays, the others become one line."""
    rows: list[_Row] = []
    at = 0
    while at < len(scope.children):
        first, end = scope.children[at], at + 1
        kind = _kind(first)
        while end < len(scope.children) and _kind(scope.children[end]) == kind:
            end += 1
        run = scope.children[at:end]
        if len(run) >= REPEATS:
            rows += [_Row(first), _Row(run[1], tuple(run[1:]))]
        else:
            rows += [_Row(child) for child in run]
        at = end
    return rows


def _kind(child: Scope | Node) -> tuple[object, ...]:
    """What makes neighbours alike: the name but for digits, and the type or the inside."""
    if isinstance(child, Node):
        return (_stem(child.name), child.type, child.calls, len(child.inputs))
    inside = tuple(c.type if isinstance(c, Node) else _stem(c.path) for c in child.children[:20])
    return (_stem(child.path), child.size, inside)


def _stem(name: str) -> str:
    return "".join(c for c in short_name(name) if not c.isdigit()).rstrip("_")


def _to_open(root: Scope, rows: Mapping[Scope, list[_Row]]) -> list[Scope]:
    """The scopes to open, outer ones first, so that the text stays within `LINES`."""
    left = LINES - 2 - len(rows[root])
    queue = [root]
    opened: list[Scope] = []
    for scope in queue:
        for row in _rows(scope):
            inner = row.shown
            if row.repeats or isinstance(inner, Node) or inner.is_gradient:
                continue
            left -= len(_rows(inner))
            if left < 0:
                return opened
            opened.append(inner)
            queue.append(inner)
    return opened


def _write(
    root: Scope, rows: Mapping[Scope, list[_Row]], by_id: Mapping[int, Node], lines: list[str]
) -> int:
    """Appends the lines; returns how many operations have none."""
    told = 0
    stack = [(row, 0) for row in reversed(rows[root])]
    while stack and len(lines) < LINES - 1:
        row, depth = stack.pop()
        lines.append("  " * depth + _line(row, by_id))
        if row.repeats:
            told += sum(1 if isinstance(c, Node) else c.size for c in row.repeats)
        elif isinstance(row.shown, Node):
            told += 1
        else:
            stack += [(inner, depth + 1) for inner in reversed(rows.get(row.shown, ()))]
    return root.size - told


def _line(row: _Row, by_id: Mapping[int, Node]) -> str:
    shown = row.shown
    if row.repeats:
        last = row.repeats[-1]
        names = f"{_short(shown)} to {_short(last)}" if last is not shown else _short(shown)
        if isinstance(shown, Node):
            return f"... {len(row.repeats)} more {kind_of(shown)}: {names}"
        return f"... {count_text(len(row.repeats), 'scope')} more like it: {names}"
    if isinstance(shown, Scope):
        return f"{shown.name}/  {size_text(shown)}"
    made = ", ".join(tensor_text(o) for o in shown.outputs[:NAMED])
    result = "-> result" if shown.is_result else ""
    parts = (_short(shown), kind_of(shown), made, _sources(shown, by_id), result)
    return "  ".join(part for part in parts if part)


def _short(child: Scope | Node) -> str:
    """The last part of a name, on one line."""
    name = short_name(child.path) if isinstance(child, Scope) else title_of(child)
    return " ".join(name.split())


def _sources(node: Node, by_id: Mapping[int, Node]) -> str:
    def name(source: int) -> str:
        if source not in by_id:
            return f"#{source}"
        full = by_id[source].name
        home = parent_path(node.name)
        near = parent_path(full) in (home, node.name) or full == home
        return short_name(full) if near else full

    names = [name(i) + (f":{k}" if k else "") for i, k in node.inputs]
    names += [f"^{name(i)}" for i in node.control]
    if not names:
        return ""
    rest = len(names) - NAMED
    return "<- " + ", ".join(names[:NAMED]) + (f", {rest} more" if rest > 0 else "")
