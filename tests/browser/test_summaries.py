"""The panel Summaries: curves, histograms, pictures and texts while a program writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_host import LiveHost
from playwright.sync_api import Page, expect

import flowscope as fs
from flowscope.runtime.session.engine import Engine


@pytest.fixture
def session(graph: Any) -> Iterator[fs.Session]:
    x = fs.placeholder(fs.float32, [None], name="x")
    with fs.name_scope("train"):
        fs.summary.scalar("loss", fs.reduce_mean(fs.exp(x)))
        fs.summary.scalar("rate", fs.reduce_max(x))
        fs.summary.histogram("weights", x)
    ramp = fs.reshape(fs.range(64), [1, 8, 8, 1])
    fs.summary.image("filters", fs.cast(ramp, fs.float32) * x[0], max_outputs=1)
    fs.summary.text("note", fs.strings.join(["the value is ", fs.as_string(x[0]), " <b>now</b>"]))
    with Engine().as_default(), fs.Session() as made:
        yield made


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (600, "dark")])
def test_what_writers_are_given_is_seen_while_the_program_runs(
    open_host: Callable[..., LiveHost],
    page: Page,
    session: fs.Session,
    tmp_path: Path,
    width: int,
    theme: str,
) -> None:
    host = open_host(width, theme, fills=True)
    page.get_by_test_id("fs-stage").press("u")
    panel = page.get_by_test_id("fs-summaries")
    expect(panel).to_contain_text("No summaries yet. Write some: writer = fs.summary.FileWriter")
    merged = fs.get_collection(fs.GraphKeys.SUMMARIES)
    rng = np.random.default_rng(0)

    def write(run: str, steps: range, speed: float) -> None:
        with fs.summary.FileWriter(tmp_path / run) as writer:
            for step in steps:
                values = rng.normal(-step * speed, 0.3 + step / 80, 300)
                for one in session.run(merged, {"x:0": values}):
                    writer.add_summary(one, step)

    write("slow", range(60), 0.02)
    loss = panel.locator("[data-tag='train/loss']")
    host.pump(lambda: loss.count() == 1)
    expect(panel.get_by_role("list", name="Runs").locator("li")).to_have_text(["slow"])
    write("fast", range(60), 0.1)
    curves = loss.locator(".fs-chart-curve")
    host.pump(lambda: curves.count() == 2)
    host.pump(lambda: panel.locator("[data-tag='filters/image'] img").count() == 2)
    expect(panel.get_by_role("list", name="Runs").locator("li")).to_have_text(["fast", "slow"])
    before = curves.first.get_attribute("d")
    panel.get_by_label("log scale").check()
    expect(loss.get_by_role("img")).to_have_attribute("aria-label", re.compile("logarithmic"))
    assert curves.first.get_attribute("d") != before
    spread = panel.locator("[data-tag='train/weights'] canvas").first
    expect(spread).to_have_attribute("aria-label", re.compile("steps 0 to 59"))
    page.screenshot(path=tmp_path / f"summaries-{width}-{theme}.png")
    # Pictures and texts are those of a step; texts are never markup.
    note = panel.locator("[data-tag='note']").first
    expect(note).to_contain_text("<b>now</b>")
    expect(note).to_contain_text("step 59")
    slider = page.get_by_test_id("fs-summaries-slider")
    slider.focus()
    for _ in range(9):
        page.keyboard.press("ArrowLeft")
    expect(page.get_by_test_id("fs-summaries-step")).to_have_text("step 50")
    host.pump(lambda: "step 50" in note.inner_text())
    panel.evaluate("p => p.scrollTop = p.scrollHeight")
    page.screenshot(path=tmp_path / f"pictures-{width}-{theme}.png")
    assert panel.evaluate("p => p.scrollWidth <= p.clientWidth + 1")
    # A value that is not finite is marked, and what follows is drawn.
    with fs.summary.FileWriter(None) as writer:
        for step, value in enumerate([1.0, math.nan, 3.0]):
            one = fs.Summary.Value(tag="born", simple_value=value)
            writer.add_summary(fs.Summary(value=[one]), step)
    born = panel.locator("[data-tag='born']")
    host.pump(lambda: born.count() == 1)
    assert born.locator(".fs-chart-wrong").get_attribute("d")
    expect(born.get_by_role("img")).to_have_attribute("aria-label", re.compile("not finite"))
    page.get_by_role("button", name="Close the summaries").click()
    expect(panel).to_be_hidden()
