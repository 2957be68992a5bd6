"""The folder of a saved model: which graphs it has, and where its variables and assets are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from flowscope.errors import DataLossError, NotFoundError
from flowscope.graph.messages.tensorflow_schema import parse_text
from flowscope.graph.serialization.definition import GraphDef
from flowscope.graph.serialization.files import read_file
from flowscope.graph.values.expected import expected_dtype
from flowscope.tensorflow.reading import read_meta_graphs

_FILE, _TEXT_FILE = "saved_model.pb", "saved_model.pbtxt"


def contains_saved_model(export_dir: Any) -> bool:
    """Whether a folder has a saved model."""
    folder = os.fsdecode(export_dir)
    return any(os.path.isfile(os.path.join(folder, name)) for name in (_FILE, _TEXT_FILE))


def meta_graph(export_dir: Any, tags: Iterable[str] | None) -> tuple[Any, Callable[[], GraphDef]]:
    """Returns the graph of a saved model that has these tags, and no others.

    Returns:
        A `MetaGraphDef` without its graph, and a function that returns that.

    Raises:
        NotFoundError: if there is no model in the folder, or no graph of these tags in it; of
            several where None is given for the tags.
        DataLossError: if the file is damaged.
    """
    wanted = None if tags is None else _tags(tags)
    graphs = list(_meta_graphs(os.fsdecode(export_dir)))
    found = [g for g in graphs if wanted is None or set(g[0].meta_info_def.tags) == wanted]
    if len(found) == 1 or (found and wanted is not None):
        return found[0]
    known = "; ".join(", ".join(g[0].meta_info_def.tags) for g in graphs) or "none"
    asked = "one graph" if wanted is None else f"a graph with the tags {sorted(wanted)}"
    raise NotFoundError(f'expected {asked} in "{os.fsdecode(export_dir)}", it has: {known}')


def _tags(tags: Iterable[str]) -> set[str]:
    if isinstance(tags, str) or not all(isinstance(t, str) for t in tags):
        raise expected_dtype("a list of tags", repr(tags))
    return set(tags)


def _meta_graphs(folder: str) -> Iterable[tuple[Any, Callable[[], GraphDef]]]:
    if not contains_saved_model(folder):
        raise NotFoundError(f'there is no saved model in "{folder}": no {_FILE}')
    path = os.path.join(folder, _FILE)
    if os.path.isfile(path):
        return read_meta_graphs(read_file(path))
    path = os.path.join(folder, _TEXT_FILE)
    message = parse_text("SavedModel", read_file(path).decode(errors="replace"), f'"{path}"')
    return read_meta_graphs(message.SerializeToString())


def variables_of(export_dir: Any) -> str:
    """Returns the prefix of a model's checkpoint."""
    return os.path.join(os.fsdecode(export_dir), "variables", "variables")


def assets_of(export_dir: Any, meta: Any) -> dict[str, str]:
    """Returns the files beside the graph by the tensors that their paths are fed to.

    Raises:
        DataLossError: if one lies outside of the folder.
    """
    found = {}
    for file in meta.asset_file_def:
        name = file.filename
        if os.path.basename(name) != name or name in ("", ".", ".."):
            raise DataLossError(f"expected the name of a file in the model's folder, got {name!r}")
        path = os.path.join(os.fsdecode(export_dir), "assets", name)
        found[file.tensor_info.name] = path
    return found


__all__ = ["assets_of", "contains_saved_model", "meta_graph", "variables_of"]
