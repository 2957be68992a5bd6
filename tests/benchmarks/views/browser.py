"""Figures of the view in a real browser: `python tests/benchmarks/views/browser.py`.

A bare page holds the widget, as a notebook does, and is given what a kernel would send. The figures
of each model are medians of `ROUNDS` fresh pages. Tasks of the main thread are told by the time
that they have the processor: other programs do not change that as they do the clock's.
`--keep LABEL` writes the figures to `browser.json` under a label ("before", "after"), and
`bench_views.py` puts them into `FIGURES.md`.

The bars: the first picture 1, 1.5 and 2 s after `fs.show` at 1 000, 15 000 and 36 000 operations,
of which the browser at most 1 s; a scope opens in 0.3 s; no task of the main thread over 50 ms; 55
frames/s with 5 000 boxes; 100 MB of heap; 10 % of a core for updates at 8 Hz.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

import flowscope as fs
from flowscope.live.protocol.schema import Delta, SessionState
from flowscope.live.watchers import bus
from flowscope.live.watchers.wire import to_wire

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
STATIC = ROOT / "widgets" / "flowscope_widgets" / "static"
sys.path.insert(0, str(HERE))

from models import MODELS, many_boxes, resnet  # noqa: E402

ROUNDS = 2
LIVE_S = 5
#: Scopes that are opened, one after the other.
OPENED = 6
#: What Chromium calls a task of a thread.
TASK = "ThreadControllerImpl::RunTask"

#: The page's side of a kernel; what each measurement returns is in milliseconds.
HOST = """async ([loader, script, style, snapshot, buffers, delta]) => {
    const url = URL.createObjectURL(new Blob([loader], {type: "text/javascript"}));
    const widget = (await import(url)).default;
    const bytes = buffers.map(text => Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer);
    const listeners = new Map();
    const tell = (name, ...told) => (listeners.get(name) ?? []).forEach(l => l(...told));
    const state = {core: "digest-1", graph_key: "graph-1"};
    const long = [];
    new PerformanceObserver(list => list.getEntries().forEach(entry => long.push(entry)))
        .observe({type: "longtask"});
    let view = 0;
    const answers = {
        core: () => tell("msg:custom", {kind: "core", script, style}),
        connect: message => { view = message.view; window.isConnected = true; },
    };
    const model = {
        get: name => state[name], set: () => undefined, save_changes: () => undefined,
        on: (name, l) => listeners.set(name, [...(listeners.get(name) ?? []), l]),
        off: (name, l) => listeners.set(name, (listeners.get(name) ?? []).filter(o => o !== l)),
        send: message => setTimeout(() => answers[message.kind]?.(message)),
    };
    const frame = () => new Promise(requestAnimationFrame);
    const pause = ms => new Promise(done => setTimeout(done, ms));
    const until = async isTrue => { while (!isTrue()) await frame(); await frame(); };
    const longest = from => Math.max(0, ...long.filter(e => e.startTime >= from - 5)
        .map(e => e.duration));
    const found = selector => document.querySelector(selector);
    window.measure = {
        async first() {
            await pause(300);
            const from = performance.now();
            tell("msg:custom", {...snapshot, view}, bytes);
            await until(() => found(".fs-view[data-ready]"));
            const ms = performance.now() - from;
            await pause(500);
            return {ms, longest: longest(from)};
        },
        closed: () => [...document.querySelectorAll("[role=treeitem][aria-expanded=false]")]
            .map(item => item.dataset.box).filter(box => box?.startsWith("s:"))
            .map(box => box.slice(2)),
        async open(paths) {
            const tree = found("[role=tree]");
            let isShown = false;
            const watch = new MutationObserver(() => isShown = true);
            watch.observe(tree, {childList: true, subtree: true, attributes: true});
            const from = performance.now();
            state.open_scopes = Object.fromEntries(paths.map(path => [path, true]));
            tell("change:open_scopes");
            await until(() => isShown);
            watch.disconnect();
            const ms = performance.now() - from;
            await pause(400);
            return {ms, longest: longest(from)};
        },
        async move(kind) {
            const canvas = found("canvas"), stage = found("[data-testid=fs-stage]");
            stage.focus();
            const box = canvas.getBoundingClientRect();
            const at = {clientX: box.x + box.width / 2, clientY: box.y + box.height / 2,
                        bubbles: true, cancelable: true, pointerId: 1, button: 0};
            const send = (name, more) =>
                canvas.dispatchEvent(new PointerEvent(name, {...at, ...more}));
            canvas.setPointerCapture = () => undefined;
            if (kind === "pan") send("pointerdown", {});
            const from = performance.now();
            let frames = 0;
            while (performance.now() < from + 2000) {
                await frame();
                frames += 1;
                const wave = Math.sin(frames / 20);
                if (kind === "pan") send("pointermove", {clientX: at.clientX + 200 * wave});
                else canvas.dispatchEvent(new WheelEvent("wheel", {...at, deltaY: 20 * wave}));
            }
            if (kind === "pan") send("pointerup", {});
            return {fps: 1000 * frames / (performance.now() - from), frames};
        },
        async live(seconds) {
            const from = performance.now();
            for (let seq = 1; seq <= 8 * seconds; seq++) {
                const session = {...delta.session, steps: seq * 100};
                tell("msg:custom", {...delta, view, seq, session}, []);
                await pause(125);
            }
            return {longest: longest(from)};
        },
    };
    const dispose = await widget.render({model, el: document.body, experimental: {}});
    await until(() => window.isConnected);
}"""


def told_of(name: str) -> tuple[dict[str, Any], list[bytes], dict[str, Any], float]:
    """Returns a model's snapshot and a delta as they travel, and the kernel's time in ms."""
    session = SessionState("running", 1, 100.0, 0.01, None)
    with fs.Graph().as_default() as graph:
        BUILDERS[name]()
        begin = time.perf_counter()
        message, buffers = to_wire(bus.LiveChannel(graph).describe())
        kernel_ms = 1000 * (time.perf_counter() - begin)
    told, _ = to_wire(Delta(seq=1, graph=None, session=session))
    return message, list(buffers), told, kernel_ms


def thousand() -> None:
    """A residual network of about 1 000 operations."""
    resnet(5)


BUILDERS: dict[str, Callable[..., None]] = {
    "1 000": thousand,
    "15 000": MODELS["resnet"],
    "36 000": MODELS["large"],
    "flat 2 000": MODELS["flat_2000"],
    "5 000 boxes": many_boxes,
}


class Bench:
    """Measures one model in fresh pages."""

    def __init__(self, browser: Browser, name: str, static: Path) -> None:
        self._browser = browser
        self.name = name
        names = ("loader.js", "graph_view.js", "graph_view.css")
        files = [(static / n).read_text("utf-8") for n in names]
        message, buffers, delta, self.kernel_ms = told_of(name)
        self._given = [*files, message, [base64.b64encode(b).decode() for b in buffers], delta]

    def rounds(self) -> dict[str, float]:
        """Returns the medians of all rounds."""
        found = [self._round() for _ in range(ROUNDS)]
        medians = {k: statistics.median(one[k] for one in found) for k in found[0]}
        return {"kernel ms": round(self.kernel_ms)} | {k: round(v, 1) for k, v in medians.items()}

    def _round(self) -> dict[str, float]:
        with self._browser.new_context(viewport={"width": 1280, "height": 800}) as context:
            page = context.new_page()
            page.goto("about:blank")
            page.evaluate(HOST, self._given)
            return self._measured(page)

    def _measured(self, page: Page) -> dict[str, float]:
        first, tasks = self._traced(page, "() => window.measure.first()")
        found = {
            "first picture ms": first["ms"],
            "main thread ms": sum(tasks),
            "longest task ms": max(tasks),
            "by the clock ms": first["longest"],
        }
        opened = self._opened(page)
        found["opening a scope ms"] = max([ms for ms, _ in opened], default=0)
        found["its longest task ms"] = max([task for _, task in opened], default=0)
        if self.name == "5 000 boxes":
            page.evaluate("paths => window.measure.open(paths)", many_paths())
            for kind in ("pan", "zoom"):
                found[f"{kind} frames/s"] = page.evaluate("k => window.measure.move(k)", kind)[
                    "fps"
                ]
        found["live % of a core"] = self._live(page)
        found["heap MB"] = self._heap_mb(page)
        return found

    def _traced(
        self, page: Page, script: str, value: Any = None
    ) -> tuple[dict[str, float], list[float]]:
        """Returns a measurement, and how long its tasks of the main thread had the processor."""
        self._browser.start_tracing(page=page, categories=["toplevel"])
        measured = page.evaluate(script, value)
        events = json.loads(self._browser.stop_tracing())["traceEvents"]
        names = {
            (e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"
        }
        tasks = [
            e.get("tdur", 0) / 1000
            for e in events
            if e["name"] == TASK and names.get((e["pid"], e["tid"])) == "CrRendererMain"
        ]
        return measured, tasks

    def _opened(self, page: Page) -> list[tuple[float, float]]:
        """Opens scopes one by one; returns how long each took, and its longest task."""
        paths = page.evaluate("() => window.measure.closed()")[:OPENED]
        found = []
        for path in paths:
            measured, tasks = self._traced(page, "path => window.measure.open([path])", path)
            found.append((measured["ms"], max(tasks)))
        return found

    def _live(self, page: Page) -> float:
        """Returns how busy the page's main thread is while 8 updates a second come."""
        client = page.context.new_cdp_session(page)
        client.send("Performance.enable")
        before = self._metrics(client)["TaskDuration"]
        page.evaluate("s => window.measure.live(s)", LIVE_S)
        return 100 * (self._metrics(client)["TaskDuration"] - before) / LIVE_S

    @staticmethod
    def _metrics(client: Any) -> dict[str, float]:
        metrics = client.send("Performance.getMetrics")["metrics"]
        return {one["name"]: one["value"] for one in metrics}

    def _heap_mb(self, page: Page) -> float:
        """The bytes that the page's main thread and its workers keep after a collection."""
        client = page.context.new_cdp_session(page)
        client.send("HeapProfiler.collectGarbage")
        used = float(client.send("Runtime.getHeapUsage")["usedSize"])
        for worker in page.workers:
            used += float(worker.evaluate("() => performance.memory?.usedJSHeapSize ?? 0"))
        return used / 1e6


