"""What files of events hold: `Event`, `Summary` and the messages inside of them.

Names, fields and numbers are those of TensorFlow's messages. A field that holds a message is None
while it is not set.
"""

from __future__ import annotations

from typing import Any, ClassVar

from flowscope.graph.messages.message import repeated
from flowscope.graph.messages.protobuf import (
    BYTES,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    Wire,
    WireMessage,
    message,
)
from flowscope.graph.messages.tensor_arrays import TENSOR

__all__ = ["Event", "HistogramProto", "SessionLog", "Summary", "SummaryMetadata"]


class HistogramProto(WireMessage):
    """How numbers are distributed.

    Attributes:
        min, max, num, sum, sum_squares: Statistics of the numbers.
        bucket_limit: The upper limits of the buckets, growing.
        bucket: How many numbers lie in each bucket.
    """

    min: float = 0.0
    max: float = 0.0
    num: float = 0.0
    sum: float = 0.0
    sum_squares: float = 0.0
    bucket_limit: list[float] = repeated()
    bucket: list[float] = repeated()

    WIRE: ClassVar[Wire] = {
        "min": (1, DOUBLE),
        "max": (2, DOUBLE),
        "num": (3, DOUBLE),
        "sum": (4, DOUBLE),
        "sum_squares": (5, DOUBLE),
        "bucket_limit": (6, DOUBLE),
        "bucket": (7, DOUBLE),
    }


class SummaryMetadata(WireMessage):
    """What a view is to do with a value.

    Attributes:
        plugin_data: Which of TensorBoard's plugins shows it.
        display_name: A name that is shown in the tag's place.
        summary_description: A description, in Markdown.
    """

    class PluginData(WireMessage):
        """The plugin's name, and bytes for it."""

        plugin_name: str = ""
        content: Any = b""

        WIRE: ClassVar[Wire] = {"plugin_name": (1, STRING), "content": (2, BYTES)}

    plugin_data: Any = None
    display_name: str = ""
    summary_description: str = ""

    WIRE: ClassVar[Wire] = {
        "plugin_data": (1, message(PluginData)),
        "display_name": (2, STRING),
        "summary_description": (3, STRING),
    }


class Summary(WireMessage):
    """Values with tags: `value` is a list of `Summary.Value`."""

    class Image(WireMessage):
        """A picture: its size, its number of channels, and a file of it as bytes."""

        height: int = 0
        width: int = 0
        colorspace: int = 0
        encoded_image_string: Any = b""

        WIRE: ClassVar[Wire] = {
            "height": (1, INT),
            "width": (2, INT),
            "colorspace": (3, INT),
            "encoded_image_string": (4, BYTES),
        }

    class Value(WireMessage):
        """One value with its tag: one of `simple_value`, `image`, `histo` and `tensor`."""

        tag: str = ""
        simple_value: Any = None
        image: Any = None
        histo: Any = None
        node_name: str = ""
        tensor: Any = None
        metadata: Any = None

        ONEOFS: ClassVar[dict[str, str]] = {"value": "simple_value image histo tensor"}

    value: list[Any] = repeated()


Summary.Value.WIRE = {
    "tag": (1, STRING),
    "simple_value": (2, FLOAT),
    "image": (4, message(Summary.Image)),
    "histo": (5, message(HistogramProto)),
    "node_name": (7, STRING),
    "tensor": (8, TENSOR),
    "metadata": (9, message(SummaryMetadata)),
}
Summary.WIRE = {"value": (1, message(Summary.Value))}
Summary.LISTS = {"value": Summary.Value}


class SessionLog(WireMessage):
    """That a session began, ended or wrote a checkpoint: one of the constants is the `status`."""

    STATUS_UNSPECIFIED: ClassVar[int] = 0
    START: ClassVar[int] = 1
    STOP: ClassVar[int] = 2
    CHECKPOINT: ClassVar[int] = 3

    status: int = 0
    checkpoint_path: str = ""
    msg: str = ""

    WIRE: ClassVar[Wire] = {"status": (1, INT), "checkpoint_path": (2, STRING), "msg": (3, STRING)}


class Event(WireMessage):
    """What happened at a time and in a step of training.

    Attributes:
        wall_time: Seconds since 1970.
        step: Number of the step.
        file_version, graph_def, summary, session_log: What happened; one of them. `graph_def` is
            a graph as serialized bytes.
    """

    wall_time: float = 0.0
    step: int = 0
    file_version: str = ""
    graph_def: Any = b""
    summary: Any = None
    session_log: Any = None

    WIRE: ClassVar[Wire] = {
        "wall_time": (1, DOUBLE),
        "step": (2, INT),
        "file_version": (3, STRING),
        "graph_def": (4, BYTES),
        "summary": (5, message(Summary)),
        "session_log": (7, message(SessionLog)),
    }
    ONEOFS: ClassVar[dict[str, str]] = {"what": "file_version graph_def summary session_log"}
