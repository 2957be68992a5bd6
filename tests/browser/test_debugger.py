"""The debugger in the view: a breakpoint is set, holds a step, and its values are seen."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_host import LiveHost
from playwright.sync_api import Locator, Page, expect

import flowscope as fs
from flowscope.live.watchers.bus import LiveChannel

PATIENCE_S = 20


class Program:
    """A model whose steps run in a thread of their own, as a cell's do."""

    def __init__(self) -> None:
        self._x = fs.placeholder(fs.float32, [6, 9], name="x")
        with fs.name_scope("layer"):
            product = fs.multiply(self._x, 2.0, name="product")
            h = fs.tanh(product, name="act")
        self._y = fs.reduce_sum(h, name="y")
        self.session = fs.Session()
        self._threads: list[threading.Thread] = []
        #: What the steps gave.
        self.results: list[Any] = []

    def begin(self, value: Any = None) -> threading.Thread:
        if value is None:
            value = np.linspace(-1.0, 1.0, 54, dtype=np.float32).reshape(6, 9)
        feed = {self._x: value}
        thread = threading.Thread(
            target=lambda: self.results.append(self.session.run(self._y, feed))
        )
        self._threads.append(thread)
        thread.start()
        return thread

    def close(self) -> None:
        for point in self.session.debug.breakpoints:
            point.remove()
        self.session.resume()
        for thread in self._threads:
            thread.join(PATIENCE_S)


@pytest.fixture
def program(graph: Any) -> Iterator[Program]:
    made = Program()
    yield made
    made.close()


@pytest.fixture
def feed(graph: Any, program: Program) -> LiveChannel:
    return LiveChannel(graph, program.session)


@pytest.fixture
def open_host(
    open_host: Callable[..., LiveHost], program: Program
) -> Iterator[Callable[..., LiveHost]]:
    yield open_host
    program.close()


def stage(page: Page) -> Locator:
    return page.get_by_test_id("fs-stage")


def held(host: LiveHost, page: Page, count: int = 1) -> Locator:
    """Brings messages until so many steps are shown as held."""
    stops = page.get_by_test_id("fs-stops").locator("li")
    host.pump(lambda: stops.count() == count)
    return stops


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (600, "dark")])
def test_a_breakpoint_holds_a_step_its_value_is_seen_and_it_goes_on(
    open_host: Callable[..., LiveHost], page: Page, program: Program, width: int, theme: str
) -> None:
    host = open_host(width, theme)
    page.evaluate("window.choose('selection', 'layer/act')")
    form = page.get_by_test_id("fs-break")
    stage(page).press("D")
    expect(form.locator("code")).to_have_text("layer/act")
    form.get_by_label("Before or after").select_option("after")
    # An error of the condition is told, and nothing is set.
    form.get_by_label("Condition").fill("import os")
    form.get_by_role("button", name="Set").click()
    problem = page.get_by_test_id("fs-break-problem")
    host.pump(lambda: "a condition: expected" in problem.inner_text())
    assert program.session.debug.breakpoints == ()
    form.get_by_label("Condition").fill("max > 0.5")
    form.get_by_label("Condition").press("Enter")
    points = page.get_by_test_id("fs-points").locator("li")
    host.pump(lambda: points.count() == 1)
    expect(problem).to_be_hidden()
    expect(points).to_contain_text(re.compile('after "layer/act".*when max > 0.5.*0.hits'))
    assert stage(page).get_attribute("data-breakpoints") != "", "its box has a mark"
    thread = program.begin()
    stop = held(host, page)
    expect(stop).to_contain_text("next: y")
    expect(stop).to_contain_text(re.compile(r': after "layer/act" when max > 0\.5'))
    expect(page.get_by_test_id("fs-state")).to_have_text("held at y")
    if width == 1280:  # where it is narrow the inspector opens for a selection alone
        # Without a selection the inspector tells of where the step is held; its buttons mean that.
        page.evaluate("window.choose('selection', null)")
        inspector = page.get_by_test_id("fs-inspector")
        expect(inspector.get_by_role("heading", level=3)).to_have_text("y")
        for name in ("Explain", "Break before"):
            expect(inspector.get_by_role("button", name=name)).to_be_enabled()
    page.evaluate("window.choose('selection', 'layer/act')")
    # The values are asked for where the panel is opened, of what is selected.
    assert host.asked("ask_values") == 0
    stage(page).press("y")
    value = page.locator("[data-tensor='layer/act:0']")
    host.pump(lambda: value.count() == 1)
    expect(value).to_have_attribute("data-state", "alive")
    for text in ("float32[6,9]", "216", "all", "-0.964", "0.964"):
        expect(value).to_contain_text(text)
    expect(value.get_by_test_id("fs-heat-map")).to_have_accessible_name(re.compile("6 × 9"))
    expect(value.locator(".fs-histogram")).to_be_visible()
    for panel in ("fs-debug", "fs-values"):
        fits = page.get_by_test_id(panel).evaluate("p => p.scrollWidth <= p.clientWidth + 1")
        assert fits, panel
    asked = host.asked("ask_values")
    page.evaluate("window.choose('selection', 'y')")
    late = page.locator("[data-tensor='y:0']")
    host.pump(lambda: late.count() == 1)
    expect(late).to_have_attribute("data-state", "not yet")
    assert host.asked("ask_values") == asked + 1, "each selection asks once"
    page.get_by_role("button", name="Close the values").click()
    page.evaluate("window.choose('selection', 'layer/product')")
    host.drain()
    assert host.asked("ask_values") == asked + 1, "a closed panel asks nothing"
    points.get_by_role("checkbox").click()
    host.pump(lambda: not program.session.debug.breakpoints[0].is_enabled)
    page.get_by_test_id("fs-debug").get_by_role("button", name="Continue").click()
    held(host, page, 0)
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    points.get_by_role("button", name=re.compile("Remove")).click()
    host.pump(lambda: points.count() == 0)
    assert stage(page).get_attribute("data-breakpoints") == ""


