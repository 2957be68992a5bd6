"""What a kernel sends of a model's file, for the documents of the JupyterLab extension."""

from __future__ import annotations

from typing import Any

from IPython.display import display

from flowscope.live.watchers.model_files import read_model
from flowscope.live.watchers.show import graph_feed
from flowscope_widgets.packing import packed
from flowscope_widgets.saved import MIME


def send_model(path: Any) -> None:
    """Displays the graph of a model in a file, as a document shows it.

    Args:
        path: The file, see `flowscope.live.watchers.model_files.read_model`.

    Raises:
        OpError: if it cannot be read.
    """
    snapshot = graph_feed(read_model(path)).describe()
    view = {"version": 1, "model_id": "", "svg": "", "text": "", "packed": packed(snapshot)}
    display({MIME: view}, raw=True)  # type: ignore[no-untyped-call]


__all__ = ["send_model"]
