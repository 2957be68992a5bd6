"""Layers on several devices: a stack of them is dragged as one, and arrows tell what crosses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bare_host import NOTE_TEXTS
from device_legend import device, drag, stage
from live_host import LiveHost
from playwright.sync_api import Page, expect

import flowscope as fs
from flowscope.live.watchers.bus import LiveChannel

LAYERS = 6


@pytest.fixture
def session(graph: Any) -> Iterator[fs.Session]:
    """A session on four CPUs: layers that are alike on one, what follows them on another."""
    h = fs.placeholder(fs.float32, [None, 16], name="x")
    with fs.device("/device:CPU:1"):
        for i in range(LAYERS):
            h = fs.layers.dense(h, 16, fs.nn.relu, name=f"layer_{i}")
    with fs.device("/device:CPU:2"), fs.name_scope("head"):
        fs.reduce_sum(h, name="y")
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 4})) as session:
        session.run(fs.global_variables_initializer())
        yield session


def step(session: fs.Session) -> None:
    session.run("head/y:0", {"x:0": np.ones((2, 16), np.float32)})


@pytest.fixture
def open_host(
    page: Page, root: Path, graph: Any, session: fs.Session
) -> Iterator[Callable[..., LiveHost]]:
    static = root / "widgets" / "flowscope_widgets" / "static"
    if not (static / "loader.js").is_file():
        pytest.skip("needs the front end: make front-end")
    host = LiveHost(page, static, LiveChannel(graph, session))

    def opened(width: int = 1280) -> LiveHost:
        page.set_viewport_size({"width": width, "height": 800})
        host.start()
        return host

    yield opened
    host.close()


def test_a_stack_of_layers_is_dragged_to_a_device_as_one(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session
) -> None:
    step(session)
    host = open_host()
    page.evaluate(NOTE_TEXTS)
    stage(page).press("d")
    host.pump(lambda: device(page, "CPU:3").count() > 0)
    host.pump(lambda: page.evaluate("() => window.texts.some(t => t[0] === 'layer')"))
    drag(page, "layer", device(page, "CPU:3"))
    card = page.get_by_test_id("fs-move")
    host.pump(lambda: "predicted" in card.inner_text())
    card.get_by_role("button", name="Move", exact=True).click()
    host.pump(lambda: "moved to CPU:3" in card.inner_text())
    step(session)
    for i in range(LAYERS):
        product = session.graph.get_operation_by_name(f"layer_{i}/MatMul").id
        assert session.placements[product].endswith("CPU:3")
    host.pump(lambda: re.search(r"measured: .*a step", card.inner_text()) is not None)


@pytest.mark.parametrize("width", [1280, 600])
def test_arrows_lead_from_the_device_that_sends_to_the_one_that_receives(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session, width: int
) -> None:
    host = open_host(width)
    stage(page).press("R")
    host.pump(lambda: page.get_by_role("button", name="Stop recording").count() > 0)
    length = page.get_by_test_id("fs-step-length")
    while not length.inner_text():
        step(session)
        host.drain()
    stage(page).press("R")
    canvas = page.get_by_test_id("fs-timeline-canvas")
    host.pump(lambda: (canvas.get_attribute("data-arrows") or "0") != "0")
    expect(canvas).to_have_attribute("data-arrows", "1")


@pytest.mark.parametrize("kind", ["break_before", "break_after"])
@pytest.mark.parametrize("name", ["sent", "received"])
def test_a_breakpoint_where_a_value_crosses_devices_holds_once(
    page: Page, root: Path, graph: Any, kind: str, name: str
) -> None:
    x = fs.placeholder(fs.float32, [2], name="x")
    with fs.device("/device:GPU:0"):
        sent = fs.multiply(x, 2.0, name="sent")
    with fs.device("/device:GPU:1"):
        received = fs.add(sent, 1.0, name="received")
        y = fs.reduce_sum(received, name="y")
    static = root / "widgets" / "flowscope_widgets" / "static"
    if not (static / "loader.js").is_file():
        pytest.skip("needs the front end: make front-end")
    with (
        fs.Session(config=fs.ConfigProto(fake_devices={"GPU": 2})) as session,
        ThreadPoolExecutor(1) as pool,
    ):
        point = getattr(session.debug, kind)(name)
        host = LiveHost(page, static, LiveChannel(graph, session))
        host.start()
        stage(page).press("D")
        running = pool.submit(session.run, y, {x: np.ones(2, np.float32)})
        try:
            stops = page.get_by_test_id("fs-stops").locator("li")
            host.pump(lambda: stops.count() == 1)
            at = name if kind == "break_before" else {"sent": "received", "received": "y"}[name]
            expect(page.get_by_test_id("fs-state")).to_have_text(f"held at {at}")
            page.get_by_test_id("fs-debug").get_by_role("button", name="Continue").click()
            host.pump(running.done)
            host.pump(lambda: stops.count() == 0)
        finally:
            session.debug.clear()
            session.resume()
            host.close()
        assert running.result(0) == 6.0
        assert point.hits == 1
