"""Reads what a saved notebook holds of a graph, as the front end reads it."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np

from flowscope.live.graphs.columns import nodes_of
from flowscope.live.protocol.schema import Columns, Node, Origin, Output


def unpacked(text: str) -> tuple[dict[str, Any], bytes]:
    """Returns the message, with tables in place of operations, and the numbers of its columns."""
    line, _, planes = zlib.decompress(base64.b64decode(text, validate=True)).partition(b"\n")
    return json.loads(line), np.frombuffer(planes, np.uint8).reshape(4, -1).T.tobytes()


def nodes_of_packed(text: str) -> tuple[Node, ...]:
    """Returns the operations."""
    message, numbers = unpacked(text)
    told = message["graph"]["added"]
    shapes = [None if o["shape"] is None else tuple(o["shape"]) for o in told["outputs"]]
    outputs = [Output(o["dtype"], s) for o, s in zip(told["outputs"], shapes, strict=True)]
    origins = [Origin(**origin) for origin in told["origins"]]
    return nodes_of(Columns(**{**told, "outputs": outputs, "origins": origins}), numbers)
