"""What can be seen of a graph: boxes in boxes, and bundled edges between them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from flowscope.live.bodies import kind_of
from flowscope.live.schema import Node
from flowscope.live.text import Scope, scope_tree, tensor_text, title_of
from flowscope_widgets.picture.frames import Kind, kinds, lines
from flowscope_widgets.picture.opening import MOST, open_scopes

#: Edges that a picture has at most: more are a black area.
MOST_EDGES = 2000


@dataclass(eq=False)
class Box:
    """A box: an operation, a closed scope, or an open scope with boxes in it."""

    #: Unique and stable: "op:12", "scope:a/b".
    id: str
    name: str
    parent: Box | None
    node: Node | None = None
    #: What an operation is, in a word or two; "" for a scope.
    kind: str = ""
    scope: Scope | None = None
    #: None unless this is an open scope.
    children: list[Box] | None = None
    #: Whether no data comes or goes, so that the box stands beside the flow.
    is_aside: bool = False
    #: For a box aside: names of what must finish before it.
    after: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Edge:
    """All tensors, or all control edges, between two boxes."""

    source: Box
    target: Box
    is_control: bool
    #: How many edges of the graph this is.
    count: int
    #: dtype[shape] if all are alike, else "".
    label: str
    #: Whether it leads from a result of a loop's body to where that enters the next iteration.
    is_return: bool = False


@dataclass(frozen=True)
class View:
    """A picture to be laid out and drawn."""

    root: Box
    edges: Sequence[Edge]
    #: Operations in the graph, and those of them that are in closed scopes, and in no box at all.
    count: int
    closed: int
    missing: int
    #: Edges beyond `MOST_EDGES`, which are left out.
    unseen: int

    def leaves(self) -> list[Box]:
        """All boxes that hold no others."""
        return [box for box in walk(self.root) if box.children is None]

    def opened(self) -> list[Box]:
        """All open scopes, outer ones first, the root included."""
        return [box for box in walk(self.root) if box.children is not None]


def walk(root: Box) -> Iterable[Box]:
    """Yields a box and all boxes in it, outer ones first."""
    queue = [root]
    for box in queue:
        yield box
        queue.extend(box.children or ())


def view_of(nodes: Sequence[Node], asked: Collection[str]) -> View:
    """Returns what is to be seen of a graph, with the scopes `asked` for open."""
    tree, homes = scope_tree(nodes)
    opened = open_scopes(tree, asked)
    root = Box("scope:", "", None, scope=tree)
    shown: dict[Scope | int, Box] = {}
    _fill(root, opened, shown, kinds(nodes))
    ends = _ends(nodes, homes, shown)
    edges = _bundle(nodes, ends)
    edges = _set_aside(root, edges)
    visible = sum(box.node is not None for box in walk(root))
    missing = sum(end is None for end in ends.values())
    closed, unseen = tree.size - visible - missing, max(len(edges) - MOST_EDGES, 0)
    return View(root, edges[:MOST_EDGES], tree.size, closed, missing, unseen)


def _fill(
    root: Box, opened: set[Scope], shown: dict[Scope | int, Box], special: Mapping[int, str]
) -> None:
    queue = [root]
    for box in queue:
        scope = box.scope
        if scope is None or scope not in opened:
            continue
        box.children = [_box(child, box, special) for child in scope.children[:MOST]]
        queue.extend(box.children)
        for child in box.children:
            key = child.node.id if child.node else child.scope
            if key is not None:
                shown[key] = child


def _box(child: Scope | Node, parent: Box, special: Mapping[int, str]) -> Box:
    if isinstance(child, Node):
        kind = special.get(child.id) or kind_of(child)
        return Box(f"op:{child.id}", title_of(child), parent, child, kind)
    return Box(f"scope:{child.path}", child.name, parent, scope=child)


def _ends(
    nodes: Iterable[Node], homes: dict[int, Scope], shown: dict[Scope | int, Box]
) -> dict[int, Box | None]:
    """The box that stands for each operation: its own, or a closed scope around it."""
    closed: dict[Scope, Box | None] = {}

    def stands_for(scope: Scope) -> Box | None:
        chain: list[Scope] = []
        at: Scope | None = scope
        while at is not None and at not in closed and at not in shown:
            chain.append(at)
            at = at.parent
        found = None if at is None else closed.get(at, shown.get(at))
        if found is not None and found.children is not None:
            found = None
        closed.update((inner, found) for inner in chain)
        return found

    return {n.id: shown.get(n.id) or stands_for(homes[n.id]) for n in nodes}


def _bundle(nodes: Iterable[Node], ends: dict[int, Box | None]) -> list[Edge]:
    by_id = {node.id: node for node in nodes}
    opened = {i for i, node in by_id.items() if _is_open(node, ends[i])}
    found: dict[tuple[Box, Box, Kind], list[str]] = {}
    for line in lines(by_id, opened):
        source, target = ends.get(line.source), ends.get(line.target)
        if source is None or target is None or source is target:
            continue
        outputs, k = by_id[line.source].outputs, line.output
        label = tensor_text(outputs[k]) if 0 <= k < len(outputs) else ""
        found.setdefault((source, target, line.kind), []).append(label)
    return [
        Edge(source, target, kind == "control", len(labels), label, kind == "return")
        for (source, target, kind), labels in found.items()
        for label in [labels[0] if len(set(labels)) == 1 else ""]
    ]


def _is_open(node: Node, box: Box | None) -> bool:
    """Whether an operation has a box of its own: of a frame's, that it is open."""
    return box is not None and box.node is node


def _set_aside(root: Box, edges: list[Edge]) -> list[Edge]:
    """Marks the boxes without data, and returns the edges that take part in the flow."""
    flows = {box for e in edges if not e.is_control for box in (e.source, e.target)}
    waiting = [e for e in edges if e.is_control]
    while held := {e.source for e in waiting if e.target in flows} - flows:
        flows |= held
    for box in walk(root):
        box.is_aside = box.children is None and box not in flows
    for box in reversed(list(walk(root))):
        if box.children and box.parent:
            box.is_aside = all(child.is_aside for child in box.children)
    for e in edges:
        if e.is_control and _is_beside(e.target) and not _is_beside(e.source):
            e.target.after.append(_told(e.source, e.target))
    return [e for e in edges if not _is_beside(e.source) and not _is_beside(e.target)]


def _is_beside(box: Box | None) -> bool:
    while box is not None:
        if box.is_aside:
            return True
        box = box.parent
    return False


def _told(source: Box, target: Box) -> str:
    """A source's name as seen from the target: short in the same scope."""
    if source.parent is target.parent:
        return source.name
    return source.node.name if source.node else source.scope.path if source.scope else source.name
