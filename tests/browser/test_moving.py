"""A picture of many boxes is moved as pixels: they are those that would be drawn anew."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from bare_host import Host
from playwright.sync_api import Page, expect

import flowscope as fs
from flowscope.live.protocol.schema import Snapshot
from flowscope.live.watchers.bus import LiveChannel

KINDS = ("tanh", "exp", "sin", "cos", "square", "abs", "sigmoid", "floor", "ceil")
#: Counts what is drawn on the stage's canvas and beside it, and compares what two times were seen.
COUNT = """() => {
    const draw = CanvasRenderingContext2D.prototype.stroke;
    window.strokes = 0;
    CanvasRenderingContext2D.prototype.stroke = function (...of) {
        window.strokes += 1;
        draw.apply(this, of);
    };
    const canvas = () => document.querySelector(".fs-stage canvas");
    window.look = () => canvas().getContext("2d")
        .getImageData(0, 0, canvas().width, canvas().height).data;
    window.keep = () => { window.kept = window.look(); };
    window.differing = () => {
        const now = window.look();
        let count = 0;
        for (let k = 0; k < now.length; k += 4) {
            const off = [0, 1, 2].map(c => Math.abs(now[k + c] - window.kept[k + c]));
            if (Math.max(...off) > 40) count += 1;
        }
        return count / (now.length / 4);
    };
    window.frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
}"""
#: Another theme and back: the scene is drawn anew where it is.
ANEW = """async () => {
    for (const theme of ["false", "true"]) {
        document.body.dataset.jpThemeLight = theme;
        await window.frame();
        await window.frame();
    }
}"""


@pytest.fixture
def snapshot(graph: Any) -> Snapshot:
    """Sixteen scopes of thirty operations, of kinds that never repeat in the same way."""
    state, x = 1, fs.placeholder(fs.float32, [4], name="x")
    for k in range(16):
        with fs.name_scope(f"block{k}"):
            for _ in range(30):
                state = (state * 1103515245 + 12345) % 2**31
                x = getattr(fs, KINDS[(state >> 16) % len(KINDS)])(x)
    return LiveChannel(graph).snapshot(time.monotonic())


@pytest.fixture
def host(page: Page, root: Path, snapshot: Snapshot) -> Host:
    static = root / "widgets" / "flowscope_widgets" / "static"
    if not (static / "loader.js").is_file():
        pytest.skip("needs the front end: make front-end")
    host = Host(page, static)
    page.set_viewport_size({"width": 1280, "height": 800})
    opened = {f"block{k}": True for k in range(16)}
    host.start(snapshot, "780px", {"open_scopes": opened})
    page.evaluate("() => { document.body.dataset.jpThemeLight = 'true'; }")
    expect(host.page.get_by_role("treeitem", name="block3,")).to_have_attribute(
        "aria-expanded", "true"
    )
    host.stage.focus()
    for _ in range(5):
        host.stage.press("-")
    host.settle()
    page.evaluate(COUNT)
    return host


def test_a_pan_shifts_pixels_and_draws_what_comes_into_sight(host: Host, page: Page) -> None:
    box = host.stage.bounding_box()
    assert box is not None
    x, y = box["x"] + 5, box["y"] + box["height"] - 60
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 20, y)
    page.evaluate("() => window.frame()")
    whole = page.evaluate("() => window.strokes")
    assert whole > 100, "the first frame draws all of it"
    page.evaluate("() => { window.strokes = 0; }")
    for k in range(1, 9):
        page.mouse.move(x + 20 + 9 * k, y - 13 * k)
        page.evaluate("() => window.frame()")
    strips = page.evaluate("() => window.strokes")
    page.mouse.up()
    assert 0 < strips < 3 * whole, "eight frames cost less than three whole pictures"
    page.mouse.move(box["x"] + box["width"] - 4, box["y"] + 4)
    page.evaluate("async () => { await window.frame(); window.keep(); }")
    page.evaluate(ANEW)
    assert page.evaluate("() => window.differing()") < 0.0005


def test_a_zoom_stretches_pixels_until_it_rests(host: Host, page: Page) -> None:
    host.stage.press("+")
    page.evaluate("() => window.frame()")
    zoom = host.stage.get_attribute("data-zoom")
    host.settle()
    page.evaluate("async () => { await window.frame(); window.keep(); }")
    page.evaluate(ANEW)
    assert page.evaluate("() => window.differing()") < 0.0005
    assert host.stage.get_attribute("data-zoom") == zoom