def test_by_keys_alone(open_host: Callable[..., LiveHost], page: Page, program: Program) -> None:
    host = open_host()
    page.evaluate("window.choose('selection', 'layer/act')")
    stage(page).press("b")
    points = page.get_by_test_id("fs-points").locator("li")
    host.pump(lambda: points.count() == 1)
    before = page.locator(".fs-inspector").get_by_role("button", name="Break before")
    expect(before).to_have_attribute("aria-pressed", "true")
    thread = program.begin()
    stop = held(host, page)
    expect(stop).to_contain_text("next: layer/act")
    stage(page).press("b")
    host.pump(lambda: program.session.debug.breakpoints == ())
    stage(page).press(";")
    host.pump(lambda: "end of" in stop.inner_text())
    stage(page).press(" ")
    held(host, page, 0)
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_a_scope_a_type_and_a_line_are_typed_and_a_value_is_replaced(
    open_host: Callable[..., LiveHost], page: Page, program: Program, tmp_path: Path
) -> None:
    host = open_host()
    stage(page).press("D")
    form = page.get_by_test_id("fs-break")
    problem = page.get_by_test_id("fs-break-problem")
    points = page.get_by_test_id("fs-points").locator("li")
    what = form.get_by_label("What", exact=True)
    # What is missing is said in the panel, before anything is asked of the kernel.
    what.select_option("line")
    form.get_by_label("Which").fill("cell x")
    form.get_by_role("button", name="Set").click()
    expect(problem).to_contain_text("expected 12, cell 3:12 or model.py:12")
    assert host.asked("command") == 0
    for kind, text, told in (
        ("line", "test_debugger.py:7", "before line 7 of test_debugger.py"),
        ("scope", "layer", 'before scope "layer"'),
        ("type", "Tanh", "after every Tanh"),
    ):
        what.select_option(kind)
        form.get_by_label("Before or after").select_option(told.split()[0])
        form.get_by_label("Which").fill(text)
        form.get_by_label("Step").fill("0" if kind == "type" else "7")
        form.get_by_label("Which").press("Enter")
        host.pump(lambda told=told: points.filter(has_text=told).count() == 1)
        expect(problem).to_be_hidden()
    expect(points.filter(has_text="every Tanh")).to_contain_text("when step = 0")
    thread = program.begin()
    stop = held(host, page)
    expect(stop).to_contain_text("next: y")
    # The value of what stands here is replaced; what does not fit is refused in the panel.
    page.evaluate("window.choose('selection', 'layer/act')")
    stage(page).press("y")
    value = page.locator("[data-tensor='layer/act:0']")
    host.pump(lambda: value.count() == 1)
    said = page.get_by_test_id("fs-replaced")
    field = value.get_by_label("Replace layer/act:0 by")
    field.fill("[1, 2]")
    field.press("Enter")
    host.pump(lambda: "expected the shape [6,9], got [2]" in said.inner_text())
    page.screenshot(path=tmp_path / "replace.png")
    value.get_by_label("Replace layer/act:0 by").fill("0.5")
    value.get_by_role("button", name="Replace").click()
    host.pump(lambda: "is replaced" in said.inner_text())
    host.pump(lambda: "0.5" in value.locator("dl").inner_text())
    program.session.debug.clear()
    stage(page).press(" ")
    held(host, page, 0)
    thread.join(PATIENCE_S)
    assert program.results == [np.float32(27.0)], "all 54 elements were given the value"


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (600, "dark")])
def test_a_watchpoint_of_everything_says_where_a_nan_was_made(
    open_host: Callable[..., LiveHost],
    page: Page,
    program: Program,
    tmp_path: Path,
    width: int,
    theme: str,
) -> None:
    host = open_host(width, theme)
    stage(page).press("D")
    form = page.get_by_test_id("fs-break")
    form.get_by_label("Before or after").select_option("watch")
    form.get_by_label("What", exact=True).select_option("everything")
    form.get_by_label("But not in").fill("elsewhere")
    form.get_by_role("button", name="Set").click()
    points = page.get_by_test_id("fs-points").locator("li")
    host.pump(lambda: points.count() == 1)
    expect(points).to_contain_text("not finite in everything")
    thread = program.begin(np.full((6, 9), 3e38, np.float32))
    stop = held(host, page)
    expect(stop).to_contain_text('inf in the output of "layer/product" (Mul)')
    stop.get_by_role("button").click()
    page.evaluate("window.choose('selection', 'layer/product')")
    stage(page).press("y")
    value = page.locator("[data-tensor='layer/product:0']")
    host.pump(lambda: value.count() == 1)
    expect(value).to_contain_text("54 infinite")
    page.screenshot(path=tmp_path / f"watch-{width}-{theme}.png")
    for panel in ("fs-debug", "fs-values"):
        fits = page.get_by_test_id(panel).evaluate("p => p.scrollWidth <= p.clientWidth + 1")
        assert fits, panel
    program.session.debug.clear()
    stage(page).press(" ")
    held(host, page, 0)
    thread.join(PATIENCE_S)
