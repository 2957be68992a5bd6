"""The panel Variables: what the session keeps, filtered, sorted, selected, while steps write it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_host import LiveHost
from playwright.sync_api import Page, expect

import flowscope as fs


@pytest.fixture
def session(graph: Any) -> Iterator[fs.Session]:
    x = fs.placeholder(fs.float32, [None, 16], name="x")
    h = x
    for k in range(4):
        h = fs.layers.dense(h, 24, fs.nn.relu, name=f"layer{k}")
    bad = fs.Variable([1.0, np.nan, np.nan, np.inf], trainable=False, name="bad")
    later = fs.Variable(fs.zeros([1000, 100]), trainable=False, name="later")
    loss = fs.reduce_mean(fs.square(h - 1.0), name="loss")
    fs.train.AdamOptimizer(0.01).minimize(loss, name="train")
    with fs.Session() as made:
        wanted = [v.initializer for v in fs.global_variables() if v is not later]
        made.run([*wanted, bad.initializer])
        yield made


def trained(session: fs.Session, steps: int = 1) -> None:
    for _ in range(steps):
        session.run("train", {"x:0": np.ones((4, 16), np.float32)})


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (600, "dark")])
def test_variables_are_listed_filtered_sorted_and_selected(
    open_host: Callable[..., LiveHost],
    page: Page,
    session: fs.Session,
    tmp_path: Path,
    width: int,
    theme: str,
) -> None:
    trained(session, 3)
    host = open_host(width, theme, fills=True)
    page.get_by_test_id("fs-stage").press("w")
    panel = page.get_by_test_id("fs-variables")
    rows = panel.locator("tbody tr[data-variable]")
    host.pump(lambda: rows.count() > 20)
    first = panel.locator("[data-variable='layer0/kernel']")
    host.pump(lambda: first.locator(".fs-histogram").count() == 1)
    expect(first).to_contain_text("step 3")
    expect(first).to_contain_text("float32[16,24]")
    expect(panel.locator("[data-variable='layer0/kernel/Adam']")).to_have_attribute(
        "data-depth", "1"
    )
    note = page.get_by_test_id("fs-variables-note")
    expect(note).to_contain_text("28 variables")
    expect(note).to_contain_text("1 not initialised")
    page.screenshot(path=tmp_path / f"variables-{width}-{theme}.png")
    assert panel.evaluate("p => p.scrollWidth <= p.clientWidth + 1")
    # What is chosen in the table is chosen in the picture, and the other way round.
    first.click()
    host.pump(lambda: host.chosen.get("selection") == "layer0/kernel")
    expect(first).to_have_attribute("aria-selected", "true")
    page.evaluate("window.choose('selection', 'layer1/bias')")
    expect(panel.locator("[data-variable='layer1/bias']")).to_have_attribute(
        "aria-selected", "true"
    )
    expect(first).to_have_attribute("aria-selected", "false")
    # Of what has no value, and of what is not finite, that is said.
    panel.get_by_label("Filter variables").fill("a")
    panel.get_by_label("slots").uncheck()
    panel.get_by_role("button", name="bytes").click()
    panel.get_by_label("Filter variables").fill("bad")
    expect(rows).to_have_count(1)
    host.pump(lambda: "1 infinite" in rows.first.inner_text())
    panel.get_by_label("Filter variables").fill("not init")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("later")
    # Sorted by bytes each variable counts with its slots; those without a value come last.
    panel.get_by_label("Filter variables").fill("")
    expect(rows.first).to_have_attribute("data-variable", "layer1/kernel")
    expect(rows.last).to_have_attribute("data-variable", "later")
    expect(rows.first).to_contain_text("+2")
    # A key moves among the rows.
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    page.get_by_role("button", name="Close the variables").click()
    expect(panel).to_be_hidden()


def test_the_list_follows_while_steps_run_and_nobody_asks_when_it_is_closed(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session
) -> None:
    host = open_host()
    stage = page.get_by_test_id("fs-stage")
    stage.press("w")
    panel = page.get_by_test_id("fs-variables")
    first = panel.locator("[data-variable='layer0/kernel']")
    host.pump(lambda: first.count() == 1)
    expect(first).to_contain_text("step 0")
    has_ended = threading.Event()

    def run() -> None:
        while not has_ended.is_set():
            trained(session)

    thread = threading.Thread(target=run)
    thread.start()
    host.pump(lambda: "step 0" not in first.locator("[data-written]").inner_text())
    seen = first.locator("[data-written]").inner_text()
    host.pump(lambda: first.locator("[data-written]").inner_text() != seen)
    has_ended.set()
    thread.join()
    last = f"step {session.steps - 1}"
    host.pump(lambda: first.locator("[data-written]").inner_text().replace("\u00a0", "") == last)
    page.get_by_role("button", name="Close the variables").click()
    asked, told = host.asked("ask_variables"), host.asked("ack")
    trained(session, 3)
    host.pump(lambda: host.asked("ack") > told)
    assert host.asked("ask_variables") == asked
