"""Models that TensorFlow has saved: graph, signatures, variables. Users enter by `fs.saved_model`.

In: a folder with `saved_model.pb` and `variables/`, of TensorFlow 1 or 2. Out: a graph whose
variables have their values, and signatures: named inputs and outputs. `simple_save` writes such a
folder for TensorFlow; `fs.train.export_meta_graph` and `fs.train.Saver` write models of ours.
"""

import typing as _typing

from flowscope.api.absent import refusal as _refusal
from flowscope.saved_model import loader, signature_constants, tag_constants
from flowscope.saved_model.folder import contains_saved_model
from flowscope.saved_model.model import LoadedModel, LoadedSignature, load
from flowscope.saved_model.saving import simple_save

__all__ = [
    "LoadedModel",
    "LoadedSignature",
    "contains_saved_model",
    "load",
    "loader",
    "signature_constants",
    "simple_save",
    "tag_constants",
]


def __getattr__(name: str) -> _typing.Any:
    """Raises AttributeError; of names that TensorFlow has it says what to use instead."""
    return _refusal(__name__, globals())(name)
