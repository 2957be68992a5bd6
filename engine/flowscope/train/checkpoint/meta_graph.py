"""Graphs with their variables and collections, in files and out of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from flowscope.errors import DTypeError
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.serialization.definition import GraphDef
from flowscope.graph.serialization.files import read_file, write_file, write_graph
from flowscope.graph.serialization.meta import (
    UNBOUND,
    MetaGraphDef,
    meta_graph_of,
    register_kind,
)
from flowscope.graph.unsupported import refuse
from flowscope.ops.state.variable_serialization import VARIABLES

__all__ = ["export_meta_graph", "read_meta_graph", "write_graph"]

register_kind(VARIABLES)


def export_meta_graph(
    filename: Any = None,
    meta_info_def: Any = None,
    graph_def: GraphDef | None = None,
    saver_def: dict[str, Any] | None = None,
    collection_list: Iterable[str] | None = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> MetaGraphDef:
    """Returns a graph with its variables and collections as data, and writes it to a file.

    The values of variables are not part of it: a `Saver` keeps those. What cannot be written
    (Python functions, objects of other classes) is left out, with a warning that lists it.

    Args:
        filename: The file; None for none.
        meta_info_def: Refused, if not None.
        graph_def: The operations; those of `graph` by default.
        saver_def: What a saver tells about itself.
        collection_list: Collections to write; all by default.
        as_text: The file has the JSON form in any case.
        graph: The graph; the default graph by default.
        export_scope: Only what lies in this name scope is written, under names without it.
        clear_devices: Whether the devices that were asked for are left out.
        clear_extraneous_savers: Refused.
        strip_default_attrs: Whether attributes that are as the op types have them by default are
            left out.
        save_debug_info: True or False: operations keep the lines that made them.
        **kwargs: `unbound_inputs_col_name`, with `export_scope`: the collection that lists what
            operations of the scope take from outside; "unbound_inputs" by default.

    Raises:
        DTypeError: if an attribute of an operation cannot be written.
    """
    del as_text, save_debug_info
    refuse(
        "train.export_meta_graph",
        meta_info_def=meta_info_def,
        clear_extraneous_savers=clear_extraneous_savers,
    )
    unbound = kwargs.pop("unbound_inputs_col_name", UNBOUND)
    if kwargs:
        raise DTypeError(f"export_meta_graph has no argument {min(kwargs)!r}")
    graph = get_default_graph() if graph is None else graph
    meta = meta_graph_of(graph, graph_def, collection_list, export_scope, unbound)
    meta.saver = saver_def
    if clear_devices:
        for node in meta.graph_def.all_nodes():
            node.device = ""
    if strip_default_attrs:
        meta.graph_def.strip_default_attrs()
    if filename is not None:
        write_file(filename, meta.to_json())
    if meta.skipped:
        warnings.warn("not written: " + "; ".join(meta.skipped), stacklevel=2)
    return meta


def read_meta_graph(path: Any) -> MetaGraphDef:
    """The MetaGraphDef that `export_meta_graph` wrote to a file.

    Raises:
        NotFoundError: if there is no such file.
        DataLossError: if it is damaged.
        InvalidArgumentError: if it holds no graph.
    """
    return MetaGraphDef.from_json(read_file(path))
