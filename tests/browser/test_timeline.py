"""Where a step's time goes: timeline, shares on the boxes and table find the slow operation."""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jupyter_driver import Lab
from live_host import LiveHost
from playwright.sync_api import Locator, Page, Position, expect

import flowscope as fs
from flowscope.live.watchers.bus import LiveChannel

SLOW = "slow/product"


@pytest.fixture
def run(graph: Any) -> Callable[[Any], None]:
    """Runs a step of a model in which one product takes nearly all the time, or a part of it."""
    x = fs.placeholder(fs.float32, [None, 32], name="x")
    h = fs.layers.dense(x, 32, fs.nn.relu, name="hidden")
    with fs.name_scope("slow"):
        w = fs.Variable(np.full((900, 900), 1e-3, np.float32), name="w")
        y = fs.reduce_sum(fs.matmul(w, w, name="product"), name="sum")
    with fs.name_scope("head"):
        z = fs.cond(
            fs.reduce_sum(x) > 0.0, lambda: fs.reduce_sum(fs.exp(h)), lambda: fs.reduce_sum(h)
        )
        fs.add(z, y, name="total")
    session = fs.Session()
    session.run(fs.global_variables_initializer())
    feed = {x: np.ones((4, 32), np.float32)}
    session.run("head/total:0", feed)
    return lambda fetch: session.run(fetch, feed)


@pytest.fixture
def step(run: Callable[[Any], None]) -> Callable[[], None]:
    """Runs a whole step of the model."""
    return lambda: run("head/total:0")


@pytest.fixture
def feed(graph: Any, step: Callable[[], None]) -> LiveChannel:
    return LiveChannel(graph)


def stage(page: Page) -> Locator:
    return page.get_by_test_id("fs-stage")


def record(
    host: LiveHost, page: Page, step: Callable[[], None], steps: int = 12, listed: int = 3
) -> None:
    """Records steps by the key, and ends it: then nothing changes any more.

    Args:
        host: What shows the page.
        page: The page.
        step: Runs a step.
        steps: How many, unless more are needed.
        listed: How many steps the view can choose from, at least.
    """
    stage(page).press("R")
    host.pump(lambda: page.get_by_role("button", name="Stop recording").count() > 0)
    length = page.get_by_test_id("fs-step-length")
    choices = page.get_by_test_id("fs-step").locator("option")
    for _ in range(steps):
        step()
        host.drain()
    while choices.count() < listed or not length.inner_text():
        step()
        host.drain()
    stage(page).press("R")
    host.pump(lambda: page.get_by_role("button", name="Stop recording").count() == 0)
    for _ in range(20):
        host.drain()


def place_of(page: Page, name: str) -> Position:
    """Moves the mouse along the first lane until the card tells of an operation; returns where."""
    canvas = page.get_by_test_id("fs-timeline-canvas")
    box = canvas.bounding_box()
    assert box is not None
    told = []
    for share in (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9):  # other work may have come between
        place: Position = {"x": box["width"] * share, "y": 44}
        canvas.hover(position=place)
        page.evaluate("() => new Promise(drawn => requestAnimationFrame(drawn))")
        found = page.get_by_test_id("fs-slice-card").locator("strong:visible").all_inner_texts()
        if found == [name]:
            return place
        told += found
    raise AssertionError(f"expected a slice of {name}, got those of {told}")


def test_heat_table_and_timeline_name_the_same_slow_operation(
    open_host: Callable[..., LiveHost], page: Page, step: Callable[[], None]
) -> None:
    host = open_host()
    record(host, page, step)
    hottest = page.get_by_test_id("fs-hottest")
    expect(hottest).to_have_text(re.compile(r"most: product, [5-9]\d\s%"))
    stage(page).press("T")
    host.drain()
    row = page.get_by_test_id("fs-costs-table").locator("tbody tr").first
    expect(row).to_contain_text(re.compile(r"product\s*MatMul"))
    # One selection: chosen in the timeline it is so in the table and in the graph, and is told.
    page.get_by_test_id("fs-timeline-canvas").click(position=place_of(page, SLOW))
    host.pump(lambda: host.chosen.get("selection") == SLOW)
    expect(row).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("treeitem", selected=True)).to_have_accessible_name(
        re.compile("^product")
    )
    assert isinstance(host.chosen["step"], int), "what is looked at stays though steps come"


def test_programs_are_apart_and_figures_say_of_which_steps_they_are(
    open_host: Callable[..., LiveHost], page: Page, run: Callable[[Any], None]
) -> None:
    host = open_host()
    steps = itertools.cycle(["head/total:0", "hidden/Relu:0", "hidden/Relu:0"])
    record(host, page, lambda: run(next(steps)), 24)
    basis = page.get_by_test_id("fs-basis").first
    expect(basis).to_have_text(re.compile(r"^median of \d+\ssteps? of total, .*without the first$"))
    before = basis.inner_text()
    expect(page.get_by_test_id("fs-hottest")).to_contain_text("product")
    page.get_by_label("Figures of").first.select_option("Relu")
    expect(page.get_by_test_id("fs-hottest")).not_to_contain_text("product")
    expect(basis).to_contain_text("of Relu")
    page.get_by_label("Figures of").first.select_option(index=0)
    expect(basis).to_contain_text(re.compile(r"\d+\ss old"), timeout=10_000)
    assert basis.inner_text() != before, "figures grow old as long as no step is recorded"


