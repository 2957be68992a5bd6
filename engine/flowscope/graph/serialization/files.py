"""Graphs in files."""

from __future__ import annotations

import os
from typing import Any

from flowscope.errors import DTypeError, NotFoundError
from flowscope.graph.graph import Graph
from flowscope.graph.serialization.build import read_graph_def
from flowscope.graph.serialization.definition import GraphDef, as_graph_def
from flowscope.graph.serialization.whole_files import os_errors, replaced

__all__ = ["read_graph", "write_graph"]


def write_graph(graph_or_graph_def: Any, logdir: Any, name: str, as_text: bool = True) -> str:
    """Writes a graph to a file and returns the file's path.

    Args:
        graph_or_graph_def: A Graph or a GraphDef.
        logdir: The folder; it is made if it does not exist.
        name: The file's name.
        as_text: Whether the file has the text form (operations and seed) or else the JSON form
            (also origins and counts of names).

    Raises:
        DTypeError: if an attribute of an operation cannot be written.
    """
    found = graph_or_graph_def
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
    with replaced(os.fsdecode(path)) as file:
        file.write(text.encode())


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
