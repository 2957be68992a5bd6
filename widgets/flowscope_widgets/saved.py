"""What a saved notebook holds of a view, and shows where no kernel runs."""

from __future__ import annotations

import json
from typing import Any

from flowscope.live.schema import Snapshot
from flowscope.live.wire import to_json
from flowscope_widgets import picture

#: The mime type that the JupyterLab extension shows: the live view, or the picture without a
#: kernel.
MIME = "application/vnd.flowscope.view+json"
#: Largest snapshot, in characters of JSON, that is kept in the notebook.
KEPT_CHARS = 300_000
#: Operations beyond which a snapshot is larger than that in any case.
KEPT_OPERATIONS = KEPT_CHARS // 150


def saved_picture(snapshot: Snapshot, *, is_drawn: bool = True) -> dict[str, Any]:
    """Returns what a saved notebook shows: a picture, a text, and the snapshot if small.

    Args:
        snapshot: The graph.
        is_drawn: Whether picture and snapshot are there, which take time; the picture is never
            there where the front end was not built.
    """
    view: dict[str, Any] = {"version": 0, "model_id": "", "svg": "", "snapshot": None}
    view["text"] = text = picture.text(snapshot.graph.added)
    if not is_drawn:
        return {MIME: view, "text/plain": text}
    nodes = snapshot.graph.added
    if len(nodes) <= KEPT_OPERATIONS:
        plain = to_json(snapshot)
        view["snapshot"] = plain if len(json.dumps(plain)) <= KEPT_CHARS else None
    if not picture.can_draw():
        return {MIME: view, "text/plain": text}
    view["svg"] = svg = picture.svg(nodes)
    return {MIME: view, "image/svg+xml": svg, "text/plain": text}


__all__ = ["MIME", "saved_picture"]
