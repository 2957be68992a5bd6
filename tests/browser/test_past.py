"""The past in the view: values over steps and iterations, steps computed again, steps back."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_host import LiveHost
from playwright.sync_api import Page, expect

import flowscope as fs

PATIENCE_S = 20


@pytest.fixture
def session(graph: Any) -> Iterator[fs.Session]:
    x = fs.placeholder(fs.float32, [3], name="x")

    def body(i: Any, v: Any) -> tuple[Any, Any]:
        return i + 1, fs.multiply(v, 2.0, name="twice")

    _, v = fs.while_loop(lambda i, v: i < 4, body, [fs.constant(0), x], name="loop")
    fs.reduce_sum(fs.exp(v, name="e"), name="y")
    made = fs.Session()
    yield made
    made.debug.clear()
    if made.debug.history is not None:
        made.debug.history.remove()
    made.resume()


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (600, "dark")])
def test_iterations_and_steps_of_a_tensor_are_gone_through_and_computed_again(
    open_host: Callable[..., LiveHost],
    page: Page,
    session: fs.Session,
    tmp_path: Path,
    width: int,
    theme: str,
) -> None:
    host = open_host(width, theme)
    stage = page.get_by_test_id("fs-stage")
    past = page.get_by_test_id("fs-past")
    stage.press("H")
    expect(past).to_contain_text("Nothing is recorded. Select an operation")
    page.evaluate("window.choose('selection', 'loop/body/twice')")
    past.get_by_role("button", name="Record loop/body/twice").click()
    host.pump(lambda: "no step was recorded yet" in past.inner_text())
    for k in range(3):
        session.run("y:0", {"x:0": [k, 0.5, -0.25]})
    slider = page.get_by_test_id("fs-past-slider")
    host.pump(lambda: slider.get_attribute("max") == "11")
    moment = page.get_by_test_id("fs-past-moment")
    expect(moment).to_have_text("step 2, iteration 3")
    expect(page.get_by_test_id("fs-past-state")).to_contain_text("steps 0 to 2 can be")
    value = past.locator("[data-tensor='loop/body/twice:0']")
    host.pump(lambda: "32" in past.locator(".fs-past-value").inner_text())
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    expect(moment).to_have_text("step 1, iteration 2")
    host.pump(
        lambda: re.search(r"max\s*8\b", past.locator(".fs-past-value").inner_text()) is not None
    )
    expect(value).to_have_attribute("data-state", "alive")
    page.screenshot(path=tmp_path / f"past-{width}-{theme}.png")
    assert past.evaluate("p => p.scrollWidth <= p.clientWidth + 1")
    # That step is computed again, up to there; it stands in the debugger, marked as past.
    past.get_by_role("button", name="Compute again up to here").click()
    stops = page.get_by_test_id("fs-stops").locator("li")
    host.pump(lambda: stops.count() == 1)
    expect(stops).to_contain_text("computed again")
    expect(stops).to_contain_text(re.compile("step 1.*next: loop/body/twice.*iteration 2"))
    page.get_by_test_id("fs-debug").get_by_role("button", name="Step back").click()
    host.pump(lambda: "next: loop/body/twice" not in page.get_by_test_id("fs-stops").inner_text())
    state = page.get_by_test_id("fs-state")
    expect(state).to_have_text("past: step 1")
    page.get_by_test_id("fs-debug").get_by_role("button", name="Leave the past").click()
    host.pump(lambda: "past" not in state.inner_text())
    host.pump(lambda: stops.count() == 0)
    if width == 600:  # there one panel has room at a time: its title brings it back
        page.locator(".fs-section-title", has_text="Past").click()
    past.get_by_role("button", name="End").click()
    host.pump(lambda: session.debug.history is None)
    host.pump(lambda: "Nothing is recorded" in past.inner_text())


def test_a_held_step_is_stepped_back(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session
) -> None:
    host = open_host()
    stage = page.get_by_test_id("fs-stage")
    stage.press("D")
    debug = page.get_by_test_id("fs-debug")
    back = debug.get_by_role("button", name="Step back")
    expect(back).to_be_disabled()
    stage.press("H")
    page.get_by_test_id("fs-past").get_by_role("button", name="Record steps").click()
    host.pump(lambda: session.debug.history is not None)
    session.debug.break_before("y")
    results: list[Any] = []
    thread = threading.Thread(
        target=lambda: results.append(session.run("y:0", {"x:0": [1.0, 0.5, -0.25]}))
    )
    thread.start()
    stops = page.get_by_test_id("fs-stops").locator("li")
    host.pump(lambda: stops.count() == 1 and "next: y" in stops.first.inner_text())
    stage.press(",")
    host.pump(lambda: stops.count() == 2)
    expect(stops.filter(has_text="computed again")).to_contain_text("next: e")
    expect(stops.filter(has_text="computed again")).to_have_attribute("aria-current", "true")
    session.debug.clear()
    stage.press(" ")
    host.pump(lambda: stops.count() <= 1)
    if stops.count():
        stage.press(" ")
    host.pump(lambda: stops.count() == 0)
    thread.join(PATIENCE_S)
    assert len(results) == 1
