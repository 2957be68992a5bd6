"""First pictures of models that no rule was made for: what people ask of them can be read.

`FS_PICTURES=folder` keeps the pictures, for people to look at.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from bare_host import Host
from playwright.sync_api import Page
from unseen_models import UNSEEN

from flowscope.live.protocol.schema import Snapshot
from flowscope.live.watchers.bus import LiveChannel

LEAST_PX = 8.99
#: What answers at a glance: layers, losses, optimizers, what repeats, what is copied.
READ = {
    "transformer_flat": {"tokens", "table", "attention", "loss", "Adam"},
    "gan": {"images", "noise", "generator", "discriminator", "d_loss", "g_loss", "Adam"},
    "seq2seq": {"source", "encoder", "decoder"},
    "residual_cnn": {"images", "Momentum"},
    "dqn": {"state", "next_state", "online", "target", "copy_to_target", "td_loss", "act", "Adam"},
}
SIZES = {"wide": (1280, 800), "narrow": (600, 800), "zoomed": (640, 400)}


@pytest.fixture(params=UNSEEN)
def model(request: pytest.FixtureRequest, graph: Any) -> tuple[str, Snapshot]:
    UNSEEN[request.param]()
    return request.param, LiveChannel(graph).snapshot(time.monotonic())


@pytest.fixture
def host(page: Page, root: Path) -> Host:
    static = root / "widgets" / "flowscope_widgets" / "static"
    if not (static / "loader.js").is_file():
        pytest.skip("needs the front end: make front-end")
    return Host(page, static)


@pytest.mark.parametrize("size", SIZES)
def test_names_are_read_without_opening_a_box(
    host: Host, page: Page, model: tuple[str, Snapshot], size: str
) -> None:
    name, snapshot = model
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    host.start(snapshot, f"{height - 20}px")
    host.settle()
    _keep(page, f"{name}-{size}")
    texts = host.texts()
    small = [(text, px) for text, px, _, _ in texts if px < LEAST_PX]
    assert not small, f"too small to be read: {small}"
    if size == "wide":
        assert READ[name] <= {text for text, *_ in texts}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_forced_colours_tell_the_selection(host: Host, page: Page, graph: Any, scheme: Any) -> None:
    UNSEEN["dqn"]()
    page.emulate_media(forced_colors="active", color_scheme=scheme)
    host.start(LiveChannel(graph).snapshot(time.monotonic()), "600px")
    host.stage.focus()
    host.stage.press("ArrowDown")
    host.settle()
    _keep(page, f"forced-{scheme}")
    seen = host.page.locator(".fs-view").evaluate(
        """view => {
            const probe = document.body.appendChild(document.createElement("i"));
            probe.style.color = "Highlight";
            const wanted = getComputedStyle(probe).color;
            const canvas = view.querySelector("canvas");
            const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            // It lets the background through.
            const [r, g, b, alpha = 1] = wanted.match(/[\\d.]+/g).map(Number);
            const seen = [r, g, b].map((c, k) => alpha * c + (1 - alpha) * data[k]);
            const isIt = k => seen.every((c, n) => Math.abs(data[k + n] - c) < 6);
            let count = 0;
            for (let k = 0; k < data.length; k += 4) if (isIt(k)) count += 1;
            return count;
        }"""
    )
    assert seen > 100, "the box that is selected has the system's colour for that"


def _keep(page: Page, name: str) -> None:
    folder = os.environ.get("FS_PICTURES")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png")
