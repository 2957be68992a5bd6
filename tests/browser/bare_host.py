"""A page that has nothing but anywidget's contract, with the widget in it: no kernel behind it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from flowscope.live.protocol.schema import Snapshot
from flowscope.live.watchers.wire import to_wire

#: What the kernel would answer is given; `sent` keeps what all views send, `ends` how they end.
HOST = """async ([loader, script, style, snapshot, buffers, chosen]) => {
    const url = URL.createObjectURL(new Blob([loader], {type: "text/javascript"}));
    const widget = (await import(url)).default;
    const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer;
    window.sent = [];
    window.show = async el => {
        const listeners = new Map();
        const tell = (name, ...told) => (listeners.get(name) ?? []).forEach(l => l(...told));
        const answers = {
            core: () => tell("msg:custom", {kind: "core", script, style}),
            connect: ({view}) => tell("msg:custom", {...snapshot, view}, buffers.map(bytes)),
        };
        const model = {
            get: name => ({core: "digest-1", graph_key: "graph-1", ...chosen})[name],
            set: () => { throw new Error("what is chosen is sent"); },
            save_changes: () => undefined,
            on: (name, l) => listeners.set(name, [...(listeners.get(name) ?? []), l]),
            off: (name, l) => listeners.set(name, (listeners.get(name) ?? []).filter(o => o !== l)),
            send: m => { window.sent.push(m); setTimeout(() => answers[m.kind]?.(m)); },
        };
        return widget.render({model, el, experimental: {}});
    };
    window.ends = [await window.show(document.body)];
}"""

#: Notes each text that is drawn: what, how large in CSS pixels, and where.
NOTE_TEXTS = """() => {
    const draw = CanvasRenderingContext2D.prototype.fillText;
    const clear = CanvasRenderingContext2D.prototype.fillRect;
    window.texts = [];
    CanvasRenderingContext2D.prototype.fillRect = function (x, y, w, h) {
        const whole = this.canvas.closest(".fs-stage") && w >= this.canvas.clientWidth;
        if (whole && this.getTransform().e === 0) window.texts = [];
        clear.call(this, x, y, w, h);
    };
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        const {a, e, f, d} = this.getTransform();
        const px = parseFloat(/([\\d.]+)px/.exec(this.font)[1]) * a / devicePixelRatio;
        const at = [(x * a + e) / devicePixelRatio, (y * d + f) / devicePixelRatio];
        window.texts.push([text, Math.round(px * 100) / 100, ...at]);
        draw.call(this, text, x, y);
    };
}"""


class Host:
    """A bare page with a view."""

    def __init__(self, page: Page, static: Path) -> None:
        self.page = page
        self.requests: list[str] = []
        self._files = [
            (static / n).read_text("utf-8")
            for n in ("loader.js", "graph_view.js", "graph_view.css")
        ]

    def start(
        self, snapshot: Snapshot, height: str = "", chosen: dict[str, Any] | None = None
    ) -> None:
        """Shows a view of what a snapshot tells.

        Args:
            snapshot: What the kernel tells.
            height: The view's height, where it has a given one.
            chosen: What is chosen in the view already, by the names of its state.
        """
        self.page.goto("about:blank")
        self.page.on("request", lambda request: self.requests.append(request.url))
        told, buffers = to_wire(snapshot)
        given = [base64.b64encode(b).decode() for b in buffers]
        if height:
            style = f"body {{ margin: 0 }} .fs-view {{ --fs-height: {height} }}"
            self.page.add_style_tag(content=style)
        self.page.evaluate(NOTE_TEXTS)
        self.page.evaluate(HOST, [*self._files, told, given, chosen or {}])
        expect(self.page.locator(".fs-view[data-ready]")).to_be_visible()

    def settle(self) -> None:
        """Waits until nothing moves any more."""
        self.page.wait_for_function(
            """() => new Promise(done => requestAnimationFrame(() => {
                const before = JSON.stringify(window.texts);
                setTimeout(() => done(JSON.stringify(window.texts) === before), 250);
            }))"""
        )

    def texts(self) -> list[tuple[str, float, float, float]]:
        """Returns the texts that are seen: what, CSS pixels, and where on the stage."""
        return [tuple(one) for one in self.page.evaluate("() => window.texts")]

    def count(self, kind: str) -> int:
        """Returns how many messages of a kind all views have sent."""
        return int(self.page.evaluate("k => window.sent.filter(m => m.kind === k).length", kind))

    @property
    def stage(self) -> Locator:
        return self.page.get_by_test_id("fs-stage").first

    def find(self, name: str) -> Locator:
        """Returns the element with a test id."""
        return self.page.get_by_test_id(f"fs-{name}")
