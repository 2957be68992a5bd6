"""Graphs in files."""

from __future__ import annotations

import os
from typing import Any

from flowscope.errors import DTypeError, NotFoundError
from flowscope.graph.graph import Graph
from flowscope.graph.providers import serializer
from flowscope.graph.serialization.build import import_graph_def, read_graph_def
from flowscope.graph.serialization.definition import GraphDef, as_graph_def
from flowscope.graph.serialization.whole_files import os_errors, replaced
from flowscope.graph.values.expected import expected

__all__ = ["read_graph", "write_graph"]


def write_graph(
    graph_or_graph_def: Any, logdir: Any, name: str, as_text: bool = True, form: str = "own"
) -> str:
    """Writes a graph to a file and returns the file's path.

    Args:
        graph_or_graph_def: A Graph or a GraphDef.
        logdir: The folder; it is made if it does not exist.
        name: The file's name.
        as_text: Whether the file has the text form (operations and seed) or else the JSON form
            (also origins and counts of names). In TensorFlow's form: text or binary.
        form: "own", or "tensorflow" for a GraphDef that TensorFlow reads.

    Raises:
        DTypeError: if an attribute of an operation cannot be written.
        UnimplementedError: if TensorFlow has no such operations: all of them, by name and type.
        FailedPreconditionError: for TensorFlow's form, if protobuf is not installed.
    """
    found = graph_or_graph_def
    if form not in ("own", "tensorflow"):
        raise expected('the form "own" or "tensorflow"', repr(form))
    if form == "tensorflow":
        path = os.path.join(os.fspath(logdir), name)
        write_bytes(path, serializer("write_tensorflow")(_graph(found), as_text))
        return path
    graph_def = found.as_graph_def() if isinstance(found, Graph) else as_graph_def(found)
    path = os.path.join(os.fspath(logdir), name)
    write_file(path, graph_def.text() if as_text else graph_def.to_json())
    return path


def read_graph(path: Any) -> GraphDef:
    """Returns the graph in a file that `write_graph` wrote, in either form, or TensorFlow.

    A graph that TensorFlow has frozen is read in its binary and text forms, see
    `GraphDef.FromString`.

    Raises:
        NotFoundError: if there is no such file.
        DataLossError: if it is damaged.
        InvalidArgumentError: if it holds no graph.
    """
    return read_graph_def(read_file(path))


def write_file(path: Any, text: str) -> None:
    """Writes a file whole or not at all; makes its folder.

    Raises:
        ResourceExhaustedError: if the disk is full.
        PermissionDeniedError: if the file may not be written.
    """
    write_bytes(path, text.encode())


def write_bytes(path: Any, data: bytes) -> None:
    """Writes a file whole or not at all, as `write_file` does."""
    with replaced(os.fsdecode(path)) as file:
        file.write(data)


def _graph(found: Any) -> Graph:
    """The graph, or one made of a definition."""
    if isinstance(found, Graph):
        return found
    graph = Graph()
    with graph.as_default():
        import_graph_def(as_graph_def(found), name="")
    return graph


def read_file(path: Any) -> bytes:
    """Returns a file's bytes.

    Raises:
        NotFoundError: if there is none.
        PermissionDeniedError: if it may not be read.
    """
    if not isinstance(path, str | bytes | os.PathLike):
        raise DTypeError(f"expected a file's path, got {path!r}")
    path = os.fsdecode(path)
    if os.path.isdir(path):
        raise NotFoundError(f"there is no file {path!r}: it is a folder")
    with os_errors(path), open(path, "rb") as file:
        return file.read()
