"""What views have had traced, as files that the browser hands to the user."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from flowscope.errors import InvalidArgumentError, OpError
from flowscope.live.answers.batches import Batches
from flowscope.live.protocol.schema import AskExport, Export
from flowscope.live.watchers.bus import LiveChannel
from flowscope.live.watchers.recorded import RecordedFeed
from flowscope.tracing.chrome import chrome_trace
from flowscope.tracing.files import save
from flowscope.tracing.recording import Recording
from flowscope_widgets.html_page import page

#: Larger files are written by Python: a browser would hold them several times.
MAX_BYTES = 64 << 20
NOTHING_TRACED = "no step was traced yet: record some steps first"
_FILES = {
    "chrome": ("steps.trace.json", "application/json"),
    "recording": ("steps.recording", "application/octet-stream"),
    "html": ("steps.html", "text/html"),
}
_Asking = tuple[AskExport, Callable[[Export], None]]
_batches: Batches[_Asking] = Batches("flowscope exports")


def export(feed: LiveChannel, asked: AskExport, send: Callable[[Export], None]) -> None:
    """Has what was traced of a feed's session sent as a file, through `send`, on a thread."""
    _batches.put((asked, send), partial(_answer, feed))


def _answer(feed: LiveChannel, asking: list[_Asking]) -> None:
    for asked, send in asking:
        name, media = _FILES.get(asked.what, ("", ""))
        error, content = "", b""
        try:
            if not name:
                raise InvalidArgumentError(f"expected one of {[*_FILES]}, got {asked.what!r}")
            recording = feed.traced()
            content = _content(recording, asked.what) if recording is not None else b""
            if recording is None:
                error = NOTHING_TRACED
            elif len(content) > MAX_BYTES:
                error = f"the file has {len(content) >> 20} MiB: write it with fs.profile in a cell"
        except OpError as e:
            error = e.message
        told = "" if error else base64.b64encode(content).decode()
        send(Export(asked.request_id, error, name, media, told, asked.view))


def _content(recording: Recording, what: str) -> bytes:
    if what == "chrome":
        return chrome_trace(recording).encode()
    if what == "html":
        return page(RecordedFeed(recording)).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording"
        save(recording, path)
        return path.read_bytes()


__all__ = ["MAX_BYTES", "NOTHING_TRACED", "export"]
