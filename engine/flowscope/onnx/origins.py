"""Which node of a model an operation stems from: errors and the inspector tell it."""

from __future__ import annotations

from flowscope.graph.lazy import frozen
from flowscope.graph.origins.origin import Origin, SourceLine


@frozen
class NodePlace(SourceLine):
    """A node, where other operations have a line of code."""

    @property
    def text(self) -> str:
        """The node in words."""
        return self.function

    def __str__(self) -> str:
        return self.function


class NodeOrigin(Origin):
    """The origin of the operations that a node became.

    Args:
        name: The node's name, "" if it has none.
        op_type: Its operator.
        position: Its place among the nodes of its graph, from 0.
    """

    __slots__ = ("_node", "_place")

    def __init__(self, name: str, op_type: str, position: int) -> None:
        super().__init__(())
        called = name[:200] or f"number {position}"
        self._node = (name, op_type, position)
        self._place = NodePlace("model.onnx", None, position + 1, f"ONNX node {called} ({op_type})")

    @property
    def key(self) -> tuple[int, ...]:
        """What two origins of the same node share while both live."""
        return (id(self._place),)

    @property
    def variable(self) -> str:
        """No Python variable."""
        return ""

    @property
    def places(self) -> tuple[SourceLine, ...]:
        """The node."""
        return (self._place,)

    @property
    def place(self) -> SourceLine:
        """The node."""
        return self._place


__all__ = ["NodeOrigin", "NodePlace"]
