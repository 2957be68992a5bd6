"""Files of models that others made: ONNX's, TensorFlow's and ours, as graphs to be shown."""

from __future__ import annotations

import os
from typing import Any

from flowscope.errors import NotFoundError
from flowscope.graph.graph import Graph
from flowscope.graph.serialization.build import import_graph_def
from flowscope.graph.serialization.files import read_graph
from flowscope.live.watchers.show import save_html

#: The file of a saved model in its folder.
_SAVED = ("saved_model.pb", "saved_model.pbtxt")


def read_model(path: Any) -> Graph:
    """Returns the graph of a model in a file or folder.

    Args:
        path: A file of ONNX (`.onnx`), a graph of TensorFlow (`.pb`, `.pbtxt`) or of ours in its
            text or JSON form, or the folder of a saved model, or that model's `saved_model.pb`:
            of several graphs the one with the tag "serve".

    Raises:
        NotFoundError: if there is no such file, or no model in the folder.
        FailedPreconditionError: if the package that reads it is not installed.
        OpError: if it is damaged, or has operations that are not known.
    """
    path = os.fsdecode(path)
    if not os.path.exists(path):
        raise NotFoundError(f"there is no file {path!r}")
    if path.lower().endswith(".onnx"):
        from flowscope.onnx import load as load_onnx  # at need, as below

        with load_onnx(path) as model:
            return model.graph
    folder, name = os.path.split(path)
    if os.path.isdir(path) or name in _SAVED:
        return _saved_graph(path if os.path.isdir(path) else folder or os.curdir)
    graph = Graph()
    with graph.as_default():
        import_graph_def(read_graph(path), name="")
    return graph


def _saved_graph(folder: str) -> Graph:
    """The only graph of a saved model; of several the one to be served."""
    from flowscope.saved_model import load, tag_constants

    try:
        model = load(folder)
    except NotFoundError as error:
        try:
            model = load(folder, [tag_constants.SERVING])
        except NotFoundError:
            raise error from None
    with model:
        return model.graph


def write_model_page(path: Any, page: Any = None) -> str:
    """Writes the view of a model to one HTML page; returns the page's path.

    Args:
        path: The model, see `read_model`.
        page: The page's path; the model's name with ".html" in the current folder if it is None.

    Raises:
        OpError: as `read_model` does, or if the page cannot be written.
    """
    name = os.path.basename(os.path.abspath(os.fsdecode(path)))
    target = f"{os.path.splitext(name)[0]}.html" if page is None else os.fsdecode(page)
    save_html(read_model(path), target, name)
    return target


__all__ = ["read_model", "write_model_page"]
