"""The static picture of a graph, for a notebook that is read without a kernel: SVG, and text.

The SVG is drawn by the front end's own code - model, layout, draw list - which the build bundles
without what needs a page (`static/picture.js`). V8 runs it in this process; so the live picture and
the saved one are the same by construction.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
from array import array
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from flowscope.live.graphs.columns import columns_of
from flowscope.live.graphs.text import text
from flowscope.live.protocol.schema import Node
from flowscope.live.watchers.wire import plain

_SCRIPT = Path(__file__).parent / "static" / "picture.js"


class _Drawer:
    """V8 with the bundle, made when the first picture is drawn; one for the process.

    Threads take turns. V8's own threads stay with the parent of a forked process, which therefore
    draws no pictures.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._context: Any = None
        self._process = 0

    @property
    def is_usable(self) -> bool:
        """Whether V8 was not made yet, or in this process."""
        return self._process in (0, os.getpid())

    def call(self, function: str, request: str) -> str:
        """Sends a request to the bundle and gives its answer, both as text."""
        self.start()
        with self._lock:
            return str(self._context.call(f"flowscopePicture.{function}", request))

    def start(self) -> None:
        """Makes V8, which takes 0.2 s, if it is not there yet."""
        with self._lock:
            if self._context is None:
                self._context = _context()
                self._process = os.getpid()
                atexit.register(self._close)

    def _close(self) -> None:
        """Ends V8 while Python's threads still run; left to the interpreter's end, it can hang."""
        if self.is_usable:
            self._context.close()


def _context() -> Any:
    """Returns V8 with the bundle in it; importing it takes 0.15 s, making it 0.05 s."""
    from py_mini_racer import MiniRacer

    context = MiniRacer()
    context.eval(_SCRIPT.read_text("utf-8"))
    return context


_drawer = _Drawer()


def can_draw() -> bool:
    """Whether the front end was built, which draws the picture, and V8 is not a parent's."""
    return _SCRIPT.is_file() and _drawer.is_usable


def start() -> None:
    """Prepares drawing, so that the first picture takes no longer than others."""
    if can_draw():
        _drawer.start()


def svg(nodes: Sequence[Node], *, open_scopes: Collection[str] = (), title: str = "") -> str:
    """Returns a picture of a graph as SVG; the same graph gives the same text.

    Args:
        nodes: The operations, in the order of making.
        open_scopes: Paths of scopes to show open, e.g. "train/gradients", with those around them.
        title: Stands above the picture.
    """
    return _drawer.call("svg", _request(nodes, open_scopes, title))


def dot(
    nodes: Sequence[Node],
    *,
    open_scopes: Collection[str] | None = None,
    title: str = "graph",
    chosen: Mapping[str, bool] | None = None,
    isolated: str = "",
    devices: Sequence[str] = (),
    is_cut: bool = False,
) -> str:
    """Returns the parts of a digraph of the picture as JSON; "text" is the whole in DOT.

    Args:
        nodes: The operations, in the order of making.
        open_scopes: Paths of scopes to show open, as clusters, with those around them; "*" for all.
            None for those that are chosen, or that a first look opens.
        title: The graph's name.
        chosen: Whether scopes are open, by path, as the user has chosen in a view.
        isolated: The name of what is shown alone; "" for all.
        devices: The session's devices, which have the colours that they have in a view.
        is_cut: Whether the topmost scopes are the parts of devices.
    """
    more = {
        "chosen": dict(chosen or {}),
        "isolated": isolated,
        "devices": list(devices),
        "isCut": is_cut,
        "isExact": open_scopes is not None,
    }
    return _drawer.call("dot", _request(nodes, open_scopes or (), title, **more))


def _request(
    nodes: Sequence[Node], open_scopes: Collection[str], title: str, **more: object
) -> str:
    columns, buffer = columns_of(nodes)
    numbers = array("i")
    numbers.frombytes(buffer)
    return json.dumps(
        {
            "columns": plain(columns),
            "numbers": numbers.tolist(),
            "open": list(open_scopes),
            "title": title,
            **more,
        }
    )


__all__ = ["can_draw", "dot", "start", "svg", "text"]
