"""A recording or a graph as a page of HTML, drawn without a kernel, an engine or a network.

What draws is the widget's own code, as text in the page: a small script, the only one that the
page's policy lets run besides that code, unpacks the recording and answers the view in the place of
a kernel. The recording is text of ASCII letters, parsed and never run; the policy forbids the page
to load or send anything.
"""

from __future__ import annotations

import base64
import hashlib
import html
import pathlib
import time
from collections.abc import Iterator

from flowscope.errors import FailedPreconditionError
from flowscope.live.protocol.schema import FromKernel
from flowscope.live.watchers.recorded import RecordedFeed
from flowscope_widgets.packing import packed_messages

_STATIC = pathlib.Path(__file__).parent / "static"
#: More spans of a step, and of all together, are told as one where they are narrow: views ask for
#: as many, and a page shall not fill a browser's memory.
MOST_SPANS, MOST_OF_ALL = 100_000, 1_000_000
#: Values of tensors in a page: the newest of each tensor.
MOST_VALUES = 2000

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{style}</style>
</head>
<body class="fs-page">
<h1>{title}</h1>
<main><noscript>This page draws a recording, for which scripts have to be allowed.</noscript></main>
<script type="application/octet-stream" id="flowscope-core">{core}</script>
<script type="application/octet-stream" id="flowscope-recording">{recording}</script>
<script>{script}</script>
</body>
</html>
"""
#: Scripts: the one of this digest, and what it makes; threads: what that makes; nothing else at
#: all, from anywhere.
_POLICY = (
    "default-src 'none'; script-src 'sha256-{digest}' blob:; worker-src blob:; "
    "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
)


def page(feed: RecordedFeed, title: str = "") -> str:
    """Returns the page.

    Args:
        feed: The recording, or a graph in which nothing ran.
        title: The page's title; if it is "", what was recorded, and when, or the graph's size.

    Raises:
        FailedPreconditionError: if this flowscope was built without its front end.
    """
    script, core, style = [_read(n) for n in ("page.js", "graph_view.js", "graph_view.css")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _PAGE.format(
        policy=html.escape(_POLICY.format(digest=digest), quote=False),
        title=html.escape(title or _title(feed)),
        style=style,
        core=base64.b64encode(core.encode()).decode(),
        recording=packed_messages(_messages(feed)),
        script=script,
    )


def _read(name: str) -> str:
    path = _STATIC / name
    if not path.is_file():
        raise FailedPreconditionError(
            "this flowscope was built without its front end: install its wheel, which has one"
        )
    return path.read_text("utf-8")


def _messages(feed: RecordedFeed) -> Iterator[FromKernel]:
    yield feed.describe()
    steps = max(1, len(feed.recording.steps))
    yield from feed.all_spans(min(MOST_SPANS, MOST_OF_ALL // steps))
    yield from feed.all_values(MOST_VALUES)


def _title(feed: RecordedFeed) -> str:
    recording = feed.recording
    steps = recording.traced_steps
    if not recording.steps:
        count = len(feed.graph.get_operations())
        return f"{count} operation{'' if count == 1 else 's'}"
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(recording.origin_us / 1e6))
    return f"{steps} recorded step{'' if steps == 1 else 's'}, {when}"


__all__ = ["MOST_OF_ALL", "MOST_SPANS", "MOST_VALUES", "page"]
