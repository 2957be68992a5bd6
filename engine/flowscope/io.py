"""Graphs in files, and what files hold, under TensorFlow 1's names."""

from flowscope.graph.written.files import (
    read_graph as read_graph,
    write_graph as write_graph,
)
from flowscope.ops.parsing import decode_csv as decode_csv, decode_raw as decode_raw
from flowscope.ops.strings import decode_base64 as decode_base64, encode_base64 as encode_base64
