"""One scope to be laid out, as vertices and links."""

from __future__ import annotations

from dataclasses import dataclass, field

from flowscope_widgets.picture.visible import Box


@dataclass(eq=False)
class Vertex:
    """A box, a port in a wall ("in": the upper one), or a dummy where an edge passes a rank."""

    kind: str
    w: float
    h: float
    box: Box | None = None
    rank: int = 0
    #: Middle, and upper edge.
    x: float = 0.0
    y: float = 0.0
    #: Where edges of a leaf inside enter or leave an open box: x from its middle.
    ports: dict[tuple[str, Box], float] = field(default_factory=dict)
    above: list[tuple[Vertex, float]] = field(default_factory=list)
    below: list[tuple[Vertex, float]] = field(default_factory=list)


@dataclass(eq=False)
class Link:
    """One segment of edges, between two vertices of the scope."""

    source: Vertex
    target: Vertex
    #: The leaf whose edges these are; it names the ports that the segment passes.
    leaf: Box
    is_back: bool = False
    #: Dummies that it passes, from the upper to the lower rank.
    via: list[Vertex] = field(default_factory=list)

    @property
    def from_offset(self) -> float:
        """Where it leaves its source: x from the middle."""
        return self.source.ports.get(("out", self.leaf), 0.0)

    @property
    def to_offset(self) -> float:
        """Where it enters its target: x from the middle."""
        return self.target.ports.get(("in", self.leaf), 0.0)


@dataclass
class Drawing:
    """The vertices and links of one scope."""

    vertices: list[Vertex] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    #: Vertices by rank, in order from left to right; dummies included.
    layers: list[list[Vertex]] = field(default_factory=list)
