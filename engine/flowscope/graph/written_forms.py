"""What a `Graph` can do with its written forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowscope.graph.providers import serializer
from flowscope.graph.unsupported import refuse

if TYPE_CHECKING:
    from flowscope.graph.graph import Graph
    from flowscope.graph.serialization.definition import GraphDef


class WrittenForms:
    """The part of `Graph` that writes and reads."""

    __slots__ = ()

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> GraphDef:
        """Returns the operations as data that can be changed, written, and imported elsewhere.

        Args:
            from_version: Refused, if not None or 0.
            add_shapes: Shapes are always there.
        """
        del add_shapes
        refuse("Graph.as_graph_def", from_version=from_version)
        return serializer("graph_def_of")(self)  # type: ignore[no-any-return]

    def text(self, exact: bool = False) -> str:
        """Returns the graph as text, a line per operation: see `flowscope.graph.serialization`.

        Args:
            exact: Whether large arrays are written too: only then can the text be read back.
        """
        return self.as_graph_def().text(exact)

    def to_json(self) -> str:
        """Returns the graph's JSON form: operations, seed and names, without values of variables.

        Raises:
            DTypeError: if an attribute of an operation cannot be written.
        """
        return self.as_graph_def().to_json()

    @staticmethod
    def from_text(text: str) -> Graph:
        """Returns the graph that a text describes.

        Raises:
            InvalidArgumentError: if it is no such text: in which line, and what was expected.
            NotFoundError: if it uses an op type that is not known.
        """
        return serializer("graph_of")(serializer("read_text")(text))[0]  # type: ignore[no-any-return]

    @staticmethod
    def from_json(text: str | bytes) -> Graph:
        """Returns the graph that a JSON form describes.

        Raises:
            DataLossError: if it is no JSON.
            InvalidArgumentError: if it is no graph, or one that does not hold together.
            NotFoundError: if it uses an op type that is not known.
        """
        return serializer("graph_of")(serializer("read_json")(text))[0]  # type: ignore[no-any-return]
