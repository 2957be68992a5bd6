"""Summaries for TensorBoard, under TensorFlow 1's names.

Written by `python -m flowscope.api.exports`: what is changed here is lost.
"""

from flowscope.graph.messages.event_messages import (
    Event as Event,
    SessionLog as SessionLog,
    Summary as Summary,
)
from flowscope.ops.host.summaries import (
    histogram as histogram,
    image as image,
    merge as merge,
    merge_all as merge_all,
    scalar as scalar,
    tensor_summary as tensor_summary,
    text as text,
)
from flowscope.train.events.summary_writer import (
    FileWriter as FileWriter,
    FileWriterCache as FileWriterCache,
)

__all__ = [
    "Event",
    "FileWriter",
    "FileWriterCache",
    "SessionLog",
    "Summary",
    "histogram",
    "image",
    "merge",
    "merge_all",
    "scalar",
    "tensor_summary",
    "text",
]
