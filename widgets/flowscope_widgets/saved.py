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


def saved_picture(snapshot: Snapshot) -> dict[str, Any]:
    """Returns what a saved notebook shows: a picture, a text, and the snapshot if small."""
    nodes = snapshot.graph.added
    svg, text = picture.svg(nodes), picture.text(nodes)
    plain = to_json(snapshot)
    kept = plain if len(json.dumps(plain)) <= KEPT_CHARS else None
    view = {"version": 0, "model_id": "", "svg": svg, "text": text, "snapshot": kept}
    return {MIME: view, "image/svg+xml": svg, "text/plain": text}


__all__ = ["MIME", "saved_picture"]
