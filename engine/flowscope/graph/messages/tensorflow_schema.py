"""TensorFlow's messages by the protocol buffers' library: an extra, loaded when a file needs it.

`tensorflow.proto` has the schema, with TensorFlow's names and field numbers; `tensorflow.binpb` is
its compiled form, which is loaded into a pool of its own: TensorFlow may be in the same process.

The library is an extra: `pip install flowscope[tensorflow]`.
"""

from __future__ import annotations

import functools
from importlib import import_module
from pathlib import Path
from typing import Any

from flowscope.errors import DataLossError, FailedPreconditionError, InvalidArgumentError

_PACKAGE = "flowscope.tensorflow"


def message_class(name: str) -> Any:
    """Returns the class of the messages of this name, such as "GraphDef".

    Raises:
        FailedPreconditionError: if the library is not installed.
    """
    return _classes()[f"{_PACKAGE}.{name}"]


@functools.cache
def _classes() -> Any:
    _library("message_factory")
    pools, factory = _library("descriptor_pool"), _library("message_factory")
    data = Path(__file__).with_name("tensorflow.binpb").read_bytes()
    files = _library("descriptor_pb2").FileDescriptorSet.FromString(data).file
    return factory.GetMessages(files, pools.DescriptorPool())


def _library(module: str) -> Any:
    try:
        return import_module(f"google.protobuf.{module}")  # an extra
    except ImportError as error:
        raise FailedPreconditionError(
            "TensorFlow's files need protobuf, which is not installed: "
            "pip install flowscope[tensorflow]"
        ) from error


def parse(name: str, data: Any, what: str) -> Any:
    """Returns the message of this name that bytes hold.

    Args:
        name: The message's name.
        data: The bytes.
        what: What messages of errors call them.

    Raises:
        DataLossError: if they hold no such message.
    """
    try:
        return message_class(name).FromString(data)
    except _library("message").DecodeError as e:
        raise DataLossError(f"{what} is damaged: expected a serialized {name}, {e}") from None


def parse_text(name: str, text: str, what: str) -> Any:
    """Returns the message of this name that a text in protocol buffers' form describes.

    Raises:
        InvalidArgumentError: if it describes none: with line and column.
    """
    library = _library("text_format")
    try:
        return library.Parse(text, message_class(name)(), allow_unknown_field=True)
    except (library.ParseError, RecursionError, ValueError) as e:
        raise InvalidArgumentError(f"{what}: expected a {name} as text, {e}") from None


def text_of(message: Any) -> str:
    """Returns a message in protocol buffers' text form."""
    return str(_library("text_format").MessageToString(message))


__all__ = ["message_class", "parse", "parse_text", "text_of"]