def many_paths() -> list[str]:
    """Returns the scopes of `many_boxes`."""
    outer = [f"stage{i}" for i in range(12)]
    return outer + [f"{one}/block{k}" for one in outer for k in range(12)]


def sizes(static: Path) -> dict[str, float]:
    """The bytes that a front end is sent, gzipped."""
    names = {"loader kB gzipped": "loader.js", "drawing kB gzipped": "graph_view.js"}
    return {
        k: round(len(gzip.compress((static / n).read_bytes())) / 1e3, 1) for k, n in names.items()
    }


def launch(driver: Any) -> Browser:
    """Starts Chromium: the system's, else Playwright's."""
    system = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    args = ["--disable-gpu", "--enable-precise-memory-info"]
    args += ["--no-sandbox"] if os.geteuid() == 0 else []
    browser: Browser = driver.chromium.launch(executable_path=system, args=args)
    return browser


def main() -> None:
    """Prints the figures, and keeps them where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="models; all if none")
    parser.add_argument("--keep", metavar="LABEL", help="write browser.json under this label")
    parser.add_argument("--static", type=Path, default=STATIC, help="the built front end")
    arguments = parser.parse_args()
    found: dict[str, dict[str, float]] = {"": sizes(arguments.static)}
    with sync_playwright() as driver:
        browser = launch(driver)
        for name in arguments.names or BUILDERS:
            found[name] = Bench(browser, name, arguments.static).rounds()
            print(name, json.dumps(found[name]), flush=True)
        browser.close()
    if arguments.keep:
        file = HERE / "browser.json"
        kept = json.loads(file.read_text()) if file.exists() else {}
        kept.setdefault(arguments.keep, {}).update(found)
        file.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
