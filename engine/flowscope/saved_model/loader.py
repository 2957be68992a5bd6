"""Saved models into a session's graph, as TensorFlow 1 loads them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowscope.graph.graph import Graph
from flowscope.graph.messages.tensorflow_schema import parse
from flowscope.graph.serialization.build import import_graph_def
from flowscope.graph.values.expected import expected_dtype
from flowscope.ops.state.graph_keys import GraphKeys
from flowscope.ops.state.variable_serialization import variable_of
from flowscope.saved_model.folder import assets_of, contains_saved_model, meta_graph, variables_of

#: Collections of operations that run once behind the restoring.
_INIT = ("saved_model_main_op", "legacy_init_op")
_INIT_SIGNATURE = "__saved_model_init_op"
_VARIABLES = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES)


def maybe_saved_model_directory(export_dir: Any) -> bool:
    """Whether a folder has a saved model."""
    return contains_saved_model(export_dir)


def load(
    sess: Any,
    tags: Iterable[str],
    export_dir: Any,
    import_scope: str | None = None,
) -> Any:
    """Adds a saved model to a session's graph, restores its variables and runs its init operation.

    What TensorFlow uses to save the model again is left out; a `fs.train.Saver` saves it.

    Args:
        sess: The session.
        tags: The tags of the graph: those that it has, and no others.
        export_dir: The model's folder.
        import_scope: Name scope of what is added; none by default.

    Returns:
        TensorFlow's message `MetaGraphDef` without the graph: its `signature_def` has, by name, the
        names of inputs and outputs in the file.

    Raises:
        NotFoundError: if there is no model in the folder, or none of these tags, or op types are
            not known.
        DataLossError: if a file is damaged.
        FailedPreconditionError: if protobuf is not installed.
    """
    if not callable(getattr(sess, "run", None)):
        raise expected_dtype("a session", repr(sess))
    meta, read_graph = meta_graph(export_dir, tags)
    scope = f"{import_scope}/" if import_scope else ""
    with sess.graph.as_default():
        import_graph_def(read_graph(), name=import_scope or "")
    add_variables(sess.graph, meta, scope)
    restore(sess, meta, export_dir, scope)
    return meta


def add_variables(graph: Graph, meta: Any, scope: str) -> None:
    """Makes the variables that a model's collections name, and adds them to the graph's."""
    known: dict[str, Any] = {}
    with graph.as_default():
        for collection in _VARIABLES:
            for value in meta.collection_def[collection].bytes_list.value:
                written = parse("VariableDef", value, "the model")
                name = scope + written.variable_name
                if name not in known:
                    known[name] = _variable(graph, written, scope)
                graph.add_to_collection(collection, known[name])


def _variable(graph: Graph, written: Any, scope: str) -> Any:
    facts = {
        "handle": written.variable_name,
        "initial_value": written.initial_value_name or written.snapshot_name,
        "initializer": written.initializer_name,
        "snapshot": written.snapshot_name,
        "trainable": written.trainable,
        "synchronization": "AUTO",
        "aggregation": "NONE",
    }
    return variable_of(facts, lambda name: graph.as_graph_element(scope + name))


def restore(sess: Any, meta: Any, export_dir: Any, scope: str) -> None:
    """Restores a model's variables, and runs what is to run once behind that."""
    saver, prefix = meta.saver_def, variables_of(export_dir)
    if saver.restore_op_name:
        sess.run(scope + saver.restore_op_name, {scope + saver.filename_tensor_name: prefix})
    feeds = {scope + name: path for name, path in assets_of(export_dir, meta).items()}
    for name in _init_operations(meta):
        operation = sess.graph.as_graph_element(scope + name)
        sess.run(operation, feeds)


def _init_operations(meta: Any) -> list[str]:
    for collection in _INIT:
        names = list(meta.collection_def[collection].node_list.value)
        if names:
            return names
    signature = meta.signature_def.get(_INIT_SIGNATURE)
    return [info.name for info in signature.outputs.values()] if signature else []


__all__ = ["load", "maybe_saved_model_directory"]
