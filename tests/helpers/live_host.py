"""A page with the widget in it and a real feed behind it, in this process: no Jupyter."""

from __future__ import annotations

import base64
import queue
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from flowscope.live.protocol.schema import AskExport, Choose, FromKernel
from flowscope.live.watchers.bus import LiveChannel
from flowscope.live.watchers.wire import message_from, to_wire
from flowscope_widgets.exporting import export

HOST = """async ([loader, script, style]) => {
    const url = URL.createObjectURL(new Blob([loader], {type: "text/javascript"}));
    const widget = (await import(url)).default;
    const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer;
    const listeners = new Map();
    const tell = (name, ...told) => (listeners.get(name) ?? []).forEach(l => l(...told));
    const state = {core: "digest-live", graph_key: "graph-live", heat: "off"};
    window.hear = (message, buffers) => tell("msg:custom", message, buffers.map(bytes));
    window.choose = (name, value) => { state[name] = value; tell(`change:${name}`); };
    window.state = state;
    const model = {
        get: name => state[name],
        set: () => undefined, save_changes: () => undefined,
        on: (name, l) => listeners.set(name, [...(listeners.get(name) ?? []), l]),
        off: (name, l) => listeners.set(name, (listeners.get(name) ?? []).filter(o => o !== l)),
        send: m => m.kind === "core"
            ? setTimeout(() => tell("msg:custom", {kind: "core", script, style}))
            : window.toKernel(m),
    };
    await widget.render({model, el: document.getElementById("host"), experimental: {}});
}"""
#: Jupyter's colours, as far as they are used.
COLOURS = {
    "light": """:root { --jp-layout-color0: #fff; --jp-layout-color1: #fff;
        --jp-layout-color2: #eee;
        --jp-ui-font-color1: #000000de; --jp-ui-font-color2: #0000008a; --jp-border-color2: #e0e0e0;
        --jp-brand-color1: #1976d2; } body { background: #fff; margin: 8px }""",
    "dark": """:root { --jp-layout-color0: #111; --jp-layout-color1: #212121;
        --jp-layout-color2: #424242; --jp-ui-font-color1: #ffffffde;
        --jp-ui-font-color2: #ffffff8a; --jp-border-color2: #424242; --jp-brand-color1: #64b5f6;
        color-scheme: dark } body { background: #111; margin: 8px }""",
}


class LiveHost:
    """A page that shows a feed. What the page and the feed say to each other passes in `pump`."""

    def __init__(self, page: Page, static: Path, feed: LiveChannel) -> None:
        self.page = page
        self.chosen: dict[str, Any] = {}
        self._feed = feed
        self._heard: Counter[str] = Counter()
        self._told: queue.Queue[FromKernel] = queue.Queue()
        names = ("loader.js", "graph_view.js", "graph_view.css")
        self._files = [(static / n).read_text("utf-8") for n in names]

    def start(self, theme: str = "light") -> None:
        """Shows the feed's graph."""
        self.page.goto("about:blank")
        self.page.expose_function("toKernel", self._hear)
        is_light = str(theme == "light").lower()
        self.page.set_content(f'<body data-jp-theme-light="{is_light}"><div id="host"></div>')
        self.page.add_style_tag(content=COLOURS[theme])
        self.page.evaluate(HOST, self._files)
        self.pump(lambda: self.page.locator(".fs-view[data-ready]").count() > 0)

    def _hear(self, content: Any) -> None:
        message = message_from(content)
        self._heard[message.kind] += 1
        if isinstance(message, Choose):
            self.chosen[message.what] = message.value
        elif isinstance(message, AskExport):
            export(self._feed, message, self._told.put)
        else:
            self._feed.hear(message, self._told.put)

    def pump(self, is_done: Callable[[], bool], timeout_s: float = 30.0) -> None:
        """Brings messages to the page until something is so."""
        end = time.monotonic() + timeout_s
        while not is_done():
            assert time.monotonic() < end, "the page does not get there"
            self.drain()

    def drain(self) -> None:
        """Brings the messages that wait."""
        try:
            told, buffers = to_wire(self._told.get(timeout=0.02))
        except queue.Empty:
            self.page.evaluate("() => new Promise(requestAnimationFrame)")
            return
        given = [base64.b64encode(b).decode() for b in buffers]
        self.page.evaluate("([message, buffers]) => window.hear(message, buffers)", [told, given])

    def asked(self, kind: str) -> int:
        """Returns how many messages of a kind the page has sent."""
        return self._heard[kind]

    def close(self) -> None:
        """Ends what the feed tells the page."""
        self._feed.leave(self._told.put)


def shows(page: Page, test_id: str) -> bool:
    """Whether an element is seen."""
    return page.get_by_test_id(test_id).is_visible()


__all__ = ["LiveHost", "expect", "shows"]
