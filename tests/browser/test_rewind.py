"""The line under the picture: all of a view is that of the recorded step that is chosen."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from live_host import LiveHost
from playwright.sync_api import Page, expect

import flowscope as fs
from flowscope.tracing.files import load

#: Where pictures of what is tested are kept, to be looked at.
OUTPUT = Path(__file__).parent / "output"
STEPS = 8


@pytest.fixture
def session(graph: Any) -> Iterator[fs.Session]:
    """A loop on one device, a variable that it updates on another."""
    x = fs.placeholder(fs.float32, [3], name="x")
    with fs.device("/CPU:1"):
        w = fs.get_variable("w", [3], fs.float32, fs.zeros_initializer())

    def body(i: Any, v: Any) -> tuple[Any, Any]:
        return i + 1, fs.tanh(v, name="t")

    _, v = fs.while_loop(lambda i, v: i < 3, body, [fs.constant(0), x], name="loop")
    with fs.device("/CPU:1"):
        fs.assign_add(w, v * 0.0 + x, name="train")
    with fs.name_scope("head"):
        fs.reduce_sum(x * x, name="loss")
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 2})) as made:
        made.run(fs.global_variables_initializer())
        yield made
        if made.debug.history is not None:
            made.debug.history.remove()
        made.resume()


def feed_of(k: int) -> np.ndarray[Any, Any]:
    return np.full(3, k + 1, np.float32)


def recorded(host: LiveHost, page: Page, session: fs.Session) -> list[int]:
    """Runs steps that are traced, and recorded; returns their numbers."""
    page.get_by_test_id("fs-stage").press("R")
    history = session.debug.record(["head/loss:0"])
    line = page.get_by_test_id("fs-scrubbed")
    for k in range(STEPS):
        session.run(["train", "head/loss:0"], {"x:0": feed_of(k)})
        told = rf"steps {history.steps[0]} to {history.steps[-1]} are recorded"
        host.pump(lambda told=told, k=k: k == 0 or re.search(told, line.inner_text()) is not None)
    return list(history.steps)


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (600, "dark")])
def test_values_shares_devices_and_variables_are_those_of_the_chosen_step(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session, width: int, theme: str
) -> None:
    OUTPUT.mkdir(exist_ok=True)
    host = open_host(width, theme)
    steps = recorded(host, page, session)
    stage, slider = page.get_by_test_id("fs-stage"), page.get_by_test_id("fs-scrubber")
    assert int(slider.get_attribute("max") or 0) >= len(steps)
    page.get_by_role("tab", name="Values").click()
    page.get_by_role("button", name="Value", exact=True).first.click()
    page.evaluate("window.choose('selection', 'head/loss')")
    value, variables = page.get_by_test_id("fs-values"), page.get_by_test_id("fs-variables")
    host.pump(value.is_visible)

    def unfold(name: str) -> None:
        """Brings a section into sight: where there is little room one stands at a time."""
        title = page.locator(".fs-section-title", has_text=re.compile(rf"^{name}$"))
        if title.get_attribute("aria-expanded") == "false":
            title.click()

    def goes_to(k: int) -> None:
        """Whether value and variable are those of a step, and the header says so."""
        unfold("Value")
        loss = f"{3 * (k + 1) ** 2:g}"
        held = sum(range(1, k + 1))
        host.pump(lambda: re.search(rf"value\s*{loss}\b", value.inner_text()) is not None)
        state = page.get_by_test_id("fs-state")
        expect(state).to_have_text(re.compile(rf"; step {steps[k]} shown$"))
        assert state.evaluate("e => e.scrollWidth <= e.clientWidth"), "and all of it is seen"
        unfold("Variables")
        host.pump(lambda: f"before step {steps[k]}" in (variables.text_content() or ""))
        row = variables.locator("[data-variable='w']")
        numbers = rf"(\b{held}(\.0*)?\s+){{3}}"
        host.pump(lambda: re.search(numbers, row.inner_text() + " ") is not None)

    slider.fill(str(0))
    first = steps[0]
    expect(page.get_by_test_id("fs-scrubbed")).to_contain_text(f"step {first} of {first} to")
    goes_to(0)
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    goes_to(2)
    assert host.chosen["step"] == steps[2], "the kernel is told"
    page.screenshot(path=OUTPUT / f"rewind-{width}-{theme}.png")
    page.get_by_role("button", name="Now").click()
    expect(page.get_by_test_id("fs-state")).not_to_contain_text("shown")
    # It plays from the first to the newest.
    seen: set[str] = set()
    stage.press("P")

    def has_played() -> bool:
        seen.add(page.locator(".fs-scrub").get_attribute("data-step") or "")
        return str(steps[-1]) in seen

    host.pump(has_played)
    assert len(seen) >= STEPS - 2
    host.pump(
        lambda: page.get_by_role("button", name="Play").get_attribute("aria-pressed") != "true"
    )


def test_shares_and_devices_are_those_of_a_traced_step(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session
) -> None:
    host = open_host()
    recorded(host, page, session)
    stage = page.get_by_test_id("fs-stage")
    stage.press("h")
    if stage.get_attribute("data-heat") != "time":
        page.get_by_test_id("fs-heat").select_option("time")
    # Now and then a step is traced: the timeline's list has those.
    traced = page.get_by_test_id("fs-step").locator("option").last.get_attribute("value")
    page.get_by_test_id("fs-step").select_option(traced)
    note = page.get_by_test_id("fs-heat-note")
    host.pump(lambda: re.search(r"of step \d+", note.inner_text()) is not None)
    number = int(page.locator(".fs-scrub").get_attribute("data-step") or -1)
    assert f"of step {number}" in note.inner_text()
    page.get_by_test_id("fs-heat").select_option("device")
    devices = page.get_by_test_id("fs-devices-note")
    host.pump(lambda: f"in step {number}" in devices.inner_text())
    page.get_by_role("button", name="Now").click()
    expect(devices).not_to_contain_text("in step")


def test_a_stretch_of_the_timeline_is_added_up(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session
) -> None:
    host = open_host()
    recorded(host, page, session)
    canvas, table = page.get_by_test_id("fs-timeline-canvas"), page.get_by_test_id("fs-range")
    host.pump(lambda: re.search("[1-9]", canvas.get_attribute("data-shown") or "") is not None)
    box = canvas.bounding_box()
    assert box is not None

    def drag(left: float, right: float) -> None:
        page.mouse.move(box["x"] + left, box["y"] + 20)  # in the ruler
        page.mouse.down()
        page.mouse.move(box["x"] + right, box["y"] + 24, steps=4)
        page.mouse.up()

    drag(130, box["width"] - 4)
    expect(table).to_be_visible()
    rows = table.locator("tbody tr")
    expect(rows.filter(has_text=re.compile("^(loop/)?.*[Ll]oop"))).not_to_have_count(0)
    whole = page.get_by_test_id("fs-range-note").inner_text()
    page.get_by_test_id("fs-range-by").select_option("lane")
    expect(rows.filter(has_text="CPU:0")).not_to_have_count(0)
    page.screenshot(path=OUTPUT / "timeline-range.png")
    page.get_by_test_id("fs-range-by").select_option("op")
    link = table.get_by_role("button", name="head/loss", exact=True)
    link.click()
    expect(page.get_by_test_id("fs-inspector")).to_contain_text("head/loss")
    before = float(canvas.get_attribute("data-seen-ns") or 0)
    drag(180, 220)
    expect(page.get_by_test_id("fs-range-note")).not_to_have_text(whole)
    table.get_by_role("button", name="Zoom").click()
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert float(canvas.get_attribute("data-seen-ns") or 0) < before / 3
    table.get_by_role("button", name="Close the sums").click()
    expect(table).to_be_hidden()


def test_two_steps_are_compared_on_the_boxes_and_in_the_inspector(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session
) -> None:
    host = open_host()
    recorded(host, page, session)
    page.get_by_role("tab", name="Values").click()
    page.get_by_role("button", name="Value", exact=True).first.click()
    page.evaluate("window.choose('selection', 'head/loss')")
    values = page.get_by_test_id("fs-values")
    compare = page.get_by_role("button", name="Compare with this step")
    expect(compare).to_be_disabled()
    listed = page.get_by_test_id("fs-step").locator("option")

    def are_traced() -> bool:
        session.run(["train", "head/loss:0"], {"x:0": feed_of(1)})
        return listed.count() >= 3

    host.pump(are_traced)
    numbers = [int(v) for v in listed.evaluate_all("l => l.map(o => o.value)") if v != "newest"]
    newest, oldest = numbers[0], numbers[-1]
    assert newest > oldest
    host.drain()
    slider = page.get_by_test_id("fs-scrubber")
    first = int(page.get_by_test_id("fs-scrubbed").inner_text().split("steps ")[1].split(" ")[0])
    slider.fill(str(oldest - first))
    host.pump(compare.is_enabled)
    host.pump(lambda: f"step {oldest}" in values.inner_text())
    compare.click()
    stage, note = page.get_by_test_id("fs-stage"), page.get_by_test_id("fs-heat-note")
    expect(note).to_contain_text(f"step {oldest} is kept")
    slider.fill(str(newest - first))
    host.pump(lambda: f"step {oldest} → step {newest}" in note.inner_text())
    assert stage.get_attribute("data-heat") == "difference"
    told = page.get_by_test_id("fs-inspector")
    expect(told).to_contain_text(re.compile(rf"in step {oldest}, \S+\s\S+ in step {newest}"))
    both = values.locator("[data-tensor='head/loss:0']")
    host.pump(lambda: both.count() == 2)
    page.screenshot(path=OUTPUT / "compared-steps.png")
    compare.click()
    expect(stage).not_to_have_attribute("data-heat", "difference")
    host.pump(lambda: both.count() == 1)


def test_what_the_save_menu_saves_can_be_opened(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session, tmp_path: Path
) -> None:
    host = open_host()
    recorded(host, page, session)
    found: dict[str, Path] = {}
    steps = ("for Chrome, Perfetto", "as a recording", "as HTML page")
    for label in (
        *(f"Save as {n}" for n in ("SVG", "PNG", "DOT (Graphviz)")),
        *(f"Save steps {n}" for n in steps),
    ):
        saved(host, page, tmp_path, label, found)
    svg = ElementTree.parse(found[".svg"]).getroot()
    assert svg.tag.endswith("svg") and "loop" in "".join(svg.itertext())
    size = found[".png"].read_bytes()[16:24]
    assert int.from_bytes(size[:4]) > 200 and int.from_bytes(size[4:]) > 100
    assert found[".gv"].read_text().startswith("digraph")
    events = json.loads(found[".json"].read_bytes())["traceEvents"]
    assert any("loss" in str(event.get("name")) for event in events)
    assert any("loss" in node.name for node in load(found[".recording"]).nodes)
    shown = page.context.new_page()
    shown.goto(found[".html"].as_uri())
    expect(shown.locator(".fs-view[data-ready]")).to_be_visible()
    expect(shown.get_by_test_id("fs-state")).to_have_text("recording")
    shown.close()
    assert len(found) == 6, sorted(found)


def saved(host: LiveHost, page: Page, folder: Path, label: str, found: dict[str, Path]) -> None:
    """Presses a button of the save menu, and keeps the file by its extension."""
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Save the picture").click()
    files: list[Any] = []
    page.once("download", lambda download: files.append(download))
    page.get_by_role("button", name=label, exact=True).click()
    host.pump(lambda: bool(files))
    path = folder / files[0].suggested_filename
    files[0].save_as(path)
    found[path.suffix] = path
