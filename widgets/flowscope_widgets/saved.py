"""What a saved notebook holds of a view, and shows where no kernel runs."""

from __future__ import annotations

from typing import Any

from flowscope.live.protocol.schema import Snapshot
from flowscope_widgets import picture
from flowscope_widgets.packing import packed

#: The mime type that the JupyterLab extension shows: the live view, or the picture without a
#: kernel.
MIME = "application/vnd.flowscope.view+json"
#: Largest snapshot, in characters, that is kept in the notebook; 15 000 operations take a third.
KEPT_CHARS = 300_000
#: Operations beyond which none is kept: packing them would take more than half a second.
KEPT_OPERATIONS = 40_000


def saved_picture(snapshot: Snapshot, *, is_drawn: bool = True) -> dict[str, Any]:
    """The contents for a saved notebook: a picture, a text, and the snapshot if it is small.

    Args:
        snapshot: The graph.
        is_drawn: Whether picture and snapshot are there, which take time; the picture is never
            there where the front end was not built.
    """
    view: dict[str, Any] = {"version": 1, "model_id": "", "svg": "", "packed": ""}
    view["text"] = text = picture.text(snapshot.graph.added)
    if not is_drawn:
        return {MIME: view, "text/plain": text}
    nodes = snapshot.graph.added
    if len(nodes) <= KEPT_OPERATIONS:
        text_of_snapshot = packed(snapshot)
        view["packed"] = text_of_snapshot if len(text_of_snapshot) <= KEPT_CHARS else ""
    if not picture.can_draw():
        return {MIME: view, "text/plain": text}
    view["svg"] = svg = picture.svg(nodes)
    return {MIME: view, "image/svg+xml": svg, "text/plain": text}


__all__ = ["MIME", "saved_picture"]
