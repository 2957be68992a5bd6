"""ONNX's files become graphs of ours. Users enter by `fs.onnx`.

In: a file, bytes or an `onnx.ModelProto`, opset 6 and newer. Out: a graph whose operations lie in
the scopes that the nodes' names spell, its inputs and outputs by name. Nothing in a file runs.

    protos     tensors and element types -> arrays and dtypes, checked against sizes
    node       a node while it is converted: inputs, attributes, what is known
    table      operator -> converter; ops has the converters
    kernels    what NumPy computes of operators that no ops of ours make up
    bodies     operators that the standard defines by functions
    importer   nodes in turn -> operations
    origins    which node an operation stems from
    reading    file, bytes or message -> the default graph
    model      the door: a graph, a session, inputs and outputs by name
    exporting  a graph of ours -> a model
    writers    what each type of operation is written as
"""

import typing as _typing

from flowscope.api.absent import refusal as _refusal
from flowscope.onnx.model import Model, export, load

__all__ = ["Model", "export", "load"]


def __getattr__(name: str) -> _typing.Any:
    """Raises AttributeError that says which names there are."""
    return _refusal(__name__, globals())(name)
