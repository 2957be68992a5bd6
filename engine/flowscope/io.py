"""Graphs in files, under TensorFlow 1's names."""

from flowscope.graph.written.files import (
    read_graph as read_graph,
    write_graph as write_graph,
)
