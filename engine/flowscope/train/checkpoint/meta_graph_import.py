"""Graphs with their variables, collections and savers out of files."""

from __future__ import annotations

import os
from typing import Any

from flowscope.errors import DTypeError
from flowscope.graph.serialization.meta import UNBOUND, MetaGraphDef, check_unbound, import_meta
from flowscope.graph.values.expected import expected_dtype
from flowscope.train.checkpoint.meta_graph import read_meta_graph
from flowscope.train.checkpoint.saver import saver_of

__all__ = ["import_meta_graph"]


def import_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    **kwargs: Any,
) -> Any:
    """Adds a written graph to the default graph, with its variables and collections.

    Returns the saver that was written with it, or else one of all variables; None if there are no
    variables.

    Args:
        meta_graph_or_file: What `export_meta_graph` returned, or the file that it wrote.
        clear_devices: Whether the devices that were asked for are forgotten.
        import_scope: Name scope of what is added; none by default.
        **kwargs: `input_map`, as in `fs.import_graph_def`; `unbound_inputs_col_name`, as of
            `export_meta_graph`: what this collection lists must be in `input_map`.

    Raises:
        NotFoundError: if the file does not exist, or the graph uses op types that are not known.
        DataLossError: if the file is damaged.
        InvalidArgumentError: if it holds no graph, or one that does not hold together.
    """
    meta = meta_graph_or_file
    if isinstance(meta, str | os.PathLike):
        meta = read_meta_graph(meta)
    if not isinstance(meta, MetaGraphDef):
        raise expected_dtype("a MetaGraphDef or a file's path", repr(meta))
    input_map = kwargs.pop("input_map", None)
    unbound = kwargs.pop("unbound_inputs_col_name", UNBOUND)
    if kwargs:
        raise DTypeError(f"import_meta_graph has no arguments {', '.join(kwargs)}")
    check_unbound(meta, unbound, input_map or ())
    imported = import_meta(meta, import_scope or "", clear_devices, input_map)
    return saver_of(meta.saver, imported.find)