def test_by_keys_alone_with_speech_and_at_600_px(
    open_host: Callable[..., LiveHost], page: Page, step: Callable[[], None]
) -> None:
    host = open_host(600, "dark")
    stage(page).press("t")
    empty = page.get_by_test_id("fs-timeline-empty")
    expect(empty).to_contain_text("Press R")
    record(host, page, step)
    expect(empty).to_be_hidden()
    canvas = page.get_by_test_id("fs-timeline-canvas")
    canvas.focus()
    seen = float(canvas.get_attribute("data-seen-ns") or 0)
    page.keyboard.press("w")
    page.wait_for_function(
        "seen => Number(document.querySelector('[data-testid=fs-timeline-canvas]')"
        ".dataset.seenNs) < seen",
        arg=seen,
    )
    for key in ("s", "d", "a", "f", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    speech = page.get_by_test_id("fs-timeline-speech")
    expect(speech).to_contain_text(re.compile(r"begins at"))
    host.pump(lambda: bool(host.chosen.get("selection")))
    page.keyboard.press("Escape")
    expect(stage(page)).to_be_focused()
    for bar in page.locator(".fs-timeline-bar").all():
        assert bar.evaluate("bar => bar.scrollWidth <= bar.clientWidth + 1"), "all of it fits"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_python_chooses_step_and_heat(
    open_host: Callable[..., LiveHost], page: Page, step: Callable[[], None]
) -> None:
    host = open_host()
    record(host, page, step)
    chooser = page.get_by_test_id("fs-step")
    number = chooser.locator("option").nth(2).get_attribute("value")
    page.evaluate("n => window.choose('step', n)", int(number or 0))
    host.pump(lambda: f"step {number}:" in page.get_by_test_id("fs-step-length").inner_text())
    assert chooser.input_value() == number
    page.evaluate("() => window.choose('heat', 'memory')")
    expect(stage(page)).to_have_attribute("data-heat", "memory")
    page.evaluate("() => window.choose('heat', 'off')")
    expect(page.get_by_test_id("fs-hottest")).to_be_hidden()


def test_a_hundred_thousand_slices_are_drawn_in_time(page: Page, static: Path, graph: Any) -> None:
    def body(i: Any, s: Any) -> tuple[Any, Any]:
        return i + 1, fs.tanh(fs.tanh(fs.tanh(s)))

    _, end = fs.while_loop(lambda i, s: i < 17_000, body, [fs.constant(0), fs.constant(0.5)])
    session = fs.Session()
    session.run(end)
    host = LiveHost(page, static, LiveChannel(graph))
    host.start()
    record(host, page, lambda: session.run(end), 4, listed=1)
    canvas = page.get_by_test_id("fs-timeline-canvas")
    host.pump(lambda: int(canvas.get_attribute("data-shown") or 0) > 80_000)
    canvas.focus()
    times = page.evaluate("""async () => {
        const canvas = document.querySelector("[data-testid=fs-timeline-canvas]");
        const times = [];
        for (let k = 0; k < 60; k++) {
            const key = ["w", "d", "a", "s"][k % 4];
            canvas.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
            await new Promise(requestAnimationFrame);
            await new Promise(requestAnimationFrame);
            times.push(Number(canvas.dataset.paintMs));
        }
        return times;
    }""")
    host.close()
    assert statistics.median(times) < 16.0, f"60 frames a second leave 16 ms: {times}"


LOAD = "%load_ext flowscope\nimport flowscope as fs, numpy as np"
BUILD = """x = fs.placeholder(fs.float32, [None, 600], name="x")
w = fs.Variable(np.full((600, 600), 1e-3, np.float32), name="w")
h = fs.tanh(x)
y = fs.reduce_sum(fs.matmul(h, w, name="slow"))
sess = fs.Session()
sess.run(fs.global_variables_initializer())
feed = {x: np.ones((600, 600), np.float32)}
fs.show();"""
RUN = "import time\nend = time.time() + 6\nwhile time.time() < end: sess.run(y, feed)"


def test_lines_of_a_cell_tell_their_share_and_lead_to_the_graph(lab: Lab, page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    notebook = lab.open(LOAD, BUILD, RUN)
    notebook.run(0)
    notebook.run(1)
    output = notebook.output(1)
    output.get_by_test_id("fs-stage").press("R")
    notebook.run(2)
    cell = notebook.panel.locator(".jp-Cell").nth(1)
    shares = cell.locator(".fs-line-share")
    expect(shares.filter(has_text=re.compile(r"[5-9]\d\s%"))).to_have_count(1)
    slow = shares.filter(has_text=re.compile(r"[5-9]\d\s%"))
    expect(slow).to_have_attribute("title", re.compile("of a step, in"))
    slow.click()
    selected = output.get_by_role("treeitem", selected=True)
    expect(selected).to_have_accessible_name(re.compile("^slow"))
    expect(cell.locator(".fs-line-selected")).to_have_count(1)
