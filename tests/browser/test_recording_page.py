"""A recording as one HTML file, opened from the disk: it is explored without kernel and network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import flowscope as fs

SLOW = "slow/product"


@pytest.fixture
def file(root: Path, graph: Any, tmp_path: Path) -> Path:
    """A file with two steps of a model, in which one product takes nearly all the time."""
    if not (root / "widgets/flowscope_widgets/static/page.js").is_file():
        pytest.skip("needs the front end: make front-end")
    x = fs.placeholder(fs.float32, [None, 32], name="x")
    h = fs.layers.dense(x, 32, fs.nn.relu, name="hidden")
    with fs.name_scope("slow"):
        w = fs.Variable(np.full((900, 900), 1e-3, np.float32), name="w")
        y = fs.reduce_sum(fs.matmul(w, w, name="product"), name="sum")
    total = fs.reduce_sum(h) + y
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        sess.run(total, {x: np.ones((4, 32), np.float32)})
        with fs.profile(sess) as profiled:
            sess.debug.record(["hidden/Relu"])
            for k in range(2):
                sess.run(total, {x: np.full((4, 32), k + 1, np.float32)})
    profiled.save(tmp_path / "run.recording")
    path = tmp_path / "run.html"
    fs.save_html(fs.tracing.load(tmp_path / "run.recording"), path, "Why <b>slow</b>?")
    return path


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (600, "dark")])
def test_a_file_shows_the_slow_operation(
    page: Page, file: Path, width: int, scheme: Any, tmp_path: Path
) -> None:
    asked: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    page.goto(file.as_uri())
    expect(page.locator(".fs-view[data-ready]")).to_be_visible()
    expect(page.get_by_role("heading", name="Why <b>slow</b>?")).to_be_visible()
    expect(page.get_by_test_id("fs-state")).to_have_text("recording")
    expect(page.get_by_test_id("fs-hottest")).to_have_text(re.compile(r"most: product, \d\d\s%"))
    expect(page.get_by_role("button", name="Pause")).to_have_count(0)
    canvas = page.get_by_test_id("fs-timeline-canvas")
    expect(canvas).to_have_attribute("data-shown", re.compile("[1-9]"))
    # Both steps are there; the inspector follows what is selected, and keys work.
    chooser = page.get_by_test_id("fs-step")
    first = chooser.locator("option").last.get_attribute("value")
    chooser.select_option(first)
    expect(page.get_by_test_id("fs-step-length")).to_contain_text(f"step {first}:")
    stage = page.get_by_test_id("fs-stage")
    stage.press("T")
    row = page.get_by_test_id("fs-costs-table").locator("tbody tr").first
    expect(row).to_contain_text(re.compile(r"product\s*MatMul"))
    row.click()
    expect(page.get_by_test_id("fs-inspector")).to_contain_text("slow/")
    page.screenshot(path=tmp_path / f"{width}-{scheme}.png")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not errors
    elsewhere = [url for url in asked if not url.startswith(("file:", "blob:", "data:"))]
    assert elsewhere == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (600, "dark")])
def test_values_are_seen_without_a_kernel(
    page: Page, file: Path, width: int, scheme: Any, tmp_path: Path
) -> None:
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    page.goto(file.as_uri())
    expect(page.locator(".fs-view[data-ready]")).to_be_visible()
    stage = page.get_by_test_id("fs-stage")
    stage.press("t")  # the timeline makes room
    stage.press("y")
    note = page.get_by_test_id("fs-values-note")
    expect(note).to_contain_text("Select an operation to see the value that was recorded")
    expect(note).to_contain_text("hidden/Relu:0")
    stage.press("/")
    find = page.locator(".fs-find input")
    find.fill("hidden/Relu")
    find.press("Enter")
    values = page.get_by_test_id("fs-values")
    value = values.locator("[data-tensor='hidden/Relu:0']")
    expect(value).to_contain_text("float32[4,32]")
    expect(values.get_by_role("img", name=re.compile("Heat map, 4 × 32"))).to_be_visible()
    expect(values).to_contain_text("step 3")
    newest = value.inner_text()
    stage.press("{")
    expect(values).to_contain_text("step 2")
    assert value.inner_text() != newest
    # The same in the past, with a curve and a slider; nothing there can be commanded.
    stage.press("H")
    past = page.get_by_test_id("fs-past")
    expect(page.get_by_test_id("fs-past-state")).to_contain_text("values of 2 tensors")
    expect(past.locator(".fs-curve svg")).to_have_attribute(
        "aria-label", re.compile("2 values of hidden/Relu")
    )
    for name in ("Record", "End", "Compute again", "Step back"):
        expect(past.get_by_role("button", name=name)).to_have_count(0)
    page.get_by_test_id("fs-past-slider").press("ArrowRight")
    expect(page.get_by_test_id("fs-past-moment")).to_have_text("step 3")
    expect(past.locator("[data-tensor='hidden/Relu:0']")).to_be_visible()
    page.screenshot(path=tmp_path / f"values-{width}-{scheme}.png")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not errors


def test_a_damaged_file_says_so(page: Page, file: Path) -> None:
    text = file.read_text("utf-8")
    at = text.index('id="flowscope-recording">') + 200
    file.write_text(text[:at] + ("B" if text[at] == "A" else "A") + text[at + 1 :], "utf-8")
    page.goto(file.as_uri())
    expect(page.locator("main")).to_have_text(re.compile("cannot be shown: the page is damaged"))
